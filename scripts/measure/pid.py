# SPDX-License-Identifier: GPL-2.0
"""What is measured of the pid series."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from core.process import Failure
from measure import counters
from measure import plugin
from source.build import Kernel

from measure import Measurement, insns, json_lines, lines, native, row

# What all namespaces have in common on the base, and what each has for itself with the
# series: init_pid_ns's has a name of its own for lockdep, the others' have the name of any XArray.
# No other XArray is changed by what is counted here, as the base shows.
LOCK = "pidmap_lock"
OWN = ("init_pid_ns.chunks.xa_lock", "&xa->xa_lock")
# What takes the lock of a namespace.
NUMBERS = ("alloc_pid_nr", "free_pid_nr", "pid_ns_set_next")
BENCH = "kselftest/regress/pid/pid_alloc_bench"
# Every task of the machine takes the lock: only the benchmark's tasks count, and
# kernel threads that remove what these leave.
MINE = '(comm == "pid_alloc_bench" || comm ~ "kworker*")'
ANY = "(" + " || ".join(f'name == "{name}"' for name in (LOCK, *OWN)) + ")"
LOCK_EVENTS = {"lock/lock_acquired": f"{ANY} && {MINE}", "lock/lock_release": f"{ANY} && {MINE}"}
TRACED = 300            # operations that are traced
MANY = 16               # processes that do as many at once
COUNTED = 3000          # operations that are counted by instructions
# One process that is created with clone3(), at each level, and beside it a
# thread and a process with a pidfd; then the former by many at once.
COUNTERS = counters.setup(LOCK_EVENTS) + f"""
set -e
trace_start
{BENCH} --op clone3 --levels 0,1,2,3 --count {TRACED} --marker --json
{BENCH} --op thread,pidfd --count {TRACED} --marker --json
{BENCH} --op clone3 --levels 0,3 --procs {MANY} --count {TRACED} --marker --json
trace_stop locks.trace
"""

# From the same number on, so that the trees that they are kept in have the same
# height.
INSTRUCTIONS = f"""
echo 5000 > /proc/sys/kernel/ns_last_pid
{BENCH} --op clone3 --levels 0,1,2,3 --count {COUNTED} --json >> ops.json
{BENCH} --op vfork,thread,pidfd --levels 0,3 --count {COUNTED} --json >> ops.json
{BENCH} --op fork --count {COUNTED} --json >> ops.json
"""

TABLE = "kselftest/regress/pid/pid_table_bench"
# The same program does these, so that what it prints comes in the order of the windows.
INSTRUCTIONS += f"{TABLE} readdir 10000 10 >> ops.json\n{TABLE} lookup 1000 20000 >> ops.json\n"
# Bytes of each namespace, of so many, for what else is in the same slab caches.
MEMORY = f"""
set -e
{TABLE} memory 256 64 > memory.json
"""


def condition(op: str, level: int, procs: int = 1) -> str:
    """How the rows of counters call operation @op at namespace level @level, done
    by @procs processes."""
    return f"level{level}" + ("" if op == "clone3" else f" {op}") + (f", {procs} at once" if procs > 1 else "")


def parts(path: Path) -> list[tuple[str, int, list[counters.Event]]]:
    """The measured parts of the trace @path: condition, operations and events."""
    found = []
    for mark, part in counters.marked(path):
        op, level, procs = re.search(r"op=(\S+) level=(\d+) procs=(\d+)", mark).groups()
        found.append((condition(op, int(level), int(procs)), TRACED * int(procs), part))
    return found


def counter_rows(run: Path) -> list[dict]:
    """How often pidmap_lock, and the locks of the namespaces, are taken to create a
    task, let it exit and reap it."""
    path = run / "locks.trace"
    rows = []
    for name, operations, part in parts(path):
        taken = [len(counters.sections(part, lock)) for lock in (LOCK, *OWN)]
        if not any(taken):
            raise Failure(f"nobody took a lock in part {name} of {path}: look at the guest's output beside it")
        rows.append(row("lock_acquisitions", "per operation", name, "counter", taken[0] / operations))
        rows.append(row("ns_lock_acquisitions", "per operation", name, "counter", sum(taken[1:]) / operations))
    return sorted(rows, key=lambda one: one["metric"] != "lock_acquisitions")


def locked(kernel: Kernel, run: Path) -> str:
    if LOCK in plugin.symbols(kernel):
        return plugin.insns_option(kernel, run, spinlock=LOCK)
    return plugin.insns_option(kernel, run, spinning=NUMBERS)


def instruction_rows(run: Path) -> list[dict]:
    """insn_per_op and insn_under_lock: of creating a task, its exit and its reaping."""
    rows = []
    for _, result, window in insns.windows(run, "ops.json"):
        if result["op"] in ("readdir", "lookup"):
            what = {"readdir": "readdir of /proc", "lookup": "kill(pid, 0)"}[result["op"]]
            name = f"{what}, {result['processes']} processes"
            rows.append(insns.sampled("insn_per_op", "instructions", name, window["ops"]))
            continue
        name = condition(result["op"], result["level"])
        held = insns.held(window)
        if not any(held):
            raise Failure(f"nobody took a lock in {name} of {run / 'insns.json'}: look at the guest's output beside it")
        rows.append(insns.sampled("insn_per_op", "instructions", name, window["ops"]))
        rows.append(insns.sampled("insn_under_lock", "instructions", name, held))
    return sorted(rows, key=lambda one: one["metric"] != "insn_under_lock")


def memory_rows(run: Path) -> list[dict]:
    """Bytes of nodes and chunks of one namespace."""
    found = json_lines(run / "memory.json")[0]
    return [row("memory", "bytes", name, "counter", found[key])
            for key, name in (("few", "namespace with 10 processes"), ("many", "the same, after numbers up to 4 M"))]


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

MEASUREMENTS = [
    Measurement("acquisitions of locks", "trace", COUNTERS, counter_rows, sides=("baseline", "patched")),
    Measurement("memory of namespaces", "bench", MEMORY, memory_rows, sides=("baseline", "patched")),
    # With less memory the kernel allows fewer tasks.
    replace(insns.measurement(INSTRUCTIONS, instruction_rows), plugin=locked, memory="2G"),
    lines.measurement("lines --op clone\n"),
]
