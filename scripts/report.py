#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write report.md and a figure of each topic from the summary.json of a results
directory, and the table of README from the newest results of the reference base."""

import json
import os
import re
import sys
from pathlib import Path

import dots
from command import arguments, run
from dots import number
from fetch import repository
from install import need, tool
from model import ROOT, Base, Topic, bases, topics, with_series
from process import Failure, say
from stats import GAIN, LOSS, NO_DIFFERENCE, narrow
from suite.table import section as table_of_suites

from results import EVIDENCE, change, compared, fresh, newest, read_summary, worse

CONDITIONS = {
    "counter": "Exact counts on the `trace` kernel (2 virtual CPUs): from upstream tracepoints, or of what completes "
               "while something is stuck.",
    "icount": "Executed instructions on the `bench` kernel, without lockdep or tracing, with one virtual CPU, or as "
              "many as the row says, of which the one that runs the benchmark is counted: mean and standard deviation "
              "over operations, timer ticks included, and beside them the least. A plugin of QEMU counts them, from "
              "one mark of the benchmark to the next and while the lock is held. An emulated `rep movs` counts each "
              "iteration, so large copies weigh more than on hardware.",
    "lines": "Lines of 64 bytes that one virtual CPU writes and another touches while each does 100 operations "
             "(`bench` kernel, 16 virtual CPUs, of which as many work as the row says): sets, not transfers, and no "
             "time. Without `_mean`: what a typical operation touches, which timer ticks, other tasks and what "
             "happens in fewer than half of the operations are not in; `_mean`: of all operations, with all that. "
             "Rows `nothing` are a loop in user space. 0 is the limit for operations that have nothing in common.",
    "timed-uml": "Operations within the kernel, which runs natively as a process of the host on 2 of its CPUs; "
                 "idle CPUs poll, and interrupts between CPUs do not cost system calls of the host, on both sides "
                 "alike. Medians over boots, ratio with a 95 % bootstrap interval, and the same of the baseline "
                 "against itself (A/A). A gain or loss is clear of 1 and of A/A, and in the run before, too, if there "
                 "was one. 'wide': the interval reaches further "
                 "than 5 %, after as many boots as there may be.",
    "timed": "Median over boots, the boot being the unit of replication; ratio of medians with a 95 % "
             "bootstrap interval, and the same of the baseline against itself (A/A). A gain or loss is clear of 1 "
             "and of A/A.",
}
# Of a run from before means were kept, as that of 6.18 is.
LEAST = ("Executed instructions with one virtual CPU, by a clock of one nanosecond for each (QEMU's icount): of whole "
         "operations the best of several batches, or a lower quartile, on the `bench` kernel; of sections under a lock "
         "the median, or where it says so the mean, on the `trace` kernel, with lockdep. No spread was kept.")
HEADS = ("series", "what goes away", "base → series", "instructions of an operation", "time under User-Mode Linux",
         "worst row", "figures")
# What README has of it.
MARKS = ("<!-- figures: 'make report' writes them -->\n", "<!-- end of figures -->\n")


def percent(moved: float) -> str:
    """A change as tables show it."""
    return f"{100 * moved:+.1f} %" if moved else "0 %"


def moved(row: dict) -> str:
    """The change of @row, '' without one of its sides."""
    if not {"baseline", "patched"} <= row["values"].keys():
        return ""
    found = change(row)
    return ("n/a" if row["values"]["patched"] else "0 %") if found is None else percent(found)


def ratio(found: dict) -> str:
    """The ratio that @found has, with its interval."""
    return f"{found['ratio']:.3f} [{found['interval'][0]:.3f}, {found['interval'][1]:.3f}]"


def cell(row: dict, side: str) -> str:
    """The value of @side in @row as tables show it, '' where there is none: a mean
    with its standard deviation, where it is one, and of a variant that was timed
    the ratio to the base with its interval."""
    if side not in row["values"]:
        return ""
    other = row.get("statistics", {}).get("others", {}).get(side)
    if other:
        return f"{number(row['values'][side])}, {ratio(other)}"
    spread = row.get("spreads", {}).get(side)
    return number(row["values"][side]) + (f" ± {number(spread['deviation'])}" if spread else "")


def sampled(row: dict) -> list[str]:
    """What a table says of the samples of @row's means: how many there are, and the
    least of the base and of the series."""
    spreads = row.get("spreads")
    if not spreads:
        return ["", ""]
    return [number(max(one["number"] for one in spreads.values())),
            " → ".join(number(spreads[side]["least"]) for side in ("baseline", "patched") if side in spreads)]


def table(rows: list[dict]) -> list[str]:
    """Rows of one topic and kind of evidence as a Markdown table.  Every row is
    there, also one that did not move or got worse."""
    columns = list(dict.fromkeys(name for row in rows for name in row["values"]))
    timed = any("statistics" in row for row in rows)
    twice = any("runs" in row.get("statistics", {}) for row in rows)
    means = any("spreads" in row for row in rows)
    heads = ["metric", "condition", *columns, "change"] + (["ratio", "A/A", "verdict"] if timed else [])
    heads += ["run before"] if twice else []
    heads += (["samples", "least"] if means else []) + ["unit"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        words = [f"`{row['metric']}`", row["condition"]]
        words += [cell(row, name) for name in columns]
        words.append(moved(row))
        if timed:
            found = row["statistics"]
            words += [ratio(found),
                      f"{found['noise ratio']:.3f} [{found['noise interval'][0]:.3f}, "
                      f"{found['noise interval'][1]:.3f}]",
                      found["verdict"] + ("" if narrow(found["interval"], found["ratio"]) else ", wide")]
        if twice:
            runs = found.get("runs")
            words.append(f"{ratio(runs[1])}, {runs[1]['verdict']}" if runs else "")
        if means:
            words += sampled(row)
        lines.append("| " + " | ".join([*words, row["unit"]]) + " |")
    return lines


def details(rows: list[dict]) -> list[str]:
    """What rows of one topic and kind of evidence say beside their values, as
    a folded Markdown list; nothing where they say nothing."""
    told = [f"- {row['condition']}, {side}: {text}" for row in rows
            for side, text in row.get("details", {}).items() if text]
    return ["", "<details><summary>Functions that make these accesses, with accesses per operation</summary>", "",
            *told, "", "</details>"] if told else []


def headline(topic: Topic, rows: list[dict], state: str) -> str:
    """The line of @topic in the table of HEADS, from its @rows; @state says of
    which series they are.  Worst are the row that got worst, and of those that were
    found to be slower the slowest."""
    first = next((row for row in rows if row["metric"] == topic.metric), None)
    leaves = f"`{topic.metric}`, {first['condition']}" if first else ""
    values = " → ".join(number(first["values"].get(side, 0)) for side in ("baseline", "patched")) if first else ""
    taken = [change(row) for row in rows if row["metric"].startswith("insn_per") and change(row) is not None]
    # Other things than rates are counted on these boots, too.
    timed = [row["statistics"] for row in rows if row["evidence"] == "timed-uml" and row["unit"] == "op/s"]
    verdicts = [one["verdict"] for one in timed]
    said = ", ".join(f"{verdicts.count(one)} {word}" for one, word in (
        (GAIN, "better"), (LOSS, "worse"), (NO_DIFFERENCE, "without a difference")) if one in verdicts)
    ratios = [one["ratio"] for one in timed if one["verdict"] != NO_DIFFERENCE]
    # Less than a line moves with the timer.
    lasting = [row for row in rows if compared(row) and (
        row["evidence"] != "lines" or abs(row["values"]["patched"] - row["values"]["baseline"]) >= 1)]
    worst = [max(some, key=worse) for some in (
        lasting,
        [row for row in rows if row.get("statistics", {}).get("verdict") == LOSS]) if some]
    bad = dict.fromkeys(f"`{row['metric']}`, {row['condition']}: {moved(row)}" for row in worst if worse(row) > 0)
    return "| " + " | ".join((
        topic.name, leaves, values,
        f"{percent(min(taken))} to {percent(max(taken))}" if taken else "",
        f"{said} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else said,
        "; ".join(bad) or "none",
        state)) + " |"


def base_of(out: Path) -> Base:
    """The base that what is in the results directory @out was taken on.  Failure
    where nothing there says it."""
    conditions = [json.loads(path.read_text()) for path in sorted(out.glob("environment-*.json"))]
    suites = out / "suites.json"
    if suites.exists():
        conditions.append(json.loads(suites.read_text())["environment"])
    found = [base for base in bases().values() if conditions and base.tag == conditions[0]["base"]]
    if not found:
        raise Failure(f"{out} has no results of a base of bases.toml: 'make bench' and 'make suites' write some")
    return found[0]


def write(out: Path, base: Base, states: dict[str, str]) -> Path:
    """Write report.md and a figure of each topic into the results directory
    @out of @base; @states: of which series the figures of each topic are."""
    summary, suites = out / "summary.json", out / "suites.json"
    rows = read_summary(summary) if summary.exists() else []
    known = topics()
    by_topic = {name: [row for row in rows if row["topic"] == name]
                for name in dict.fromkeys([*known, *(row["topic"] for row in rows)])}
    by_topic = {name: own for name, own in by_topic.items() if own and name in known}
    lines = [f"# {base.name}, {out.name}", ""]
    if by_topic:
        lines += ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS),
                  *(headline(known[name], own, states.get(name, "")) for name, own in by_topic.items()), ""]
    for name, own in by_topic.items():
        shown = dots.chosen(own)
        if shown:
            path = out / f"{name}.svg"
            dots.plot(shown, f"{name}: base → series", path)
            lines += [f"![{name}]({path.name})", ""]
    for name, own in by_topic.items():
        lines += ["<details>", f"<summary>{name}: {known[name].summary}: all rows</summary>", ""]
        beside = out / f"environment-{name}.json"
        if beside.exists():
            where = json.loads(beside.read_text())
            lines += [f"{where['base']}, {where['compiler']}, {where['qemu']}, accelerator "
                      f"{where['accelerator']}, host {where['host CPU']}.", ""]
        for evidence, heading in EVIDENCE.items():
            part = [row for row in own if row["evidence"] == evidence]
            if part:
                means = evidence != "icount" or any("spreads" in row for row in part)
                lines += [f"### {heading}", "", CONDITIONS[evidence] if means else LEAST, "", *table(part),
                          *details(part), ""]
        lines += ["</details>", ""]
    if suites.exists():
        lines += table_of_suites(json.loads(suites.read_text()))
    report = out / "report.md"
    report.write_text("\n".join(lines).rstrip() + "\n")
    return report


def figures(base: Base, repo: Path) -> str:
    """What README has between MARKS: the headline of each topic that has a series
    for @base where its newest figures are of the series as it is, and what is to be
    done where they are not."""
    lines = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    for topic in with_series(base):
        where = newest(base, topic)
        if where is None:
            lines.append(f"| {topic.name} |" + " |" * (len(HEADS) - 2) + " not measured yet |")
            continue
        link = f"[{where.name}](results/{base.name}/{where.name}/report.md)"
        if fresh(base, repo, topic, where):
            rows = [row for row in read_summary(where / "summary.json") if row["topic"] == topic.name]
            lines.append(headline(topic, rows, link))
        else:
            lines.append(f"| {topic.name} |" + " |" * (len(HEADS) - 2) + f" of an earlier state: {link} |")
    return "\n".join(lines) + "\n"


def readme(text: str, table: str) -> str:
    """README's @text with @table between MARKS; Failure where these are not there."""
    begin, end = map(re.escape, MARKS)
    found, count = re.subn(f"({begin}).*?({end})", lambda match: match[1] + table + match[2], text, flags=re.S)
    if count != 1:
        raise Failure(f"README.md has no place for figures: add the lines '{MARKS[0].strip()}' and "
                      f"'{MARKS[1].strip()}'")
    return found


def main() -> None:
    """Write the report of one results directory, and README's table."""
    parser = arguments(__doc__, base=False)
    parser.add_argument("results", type=Path, help="a directory that has a summary.json or a suites.json")
    parser.add_argument("--kdir", default=os.environ.get("KDIR"),
                        help="your own kernel tree, which has the base of these results")
    args = parser.parse_args()
    python = tool("python")
    if Path(sys.prefix) != python.parent.parent:
        # The plots need matplotlib, which the private environment has.
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    need("source")
    base = base_of(args.results)
    repo = repository(base, args.kdir)
    states = {topic.name: "of the series as it is" if fresh(base, repo, topic, args.results) else "of an earlier state"
              for topic in topics().values() if (args.results / f"environment-{topic.name}.json").exists()
              and not topic.absent(base)}
    say(f"report: {write(args.results.resolve(), base, states)}")
    if base.reference:
        path = ROOT / "README.md"
        path.write_text(readme(path.read_text(), figures(base, repo)))


if __name__ == "__main__":
    run(main)
