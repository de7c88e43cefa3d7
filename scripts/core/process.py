# SPDX-License-Identifier: GPL-2.0
"""How a command is run, how progress and failures are told."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

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


def cannot_run(program: object, err: OSError) -> Failure:
    """What to say where @program could not be started because of @err."""
    if err.errno in (errno.EAGAIN, errno.ENOMEM):
        return Failure(f"cannot run {program} ({err.strerror}): this machine has no room for one more process, so end "
                       "other programs, or raise the limits (ulimit -u, pids.max)")
    return Failure(f"cannot run {program} ({err.strerror}): 'make install' installs what is missing")


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


def bash(path: Path) -> str:
    """The commands of the shell script @path, without the comment that it begins with."""
    text = path.read_text()
    return text[text.index("\n\n") + 1:]


def sha256(path: Path) -> str:
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
        raise cannot_run(words[0], err) from err
    if check and done.returncode:
        why = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise Failure(f"'{' '.join(words[:6])}' failed: {why}")
    return done.stdout.strip()


def logged(what: str, argv: list, log: Path, cwd: Path | None = None, env: dict | None = None,
           append: bool = False, every: float = 30.0, finish: bool = False) -> None:
    """Run @argv with its output in @log, saying every @every seconds how far
    it is; raises Failure with the log's path and last lines if it fails.  Who
    is interrupted ends it and what it has started, or if it has to @finish,
    waits for its end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with open(log, "ab" if append else "wb") as stream:
        try:
            child = subprocess.Popen([str(word) for word in argv], cwd=cwd, stdout=stream,
                                     stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                     env={**os.environ, **(env or {})}, start_new_session=True)
        except OSError as err:
            raise cannot_run(argv[0], err) from err
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
                # dpkg-buildpackage goes on with its make when the make above it ends.
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGTERM)
            child.wait()
            raise
    if child.returncode:
        text = log.read_text(errors="replace")
        # The log may be on the disk that is full.
        if "No space left on device" in text or free(log.parent) < 1 << 20:
            raise Failure(f"{what} ran out of disk: free some space on the disk that has {log} and run it again")
        raise Failure(f"{what} failed (exit {child.returncode}); the log is {log} and ends:\n{tail(log)}")


def free(path: Path) -> int:
    return shutil.disk_usage(path).free
