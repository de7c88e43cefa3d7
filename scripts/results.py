# SPDX-License-Identifier: GPL-2.0
"""Read the results of reference runs, and tell whether they are of the series as
they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from model import ROOT, Base, Topic, chosen_topics
from process import Failure, output
from stats import NO_DIFFERENCE
from tree import apply, code_of

# What a row of summary.json has to have, and the kinds of evidence.
KEYS = ("topic", "metric", "unit", "condition", "evidence", "values")
EVIDENCE = {
    "counter": "Counters",
    "icount": "Instructions",
    "lines": "Shared cache lines",
    "timed-uml": "Time under User-Mode Linux",
    "timed": "Time",
}
# What older results have besides, and nobody is shown any more: emulated wall time.
WITHDRAWN = "delay"


def read_summary(path: Path) -> list[dict]:
    """The rows of the summary.json at @path, without those of WITHDRAWN evidence;
    Failure for what is no row."""
    try:
        rows = json.loads(path.read_text())
    except ValueError as err:
        raise Failure(f"cannot read {path} ({err}): 'make bench' writes it again") from err
    if not isinstance(rows, list):
        raise Failure(f"{path} is no list of rows: 'make bench' writes it again")
    for number, row in enumerate(rows, 1):
        missing = [key for key in KEYS if key not in row] if isinstance(row, dict) else KEYS
        if missing:
            raise Failure(f"{path}, row {number}, has no '{missing[0]}': 'make bench' writes it again")
        if row["evidence"] not in (*EVIDENCE, WITHDRAWN):
            raise Failure(f"{path}, row {number}, has the evidence '{row['evidence']}': there are "
                          f"{', '.join(EVIDENCE)}")
        if not isinstance(row["values"], dict) or "/" in str(row["metric"]):
            raise Failure(f"{path}, row {number}, has values or a metric that no report can be made of: 'make bench' "
                          "writes it again")
    return [row for row in rows if row["evidence"] != WITHDRAWN]


def change(row: dict) -> float | None:
    """The change of @row from the baseline to the series as a part of the
    baseline, or None where one of them is not there or is nothing."""
    before, after = row["values"].get("baseline"), row["values"].get("patched")
    if before is None or after is None or not before:
        return None
    return after / before - 1


def more_is_better(unit: str) -> bool:
    """Whether a larger value in @unit is a gain: a rate, or what gets through,
    but not a time or a count for each operation."""
    return unit.endswith("/s") or unit == "per s" or unit.startswith("of ")


def worse(row: dict) -> float:
    """By what part of the baseline @row got worse; less than 0 if it got
    better, and 0 where nothing can be said."""
    if "statistics" in row and row["statistics"]["verdict"] == NO_DIFFERENCE:
        return 0
    moved = change(row) or 0
    return -moved if more_is_better(row["unit"]) else moved


def compared(row: dict) -> bool:
    """Whether two kernels are to be compared by @row: not by the mean of shared
    lines, which has what timers and other tasks touch."""
    return not row["metric"].endswith("_mean")


def newest(base: Base, topic: Topic) -> Path | None:
    """The newest results directory of @base that has @topic, or None."""
    found = sorted((ROOT / "results" / base.name).glob(f"*/environment-{topic.name}.json"))
    return found[-1].parent if found else None


def fresh(base: Base, repo: Path, topic: Topic, results: Path) -> bool:
    """Whether the figures of @topic in the directory @results are of its series
    for @base as it is: but for comments, pages, tools, other architectures and who
    maintains what."""
    kernels = json.loads((results / f"environment-{topic.name}.json").read_text())["kernels"]
    codes = {kernel.get("code") for kernel in kernels if kernel.get("side") == "patched"}
    return code_of(repo, apply(repo, base, [topic])) in codes


def newest_suites(base: Base) -> Path | None:
    """The newest results directory of @base in which suites are, or None."""
    found = sorted((ROOT / "results" / base.name).glob("*/suites.json"))
    return found[-1].parent if found else None


def fresh_suites(base: Base, repo: Path, results: Path) -> bool:
    """Whether suites ran on all series for @base as they are, and the directory
    @results has that."""
    kernels = json.loads((results / "suites.json").read_text())["environment"]["kernels"]
    codes = {kernel["code"] for kernel in kernels if kernel["side"] == "patched"}
    return code_of(repo, apply(repo, base, chosen_topics(None, base))) in codes


def write_report(out: Path, kdir: str | None) -> None:
    """Write the report of the results directory @out, and README's table; @kdir:
    the user's kernel tree, or nothing.  A program of its own, as it runs where
    matplotlib is."""
    output(sys.executable, ROOT / "scripts/report.py", *(["--kdir", kdir] if kdir else []), out)
