# SPDX-License-Identifier: GPL-2.0
"""The Linux Test Project: its programs that go through what the series change, with the
arguments that its own lists give them."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from core.ktap import FAILED, PASSED, SKIPPED
from core.locks import cache
from core.process import Failure, logged, say
from prove.suite import Had, Program, Suite, Where, by_status, checkout, shell_of
from source.build import make_jobs, remembering
from source.programs import built_suite, fingerprint

# Directories of its programs, by patterns.
SYSCALLS = ("pipe*", "splice", "tee", "vmsplice", "read", "readv", "readahead", "pread*", "write*", "pwrite*",
            "clone*", "fork", "vfork", "wait*", "exit*", "pidfd_*", "setns", "unshare", "kill", "tkill", "tgkill",
            "fcntl", "madvise", "process_madvise", "mprotect", "mremap", "mmap", "munmap", "mincore", "msync", "mlock*",
            "munlock", "remap_file_pages", "fallocate", "truncate", "ftruncate", "memfd_create", "copy_file_range",
            "userfaultfd", "poll", "ppoll", "select", "pselect", "epoll*", "sendfile", "dup*", "close*", "execve*",
            "lseek", "cachestat", "sync_file_range", "fadvise", "getpid", "getppid", "gettid", "setpgid",
            "getpgid", "setsid", "getsid")
OTHERS = ("ipc/pipeio", "mem/mmapstress", "mem/mtest05", "mem/mtest06", "mem/mtest07", "containers/pidns")
# Its lists of tests; a test that is in several has the arguments of the first.
LISTS = ("syscalls", "mm", "syscalls-ipc", "containers")
# Tests that are left out: they were seen not to end within minutes under User-Mode
# Linux, for which each of them is much work.
LEFT_OUT = {
    "fork14": "forks 16394 times, with up to 16 TB mapped",
    "mmap16": "fills a file system ten times, block by block, beside a map that has to get SIGBUS",
    "mtest01": "fills 80 % of the memory",
    "mtest01w": "fills 80 % of the memory, and writes to all of it",
}
# Bits of the exit status.
BAD, SKIP, WARNED = 1 | 2, 32, 4
# Where it failed, in its new and its old way to say so.
KINDS = "TFAIL|TBROK|TWARN"
WHERE = re.compile(rf"^(?P<file>\S+\.[ch]:\d+): (?P<kind>{KINDS})|^(?P<old>\S+) +\d+ +(?P<how>{KINDS})", re.M)
# Tests give themselves time; what takes longer than this hangs.
SECONDS = 300

def directories(source: Path) -> tuple[list[str], list[str]]:
    """The directories of system calls and of others that are wanted of @source; it
    is said where it has none of a pattern."""
    below = source / "testcases/kernel"
    found = []
    for pattern in SYSCALLS:
        names = sorted(path.parent.name for path in (below / "syscalls").glob(f"{pattern}/Makefile"))
        if not names:
            say(f"suites: this LTP has no tests of {pattern}")
        found += names
    return list(dict.fromkeys(found)), [name for name in OTHERS if (below / name / "Makefile").exists()]


def build(source: Path, to: Path) -> None:
    """Build what is wanted of the LTP in @source, and install it into @to: the
    programs, and the lists of tests.  The checkout is left as it is."""
    tree, log = to / "tree", cache() / "log" / "suite-ltp.log"
    say(f"build: LTP (log: {log})")
    shutil.copytree(source, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    syscalls, others = directories(tree)
    kernel = tree / "testcases/kernel"
    log.unlink(missing_ok=True)
    logged("LTP autotools", ["make", "-C", tree, "autotools"], log, append=True)
    logged("LTP configure", ["./configure", f"--prefix={to}"], log, cwd=tree, append=True)
    steps = [(tree / "lib", [], ["all"]), (tree / "libs", [], ["all"])]
    steps += [(where, words, ["all", "install"]) for where, words in (
        (kernel / "syscalls", [f"SUBDIRS={' '.join(syscalls)}"]), *((kernel / name, []) for name in others))]
    for where, words, targets in steps:
        for target in targets:
            logged(f"LTP {where.name}", ["make", "-C", where, make_jobs(), *words, target], log, env=remembering(),
                   append=True)
        # Where its directory is newer, make builds it again, with the directories in @words.
        (tree / "lib/libltp.a").touch()
    shutil.copytree(tree / "runtest", to / "runtest")
    shutil.rmtree(tree)


def programs(files: Path) -> tuple[Program, ...]:
    """The tests of LISTS whose program is installed in @files."""
    found: dict[str, Program] = {}
    for name in LISTS:
        path = files / "runtest" / name
        for line in path.read_text().splitlines() if path.exists() else ():
            words = shlex.split(line, comments=True)
            if len(words) < 2 or words[0] in found or words[0] in LEFT_OUT:
                continue
            if (files / "testcases/bin" / words[1]).exists():
                found[words[0]] = Program(words[0], shlex.join(words[1:]), SECONDS)
    if not found:
        raise Failure(f"no test of LTP's lists was built in {files}: look at {cache() / 'log' / 'suite-ltp.log'}")
    return tuple(found.values())


def get(where: Where) -> Had:
    source = checkout(where, "LTP", "the Linux Test Project", "runtest/syscalls")
    files = built_suite("ltp", [fingerprint(source), *SYSCALLS, *OTHERS], lambda to: build(source, to))
    return Had(f"LTP {(source / 'VERSION').read_text().strip()}", programs(files), files)


def judge(status: int, said: str) -> tuple[str, str]:
    """Its exit status has bits for what happened; how it failed is where it says
    that it did, without what differs from run to run."""
    where = sorted({f"{match['file'] or match['old']}: {match['kind'] or match['how']}"
                    for match in WHERE.finditer(said)})
    if status == SKIP:
        return SKIPPED, "not for this kernel"
    if status & ~(BAD | SKIP | WARNED):
        return by_status(status, said)
    if status & (BAD | WARNED):
        return FAILED, ", ".join(where) or f"exit status {status}"
    return PASSED, ""


SUITE = Suite("ltp", "system calls, pipes, maps and pid namespaces of the Linux Test Project", get, judge,
              short=("pipe*", "splice*", "tee*", "vmsplice*", "clone*", "wait*", "pidfd_*", "pread*", "readv*",
                     "mmap0*"), setup=shell_of("ltp"),
              emulated=("madvise*", "mmap0*", "mremap*", "mprotect*", "userfaultfd*", "mtest*", "readahead*"))
