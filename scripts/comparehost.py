#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare two runs that benchhost.py has kept: medians over boots, their ratio
with a 95 % bootstrap interval, and what may be said of each row."""

import saved
import stats
from command import arguments, run
from figures import number
from machine import config_differences, differences
from process import Failure
from runs import more_is_better

# How many options of two configurations that differ are named.
NAMED = 12
EVIDENCE = {"timed": "Time", "perf": "Counted by perf"}


def loaded(name: str) -> list[dict]:
    """The boots of the run called @name; Failure where there is none."""
    found = saved.boots(name)
    if not found:
        have = ", ".join(saved.names())
        raise Failure(f"there is no run '{name}': {f'there are {have}' if have else 'nothing is saved yet'}, and "
                      f"'make bench-host SAVE={name}' measures the kernel that is booted")
    return found


def refuse(a: dict, b: dict) -> None:
    """Failure where the boots @a and @b are of different machines, or were not
    measured in the same way."""
    found = [line for key in ("machine", "settings") for line in differences(a[key], b[key])]
    if found:
        raise Failure(f"something else than the kernel differs between these runs ({'; '.join(found)}): measure one of "
                      "them again on the machine of the other, set up in the same way")


def cells(boots: list[dict]) -> dict[tuple, dict]:
    """The rows of all @boots by topic, evidence, metric and condition: 'unit',
    and 'values' with one value for each boot."""
    found: dict[tuple, dict] = {}
    for boot in boots:
        for row in boot["rows"]:
            key = (row["topic"], row["evidence"], row["metric"], row["condition"])
            found.setdefault(key, {"unit": row["unit"], "values": []})["values"].append(row["value"])
    return found


def compared(a: list[dict], b: list[dict]) -> list[dict]:
    """A row for each that both runs have, in the order of @a: 'topic',
    'evidence', 'metric', 'condition', 'unit', and what stats.two_sides() finds."""
    before, after = cells(a), cells(b)
    rows = []
    for key, cell in before.items():
        if key in after:
            rows.append({**dict(zip(("topic", "evidence", "metric", "condition"), key, strict=True)),
                         "unit": cell["unit"],
                         **stats.two_sides(cell["values"], after[key]["values"], more_is_better(cell["unit"]))})
    return rows


def table(rows: list[dict], a: str, b: str) -> list[str]:
    """@rows as a Markdown table; every row is there, whatever its verdict."""
    heads = ["metric", "condition", a, b, "change", f"ratio {b} / {a}, 95 % interval", "boots", "verdict", "unit"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        one, other = row["medians"]
        ratio = "n/a" if row["ratio"] is None else f"{row['ratio']:.3f}"
        interval = row["interval"]
        lines.append("| " + " | ".join([
            f"`{row['metric']}`", row["condition"], number(one), number(other),
            "n/a" if row["ratio"] is None else f"{(row['ratio'] - 1) * 100:+.1f} %",
            f"{ratio} [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else f"{ratio}, no interval",
            "{} and {}".format(*row["boots"]), row["verdict"], row["unit"]]) + " |")
    return lines


def cautions(a: list[dict], b: list[dict], configs: tuple[str, str]) -> list[str]:
    """What a reader of the table has to know of the runs @a and @b, whose
    kernels have the configurations @configs ('' for one that is not known), as
    sentences."""
    found = []
    fewest = min(len(a), len(b))
    if fewest == 1:
        found.append("One of the sides has one boot only: there is no interval, and nothing is called better or "
                     "worse. Reboot, and run bench-host again with the same name.")
    elif fewest < stats.LEAST_BOOTS:
        found.append(f"One of the sides has {fewest} boots: nothing is called better or worse with fewer than "
                     f"{stats.LEAST_BOOTS}, as chance alone sets so few apart.")
    same = [[one[-1]["kernel"][key] for key in ("release", "version")] for one in (a, b)]
    if same[0] == same[1]:
        found.append("Both are the same kernel: what differs here is what the machine does by itself.")
    if fewest > 1 and (a[-1]["date"] < b[0]["date"] or b[-1]["date"] < a[0]["date"]):
        found.append("All boots of one kernel were before those of the other: boot them by turns, or what has changed "
                     "meanwhile (temperature, a filling disk) is in the ratio.")
    if any(boot["virtual"] for boot in [*a, *b]):
        found.append("This is a virtual machine: what its neighbours do is in the figures.")
    options = config_differences(*configs) if all(configs) else []
    if options:
        more = f" and {len(options) - NAMED} more" if len(options) > NAMED else ""
        found.append(f"The configurations of the kernels differ in {', '.join(options[:NAMED])}{more}.")
    return found


def waits(boots: list[dict], topic: str, name: str) -> list[str]:
    """Who waited longest for locks in the latest boot of the run called @name,
    for each row of @topic, as lines."""
    found: dict[str, list[str]] = {}
    for one in boots[-1].get("waits", []):
        if one["topic"] == topic:
            found.setdefault(one["condition"], []).append(
                f"{one['where']} ({one['lock']}, {one['waits']} times, {one['ns'] / 1e6:.3g} ms)")
    return [f"- {name}, {words}: {', '.join(places)}" for words, places in found.items()]


def written(a: list[dict], b: list[dict], names: tuple[str, str], configs: tuple[str, str] = ("", "")) -> str:
    """The comparison of the runs @a and @b, which are called @names, as
    Markdown; @configs are cautions()'s."""
    machine = a[-1]["machine"]
    lines = [f"# {names[0]} and {names[1]}", "",
             f"{machine['CPU model']}, {machine['CPUs']} CPUs, governor {machine['governor']}, SMT "
             f"{machine['SMT']}.", ""]
    for name, boots in zip(names, (a, b), strict=True):
        kernel = boots[-1]["kernel"]
        lines.append(f"- {name}: {kernel['release']} {kernel['version']}, {len(boots)} "
                     f"{'boot' if len(boots) == 1 else 'boots'}")
    lines += ["", *(f"{words}\n" for words in cautions(a, b, configs))]
    rows = compared(a, b)
    if not rows:
        raise Failure(f"the runs '{names[0]}' and '{names[1]}' have no row in common: measure the same topics")
    for topic in dict.fromkeys(row["topic"] for row in rows):
        lines += [f"## {topic}", ""]
        for evidence, heading in EVIDENCE.items():
            part = [row for row in rows if (row["topic"], row["evidence"]) == (topic, evidence)]
            if part:
                lines += [f"### {heading}", "", *table(part, *names), ""]
        longest = [line for name, boots in zip(names, (a, b), strict=True) for line in waits(boots, topic, name)]
        if longest:
            lines += ["### Who waited longest for locks", "", *longest, ""]
    alone = cells(a).keys() ^ cells(b).keys()
    if alone:
        lines += [f"{len(alone)} rows are in one of the runs only, and not shown.", ""]
    counts = [sum(row["verdict"] == verdict for row in rows)
              for verdict in (stats.BETTER, stats.WORSE, stats.CANNOT_TELL, stats.TOO_FEW)]
    lines.append("{} rows: {} better, {} worse, {} cannot tell, {} too few boots. Where nothing differs, some "
                 "three rows of a hundred are called better or worse by chance.".format(len(rows), *counts))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the comparison."""
    parser = arguments(__doc__, base=False)
    for side in ("a", "b"):
        parser.add_argument(f"-{side}", required=True, metavar="NAME", help="a name that bench-host has saved")
    args = parser.parse_args()
    names = (args.a, args.b)
    if args.a == args.b:
        raise Failure(f"'{args.a}' is on both sides: give two names with A= and B=")
    runs = [loaded(name) for name in names]
    refuse(runs[0][-1], runs[1][-1])
    print(written(*runs, names, tuple(saved.config_of(name, boots[-1]) for name, boots in zip(names, runs,
                                                                                           strict=True))), end="")


if __name__ == "__main__":
    run(main)
