# SPDX-License-Identifier: GPL-2.0
"""What is measured of the pipe series."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import median

from core.process import Failure
from measure import counters
from measure import jobserver

from measure import Measurement, insns, json_lines, lines, native, row, size_name
from measure.lines import Symbols

LOCK = "&pipe->mutex"
# What takes it in a system call: functions whose names begin with these, and in a
# read, which of them.  Before 6.15, pipe_read() and pipe_write() do.
TAKERS, READERS = ("anon_pipe_", "pipe_read", "pipe_write"), ("anon_pipe_read", "pipe_read")
BENCH = "kselftest/regress/pipe/pipe_load"
# Other tasks use pipes too: only the benchmark's events are recorded.
MINE = 'comm == "pipe_load"'
LOCK_EVENTS = {"lock/lock_acquired": f'name == "{LOCK}" && {MINE}',
               "lock/lock_release": f'name == "{LOCK}" && {MINE}'}
CALLS = {"syscalls/sys_enter_write": MINE, "syscalls/sys_enter_read": MINE}
PAGE_EVENTS = {"kmem/mm_page_alloc": MINE, "kmem/mm_page_free": MINE}
# While page faults on user buffers are counted: the tracepoints of single calls look into the buffers on newer kernels.
RAW_CALLS = {"raw_syscalls/sys_enter": MINE}
GOT = "mmap_lock_acquire_returned"
FAULT, SERVED = "page_fault_kernel", "handle_mm_fault"
FAULT_EVENTS = {f"exceptions/{FAULT}": MINE, f"kprobes/{SERVED}": MINE, f"mmap_lock/{GOT}": MINE}

COUNTED = 1000          # pairs of each size that are counted by instructions
PAIRS = 200             # write and read pairs of 64 KiB that are traced
PRESSURE_WRITES = 100   # writes of 64 KiB by each of the five writers
STREAMED = (1, 100, 3000, 4096, 8192, 10000, 65536, 1048576)
STREAM_RUNS = 8         # of one writer and one reader, of each of these sizes: runs differ
STREAM_BYTES = 1 << 25  # in each
STREAM_WRITES = 2000    # but no more writes than this: the first ones fill the pipe
RESIDUE, RESIDUE_SIZE = 100, 10000  # what every other write of the latter size is merged with
COLD = (1, 100, 3000, 4096, 10000, 65536, 1048576)
COLD_REST = (10000, 65536, 1048576)  # with their first page mapped
PAIRED = (1, 64, 1024, 3000, 4096, 8192, 10000, 16384, 65536)
STUCK = 1000            # messages that others want to pass beside a stuck writer
STUCK_SIZES = (100, 10000, 65536)
STUCK_SECONDS = 15      # at most, on a slow machine

COUNTERS = counters.setup({**LOCK_EVENTS, **CALLS, **PAGE_EVENTS}) + f"""
set -e
trace_start
{BENCH} --pair --sizes 64K --pipe-size 1M --count {PAIRS} --marker --json
trace_stop pair.trace
trace_start
{BENCH} --pair --sizes 64K --pipe-size 1M --count {PAIRS} --memcg --marker --json
trace_stop pair-memcg.trace
trace_start
{BENCH} --pair --sizes 1M --pipe-size 1M --count {PAIRS // 4} --marker --json
trace_stop pair-large.trace
trace_start
{BENCH} --pair --splice --sizes 64K --pipe-size 1M --count {PAIRS} --marker --json
trace_stop splice.trace
trace_start
{BENCH} -w 5 -r 10 --sizes 64K --pipe-size 1M --count {PRESSURE_WRITES} --memory-pressure --marker --json
trace_stop pressure.trace
""" + "".join(f"""trace_start
for ((run = 0; run < {STREAM_RUNS}; run++)); do
	{BENCH} -w 1 -r 1 --size {size} --pipe-size 1M --count {min(STREAM_WRITES, STREAM_BYTES // size)} --marker --json
done
trace_stop stream-{size}.trace
""" for size in STREAMED)

# Each page is to fault on its own.  A fault that is refused, as page faults are disabled, does
# not come to the function with the probe.
FAULTS = f"""
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
echo 'p:{SERVED} {SERVED}' > /sys/kernel/tracing/kprobe_events
""" + counters.setup({**LOCK_EVENTS, **RAW_CALLS, **FAULT_EVENTS}) + f"""
set -e
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
getconf PAGESIZE > /sys/kernel/debug/fault_around_bytes
trace_start
{BENCH} --pair --cold --sizes {','.join(map(str, COLD))} --pipe-size 1M --count {PAIRS} --marker --json
trace_stop cold.trace
trace_start
{BENCH} --pair --cold=rest --sizes {','.join(map(str, COLD_REST))} --pipe-size 1M --count {PAIRS} --marker --json
trace_stop cold-rest.trace
"""
STUCK_WRITER = f"""
set -e
for size in {' '.join(map(str, STUCK_SIZES))}; do
	{BENCH} --stuck --size $size --pipe-size 1M --count {STUCK} --seconds {STUCK_SECONDS} --json >> stuck.json
done
"""

INSTRUCTIONS = f"""
{BENCH} --pair --sizes {','.join(map(str, PAIRED))} --pipe-size 1M --count {COUNTED} --json > pair.json
{BENCH} --pair --sizes {RESIDUE_SIZE} --residue {RESIDUE} --pipe-size 1M --count {COUNTED} --json >> pair.json
{BENCH} --pair --sizes 64K --pipe-size 1M --count {COUNTED} --memcg --json >> pair.json
"""

# The steps of the article, but the last, which polls: with one virtual CPU the other side
# would wait for the end of its time slice.
LADDER_STEPS, LADDER_BYTES = "1,2,3,4", 1 << 24
LADDER = f"kselftest/regress/pipe/pipe_ladder --step {LADDER_STEPS} --bytes {LADDER_BYTES} --json > ladder.json\n"


def ladder_rows(run: Path) -> list[dict]:
    """Instructions, of both sides and of switching between them, for each 64 KiB that
    goes through the pipe: an instruction takes a nanosecond of the guest's clock."""
    return [row("insn_per_64KiB", "instructions", f"ladder: {result['mode'].removeprefix('+ ')}", "icount",
                result["seconds"] * 1e9 / result["bytes"] * (1 << 16)) for result in json_lines(run / "ladder.json")]


def instruction_rows(run: Path) -> list[dict]:
    """insn_per_pair, and insn_under_mutex of its write and of its read, by size."""
    symbols = Symbols(run / "symbols")
    rows = []
    for _, result, window in insns.windows(run, "pair.json"):
        size = size_name(result["size"])
        more = ((f", {result['residue']}B in the pipe" if result["residue"] else "")
                + (" memcg" if result["memcg"] else ""))
        rows.append(insns.sampled("insn_per_pair", "instructions", size + more, window["ops"]))
        for call in ("write", "read"):
            held = insns.held(window, lambda address, reads=call == "read":
                              symbols.function(address).startswith(READERS) == reads)
            if not all(held):
                raise Failure(f"a {call}() of {size} took no mutex in {run / 'insns.json'}: look at the guest's output "
                              "beside it")
            rows.append(insns.sampled("insn_under_mutex", "instructions", f"{size} {call}{more}", held))
    return sorted(rows, key=lambda one: one["metric"] != "insn_per_pair")


def marked_size(mark: str) -> int:
    """The message size, in bytes, that a begin mark names."""
    return int(re.search(r"size=(\d+)", mark)[1])


def calls_in(path: Path, part: list[counters.Event], call: str) -> int:
    """How often the system call @call is entered in @part of the trace @path;
    Failure where it is not."""
    calls = sum(counters.entered(one) == call for one in part)
    if not calls:
        raise Failure(f"the trace {path} has no {call}() between its marks: look at the guest's output beside it")
    return calls


def per_call(path: Path, part: list[counters.Event], call: str, event: str) -> float:
    """Events called @event with the mutex held, for each system call @call in
    @part of the trace @path."""
    counted = sum(section.counts.get(event, 0) for section in counters.sections(part, LOCK)
                  if section.syscall == call)
    return counted / calls_in(path, part, call)


def releases(part: list[counters.Event], call: str) -> int:
    """How often the mutex is released in @part within the system call @call."""
    inside: dict[int, str] = {}
    count = 0
    for one in part:
        entered = counters.entered(one)
        if entered:
            inside[one.pid] = entered
        elif one.name == "lock_release" and inside.get(one.pid) == call:
            count += 1
    return count


def counter_rows(run: Path) -> list[dict]:
    """Pages allocated and freed while pipe->mutex was held, and for a stream
    the pages that were allocated at all and how often a write held the mutex."""
    rows = []
    for name, condition in (("pair", "64KiB {}"), ("pair-memcg", "64KiB {} memcg"), ("pair-large", "1MiB {}"),
                            ("pressure", "5w10r pressure")):
        path = run / f"{name}.trace"
        [(_, part)] = counters.marked(path)
        for metric, call, event in (("allocs_under_mutex", "write", "mm_page_alloc"),
                                    ("frees_under_mutex", "read", "mm_page_free")):
            rows.append(row(metric, f"pages per {call}", condition.format(call), "counter",
                            per_call(path, part, call, event)))
    for size in STREAMED:
        path = run / f"stream-{size}.trace"
        runs = [(part, calls_in(path, part, "write")) for _, part in counters.marked(path)]
        condition = size_name(size) + " 1w1r"
        rows.append(insns.sampled("allocs_under_mutex", "pages per write", condition,
                                  [per_call(path, part, "write", "mm_page_alloc") for part, _ in runs], "counter"))
        rows.append(insns.sampled("allocs", "pages per write", condition,
                                  [sum(one.name == "mm_page_alloc" for one in part) / writes
                                   for part, writes in runs], "counter"))
        # Also holds that began with a trylock, which is no lock_acquired.
        rows.append(insns.sampled("mutex_holds", "per write", condition,
                                  [releases(part, "write") / writes for part, writes in runs], "counter"))
    path = run / "splice.trace"
    [(_, part)] = counters.marked(path)
    writes = calls_in(path, part, "write")
    for metric, event in (("allocs", "mm_page_alloc"), ("frees", "mm_page_free")):
        rows.append(row(metric, "pages per write", "64KiB to splice()", "counter",
                        sum(one.name == event for one in part) / writes))
    metrics = list(dict.fromkeys(one["metric"] for one in rows))
    return sorted(rows, key=lambda one: metrics.index(one["metric"]))


def fault_rows(run: Path) -> list[dict]:
    """Page faults on user buffers while pipe->mutex was held, where each page
    that is copied, or each but the first, faults once; of these, the ones that
    were refused; and how often the mmap_lock was taken for them."""
    rows = []
    for name, more in (("cold", ""), ("cold-rest", ", first page warm")):
        path = run / f"{name}.trace"
        for mark, part in counters.marked(path):
            if not any(one.name == SERVED for one in part):
                raise Failure(f"the trace {path} has no page faults: look at the guest's output beside it")
            size = size_name(marked_size(mark))
            for call in ("write", "read"):
                served = per_call(path, part, call, SERVED)
                rows.append(row("faults_under_mutex", f"page faults per {call}", f"{size} {call}{more}", "counter",
                                served))
                rows.append(row("refused_under_mutex", f"page faults per {call}", f"{size} {call}{more}", "counter",
                                per_call(path, part, call, FAULT) - served))
            rows.append(row("mmap_lock_reads", "times per write and read", f"{size} cold{more}", "counter",
                            sum(one.name == GOT for one in part) / calls_in(path, part, "write")))
    return sorted(rows, key=lambda one: one["metric"])


def stuck_rows(run: Path) -> list[dict]:
    """What others got through the pipe while a writer was stuck."""
    return [row("beside_stuck_writer", f"of {result['count']} messages", size_name(result["size"]), "counter",
                result["beside"])
            for result in json_lines(run / "stuck.json")]


# What the benchmark says of writes of 100 bytes, in nanoseconds, behind operations, time and
# switches.
LATENCIES = ("p50", "p99", "max")
MORE_TURNS = 4
SMALL = {"100B beside 64KiB": "pipe-small 65536 2 1", "100B beside 8KiB": "pipe-small 8192 2 1"}
SWITCHES = {"64KiB, 5 writers, 10 readers": "pipe 65536 5 10",
            "64KiB, 5 writers, 10 readers, bound to CPUs": "pipe-bound 65536 5 10"}
POLLS = {"4KiB, poll() beside 5 writers that block": "pipe-poll 4096 6 2"}
BESIDE = """more() {
	echo "$*" > /proc/hotpaths_bench
	echo "$(cat /proc/hotpaths_bench) $(cat /proc/hotpaths_bench_more) $*" >> more.txt
}
""" + "".join(f"more {native.MILLISECONDS} {what}\n"
              for what in (*SMALL.values(), *SWITCHES.values())) * MORE_TURNS + jobserver.JOBS + """
switches() { sed -n 's/^ctxt //p' /proc/stat; }
make -j4 -f /tmp/jobs.mk
before=$(switches)
make -j4 -f /tmp/jobs.mk
echo $(($(switches) - before)) > switches.txt
"""


def beside_rows(run: Path) -> list[dict]:
    """Context switches of writes, how long short writes take beside long ones, and
    context switches of a build with a job server, in one boot of User-Mode Linux:
    medians of turns, but of maxima the largest."""
    turns: dict[str, list[list[int]]] = {}
    for line in (run / "more.txt").read_text().splitlines():
        words = line.split(" ", 7)
        turns.setdefault(words[7], []).append([int(word) for word in words[:6]])
    rows = []
    for condition, what in SWITCHES.items():
        size = int(what.split()[1])
        rows.append(row("switches", "per write", condition, "timed-uml",
                        median(got[2] / max(1, got[0] / size) for got in turns[what])))
    for condition, what in SMALL.items():
        for column, name in enumerate(LATENCIES, 3):
            of = max if name == "max" else median
            rows.append(row(f"write_{name}", "ns", condition, "timed-uml", of(got[column] for got in turns[what])))
    return [*rows, row("context_switches", "switches", "make -j4 of 48 jobs in four makes", "timed-uml",
                       int((run / "switches.txt").read_text()))]


GROUPS = ((1, 1), (2, 2), (5, 10))     # writers and readers of the rows with a clock
TIMED_SIZES = (1, 64, 4096, 65536, 1048576)
# Where the tasks are: what the condition ends in, and what that is called in the benchmark.
PLACES = {"": "pipe", ", bound to CPUs": "pipe-bound", ", bound, both on each CPU": "pipe-mixed"}

NATIVE = native.measurement(
    {f"{size_name(size)}, write then read": f"pair {size}" for size in TIMED_SIZES if size < 1 << 20}
    | {f"{size_name(size)}, {writers} writer{'s'[:writers - 1]}, {readers} reader{'s'[:readers - 1]}{place}":
       f"{what} {size} {writers} {readers}"
       for place, what in PLACES.items() for writers, readers in GROUPS for size in TIMED_SIZES}
    | POLLS,
    beside=BESIDE, others=beside_rows)

# A pipe of two CPUs, and one for each, which must share nothing.
SHARED = """
for size in 64 4096 65536; do
	lines --op pipe-pair,pipe-own --size $size
done
"""

MEASUREMENTS = [
    Measurement("pages under the mutex", "trace", COUNTERS, counter_rows),
    Measurement("page faults under the mutex", "trace", FAULTS, fault_rows),
    Measurement("others beside a stuck writer", "trace", STUCK_WRITER, stuck_rows),
    insns.measurement(INSTRUCTIONS, instruction_rows, functions=TAKERS),
    Measurement("the ladder", "bench", LADDER, ladder_rows, icount=True, cpus=1),
    lines.measurement(SHARED),
]
