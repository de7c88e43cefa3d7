#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write what the runs of a base say: results/<base>/report.md, all rows beside it
as rows.csv, what other machines measured as machines.md, the figure, and the blocks of
figures in our texts.

Nothing of it is edited by hand, and no run is changed.
"""

import csv
import io
import os
import sys
from pathlib import Path

from core.command import arguments, run
from core.install import need, tool
from core.model import ROOT, Base, Topic
from core.process import say
from reports import figures
from reports import linesmodel
from reports import machines
from reports import plot
from reports.figures import interval, mean, number
from reports.stats import CANNOT_TELL, WORSE, narrow
from reports.suites_table import suites_section
from source.fetch import repository

from reports.runs import (AGAIN, EVIDENCE, TIMED, Figures, averages, by_key, change, fresh_suites, key_of,
                          newest_suites, read_json, row_verdict, statistics)

INTRODUCTION = """Counts are exact, or means ± twice their standard error: `counter` from tracepoints of the `trace`
kernel, `icount` executed instructions of the `bench` kernel in QEMU, `lines` cache lines that one CPU writes and
another touches. Time is that of kernels that run natively as User-Mode Linux on two CPUs: in each round every kernel
is booted once, the base twice; the ratio to the base is the geometric mean of the middle half of the rounds, with its
95 % bootstrap interval over rounds, and A/A is the base against itself. A row is better or worse where its interval is
clear of 1.
[methodology.rst](../../Documentation/methodology.rst) has the rest, [rows.csv](rows.csv) all rows."""
UNIXBENCH = """Programs of {version} on tmpfs, one copy and two at once, for a second or two in each of {rounds}
rounds: operations, or KB, a second; the series are all together. System calls, page faults and new processes are far
dearer under User-Mode Linux than on a machine, and these programs do little else: what the series change is a smaller
part of each row than it would be there. {compiler}, host {cpu}."""
UNIXBENCH_EARLIER = "These ran with an earlier state of the series: `make suites`."
COLUMNS = ("topic", "evidence", "metric", "condition", "unit", "kernel", "value", "deviation", "samples", "ratio",
           "low", "high", "rounds")
# Rows of a topic that got worse, at most, in the report; all are in rows.csv.
MOST_WORSE = 8


def markdown(heads: list[str], lines: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads),
            *("| " + " | ".join(line) + " |" for line in lines)]


def chosen_rows(topic: Topic, own: Figures) -> list[str]:
    lines = []
    for wanted in topic.row:
        row = figures.find(topic, wanted, own.rows)
        lines.append([wanted.label + (" (the price)" if wanted.cost else ""), mean(row, "baseline"),
                      mean(row, "patched"), figures.moved(row), row_verdict(row)])
    return markdown(["", "base", "series", "change", "verdict"], lines) if lines else []


def timed_table(rows: list[dict]) -> list[str]:
    """The table of the timed rows of @rows that are better or worse, with the other
    kernels' ratios, and below it a list of the rows that cannot be told."""
    others = list(dict.fromkeys(side for row in rows for side in row["statistics"]["sides"] if side != AGAIN))
    lines, untold = [], []
    for row in rows:
        found = row["statistics"]
        what = row["condition"] + ("" if row["metric"] == "throughput" else f", {row['metric']} in {row['unit']}")
        if row_verdict(row) == CANNOT_TELL:
            untold.append(f"{what} {interval(found)}")
            continue
        lines.append([what, number(row["values"]["baseline"]), interval(found), interval(found["sides"][AGAIN]),
                      row_verdict(row),
                      *(f"{found['sides'][side]['ratio']:.2f}" if side in found["sides"] else "" for side in others)])
    heads = ["condition", "base", "series / base", "A/A", "verdict", *(f"{side} / base" for side in others)]
    table = [*markdown(heads, lines), ""] if lines else []
    return [*table, f"Cannot tell: {'; '.join(untold)}.", ""] if untold else table


def worse_rows(rows: list[dict]) -> list[str]:
    """The counts of @rows that got worse, those first that did most, MOST_WORSE at
    most, as a table; means of lines, which have what timers and other tasks touch,
    are left out."""
    found = sorted((row for row in rows if row["evidence"] != TIMED and row_verdict(row) == WORSE
                    and not row["metric"].endswith("_mean") and figures.moved(row) != "0 %"),
                   key=lambda row: -abs(change(row) or 1e9))
    lines = [[f"`{row['metric']}`", row["condition"], mean(row, "baseline"), mean(row, "patched"), figures.moved(row)]
             for row in found[:MOST_WORSE]]
    more = [f"and {len(found) - MOST_WORSE} more, in rows.csv"] if len(found) > MOST_WORSE else []
    return [*markdown(["metric", "condition", "base", "series", "change"], lines), *more] if lines else []


def topic_section(topic: Topic, own: Figures, base: Base) -> list[str]:
    lines = [f"## {topic.name}: {topic.summary}", ""]
    if not own.rows:
        return [*lines, f"Not measured yet: `make bench TOPIC={topic.name}`.", ""]
    without = figures.gap(topic, own)
    where = read_json(own.runs[-1] / "environment.json")[topic.name]
    lines += [f"{', '.join(f'[{path.name}]({path.name})' for path in own.runs)}: {where['base']}, {where['compiler']}, "
              f"{where['qemu'].split(' (')[0]}, host {where['host CPU']}.", ""]
    if not own.fresh:
        return [*lines, without, ""]
    lines += [*([without] if without else chosen_rows(topic, own)), ""]
    lines += [line for one in own.notes for line in (one, "")]
    timed = [row for row in own.rows if "statistics" in row]
    if timed:
        part = sum(narrow(row["statistics"]) for row in timed) / len(timed)
        told = [row_verdict(row) for row in timed]
        lines += [f"Time, {min(row['statistics']['rounds'] for row in timed)} rounds or more: "
                  + ", ".join(f"{told.count(word)} {word}" for word in dict.fromkeys([*told, WORSE, CANNOT_TELL]))
                  + f". The interval reaches no further than 5 % in {100 * part:.0f} % of the rows.", "",
                  *timed_table(timed)]
    worse = worse_rows(own.rows)
    if worse:
        lines += ["Counts that got worse:", "", *worse, ""]
    return lines + linesmodel.model_section(own)


def unixbench_section(base: Base, repo: Path) -> list[str]:
    """What the newest unixbench.json says, as lines; none where there is none."""
    name = "unixbench.json"
    run = newest_suites(base, name)
    if not run:
        return []
    found = read_json(run / name)
    taken, conditions = by_key(found), found["environment"]
    rows = [cell | {"values": averages(taken, key_of(cell)), "statistics": statistics(taken, key_of(cell))}
            for cell in found["cells"]]
    return ["## UnixBench", "", *([] if fresh_suites(base, repo, run, name) else [UNIXBENCH_EARLIER, ""]),
            UNIXBENCH.format(version=found["version"], rounds=len(taken), compiler=conditions["compiler"],
                             cpu=conditions["host CPU"]), "", *timed_table(rows)]


def rows_csv(known: list[tuple[Topic, Figures]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for topic, own in known:
        for row in sorted(own.rows if own.fresh else [], key=lambda row: list(EVIDENCE).index(row["evidence"])):
            found = row.get("statistics")
            ratios = {"patched": found, **found["sides"]} if found else {}
            for side in dict.fromkeys([*row["values"], *ratios]):
                spread = row.get("spreads", {}).get(side, {})
                own_ratio = ratios.get(side, {})
                told = [own_ratio.get("ratio", ""), *own_ratio.get("interval", ("", ""))]
                writer.writerow([topic.name, row["evidence"], row["metric"], row["condition"], row["unit"], side,
                                 row["values"].get(side, ""), spread.get("deviation", ""), spread.get("number", ""),
                                 *(f"{one:.4g}" if one != "" else "" for one in told),
                                 own_ratio.get("rounds", "")])
    return out.getvalue()


def write_files(out: Path, base: Base, repo: Path, known: list[tuple[Topic, Figures]]) -> None:
    """Write report.md, rows.csv and the figure of the topics @known into @out: rows of
    series as they are in @repo."""
    lines = [f"# What was measured on {base.tag}", "", INTRODUCTION, ""]
    if plot.plot([(topic, own) for topic, own in known if own.fresh], base.version, out / "figure.svg"):
        lines += ["![series / base](figure.svg)", ""]
    for topic, own in known:
        lines += topic_section(topic, own, base)
    if machines.files(base):
        lines += ["## Other machines", "", "[machines.md](machines.md) has what they measured.", ""]
    suites = newest_suites(base)
    if suites:
        lines += suites_section(read_json(suites / "suites.json"), fresh_suites(base, repo, suites))
    lines += unixbench_section(base, repo)
    (out / "report.md").write_text("\n".join(lines).rstrip() + "\n")
    (out / "rows.csv").write_text(rows_csv(known))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--add", type=Path, help="take in this file of a bundle's ./run first")
    args = parser.parse_args()
    base = args.base
    python = tool("python")
    if Path(sys.prefix) != python.parent.parent:
        # The plots need matplotlib, which the private environment has.
        os.execv(python, [str(python), str(ROOT / "scripts"), "report", *sys.argv[1:]])
    need("source")
    if args.add:
        say(f"report: taken in as {machines.add(base, args.add)}")
    repo = repository(base, args.kdir)
    known = figures.load(base, repo)
    out = ROOT / "results" / base.name
    write_files(out, base, repo, list(known.values()))
    say(f"report: {out / 'report.md'}")
    others = machines.page(base, repo, [topic for topic, _ in known.values()])
    if others:
        (out / "machines.md").write_text(others)
        say(f"report: {out / 'machines.md'}")
    for path, text in figures.out_of_date(base, known):
        path.write_text(text)
        say(f"report: {path}")


if __name__ == "__main__":
    run(main)
