# SPDX-License-Identifier: GPL-2.0
"""syzkaller's syz-execprog: the programs of system calls in the directory beside this
file, run by several tasks again and again, with calls of one program side by side.

What its calls return proves nothing; a report in the kernel's log, or a guest
that ends, does.  They are not mutated: -stress, which does that, ended with a crash
of Go's runtime or ran nothing in minutes under User-Mode Linux.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ktap import FAILED, PASSED
from locks import cache
from process import logged, output, say
from suite import Absent, Had, Program, Suite, Where, built_suite, checkout, fingerprint, setup

PROGRAMS = Path(__file__).with_suffix("")
# One file of programs each.  User-Mode Linux walks the VMAs of a task without its lock where
# pages are taken from its maps, which lockdep reports: so none of them maps a file and
# then takes pages from it.
GROUPS = tuple(sorted(path.name for path in PROGRAMS.iterdir()))
# With half a minute to begin, in which it checks which calls the kernel has.
SECONDS = 600
PROCS = 4
RAN = re.compile(r"executed programs: ([0-9]+)$", re.M)
# That a group has to come to, of which it runs dozens a second.
ENOUGH = 100


def build(source: Path, to: Path) -> None:
    """Build syz-execprog and syz-executor of the syzkaller in @source into the
    directory @to, beside our programs.  The checkout is left as it is."""
    tree, log = to / "tree", cache() / "log" / "suite-syzkaller.log"
    say(f"build: syzkaller (log: {log})")
    shutil.copytree(source, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    log.unlink(missing_ok=True)
    for command in (["go", "build", "-o", to / "syz-sysgen", "./sys/syz-sysgen"],
                    [to / "syz-sysgen"],
                    ["go", "build", "-o", to / "syz-execprog", "./tools/syz-execprog"],
                    # Both say which revision they are of, which has to be the same: a
                    # build without git has "unknown".
                    ["g++", "-O2", "-std=c++17", "-pthread", "-static-pie", "-I.", "-Iexecutor/_include",
                     "-DGOOS_linux=1", "-DGOARCH_amd64=1", "-DHOSTGOOS_linux=1", '-DGIT_REVISION="unknown"',
                     "-o", to / "syz-executor", "executor/executor.cc"]):
        logged(f"syzkaller {Path(command[-1]).name}", command, log, cwd=tree, append=True)
    shutil.rmtree(tree)
    (to / "syz-sysgen").unlink()
    shutil.copytree(PROGRAMS, to / "programs")


def get(where: Where) -> Had:
    """Built from the user's checkout of syzkaller, with Go."""
    source = checkout(where, "SYZKALLER", "syzkaller", "tools/syz-execprog/execprog.go")
    if not shutil.which("go"):
        raise Absent("install Go, which builds syzkaller")
    commit = output("git", "-C", source, "rev-parse", "--short=12", "HEAD").strip()
    ours = [f"{group}\n{(PROGRAMS / group).read_text()}" for group in GROUPS]
    files = built_suite("syzkaller", [fingerprint(source), *ours], lambda to: build(source, to))
    return Had(f"syzkaller, commit {commit}", tuple(
        Program(group, f"timeout -s KILL {SECONDS} $SUITE/syz-execprog -executor $SUITE/syz-executor -cover=false "
                       f"-repeat 0 -procs {PROCS} $SUITE/programs/{group}", SECONDS + 30)
        for group in GROUPS), files)


def judge(_status: int, said: str) -> tuple[str, str]:
    """It has to have run programs; it is ended by force."""
    counts = [int(count) for count in RAN.findall(said)]
    return (PASSED, "") if counts and counts[-1] >= ENOUGH else (FAILED, "ran next to no programs")


SUITE = Suite("syzkaller", "programs of system calls that the series change, which syz-execprog runs in parallel", get,
              judge, setup=setup("syzkaller"), fuzzer=True)
