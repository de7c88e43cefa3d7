# SPDX-License-Identifier: GPL-2.0
"""What perf counts beside a benchmark, as far as it is there and permitted."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

EVENTS = ("cycles", "cache-misses", "context-switches")
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
# A line of `perf lock contention`: how often, total, longest and mean wait, kind of lock, who waited.
WAIT = re.compile(r"^\s*(\d+)\s+([\d.]+) +(\w+)\s+[\d.]+ +\w+\s+[\d.]+ +\w+\s+(\S+)\s+(\S.*)$", re.MULTILINE)
SHARED = re.compile(r"^\s*Total Shared Cache Lines\s*:\s*(\d+)", re.MULTILINE)
# How many of those who waited longest are kept for each row.
KEPT = 5
# Seconds that perf may take more than the benchmark that it runs.
PATIENCE = 120


@dataclass(frozen=True)
class Perf:
    """What of perf works here: the events that it counts, and whether it can
    tell waits for locks and shared cache lines; @why: a sentence for each that
    it cannot."""

    events: tuple[str, ...] = ()
    locks: bool = False
    lines: bool = False
    why: tuple[str, ...] = ()


def ran(argv: list[str], cwd: Path, seconds: float) -> tuple[int, str, str]:
    """Status and both outputs of @argv, run in @cwd; 124 where it took longer
    than @seconds and PATIENCE."""
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=seconds + PATIENCE)
    except subprocess.TimeoutExpired:
        return 124, "", "it did not come to an end"
    return done.returncode, done.stdout, done.stderr


def counts(text: str) -> dict[str, float]:
    """What `perf stat -x,` has counted.  What it counts in user mode alone,
    since it may not look at the kernel, does not count."""
    found = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] in EVENTS and re.fullmatch(r"[\d.]+", fields[0]):
            found[fields[2]] = float(fields[0])
    return found


def stat(events: tuple[str, ...], argv: list[str], cwd: Path, seconds: float) -> tuple[int, str, dict[str, float]]:
    """Run @argv under perf stat: status, standard output, and the counts."""
    log = cwd / "perf-stat"
    log.write_text("")
    status, out, _err = ran(["perf", "stat", "-x,", "-o", str(log), "-e", ",".join(events), "--", *argv], cwd, seconds)
    return status, out, counts(log.read_text())


def contention(argv: list[str], cwd: Path, seconds: float) -> tuple[int, str, str]:
    """Run @argv while perf records who waits for locks, on all CPUs, with BPF."""
    return ran(["perf", "lock", "contention", "-ab", "--", *argv], cwd, seconds)


def reason(status: int, *texts: str) -> str:
    """Why perf did not do it, in its own words."""
    lines = [line.strip(" \t.") for text in texts for line in text.splitlines() if line.strip()]
    said = next((line for line in lines if re.search(r"error|fail|not |cannot|permi", line, re.IGNORECASE)), "")
    return re.sub(r"^(Error|failed): *", "", said) or f"it ends with status {status}"


def find() -> Perf:
    """Try on a program that does nothing what of perf works here."""
    if not shutil.which("perf"):
        return Perf(why=("perf is not installed, so nothing is counted beside the rows",))
    why = []
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name)
        events = tuple(stat(EVENTS, ["true"], cwd, 0)[2])
        if len(events) < len(EVENTS):
            lost = [event for event in EVENTS if event not in events]
            why.append(f"perf stat does not count {', '.join(lost)} of the kernel here: the CPU's counters are "
                       "hidden, or root or kernel.perf_event_paranoid=1 is needed")
        status, out, err = contention(["true"], cwd, 0)
        locks = status == 0
        if not locks:
            why.append(f"perf lock contention does not work here ({reason(status, err, out)}): it takes root, and a "
                       "perf that was built with BPF")
        status, out, err = ran(["perf", "c2c", "record", "-o", str(cwd / "c2c"), "--", "true"], cwd, 0)
        if status:
            why.append(f"perf c2c does not work here ({reason(status, err, out)}): it takes a CPU that samples memory "
                       "accesses, and root")
    return Perf(events, locks, status == 0, tuple(why))


def waits(text: str) -> list[dict]:
    """What `perf lock contention` prints: how often and for how many ns in all
    it was waited, for what kind of lock, and where."""
    return [{"waits": int(times), "ns": float(total) * UNITS[unit], "lock": kind, "where": where.strip()}
            for times, total, unit, kind, where in WAIT.findall(text) if unit in UNITS]


def done(out: str, operations: str) -> float:
    """How many operations the benchmark has done whose JSON is in @out; 0 where
    there is none."""
    return sum(json.loads(line)[operations] for line in out.splitlines() if line.startswith("{"))


def beside(perf: Perf, argv: list[str], operations: str, cwd: Path, seconds: float) -> tuple[list[tuple], list[dict]]:
    """Run the benchmark @argv once for each part of perf that works: (metric,
    unit, value) of what it counts, and who waited longest for locks.  The key
    @operations of the benchmark's JSON has the number to divide by; what the
    benchmark does before and after its measured part is in the counts."""
    rows, longest = [], []
    if perf.events:
        status, out, counted = stat(perf.events, argv, cwd, seconds)
        number = done(out, operations)
        if not status and number:
            rows += [(event.replace("-", "_"), "per operation", value / number) for event, value in counted.items()]
    if perf.locks:
        status, out, err = contention(argv, cwd, seconds)
        number = done(out, operations)
        if not status and number:
            found = waits(out + "\n" + err)
            rows += [("lock_waits", "per operation", sum(one["waits"] for one in found) / number),
                     ("lock_wait", "ns per operation", sum(one["ns"] for one in found) / number)]
            longest = sorted(found, key=lambda one: -one["ns"])[:KEPT]
    if perf.lines:
        data = str(cwd / "c2c")
        status, _out, _err = ran(["perf", "c2c", "record", "-a", "-o", data, "--", *argv], cwd, seconds)
        if not status:
            _status, out, _err = ran(["perf", "c2c", "report", "-i", data, "--stats", "--stdio"], cwd, seconds)
            shared = SHARED.search(out)
            if shared:
                rows.append(("shared_lines", "cache lines seen", float(shared[1])))
    return rows, longest
