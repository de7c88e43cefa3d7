# SPDX-License-Identifier: GPL-2.0
"""What the runs of results/ say of a topic."""

import json
from dataclasses import replace
from unittest import mock

from support import Case, KernelCase, git, put

# isort: split
from core import model
from reports import runs
from reports import stats
from source import tree


def row(condition: str, evidence: str = "counter", topic: str = "alpha", **values) -> dict:
    """A row of summary.json with @values."""
    return {"topic": topic, "metric": "count", "unit": "pages", "condition": condition, "evidence": evidence,
            "values": values}


class Summary(Case):
    """runs.read_summary()."""

    def test_bad(self):
        """What is no JSON, no list, or no row is told in one sentence."""
        good = row("64KiB", baseline=14.0)
        for text, words in (("{", ("cannot read", "git")), ("{}", ("no list",)), ("[1]", ("row 1", "'topic'")),
                            (json.dumps([good, {**good, "evidence": "guess"}]), ("row 2", "'guess'", "counter")),
                            (json.dumps([{name: good[name] for name in good if name != "unit"}]), ("row 1", "'unit'")),
                            (json.dumps([{**good, "values": 3}]), ("row 1", "values"))):
            with self.subTest(text=text), self.fails("summary.json", *words):
                runs.read_summary(put(self.dir / "summary.json", text))
        self.assertEqual(runs.read_summary(put(self.dir / "summary.json", json.dumps([good]))), [good])


class Verdict(Case):
    """runs.row_verdict()."""

    def test_counts(self):
        """An exact count is better or worse by its value; of a mean the difference has
        to be more than its error."""
        for unit, before, after, found in (
                ("pages", 10, 11, stats.WORSE), ("op/s", 10, 11, stats.BETTER), ("per s", 10, 5, stats.WORSE),
                ("of 1000 messages", 500, 1000, stats.BETTER), ("pages", 0, 5, stats.WORSE),
                ("pages", 5, 5, stats.CANNOT_TELL)):
            self.assertEqual(runs.row_verdict({**row("c", baseline=before, patched=after), "unit": unit}), found)
        self.assertEqual(runs.row_verdict(row("c", patched=1)), stats.CANNOT_TELL)
        spread = {"deviation": 10, "number": 100}
        one = {**row("c", baseline=100, patched=102), "spreads": {"baseline": spread, "patched": spread}}
        self.assertEqual(runs.row_verdict(one), stats.CANNOT_TELL)
        one["values"]["patched"] = 103
        self.assertEqual(runs.row_verdict(one), stats.WORSE)
        # Counted again, the base differed.
        for again, found in ((101, stats.WORSE), (98, stats.CANNOT_TELL)):
            self.assertEqual(runs.row_verdict(one | {"again": again}), found)


class Statistics(Case):
    """runs.statistics() and averages()."""

    def test_pairs(self):
        """Kernels are compared round by round, with the mean of the base's two boots; a
        host that is slow for a round changes no ratio."""
        key = ("timed-uml", "throughput", "a")
        rounds = [{"baseline": {key: 100 * slow}, "again": {key: 300 * slow}, "patched": {key: 400 * slow},
                   "tree": {key: 100 * slow}} for slow in (1, 0.1, 5, 2, 3, 1)]
        found = runs.statistics(rounds, key)
        self.assertAlmostEqual(found["ratio"], 2)
        self.assertAlmostEqual(found["interval"][1] - found["interval"][0], 0)
        self.assertAlmostEqual(found["sides"]["again"]["ratio"], 3)
        self.assertAlmostEqual(found["sides"]["tree"]["ratio"], 0.5)
        self.assertEqual(found["rounds"], 6)
        # The middle of 10, 100, 100, 200, 300, 500: the base has twice that, in the mean.
        middle = 100 * 6 ** 0.25
        for side, times in {"baseline": 2, "patched": 4, "tree": 1}.items():
            self.assertAlmostEqual(runs.averages(rounds, key)[side], times * middle)
        self.assertIsNone(runs.statistics([{"baseline": {key: 1}}], key))


class Written(KernelCase):
    """Runs in results/, written and read."""

    def setUp(self):
        super().setUp()
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"),
                               ("Documentation/x.rst", "", "text\n"))
        self.repo = self.imported()
        self.enterContext(mock.patch.object(runs, "ROOT", self.root))
        self.revision = tree.apply(self.repo, self.base, [self.one])
        self.code = tree.code_of(self.repo, self.revision)

    def write(self, name: str, rows: list[dict], boots: dict | None = None, code: str = "", cpu: str = "a CPU",
              base_code: str = "base"):
        """A run of @rows and @boots on the kernels that @code and @base_code are of."""
        kernels = [{"side": side, "code": own} | ({"timed code": f"{own} and a clock"} if boots else {})
                   for side, own in (("baseline", base_code), ("patched", code or self.code))]
        files = {"environment.json": {"alpha": {"host CPU": cpu, "kernels": kernels}}, "summary.json": rows}
        runs.write_run(self.root / "results/v0" / name, files | ({"boots.json": {"alpha": boots}} if boots else {}))

    def figures(self) -> runs.Figures:
        """What the runs say."""
        return runs.topic_figures(self.base, self.repo, self.one)

    def test_once(self):
        """A run is all there or not at all, is never written over, and several of one
        day have numbers."""
        self.write("2026-02-03", [row("a", patched=1)])
        with self.fails("written once", "OUT="):
            self.write("2026-02-03", [])
        with self.assertRaises(TypeError):
            self.write("2026-02-04", [object()])
        self.assertEqual([path.name for path in runs.all_runs(self.base)], ["2026-02-03"])
        with mock.patch.object(runs.time, "strftime", return_value="2026-02-03"):
            for _ in range(10):
                self.write(runs.new_directory(self.base).name, [])
        self.assertEqual([path.name for path in runs.all_runs(self.base)][-2:], ["2026-02-03.10", "2026-02-03.11"])

    def test_newest(self):
        """A count is of the newest run of the series as it is; what that does not have
        stays that of the one before."""
        self.assertEqual(self.figures(), runs.Figures([], [], False))
        self.write("2026-02-03", [row("a", baseline=1, patched=1), row("b", patched=2)], code="old")
        found = self.figures()
        self.assertEqual((len(found.rows), found.fresh), (2, False))
        self.write("2026-02-04", [row("a", patched=3), row("c", patched=4), row("d", topic="beta", patched=9)])
        self.write("2026-02-05", [row("a", patched=5)])
        found = self.figures()
        self.assertEqual([(one["condition"], one["values"]["patched"]) for one in found.rows], [("a", 5), ("c", 4)])
        self.assertEqual(([path.name for path in found.runs], found.fresh), (["2026-02-04", "2026-02-05"], True))

    def test_earlier(self):
        """Figures of an earlier state count where series.toml says so, but for rows that a
        run of the series as it is has; why is said as long as a row is of that state."""
        self.write("2026-02-03", [row("a", patched=1), row("b", patched=2)], code="old")
        self.assertFalse(self.figures().fresh)
        table = self.root / "patches/alpha/series.toml"
        put(table, table.read_text() + '\n[base."v0".earlier]\nold = "Taken before."\n')
        self.one = model.find_topic("alpha")
        self.assertEqual((self.figures().fresh, self.figures().notes), (True, ("Taken before.",)))
        for name, condition, values, notes in (("2026-02-02", "a", [3, 2], ("Taken before.",)),
                                               ("2026-02-01", "b", [3, 4], ())):
            self.write(name, [row(condition, patched=values[-1] if condition == "b" else 3)])
            found = self.figures()
            self.assertEqual(([one["values"]["patched"] for one in found.rows], found.notes), (values, notes))

    def test_columns(self):
        """A row of a newer run keeps columns of an older one: those of kernels on the base, and
        of the same series all; not where the base is another."""
        self.one = replace(self.one, instead=("tree",))
        self.write("2026-02-03", [row("a", baseline=1, patched=2, tree=3, more=4)])
        for name, how, columns in (("2026-02-04", {}, {"tree": 3, "more": 4}),
                                   ("2026-02-05", {"base_code": "another"}, {})):
            self.write(name, [row("a", baseline=1, patched=5)], **how)
            self.assertEqual(self.figures().rows[0]["values"], {"baseline": 1, "patched": 5} | columns)
        table = self.root / "patches/alpha/series.toml"
        put(table, table.read_text() + '\n[base."v0".earlier]\nold = "Taken before."\n')
        self.one = replace(model.find_topic("alpha"), instead=("tree",))
        self.write("2026-02-01", [row("b", baseline=1, patched=2, tree=3, more=4)], code="old")
        self.write("2026-02-02", [row("b", baseline=1, patched=5)])
        self.assertIn({"baseline": 1, "patched": 5, "tree": 3}, [one["values"] for one in self.figures().rows])

    def test_pooled(self):
        """Rounds of all runs of the series are one sample, but for those of another
        machine, or of another kernel."""
        cell = {"metric": "throughput", "unit": "op/s", "condition": "a", "evidence": "timed-uml"}

        def boots(value: float, number: int = 5) -> dict:
            return {"cells": [cell], "rounds": [{"baseline": [100], "again": [100], "patched": [value]}] * number}

        summary = [{"topic": "alpha", **cell, "values": {"baseline": 1, "patched": 1}}]
        self.write("2026-02-03", summary, boots(150))
        self.write("2026-02-04", summary, boots(999), cpu="another")
        self.write("2026-02-05", summary, boots(999), base_code="another")
        self.write("2026-02-06", summary, boots(999), code="another")
        self.write("2026-02-07", summary, boots(150, 7))
        self.write("2026-02-08", [row("counted alone", patched=1)])
        found, _ = self.figures().rows
        self.assertEqual(found["statistics"]["rounds"], 12)
        self.assertAlmostEqual(found["statistics"]["ratio"], 1.5)
        self.assertAlmostEqual(found["values"]["baseline"], 100)
        self.assertAlmostEqual(found["values"]["patched"], 150)
        text = (self.root / "results/v0/2026-02-07/boots.json").read_text()
        self.assertEqual(len(text.splitlines()), 16)

    def test_stale(self):
        """Another page, message or comment changes no figure; another source does."""
        self.write("2026-02-03", [row("a", patched=1)])
        worktree = tree.worktree(self.repo, "test", self.revision)
        for path, text, same in (("Documentation/x.rst", "other text\n", True),
                                 ("fs/pipe.c", (worktree / "fs/pipe.c").read_text() + "/* why */\n", True),
                                 ("fs/pipe.c", "other code\n", False)):
            put(worktree / path, text)
            git("commit", "-q", "-a", "-m", "other", cwd=worktree)
            head = git("rev-parse", "HEAD", cwd=worktree)
            with mock.patch.object(runs, "apply", return_value=head):
                self.assertEqual(self.figures().fresh, same, path)
