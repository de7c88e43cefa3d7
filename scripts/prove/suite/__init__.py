# SPDX-License-Identifier: GPL-2.0
"""Other people's suites of tests: one module a suite, with a SUITE.

A suite is had from Debian, from the kernel's source or from a checkout of the
user's, and is then a list of programs, each of which a guest runs for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.ktap import FAILED, PASSED, SKIPPED
from core.model import Base
from core.process import Failure, bash, output
from source.programs import valid_checkout

# How timeout says that it has ended a program, which is killed if it goes on.
TIMED_OUT = {124: "did not end in time", 137: "was killed, or did not end in time"}
# What the kernel's selftests, and others, exit with if they are skipped.
KSFT_SKIP = 4


class Absent(Failure):
    """A suite that cannot be had here, which is no fault of a kernel."""


@dataclass(frozen=True)
class Program:
    """One program of a suite: its name, which is one of a file as well, the
    shell @command that runs it in an empty directory on tmpfs, with the files of
    its suite in $SUITE, and the @seconds that it may take natively."""

    name: str
    command: str
    seconds: int = 60


@dataclass(frozen=True)
class Where:
    """What suites are built from: a base with its repository, the revision with
    all series, and checkouts of the user's, by the name of their variable."""

    base: Base
    repo: Path
    revision: str
    checkouts: dict[str, Path]


@dataclass(frozen=True)
class Had:
    """A suite as it is here: its @version, its @programs, and the directory of
    @files that guests get of it (None: all it needs is installed)."""

    version: str
    programs: tuple[Program, ...]
    files: Path | None = None


def by_status(status: int, _said: str) -> tuple[str, str]:
    """The verdict of a program that exits with 0 where all is well, and how it
    failed."""
    return (FAILED, TIMED_OUT.get(status, f"exit status {status}")) if status else (PASSED, "")


def by_ksft_status(status: int, said: str) -> tuple[str, str]:
    """As by_status(), of a program that says by KSFT_SKIP that the kernel lacks what it needs."""
    return (SKIPPED, "not for this kernel") if status == KSFT_SKIP else by_status(status, said)


@dataclass(frozen=True)
class Suite:
    """How one suite is had and run.  @get: makes it be there, and raises Absent
    where it cannot be had; @judge: the verdict and how it failed, of a program's
    exit status and what it said; @short: patterns of the names of what is run
    before each commit; @setup: bash, once in each guest; @native, @emulated:
    patterns of what runs under User-Mode Linux, and in QEMU, since the former
    lacks what it exercises."""

    name: str
    summary: str
    get: Callable[[Where], Had]
    judge: Callable[[int, str], tuple[str, str]] = by_status
    short: tuple[str, ...] = ()
    setup: str = ""
    native: tuple[str, ...] = ("*",)
    emulated: tuple[str, ...] = ()


def shell_of(name: str) -> str:
    return bash(Path(__file__).with_name(f"{name}.sh"))


def debian_version(name: str) -> str:
    """The version of the Debian package @name, with its name; Absent where it is
    not installed, as on other distributions."""
    try:
        return f"{name} {output('dpkg-query', '-W', '-f', '${Version}', name)}"
    except Failure as err:
        raise Absent(f"{name} is not installed: 'make install' installs it on Debian") from err


def checkout(where: Where, variable: str, what: str, sign: str) -> Path:
    """The directory that the user gave as @variable, which is a checkout of
    @what; Absent where none was given, Failure where it has no file @sign."""
    path = where.checkouts.get(variable)
    if path is None:
        raise Absent(f"give a checkout of {what} with {variable}=dir")
    return valid_checkout(path, variable, what, sign)
