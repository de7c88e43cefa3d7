# SPDX-License-Identifier: GPL-2.0
"""What suites.json says, as a section of a report."""

from __future__ import annotations

CONDITIONS = (
    "Programs that others wrote, each run for itself on {base} (baseline) and on that with all series (patched), both "
    "with lockdep; a report in the kernel's log is a failure of the program that runs. `um` is User-Mode Linux with "
    "KASAN, `check` QEMU on x86-64 with KASAN, for what the former lacks. A program that did something else on one "
    "side was run {repeats} times more on each: it differs where the patched kernel failed as {base} never did, and "
    "is unsteady otherwise. {cpu}, {compiler}, {virtual} virtual CPUs, {memory}.")
EARLIER = "Suites with * ran with an earlier state of the series: `make suites`."
# Longer ways to fail are cut: suites.json has all.
LONGEST = 100
HEADS = ("suite", "version", "guest", "programs", "baseline: passed, failed, skipped", "patched", "differ", "unsteady")


def totals(row: dict, side: str) -> str:
    return ", ".join(str(row[side][verdict]) for verdict in ("passed", "failed", "skipped"))


def shortened(why: str) -> str:
    return why if len(why) <= LONGEST else why[:LONGEST - 4] + " ..."


def behaviours(sides: dict) -> str:
    return "; ".join(f"{side} " + ", ".join(f"{times}x {what}" for what, times in seen.items())
                     for side, seen in sides.items())


def suites_section(content: dict, fresh: bool) -> list[str]:
    """The lines of the section of a suites.json; @fresh: it is of the series as they are."""
    where = content["environment"]
    marks = [" *" if row.get("earlier") or not fresh else "" for row in content["suites"]]
    lines = ["## Other people's tests", "", *([EARLIER, ""] if any(marks) else []),
             CONDITIONS.format(
                 base=where["base"], repeats=where["repeats"], cpu=where["host CPU"], compiler=where["compiler"],
                 virtual=where["virtual CPUs"], memory=where["memory"]), "",
             "| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    notes = []
    for row, mark in zip(content["suites"], marks, strict=True):
        version = row.get("version") or row["not run"].splitlines()[0]
        name = f"{row['suite']}{mark} | {version} | {row['config']}"
        if "not run" in row:
            lines.append(f"| {name} | not run |" + " |" * 4)
            continue
        lines.append(f"| {name} | {row['programs']} | {totals(row, 'baseline')} | {totals(row, 'patched')} | "
                     f"{len(row['differ'])} | {len(row['unsteady'])} |")
        for kind, word in (("differ", "differs"), ("unsteady", "unsteady")):
            notes += [f"- {row['suite']} ({row['config']}), {name}, {word}: {behaviours(sides)}"
                      for name, sides in row[kind].items()]
        notes += [f"- {row['suite']} ({row['config']}), {name}, fails alike: {shortened(why)}"
                  for name, why in row["fail alike"].items()]
    if notes:
        lines += ["", "<details><summary>Programs that differ, are unsteady, or fail on both kernels</summary>", "",
                  *notes, "", "</details>"]
    return [*lines, ""]
