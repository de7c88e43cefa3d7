# SPDX-License-Identifier: GPL-2.0
"""What is measured for each topic: one module a topic, named after it, with a
list MEASUREMENTS, and NATIVE, which takes the time under User-Mode Linux, or None."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from source.build import Kernel


@dataclass(frozen=True)
class Measurement:
    """One boot of each kernel, and the rows that come out of it.

    @config: the kernel's configuration; @icount: whether instructions are
    counted (one virtual CPU); @plugin: what gives QEMU's -plugin, of the kernel
    and the run's directory (plugin.lines_option() and the like); @memory: QEMU's -m;
    @timeout: seconds; @sides: what is compared, or nothing for all columns;
    @script: bash, run in a directory that has the installed kselftests in
    kselftest/; @rows: makes summary rows of the run's directory, each with
    'metric', 'unit', 'condition', 'evidence' and 'value'.
    """

    name: str
    config: str
    script: str
    rows: Callable[[Path], list[dict]]
    icount: bool = False
    cpus: int = 2
    memory: str = "1G"
    timeout: float = 900
    sides: tuple[str, ...] = ()
    plugin: Callable[[Kernel, Path], str] | None = None


def row(metric: str, unit: str, condition: str, evidence: str, value: float) -> dict:
    """One row of one kernel's summary; values are kept to six digits."""
    return {"metric": metric, "unit": unit, "condition": condition, "evidence": evidence,
            "value": float(f"{value:.6g}")}


def size_name(size: int) -> str:
    """How conditions call @size bytes."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


def json_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
