# SPDX-License-Identifier: GPL-2.0
"""What kernels did on one machine, lap by lap: in a lap every kernel is booted once
with the same number of CPUs, the base twice, in random order.

This is part of the bundle that bundle.py makes, and so is stats.py: both are kept to
Python 3.8.  A lap is {"cpus": 4, "values": {kernel: {row: operations a second}}}.
"""

from __future__ import annotations

from statistics import median

from reports import stats

BASE = "baseline"
# Laps of each number of CPUs before which nothing is told.
LEAST = 3


def of_cpus(laps: list[dict], cpus: int) -> list[dict]:
    """The values of the laps with @cpus CPUs, as stats.ratios() takes them."""
    return [lap["values"] for lap in laps if lap["cpus"] == cpus]


def compared(laps: list[dict], row: str, kernel: str, cpus: int) -> dict | None:
    """The ratio of @kernel to the base in @row with @cpus CPUs, as stats.paired()
    has it, and its "laps"; None where there are fewer than LEAST."""
    found = stats.ratios(of_cpus(laps, cpus), kernel, row)
    return {**stats.paired(found), "laps": len(found)} if len(found) >= LEAST else None


def base_value(laps: list[dict], row: str, cpus: int) -> float | None:
    found = [one[BASE][row] for one in of_cpus(laps, cpus) if row in one.get(BASE, {})]
    return median(found) if found else None


def head(point: dict) -> str:
    """How a table calls a number of CPUs; @point has it as "cpus", and whether two of
    them had to "share" a CPU of the machine, or a "core" of it."""
    return (f"{point['cpus']} CPU{'s'[:point['cpus'] - 1]}" + ("*" if point.get("share") else
                                                               "+" if point.get("core") else ""))


def notes(points: list[dict], least: int) -> list[str]:
    """What has to be said below a table of @points, as head() has them; @least: laps of
    that with the fewest."""
    found = ["Ratios are kernel / base with 95 % intervals, paired in each of "
             f"{least} laps or more; A/A is the base against itself."]
    if least < stats.LEAST_BOOTS:
        found.append(f"With fewer than {stats.LEAST_BOOTS} laps an interval may miss: take more minutes.")
    if any(point.get("share") for point in points):
        found.append("* More CPUs than the machine has: these rows say nothing of a machine that has them.")
    if any(point.get("core") and not point.get("share") for point in points):
        found.append("+ Two CPUs share a core of the machine.")
    return found


def row_lines(laps: list[dict], row: str, kernels: list[str], points: list[dict]) -> list[list[str]]:
    """The lines of a table of @row, a cell for each of @points: the base, the base
    against itself, and each of @kernels that has it."""
    cpus = [point["cpus"] for point in points]
    values = [base_value(laps, row, one) for one in cpus]
    found = [["base, op/s", *("" if value is None else stats.number(value) for value in values)]]
    for name in (stats.AGAIN, *kernels):
        ratios = [compared(laps, row, name, one) for one in cpus]
        if any(ratios):
            found.append(["A/A" if name == stats.AGAIN else name,
                          *("" if one is None else stats.interval(one) for one in ratios)])
    return found


def table(laps: list[dict], rows: list[str], kernels: list[str], points: list[dict]) -> str:
    """All of it as text; nothing where no number of CPUs has LEAST laps."""
    points = [point for point in points if len(of_cpus(laps, point["cpus"])) >= LEAST]
    if not points:
        return ""
    text = [["", *map(head, points)]]
    for row in rows:
        text += [[f"{row}:"], *([f"  {name}", *cells] for name, *cells in row_lines(laps, row, kernels, points))]
    widths = [max(len(line[column]) for line in text if column < len(line) and len(line) > 1)
              for column in range(len(points) + 1)]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()  # noqa: B905
             for line in text]
    return "\n".join([*shown, "", *notes(points, min(len(of_cpus(laps, one["cpus"])) for one in points))])
