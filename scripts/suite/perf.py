# SPDX-License-Identifier: GPL-2.0
"""perf bench: messages through pipes and sockets."""

from suite import Had, Program, Suite, Where, debian_version

PROGRAMS = {
    "sched-pipe-processes": "sched pipe -l 20000",
    "sched-pipe-threads": "sched pipe -l 20000 -T",
    "sched-messaging-sockets": "sched messaging -g 2 -l 50",
    "sched-messaging-pipes": "sched messaging -p -g 2 -l 50",
    "sched-messaging-pipes-threads": "sched messaging -p -t -g 2 -l 50",
}


def get(_where: Where) -> Had:
    """Debian's."""
    return Had(debian_version("linux-perf"), tuple(Program(name, f"perf bench {words}", 120)
                                            for name, words in PROGRAMS.items()))


SUITE = Suite("perf", "perf bench sched pipe and sched messaging", get, short=("sched-pipe-*", "*-messaging-pipes"))
