# SPDX-License-Identifier: GPL-2.0
"""Time that passes within a kernel of User-Mode Linux, which runs natively.

The benchmark is in the kernel (scripts/um/hotpaths_bench.c), since a system call
takes far longer there than what is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from core.process import Failure

from measure import Measurement, row

# A boot takes all rows in turns, so that a row is not of one moment of the host, and
# tasks that wait for each other settle in their rhythm anew.  What a kernel defers has
# to be in the window.
TURNS = 4
MILLISECONDS = 40       # for each row, in each turn
FILE_BYTES = 65536      # of each file that is read
FILES = 2               # that are there for readers with one of their own

PRELUDE = f"""
set -e
bench() {{
	echo "{MILLISECONDS} $*" > /proc/hotpaths_bench
	echo "$(cat /proc/hotpaths_bench) $*" >> native.txt
}}
files() {{
	head -c {FILE_BYTES} /dev/zero > "$1"
	for number in $(seq 0 {FILES - 1}); do cp "$1" "$1.$number"; done
	cat "$1"* > /dev/null
}}
# mount_new ext4 64M: a file system of that type and size, on /tmp/ext4.
mount_new() {{
	truncate -s "$2" /tmp/$1.img
	PATH=$PATH:/usr/sbin:/sbin mkfs.$1 -q /tmp/$1.img
	mkdir /tmp/$1
	mount -o loop,noatime /tmp/$1.img /tmp/$1
}}
"""


def rates(run: Path) -> dict[str, float]:
    """Operations per second in the run's directory @run, by what was asked of
    the benchmark."""
    done: dict[str, float] = {}
    passed: dict[str, int] = {}
    for line in (run / "native.txt").read_text().splitlines():
        operations, nanoseconds, what = line.split(" ", 2)
        # Of pipes bytes are counted.
        each = int(what.split()[1]) if what.startswith("pipe") else 1
        done[what] = done.get(what, 0) + int(operations) / each
        passed[what] = passed.get(what, 0) + int(nanoseconds)
    # A task that polls beside others may get nothing in one turn, also on the base.
    for what in done:
        if not done[what]:
            raise Failure(f"nothing was done in '{what}' of {run}: look at the guest's log beside it")
    return {what: done[what] / passed[what] * 1e9 for what in done}


def measurement(conditions: dict[str, str], setup: str = "", beside: str = "",
                others: Callable[[Path], list[dict]] = lambda _run: []) -> Measurement:
    """The measurement of @conditions: what a row is called, to what is asked of
    the benchmark.  @setup: shell that makes what these need; @beside: shell that
    measures @others, which are rows of the run's directory."""
    def rows(run: Path) -> list[dict]:
        found = rates(run)
        return [row("throughput", "op/s", condition, "timed-uml", found[what])
                for condition, what in conditions.items()] + others(run)

    script = PRELUDE + setup + "".join(f"bench {what}\n" for what in conditions.values()) * TURNS + beside
    return Measurement("time under User-Mode Linux", "um-time", script, rows)
