# SPDX-License-Identifier: GPL-2.0
"""Build programs of other people's sources, and keep what came out."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from core.locks import cache, lock
from core.process import Failure, logged, say
from source.build import compiler


def valid_checkout(path: Path, variable: str, what: str, sign: str) -> Path:
    """@path, which the user gave as @variable; Failure where it is no checkout of
    @what, which has a file @sign."""
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
