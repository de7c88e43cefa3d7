# SPDX-License-Identifier: GPL-2.0
"""One figure a topic: each row a dot at its change from the baseline."""

from __future__ import annotations

from itertools import groupby, zip_longest
from math import hypot
from pathlib import Path

from stats import LOSS

from results import change, compared, worse

MOST = 25               # rows of a figure
# The change in per cent that repeats, by evidence, of rows without an interval
# of their own: instructions differ by ticks that fall into what is counted.
REPEATS = {"counter": 0, "icount": 0.5, "lines": 0}
SCALE = (-100, 150)     # per cent; what is beyond stands at the edge


def number(value: float) -> str:
    """A value as tables and figures show it: no more digits than it has meaning."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def chosen(rows: list[dict]) -> list[dict]:
    """Those of @rows that the figure shows, in order, MOST at most: what was found
    to be slower, the row of each metric that got worst, and then of each metric in
    turn the row that moved most.  What did not move is left out, and what is not to
    be compared()."""
    rows = [row for row in rows if change(row) and compared(row)
            and (row["evidence"] in REPEATS or "statistics" in row)]
    queues = {}
    for row in sorted(rows, key=lambda row: -abs(change(row))):
        queues.setdefault(row["metric"], []).append(row)
    picked = [row for row in rows if row.get("statistics", {}).get("verdict") == LOSS]
    picked += [max(queue, key=worse) for queue in queues.values()]
    picked += [row for turn in zip_longest(*queues.values()) for row in turn if row]
    shown = list(dict.fromkeys(map(id, picked)))[:MOST]
    return [row for row in rows if id(row) in shown]


def repeats(row: dict) -> float:
    """The change of @row in per cent that is none: REPEATS, and for a counter with
    several turns, twice the standard error of the change."""
    spreads = [row.get("spreads", {}).get(side) for side in ("baseline", "patched")]
    if row["evidence"] != "counter" or None in spreads:
        return REPEATS.get(row["evidence"], 0)
    return 200 * hypot(*(one["deviation"] / one["number"] ** 0.5 for one in spreads)) / row["values"]["baseline"]


def colour(row: dict) -> str:
    """Green for better, red for worse, grey for what does not repeat."""
    if abs(worse(row)) * 100 <= repeats(row):
        return "#8a8a8a"
    return "#b23b3b" if worse(row) > 0 else "#2a7f3f"


def plot(rows: list[dict], title: str, path: Path) -> None:
    """Write the figure of chosen() @rows as SVG to @path: the dot of a row with
    its 95 % interval where there is one, grey what the baseline shows against
    itself or what does not repeat, and the values at the right."""
    import matplotlib
    matplotlib.use("svg")
    # No date and fixed ids: the same figures give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "hotpaths"
    from matplotlib import pyplot

    def within(percent: float) -> float:
        """@percent, or the edge of the scale."""
        return min(max(percent, SCALE[0]), SCALE[1])

    figure, axes = pyplot.subplots(figsize=(8, 0.2 * len(rows) + 0.35 * len({row["metric"] for row in rows}) + 0.9))
    place, ticks, labels = 0.0, [], []
    for metric, group in groupby(rows, key=lambda row: row["metric"]):
        own = list(group)
        axes.text(-0.01, place, f"{metric} ({own[0]['unit']})", transform=axes.get_yaxis_transform(), ha="right",
                  va="center", fontsize=8, weight="bold")
        place += 1
        for row in own:
            moved, shade = change(row) * 100, colour(row)
            band = [-repeats(row), repeats(row)]
            if "statistics" in row:
                band = [100 * (bound - 1) for bound in row["statistics"]["noise interval"]]
                low, high = (100 * (bound - 1) for bound in row["statistics"]["interval"])
                axes.plot([within(low), within(high)], [place, place], color=shade, lw=2.5, alpha=0.5)
            axes.fill_betweenx([place - 0.4, place + 0.4], within(band[0]), within(band[1]), color="#dddddd", lw=0)
            axes.plot([0, within(moved)], [place, place], color=shade, lw=1, alpha=0.5)
            axes.plot(within(moved), place, "o", color=shade, ms=4.5)
            axes.text(1.01, place, f"{number(row['values']['baseline'])} → {number(row['values']['patched'])}   "
                      f"{moved:+.1f} %", transform=axes.get_yaxis_transform(), va="center", fontsize=7)
            ticks.append(place)
            labels.append(row["condition"])
            place += 1
        place += 0.6
    axes.axvline(0, color="black", lw=0.8)
    axes.set_yticks(ticks, labels, fontsize=7)
    axes.set_ylim(place, -0.8)
    axes.set_xlim(SCALE[0] - 4, SCALE[1] + 4)
    axes.set_xlabel("change from the base in per cent; grey: what does not repeat, or A/A", fontsize=8)
    axes.tick_params(axis="x", labelsize=7)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title(title, fontsize=10, loc="left")
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
