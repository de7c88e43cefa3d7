#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write report.md and its plots from the summary.json of a results directory,
and from nothing else but the environment beside it."""

import json
import os
import sys
from itertools import groupby
from pathlib import Path

from command import arguments, run
from install import tool
from model import topics
from process import Failure, say

EVIDENCE = {
    "counter": "Mechanism counters",
    "icount": "Instructions",
    "delay": "Waiting for a slow device",
    "timed": "Time",
}
# What a row of summary.json has to have.
KEYS = ("topic", "metric", "unit", "condition", "evidence", "values")
CONDITIONS = {
    "counter": "Exact counts from upstream tracepoints on the `trace` kernel (2 virtual CPUs).",
    "icount": "Executed instructions, from QEMU TCG with `-icount shift=0,sleep=off` and one virtual CPU. "
              "What is under a mutex or lock is counted on the `trace` kernel, whose lockdep and tracing are part of "
              "the count on both sides; the rest on the `bench` kernel. An emulated `rep movs` counts each "
              "iteration, so large copies weigh more than on hardware.",
    "delay": "Wall time in a guest (`trace` kernel, 2 virtual CPUs) whose device takes some milliseconds for "
             "each request, as its rows say: it tells who waits for requests and who does not, and how often; less "
             "than a millisecond means nothing.",
    "timed": "Median over boots, the boot being the unit of replication; ratio of medians with a 95 % "
             "bootstrap interval, p from an exact rank test, and the same of the baseline against itself.",
}
# Of the baseline, the series, and what else is compared.
COLOURS = {"baseline": "#9aa5b1", "patched": "#2f6f9f"}
OTHERS = ("#c98b2b", "#6a9a5b", "#8f6aa8")


def number(value: float) -> str:
    """A value as the table shows it: no more digits than it has meaning."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def change(values: dict) -> str:
    """The change from baseline to patched in per cent, '' without either."""
    before, after = values.get("baseline"), values.get("patched")
    if before is None or after is None:
        return ""
    if before == after:
        return "0 %"
    return "n/a" if not before else f"{(after - before) / before * 100:+.1f} %"


def table(rows: list[dict]) -> list[str]:
    """Rows of one topic and kind of evidence as a Markdown table.  Every cell
    is there, also one that did not move or got worse."""
    columns = []
    for cell in rows:
        columns += [name for name in cell["values"] if name not in columns]
    timed = any("statistics" in cell for cell in rows)
    heads = ["metric", "condition", *columns, "change"] + (["ratio", "noise", "p"] if timed else []) + ["unit"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for cell in rows:
        words = [f"`{cell['metric']}`", cell["condition"]]
        words += [number(cell["values"][name]) if name in cell["values"] else "" for name in columns]
        words.append(change(cell["values"]))
        if timed:
            found = cell["statistics"]
            words += [f"{found['ratio']:.3f} [{found['interval'][0]:.3f}, {found['interval'][1]:.3f}]",
                      f"{found['noise ratio']:.3f} [{found['noise interval'][0]:.3f}, "
                      f"{found['noise interval'][1]:.3f}]", f"{found['p']:.3f}"]
        lines.append("| " + " | ".join([*words, cell["unit"]]) + " |")
    return lines


def plot(rows: list[dict], title: str, path: Path) -> None:
    """What was compared side by side, a bar for each in every row, as SVG."""
    import matplotlib
    matplotlib.use("svg")
    # No date and fixed ids: the same figures give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "hotpaths"
    from matplotlib import pyplot

    sides = list(dict.fromkeys(side for cell in rows for side in cell["values"]))
    colours = {**dict(zip([side for side in sides if side not in COLOURS], OTHERS, strict=False)), **COLOURS}
    height = 0.8 / len(sides)
    figure, axes = pyplot.subplots(figsize=(7, 0.275 * len(sides) * len(rows) + 1.2))
    for nth, side in enumerate(sides):
        values = [cell["values"].get(side, 0) for cell in rows]
        places = [place + (nth - (len(sides) - 1) / 2) * height for place in range(len(rows))]
        bars = axes.barh(places, values, 0.95 * height, label=side, color=colours[side])
        axes.bar_label(bars, [number(value) for value in values], padding=3, fontsize=8)
    axes.set_yticks(range(len(rows)), [cell["condition"] for cell in rows], fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel(rows[0]["unit"], fontsize=9)
    axes.set_title(title, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def read_summary(path: Path) -> list[dict]:
    """The rows of the summary.json at @path; Failure for what is no row."""
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
        if row["evidence"] not in EVIDENCE:
            raise Failure(f"{path}, row {number}, has the evidence '{row['evidence']}': there are "
                          f"{', '.join(EVIDENCE)}")
        if not isinstance(row["values"], dict) or "/" in str(row["metric"]):
            raise Failure(f"{path}, row {number}, has values or a metric that no report can be made of: 'make bench' "
                          "writes it again")
    return rows


def write(out: Path) -> Path:
    """Write report.md and a plot of each topic's first metric into the results
    directory @out; Failure where there is no summary."""
    summary = out / "summary.json"
    if not summary.exists():
        raise Failure(f"{summary} is missing: 'make bench' writes it")
    rows = read_summary(summary)
    lines = [f"# Results of {out.name} on {out.parent.name}", ""]
    known = topics()
    for name, group in groupby(rows, key=lambda cell: cell["topic"]):
        own = list(group)
        lines += [f"## {name}: {known[name].summary if name in known else ''}", ""]
        beside = out / f"environment-{name}.json"
        if beside.exists():
            where = json.loads(beside.read_text())
            lines += [f"{where['base']}, {where['compiler']}, {where['qemu']}, accelerator "
                      f"{where['accelerator']}, host {where['host CPU']}.", ""]
        for evidence, heading in EVIDENCE.items():
            part = [cell for cell in own if cell["evidence"] == evidence]
            if part:
                lines += [f"### {heading}", "", CONDITIONS[evidence], "", *table(part), ""]
        metric = known[name].metric if name in known else own[0]["metric"]
        part = [cell for cell in own if cell["metric"] == metric]
        if part:
            path = out / f"{name}-{metric}.svg"
            plot(part, f"{name}: {metric}", path)
            lines += [f"![{metric}]({path.name})", ""]
    report = out / "report.md"
    report.write_text("\n".join(lines).rstrip() + "\n")
    return report


def main() -> None:
    """Write the report of one results directory again."""
    parser = arguments(__doc__, base=False)
    parser.add_argument("results", type=Path, help="a directory that has a summary.json")
    args = parser.parse_args()
    python = tool("python")
    if Path(sys.prefix) != python.parent.parent:
        # The plots need matplotlib, which the private environment has.
        os.execv(python, [str(python), __file__, str(args.results)])
    say(f"report: {write(args.results)}")


if __name__ == "__main__":
    run(main)
