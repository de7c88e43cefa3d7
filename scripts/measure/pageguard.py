# SPDX-License-Identifier: GPL-2.0
"""What is measured of the pageguard series: the same as of filemap, which it
replaces, and counts of reads of up to a page and of larger ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import counters

from measure import Measurement, filemap, insns

NATIVE, TIMED = filemap.native_time(1, 64, 128, 256, 1024, 4096), filemap.TIMED

# The last size is one that the series leaves alone.
COUNTERS = filemap.MOUNT + counters.setup(filemap.REFERENCES, "mono") + f"""
for fs in {' '.join(filemap.COUNTED_SYSTEMS)}; do
	trace_start
	{{
		for how in '--file-size {filemap.SMALL},{filemap.LARGE}' '--file-size {filemap.LARGE} --offsets random'; do
			{filemap.BENCH} --dir /tmp/$fs --sizes 1,64,256,1024,4096,65536 $how \\
				--count {filemap.TRACED} --marker --json
		done
		{filemap.BENCH} --dir /tmp/$fs --sizes 64 --file-size {filemap.LARGE} --offsets sequential --op read \\
			--count {filemap.TRACED} --marker --json
		{filemap.BENCH} --dir /tmp/$fs --sizes 64,4096 --file-size {filemap.MANY} --offsets random \\
			--write-size {filemap.SMALL} --heat 0 --warmup 1 --count {filemap.TRACED} --marker --json
	}} > $fs.json
	trace_stop $fs.trace
done
"""


def removals(cpus: int) -> Measurement:
    """insn_per_delete in a guest of @cpus, of files that one of them has read, and
    of those that all have: who removes pages looks at the guards of these.  The
    plugin counts what all CPUs execute, but the others are idle, and sleep."""
    def rows(run: Path) -> list[dict]:
        """The rows of the directory @run."""
        return [{**one, "condition": f"{one['condition']}, {cpus} CPUs"}
                for one in filemap.instruction_rows(run, filemap.DELETED_FILES)]

    counted = insns.measurement(filemap.MOUNT + filemap.deletions("--heat 0", "--heat 1", "--heat 1 --everywhere"),
                                rows)
    return replace(counted, name=f"instructions, {cpus} CPUs", icount=False, cpus=cpus, sides=("baseline", "patched"))


MEASUREMENTS = [
    Measurement("writes to the reference count", "trace", COUNTERS, filemap.counter_rows),
    *filemap.MEASUREMENTS[1:],
    *(removals(cpus) for cpus in (2, 16)),
]
