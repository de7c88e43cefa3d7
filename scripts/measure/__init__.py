# SPDX-License-Identifier: GPL-2.0
"""What is measured for each topic: one module a topic, named after it, with a
list MEASUREMENTS, what is TIMED on machines on which time means something, and
NATIVE, which takes the time under User-Mode Linux, or None."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from build import Kernel

# Seconds that a timed run of a benchmark takes, where nobody says otherwise.
SECONDS = 3
# The words of a case that stand for the duration and for a directory.
DURATION, DIRECTORY = "{seconds}", "{directory}"


@dataclass(frozen=True)
class Measurement:
    """One boot of each kernel, and the rows that come out of it.

    @config: the kernel's configuration; @icount: whether instructions are
    counted (one virtual CPU); @plugin: what gives QEMU's -plugin, of the kernel
    and the run's directory (plugin.lines() and the like); @memory: QEMU's -m;
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


@dataclass(frozen=True)
class Timing:
    """What is timed of a topic, in a guest and on a machine that runs any kernel.

    @program: the benchmark, below regress/; @cases: its options for one run
    each, as the shell has them, with DURATION and DIRECTORY in them, for one
    JSON object each; @operations: the key of that object that says how many
    there were; @rows: makes rows of a list of these objects; @prepare: bash
    that makes the guest's @directory; @place: how the guest's rows call it, if
    the condition does not say it.
    """

    program: str
    cases: tuple[str, ...]
    operations: str
    rows: Callable[[list[dict]], list[dict]]
    prepare: str = ""
    directory: str = "/tmp"
    place: str = ""

    def argv(self, case: str, programs: Path, seconds: float, directory: Path) -> list[str]:
        """The command line that runs @case for @seconds, with the programs of
        regress/ in @programs, on files in @directory."""
        words = {DURATION: f"{seconds:g}", DIRECTORY: str(directory)}
        return [str(programs / self.program), *(words.get(word, word) for word in shlex.split(case)), "--json"]

    def script(self) -> str:
        """bash that runs all cases in a guest, into times.json."""
        lines = [shlex.join(self.argv(case, Path("kselftest/regress"), SECONDS, Path(self.directory)))
                 for case in self.cases]
        return self.prepare + "set -e\n" + "".join(f"{line} >> times.json\n" for line in lines)

    def guest_rows(self, run: Path) -> list[dict]:
        """The rows of a guest that ran script() in the directory @run."""
        return [{**one, "condition": one["condition"] + self.place}
                for one in self.rows(json_lines(run / "times.json"))]

    def measurement(self) -> Measurement:
        """The boot of a guest that times it."""
        return Measurement("time", "bench", self.script(), self.guest_rows)


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
    """The objects of a file that has one JSON object a line."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
