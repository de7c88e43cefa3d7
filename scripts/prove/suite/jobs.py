# SPDX-License-Identifier: GPL-2.0
"""Builds with a job server: several makes that share tokens in a pipe."""

from core.process import output
from measure import jobserver
from prove.suite import Had, Program, Suite, Where, shell_of

JOBS = """for turn in {1..5}; do
	rm -f done
	make -j%s -f /tmp/told.mk || exit
	[ $(wc -l < done) = 48 ] && [ $(sort done | uniq -c | grep -c '^ *4 ') = 12 ] || exit
done"""
BUILD = "sources && make -j%s -f /tmp/build.mk program && [ $(./program) = 276 ]"


def get(_where: Where) -> Had:
    return Had(output("make", "--version").splitlines()[0], tuple(
        Program(f"{name}-{tokens}", command % tokens, 240)
        for name, command in (("jobs", JOBS), ("build", BUILD)) for tokens in (2, 4, 16)))


SUITE = Suite("jobs", "makes that share a job server: every job runs once, and what they build works", get,
              short=("jobs-4", "build-4"), setup=jobserver.JOBS + shell_of("jobs"))
