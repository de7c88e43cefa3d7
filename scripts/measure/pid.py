# SPDX-License-Identifier: GPL-2.0
"""What is measured of the pid series."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import counters
from process import Failure

from measure import DURATION, Measurement, Timing, json_lines, lines, native, row

LOCK = "pidmap_lock"
BENCH = "kselftest/regress/pid/pid_alloc_bench"
# Every task of the machine takes the lock: only the benchmark's tasks count.
MINE = 'comm == "pid_alloc_bench"'
LOCK_EVENTS = {"lock/lock_acquired": f'name == "{LOCK}" && {MINE}',
               "lock/lock_release": f'name == "{LOCK}" && {MINE}'}
# Where tasks come from and go to.
CALLS = {f"syscalls/sys_enter_{call}": MINE
         for call in ("clone", "clone3", "vfork", "exit", "exit_group", "wait4", "waitid")}

TRACED = 300            # operations that are traced
COUNTED = 2000          # operations that are counted by instructions
# One process that is created with clone3(), at each level, and beside it a
# thread and a process with a pidfd.
TRACED_RUNS = f"""
set -e
trace_start
{BENCH} --op clone3 --levels 0,1,2,3 --count {TRACED} --marker --json
{BENCH} --op thread,pidfd --count {TRACED} --marker --json
"""
COUNTERS = counters.setup(LOCK_EVENTS, "mono") + TRACED_RUNS + "trace_stop locks.trace\n"
SECTIONS = counters.setup({**LOCK_EVENTS, **CALLS}, "x86-tsc") + TRACED_RUNS + "trace_stop sections.trace\n"

# The same numbers each time, so that the trees that they are kept in have the
# same height; and several times, since these trees have other entries, too.
INSTRUCTIONS = f"""
set -e
for again in 1 2 3; do
	echo 5000 > /proc/sys/kernel/ns_last_pid
	{BENCH} --op vfork,thread,pidfd --levels 0,3 --count {COUNTED} --json >> ops.json
	{BENCH} --op fork,clone3 --count {COUNTED // 4} --json >> ops.json
done
"""

TIMES = tuple(f"--op {op} --procs {procs} --seconds {DURATION}"
              for procs in (1, 2, 8, 20) for op in ("thread", "vfork"))


def condition(op: str, level: int) -> str:
    """How the rows of counters call operation @op at namespace level @level."""
    return f"level{level}" + ("" if op == "clone3" else f" {op}")


def parts(path: Path) -> list[tuple[str, list[counters.Event]]]:
    """The measured parts of the trace @path: condition and events."""
    found = []
    for mark, part in counters.marked(path):
        named = re.search(r"op=(\S+) level=(\d+)", mark)
        found.append((condition(named[1], int(named[2])), part))
    return found


def counter_rows(run: Path) -> list[dict]:
    """How often pidmap_lock is taken to create a task, let it exit and reap it."""
    path = run / "locks.trace"
    rows = []
    for name, part in parts(path):
        taken = len(counters.sections(part, LOCK))
        if not taken:
            raise Failure(f"nobody took {LOCK} in part {name} of {path}: look at the guest's output beside it")
        rows.append(row("lock_acquisitions", "per operation", name, "counter", taken / TRACED))
    return rows


def section_rows(run: Path) -> list[dict]:
    """Instructions from taking pidmap_lock to releasing it, for each operation:
    the trace kernel under icount, with the same events recorded on each side.

    An operation takes the lock in several places.  A place is known by the
    system call and by its position among the sections of that call.
    insn_under_lock adds up the shortest section of each place, what is always
    done; insn_under_lock_mean the means, with the timer ticks that fall into
    some and the slabs that are refilled in others.
    """
    rows = []
    for name, part in parts(run / "sections.trace"):
        places: dict[tuple[str, int], list[float]] = {}
        seen: dict[tuple[int, int], int] = {}
        for section in counters.sections(part, LOCK):
            call = (section.pid, section.number)
            seen[call] = seen.get(call, 0) + 1
            places.setdefault((section.syscall, seen[call]), []).append(section.end - section.begin)
        if not places:
            raise Failure(f"nobody took {LOCK} in part {name} of {run / 'sections.trace'}: look at the guest's "
                          "output beside it")
        for metric, typical in (("insn_under_lock", min), ("insn_under_lock_mean", statistics.fmean)):
            rows.append(row(metric, "instructions", name, "icount",
                            sum(typical(lengths) * len(lengths) / TRACED for lengths in places.values())))
    return sorted(rows, key=lambda one: one["metric"])


def instruction_rows(run: Path) -> list[dict]:
    """insn_per_op, from the guest's nanoseconds under icount: the lowest of
    what the benchmark calls best, operations that no timer tick fell into."""
    best: dict[str, float] = {}
    for result in json_lines(run / "ops.json"):
        name = result["op"] + (f" level{result['level']}" if result["level"] else "")
        best[name] = min(best.get(name, result["best_ns_per_op"]), result["best_ns_per_op"])
    return [row("insn_per_op", "instructions", name, "icount", value) for name, value in best.items()]


def time_rows(results: list[dict]) -> list[dict]:
    """Operations per second and latency, by processes."""
    rows = []
    for result in results:
        name = f"{result['op']}, {result['procs']} processes"
        rows.append(row("throughput", "op/s", name, "timed", result["ops_per_s"]))
        rows.append(row("op_p50", "ns", name, "timed", result["p50_ns"]))
        rows.append(row("op_p99", "ns", name, "timed", result["p99_ns"]))
    return rows


def thread_rows(run: Path) -> list[dict]:
    """Threads that are created and joined from user space, in one boot of
    User-Mode Linux."""
    return [row("throughput", "op/s", f"thread, created and joined, {result['procs']} at once", "timed-uml",
                result["ops_per_s"]) for result in json_lines(run / "threads.json")]


NATIVE = native.measurement(
    {f"alloc_pid() and free_pid(){f' of {batch}' if batch > 1 else ''}, {cpus} CPU{'s'[:cpus - 1]}":
     f"pid {batch} {cpus}" for batch in (1, 8, 32) for cpus in (1, 2)},
    beside="".join(f"{BENCH} --op thread --procs {procs} --seconds 0.3 --json >> threads.json\n" for procs in (1, 2)),
    others=thread_rows)

TIMED = Timing("pid/pid_alloc_bench", TIMES, "ops", time_rows)

MEASUREMENTS = [
    Measurement("acquisitions of pidmap_lock", "trace", COUNTERS, counter_rows),
    Measurement("instructions under pidmap_lock", "trace", SECTIONS, section_rows, icount=True),
    Measurement("instructions per operation", "bench", INSTRUCTIONS, instruction_rows, icount=True),
    lines.measurement("lines --op clone\n"),
]
