# SPDX-License-Identifier: GPL-2.0
"""What is measured of the pageguard series: the same as of filemap, which it
replaces, counts of reads of up to a page and of larger ones, and removals with many
CPUs."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from core.process import Failure
from measure import counters

from measure import Measurement, filemap, insns, row

NATIVE = filemap.native_time(1, 64, 128, 256, 1024, 4096)

# The last size is one that the series leaves alone.
COUNTERS = filemap.MOUNT + counters.setup(filemap.REFERENCES) + f"""
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


# What the race test says of an antagonist: how many pages it tried to take from
# the file while others read it, and how many it got.
TAKEN = re.compile(r"^# (?P<fs>\S+) (?P<how>\S+): (?P<got>\d+) of (?P<tried>\d+) pages ", re.M)
TURNS = 5
# The others are timed; what their shared lines are, the model of lines asks of one.
COMPARED = ("baseline", "patched")
BUSY, OFTEN = 16, 24     # CPUs of which all but one read while that removes pages, and how often
# Each turn has another seed.  All skipped is 4, where the kernel has no such
# file system.
RACES = f"""
for turn in $(seq {TURNS}); do
	for how in move_pages reclaim; do
		kselftest/regress/filemap/small_read_race -s 6 -S $turn -t $how > race.log || [ $? = 4 ] || {{
			cat race.log
			exit 1
		}}
		cat race.log >> races.log
	done
done
"""


def race_rows(run: Path) -> list[dict]:
    """Of the pages of a file that somebody tried to migrate or reclaim while it was
    read, the share that stayed: the mean of the turns, with its spread."""
    stayed = defaultdict(list)
    for found in TAKEN.finditer((run / "races.log").read_text()):
        stayed[found["fs"], found["how"]].append(1 - int(found["got"]) / int(found["tried"]))
    short = [f"{how} on {fs}" for (fs, how), shares in stayed.items() if len(shares) != TURNS]
    if short or not stayed:
        raise Failure(f"{run} has not all turns of {', '.join(short) or 'any race'}: look at the guest's output there")
    return [{**row("stayed_while_read", "pages kept per page tried", f"{fs}, {how}", "counter",
                  statistics.fmean(shares)),
             "spread": {"deviation": float(f"{statistics.stdev(shares):.3g}"), "number": TURNS,
                        "least": float(f"{min(shares):.6g}")}} for (fs, how), shares in stayed.items()]


def removals(cpus: int) -> Measurement:
    """insn_per_delete in a guest of @cpus, of files that all of them have read: code
    that removes pages looks at the guards of all CPUs.  What the others execute does not
    count; but the guest's clock goes on for it, and with many CPUs that is ticks in the
    removal of a large file.  With BUSY CPUs, also while all others read: a CPU of such a
    guest that removes pages gets a small part of the host then."""
    def rows(run: Path) -> list[dict]:
        """The rows of the directory @run."""
        return [{**one, "condition": f"{one['condition']}, {cpus} CPUs"}
                for one in filemap.instruction_rows(run, filemap.DELETED_FILES)]

    few = cpus <= BUSY
    script = filemap.deletions(*(["--heat 0"] if few else []), "--heat 1 --everywhere",
                               sizes=(filemap.SMALL, filemap.LARGE) if few else (filemap.SMALL,))
    if cpus == BUSY:
        # In the order in which the files of rows are looked at.
        script = f"""
{filemap.BENCH} --dir /tmp/ext4 --delete=truncate --heat 1 --busy --file-size {filemap.LARGE} --warmup 1 \\
	--count {OFTEN} --json >> ext4-deleted.json
""" + script
    elif not few:
        # What so many CPUs have to do after the boot is in the first operations otherwise.
        script = "sleep 10\n" + script
    counted = insns.measurement(filemap.MOUNT + script, rows)
    # Under TCG a guest boots in proportion to its CPUs: ten minutes with 255.
    return replace(counted, name=f"instructions, {cpus} CPUs", icount=False, cpus=cpus,
                   timeout=max(counted.timeout, 15 * cpus), sides=COMPARED)


# Each read ends in an exception under the guard, and then faults as on the baseline.
UNMAPPED = filemap.MOUNT + f"""
for fs in ext4 tmpfs; do
	{filemap.BENCH} --dir /tmp/$fs --buffer gone --sizes 64,4096 --file-size {filemap.SMALL} \\
		--count {filemap.COUNTED} --json >> $fs.json
	{filemap.BENCH} --dir /tmp/$fs --buffer half --sizes 64,4096 --file-size {filemap.SMALL} \\
		--count {filemap.COUNTED} --json >> $fs.json
done
"""


def unmapped() -> Measurement:
    """insn_per_pread of reads into memory that is not mapped before, or is for its
    first half."""
    def rows(run: Path) -> list[dict]:
        """The rows of the directory @run."""
        return filemap.instruction_rows(run, ("ext4.json", "tmpfs.json"))

    return replace(insns.measurement(UNMAPPED, rows), name="instructions, memory that is not mapped",
                   sides=COMPARED)


MEASUREMENTS = [
    Measurement("writes to the reference count", "trace", COUNTERS, filemap.counter_rows, sides=COMPARED),
    replace(filemap.MEASUREMENTS[1], sides=COMPARED),
    replace(filemap.MEASUREMENTS[2], sides=(*COMPARED, "frozen")),
    unmapped(),
    *(removals(cpus) for cpus in (2, 16, 64, 255)),
    Measurement("pages that are taken while they are read", "debug", RACES, race_rows, timeout=1800,
                sides=COMPARED),
]
