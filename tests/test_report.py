# SPDX-License-Identifier: GPL-2.0
"""The tables of the report, and the rows that they are made from."""

import json
from unittest import mock

from support import Case, KernelCase, git, put

# isort: split
import bench
import dots
import report
import results
import tree
from model import Topic, find_base

BASE = find_base("v6.18")


def cell(metric: str, condition: str, **values) -> dict:
    """A row of summary.json with @values."""
    return {"topic": "pipe", "metric": metric, "unit": "pages", "condition": condition, "evidence": "counter",
            "values": values}


class Cells(Case):
    """How figures are shown."""

    def test_number(self):
        """Four digits, and whole numbers from a thousand up."""
        for value, text in ((0, "0"), (0.0, "0"), (14, "14"), (14.0, "14"), (0.5, "0.5"), (13.98765, "13.99"),
                            (999.94, "999.9"), (1000, "1,000"), (73412.6, "73,413"), (-2500, "-2,500"),
                            (0.00123456, "0.001235")):
            self.assertEqual(dots.number(value), text)

    def test_moved(self):
        """The change has its sign; none is 0, from nothing is not a ratio, and
        half a row has none."""
        for before, after, text in ((14, 0, "-100.0 %"), (100, 150, "+50.0 %"), (1000, 999.4, "-0.1 %"),
                                    (7, 7, "0 %"), (0, 0, "0 %"), (0, 3, "n/a")):
            self.assertEqual(report.moved(cell("m", "c", baseline=before, patched=after)), text)
        self.assertEqual(report.moved(cell("m", "c", baseline=1)), "")
        self.assertEqual(report.moved(cell("m", "c", patched=1)), "")

    def test_spread(self):
        """A mean has its deviation, and how many samples there are and the least
        of them; a row without a spread in the same table has none of it."""
        spread = {"deviation": 66, "number": 1000}
        spreads = {side: {**spread, "least": least}
                   for side, least in (("baseline", 1461), ("patched", 1332), ("steps", 4))}
        row = {**cell("insn", "1B", baseline=1478, steps=5, patched=1334.5), "evidence": "icount", "spreads": spreads}
        self.assertEqual(report.table([row, cell("n", "c", baseline=1, patched=2)]), [
            "| metric | condition | baseline | steps | patched | change | samples | least | unit |",
            "|---|---|---|---|---|---|---|---|---|",
            "| `insn` | 1B | 1,478 ± 66 | 5 ± 66 | 1,334 ± 66 | -9.7 % | 1,000 | 1,461 → 1,332 | pages |",
            "| `n` | c | 1 |  | 2 | +100.0 % |  |  | pages |"])

    def test_worse(self):
        """Less of a rate is worse, more of anything else is; what no
        verdict was found of is neither."""
        for unit, before, after, found in (("pages", 10, 11, 0.1), ("op/s", 10, 11, -0.1), ("per s", 10, 5, 0.5),
                                           ("of 1000 messages", 500, 1000, -1), ("of 16", 16, 8, 0.5),
                                           ("pages", 0, 5, 0)):
            row = {**cell("m", "c", baseline=before, patched=after), "unit": unit}
            self.assertAlmostEqual(results.worse(row), found)
        self.assertEqual(results.worse({**row, "statistics": {"verdict": "no difference seen"}}), 0)


class Summary(Case):
    """results.read_summary()."""

    def test_bad(self):
        """What is no JSON, no list, or no row is told in one sentence."""
        good = cell("allocs", "64KiB", baseline=14.0)
        for text, words in (("{", ("cannot read", "make bench")), ("{}", ("no list",)), ("[1]", ("row 1", "'topic'")),
                            (json.dumps([good, {**good, "evidence": "guess"}]), ("row 2", "'guess'", "counter")),
                            (json.dumps([{name: good[name] for name in good if name != "unit"}]), ("row 1", "'unit'")),
                            (json.dumps([{**good, "metric": "a/b"}]), ("row 1", "metric")),
                            (json.dumps([{**good, "values": 3}]), ("row 1", "values"))):
            with self.subTest(text=text), self.fails("summary.json", *words):
                results.read_summary(put(self.dir / "summary.json", text))
        self.assertEqual(results.read_summary(put(self.dir / "summary.json", json.dumps([good]))), [good])

    def test_withdrawn(self):
        """Emulated wall time in older results is left out."""
        good = cell("allocs", "64KiB", baseline=14.0)
        old = {**good, "evidence": "delay"}
        self.assertEqual(results.read_summary(put(self.dir / "summary.json", json.dumps([old, good, old]))), [good])


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
        """A timed row has its ratio with the interval, the noise floor and the verdict."""
        one = cell("ns", "64KiB", baseline=100, patched=80)
        one["statistics"] = {"ratio": 0.8, "interval": [0.78, 0.8249], "noise ratio": 1.001,
                             "noise interval": [0.99, 1.01], "verdict": "loss"}
        self.assertEqual(report.table([one])[0], "| metric | condition | baseline | patched | change | ratio | "
                                                 "A/A | verdict | unit |")
        self.assertEqual(report.table([one])[2], "| `ns` | 64KiB | 100 | 80 | -20.0 % | 0.800 [0.780, 0.825] | "
                                                 "1.001 [0.990, 1.010] | loss | pages |")
        one["statistics"]["interval"] = [0.7, 0.9]
        self.assertIn("| loss, wide |", report.table([one])[2])
        one["values"]["tree"] = 90
        one["statistics"]["others"] = {"tree": {"ratio": 0.9, "interval": [0.88, 0.92]}}
        self.assertIn("| 100 | 80 | 90, 0.900 [0.880, 0.920] | -20.0 % |", report.table([one])[2])
        one["statistics"]["runs"] = [{}, {"ratio": 0.9, "interval": [0.8, 1.1], "verdict": "no difference seen"}]
        self.assertIn("| verdict | run before | unit |", report.table([one])[0])
        self.assertIn("| 0.900 [0.800, 1.100], no difference seen | pages |", report.table([one])[2])


class Dots(Case):
    """The rows that a figure shows."""

    def test_chosen(self):
        """Of each metric what moved most, better or worse, in the report's
        order; not what has no baseline, did not move, or is not to be compared."""
        rows = [cell("a", str(nth), baseline=100, patched=100 + nth) for nth in range(40)]
        rows += [cell("b", "worse", baseline=1, patched=3), cell("b", "new", patched=3), cell("c", "same", baseline=1,
                 patched=1), {**cell("lines_mean", "all", baseline=1, patched=9), "evidence": "lines"},
                 {**cell("d", "once", baseline=1, patched=9), "evidence": "timed"}]
        found = dots.chosen(rows)
        self.assertEqual(len(found), dots.MOST)
        self.assertEqual([row["condition"] for row in found], [*map(str, range(16, 40)), "worse"])

    def test_losses(self):
        """What got worse is there, however much more the others gained."""
        rows = [cell("a", str(nth), baseline=100, patched=nth) for nth in range(40)]
        rows.append(cell("a", "worse", baseline=100, patched=101))
        rows += [{**cell("rate", verdict, baseline=100, patched=99), "unit": "op/s", "evidence": "timed-uml",
                  "statistics": {"verdict": verdict}} for verdict in ("loss", "no difference seen")]
        found = [row["condition"] for row in dots.chosen(rows)]
        self.assertIn("worse", found)
        self.assertIn("loss", found)
        self.assertEqual(len(found), dots.MOST)

    def test_colour(self):
        """Better, worse, and what does not repeat are told apart."""
        rows = [cell("m", "c", baseline=1000, patched=value) for value in (900, 1100, 1001)]
        found = [dots.colour({**row, "evidence": "icount"}) for row in rows]
        self.assertEqual(len(set(found)), 3)
        self.assertEqual(dots.colour(rows[2]), found[1])
        turns = {"deviation": 100, "number": 4, "least": 1}
        grey = [dots.colour({**row, "spreads": {"baseline": turns, "patched": turns}}) for row in rows]
        self.assertEqual(grey, ["#8a8a8a"] * 3)
        turns["deviation"] = 50
        self.assertEqual(dots.colour({**rows[0], "spreads": {"baseline": turns, "patched": turns}}), found[0])


class Details(Case):
    """report.details()."""

    def test_details(self):
        """What rows say beside their values is told by side; nothing without."""
        rows = [cell("accesses", "2 CPUs", baseline=2, patched=0), cell("lines", "2 CPUs", baseline=1, patched=0)]
        self.assertEqual(report.details(rows), [])
        rows[0]["details"] = {"baseline": "fget 2", "patched": ""}
        self.assertEqual([text for text in report.details(rows) if text.startswith("-")],
                         ["- 2 CPUs, baseline: fget 2"])


class Write(Case):
    """report.write() without its figures, which take matplotlib."""

    def setUp(self):
        super().setUp()
        self.plots = []
        self.enterContext(mock.patch.object(dots, "plot", lambda rows, title, path: self.plots.append(
            (title, len(rows), path.name))))
        self.rows = [cell("frees_under_mutex", "read", baseline=1, patched=0),
                     cell("allocs_under_mutex", "write", baseline=14, patched=0),
                     cell("allocs_under_mutex", "memcg", baseline=14, patched=0),
                     {**cell("insn_per_pair", "1B", baseline=2000, patched=1900), "evidence": "icount"},
                     {**cell("insn_per_pair", "4KiB", baseline=2000, patched=2050), "evidence": "icount"}]
        self.out = self.dir / "v6.18/2026-11-21"
        put(self.out / "summary.json", json.dumps(self.rows))

    def test_from_summary_alone(self):
        """The report has a line for the topic, a figure, and folded, a table for
        each kind of evidence; the same figures give the same report."""
        text = report.write(self.out, BASE, {"pipe": "of the series as it is"}).read_text()
        for words in ("2026-11-21", "v6.18", "### Counters", "### Instructions", "<details>",
                      "| `insn_per_pair` | 1B | 2,000 | 1,900 | -5.0 % | pages |"):
            self.assertIn(words, text)
        self.assertIn("| pipe | `allocs_under_mutex`, write | 14 → 0 | -5.0 % to +2.5 % |  | `insn_per_pair`, 4KiB: "
                      "+2.5 % | of the series as it is |", text)
        self.assertNotIn("### Time", text)
        self.assertEqual(self.plots, [("pipe: base → series", 5, "pipe.svg")])
        self.assertEqual(report.write(self.out, BASE, {"pipe": "of the series as it is"}).read_text(), text)

    def test_timed(self):
        """Verdicts of time are counted, what got worse as what got better, and
        not those of what else is counted on the same boots."""
        topic = Topic("pipe", "", "pipe", "allocs_under_mutex")
        for ratio, verdict in ((1.5, "gain"), (2.5, "gain"), (0.8, "loss"), (1, "no difference seen")):
            self.rows.append({**cell("throughput", str(ratio), baseline=10, patched=10 * ratio), "unit": "op/s",
                              "evidence": "timed-uml", "statistics": {"ratio": ratio, "verdict": verdict}})
        self.rows.append({**cell("context_switches", "make", baseline=10, patched=11), "unit": "switches",
                          "evidence": "timed-uml", "statistics": {"ratio": 1.1, "verdict": "loss"}})
        line = report.headline(topic, self.rows, "")
        self.assertIn("| 2 better, 1 worse, 1 without a difference (0.80 to 2.50) |", line)
        self.assertIn("| `throughput`, 0.8: -20.0 % |", line)
        self.rows.append(cell("allocs", "1B", baseline=1, patched=9))
        self.assertIn("| `allocs`, 1B: +800.0 %; `throughput`, 0.8: -20.0 % |", report.headline(topic, self.rows, ""))

    def test_worst_line(self):
        """A part of a cache line is not the worst row, however large a part of
        next to nothing it is, nor is a mean of lines; a line is."""
        topic = Topic("pipe", "", "pipe", "allocs_under_mutex")
        self.rows.append({**cell("shared_lines", "few", baseline=0.01, patched=0.9), "evidence": "lines"})
        self.rows.append({**cell("shared_lines_mean", "all", baseline=1, patched=9), "evidence": "lines"})
        self.assertIn("| `insn_per_pair`, 4KiB: +2.5 % |", report.headline(topic, self.rows, ""))
        self.rows.append({**cell("shared_lines", "many", baseline=10, patched=11), "evidence": "lines"})
        self.assertIn("| `shared_lines`, many: +10.0 % |", report.headline(topic, self.rows, ""))

    def test_base(self):
        """The base is that which the results name, whatever their directory is called;
        a directory without results is told, with what writes them."""
        with self.fails(str(self.dir), "make bench"):
            report.base_of(self.dir)
        put(self.dir / "suites.json", json.dumps({"environment": {"base": "v6.18.15"}}))
        self.assertEqual(report.base_of(self.dir).name, "v6.18")
        put(self.dir / "environment-pipe.json", json.dumps({"base": "v7.3.4"}))
        self.assertEqual(report.base_of(self.dir).name, "v7.3")

    def test_readme(self):
        """README's table is replaced between its marks, and nothing else; one
        without them is told."""
        text = f"before\n{report.MARKS[0]}old\nfigures\n{report.MARKS[1]}after\n"
        found = report.readme(text, "new\n")
        self.assertEqual(found, f"before\n{report.MARKS[0]}new\n{report.MARKS[1]}after\n")
        self.assertEqual(report.readme(found, "new\n"), found)
        with self.fails("README.md", "figures"):
            report.readme("nothing", "new\n")


class Fresh(KernelCase):
    """Whether figures are of the series as it is."""

    def test_fresh(self):
        """Another page or message changes no figure; another source does.  No
        table is shown of figures of another source."""
        one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"), ("Documentation/x.rst", "", "text\n"))
        repo = self.imported()
        self.enterContext(mock.patch.object(results, "ROOT", self.root))
        self.assertIn("| alpha |", report.figures(self.base, repo))
        self.assertIn("not measured yet", report.figures(self.base, repo))
        revision = tree.apply(repo, self.base, [one])
        kernels = [{"side": "baseline", "code": "x"}, {"side": "patched", "code": tree.code_of(repo, revision)}]
        where = self.root / "results/v0/2026-02-03"
        put(where / "environment-alpha.json", json.dumps({"kernels": kernels}))
        put(where / "summary.json", json.dumps([{**cell("count", "all", baseline=7, patched=0), "topic": "alpha"}]))
        self.assertEqual(results.newest(self.base, one), where)
        self.assertIn("7 → 0", report.figures(self.base, repo))
        worktree = tree.worktree(repo, "test", revision)
        for path, same in (("Documentation/x.rst", True), ("fs/pipe.c", False)):
            put(worktree / path, "other text\n")
            git("commit", "-q", "-a", "-m", "other", cwd=worktree)
            head = git("rev-parse", "HEAD", cwd=worktree)
            with mock.patch.object(results, "apply", return_value=head):
                self.assertEqual(results.fresh(self.base, repo, one, where), same)
                self.assertEqual("7 → 0" in report.figures(self.base, repo), same)


    def test_replaces(self):
        """README has the figures of a topic that takes the place of another, too."""
        self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"))
        self.series("beta", ("fs/pipe.c", "line 7\n", "line VII\n"))
        path = self.root / "patches/beta/series.toml"
        put(path, 'replaces = "alpha"\n' + path.read_text())
        self.enterContext(mock.patch.object(results, "ROOT", self.root))
        text = report.figures(self.base, self.imported())
        self.assertEqual([line.split()[1] for line in text.splitlines()[2:]], ["alpha", "beta"])


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

    def test_details(self):
        """What a row says beside its value is kept by side."""
        one = {"metric": "lines", "unit": "lines", "condition": "a", "evidence": "lines", "value": 1,
               "detail": "fget 1"}
        [found] = bench.merge({"baseline": [one], "patched": [{**one, "value": 0, "detail": ""}]},
                              Topic("pipe", "", "pipe", "lines"))
        self.assertEqual(found["details"], {"baseline": "fget 1", "patched": ""})
