# SPDX-License-Identifier: GPL-2.0
"""The runs of `make bench-host` that are kept: a directory for each name, with
a file for each boot.

They are not in the cache, which is there to be cleaned: a boot cannot be had
again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

from locks import write_json
from machine import differences
from process import Failure

# Raise this when the rows of older runs do not mean the same any more.
FORMAT = 1
KEYS = ("format", "boot", "date", "machine", "kernel", "settings", "rows")


def home() -> Path:
    """Where it lies: $XDG_DATA_HOME/hotpaths, which is made; Failure where it
    cannot be."""
    path = Path(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")) / "hotpaths"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise Failure(f"cannot make {path} ({err.strerror}): set XDG_DATA_HOME to a directory you may write") from err
    return path


def directory(name: str) -> Path:
    """The directory of the run called @name, whether or not it is there;
    Failure where this is no name."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._+-]*", name):
        raise Failure(f"'{name}' cannot be the name of a run: use letters, digits, dots and dashes")
    return home() / "host" / name


def read(path: Path) -> dict:
    """One boot of a run; Failure for what is none."""
    try:
        boot = json.loads(path.read_text())
    except ValueError as err:
        raise Failure(f"cannot read {path} ({err}): remove it, and boot that kernel once more") from err
    missing = [key for key in KEYS if key not in boot] if isinstance(boot, dict) else KEYS
    if missing or boot["format"] != FORMAT:
        raise Failure(f"{path} is no boot of a run of this release: remove it, and boot that kernel once more")
    return boot


def boots(name: str) -> list[dict]:
    """The boots of the run called @name, the oldest first; none where there is
    no such run."""
    return sorted((read(path) for path in directory(name).glob("boot-*.json")), key=lambda boot: boot["date"])


def names() -> list[str]:
    """The names of all runs."""
    return sorted({path.parent.name for path in home().glob("host/*/boot-*.json")})


def refuse(name: str, boot: dict) -> None:
    """Failure where @boot, a record without rows, does not belong to the run
    called @name: another machine, kernel or way to measure."""
    for known in boots(name):
        found = [line for key in ("machine", "settings") for line in differences(known[key], boot[key])]
        found += differences(*({key: one["kernel"][key] for key in ("release", "version")} for one in (known, boot)))
        if found:
            raise Failure(f"the run '{name}' has a boot that differs from this one ({'; '.join(found)}): "
                          "give another name with SAVE=")


def add(name: str, boot: dict, config: str) -> Path:
    """Write @boot into the run called @name, and the kernel's @config beside it
    if there is one; the path.  Topics that the same boot has been measured with
    before are kept, unless they were measured again."""
    place = directory(name)
    place.mkdir(parents=True, exist_ok=True)
    if config:
        digest = hashlib.sha256(config.encode()).hexdigest()[:12]
        (place / f"config-{digest}").write_text(config)
        boot = {**boot, "kernel": {**boot["kernel"], "config": f"config-{digest}"}}
    path = place / f"boot-{boot['boot']}.json"
    if path.exists():
        before, again = read(path), {one["topic"] for one in boot["rows"]}
        boot = {**boot, **{key: [one for one in before.get(key, []) if one["topic"] not in again] + boot.get(key, [])
                           for key in ("rows", "skipped", "waits")}}
    write_json(path, boot)
    return path


def config_of(name: str, boot: dict) -> str:
    """The kernel's configuration that is kept beside @boot of the run @name,
    empty where there is none."""
    kept = boot["kernel"].get("config")
    path = directory(name) / kept if kept else None
    return path.read_text() if path and path.exists() else ""
