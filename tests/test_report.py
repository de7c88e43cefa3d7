# SPDX-License-Identifier: GPL-2.0
"""The tables of the report, and the rows that they are made from."""

import json

from support import Case, put

# isort: split
import bench
import report
from model import Topic


def cell(metric: str, condition: str, **values) -> dict:
    """A row of summary.json with @values."""
    return {"topic": "pipe", "metric": metric, "unit": "pages", "condition": condition, "evidence": "counter",
            "values": values}


class Cells(Case):
    """report.number() and report.change()."""

    def test_number(self):
        """Four digits, and whole numbers from a thousand up."""
        for value, text in ((0, "0"), (0.0, "0"), (14, "14"), (14.0, "14"), (0.5, "0.5"), (13.98765, "13.99"),
                            (999.94, "999.9"), (1000, "1,000"), (73412.6, "73,413"), (-2500, "-2,500"),
                            (0.00123456, "0.001235")):
            self.assertEqual(report.number(value), text)

    def test_change(self):
        """The change has its sign; none is 0, from nothing is not a ratio, and
        half a row has none."""
        for before, after, text in ((14, 0, "-100.0 %"), (100, 150, "+50.0 %"), (1000, 999.4, "-0.1 %"),
                                    (7, 7, "0 %"), (0, 0, "0 %"), (0, 3, "n/a")):
            self.assertEqual(report.change({"baseline": before, "patched": after}), text)
        self.assertEqual(report.change({"baseline": 1}), "")
        self.assertEqual(report.change({"patched": 1}), "")


class Summary(Case):
    """report.read_summary()."""

    def test_bad(self):
        """What is no JSON, no list, or no row is told in one sentence."""
        good = cell("allocs", "64KiB", baseline=14.0)
        for text, words in (("{", ("cannot read", "make bench")), ("{}", ("no list",)), ("[1]", ("row 1", "'topic'")),
                            (json.dumps([good, {**good, "evidence": "guess"}]), ("row 2", "'guess'", "counter")),
                            (json.dumps([{name: good[name] for name in good if name != "unit"}]), ("row 1", "'unit'")),
                            (json.dumps([{**good, "metric": "a/b"}]), ("row 1", "metric")),
                            (json.dumps([{**good, "values": 3}]), ("row 1", "values"))):
            with self.subTest(text=text), self.fails("summary.json", *words):
                report.read_summary(put(self.dir / "summary.json", text))
        self.assertEqual(report.read_summary(put(self.dir / "summary.json", json.dumps([good]))), [good])


class Table(Case):
    """report.table()."""

    def test_every_cell(self):
        """All rows are there in order, better, worse, the same, and half empty."""
        self.assertEqual(report.table([
            cell("allocs", "64KiB", baseline=14.0, patched=0.0), cell("allocs", "1B", baseline=1, patched=2),
            cell("frees", "1B", baseline=3, patched=3), cell("frees", "new", patched=1500)]), [
            "| metric | condition | baseline | patched | change | unit |",
            "|---|---|---|---|---|---|",
            "| `allocs` | 64KiB | 14 | 0 | -100.0 % | pages |",
            "| `allocs` | 1B | 1 | 2 | +100.0 % | pages |",
            "| `frees` | 1B | 3 | 3 | 0 % | pages |",
            "| `frees` | new |  | 1,500 |  | pages |"])

    def test_timed(self):
        """A timed row has its ratio with the interval, the noise floor and p."""
        one = cell("ns", "64KiB", baseline=100, patched=80)
        one["statistics"] = {"ratio": 0.8, "interval": [0.78, 0.8249], "noise ratio": 1.001,
                             "noise interval": [0.99, 1.01], "p": 2 / 252}
        self.assertEqual(report.table([one])[0], "| metric | condition | baseline | patched | change | ratio | "
                                                 "noise | p | unit |")
        self.assertEqual(report.table([one])[2], "| `ns` | 64KiB | 100 | 80 | -20.0 % | 0.800 [0.780, 0.825] | "
                                                 "1.001 [0.990, 1.010] | 0.008 | pages |")


class Write(Case):
    """report.write() without its plots, which take matplotlib."""

    def setUp(self):
        super().setUp()
        self.plots = []
        plain = report.plot
        self.addCleanup(setattr, report, "plot", plain)
        report.plot = lambda rows, title, path: self.plots.append((title, len(rows), path.name))

    def test_from_summary_alone(self):
        """The report has a table for each kind of evidence, and a plot of the
        topic's first metric."""
        rows = [cell("frees_under_mutex", "read", baseline=1, patched=0),
                cell("allocs_under_mutex", "write", baseline=14, patched=0),
                cell("allocs_under_mutex", "memcg", baseline=14, patched=0),
                {**cell("insn_per_pair", "1B", baseline=2000, patched=1900), "evidence": "icount"}]
        out = self.dir / "v6.18/2026-11-21"
        put(out / "summary.json", json.dumps(rows))
        text = report.write(out).read_text()
        for words in ("2026-11-21", "v6.18", "### Mechanism counters", "### Instructions",
                      "| `insn_per_pair` | 1B | 2,000 | 1,900 | -5.0 % | pages |"):
            self.assertIn(words, text)
        self.assertNotIn("### Time", text)
        self.assertEqual(self.plots, [("pipe: allocs_under_mutex", 2, "pipe-allocs_under_mutex.svg")])
        before = text
        self.assertEqual(report.write(out).read_text(), before)

    def test_no_summary(self):
        """A directory without a summary is told, with what writes it."""
        with self.fails("summary.json", "make bench"):
            report.write(self.dir)


class Merge(Case):
    """bench.merge()."""

    def test_sides(self):
        """The rows of both sides become one row for each metric and condition;
        a row that one side lacks is not lost."""
        def row(metric, condition, value):
            return {"metric": metric, "unit": "pages", "condition": condition, "evidence": "counter", "value": value}

        one = Topic("pipe", "", "pipe", "allocs")
        found = bench.merge({"baseline": [row("allocs", "a", 14), row("allocs", "b", 1)],
                             "patched": [row("allocs", "a", 0), row("frees", "a", 2)]}, one)
        self.assertEqual(found, [cell("allocs", "a", baseline=14, patched=0), cell("allocs", "b", baseline=1),
                                 cell("frees", "a", patched=2)])
