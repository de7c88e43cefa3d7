# SPDX-License-Identifier: GPL-2.0
"""What every step shares: where things are, the tables of bases and topics,
how a command is run, how a failure is told.

Nothing here changes a file outside the cache.  All paths are pathlib.Path.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KCONFIG = ROOT / "scripts" / "kconfig"
CONFIGS = ("bench", "trace", "debug")
# The guests of other architectures that a topic may ask for; each is a
# configuration as well.
GUESTS = ("arm64",)

# The user's configuration must not sign, number or reformat what the steps
# commit and export.
GIT_PLAIN = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}

# Everything committed in the cached kernel repositories gets this identity
# and date, so that the same patches give the same commit ids everywhere.
GIT_IDENTITY = {
    **GIT_PLAIN,
    "GIT_AUTHOR_NAME": "hotpaths",
    "GIT_AUTHOR_EMAIL": "hotpaths@localhost",
    "GIT_COMMITTER_NAME": "hotpaths",
    "GIT_COMMITTER_EMAIL": "hotpaths@localhost",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}


class Failure(Exception):
    """A failure that the user can act on: one sentence with the next step."""


@dataclass(frozen=True)
class Base:
    """One row of bases.toml."""

    name: str
    tag: str
    version: str
    status: str
    pool: str = ""
    sha256: str = ""
    member: str = ""
    url: str = ""


@dataclass(frozen=True)
class Topic:
    """One patches/<topic>/series.toml."""

    name: str
    title: str
    summary: str
    kselftest: str
    benchmark: str
    metric: str
    prerequisites: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    guests: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    steps: dict[str, int] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    base: dict = field(default_factory=dict)

    def patches(self, base: Base) -> list[Path]:
        """The series for @base in order, without its cover letter."""
        return [p for p in sorted((ROOT / "patches" / self.name / base.name).glob("[0-9]*.patch"))
                if not p.name.startswith("0000-")]

    def cover(self, base: Base) -> Path:
        """The cover letter of the series for @base."""
        return ROOT / "patches" / self.name / base.name / "0000-cover-letter.patch"


def cache() -> Path:
    """The cache directory: $XDG_CACHE_HOME/hotpaths, outside the checkout."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = Path(home) / "hotpaths"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise Failure(f"cannot make the cache {path} ({err.strerror}): "
                      "set XDG_CACHE_HOME to a directory you may write") from err
    return path


def bases() -> dict[str, Base]:
    """All bases of bases.toml by name."""
    table = tomllib.loads((ROOT / "bases.toml").read_text())["base"]
    return {name: Base(name=name, **row) for name, row in table.items()}


def base(name: str) -> Base:
    """The base called @name; Failure names the known ones."""
    known = bases()
    if name not in known:
        raise Failure(f"unknown base '{name}': bases.toml has {', '.join(known)}")
    return known[name]


def topics() -> dict[str, Topic]:
    """All topics that have a patches/<topic>/series.toml, by name; Failure
    for one that asks for a guest that there is not."""
    found = {}
    for path in sorted((ROOT / "patches").glob("*/series.toml")):
        row = tomllib.loads(path.read_text())
        for key in ("prerequisites", "neighbours", "frames", "compared", "beside", "guests"):
            row[key] = tuple(row.get(key, ()))
        for name in row["guests"]:
            if name not in GUESTS:
                raise Failure(f"{path} asks for the guest '{name}': there is {', '.join(GUESTS)}")
        found[path.parent.name] = Topic(name=path.parent.name, **row)
    return found


def topic(name: str) -> Topic:
    """The topic called @name; Failure names the known ones."""
    known = topics()
    if name not in known:
        raise Failure(f"unknown topic '{name}': patches/ has {', '.join(known)}")
    return known[name]


def chosen_topics(names: list[str] | None, base: Base) -> list[Topic]:
    """The topics called @names, or where there are none, every topic that has
    patches for @base; Failure for a name that is not known."""
    if names:
        return [topic(name) for name in names]
    return [one for one in topics().values() if one.patches(base)]


def arguments(description: str) -> argparse.ArgumentParser:
    """A parser with the options that nearly every step has: --base, and --kdir
    whose default is $KDIR."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--base", default="v6.18", help="a base of bases.toml (default: %(default)s)")
    parser.add_argument("--kdir", default=os.environ.get("KDIR"), help="your own kernel tree")
    return parser


def say(text: str) -> None:
    """One line of progress on standard output, with the wall time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def tail(path: Path, lines: int = 15) -> str:
    """The last @lines lines of a log, indented; empty if there is none."""
    try:
        text = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join("    " + line for line in text[-lines:])


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hex."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def output(*argv: str | Path, cwd: Path | None = None, env: dict | None = None,
           check: bool = True, text: str | None = None) -> str:
    """Run @argv and return its standard output, stripped.

    @text is its standard input.  Raises Failure with the last line of its
    standard error when it cannot be run, or exits non-zero and @check is set.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(words, cwd=cwd, env={**os.environ, **(env or {})}, input=text,
                              stdin=subprocess.DEVNULL if text is None else None,
                              capture_output=True, text=True, errors="replace")
    except OSError as err:
        raise Failure(f"cannot run {words[0]} ({err.strerror}): 'make install' installs what is "
                      "missing") from err
    if check and done.returncode:
        why = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise Failure(f"'{' '.join(words[:6])}' failed: {why}")
    return done.stdout.strip()


def logged(what: str, argv: list, log: Path, cwd: Path | None = None, env: dict | None = None,
           append: bool = False, every: float = 30.0) -> None:
    """Run @argv with its output in @log, saying every @every seconds how far
    it is; raises Failure with the log's path and last lines if it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with open(log, "ab" if append else "wb") as stream:
        try:
            child = subprocess.Popen([str(word) for word in argv], cwd=cwd, stdout=stream,
                                     stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                     env={**os.environ, **(env or {})})
        except OSError as err:
            raise Failure(f"cannot run {argv[0]} ({err.strerror}): 'make install' installs what is "
                          "missing") from err
        try:
            while True:
                try:
                    child.wait(every)
                    break
                except subprocess.TimeoutExpired:
                    with open(log, "rb") as lines:
                        count = sum(1 for _ in lines)
                    say(f"  {what}: {time.monotonic() - begin:.0f} s, {count} lines in {log}")
        except BaseException:
            child.terminate()
            child.wait()
            raise
    if child.returncode:
        text = log.read_text(errors="replace")
        if "No space left on device" in text:
            raise Failure(f"{what} ran out of disk: free some space below {cache()} and run it again")
        raise Failure(f"{what} failed (exit {child.returncode}); the log is {log} and ends:\n{tail(log)}")


@contextmanager
def lock(name: str):
    """Hold the cache's lock @name, so that two runs do not build or check out
    in the same tree; waits, and says so."""
    path = cache() / "lock" / name
    path.parent.mkdir(exist_ok=True)
    with open(path, "w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that holds {path}")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def run(main) -> None:
    """Run a step's main() as a program: a Failure or an interrupt becomes one
    message on standard error and exit status 1 or 130."""
    try:
        sys.exit(main() or 0)
    except Failure as err:
        print(f"error: {err}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("error: interrupted: run the same command again, it goes on where it stopped",
              file=sys.stderr)
        sys.exit(130)
    except OSError as err:
        print(f"error: {err.strerror or err} ({err.filename}): mend that and run the same command "
              "again", file=sys.stderr)
        sys.exit(1)
