# SPDX-License-Identifier: GPL-2.0
"""The cache directory, and what keeps two runs from each other's way in it.

Nothing but the cache is written by a step that is not asked to.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from pathlib import Path

from core.process import Failure, free, say


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


def data_home() -> Path:
    """$XDG_DATA_HOME/hotpaths, which has what `make clean` leaves alone."""
    return Path(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")) / "hotpaths"


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


def write_json(path: Path, content: object) -> None:
    """Write @content to @path as JSON, all or nothing; what a run that was
    killed has left of that is removed."""
    for left in path.parent.glob(f"{path.name}.*.part"):
        if not Path("/proc", left.suffixes[-2][1:]).exists():
            left.unlink(missing_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.rename(path)


def room_for_builds(what: str) -> None:
    """Failure where the cache has less room than @what takes, in GB: for the
    sources and build directories if they are not there, else for a guest."""
    needed, there = 3 if (cache() / "build").exists() else 15, free(cache()) >> 30
    if there < needed:
        raise Failure(f"{what} takes up to {needed} GB, and {cache()} has {there} GB free: make room there, or set "
                      "XDG_CACHE_HOME to a larger disk")
