# SPDX-License-Identifier: GPL-2.0
"""The rows of the measurements, from small traces made by hand."""

import json
import subprocess
from unittest import mock

from support import Case, put

# isort: split
from measure import Measurement, bench, fault, filemap, native, pageguard, pid, pipe, row, size_name, unixbench

SIDES = {"write": "mm_page_alloc", "read": "mm_page_free"}
FAULT = "page_fault_kernel: address=0x7f00deadb000 ip=copy_page_from_iter error_code=0x0"
SERVED = "handle_mm_fault: (handle_mm_fault+0x4/0x200)"


def trace(calls: list[tuple], marked: bool = True, size: int = 65536) -> str:
    """A trace of (call, pages under the mutex, pages beside it, ticks under
    the mutex for each time that it is taken), all calls by one task, between
    the benchmark's marks.  Each page under the mutex has a page fault."""
    time, lines = 1000, ["# lost 0", "# tracer: nop"]
    run = f"mode=pair size={size} writers=1 readers=1"

    def event(text: str) -> None:
        nonlocal time
        time += 1
        lines.append(f"      pipe_load-77      [000] ..... {time}: {text}")

    page = "page=000000003c1f pfn=0x1234 order=0"
    if marked:
        event(f"tracing_mark_write: pipe_load: begin {run}")
    for call, under, beside, *sections in calls:
        event(f"sys_{call}(fd: 5, buf: 7f00deadb000, count: 10000)")
        for _ in range(beside):
            event(f"{SIDES[call]}: {page}")
        for ticks in sections:
            event("lock_acquired: 00000000aa11bb22 &pipe->mutex")
            before = time
            for _ in range(under):
                event(f"{SIDES[call]}: {page}")
                event(FAULT)
                event(SERVED)
            time = before + ticks - 1
            event("lock_release: 00000000aa11bb22 &pipe->mutex")
    if marked:
        event(f"tracing_mark_write: pipe_load: end {run}")
    return "\n".join(lines) + "\n"


class Rows(Case):
    """measure.pipe on a run's directory."""

    def test_ladder(self):
        """A nanosecond is an instruction; each is of 64 KiB."""
        put(self.dir / "ladder.json", '{"mode": "write/read", "seconds": 0.002, "bytes": 131072}\n'
                                      '{"mode": "+ huge pages", "seconds": 0.0001, "bytes": 65536}\n')
        self.assertEqual([(one["condition"], one["value"]) for one in pipe.ladder_rows(self.dir)],
                         [("ladder: write/read", 1e6), ("ladder: huge pages", 1e5)])

    def test_counters(self):
        """Pages under the mutex for each call; pages beside it, and what lies
        outside the marks, do not count.  Of streams that is the mean of runs."""
        outside = trace([("write", 99, 0, 200)], marked=False)
        put(self.dir / "pair.trace", outside + trace([("write", 14, 2, 90), ("read", 16, 0, 80),
                                                      ("write", 15, 0, 90), ("read", 13, 3, 80)]))
        put(self.dir / "pair-memcg.trace", trace([("write", 16, 0, 90), ("read", 0, 16, 80)]))
        put(self.dir / "pair-large.trace", trace([("write", 256, 0, 90), ("read", 240, 16, 80)], size=1 << 20))
        put(self.dir / "pressure.trace", trace([("write", 1, 0, 9), ("write", 0, 0, 9), ("write", 0, 7, 9),
                                                ("read", 1, 0, 9)]))
        put(self.dir / "splice.trace", trace([("write", 0, 3, 9), ("write", 0, 2, 9)]))
        for size in pipe.STREAMED:
            put(self.dir / f"stream-{size}.trace",
                trace([("write", 0, 3, 9), ("write", 1, 0, 9, 9), ("read", 0, 0, 9)]) + trace([("write", 0, 0, 9)]))
        found = {(one["metric"], one["condition"]): one["value"] for one in pipe.counter_rows(self.dir)}
        self.assertEqual(found, {
            ("allocs_under_mutex", "64KiB write"): 14.5, ("allocs_under_mutex", "64KiB write memcg"): 16.0,
            ("allocs_under_mutex", "5w10r pressure"): 0.333333, ("frees_under_mutex", "64KiB read"): 14.5,
            ("frees_under_mutex", "64KiB read memcg"): 0.0, ("frees_under_mutex", "5w10r pressure"): 1.0,
            ("allocs", "64KiB to splice()"): 2.5, ("frees", "64KiB to splice()"): 0.0,
            ("allocs_under_mutex", "1MiB write"): 256.0, ("frees_under_mutex", "1MiB read"): 240.0,
            **{(metric, f"{size_name(size)} 1w1r"): value for size in pipe.STREAMED
               for metric, value in (("allocs_under_mutex", 0.5), ("allocs", 1.25), ("mutex_holds", 1.25))}})
        self.assertEqual({(one["metric"], one["condition"]): one["spread"] for one in pipe.counter_rows(self.dir)
                          if "spread" in one}["allocs", "1MiB 1w1r"], {"deviation": 1.25, "number": 2, "least": 0.0})
        self.assertEqual({one["evidence"] for one in pipe.counter_rows(self.dir)}, {"counter"})

    def test_faults(self):
        """Page faults under the mutex, by the size in the mark and by call,
        also where calls are numbers."""
        raw = trace([("write", 16, 0, 90), ("read", 3, 0, 90)]).replace("sys_write(", "sys_enter: NR 1 (").replace(
            "sys_read(", "sys_enter: NR 0 (")
        put(self.dir / "cold.trace",
            raw + trace([("write", 0, 0, 9), ("write", 1, 0, 9), ("read", 1, 0, 9)], size=4096))
        rest = trace([("write", 1, 0, 9), ("read", 2, 0, 9)])
        put(self.dir / "cold-rest.trace", rest[:rest.index(SERVED)] + rest[rest.index(SERVED) + len(SERVED):])
        self.assertEqual([(one["metric"], one["condition"], one["value"]) for one in pipe.fault_rows(self.dir)], [
            ("faults_under_mutex", "64KiB write", 16.0), ("faults_under_mutex", "64KiB read", 3.0),
            ("faults_under_mutex", "4KiB write", 0.5), ("faults_under_mutex", "4KiB read", 1.0),
            ("faults_under_mutex", "64KiB write, first page warm", 0.0),
            ("faults_under_mutex", "64KiB read, first page warm", 2.0),
            ("mmap_lock_reads", "64KiB cold", 0.0), ("mmap_lock_reads", "4KiB cold", 0.0),
            ("mmap_lock_reads", "64KiB cold, first page warm", 0.0),
            ("refused_under_mutex", "64KiB write", 0.0), ("refused_under_mutex", "64KiB read", 0.0),
            ("refused_under_mutex", "4KiB write", 0.0), ("refused_under_mutex", "4KiB read", 0.0),
            ("refused_under_mutex", "64KiB write, first page warm", 1.0),
            ("refused_under_mutex", "64KiB read, first page warm", 0.0)])

    def test_no_faults(self):
        """A trace in which nothing faulted, under the mutex or not, is told."""
        put(self.dir / "cold.trace", trace([("write", 0, 0, 9), ("read", 0, 0, 9)]))
        with self.fails("no page faults"):
            pipe.fault_rows(self.dir)

    def test_stuck(self):
        """What passed a stuck writer, by size."""
        put(self.dir / "stuck.json", "".join(json.dumps({"size": size, "count": 1000, "beside": size // 100}) + "\n"
                                             for size in pipe.STUCK_SIZES))
        self.assertEqual([(one["unit"], one["condition"], one["value"]) for one in pipe.stuck_rows(self.dir)],
                         [("of 1000 messages", "100B", 1.0), ("of 1000 messages", "10000B", 100.0),
                          ("of 1000 messages", "64KiB", 655.0)])

    def test_lost_events(self):
        """A trace that lost events gives no figures."""
        put(self.dir / "pair.trace", trace([("write", 1, 0, 9)]).replace("# lost 0", "# lost 1"))
        with self.fails("lost 1"):
            pipe.counter_rows(self.dir)

    def test_nothing_counted(self):
        """A trace without marks, or without the call between them, gives no
        figures, and is named."""
        path = put(self.dir / "pair.trace", trace([("write", 1, 0, 9)], marked=False))
        with self.fails("no marks", str(path)):
            pipe.counter_rows(self.dir)
        put(path, trace([("write", 1, 0, 9)]))
        with self.fails("read()", str(path)):
            pipe.counter_rows(self.dir)

    def instructions(self, *runs: tuple[int, int, bool, list]) -> list[dict]:
        """The rows of runs of (size, residue, memcg, sections), of two pairs each."""
        put(self.dir / "symbols", "".join(f"{address:016x} t {name}\n" for address, name in (
            (0xffffffff81000000, "_text"), (0xffffffff81000010, "anon_pipe_prefill_and_lock"),
            (0xffffffff81000020, "anon_pipe_read"), (0xffffffff81000030, "anon_pipe_write"),
            (0xffffffff81000040, "_end"))))
        put(self.dir / "pair.json", "".join(json.dumps({"size": size, "residue": residue, "memcg": memcg}) + "\n"
                                            for size, residue, memcg, _ in runs))
        put(self.dir / "insns.json", "".join(json.dumps({"ops": [10, 20], "sections": sections}) + "\n"
                                             for *_, sections in runs))
        return pipe.instruction_rows(self.dir)

    def test_instructions(self):
        """Of a pair, and under the mutex of its write and its read, whichever
        function takes it, with all times that a call takes it."""
        within = [[op, 0xffffffff81000000 + at, count] for op in (0, 1)
                  for at, count in ((0x12, 3), (0x32, 4), (0x22, 5 + op))]
        found = self.instructions((4096, 0, False, within), (10000, 100, False, within), (65536, 0, True, within))
        self.assertEqual([(one["metric"], one["condition"], one["value"]) for one in found], [
            ("insn_per_pair", "4KiB", 15.0), ("insn_per_pair", "10000B, 100B in the pipe", 15.0),
            ("insn_per_pair", "64KiB memcg", 15.0),
            ("insn_under_mutex", "4KiB write", 7.0), ("insn_under_mutex", "4KiB read", 5.5),
            ("insn_under_mutex", "10000B write, 100B in the pipe", 7.0),
            ("insn_under_mutex", "10000B read, 100B in the pipe", 5.5),
            ("insn_under_mutex", "64KiB write memcg", 7.0), ("insn_under_mutex", "64KiB read memcg", 5.5)])
        self.assertEqual(found[0]["spread"], {"deviation": 5.0, "number": 2, "least": 10.0})

    def test_no_sections(self):
        """A call that never took the mutex is told."""
        with self.fails("a read() of 4KiB took no mutex"):
            self.instructions((4096, 0, False, [[0, 0xffffffff81000012, 3], [1, 0xffffffff81000012, 3]]))

    def test_row(self):
        """Values are kept to six digits."""
        self.assertEqual(row("m", "u", "c", "counter", 1 / 3)["value"], 0.333333)
        self.assertEqual(row("m", "u", "c", "counter", 12345678)["value"], 12345700.0)

    def test_native(self):
        """What is timed within the kernel has a row for each condition, which is
        asked for once a turn; its value is of all turns together.  A row in
        which nothing was done is told."""
        for module in (pipe, pid, filemap):
            lines = [line.removeprefix("bench ") for line in module.NATIVE.script.splitlines()
                     if line.startswith("bench ")]
            turns = native.TURNS
            self.assertEqual(lines, lines[:len(lines) // turns] * turns)
            del lines[len(lines) // turns:]
            self.assertEqual(len(lines), len(set(lines)))
            # Each turn does and takes another share of the whole.
            put(self.dir / "native.txt", "".join(
                f"{number * (turn + 1)} {1000 * (turns - turn)} {line}\n"
                for turn in range(turns) for number, line in enumerate(lines, 1)))
            put(self.dir / "threads.json", '{"procs": 2, "ops_per_s": 7}\n')
            put(self.dir / "switches.txt", "4500\n")
            # Twice 65536 bytes, 3 switches, and the nanoseconds of short writes.
            put(self.dir / "more.txt", "".join(
                line.replace("more ", "131072 1000 3 256 512 4096 ", 1) + "\n"
                for line in module.NATIVE.script.splitlines() if line.startswith("more ")))
            rows = module.NATIVE.rows(self.dir)
            self.assertEqual([one["value"] for one in rows[:len(lines)]],
                             [float(f"{number * 1e6 / (int(line.split()[1]) if line.startswith('pipe') else 1):.6g}")
                              for number, line in enumerate(lines, 1)])
            others = [(one["unit"], one["value"]) for one in rows if one["unit"] != "op/s"]
            self.assertEqual(others, [("per write", 1.5)] * 2 + [("ns", 256), ("ns", 512), ("ns", 4096)] * 2
                             + [("switches", 4500)] if module is pipe else [])
            self.assertEqual({one["evidence"] for one in rows}, {"timed-uml"})
            self.assertEqual(len({(one["metric"], one["condition"]) for one in rows}), len(rows))
            self.assertEqual(module.NATIVE.config, "um-time")
        put(self.dir / "native.txt", f"0 1000 {lines[0]}\n")
        with self.fails("nothing was done", lines[0]):
            module.NATIVE.rows(self.dir)

    def test_measurements(self):
        """What records a trace runs on the trace kernel, and what counts
        instructions on another, unless it needs the trace."""
        for module in (filemap, pid, pipe):
            names = [one.name for one in module.MEASUREMENTS]
            self.assertEqual(len(set(names)), len(names))
            for one in module.MEASUREMENTS:
                self.assertIsInstance(one, Measurement)
                if "trace_start" in one.script:
                    self.assertEqual(one.config, "trace", one.name)
                elif one.icount:
                    self.assertEqual(one.config, "bench", one.name)


def operations(count: int, sections: dict[str, tuple], level: int = 0, op: str = "clone3", procs: int = 1) -> str:
    """The trace of @count operations @op by each of @procs processes: the ticks of
    each time that pidmap_lock is taken, by the system call that it is in."""
    time, lines = 500, ["# lost 0", "# tracer: nop"]

    def event(text: str) -> None:
        nonlocal time
        time += 1
        lines.append(f" pid_alloc_bench-42      [001] ..... {time}: {text}")

    run = f"op={op} level={level} procs={procs}"
    event("sys_clone3(uargs: 7ffd00, size: 58)")
    event("lock_acquired: 00000000aa11bb22 pidmap_lock")
    event("lock_release: 00000000aa11bb22 pidmap_lock")
    event(f"tracing_mark_write: pid_alloc_bench: begin {run}")
    for _ in range(count * procs):
        for call, lengths in sections.items():
            event(f"sys_{call}(0)")
            for ticks in lengths:
                event("lock_acquired: 00000000aa11bb22 pidmap_lock")
                event("lock_acquired: 00000000cc33dd44 &other->lock")
                time += ticks - 2
                event("lock_release: 00000000aa11bb22 pidmap_lock")
    event(f"tracing_mark_write: pid_alloc_bench: end {run}")
    return "\n".join(lines) + "\n"


class Pid(Case):
    """measure.pid on a run's directory."""

    def setUp(self):
        super().setUp()
        self.count = pid.TRACED

    def test_counters(self):
        """Acquisitions of pidmap_lock and of the namespaces' locks for each operation;
        those before the begin mark and those of other locks do not count."""
        put(self.dir / "locks.trace",
            operations(self.count, {"clone3": (10, 20), "wait4": (30,)})
            + operations(self.count, {"clone3": (10, 10, 10, 10, 20), "wait4": (30,)}, level=3)
            + operations(self.count, {"clone3": (10,), "exit": (30,)}, op="thread")
            + operations(self.count, {"clone3": (10,)}, level=3, procs=4)
            + operations(self.count, {"clone3": (10,)}, level=2).replace("pidmap_lock", pid.OWN[0])
            + operations(self.count, {"clone3": (10, 10)}, level=1).replace("pidmap_lock", pid.OWN[1]))
        found = {(one["metric"], one["condition"]): one["value"] for one in pid.counter_rows(self.dir)}
        self.assertEqual({name: (found["lock_acquisitions", name], found["ns_lock_acquisitions", name])
                          for _, name in found},
                         {"level0": (3.0, 0.0), "level3": (6.0, 0.0), "level0 thread": (2.0, 0.0),
                          "level3, 4 at once": (1.0, 0.0), "level2": (0.0, 1.0), "level1": (0.0, 2.0)})

    def test_never_taken(self):
        """A part in which nobody takes a lock is told."""
        put(self.dir / "locks.trace", operations(self.count, {"clone3": ()}))
        with self.fails("a lock", "level0", "locks.trace"):
            pid.counter_rows(self.dir)
        put(self.dir / "ops.json", '{"op": "vfork", "level": 3}\n')
        put(self.dir / "insns.json", '{"ops": [10], "sections": []}\n')
        with self.fails("a lock", "level3 vfork", "insns.json"):
            pid.instruction_rows(self.dir)

    def test_instructions(self):
        """Of an operation, and while the lock is held, wherever that is."""
        put(self.dir / "ops.json", '{"op": "clone3", "level": 0}\n{"op": "thread", "level": 3}\n')
        put(self.dir / "insns.json", '{"ops": [100, 200], "sections": [[0, 1, 10], [0, 2, 20], [1, 1, 10]]}\n'
            '{"ops": [300], "sections": [[0, 1, 30]]}\n')
        self.assertEqual([(one["metric"], one["condition"], one["value"]) for one in pid.instruction_rows(self.dir)],
                         [("insn_under_lock", "level0", 20.0), ("insn_under_lock", "level3 thread", 30.0),
                          ("insn_per_op", "level0", 150.0), ("insn_per_op", "level3 thread", 300.0)])


def reads(size: int, file_size: int, count: int, writes: int) -> str:
    """A trace of @count reads with @writes of a reference count each."""
    lines = ["# lost 0"]
    lines.append(f"small_read-9 [000] ..... 1.0: tracing_mark_write: small_read_bench: begin size={size} "
                 f"file_size={file_size} op=pread offsets=hot")
    for number in range(count * writes):
        lines.append(f"small_read-9 [000] ..... 2.{number:06}: page_ref_mod_unless: pfn=0x1 flags= count=3 val=1")
    lines.append("small_read-9 [000] ..... 3.0: tracing_mark_write: small_read_bench: end size=1")
    lines.append("small_read-9 [000] ..... 4.0: page_ref_mod: pfn=0x1 flags= count=3 val=1")
    return "\n".join(lines) + "\n"


class Filemap(Case):
    """measure.filemap on a run's directory."""

    def test_counters(self):
        """Writes to reference counts between the marks, by file system, size
        of the reads and of the file."""
        for fs, writes in (("ext4", 2), ("xfs", 0), ("tmpfs", 2), ("ramfs", 0)):
            put(self.dir / f"{fs}.trace", reads(64, 4096, filemap.TRACED, writes)
                + reads(257, 1 << 20, filemap.TRACED, 2).split("\n", 1)[1])
            put(self.dir / f"{fs}.json", '{"size": 64, "file_size": 4096, "offsets": "hot"}\n'
                '{"size": 257, "file_size": 1048576, "offsets": "random", "heat": 0}\n')
        found = {one["condition"]: (one["metric"], one["value"]) for one in filemap.counter_rows(self.dir)}
        self.assertEqual(found["ext4 64B"], ("refcount_writes", 2.0))
        self.assertEqual(found["xfs 64B"], ("refcount_writes", 0.0))
        self.assertEqual(found["ramfs 257B of 1MiB random cold"], ("refcount_writes", 2.0))

    def test_nothing_counted(self):
        """If not even large reads are seen, the tracepoints do not work."""
        for fs in ("ext4", "xfs", "tmpfs", "ramfs"):
            put(self.dir / f"{fs}.trace", reads(64, 4096, filemap.TRACED, 0))
            put(self.dir / f"{fs}.json", '{"size": 64, "file_size": 4096}\n')
        with self.fails("no read changed a reference count"):
            filemap.counter_rows(self.dir)
        put(self.dir / "ext4.json", '{"size": 64, "file_size": 4096}\n' * 2)
        with self.fails("1 marks of 2 runs on ext4"):
            filemap.counter_rows(self.dir)

    def test_instructions(self):
        """Of a read, by file system; those longer than the file are left out.  Of
        a deletion, of each page."""
        def result(**members: object) -> str:
            return json.dumps({"size": 64, "file_size": 4096, "op": "pread", "offsets": "hot", **members}) + "\n"

        put(self.dir / "ext4.json", result() + result(size=32768) + result(size=32768, file_size=1 << 20)
            + result(file_size=1 << 20, offsets="random") + result(file_size=1 << 24, offsets="random", heat=0)
            + result(size=4096, file_size=100) + result(file_size=100, offsets="end")
            + result(file_size=1 << 20, offsets="miss"))
        put(self.dir / "xfs.json", result(size=1024))
        put(self.dir / "tmpfs.json", result(size=513))
        put(self.dir / "ext4-deleted.json", result(op="truncate", size=4096, file_size=1 << 20, heat=0))
        put(self.dir / "tmpfs-deleted.json", result(op="truncate", size=4096, heat=1)
            + result(op="truncate", size=4096, heat=1, everywhere=True))
        put(self.dir / "insns.json", "".join(json.dumps({"ops": [512 * number], "sections": []}) + "\n"
                                             for number in range(1, 14)))
        rows = filemap.instruction_rows(self.dir)
        self.assertEqual({(one["metric"], one["condition"]): one["value"] for one in rows},
                         {("insn_per_pread", "64B"): 512.0, ("insn_per_pread", "32KiB"): 1536.0,
                          ("insn_per_pread", "64B of 1MiB random"): 2048.0,
                          ("insn_per_pread", "64B of 16MiB random cold"): 2560.0,
                          ("insn_per_pread", "4KiB of 100B"): 3072.0, ("insn_per_pread", "64B end"): 3584.0,
                          ("insn_per_pread", "64B of 1MiB miss"): 4096.0,
                          ("insn_per_pread", "xfs 1KiB"): 4608.0, ("insn_per_pread", "tmpfs 513B"): 5120.0,
                          ("insn_per_delete", "truncate, file of 1MiB"): 22.0,
                          ("insn_per_delete", "tmpfs truncate, file of 4KiB, read before"): 6144.0,
                          ("insn_per_delete", "tmpfs truncate, file of 4KiB, read before by all"): 6656.0})


def locked(waits: list[float]) -> str:
    """A trace of faulting threads that got the mmap_lock for reading after these
    @waits, in seconds, and of what does not count."""
    said = "mm=00000000a1 memcg_path=/ write={}"
    lines = ["# lost 0", "fault-9 [000] ..... 1.0: mmap_lock_start_locking: " + said.format("true"),
             "fault-9 [000] ..... 1.1: mmap_lock_acquire_returned: " + said.format("true success=true"),
             "fault-9 [000] ..... 1.2: mmap_lock_start_locking: " + said.format("false"),
             "fault-9 [000] ..... 1.3: mmap_lock_acquire_returned: " + said.format("false success=false")]
    for number, wait in enumerate(waits):
        lines += [f"fault-{number} [001] ..... {number + 2}.0: mmap_lock_start_locking: " + said.format("false"),
                  f"fault-{number} [001] ..... {number + 2 + wait:.6f}: mmap_lock_acquire_returned: "
                  + said.format("false success=true")]
    return "\n".join(lines) + "\n"


class Pageguard(Case):
    """What is measured of pageguard alone."""

    def turn(self, got: int, tried: int = 10) -> str:
        """What the race test says of one turn."""
        return (f"ok 1 tmpfs move_pages\n# tmpfs move_pages: {got} of {tried} pages migrated\n"
                "ok 2 # SKIP xfs move_pages: no such file system\n")

    def test_races(self):
        """The share that stayed is the mean of the turns."""
        put(self.dir / "races.log", "".join(self.turn(got) for got in (10, 9, 8, 9, 9)))
        (found,) = pageguard.race_rows(self.dir)
        self.assertEqual({name: found[name] for name in ("condition", "value", "spread")},
                         {"condition": "tmpfs, move_pages", "value": 0.1,
                          "spread": {"deviation": 0.0707, "number": 5, "least": 0}})

    def test_turn_missing(self):
        """A race that one turn did not have is not a figure."""
        put(self.dir / "races.log", self.turn(10) * 4)
        with self.fails("not all turns of move_pages on tmpfs"):
            pageguard.race_rows(self.dir)
        put(self.dir / "races.log", "")
        with self.fails("any race"):
            pageguard.race_rows(self.dir)


class Fault(Case):
    """measure.fault on a run's directory."""

    def run_of(self, name: str, waits: list[float], **members: object) -> None:
        """Put what fault_bench says in the run @name, with @members, and its trace."""
        sample = {"number": 50, "mean_ns": 1e6, "p50_ns": 2e6, "p99_ns": 3e6, "max_ns": 4e6}
        put(self.dir / f"{name}.json", json.dumps({"faults": sample, "ui": sample, **members}) + "\n")
        put(self.dir / f"{name}.trace", locked(waits))

    def test_virtual(self):
        """Reads of the mmap_lock, and waits for it, by the neighbour; who is not
        there has no row."""
        self.run_of("map-9000", [0, 0.0005, 0.25])
        self.run_of("fork-9000", [], forks={"number": 2, "mean_ns": 5e6, "p50_ns": 5e6, "p99_ns": 5e6}, fork_sleeps=3)
        rows = fault.virtual_rows(self.dir, ", again")
        found = {(one["metric"].removeprefix("virtual_"), one["condition"]): one["value"] for one in rows}
        where = "beside mmap(), 9000 VMAs, again"
        self.assertEqual([found[name, where] for name in ("mmap_lock_reads", "mmap_lock_wait", "mmap_lock_long_waits",
                                                          "faults", "fault_p99", "ui_mean")],
                         [3.0, 250.5, 1.0, 50.0, 3.0, 1.0])
        self.assertNotIn(("forks_mean", where), found)
        where = "beside fork(), 9000 VMAs, again"
        self.assertEqual([found[name, where] for name in ("mmap_lock_reads", "mmap_lock_wait", "forks_mean",
                                                          "fork_sleeps")], [0.0, 0.0, 5.0, 1.5])
        self.assertEqual({one["evidence"] for one in rows}, {"icount"})

    def test_thrash(self):
        """The cgroup that thrashes has rows alone, and beside fork()."""
        forks = {"number": 2, "mean_ns": 5e6, "p50_ns": 5e6, "p99_ns": 7e6}
        self.run_of("thrash", [0.002])
        self.run_of("thrash-fork", [], forks=forks, fork_sleeps=0)
        found = {(one["metric"].removeprefix("virtual_"), one["condition"]): one["value"]
                 for one in fault.thrash_rows(self.dir)}
        alone = "memory cgroup that thrashes"
        self.assertEqual((found["mmap_lock_reads", alone], found["forks_p99", f"{alone}, beside fork()"]), (1.0, 7.0))
        self.assertNotIn(("forks_p99", alone), found)

    def test_lost(self):
        """A trace that lost events, and a run without a result, are told."""
        self.run_of("map-4000", [])
        put(self.dir / "map-4000.trace", locked([]).replace("lost 0", "lost 7"))
        with self.fails("map-4000.trace", "# lost 7"):
            fault.virtual_rows(self.dir)
        put(self.dir / "map-4000.json", "")
        with self.fails("map-4000.json has not one result"):
            fault.virtual_rows(self.dir)

    def test_instructions(self):
        """A row for each kind of fault, and reads for each MiB."""
        put(self.dir / "minor.json", json.dumps({"anonymous read": {"number": 9, "mean_ns": 1182.5}}) + "\n")
        put(self.dir / "minor.trace", locked([0] * 32))
        self.assertEqual([(one["metric"], one["condition"], one["value"]) for one in fault.instruction_rows(self.dir)],
                         [("insn_per_minor_fault", "anonymous read", 1182.5),
                          ("mmap_lock_reads_per_mib", "sequential read of a mapping", 2.0)])

    def test_same_page(self):
        """Reads for each fault, by kind and threads."""
        for number, name in enumerate(fault.SAME_PAGE):
            for threads in fault.THREADS:
                self.run_of(f"{name}-{threads}", [0] * 10 * number)
        found = {one["condition"]: one["value"] for one in fault.same_page_rows(self.dir)}
        self.assertEqual(len(found), len(fault.SAME_PAGE) * len(fault.THREADS))
        self.assertEqual([found[name] for name in ("file", "file random, same page, 2 threads",
                                                   "swap, write, same page, 8 threads")], [0.0, 0.2, 0.6])

    def test_writer(self):
        """Kinds that pass are counted; all have to have run."""
        kinds = [f"{'not ok' if number % 2 else 'ok'} {number} fault.kind{number}.ends_beside_writer"
                 for number in range(fault.KINDS)]
        put(self.dir / "writer.ktap", "\n".join(kinds) + "\n")
        self.assertEqual(fault.writer_rows(self.dir)[0]["value"], fault.KINDS / 2)
        put(self.dir / "writer.ktap", "\n".join([*kinds[1:], kinds[0] + " # SKIP no root"]) + "\n")
        with self.fails("has 7 results, not 8"):
            fault.writer_rows(self.dir)

    def test_scripts(self):
        """The guest's bash is bash, and calls a function that it has."""
        for one in fault.MEASUREMENTS:
            with self.subTest(measurement=one.name):
                done = subprocess.run(["bash", "-n"], input=one.script, text=True, capture_output=True)
                self.assertEqual((done.returncode, done.stderr, one.config), (0, "", "virtual"))
                self.assertIn(f"\n{one.script.splitlines()[-1].split()[0]}() {{\n", one.script)


class UnixBench(Case):
    """measure.unixbench, with programs that are faked."""

    def copies(self, words: str, program: str) -> tuple[int, str]:
        """Status and output of copies @words, where "one" does what the shell @program says."""
        put(self.dir / "one", f"#!/bin/bash\n{program}", 0o755)
        ended = subprocess.run(["bash", "-c", f"SUITE={self.dir}\n{unixbench.SETUP}\ncopies {words}"], text=True,
                               cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return ended.returncode, ended.stdout

    def test_copies(self):
        """What copies did is added up, by the time that passed or as they say it; a copy
        that fails, or counts nothing, fails all."""
        rate = "echo 'COUNT|9|0|KBps' >&2; echo 'COUNT|500|0|KBps' >&2; echo 'TIME|1.0' >&2; "
        self.assertEqual(self.copies("2 one -t 1", rate), (0, "1000.0\n"))
        status, said = self.copies("2 one 1", "sleep 0.$1; echo 'COUNT|100|1|lps' >&2")
        self.assertTrue(status == 0 and 200 < float(said) < 2000, said)
        for program in ("echo 'COUNT|0|1|lps' >&2", "true", rate + "exit 2", rate + "mkdir one.first || exit 1"):
            with self.subTest(program=program):
                self.assertEqual(self.copies("2 one 1", program), (1, ""))

    def test_rows(self):
        """A boot has a row of each program, with one copy and with two."""
        for name in ("pipe", "context1", "spawn", "execl", "fstime"):
            put(self.dir / "kselftest" / name, "#!/bin/sh\necho 'COUNT|12|0|KBps' >&2\n", 0o755)
        subprocess.run(["bash", "-c", unixbench.SCRIPT], cwd=self.dir, check=True)
        found = {one["condition"]: (one["metric"], one["unit"], one["value"]) for one in unixbench.rows(self.dir)}
        self.assertEqual(len(found), 14)
        self.assertEqual(found["execl, 1 copy"], ("throughput", "op/s", 12))
        self.assertEqual(found["file copy 4KiB, 2 copies"], ("copied", "KB/s", 24))

    def test_timed(self):
        """The base and all series are timed, by what bench.py does for a topic."""
        base, clock = mock.Mock(tag="v0"), mock.Mock(return_value=({"cells": [], "rounds": []}, ["kernel"]))
        with mock.patch.multiple(unixbench, clock=clock, apply=lambda *_: "all", chosen_topics=lambda *_: [],
                                 environment=lambda _base, _accel, kernels: kernels):
            self.assertEqual(unixbench.timed(base, self.dir, self.dir / "files", 5),
                             {"environment": ["kernel"], "cells": [], "rounds": []})
        topic, sides, *rest = clock.call_args[0]
        self.assertIs(bench.measures(topic).NATIVE, unixbench.NATIVE)
        self.assertEqual({name: side.revision for name, side in sides.items()}, {"baseline": "v0", "patched": "all"})
        self.assertEqual(rest, [self.dir / "files", 5])
