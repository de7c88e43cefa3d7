# SPDX-License-Identifier: GPL-2.0
"""A model, no measurement: what cache lines that were counted say of the throughput
of reads of one page by N CPUs.

A shared line serves one CPU at a time.  A read takes T by itself, and as many visits
to the line as it writes to it (`shared_writes_per_op`), each of which takes L.  T is of
the base, of each size, where each CPU reads a file of its own; L is one constant, of
the base on tmpfs.  Nothing is taken from another kernel's time.

Before it is asked about more CPUs than were measured, it has to foretell what was:

  the base on ext4, which writes to the line less often than on tmpfs;
  all other kernels that were timed, and whether they are better than the base;
  a published table of 16 threads on another machine.

Where one of these fails, no other figure is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from reports import stats

from reports.runs import AGAIN, Figures

CPUS = 2
SIZES = {"1": "64B", "64": "64B", "128": "64B", "256": "4KiB", "1024": "4KiB", "4096": "4KiB"}
# What a part of the rows may be wrong by, root mean square.
MOST = 0.15
# Reads of one page and of a page each by 16 threads, in MiB/s, by bytes of a read: "Optimizing small reads" on
# linux-mm, October 2025.  L is of the first row.
PUBLISHED = {1: (11.6, 27.6), 32: (375, 880), 256: (2940, 6932), 1024: (11500, 26900), 4096: (46500, 103000)}
PUBLISHED_CPUS = 16
ASKED = (4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Gate:
    """What has to hold: its @name, the root mean square of the relative errors of
    @rows rows, and what else is @wrong, or nothing."""

    name: str
    rows: int
    error: float
    wrong: str = ""

    @property
    def holds(self) -> bool:
        return bool(self.rows) and self.error <= MOST and not self.wrong


def throughput(cpus: int, private: float, line: float) -> float:
    """Operations in a unit of time by @cpus CPUs that each take @private by themselves
    and @line at a server that they share: mean value analysis of a closed network."""
    waiting = found = 0.0
    for number in range(1, cpus + 1):
        stay = line * (1 + waiting)
        found = number / (private + stay)
        waiting = found * stay
    return found


def error(pairs: list[tuple[float, float]]) -> float:
    """The root mean square of the relative errors of @pairs, foretold and measured."""
    return (sum((foretold / measured - 1) ** 2 for foretold, measured in pairs) / len(pairs)) ** 0.5 if pairs else 0


def line_cost(cells: list[tuple[float, float, float]]) -> float:
    """The cost of a visit with which @cells, of a private time, visits and throughput
    of CPUS CPUs, are foretold best, in the unit of the private time."""
    def wrong(line: float) -> float:
        return sum(log(throughput(CPUS, private, visits * line) / measured) ** 2
                   for private, visits, measured in cells)

    return min((step / 20 for step in range(1, 4000)), key=wrong)


class Model:
    """The model of the topic whose figures are @own."""

    def __init__(self, own: Figures):
        self.rows = {(row["metric"], row["condition"]): row for row in own.rows}
        counted = {metric for metric, _ in self.rows}
        self.metric = "shared_writes_per_op" if "shared_writes_per_op" in counted else "shared_lines_per_op"
        self.line = line_cost([self.cell("tmpfs", size) for size in SIZES]) if self.known() else 0.0

    def time(self, system: str, size: str, what: str) -> dict | None:
        return self.rows.get(("throughput", f"{system}, {size} B, {CPUS} CPUs, {what}"))

    def visits(self, system: str, size: str, side: str) -> float:
        """How often a read of kernel @side visits the line."""
        return self.rows[self.metric, f"{system} {SIZES[size]} {CPUS} CPUs"]["values"][side]

    def known(self) -> bool:
        """Whether all is measured that it takes."""
        return all(self.time(system, size, what) and (self.metric, f"{system} {SIZES[size]} {CPUS} CPUs") in self.rows
                   for system in ("tmpfs", "ext4") for size in SIZES for what in ("one page", "a file each"))

    def private(self, system: str, size: str) -> float:
        """Nanoseconds of a read of the base that shares nothing."""
        return CPUS * 1e9 / self.time(system, size, "a file each")["values"]["baseline"]

    def cell(self, system: str, size: str) -> tuple[float, float, float]:
        """What line_cost() takes of the base."""
        return (self.private(system, size), self.visits(system, size, "baseline"),
                self.time(system, size, "one page")["values"]["baseline"] / 1e9)

    def foretold(self, system: str, size: str, side: str, cpus: int = CPUS) -> float:
        """Reads a second of one page by kernel @side."""
        return 1e9 * throughput(cpus, self.private(system, size), self.visits(system, size, side) * self.line)

    def other_base(self) -> Gate:
        """Whether one constant does for two file systems."""
        pairs = [(self.foretold("ext4", size, "baseline"), self.time("ext4", size, "one page")["values"]["baseline"])
                 for size in SIZES]
        return Gate("the base on ext4, with L of tmpfs", len(pairs), error(pairs))

    def kernel(self, side: str) -> Gate:
        """Whether the rows of @side are foretold, those of the base being known: by how
        much, and in which direction if that was seen."""
        pairs, wrong = [], []
        for system in ("tmpfs", "ext4"):
            for size in SIZES:
                row = self.time(system, size, "one page")
                found = row.get("statistics", {})
                found = found if side == "patched" else found.get("sides", {}).get(side)
                if side not in row["values"] or not found:
                    continue
                ratio = self.foretold(system, size, side) / self.foretold(system, size, "baseline")
                pairs.append((ratio, found["ratio"]))
                seen = stats.interval_verdict(found["interval"], True)
                # What differs by less than the model can tell has no direction.
                if seen != stats.CANNOT_TELL and abs(found["ratio"] - 1) > MOST and (ratio > 1) != (found["ratio"] > 1):
                    wrong.append(f"{system}, {size} B")
        return Gate(f"{side} / base", len(pairs), error(pairs),
                    f"in another direction: {'; '.join(wrong)}" if wrong else "")

    def gates(self) -> list[Gate]:
        counted = {side for (metric, _), row in self.rows.items() if metric == self.metric for side in row["values"]}
        sides = {side for row in self.rows.values() for side in row.get("statistics", {}).get("sides", {})} & counted
        return [self.other_base(), *(self.kernel(side) for side in ("patched", *sorted(sides - {AGAIN}))), published()]

    def lines(self) -> list[str]:
        gates = self.gates()
        found = [f"Visits are `{self.metric}`, counted with {CPUS} CPUs; a visit takes {self.line:.0f} ns here.", "",
                 "| has to foretell | rows | error, rms | |", "|---|---|---|---|"]
        found += [f"| {gate.name} | {gate.rows} | {100 * gate.error:.0f} % | "
                  f"{'holds' if gate.holds else gate.wrong or 'fails'} |" for gate in gates]
        if not all(gate.holds for gate in gates):
            return [*found, "", "It fails, so nothing is said of more CPUs."]
        found += ["", "| series / base, 64 B, one page | " + " | ".join(f"{cpus} CPUs" for cpus in ASKED) + " |",
                  "|---" * (len(ASKED) + 1) + "|"]
        for system in ("tmpfs", "ext4"):
            ratios = [self.foretold(system, "64", "patched", cpus) / self.foretold(system, "64", "baseline", cpus)
                      for cpus in ASKED]
            found.append(f"| {system} | " + " | ".join(f"{ratio:.1f}" for ratio in ratios) + " |")
        return found


def published() -> Gate:
    """The published table: L of its first row, T of its reads of a page each."""
    def rate(size: int, which: int) -> float:
        return PUBLISHED[size][which] * (1 << 20) / size / 1e9

    first, *others = PUBLISHED
    private = {size: PUBLISHED_CPUS / rate(size, 1) for size in PUBLISHED}
    line = min((step / 10 for step in range(1, 2000)),
               key=lambda one: abs(throughput(PUBLISHED_CPUS, private[first], one) - rate(first, 0)))
    pairs = [(throughput(PUBLISHED_CPUS, private[size], line), rate(size, 0)) for size in others]
    return Gate(f"a published table of {PUBLISHED_CPUS} threads", len(pairs), error(pairs))


def model_section(own: Figures) -> list[str]:
    """The part of the report on the topic of @own, or nothing where it lacks rows."""
    model = Model(own)
    if not model.known():
        return []
    return ["### A model of more CPUs", "", "No measurement: T and L are of the base alone, visits to the shared line "
            "are counted ([linesmodel.py](../../scripts/reports/linesmodel.py)).", "", *model.lines(), ""]
