# SPDX-License-Identifier: GPL-2.0
"""Other people's suites of tests: one module a suite, with a SUITE.

A suite is had from Debian, from the kernel's source or from a checkout of the
user's, and is then a list of programs, each of which a guest runs for itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.ktap import FAILED, PASSED, SKIPPED
from core.locks import cache, lock
from core.model import Base
from core.process import Failure, bash, logged, output, say
from source.build import compiler

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
    if not (path / sign).is_file():
        raise Failure(f"{variable}={path} is no checkout of {what}, as it has no {sign}: give its directory")
    return path


def fingerprint(source: Path) -> str:
    """What the files of @source are known by: names, sizes and times."""
    digest = hashlib.sha256(str(source.resolve()).encode())
    for directory, directories, names in os.walk(source):
        directories[:] = sorted(set(directories) - {".git"})
        for name in sorted(names):
            entry = os.lstat(os.path.join(directory, name))
            digest.update(f"{directory}/{name} {entry.st_size} {entry.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def built_suite(name: str, made_of: list[str], build: Callable[[Path], None]) -> Path:
    """The directory in the cache that @build has filled for the suite @name from
    what the words of @made_of and the compiler are, now or before."""
    key = hashlib.sha256("\n".join([*made_of, compiler()]).encode()).hexdigest()[:16]
    path = cache() / "suite" / f"{name}-{key}"
    with lock(f"suite-{name}"):
        if not path.exists():
            partial = path.with_name(path.name + ".part")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            build(partial)
            partial.rename(path)
    return path


def compile_programs(name: str, flags: tuple[str, ...], sources: list[Path], to: Path) -> None:
    """Compile each C file of @sources into a program of the directory @to, for the suite @name."""
    log = cache() / "log" / f"suite-{name}.log"
    say(f"build: {name} (log: {log})")
    log.unlink(missing_ok=True)
    for source in sources:
        logged(f"{name} {source.stem}", ["gcc", *flags, "-o", to / source.stem, source], log, append=True)
