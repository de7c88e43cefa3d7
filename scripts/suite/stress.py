# SPDX-License-Identifier: GPL-2.0
"""Classes of stress-ng that go through what the series change, with verification."""

from ktap import SKIPPED
from suite import Had, Program, Suite, Where, by_status, debian_version

SECONDS = 5             # that each class runs
WORKERS = 2             # processes of each class, of which most have more
CLASSES = ("pipe", "pipeherd", "sigpipe", "splice", "vm-splice", "tee", "fault", "userfaultfd", "clone", "fork",
           "vfork", "pidfd", "mmapfork", "readahead",
           # And what comes close to them.
           "sendfile", "copy-file", "memfd", "madvise", "mremap", "mincore", "fallocate", "fpunch", "poll", "epoll",
           "exit-group", "wait", "zombie", "kill", "getdent", "mmap")
SHORT = ("pipe", "pipeherd", "sigpipe", "splice", "vm-splice", "tee", "fault", "clone", "fork", "vfork", "pidfd",
         "mmapfork", "readahead")
# What its exit status says of a class that this kernel or machine cannot run.
UNABLE = {3: "not enough resources", 4: "not implemented"}


def get(_where: Where) -> Had:
    """Debian's."""
    return Had(debian_version("stress-ng"), tuple(
        Program(name, f"stress-ng --{name} {WORKERS} --verify --timeout {SECONDS} --temp-path .", 60)
        for name in CLASSES))


def judge(status: int, said: str) -> tuple[str, str]:
    """By its exit status, as its manual has it."""
    why = UNABLE.get(status)
    return (SKIPPED, why) if why else by_status(status, said)


SUITE = Suite("stress-ng", "classes of stress-ng, each of which verifies what it does", get, judge, SHORT,
              emulated=("fault", "userfaultfd", "mmapfork", "readahead", "mmap", "mremap", "madvise"))
