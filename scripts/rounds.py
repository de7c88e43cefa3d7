# SPDX-License-Identifier: GPL-2.0
"""Time two kernels, the first of them again, and others beside them, by boots in
random order."""

import random
from collections.abc import Callable
from statistics import median

import stats
from process import say

from results import more_is_better

# The baseline against itself is what a ratio has to be clear of.
SIDES = ("baseline", "patched", "again")
# Rounds between two looks whether the figures are precise enough.
LOOK = 5
# What is kept of each run where the time was taken twice.
OF_A_RUN = ("ratio", "interval", "noise ratio", "noise interval", "boots", "verdict")


def cells_of(boots: list[tuple[str, list[dict]]]) -> dict[tuple, dict]:
    """The rows of @boots, side and rows of each, by metric and condition: one
    with the values of each side in the order of the boots."""
    cells: dict[tuple, dict] = {}
    for side, rows in boots:
        for row in rows:
            cell = cells.setdefault((row["metric"], row["condition"]), {**row, "boots": {}})
            cell["boots"].setdefault(side, []).append(row["value"])
    return cells


def precise(cells: list[dict]) -> bool:
    """Whether the ratios of all @cells are."""
    return all(stats.precise(cell["boots"]["baseline"], cell["boots"]["patched"]) for cell in cells)


def rounds(boot: Callable[[str], list[dict]], least: int, most: int, what: str,
           others: tuple[str, ...] = ()) -> list[dict]:
    """The cells of at least @least rounds, and of no more than @most, if the
    intervals of all ratios come within 5 % before.  @boot boots the kernel of a
    side and returns its rows; in each round all sides are booted, SIDES and
    @others, in random order, and the first round is thrown away, in which caches
    of the host are cold.  @what is measured, for progress."""
    order = random.Random(1)
    boots = []
    for number in range(most + 1):
        sides = order.sample(SIDES + others, len(SIDES + others))
        say(f"bench: {what}, round {number} of {least} to {most}: {', '.join(sides)}")
        found = [(side, boot(side)) for side in sides]
        if number:
            boots += found
        if number >= least and not (number - least) % LOOK and precise(list(cells_of(boots).values())):
            break
    return list(cells_of(boots).values())


def repeated(rows: list[dict], before: list[dict]) -> list[dict]:
    """@rows as compared() has them, of which those that an earlier run @before has,
    too, have "runs" in their statistics, the new and the earlier one, and a verdict
    other than that nothing was seen only where both runs have it.  Of what was
    repeated before, the newer run counts."""
    known = {(row["metric"], row["condition"]): row["statistics"] for row in before}
    for row in rows:
        found, earlier = row["statistics"], known.get((row["metric"], row["condition"]))
        if earlier:
            runs = [{name: one[name] for name in OF_A_RUN} for one in (found, earlier.get("runs", [earlier])[0])]
            found["runs"] = runs
            if runs[0]["verdict"] != runs[1]["verdict"]:
                found["verdict"] = stats.NO_DIFFERENCE
    return rows


def compared(cells: list[dict], topic: str, remark: str = "") -> list[dict]:
    """@cells as rows of summary.json about @topic; @remark is added to what each
    is of.  Of sides that are none of SIDES there are the medians, and as "others"
    of the statistics the ratio to the baseline and its interval."""
    rows = []
    for cell in cells:
        boots = cell["boots"]
        found = stats.compare(*(boots[side] for side in SIDES), more=more_is_better(cell["unit"]))
        others = {side: values for side, values in boots.items() if side not in SIDES}
        if others:
            found["medians"] |= {side: median(values) for side, values in others.items()}
            found["others"] = {side: {"ratio": median(values) / median(boots["baseline"]),
                                      "interval": stats.ratio_interval(boots["baseline"], values)}
                               for side, values in others.items()}
        rows.append({"topic": topic, "metric": cell["metric"], "unit": cell["unit"],
                     "condition": cell["condition"] + remark, "evidence": cell["evidence"],
                     "values": found["medians"], "statistics": found})
    return rows
