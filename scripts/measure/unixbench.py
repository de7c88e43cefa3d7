# SPDX-License-Identifier: GPL-2.0
"""Programs of UnixBench, each alone and two copies at once: what they do a second under
User-Mode Linux, on the base and on that with all series.

They go through system calls, unlike what native.py times.
"""

from __future__ import annotations

from pathlib import Path

from core.model import ALL, Base, chosen_topics
from core.process import bash, output
from measure.bench import Side, clock, environment
from source.programs import built_suite, compile_programs, fingerprint
from source.tree import apply

from measure import Measurement, row, size_name

NAMES = ("pipe", "context1", "spawn", "execl", "fstime")
# C files that these include.
INCLUDED = ("big", "timeit")
# Where a checkout has the source of one of them, beside which all others lie.
SOURCE = "UnixBench/src/fstime.c"
# fstime sleeps for eleven seconds in all, so that disks write what is left.  tmpfs writes
# nothing, and so it calls sync() once more.
FLAGS = ("-O2", "-w", "-std=gnu17", "-static", "-Wl,--defsym=sleep=sync")
# What each row is of, with UnixBench's own sizes of buffers and files, in fewer seconds.
KINDS = {"pipe throughput": "pipe 2", "context switching": "context1 2", "process creation": "spawn 2",
         "execl": "execl 2",
         **{f"file copy {size_name(size)}": f"fstime -c -t 1 -b {size} -m {blocks}"
            for size, blocks in ((256, 500), (1024, 2000), (4096, 8000))}}
# By names that are those of files: what a row is called, and its command.
ROWS = {f"{kind}-{copies}".replace(" ", "-"): (f"{kind}, {copies} {word}", f"copies {copies} {words}")
        for kind, words in KINDS.items() for copies, word in ((1, "copy"), (2, "copies"))}
SETUP = bash(Path(__file__).with_suffix(".sh"))
SCRIPT = f"set -e\nHERE=$PWD SUITE=$PWD/kselftest\n{SETUP}\ncd /tmp\n" + "".join(
    f"{command} > $HERE/{name}.rate\n" for name, (_, command) in ROWS.items())


def rows(run: Path) -> list[dict]:
    """The rows of the directory @run of one boot: operations or, of copies of files, KB a
    second."""
    return [row(*(("copied", "KB/s") if name.startswith("file") else ("throughput", "op/s")), condition, "timed-uml",
                float((run / f"{name}.rate").read_text())) for name, (condition, _) in ROWS.items()]


def programs(top: Path) -> Path:
    """The directory with the programs of the checkout @top, linked statically."""
    source = (top / SOURCE).parent
    return built_suite("unixbench", [fingerprint(source), *NAMES, *FLAGS], lambda to: compile_programs(
        "unixbench", FLAGS, [source / f"{name}.c" for name in NAMES], to))


def version(top: Path) -> str:
    return f"UnixBench {output('git', '-C', top, 'log', '-1', '--format=%h of %as')}"


def sides(base: Base, repo: Path) -> dict[str, Side]:
    """What is compared: the base, and that with all series."""
    revisions = {"baseline": base.tag, "patched": apply(repo, base, chosen_topics(None, base))}
    return {name: Side(repo, base, one) for name, one in revisions.items()}


MEASUREMENTS: list[Measurement] = []
NATIVE = Measurement("time of its programs", "um-time", SCRIPT, rows)


def timed(base: Base, repo: Path, files: Path, most: int) -> dict:
    """What unixbench.json has of @most rounds of boots with the programs in @files:
    "environment", and as boots.json "cells" and "rounds".  Raises Failure where a boot
    fails."""
    boots, kernels = clock(ALL, sides(base, repo), files, most)
    return {"environment": environment(base, "", kernels), **boots}
