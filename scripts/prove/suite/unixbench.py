# SPDX-License-Identifier: GPL-2.0
"""UnixBench: pipes, context switches, processes, execl and copies of files, each alone and
two copies at once.  Debian has no package of it."""

from __future__ import annotations

from measure.unixbench import ROWS, SETUP, SOURCE, programs, version
from prove.suite import Had, Program, Suite, Where, checkout


def get(where: Where) -> Had:
    top = checkout(where, "UNIXBENCH", "UnixBench", SOURCE)
    return Had(version(top), tuple(Program(name, command) for name, (_, command) in ROWS.items()), programs(top))


SUITE = Suite("unixbench", "UnixBench's pipes, context switches, processes, execl and copies of files", get,
              setup=SETUP)
