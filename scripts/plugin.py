# SPDX-License-Identifier: GPL-2.0
"""Build our plugin of QEMU, which is loaded as it runs: see lines/lines.c."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from build import REGRESS, compiler
from locks import cache
from model import ROOT
from process import output, sha256

SOURCE = ROOT / "scripts" / "lines"
# What the program in the guest has in common with it.
MARKS = REGRESS / "lines"


def command(gcc_output: Path) -> list[str | Path]:
    """What compiles the plugin into @gcc_output."""
    return ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-I", MARKS, "-o", gcc_output,
            SOURCE / "lines.c"]


def lines() -> Path:
    """The plugin in the cache, compiled where it is not there yet for these
    sources and this compiler.  Raises Failure where it does not compile."""
    sources = [SOURCE / "lines.c", SOURCE / "qemu_plugin.h", MARKS / "marks.h"]
    key = hashlib.sha256(" ".join([*map(sha256, sources), compiler()]).encode()).hexdigest()[:16]
    path = cache() / "plugin" / key / "lines.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"lines.{os.getpid()}.part")
        output(*command(partial))
        partial.rename(path)
    return path
