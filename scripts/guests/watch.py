# SPDX-License-Identifier: GPL-2.0
"""Watch a guest from its start to its end, whatever runs it: its directory, its
logs, its time limit.

What the guest's kernel says goes to console.log; a script that the guest runs
in the directory prints to output.log and leaves its exit status in status.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from core.locks import cache
from core.process import Failure, cannot_run, say, tail
from guests.klog import reports

# Seconds between two looks at a guest, between two lines of progress, and that
# a guest has to print the rest of its first report: tests prove nothing after
# one, and what lockdep has found may be a deadlock in earnest.
LOOK = 3
PROGRESS = 30
GRACE = 20


@dataclass(frozen=True)
class Ran:
    """What came out of a guest: the script's exit status (None: the guest was
    ended at the first report in its log), the run's directory and in it
    console.log (the kernel's) and output.log (the script's)."""

    status: int | None
    path: Path

    @property
    def console(self) -> Path:
        return self.path / "console.log"

    @property
    def output(self) -> Path:
        return self.path / "output.log"

    def reports(self) -> list[str]:
        return reports(self.console.read_text(errors="replace"))


class Unfinished(Failure):
    """A guest that did not come to the end of its script; @ran is what it left."""

    def __init__(self, text: str, ran: Ran):
        super().__init__(text)
        self.ran = ran


class Late(Unfinished):
    """A guest that was stopped at its time limit."""


class BootFailed(Unfinished):
    """A guest that ended before it ran a line of its script."""


# The run directories that this process has, and their locks, which end with it.
HELD = {}


def run_directory(name: str) -> Path:
    """A new, empty directory in the cache for a guest run called @name, or
    name.2 and so on while other processes have those; what is left of a former
    run is removed."""
    for number in count(1):
        path = cache() / "run" / (name if number == 1 else f"{name}.{number}")
        path.parent.mkdir(exist_ok=True)
        if path not in HELD:
            lock = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_WRONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            HELD[path] = lock
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path


def attend(child: subprocess.Popen, ran: Ran, timeout: float, label: str) -> None:
    """Wait for the end of @child, which runs the guest of @ran, saying how far
    it is, or for GRACE seconds after the first report in its log.  Raises
    Late where it takes more than @timeout seconds."""
    begin = told = time.monotonic()
    ends, seen = timeout, 0
    while child.poll() is None:
        now = time.monotonic()
        if now - begin >= ends:
            if ends < timeout:
                if ran.reports():
                    return
                # The rest of it says that it is a known one.
                ends = timeout
                continue
            raise Late(f"{label} did not finish in {timeout:.0f} s and was stopped; its log is {ran.console}, "
                       f"its output {ran.output}, and they end:\n{tail(ran.console)}\n{tail(ran.output)}", ran)
        try:
            child.wait(min(ends - (now - begin), LOOK))
        except subprocess.TimeoutExpired:
            pass
        size = ran.console.stat().st_size
        if ends == timeout and size > seen:
            # From the beginning of the line that was not complete last time.
            with open(ran.console, "rb") as log:
                log.seek(seen)
                text = log.read(size - seen)
            # Of a line that is not complete, the part that tells may be missing.
            whole = text[:text.rfind(b"\n") + 1]
            if reports(whole.decode(errors="replace")):
                ends = min(timeout, time.monotonic() - begin + GRACE)
                say(f"guest: {label}: there is a report in {ran.console}, which ends it")
            seen += len(whole)
        if time.monotonic() - told >= PROGRESS:
            told = time.monotonic()
            last = tail(ran.output, 1).strip()
            say(f"  {label}: {told - begin:.0f} s{': ' if last else ''}{last[:90]}")


def watch(argv: list[str], run_dir: Path, script: str, timeout: float, label: str, console: str = "stderr",
          env: dict | None = None) -> Ran:
    """Run @argv, which boots a guest that runs @run_dir's script.sh with its
    output in output.log and then writes its exit status to status, until it
    ends or its kernel reports something wrong.  The kernel's log is what @argv
    prints on the stream @console, or on "both"; @timeout is in seconds.  Raises
    Unfinished with the kept log's path and last lines where the guest hangs,
    panics or never gets to the script."""
    run_dir.mkdir(parents=True, exist_ok=True)
    for name in ("output.log", "status"):
        (run_dir / name).unlink(missing_ok=True)
    (run_dir / "script.sh").write_text(script)
    done = Ran(None, run_dir)
    said = run_dir / "machine.log"
    say(f"guest: {label} (log: {done.console})")
    with open(done.console, "wb") as log, open(said, "wb") as out:
        streams = {name: log if console in (name, "both") else out for name in ("stdout", "stderr")}
        try:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=env, cwd="/", start_new_session=True,
                                     **streams)
        except OSError as err:
            raise cannot_run(argv[0], err) from err
        try:
            attend(child, done, timeout, label)
            stopped = child.poll() is None
        finally:
            # QEMU may be a child of the child: take the whole session down.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
    try:
        return Ran(int((run_dir / "status").read_text()), run_dir)
    except (OSError, ValueError):
        pass
    if stopped and done.output.exists():
        return done
    how = f"was killed by signal {-child.returncode}" if child.returncode < 0 else f"exited with {child.returncode}"
    kind, when = (Unfinished, "ended") if done.output.exists() else (BootFailed, "began")
    raise kind(f"{label} died before its script {when} ({Path(argv[0]).name} {how}); its log is {done.console} "
               f"and ends:\n{tail(done.console)}\n{tail(said, 5)}", done)
