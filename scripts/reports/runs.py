# SPDX-License-Identifier: GPL-2.0
"""The runs of results/: each is a directory results/<base>/<date> that is written
once.  It has

  environment.json  what the figures of each topic were taken on and with
  summary.json      the rows: counts of each kernel, averages of what was timed
  boots.json        of what was timed, the values of every boot, by round
  suites.json       what other people's suites did, of a run of these
  unixbench.json    the boots of UnixBench, timed with all series together

What counts for a topic is found by reading all of them: a count is of the newest
run of the series as it is, and a time of all such runs on the same machine.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from core.locks import write_json
from core.model import ROOT, Base, Topic, chosen_topics
from core.process import Failure, output
from reports import stats
from reports.stats import AGAIN
from source.tree import apply, code_of

# What a row of summary.json has to have, and the kinds of evidence.
KEYS = ("topic", "metric", "unit", "condition", "evidence", "values")
EVIDENCE = {
    "counter": "Counters",
    "icount": "Instructions",
    "lines": "Shared cache lines",
    "timed-uml": "Time under User-Mode Linux",
}
TIMED = "timed-uml"
# What the condition of a row ends with that is another count of the base alone.
COUNTED_AGAIN = ", again"


@dataclass(frozen=True)
class Figures:
    """What the runs say of a topic: its @rows, the directories @runs that they
    are of, the newest last, and whether these are of the series as it is, or of a state
    whose figures still count; @notes: why these do, a sentence for each such state."""

    rows: list[dict]
    runs: list[Path]
    fresh: bool
    notes: tuple[str, ...] = ()


def read_json(path: Path) -> object:
    """What the file @path of a run has; Failure where it cannot be read."""
    try:
        return json.loads(path.read_text())
    except ValueError as err:
        raise Failure(f"cannot read {path} ({err}): take it from git again") from err


def read_summary(path: Path) -> list[dict]:
    """The rows of the summary.json at @path; Failure for what is no row."""
    rows = read_json(path)
    if not isinstance(rows, list):
        raise Failure(f"{path} is no list of rows: take it from git again")
    for number, row in enumerate(rows, 1):
        missing = [key for key in KEYS if key not in row] if isinstance(row, dict) else KEYS
        if missing:
            raise Failure(f"{path}, row {number}, has no '{missing[0]}': take it from git again")
        if row["evidence"] not in EVIDENCE:
            raise Failure(f"{path}, row {number}, has the evidence '{row['evidence']}': there are "
                          f"{', '.join(EVIDENCE)}")
        if not isinstance(row["values"], dict):
            raise Failure(f"{path}, row {number}, has no values of kernels: take it from git again")
    return rows


def key_of(row: dict) -> tuple[str, str, str]:
    return row["evidence"], row["metric"], row["condition"]


def more_is_better(unit: str) -> bool:
    """Whether a larger value in @unit is a gain: a rate, or what gets through,
    but not a time or a count for each operation."""
    return unit.endswith("/s") or unit in ("per s", "done", "touched") or unit.startswith("of ")


def change(row: dict) -> float | None:
    """The change of @row from the baseline to the series as a part of the
    baseline, or None where one of them is not there or is nothing."""
    before, after = row["values"].get("baseline"), row["values"].get("patched")
    if before is None or after is None or not before:
        return None
    return after / before - 1


def difference_error(row: dict) -> float:
    """How far series and base of @row, which has no ratio, may be apart by chance: of
    means that have a spread, twice the standard error of the difference; where the base
    was counted again, at least twice what that differs; of an exact count, 0."""
    spreads = [row.get("spreads", {}).get(side) for side in ("baseline", "patched")]
    error = 2 * sum(one["deviation"] ** 2 / one["number"] for one in spreads if one) ** 0.5
    return max(error, 2 * abs(row["again"] - row["values"]["baseline"])) if "again" in row else error


def twice_error(spread: dict) -> float:
    """Twice the standard error of a mean that has @spread."""
    return 2 * spread["deviation"] / spread["number"] ** 0.5


def change_error(row: dict) -> float:
    """How far change() of @row may be off by chance, as a part of the baseline: of means
    that have a spread, twice the standard error of their quotient; where the base was
    counted again, at least what that differs, twice."""
    values, spreads = row["values"], row.get("spreads", {})
    parts = [twice_error(one) / values[side] for side in ("baseline", "patched")
             if (one := spreads.get(side)) and values[side]]
    again = 2 * abs(row["again"] / values["baseline"] - 1) if "again" in row else 0
    return values["patched"] / values["baseline"] * max(sum(part ** 2 for part in parts) ** 0.5, again)


def base_again(row: dict) -> dict | None:
    """The statistics of the base against itself in @row; None where it was not timed so."""
    return row.get("statistics", {}).get("sides", {}).get(AGAIN)


def row_verdict(row: dict) -> str:
    """What @row says of the series: stats.BETTER, WORSE or CANNOT_TELL.  Of a
    time by the interval of its ratio, else by difference_error()."""
    if "statistics" in row:
        return stats.interval_verdict(row["statistics"]["interval"], more_is_better(row["unit"]))
    before, after = row["values"].get("baseline"), row["values"].get("patched")
    if before is None or after is None or before == after:
        return stats.CANNOT_TELL
    if abs(after - before) <= difference_error(row):
        return stats.CANNOT_TELL
    return stats.BETTER if (after > before) == more_is_better(row["unit"]) else stats.WORSE


def all_runs(base: Base) -> list[Path]:
    """The runs of @base, the newest last."""
    def age(path: Path) -> tuple[str, int]:
        date, _, number = path.name.partition(".")
        return date, int(number or 1)

    return sorted((path for path in (ROOT / "results" / base.name).glob("*")
                   if path.is_dir() and re.fullmatch(r"\d{4}-\d\d-\d\d(\.\d+)?", path.name)), key=age)


def free_directory(out: Path) -> Path:
    """@out, where a run is to be written; Failure where it is there: a run is never changed."""
    if out.exists():
        raise Failure(f"{out} is there, and a run is written once: give another directory with OUT=")
    return out


def new_directory(base: Base) -> Path:
    """A directory for a run of today, which is not there yet."""
    day = ROOT / "results" / base.name / time.strftime("%Y-%m-%d")
    number, path = 1, day
    while path.exists():
        number += 1
        path = day.with_name(f"{day.name}.{number}")
    return path


def write_run(out: Path, files: dict[str, object]) -> None:
    """Write a run into the directory @out, all or nothing; @files: name to what
    it has.  Failure as of free_directory()."""
    partial = free_directory(out).with_name(out.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name, content in files.items():
        if name == "boots.json":
            (partial / name).write_text(compact(content))
        else:
            write_json(partial / name, content)
    partial.rename(out)


def compact(boots: dict[str, dict]) -> str:
    """The boots.json of @boots, topic to its "cells", which name what was timed,
    and its "rounds", which have the values of each kernel in that order: a line
    for each of them."""
    topics = []
    for topic, found in boots.items():
        lists = ",\n".join(f"  {json.dumps(name)}: [\n" + ",\n".join(f"   {json.dumps(one)}" for one in found[name])
                           + "\n  ]" for name in ("cells", "rounds"))
        topics.append(f" {json.dumps(topic)}: {{\n{lists}\n }}")
    return "{\n" + ",\n".join(topics) + "\n}\n"


def codes(environment: dict, side: str, timed: bool = False) -> set[str]:
    """The code_of() the kernels of @side in a topic's @environment; @timed: of
    the timed kernels, with the benchmark in them."""
    if timed:
        return {kernel["timed code"] for kernel in environment["kernels"]
                if kernel["side"] == side and "timed code" in kernel}
    return {kernel["code"] for kernel in environment["kernels"] if kernel["side"] == side}


def by_key(boots: dict) -> list[dict]:
    """The rounds of @boots, as boots.json has them of a topic: the values of each
    kernel by key_of() its rows."""
    keys = [key_of(cell) for cell in boots["cells"]]
    return [{side: dict(zip(keys, values, strict=True)) for side, values in one.items()} for one in boots["rounds"]]


def boots_of(path: Path, topic: Topic) -> list[dict]:
    """The rounds of the run @path in which @topic was timed, by_key()."""
    file = path / "boots.json"
    found = read_json(file).get(topic.name) if file.exists() else None
    return by_key(found) if found else []


def statistics(rounds: list[dict], key: tuple) -> dict | None:
    """What @rounds, by_key(), say of the row that @key names: the
    ratio of the series to the base, with its interval, and as "sides" the ratio of
    every other kernel; AGAIN is the base itself.  None where it has no boots."""
    sides = dict.fromkeys(side for one in rounds for side in one if side != "baseline")
    found = {side: stats.paired(values) | {"rounds": len(values)} for side in sides
             if (values := stats.ratios(rounds, side, key))}
    if "patched" not in found:
        return None
    return found.pop("patched") | {"sides": found}


def averages(rounds: list[dict], key: tuple) -> dict[str, float]:
    """The stats.average() over rounds of each kernel of what @key names, as ratios are
    formed: in a round, the base is the mean of its two boots."""
    values: dict[str, list[float]] = {}
    for one in rounds:
        base = stats.base_values(one, key)
        known = {side: cells[key] for side, cells in one.items() if side != AGAIN and key in cells}
        for side, value in (known | ({"baseline": fmean(base)} if base else {})).items():
            values.setdefault(side, []).append(value)
    return {side: stats.average(found) for side, found in values.items()}


def base_kernels(environment: dict) -> dict[str, tuple[str, str]]:
    """What the base's kernel of each configuration in a topic's @environment is built from."""
    return {kernel.get("config", ""): (kernel["code"], kernel.get("config hash", ""))
            for kernel in environment["kernels"] if kernel["side"] == "baseline"}


def with_columns(row: dict, older: dict, sides: set[str]) -> dict:
    """@row with the columns @sides of the @older row that it does not have itself."""
    merged = {name: {side: value for side, value in older.get(name, {}).items() if side in sides} | row.get(name, {})
              for name in ("values", "details", "spreads")}
    return row | {name: found for name, found in merged.items() if found}


def topic_figures(base: Base, repo: Path, topic: Topic) -> Figures:
    """What the runs of @base say of @topic: of the series as it is in @repo, and of states
    whose figures still count what these runs do not have; where there is none, what the
    newest run has.  A row of the newest run has columns of an older one, with the same
    kernels of the base, that it does not have: all of the same series, or those of
    kernels that stand on the base."""
    with_topic = []
    for path in all_runs(base):
        file = path / "environment.json"
        known = read_json(file).get(topic.name) if file.exists() else None
        if known:
            with_topic.append((path, known))
    if not with_topic:
        return Figures([], [], False)

    # What follows in this order is newer, or counts more.
    states = topic.earlier(base) | {code_of(repo, apply(repo, base, [topic])): ""}
    counting = [(path, known, why) for code, why in states.items() for path, known in with_topic
                if code in codes(known, "patched")]
    used = counting or [(*with_topic[-1], "")]
    # A run may have counts alone.
    newest = next((known for path, known, _ in reversed(used) if boots_of(path, topic)), used[-1][1])
    rows, rounds, reasons, kernels = {}, [], {}, {}
    for path, known, why in used:
        own = {key_of(row): row for row in read_summary(path / "summary.json") if row["topic"] == topic.name}
        bases = base_kernels(known)
        for key in own.keys() & rows.keys():
            older = rows[key]
            if all(bases.get(config, one) == one for config, one in kernels[key].items()):
                sides = older["values"].keys() - {"baseline", "patched"}
                own[key] = with_columns(own[key], older, sides if why == reasons[key] else sides & {*topic.instead})
        rows |= own
        reasons |= dict.fromkeys(own, why)
        kernels |= dict.fromkeys(own, bases)
        # Kernels that differ in anything, or another machine, do not go into one mean.
        same = {side for side in {kernel["side"] for kernel in known["kernels"]}
                if codes(known, side, timed=True) == codes(newest, side, timed=True)}
        if known["host CPU"] == newest["host CPU"] and {"baseline", "patched"} <= same:
            rounds += [{side: values for side, values in one.items() if side in same or side == AGAIN}
                       for one in boots_of(path, topic)]
    for key, row in rows.items():
        found = statistics(rounds, key) if key[0] == TIMED else None
        if found:
            rows[key] = row | {"values": averages(rounds, key), "statistics": found}
        repeated = rows.get((*key[:2], key[2] + COUNTED_AGAIN))
        if repeated:
            rows[key] = row | {"again": repeated["values"]["baseline"]}
    return Figures(list(rows.values()), [path for path, *_ in used], bool(counting),
                   tuple(dict.fromkeys(filter(None, reasons.values()))))


def newest_suites(base: Base, name: str = "suites.json") -> Path | None:
    """The newest run of @base that has @name, or None."""
    found = [path for path in all_runs(base) if (path / name).exists()]
    return found[-1] if found else None


def fresh_suites(base: Base, repo: Path, run: Path, name: str = "suites.json") -> bool:
    """Whether suites ran on all series for @base as they are, and @name of @run has that."""
    kernels = read_json(run / name)["environment"]["kernels"]
    return code_of(repo, apply(repo, base, chosen_topics(None, base))) in {
        kernel["code"] for kernel in kernels if kernel["side"] == "patched"}


def write_report(base: Base, kdir: str | None) -> None:
    """Write the report of @base, and the blocks of figures in our texts; @kdir: the
    user's kernel tree, or nothing.  A program of its own, as it runs where matplotlib
    is."""
    output(sys.executable, ROOT / "scripts", "report", "--base", base.name, *(["--kdir", kdir] if kdir else []))
