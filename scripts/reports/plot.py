# SPDX-License-Identifier: GPL-2.0
"""The one figure of all series: a panel for each, with what the series does in
relation to the base, on logarithmic axes."""

from __future__ import annotations

from pathlib import Path

from core.model import Curve, Topic

from reports.runs import Figures, base_again, change, more_is_better, row_verdict
from reports.stats import WORSE

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#777777", "#cc79a7")
MARKS = ("s", "o", "^", "D", "P")
LOSS = "#cc0000"
TICKS = {0.25: "0.25×", 0.5: "0.5×", 0.71: "0.7×", 1: "same", 1.41: "1.4×", 2: "2×", 2.83: "2.8×", 4: "4×",
         5.66: "5.7×", 8: "8×", 11.3: "11×", 16: "16×"}


def place_name(value: float) -> str:
    for unit, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if value >= factor and value % factor == 0:
            return f"{value / factor:g}{unit}"
    return f"{value:g}"


def curve_points(curve: Curve, rows: list[dict]) -> list[tuple[float, dict]]:
    """The places of @curve that have a row among @rows, with that row: what is nothing
    with the series has no place on an axis of ratios."""
    known = {(row["metric"], row["condition"]): row for row in rows}
    found = [(place, known[curve.metric, name]) for place, name in curve.points if (curve.metric, name) in known]
    return [(place, row) for place, row in found if change(row) is not None and change(row) > -1]


def ratio(row: dict) -> tuple[float, float, float]:
    """Series / base of @row, and the bounds of its interval; base / series where less
    is better."""
    found = (1 + change(row),) * 3
    if "statistics" in row:
        found = row["statistics"]["ratio"], *row["statistics"]["interval"]
    return found if more_is_better(row["unit"]) else (1 / found[0], 1 / found[2], 1 / found[1])


def draw(axes, topic: Topic, rows: list[dict]) -> None:
    band: dict[float, tuple[float, float]] = {}
    for number, curve in enumerate(topic.panel.curve):
        shown = curve_points(curve, rows)
        if not shown:
            continue
        places = [place for place, _ in shown]
        middle, low, high = zip(*(ratio(row) for _, row in shown), strict=True)
        # What is exact has no bars; nothing is drawn below a sixteenth.
        colour = LOSS if curve.cost else COLOURS[number % len(COLOURS)]
        axes.errorbar(places, middle, yerr=[[m - one for m, one in zip(middle, low, strict=True)],
                                            [one - m for m, one in zip(middle, high, strict=True)]],
                      fmt=("v" if curve.cost else MARKS[number % len(MARKS)]) + "-", color=colour, ms=5, lw=1.3,
                      capsize=2, label=curve.label)
        lost = [(place, ratio(row)[0]) for place, row in shown if row_verdict(row) == WORSE]
        if lost:
            axes.plot(*zip(*lost, strict=True), "v", color=LOSS, ms=7, zorder=5)
        for place, row in shown:
            noise = base_again(row)
            if noise:
                had = band.get(place, (1, 1))
                band[place] = (min(had[0], noise["interval"][0]), max(had[1], noise["interval"][1]))
    if len(band) > 1:
        places = sorted(band)
        axes.fill_between(places, [band[one][0] for one in places], [band[one][1] for one in places],
                          color="#e8e8e8", zorder=0, label="base against itself")
    ticks = sorted({place for curve in topic.panel.curve for place, _ in curve_points(curve, rows)})
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [place_name(one) for one in ticks])
    axes.set_title(topic.panel.title, loc="left", fontsize=10)
    axes.set_xlabel(topic.panel.x, fontsize=9)


def plot(known: list[tuple[Topic, Figures]], base: str, path: Path) -> bool:
    """Write the figure of the topics @known, of which each has a panel, as SVG to
    @path; False where no run has a row for it.  @base is the release's name."""
    shown = [(topic, own) for topic, own in known
             if topic.panel and any(curve_points(curve, own.rows) for curve in topic.panel.curve)]
    if not shown:
        return False
    import matplotlib
    matplotlib.use("svg")
    # No date and fixed ids: the same figures give the same file.
    matplotlib.rcParams.update({"svg.hashsalt": "hotpaths", "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(shown), figsize=(3.9 * len(shown), 4), sharey=True, squeeze=False)
    for axes, (topic, own) in zip(panels[0], shown, strict=True):
        draw(axes, topic, own.rows)
    low, high = panels[0][0].get_ylim()
    for axes in panels[0]:
        axes.set_yscale("log", base=2)
        axes.set_ylim(max(low, 0.2) / 1.05, high * 1.6)
        axes.axhline(1, color="black", lw=0.8)
        axes.set_yticks(list(TICKS), list(TICKS.values()))
        axes.minorticks_off()
        axes.grid(axis="y", color="#eeeeee")
        axes.legend(fontsize=7, frameon=False, loc="upper right")
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        axes.set_ylim(max(low, 0.2) / 1.05, high * 1.6)
    panels[0][0].set_ylabel(f"better than {base} by, log", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return True
