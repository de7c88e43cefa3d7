# SPDX-License-Identifier: GPL-2.0
"""A directory of the user's, in which each C file is a program, after a report of somebody.
It exits with 0 where all is well, and with 4 where the kernel lacks what it needs."""

from __future__ import annotations

from core.process import Failure
from prove.suite import Absent, Had, Program, Suite, Where, by_ksft_status
from source.programs import built_suite, compile_programs, fingerprint

FLAGS = ("-O2", "-w", "-std=gnu11", "-static", "-pthread")
# A program is told that it may drop the caches of the machine, and how slow that is.
SETUP = "export CASE_GUEST=1 CASE_SLOW=4\n"
SECONDS = 120


def get(where: Where) -> Had:
    source = where.checkouts.get("CASES")
    if source is None:
        raise Absent("give a directory of C files, each of which is a program, with CASES=dir")
    if not any(source.glob("*.c")):
        raise Failure(f"CASES={source} has no C files: give the directory that has them")
    known = fingerprint(source)
    files = built_suite("cases", [known, *FLAGS], lambda to: compile_programs(
        "cases", FLAGS, sorted(source.glob("*.c")), to))
    return Had(f"cases {known[:12]}", tuple(Program(path.name, f"$SUITE/{path.name}", SECONDS)
                                            for path in sorted(files.iterdir())), files)


SUITE = Suite("cases", "small programs, each after a report of somebody", get, by_ksft_status, setup=SETUP,
              emulated=("*",))
