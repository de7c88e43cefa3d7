# SPDX-License-Identifier: GPL-2.0
"""What make bench compares."""

import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

from support import KernelCase, git, put

# isort: split
from core.process import Failure
from measure import Measurement
from measure import bench
from source import tree


class Revisions(KernelCase):
    """bench.revisions() of a series of three patches."""

    def setUp(self):
        super().setUp()
        self.one = self.series("alpha", *[("fs/pipe.c", f"line {n}\n", f"LINE {n}\n") for n in (1, 12, 24)])
        self.repo = self.imported()

    def pipe(self, side: bench.Side) -> list[str]:
        """The lines of fs/pipe.c on @side which the series or a variant changed."""
        return [line for line in git("show", f"{side.revision}:fs/pipe.c", cwd=side.repo).splitlines()
                if not line.startswith("line")]

    def test_columns(self):
        """Steps come before the series, variants after it."""
        put(self.root / "patches/alpha/variants/v0/odd.patch",
            "--- a/fs/pipe.c\n+++ b/fs/pipe.c\n@@ -1,3 +1,3 @@\n-LINE 1\n+odd 1\n line 2\n line 3\n")
        put(self.root / "patches/alpha/variants/v0/other.patch",
            "--- a/fs/pipe.c\n+++ b/fs/pipe.c\n@@ -1,3 +1,3 @@\n-line 1\n+other 1\n line 2\n line 3\n")
        self.enterContext(mock.patch.object(tree, "ROOT", self.root))
        one = replace(self.one, steps={"first": 1, "second": 2}, instead=("other",), compared=("odd",))
        found = bench.revisions(self.repo, self.base, one)
        self.assertEqual(list(found), ["baseline", "first", "second", "other", "patched", "odd"])
        self.assertEqual([self.pipe(found[name]) for name in ("first", "second", "other", "odd")],
                         [["LINE 1"], ["LINE 1", "LINE 12"], ["other 1"], ["odd 1", "LINE 12", "LINE 24"]])

    def test_replaced(self):
        """What a topic replaces is a column before it, where that has a series."""
        one = replace(self.one, replaces="beta")
        self.topic("beta")
        self.assertEqual(list(bench.revisions(self.repo, self.base, one)), ["baseline", "patched"])
        self.series("beta", ("fs/pipe.c", "line 5\n", "LINE 5\n"))
        found = bench.revisions(self.repo, self.base, one)
        self.assertEqual(list(found), ["baseline", "beta", "patched"])
        self.assertEqual(self.pipe(found["beta"]), ["LINE 5"])

    def bench(self, measured: mock.Mock, *words: str) -> Path:
        """Run bench.main() with all that takes a kernel replaced, and what is
        @measured; the results directory."""
        out = self.dir / "results/v0/today"
        with contextlib.ExitStack() as stack:
            for name in ("kselftests", "need", "room_for_builds", "write_report", "kernel"):
                stack.enter_context(mock.patch.object(bench, name))
            for name, value in (("repository", lambda *_: self.repo), ("accelerator", lambda *_: "tcg"),
                                ("measures", mock.Mock(return_value=mock.Mock(MEASUREMENTS=[
                                    Measurement("writes", "trace", "", mock.Mock())], NATIVE=None))),
                                ("environment", lambda _base, accel, kernels: [accel, kernels]),
                                ("record", lambda *_: {}), ("counted", measured)):
                stack.enter_context(mock.patch.object(bench, name, value))
            stack.enter_context(mock.patch.object(sys, "argv", ["bench.py", "--topic", "alpha", "--out", str(out),
                                                                *words]))
            bench.main()
        return out

    def test_written(self):
        """A run that does not come to its end leaves no directory; one that does is
        written once."""
        row = {"topic": "alpha", "metric": "allocs", "condition": "64KiB", "evidence": "counter", "value": 1}
        for broken in (KeyboardInterrupt, Failure("the guest died")):
            with self.assertRaises((KeyboardInterrupt, Failure)):
                self.bench(mock.Mock(side_effect=broken))
            self.assertFalse((self.dir / "results").exists())
        out = self.bench(mock.Mock(return_value=[row]))
        self.assertEqual(json.loads((out / "summary.json").read_text()), [row])
        self.assertEqual(json.loads((out / "environment.json").read_text()), {"alpha": ["tcg", [{}, {}]]})
        with self.fails("written once"):
            self.bench(mock.Mock(side_effect=AssertionError))

    def test_only(self):
        """Counts or time can be taken alone; a base whose time nobody takes says so."""
        with self.fails("nothing is timed of alpha", "ONLY=time"):
            self.bench(mock.Mock(side_effect=AssertionError), "--only", "time")
        self.enterContext(mock.patch.object(bench, "clock", mock.Mock(side_effect=AssertionError)))
        self.bench(mock.Mock(return_value=[{"topic": "alpha"}]), "--only", "counts")

    def test_timed_rows(self):
        """The summary has the averages of the boots; the base's are of both."""
        cell = {"metric": "throughput", "unit": "op/s", "condition": "a", "evidence": "timed-uml"}
        (row,) = bench.rows_of_boots(self.one, {"cells": [cell], "rounds": [
            {"baseline": [1], "again": [3], "patched": [value]} for value in (4, 5, 6.25)]})
        self.assertAlmostEqual(row["values"].pop("patched"), 5)
        self.assertEqual(row, {"topic": "alpha", **cell, "values": {"baseline": 2}})

    def test_resumed(self):
        """What was counted before an interruption is not counted again, until the
        figures are written; the directory of a guest has a name that vng takes."""
        def rows(_run: Path) -> list[dict]:
            return [{"metric": "insns", "unit": "", "condition": "", "evidence": "icount", "value": 1}]

        compared = bench.revisions(self.repo, self.base, self.one)
        measurement = Measurement("instructions, 2 CPUs", "trace", "true\n", rows)
        guest = mock.Mock(side_effect=[self.dir, KeyboardInterrupt, self.dir])
        self.fake("qemu-system-x86_64", "echo QEMU 1\n")
        (self.dir / "output.log").touch()
        with contextlib.ExitStack() as stack:
            for name, value in (("kernel", mock.Mock()), ("guest_run", guest)):
                stack.enter_context(mock.patch.object(bench, name, value))
            with self.assertRaises(KeyboardInterrupt):
                bench.counted(self.one, compared, [measurement], self.dir, "tcg")
            (row,) = bench.counted(self.one, compared, [measurement], self.dir, "tcg")
            self.assertEqual(row["values"], {"baseline": 1, "patched": 1})
            self.assertEqual([call.args[-1] for call in guest.mock_calls],
                             [f"v0-alpha-instructions-2-CPUs-{side}" for side in ("baseline", "patched", "patched")])
            other, more = (lambda: "other"), replace(measurement, memory="2G")
            for changed, tests, name, does in ((more, self.dir, "counting", bench.counting),
                                               (measurement, self.dir / "other", "counting", bench.counting),
                                               (measurement, self.dir, "counting", other),
                                               (measurement, self.dir, "version", other)):
                with self.subTest(memory=changed.memory, tests=tests, name=name, other=does is other), \
                        mock.patch.object(bench, name, does):
                    guest.reset_mock()
                    guest.side_effect = [self.dir] * 2
                    bench.counted(self.one, compared, [changed], tests, "tcg")
                    self.assertEqual(guest.call_count, 2)
        self.assertTrue(bench.unfinished(self.base, self.one, "counts").exists())
        self.bench(mock.Mock(return_value=[row]))
        self.assertFalse(bench.unfinished(self.base, self.one, "counts").exists())

    def test_chosen(self):
        """A measurement is of all columns, or of those that it names and that are
        there; the time is taken of the base, the series and what is named."""
        compared = dict.fromkeys(("baseline", "tree", "map", "patched"), mock.Mock())
        self.assertEqual(list(bench.chosen(compared, mock.Mock(sides=()))), list(compared))
        self.assertEqual(list(bench.chosen(compared, mock.Mock(sides=("patched", "baseline", "none")))),
                         ["baseline", "patched"])
        sides = bench.revisions(self.repo, self.base, self.one)
        sides = {"baseline": sides["baseline"], "tree": sides["baseline"], "map": sides["baseline"],
                 "patched": sides["patched"]}
        with mock.patch.object(bench, "with_benchmark", lambda _repo, revision, _own: f"{revision} and a clock"):
            timed = bench.timing(replace(self.one, timed=("map",)), sides)
        self.assertEqual(list(timed), ["baseline", "map", "patched"])
        self.assertEqual(timed["map"].revision, f"{self.base.tag} and a clock")

    def test_own_patches(self):
        """The series, and the one that it replaces, are timed with their own patches
        for that; others are not."""
        for name in ("alpha", "beta"):
            put(self.root / f"patches/{name}/variants/v0/time.patch", "")
        self.topic("beta")
        self.enterContext(mock.patch.object(tree, "ROOT", self.root))
        side = bench.revisions(self.repo, self.base, self.one)["patched"]
        with mock.patch.object(bench, "with_benchmark", lambda _repo, _revision, own: own and own.parts[-4]):
            timed = bench.timing(replace(self.one, replaces="beta", timed=("beta", "other")),
                                 dict.fromkeys(("baseline", "other", "beta", "patched"), side))
        self.assertEqual({name: one.revision for name, one in timed.items()},
                         {"baseline": None, "other": None, "beta": "beta", "patched": "alpha"})
