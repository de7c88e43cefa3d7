# SPDX-License-Identifier: GPL-2.0
"""xfstests: generic tests of reads and writes beside maps, direct I/O and
truncation, on tmpfs, ext4 and XFS."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from core.ktap import FAILED, SKIPPED
from core.locks import cache
from core.process import Failure, logged, output, say
from prove.suite import Had, Program, Suite, Where, by_status, checkout, shell_of
from source.build import make_jobs, remembering
from source.programs import built_suite, fingerprint

# What runs natively, which takes half a minute each and more.
NATIVE = tuple(f"{system}-{number}" for system in ("tmpfs", "ext4", "xfs")
               for number in ("029", "030", "091", "248", "263", "749"))
# Direct I/O to pages that are mapped makes User-Mode Linux walk maps without a
# lock, which lockdep reports.  An earlier patch of reads without a reference failed
# 095 and 741, as was posted in October 2025.  247 starts 500 writers of maps beside
# direct I/O, which takes more than 20 minutes on the base as well.
EMULATED = ("ext4-095", "ext4-647", "ext4-708", "ext4-729", "ext4-741")
SECONDS = 300
# What it says of a test that was not as it should be, without its time.
NOT_RUN = re.compile(r"^generic/\d+.*\[not run\] *(?P<why>.*)$", re.M)
WRONG = re.compile(r"^generic/\d+.*(?P<why>\[failed.*?\]|- output mismatch|_check_\w+:.*)", re.M)

def program(name: str, source: Path) -> Program:
    """The program @name, as NATIVE has them, whose test the xfstests in @source
    has to have."""
    system, number = name.split("-")
    if not (source / "tests/generic" / number).exists():
        raise Failure(f"{source} has no generic/{number}: take a newer xfstests")
    return Program(name, f"xfstest {system} generic/{number}", SECONDS)


def build(source: Path, to: Path) -> None:
    """Build the xfstests of @source in @to, of which the generic tests are kept.
    The checkout is left as it is."""
    tree, log = to / "xfstests", cache() / "log" / "suite-xfstests.log"
    say(f"build: xfstests (log: {log})")
    shutil.copytree(source, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    log.unlink(missing_ok=True)
    logged("xfstests", ["make", "-C", tree, make_jobs()], log, env=remembering(), append=True)
    for path in tree.glob("tests/*"):
        if path.is_dir() and path.name != "generic":
            shutil.rmtree(path)
    for pattern in ("**/*.o", "**/*.lo", "**/.libs", "**/*.c"):
        for path in tree.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def get(where: Where) -> Had:
    source = checkout(where, "XFSTESTS", "xfstests", "ltp/fsx.c")
    files = built_suite("xfstests", [fingerprint(source)], lambda to: build(source, to))
    return Had(f"xfstests {output('git', '-C', source, 'log', '-1', '--format=%h of %as')}",
               tuple(program(name, source) for name in (*NATIVE, *EMULATED)), files)


def judge(status: int, said: str) -> tuple[str, str]:
    """It ends with 0 where a test was not run, and says so."""
    not_run = NOT_RUN.search(said)
    if not_run:
        return SKIPPED, not_run["why"]
    wrong = WRONG.search(said)
    if wrong:
        return FAILED, wrong["why"]
    return by_status(status, said)


SUITE = Suite("xfstests", "generic tests of reads and writes beside maps and direct I/O", get, judge,
              setup=shell_of("xfstests"), native=NATIVE, emulated=EMULATED)
