# SPDX-License-Identifier: GPL-2.0
"""What is measured of the fault series."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import counters
from process import Failure

from measure import DIRECTORY, DURATION, Measurement, Timing, json_lines, lines, row

BENCH = "kselftest/regress/fault/fault_retry_bench"
EVENT = "mmap_lock_acquire_returned"
# The threads that fault have a name of their own. The main thread's events are
# recorded, too: it maps and unmaps between the rounds, which shows that there is
# something to count with when the faults do not take the lock at all.
MINE = 'comm == "fault_retry" || comm == "fault_retry_ben"'
# Each attempt of a fault from user space looks the VMA up, in either way.
FAULT = "page_fault_user"
LOOKUPS = {"fault_vma_lookup": "lock_vma_under_rcu", "fault_mm_lookup": "lock_mm_and_find_vma"}
RETRIES = {1: "1 retry", 2: "2 retries", 3: "3 retries or more"}

# What conditions call the benchmark's modes.
MODES = {"file": "file", "random": "file random", "swap": "swap", "memcg": "memcg thrash"}
NEIGHBOURS = ("mprotect", "mprotect-all", "munmap", "fork")
COUNTED = 96            # touches by each of the threads that are counted
COUNTED_THREADS = 4
COUNTED_MS = 5          # that the device takes for each request
THREADS = 8             # that fault while the neighbour is timed
DELAY_MS = 20


def slow(milliseconds: int) -> str:
    """bash that makes a file system in /tmp/slow, and swap, on devices that
    take @milliseconds for each request and keep what is written in memory."""
    return f"""
set -e
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
slow() {{
	mkdir /sys/kernel/config/nullb/$1
	( cd /sys/kernel/config/nullb/$1
	echo 1 > memory_backed; echo $2 > size; echo 2 > irqmode
	echo {milliseconds * 1000000} > completion_nsec; echo 1 > power )
}}
slow slow_fs 192
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/slow_fs
mkdir -p /tmp/slow
mount -o noatime /dev/slow_fs /tmp/slow
slow slow_swap 192
mkswap /dev/slow_swap > swap.log
swapon -p 32767 /dev/slow_swap
"""


PROBES = "mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing\n" + "".join(
    f"echo 'p:{name} {function}' >> /sys/kernel/tracing/kprobe_events\n" for name, function in LOOKUPS.items())
COUNTERS = slow(COUNTED_MS) + PROBES + counters.setup(
    {f"mmap_lock/{EVENT}": MINE, f"exceptions/{FAULT}": MINE, **{f"kprobes/{name}": MINE for name in LOOKUPS}},
    "mono") + f"""
for mode in {' '.join(MODES)}; do
	trace_start
	{BENCH} --dir /tmp/slow --mode $mode --threads {COUNTED_THREADS} --faults {COUNTED} --marker --json >> faults.json
	trace_stop $mode.trace
done
"""
# In small files, or else a round of random faults takes half a minute.
TIMES = tuple(("" if mode == "swap" else f"--dir {DIRECTORY} ") +
              f"--mode {mode} --threads {THREADS} --neighbour {neighbour} --bystander --pause 2000 "
              f"--file-size {size} --seconds {DURATION}" for mode, neighbour, size in
              [(mode, neighbour, size) for neighbour in ("none", *NEIGHBOURS)
               for mode, size in (("file", "32M"), ("random", "2M"), ("swap", "32M"))]
              + [("memcg", "none", "32M"), ("memcg", "fork", "32M")])


def reads(path: Path) -> int:
    """How often those who fault took the mmap_lock for reading, between the
    marks of the trace @path, which the main thread has written."""
    recorded = list(counters.events(path))
    if not any(one.name == EVENT for one in recorded):
        raise Failure(f"the trace {path} has no event {EVENT}: look at the guest's output beside it")
    markers = {one.pid for one in recorded if one.name == "tracing_mark_write"}
    # What was only tried does not count: the next event does.
    return sum(one.name == EVENT and one.pid not in markers and "write=false success=true" in one.rest
               for _, part in counters.marked(path) for one in part)


def retried(path: Path) -> Counter[int]:
    """How many faults of those who fault had how many retries, up to 3, of the
    trace @path: one less than the lookups of the VMA from one fault to the next
    one of that thread."""
    found: Counter[int] = Counter()
    for _, part in counters.marked(path):
        lookups: dict[int, int] = {}
        for one in part:
            if one.name == FAULT:
                found[min(max(lookups.get(one.pid, 1) - 1, 0), 3)] += 1
                lookups[one.pid] = 0
            elif one.name in LOOKUPS and one.pid in lookups:
                lookups[one.pid] += 1
        found.update(min(max(number - 1, 0), 3) for number in lookups.values())
    return found


def counter_rows(run: Path) -> list[dict]:
    """How often a fault that waits for I/O takes the mmap_lock, how many of its
    attempts end in a retry, and what counts as a major fault."""
    rows = []
    results = {result["mode"]: result for result in json_lines(run / "faults.json")}
    for mode, condition in MODES.items():
        if mode not in results:
            raise Failure(f"there is no result of {mode} in {run / 'faults.json'}: look at the guest's output "
                          "beside it")
        result = results[mode]
        major = result["majflt"]
        # Where touches do not wait, there is nothing to see.  Thrashing hits
        # what is in memory, too.
        if major < (0.3 if mode == "memcg" else 0.9) * result["faults"]:
            raise Failure(f"only {major} of {result['faults']} faults of {mode} in {run} were major: is the "
                          "device slow, and is nothing read ahead?")
        rows.append(row("mmap_lock_reads_per_io_fault", "per major fault", condition, "counter",
                        reads(run / f"{mode}.trace") / major))
        rows.append(row("retries", "per major fault", condition, "counter", result["vma_lock_retry"] / major))
        histogram = retried(run / f"{mode}.trace")
        rows += [row("faults_with_retries", "per major fault", f"{condition}, {name}", "counter",
                     histogram[number] / major) for number, name in RETRIES.items()]
        # Of the system: others fault, too, if rarely.
        rows.append(row("pgmajfault", "per touch", condition, "counter", result["pgmajfault"] / result["faults"]))
        rows.append(row("maj_flt", "per touch", condition, "counter", major / result["faults"]))
    return sorted(rows, key=lambda one: (one["metric"] != "mmap_lock_reads_per_io_fault", one["metric"]))


def time_rows(results: list[dict]) -> list[dict]:
    """What a neighbour waits for who changes the address space, a bystander who
    faults elsewhere in it, and those who wait for the device."""
    rows = []
    for result in results:
        name = f"{MODES[result['mode']]}, {result['neighbour']}, {THREADS} threads"
        for who in ("neighbour", "bystander"):
            if result[f"{who}_ops"]:
                rows += [row(f"{who}_{percentile}", "ms", name, "timed", result[f"{who}_{percentile}_ns"] / 1e6)
                         for percentile in ("p50", "p99")]
        rows.append(row("fault_p99", "ms", name, "timed", result["p99_ns"] / 1e6))
        rows.append(row("faults", "per s", name, "timed", result["faults_per_s"]))
    # The neighbour first, and a metric at a time.
    return sorted(rows, key=lambda one: (not one["metric"].startswith("neighbour"), one["metric"]))


TIMED = Timing("fault/fault_retry_bench", TIMES, "faults", time_rows, slow(DELAY_MS), "/tmp/slow",
               f", {DELAY_MS} ms a request")


# User-Mode Linux has no per-VMA locks.
NATIVE = None


# What is tried beside a fault that is stuck, and how conditions call it.
STUCK_KINDS = {"file": "file", "file-second": "file, read again",
               "file-third": "file, read twice more", "swap": "swap", "shmem": "shmem swap"}
STUCK_WRITERS = {"none": "", "mprotect-vma": " after mprotect() in that VMA", "fork": " after fork()"}
STUCK_FAULTS = {"fault-same": "faults in that VMA", "fault-other": "faults in other VMAs",
                "fault-io": "faults in other VMAs that read"}
STUCK_CHANGES = {"mprotect-page": "mprotect() of that page", "mprotect-vma": "mprotect() in that VMA",
                 "mprotect-other": "mprotect() in another VMA", "munmap-vma": "munmap() in that VMA",
                 "munmap-other": "munmap() of another VMA", "fork": "fork()"}
STUCK = f"""
set -e
stuck() {{
	kselftest/regress/fault/fault_stuck --kind {','.join(STUCK_KINDS)} "$@" >> stuck.json
}}
stuck --writer none --probe {','.join(STUCK_FAULTS | STUCK_CHANGES)}
stuck --writer {','.join(writer for writer in STUCK_WRITERS if writer != 'none')} --probe {','.join(STUCK_FAULTS)}
"""


def stuck_rows(run: Path) -> list[dict]:
    """How many operations complete while a fault waits for a device that does
    not answer, of the run directory @run.  Failure where a case is missing."""
    found = {(one["kind"], one["writer"], one["probe"]): one for one in json_lines(run / "stuck.json")}
    rows = []
    for kind, where in STUCK_KINDS.items():
        for writer, after in STUCK_WRITERS.items():
            for probe, what in (STUCK_FAULTS if after else STUCK_FAULTS | STUCK_CHANGES).items():
                if (kind, writer, probe) not in found:
                    raise Failure(f"there is no result of {kind}, {writer}, {probe} in {run / 'stuck.json'}: look at "
                                  "the guest's output beside it")
                one = found[kind, writer, probe]
                rows.append(row("completed_beside_stuck_fault", f"of {one['of']}", f"{where}: {what}{after}",
                                "counter", one["done"]))
    return rows


# Threads of one process that fault, without I/O, each in a VMA of its own.
SHARED = """
mkdir /tmp/ext4
truncate -s 400M /tmp/ext4.img
mkfs.ext4 -q /tmp/ext4.img
mount -o loop /tmp/ext4.img /tmp/ext4
lines --op fault-anon
lines --op fault-file --dir /tmp/ext4
"""

MEASUREMENTS = [
    Measurement("reads of the mmap_lock", "trace", COUNTERS, counter_rows),
    Measurement("beside a stuck fault", "trace", STUCK, stuck_rows),
    # Variants differ in when a fault is retried, which does not happen here.
    replace(lines.measurement(SHARED), sides=("baseline", "patched")),
]
