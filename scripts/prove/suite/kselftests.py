# SPDX-License-Identifier: GPL-2.0
"""The kernel's own selftests of what the series change, beside the tests that
come with the series; of the kernel with all series, for both sides."""

from __future__ import annotations

import re

from core.ktap import FAILED
from prove.suite import Absent, Had, Program, Suite, Where, by_ksft_status, shell_of
from source.build import kselftests

TARGETS = ("pidfd", "clone3", "pid_namespace", "filesystems/epoll", "mm")
# Of mm, whose own runner takes huge pages, modules and hours.
MM = ("cow", "guard-regions", "madv_populate", "map_fixed_noreplace", "map_populate", "merge", "migration", "mkdirty",
      "mlock2-tests", "mlock-random-test", "mremap_dontunmap", "mremap_test", "mrelease_test", "mseal_test",
      "on-fault-limit", "pagemap_ioctl", "process_madv", "rmap", "soft-dirty", "droppable", "mdwe_test",
      "uffd-unit-tests", "uffd-wp-mremap", "uffd-stress anon 20 16", "uffd-stress shmem 20 16", "khugepaged",
      "split_huge_page_test", "folio_split_race_test", "transhuge-stress -d 5", "compaction_test")
# Tests that are left out, and why.
LEFT_OUT = {
    "pidfd:pidfd_test": "creates 32768 processes, which takes minutes: make check-full has it",
    # The pidfd is readable before pidfs_exit() has recorded what the test asks for.
    "pidfd:pidfd_autoreap_test": "fails now and then on the base, each time in another of its tests",
    "pidfd:pidfd_bind_mount": "mounts over what the root of the guest has read-only",
}
SECONDS = 300
# How the harness and the runner say that a test failed; without its number.
NOT_OK = re.compile(r"^(?:# )*not ok \d+ (.*)$", re.M)


def get(where: Where) -> Had:
    if not where.base.uml:
        raise Absent(f"the tests of mm are for a newer kernel than {where.base.tag}")
    files = kselftests(where.repo, where.revision, list(TARGETS))
    listed = [line.partition(":") for line in (files / "kselftest-list.txt").read_text().split()]
    found = [(f"{target}:{name}".replace("/", "-"), f"cd $SUITE/{target} && ./{name}") for target, _, name in listed
             if target != "mm" and f"{target}:{name}" not in LEFT_OUT]
    found += [("mm:" + command.replace(" ", "-"), f"mountpoint -q /tmp/disk && cd /tmp/disk && $SUITE/mm/{command}")
              for command in MM]
    return Had(f"{where.base.tag} with all series",
               tuple(Program(name, command, SECONDS) for name, command in found), files)


def judge(status: int, said: str) -> tuple[str, str]:
    """By its exit status; how it failed is which of its tests did."""
    if status == 1:
        return FAILED, "; ".join(sorted(NOT_OK.findall(said))) or "exit status 1"
    return by_ksft_status(status, said)


SUITE = Suite("kselftests", "the kernel's selftests of pidfd, clone3, pid_namespace, epoll and mm", get, judge,
              setup=shell_of("kselftests"), emulated=("mm:*",))
