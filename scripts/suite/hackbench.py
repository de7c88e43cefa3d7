# SPDX-License-Identifier: GPL-2.0
"""hackbench of rt-tests: groups of senders and receivers, each to each."""

from suite import Had, Program, Suite, Where, debian_version

# Twenty senders and as many receivers in a group.
GROUPS, LOOPS = 2, 100
KINDS = {"pipes": "-p", "sockets": ""}
TASKS = {"processes": "-P", "threads": "-T"}
SIZES = (100, 5000)


def get(_where: Where) -> Had:
    """Debian's."""
    return Had(debian_version("rt-tests"), tuple(
        Program(f"{kind}-{tasks}-{size}", f"hackbench {with_kind} {with_tasks} -g {GROUPS} -l {LOOPS} -s {size}", 120)
        for kind, with_kind in KINDS.items() for tasks, with_tasks in TASKS.items() for size in SIZES))


SUITE = Suite("hackbench", "hackbench with pipes and sockets, processes and threads", get, short=("pipes-*-100",))
