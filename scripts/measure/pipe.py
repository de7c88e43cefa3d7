# SPDX-License-Identifier: GPL-2.0
"""What is measured of the pipe series."""

from __future__ import annotations

import re
from pathlib import Path

import counters
import jobserver
from process import Failure

from measure import DURATION, Measurement, Timing, insns, json_lines, lines, native, row
from measure.lines import Symbols

LOCK = "&pipe->mutex"
# What takes it in a system call: functions of these names, and in a read, which
# of them.
TAKERS, READER = "anon_pipe_", "anon_pipe_read"
# What conditions call the sizes of messages.
SIZES = {1: "1B", 64: "64B", 1024: "1KiB", 3000: "3000B", 4096: "4KiB", 8192: "8KiB", 10000: "10000B",
         16384: "16KiB", 65536: "64KiB", 1048576: "1MiB"}
BENCH = "kselftest/regress/pipe/pipe_load"
# Other tasks use pipes too: only the benchmark's events are recorded.
MINE = 'comm == "pipe_load"'
LOCK_EVENTS = {"lock/lock_acquired": f'name == "{LOCK}" && {MINE}',
               "lock/lock_release": f'name == "{LOCK}" && {MINE}'}
CALLS = {"syscalls/sys_enter_write": MINE, "syscalls/sys_enter_read": MINE}
PAGE_EVENTS = {"kmem/mm_page_alloc": MINE, "kmem/mm_page_free": MINE}
# While page faults on user buffers are counted: the tracepoints of single calls look into the buffers on newer kernels.
RAW_CALLS = {"raw_syscalls/sys_enter": MINE}
FAULT_EVENTS = {"exceptions/page_fault_kernel": MINE}

COUNTED = 1000          # pairs of each size that are counted by instructions
PAIRS = 200             # write and read pairs of 64 KiB that are traced
PRESSURE_WRITES = 100   # writes of 64 KiB by each of the five writers
STREAMED = (3000, 4096, 8192, 10000, 65536, 1048576)
STREAM_BYTES = 1 << 27  # by one writer, to one reader, of each of these sizes
STREAM_WRITES = 2000    # but no more writes than this
RESIDUE, RESIDUE_SIZE = 100, 10000  # what every other write of the latter size is merged with
COLD = (3000, 4096, 10000, 65536, 1048576)
PAIRED = (1, 64, 1024, 3000, 4096, 8192, 10000, 16384, 65536)
STUCK = 1000            # messages that others want to pass beside a stuck writer
STUCK_SIZES = (10000, 65536)
STUCK_SECONDS = 15      # at most, on a slow machine

COUNTERS = counters.setup({**LOCK_EVENTS, **CALLS, **PAGE_EVENTS}, "mono") + f"""
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
{BENCH} -w 5 -r 10 --sizes 64K --pipe-size 1M --count {PRESSURE_WRITES} --memory-pressure --marker --json
trace_stop pressure.trace
""" + "".join(f"""trace_start
{BENCH} -w 1 -r 1 --size {size} --pipe-size 1M --count {min(STREAM_WRITES, STREAM_BYTES // size)} --marker --json
trace_stop stream-{size}.trace
""" for size in STREAMED)

# Each page is to fault on its own.
FAULTS = counters.setup({**LOCK_EVENTS, **RAW_CALLS, **FAULT_EVENTS}, "mono") + f"""
set -e
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
getconf PAGESIZE > /sys/kernel/debug/fault_around_bytes
trace_start
{BENCH} --pair --cold --sizes {','.join(map(str, COLD))} --pipe-size 1M --count {PAIRS} --marker --json
trace_stop cold.trace
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


TIMES = tuple(f"-w {writers} -r {readers} --sizes 64K --pipe-size 1M --seconds {DURATION}{more}"
              for writers, readers, more in ((1, 1, ""), (1, 10, ""), (5, 1, ""), (5, 10, ""),
                                             (5, 10, " --memory-pressure")))


def instruction_rows(run: Path) -> list[dict]:
    """insn_per_pair, and insn_under_mutex of its write and of its read, by size."""
    symbols = Symbols(run / "symbols")
    rows = []
    for _, result, window in insns.windows(run, "pair.json"):
        size = SIZES[result["size"]]
        more = ((f", {result['residue']}B in the pipe" if result["residue"] else "")
                + (" memcg" if result["memcg"] else ""))
        rows.append(insns.sampled("insn_per_pair", "instructions", size + more, window["ops"]))
        for call in ("write", "read"):
            held = insns.held(window, lambda address, reads=call == "read":
                              symbols.function(address).startswith(READER) == reads)
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
        [(_, part)] = counters.marked(path)
        condition = SIZES[size] + " 1w1r"
        writes = calls_in(path, part, "write")
        rows.append(row("allocs_under_mutex", "pages per write", condition, "counter",
                        per_call(path, part, "write", "mm_page_alloc")))
        rows.append(row("allocs", "pages per write", condition, "counter",
                        sum(one.name == "mm_page_alloc" for one in part) / writes))
        # Also those that began with a trylock, which is no lock_acquired.
        rows.append(row("mutex_holds", "per write", condition, "counter", releases(part, "write") / writes))
    metrics = list(dict.fromkeys(one["metric"] for one in rows))
    return sorted(rows, key=lambda one: metrics.index(one["metric"]))


def fault_rows(run: Path) -> list[dict]:
    """Page faults on user buffers while pipe->mutex was held, where each page
    that is copied faults once."""
    path = run / "cold.trace"
    rows = []
    for mark, part in counters.marked(path):
        if not any(one.name == "page_fault_kernel" for one in part):
            raise Failure(f"the trace {path} has no page faults: look at the guest's output beside it")
        for call in ("write", "read"):
            rows.append(row("faults_under_mutex", f"page faults per {call}", f"{SIZES[marked_size(mark)]} {call}",
                            "counter", per_call(path, part, call, "page_fault_kernel")))
    return rows


def stuck_rows(run: Path) -> list[dict]:
    """What others got through the pipe while a writer was stuck."""
    return [row("beside_stuck_writer", f"of {result['count']} messages", SIZES[result["size"]], "counter",
                result["beside"])
            for result in json_lines(run / "stuck.json")]


def time_rows(results: list[dict]) -> list[dict]:
    """Throughput and write latency, by writers and readers."""
    rows = []
    for result in results:
        condition = f"{result['writers']}w{result['readers']}r" + (" pressure" if result["pressure"] else "")
        rows.append(row("throughput", "MB/s", condition, "timed", result["mb_per_s"]))
        rows.append(row("write_p50", "ns", condition, "timed", result["p50_ns"]))
        rows.append(row("write_p99", "ns", condition, "timed", result["p99_ns"]))
    return rows


JOBSERVER = jobserver.JOBS + """switches() { sed -n 's/^ctxt //p' /proc/stat; }
make -j4 -f /tmp/jobs.mk
before=$(switches)
make -j4 -f /tmp/jobs.mk
echo $(($(switches) - before)) > switches.txt
"""


def job_rows(run: Path) -> list[dict]:
    """Context switches of a build with a job server, in one boot of User-Mode
    Linux."""
    return [row("context_switches", "switches", "make -j4 of 48 jobs in four makes", "timed-uml",
                int((run / "switches.txt").read_text()))]


GROUPS = ((1, 1), (2, 2), (5, 10))     # writers and readers of the rows with a clock

NATIVE = native.measurement(
    {f"{SIZES[size]}, write then read": f"pair {size}" for size in (1, 64, 4096, 65536)}
    | {f"{SIZES[size]}, {writers} writer{'s'[:writers - 1]}, {readers} reader{'s'[:readers - 1]}":
       f"pipe {size} {writers} {readers}"
       for writers, readers in GROUPS for size in (64, 4096, 65536, 1048576)}
    | {f"64 KiB, {writers} writer{'s'[:writers - 1]}, {readers} reader{'s'[:readers - 1]}, bound to CPUs":
       f"pipe-bound 65536 {writers} {readers}" for writers, readers in GROUPS},
    beside=JOBSERVER, others=job_rows)

TIMED = Timing("pipe/pipe_load", TIMES, "writes", time_rows)

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
    lines.measurement(SHARED),
]
