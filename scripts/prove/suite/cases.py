# SPDX-License-Identifier: GPL-2.0
"""A directory of the user's, in which each C file is a program, after a report of somebody.
It exits with 0 where all is well, and with 4 where the kernel lacks what it needs."""

from __future__ import annotations

from pathlib import Path

from core.ktap import SKIPPED
from core.locks import cache
from core.process import Failure, logged, say
from prove.suite import Absent, Had, Program, Suite, Where, by_status, built_suite, fingerprint

FLAGS = ("-O2", "-w", "-std=gnu11", "-static", "-pthread")
# A program is told that it may drop the caches of the machine, and how slow that is.
SETUP = "export CASE_GUEST=1 CASE_SLOW=4\n"
SKIP, SECONDS = 4, 120


def build(source: Path, to: Path) -> None:
    """Compile each C file of the directory @source into @to; nothing in @source changes."""
    log = cache() / "log" / "suite-cases.log"
    say(f"build: cases (log: {log})")
    log.unlink(missing_ok=True)
    for path in sorted(source.glob("*.c")):
        logged(f"case {path.stem}", ["gcc", *FLAGS, "-o", to / path.stem, path], log, append=True)


def get(where: Where) -> Had:
    source = where.checkouts.get("CASES")
    if source is None:
        raise Absent("give a directory of C files, each of which is a program, with CASES=dir")
    if not any(source.glob("*.c")):
        raise Failure(f"CASES={source} has no C files: give the directory that has them")
    known = fingerprint(source)
    files = built_suite("cases", [known, *FLAGS], lambda to: build(source, to))
    return Had(f"cases {known[:12]}", tuple(Program(path.name, f"$SUITE/{path.name}", SECONDS)
                                            for path in sorted(files.iterdir())), files)


def judge(status: int, said: str) -> tuple[str, str]:
    return (SKIPPED, "not for this kernel") if status == SKIP else by_status(status, said)


SUITE = Suite("cases", "small programs, each after a report of somebody", get, judge, setup=SETUP, emulated=("*",))
