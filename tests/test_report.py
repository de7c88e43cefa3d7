# SPDX-License-Identifier: GPL-2.0
"""The report of a base: its tables, and rows.csv."""

import csv
import json
from unittest import mock

from support import Case, KernelCase, put

# isort: split
from core.model import Curve, Panel, Row, Topic
from measure import bench
from reports import plot
from reports import report
from reports import runs

SPREAD = {"deviation": 60, "number": 100, "least": 1}


def cell(metric: str, condition: str, evidence: str = "counter", **values) -> dict:
    """A row of summary.json with @values."""
    return {"topic": "pipe", "metric": metric, "unit": "pages", "condition": condition, "evidence": evidence,
            "values": values}


def timed(condition: str, ratio: float, low: float, high: float) -> dict:
    """A row of time with @ratio in its interval."""
    return {**cell("throughput", condition, "timed-uml", baseline=100, patched=100 * ratio, tree=50), "unit": "op/s",
            "statistics": {"ratio": ratio, "interval": [low, high], "rounds": 30, "sides": {
                "again": {"ratio": 1, "interval": [0.95, 1.05], "rounds": 30},
                "tree": {"ratio": 0.5, "interval": [0.4, 0.6], "rounds": 30}}}}


TOPIC = Topic("pipe", "pages under the mutex", "pipe", row=(
    Row("allocs", "allocs", "write", "allocations"), Row("price", "throughput", "bound", "bound tasks", cost=True)))
ROWS = [cell("allocs", "write", baseline=14, patched=0), timed("free", 2, 1.91, 2.09), timed("bound", 0.8, 0.7, 0.9),
        {**cell("insns", "1B", "icount", baseline=2000, patched=2050),
         "spreads": {"baseline": SPREAD, "patched": SPREAD}},
        cell("lines_mean", "all", "lines", baseline=1, patched=9)]


class Write(KernelCase):
    """report.write_files()."""

    def setUp(self):
        super().setUp()
        self.out = self.root / "results/v0"
        put(self.out / "2026-02-03/environment.json", json.dumps({"pipe": {
            "base": "v9.1.2", "compiler": "gcc 12", "qemu": "QEMU 7 (Debian)", "host CPU": "a CPU", "kernels": []}}))
        self.enterContext(mock.patch.object(runs, "ROOT", self.root))
        self.plots = []
        self.enterContext(mock.patch.object(plot, "plot", lambda known, base, path: self.plots.append(base)))

    def written(self, fresh: bool = True, rows: list[dict] = ROWS) -> str:
        """The report of @rows."""
        known = [(TOPIC, runs.Figures(rows, [self.out / "2026-02-03"], fresh))]
        report.write_files(self.out, self.base, self.imported(), known)
        return (self.out / "report.md").read_text()

    def test_tables(self):
        """The chosen rows with the price marked, timed rows with the base against itself
        and the other kernels, and the counts that got worse."""
        text = self.written()
        for words in ("| allocations | 14 | 0 | -100.0 % | better |",
                      "| bound tasks (the price) | 100 | 80 | 0.80 [0.70, 0.90] | worse |",
                      "30 rounds or more: 1 better, 1 worse, 0 cannot tell",
                      "| free | 100 | 2.00 [1.91, 2.09] | 1.00 [0.95, 1.05] | better | 0.50 |",
                      "in 50 % of the rows", "| `insns` | 1B | 2,000 ± 12 | 2,050 ± 12 | +2.5 % ± 0.9 |"):
            self.assertIn(words, text)
        self.assertNotIn("lines_mean", text)
        self.assertEqual(self.plots, ["9.1.2"])
        self.assertEqual(self.written(), text)

    def test_untold(self):
        """Timed rows that cannot be told are listed below the others, with their intervals."""
        text = self.written(rows=[*ROWS, timed("one", 1, 0.9, 1.1), timed("two", 1.02, 0.98, 1.06)])
        self.assertIn("\nCannot tell: one 1.00 [0.90, 1.10]; two 1.02 [0.98, 1.06].\n", text)
        self.assertNotIn("| one |", text)
        self.assertNotIn("Cannot tell:", self.written())

    def test_earlier(self):
        """Rows of an earlier state of the series are neither in the report nor in rows.csv."""
        self.assertNotIn("| free |", self.written(fresh=False))
        self.assertEqual(len((self.out / "rows.csv").read_text().splitlines()), 1)

    def test_unixbench(self):
        """The newest boots of UnixBench are a table, which says if the series changed."""
        cells = [{"metric": metric, "unit": unit, "condition": "one", "evidence": "timed-uml"}
                 for metric, unit in (("throughput", "op/s"), ("copied", "KB/s"))]
        put(self.out / "2026-02-04/unixbench.json", json.dumps({
            "version": "UnixBench 1", "environment": {"compiler": "gcc", "host CPU": "a CPU", "kernels": []},
            "cells": cells, "rounds": [{"baseline": [100, 10], "again": [100, 10], "patched": [200, 9]}] * 5}))
        for fresh in (False, True):
            with mock.patch.object(report, "fresh_suites", lambda *_, fresh=fresh: fresh):
                text = self.written()
            self.assertEqual("an earlier state" not in text, fresh)
        for words in ("Programs of UnixBench 1 on tmpfs", "5\nrounds",
                      "| one | 100 | 2.00 [2.00, 2.00] | 1.00 [1.00, 1.00] | better |",
                      "| one, copied in KB/s | 10 | 0.90 [0.90, 0.90] | 1.00 [1.00, 1.00] | worse |"):
            self.assertIn(words, text)

    def test_csv(self):
        """rows.csv has every kernel of every row, and the base against itself."""
        self.written()
        rows = list(csv.DictReader((self.out / "rows.csv").read_text().splitlines()))
        self.assertEqual(len(rows), 2 + 4 + 4 + 2 + 2)
        (again,) = [row for row in rows if (row["kernel"], row["condition"]) == ("again", "free")]
        self.assertEqual((again["value"], again["ratio"], again["low"], again["rounds"]), ("", "1", "0.95", "30"))


class Plot(Case):
    """What the figure is made of; plot() itself takes matplotlib."""

    def test_points(self):
        """A curve has the rows that are there and have a ratio; more is better."""
        curve = Curve("bound", ((1, "free"), (2, "bound"), (3, "other")))
        self.assertEqual([place for place, _ in plot.curve_points(curve, ROWS)], [1, 2])
        self.assertEqual(plot.ratio(ROWS[1]), (2, 1.91, 2.09))
        self.assertEqual(plot.ratio(cell("m", "c", baseline=4, patched=2)), (2, 2, 2))

    def test_nothing(self):
        """Without a row for it there is no figure."""
        panel = Panel("a", "b", (Curve("c", ((1, "nothing"),)),))
        known = [(Topic("pipe", "", "pipe", panel=panel), runs.Figures(ROWS, [], True))]
        self.assertFalse(plot.plot(known, "9", self.dir / "figure.svg"))

    def test_places(self):
        """Sizes are called as usual."""
        self.assertEqual([plot.place_name(one) for one in (1, 64, 4096, 1 << 20, 4000)],
                         ["1", "64", "4K", "1M", "4000"])


class Merge(Case):
    """bench.merge_sides()."""

    def test_details(self):
        """What a row says beside its value is kept by side."""
        one = {"metric": "lines", "unit": "lines", "condition": "a", "evidence": "lines", "value": 1,
               "detail": "fget 1"}
        [found] = bench.merge_sides({"baseline": [one], "patched": [{**one, "value": 0, "detail": ""}]}, TOPIC)
        self.assertEqual(found["details"], {"baseline": "fget 1", "patched": ""})
