# SPDX-License-Identifier: GPL-2.0
"""Build our plugin of QEMU, which is loaded as it runs: see lines/lines.c."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from build import REGRESS, Kernel, compiler
from locks import cache
from model import ROOT
from process import Failure, output, sha256

SOURCE = ROOT / "scripts" / "lines"
# What the program in the guest has in common with it.
MARKS = REGRESS / "lines"
# Where the kernel handles the timer of a virtual CPU.
TICK = "sysvec_apic_timer_interrupt"


def command(gcc_output: Path) -> list[str | Path]:
    """What compiles the plugin into @gcc_output."""
    return ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-I", MARKS, "-o", gcc_output,
            SOURCE / "lines.c"]


def built() -> Path:
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


def quoted(path: Path) -> str:
    """@path within an option of QEMU, where a comma ends a value."""
    return str(path).replace(",", ",,")


def lines(kernel: Kernel, run_dir: Path) -> str:
    """What QEMU's -plugin takes to record memory accesses of @kernel's guest in
    lines.json of @run_dir.  Raises Failure where the kernel lacks TICK."""
    found = [line.split() for line in output("nm", kernel.path / "vmlinux").splitlines() if line.endswith(f" {TICK}")]
    if not found:
        raise Failure(f"{kernel.path / 'vmlinux'} has no {TICK}(): the plugin is for x86-64")
    return f"{quoted(built())},out={quoted(run_dir / 'lines.json')},tick={found[0][0]}"
