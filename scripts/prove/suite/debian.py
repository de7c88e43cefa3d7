# SPDX-License-Identifier: GPL-2.0
"""Suites that Debian has as packages: hackbench of rt-tests, classes of stress-ng, perf
bench."""

from functools import partial

from core.ktap import SKIPPED
from prove.suite import Had, Program, Suite, Where, by_status, debian_version

# Twenty senders and as many receivers in a group, each to each.
HACKBENCH = {f"{kind}-{tasks}-{size}": f"hackbench {with_kind} {with_tasks} -g 2 -l 100 -s {size}"
             for kind, with_kind in (("pipes", "-p"), ("sockets", "")) for tasks, with_tasks in (
                 ("processes", "-P"), ("threads", "-T")) for size in (100, 5000)}
PERF = {
    "sched-pipe-processes": "perf bench sched pipe -l 20000",
    "sched-pipe-threads": "perf bench sched pipe -l 20000 -T",
    "sched-messaging-sockets": "perf bench sched messaging -g 2 -l 50",
    "sched-messaging-pipes": "perf bench sched messaging -p -g 2 -l 50",
    "sched-messaging-pipes-threads": "perf bench sched messaging -p -t -g 2 -l 50",
}
# Classes of stress-ng that go through what the series change, those first that run before
# each commit.
SHORT = ("pipe", "pipeherd", "sigpipe", "splice", "vm-splice", "tee", "fault", "clone", "fork", "vfork", "pidfd",
         "mmapfork", "readahead")
CLASSES = (*SHORT, "userfaultfd", "sendfile", "copy-file", "memfd", "madvise", "mremap", "mincore", "fallocate",
           "fpunch", "poll", "epoll", "exit-group", "wait", "zombie", "kill", "getdent", "mmap")
# Two processes of each for five seconds; most have more.
STRESS = {name: f"stress-ng --{name} 2 --verify --timeout 5 --temp-path ." for name in CLASSES}
# What its exit status says of a class that this kernel or machine cannot run.
UNABLE = {3: "not enough resources", 4: "not implemented"}


def get(package: str, commands: dict[str, str], seconds: int, _where: Where) -> Had:
    """The suite of @commands, by name, of Debian's @package; each may take @seconds."""
    return Had(debian_version(package), tuple(Program(name, command, seconds) for name, command in commands.items()))


def judge_stress(status: int, said: str) -> tuple[str, str]:
    """By the exit status, as stress-ng's manual has it."""
    why = UNABLE.get(status)
    return (SKIPPED, why) if why else by_status(status, said)


SUITES = (
    Suite("hackbench", "hackbench with pipes and sockets, processes and threads",
          partial(get, "rt-tests", HACKBENCH, 120), short=("pipes-*-100",)),
    Suite("stress-ng", "classes of stress-ng, each of which verifies what it does",
          partial(get, "stress-ng", STRESS, 60), judge_stress, SHORT,
          emulated=("fault", "userfaultfd", "mmapfork", "readahead", "mmap", "mremap", "madvise")),
    Suite("perf", "perf bench sched pipe and sched messaging", partial(get, "linux-perf", PERF, 120),
          short=("sched-pipe-*", "*-messaging-pipes")),
)
