# SPDX-License-Identifier: GPL-2.0
"""UnixBench: pipes, context switches, processes, execl and copies of files, each alone and
two copies at once.  Debian has no package of it."""

from __future__ import annotations

from core.process import output
from measure.unixbench import ROWS, SETUP
from prove.suite import Had, Program, Suite, Where, built_suite, checkout, compile_programs, fingerprint

NAMES = ("pipe", "context1", "spawn", "execl", "fstime")
# fstime sleeps for eleven seconds in all, so that disks write what is left.  tmpfs writes
# nothing, and so it calls sync() once more.
FLAGS = ("-O2", "-w", "-std=gnu17", "-static", "-Wl,--defsym=sleep=sync")


def get(where: Where) -> Had:
    top = checkout(where, "UNIXBENCH", "UnixBench", "UnixBench/src/fstime.c")
    source = top / "UnixBench/src"
    files = built_suite("unixbench", [fingerprint(source), *NAMES, *FLAGS], lambda to: compile_programs(
        "unixbench", FLAGS, [source / f"{name}.c" for name in NAMES], to))
    return Had(f"UnixBench {output('git', '-C', top, 'log', '-1', '--format=%h of %as')}",
               tuple(Program(name, command) for name, (_, command) in ROWS.items()), files)


SUITE = Suite("unixbench", "UnixBench's pipes, context switches, processes, execl and copies of files", get,
              setup=SETUP)
