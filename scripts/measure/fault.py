# SPDX-License-Identifier: GPL-2.0
"""What is measured of the fault series."""

from __future__ import annotations

import re
from pathlib import Path

from core.process import Failure
from measure import counters

from measure import Measurement, json_lines, row

# The threads of tools/testing/selftests/mm/fault_bench that fault have this name.
FAULTING = 'comm == "fault"'
START, GOT = "mmap_lock_start_locking", "mmap_lock_acquire_returned"
VMAS = (4000, 9000)
NEIGHBOURS = {"map": "mmap()", "fork": "fork()"}
SAME_PAGE = {"around": "file", "random": "file random", "swap": "swap", "swap--write": "swap, write"}
THREADS = (1, 2, 8)
READ_MIB = 16           # by fault_minor_bench, before it counts
KINDS = 8               # of faults in fault_retry
LONG = 1e-3             # seconds: a wait that a user may see


def script(call: str) -> str:
    """The bash of a guest that makes the @call of a function of fault.sh."""
    own = Path(__file__).with_name("fault.sh").read_text()
    return counters.setup({f"mmap_lock/{START}": FAULTING, f"mmap_lock/{GOT}": FAULTING}) + own + call + "\n"


def said(run: Path, name: str) -> dict:
    """What fault_bench printed in the run called @name of the run directory @run."""
    found = json_lines(run / f"{name}.json")
    if len(found) != 1:
        raise Failure(f"{run / name}.json has not one result: look at the guest's output beside it")
    return found[0]


def waits(path: Path) -> list[float]:
    """For each time that a faulting thread got the mmap_lock for reading in the trace @path,
    the seconds that it waited for it.  Raises Failure where the trace lost events."""
    lost = path.read_text(errors="replace").splitlines()[0]
    if lost != "# lost 0":
        raise Failure(f"the trace {path} begins with '{lost}': give it a larger buffer or less work")
    since: dict[int, float] = {}
    found = []
    # No event at all is what the series is for.
    for line in open(path, errors="replace"):
        match = counters.LINE.match(line)
        if not match:
            continue
        pid, time = int(match["pid"]), float(match["time"])
        if match["event"] == START:
            since[pid] = time
        elif "write=false success=true" in match["rest"]:
            found.append(time - since.pop(pid, time))
    return found


def lock_rows(run: Path, name: str, condition: str) -> list[dict]:
    """How often and how long faulting threads wait for the mmap_lock, and their faults."""
    result, found = said(run, name), waits(run / f"{name}.trace")
    faults = result["faults"]
    rows = [row("virtual_mmap_lock_reads", "times", condition, "icount", len(found)),
            row("virtual_mmap_lock_wait", "ms", condition, "icount", sum(found) * 1e3),
            row("virtual_mmap_lock_long_waits", "waits", condition, "icount",
                sum(one >= LONG for one in found)),
            row("virtual_faults", "done", condition, "icount", faults["number"])]
    rows += [row(f"virtual_fault_{which}", "ms", condition, "icount", faults[f"{which}_ns"] / 1e6)
             for which in ("p50", "p99", "max")]
    for who in ("ui", "forks"):
        if who in result:
            rows += [row(f"virtual_{who}_{which}", "ms", condition, "icount", result[who][f"{which}_ns"] / 1e6)
                     for which in ("mean", "p50", "p99")]
    if "forks" in result:
        rows.append(row("virtual_fork_sleeps", "per fork", condition, "icount",
                        result["fork_sleeps"] / result["forks"]["number"]))
    return rows


def virtual_rows(run: Path, again: str = "") -> list[dict]:
    """The rows of virtual() for those VMAs that it was called with; @again ends conditions."""
    return [one for vmas in VMAS for name, neighbour in NEIGHBOURS.items() if (run / f"{name}-{vmas}.json").exists()
            for one in lock_rows(run, f"{name}-{vmas}", f"beside {neighbour}, {vmas} VMAs{again}")]


def thrash_rows(run: Path) -> list[dict]:
    """Faults whose pages may be gone again when they are retried, alone and beside fork()."""
    return [*lock_rows(run, "thrash", "memory cgroup that thrashes"),
            *lock_rows(run, "thrash-fork", "memory cgroup that thrashes, beside fork()")]


def lost_rows(run: Path) -> list[dict]:
    """How many pages were reclaimed before the fault that had them read mapped them, and how much
    was done: each page that is touched has to be read, since others took the memory meanwhile."""
    result, condition = said(run, "lost"), "120 threads map, read and unmap"
    return [row("virtual_lost_pages", "%", condition, "icount", 100 * (result["read"] / result["touched"] - 1)),
            row("virtual_pages", "touched", condition, "icount", result["touched"]),
            row("virtual_mmap_lock_reads", "times", condition, "icount", len(waits(run / "lost.trace")))]


def instruction_rows(run: Path) -> list[dict]:
    """Instructions of faults that do not wait, and how often reading a file takes the mmap_lock."""
    rows = [row("insn_per_minor_fault", "instructions", kind, "icount", one["mean_ns"])
            for kind, one in said(run, "minor").items()]
    return [*rows, row("mmap_lock_reads_per_mib", "times", "sequential read of a mapping", "icount",
                       len(waits(run / "minor.trace")) / READ_MIB)]


def same_page_rows(run: Path) -> list[dict]:
    """How many of the faults take the mmap_lock."""
    rows = []
    for name, kind in SAME_PAGE.items():
        for threads in THREADS:
            result = said(run, f"{name}-{threads}")
            condition = kind + (f", same page, {threads} threads" if threads > 1 else "")
            rows.append(row("mmap_lock_reads_per_io_fault", "per fault", condition, "counter",
                            len(waits(run / f"{name}-{threads}.trace")) / result["faults"]["number"]))
    return rows


def writer_rows(run: Path) -> list[dict]:
    """How many kinds of faults end while somebody has the mmap_lock for writing."""
    text = (run / "writer.ktap").read_text()
    ran = re.findall(r"^(ok|not ok) \d+ fault\.\w+\.ends_beside_writer(?! # SKIP)", text, re.M)
    if len(ran) != KINDS:
        raise Failure(f"{run / 'writer.ktap'} has {len(ran)} results, not {KINDS}: see why there")
    return [row("kinds_done_beside_writer", f"of {KINDS}", "mprotect() or fork() has the mmap_lock", "counter",
                ran.count("ok"))]


def measurement(name: str, call: str, rows, **how) -> Measurement:
    """The measurement @name on the kernel with tracepoints, by the @call of a function of fault.sh."""
    return Measurement(name, "virtual", script(call), rows, memory="2G", **how)


def virtual(name: str, call: str, rows, sides: tuple[str, ...] = ()) -> Measurement:
    """One in virtual time: an instruction is a nanosecond, and the device has the same clock."""
    return measurement(name, call, rows, icount=True, cpus=1, timeout=1800, sides=sides)


# User-Mode Linux has no per-VMA locks.
NATIVE = None
MEASUREMENTS = [
    virtual("virtual time", "virtual " + " ".join(map(str, VMAS)), virtual_rows),
    virtual("virtual time, again", f"virtual {VMAS[-1]}", lambda run: virtual_rows(run, ", again"), ("baseline",)),
    virtual("thrashing", "thrash", thrash_rows, ("baseline", "patched", "hold")),
    virtual("lost pages", "lost", lost_rows),
    virtual("instructions", "instructions", instruction_rows),
    measurement("same page", "same_page", same_page_rows),
    # What it expects of major faults holds for these.
    measurement("beside a writer", "beside_writer", writer_rows, sides=("baseline", "patched")),
]
