# SPDX-License-Identifier: GPL-2.0
"""What every step shares: where things are, the tables of bases and topics,
how a command is run, how a failure is told.

Nothing here changes a file outside the cache.  All paths are pathlib.Path.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KCONFIG = ROOT / "scripts" / "kconfig"
CONFIGS = ("bench", "trace", "debug", "check")
# The guests of other architectures; each is a configuration as well.  A topic
# may ask for the former.
GUESTS = ("arm64", "um")

# What series.toml says of a topic as a whole, and may say otherwise of a base.
PER_BASE = ("neighbours", "native", "emulated", "frames", "guests", "compared", "steps", "beside")
# How far a series is for a base.  Where the base has all of it, none is kept.
UPSTREAM = "upstream"
STATUS = ("complete", "in work", UPSTREAM)

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
    reference: bool = False
    uml: bool = False

    @property
    def fetched(self) -> bool:
        """Whether its source can be had without KDIR=."""
        return bool(self.pool or self.url)


# The keys that a row of bases.toml has to have, and those that it may have.
KEYS = [{one.name for one in fields(Base) if one.name != "name" and (one.default is MISSING) == needed}
        for needed in (True, False)]


@dataclass(frozen=True)
class Merged:
    """A part of a topic that a base has from upstream: what it is, the release
    that it came with, the commit's id or nothing."""

    what: str
    release: str
    commit: str

    def __str__(self) -> str:
        """As sentences have it."""
        return f"{self.what} since {self.release}" + (f" ({self.commit[:12]})" if self.commit else "")


@dataclass(frozen=True)
class State:
    """What one series.toml says of one base: how far the series is, what the
    base has of it, and those keys of PER_BASE that are not the topic's."""

    status: str
    merged: tuple[Merged, ...]
    own: dict


@dataclass(frozen=True)
class Topic:
    """One patches/<topic>/series.toml."""

    name: str
    summary: str
    kselftest: str
    metric: str
    neighbours: tuple[str, ...] = ()
    native: tuple[str, ...] = ()
    emulated: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    guests: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    steps: dict[str, int] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    base: dict[str, State] = field(default_factory=dict)

    def patches(self, base: Base) -> list[Path]:
        """The series for @base in order, without its cover letter."""
        return [p for p in sorted((ROOT / "patches" / self.name / base.name).glob("[0-9]*.patch"))
                if not p.name.startswith("0000-")]

    def cover(self, base: Base) -> Path:
        """The cover letter of the series for @base."""
        return ROOT / "patches" / self.name / base.name / "0000-cover-letter.patch"

    def on(self, base: Base) -> Topic:
        """The topic with what its series.toml says of @base alone."""
        return replace(self, **self.base[base.name].own) if base.name in self.base else self

    def merged(self, base: Base) -> tuple[Merged, ...]:
        """What @base has of the topic from upstream."""
        return self.base[base.name].merged if base.name in self.base else ()

    def upstream(self, base: Base) -> bool:
        """Whether @base has all of the topic, so that no series is kept."""
        return base.name in self.base and self.base[base.name].status == UPSTREAM

    def absent(self, base: Base) -> str:
        """Why there is no series for @base, in words that follow a colon, or
        nothing where there is one."""
        if self.upstream(base):
            return f"{base.tag} has it from upstream, {listed(self.merged(base))}, so use that release as it is"
        if self.patches(base):
            return ""
        kept = [f"BASE={one.name}" for one in bases().values() if self.patches(one)]
        return f"patches/{self.name}/{base.name} has no patches, " + (
            f"give {' or '.join(kept)}" if kept else f"begin with 'make tree TOPIC={self.name} BASE={base.name}'")


def listed(merged: tuple[Merged, ...]) -> str:
    """@merged as an enumeration within a sentence."""
    return ", ".join(map(str, merged))


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


def read_toml(path: Path) -> dict:
    """What the TOML file @path says; Failure where it cannot be read."""
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise Failure(f"cannot read {path} ({err}): fix it") from err


def bases() -> dict[str, Base]:
    """All bases of bases.toml by name; Failure where not exactly one is the
    reference."""
    table = read_toml(ROOT / "bases.toml").get("base")
    if not isinstance(table, dict) or not all(isinstance(row, dict) for row in table.values()):
        raise Failure("bases.toml has no tables of bases: each begins with a line like [base.\"v1.2\"]")
    for name, row in table.items():
        where = f"bases.toml, base {name},"
        expect(where, row, *KEYS)
        for key, value in row.items():
            kind = bool if key in ("reference", "uml") else str
            if not isinstance(value, kind):
                raise Failure(f"{where} has a '{key}' that is no {'true or false' if kind is bool else 'string'}: "
                              "see the other bases")
    found = {name: Base(name=name, **row) for name, row in table.items()}
    if sum(one.reference for one in found.values()) != 1:
        raise Failure("bases.toml has not one base with 'reference = true': mark the one that the mirrors are of")
    return found


def reference() -> Base:
    """The base that commands are about where none is named, and whose series'
    files are mirrored here."""
    return next(one for one in bases().values() if one.reference)


def base(name: str) -> Base:
    """The base called @name; Failure names the known ones."""
    known = bases()
    if name not in known:
        raise Failure(f"unknown base '{name}': bases.toml has {', '.join(known)}")
    return known[name]


def expect(where: str, row: dict, required: set[str], optional: set[str] = frozenset()) -> None:
    """Failure where the table @row, which is called @where, lacks a key of
    @required, or has one that is neither there nor in @optional."""
    for key in sorted(required - row.keys()):
        raise Failure(f"{where} has no '{key}': add it, as in the others")
    for key in sorted(row.keys() - required - optional):
        raise Failure(f"{where} has '{key}', which means nothing there: known are "
                      f"{', '.join(sorted(required | optional))}")


def plain(row: dict) -> dict:
    """@row with its lists as tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def state(where: str, row: dict) -> State:
    """The State that the table @row of a series.toml is, called @where."""
    expect(where, row, {"status", "merged"}, set(PER_BASE))
    if row["status"] not in STATUS:
        raise Failure(f"{where} has the status '{row['status']}': there are {', '.join(STATUS)}")
    if not isinstance(row["merged"], list) or not all(isinstance(one, dict) for one in row["merged"]):
        raise Failure(f"{where} has a 'merged' that is no list of tables: see the other topics")
    for one in row["merged"]:
        expect(f"{where}, merged,", one, {"what", "release", "commit"})
        if not re.fullmatch(r"|[0-9a-f]{12,40}", one["commit"]):
            raise Failure(f"{where} has the commit '{one['commit']}': give 12 hex digits or more, or '' if unknown")
    if row["status"] == UPSTREAM and not row["merged"]:
        raise Failure(f"{where} is '{UPSTREAM}' with nothing merged: say what and since which release")
    return State(row["status"], tuple(Merged(**one) for one in row["merged"]),
                 plain({key: value for key, value in row.items() if key in PER_BASE}))


def read_topic(path: Path) -> Topic:
    """The topic of the series.toml at @path; Failure for what is missing or
    unknown in it."""
    row = read_toml(path)
    keys = {one.name for one in fields(Topic)} - {"name"}
    needed = {one.name for one in fields(Topic) if one.default is MISSING and one.default_factory is MISSING}
    expect(str(path), row, needed - {"name"} | {"base"}, keys)
    found = Topic(name=path.parent.name, **{
        **plain(row), "base": {name: state(f"{path}, base {name},", one) for name, one in row["base"].items()}})
    known = bases()
    said = [found, *(replace(found, **one.own) for one in found.base.values())]
    for name in [*found.base, *(name for one in said for name in one.beside)]:
        if name not in known:
            raise Failure(f"{path} names the base '{name}': bases.toml has {', '.join(known)}")
    for name in (name for one in said for name in one.guests):
        if name not in GUESTS:
            raise Failure(f"{path} asks for the guest '{name}': there is {', '.join(GUESTS)}")
    return found


def topics() -> dict[str, Topic]:
    """All topics that have a patches/<topic>/series.toml, by name; Failure as
    read_topic() says."""
    return {path.parent.name: read_topic(path) for path in sorted((ROOT / "patches").glob("*/series.toml"))}


def topic(name: str) -> Topic:
    """The topic called @name; Failure names the known ones."""
    known = topics()
    if name not in known:
        raise Failure(f"unknown topic '{name}': patches/ has {', '.join(known)}")
    return known[name]


def need_series(one: Topic, base: Base, new: bool = False) -> Topic:
    """@one as it is on @base; Failure, saying why, where there is no series of
    it for @base, or if @new, where none can be begun since the base has all of
    it."""
    why = one.absent(base)
    if why and (one.upstream(base) or not new):
        raise Failure(f"topic '{one.name}' has no series for {base.name}: {why}")
    return one.on(base)


def chosen_topics(names: list[str] | None, base: Base) -> list[Topic]:
    """The topics called @names, or where there are none, every topic that has
    a series for @base, as they are on @base; Failure for a name that is not
    known, and where there is no series."""
    if names:
        return [need_series(topic(name), base) for name in names]
    found = [one.on(base) for one in topics().values() if not one.absent(base)]
    if not found:
        raise Failure(f"no topic has a series for {base.name}: give another base with BASE= ({', '.join(bases())})")
    return found


def arguments(description: str) -> argparse.ArgumentParser:
    """A parser with the options that nearly every step has: --base, and --kdir
    whose default is $KDIR."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--base", default=reference().name, help="a base of bases.toml (default: %(default)s)")
    parser.add_argument("--kdir", default=os.environ.get("KDIR"), help="your own kernel tree")
    return parser


def at_least(least: int, most: int | None = None):
    """The type of an argument that is a whole number from @least to @most, for
    argparse."""
    def number(text: str) -> int:
        """@text as a number; argparse prints the reason where it is none."""
        if not re.fullmatch(r"\d{1,9}", text) or int(text) < least or (most is not None and int(text) > most):
            span = f"of {least} or more" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number {span}")
        return int(text)

    return number


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


def write_json(path: Path, content: object) -> None:
    """Write @content to @path as JSON, all or nothing."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.rename(path)


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
           append: bool = False, every: float = 30.0, finish: bool = False) -> None:
    """Run @argv with its output in @log, saying every @every seconds how far
    it is; raises Failure with the log's path and last lines if it fails.  Who
    is interrupted ends it, or if it has to @finish, waits for its end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with open(log, "ab" if append else "wb") as stream:
        try:
            child = subprocess.Popen([str(word) for word in argv], cwd=cwd, stdout=stream,
                                     stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                     env={**os.environ, **(env or {})}, start_new_session=finish)
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
            if finish:
                say(f"waiting for {what}, which must not be stopped half-way")
            else:
                child.terminate()
            child.wait()
            raise
    if child.returncode:
        text = log.read_text(errors="replace")
        # The log may be on the disk that is full.
        if "No space left on device" in text or free(log.parent) < 1 << 20:
            raise Failure(f"{what} ran out of disk: free some space below {cache()} and run it again")
        raise Failure(f"{what} failed (exit {child.returncode}); the log is {log} and ends:\n{tail(log)}")


def free(path: Path) -> int:
    """The bytes that are free where @path is."""
    return shutil.disk_usage(path).free


def room_for_builds(what: str) -> None:
    """Failure where the cache has less room than @what takes, in GB: for the
    sources and build directories if they are not there, else for a guest."""
    needed, there = 3 if (cache() / "build").exists() else 15, free(cache()) >> 30
    if there < needed:
        raise Failure(f"{what} takes up to {needed} GB, and {cache()} has {there} GB free: make room there, or set "
                      "XDG_CACHE_HOME to a larger disk")


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
    message on standard error and exit status 1 or 130.  Who ends it otherwise
    ends its builds and guests, too."""
    def stop(number: int, _frame: object) -> None:
        """Leave in a way that runs what is in finally blocks."""
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup has SIGHUP ignored.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, stop)
    try:
        sys.exit(main() or 0)
    except Failure as err:
        print(f"error: {err}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("error: interrupted: run the same command again, what was downloaded or built is kept",
              file=sys.stderr)
        sys.exit(130)
    except subprocess.CalledProcessError as err:
        print(f"error: {err}: fix this and run the same command again", file=sys.stderr)
        sys.exit(1)
    except OSError as err:
        print(f"error: {err.strerror or err} ({err.filename}): fix this and run the same command "
              "again", file=sys.stderr)
        sys.exit(1)
