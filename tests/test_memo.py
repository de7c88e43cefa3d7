# SPDX-License-Identifier: GPL-2.0
"""Results that are remembered."""

import os

from support import Case

# isort: split
from core import locks
from core import memo
from core import process
from core.ktap import FAILED, PASSED, SKIPPED, Result

GOOD = [Result("a", PASSED), Result("b", SKIPPED, "no ü here")]
BAD = [Result("a", PASSED), Result("b", FAILED, "why")]


class Results(Case):
    """memo.results()."""

    def setUp(self):
        super().setUp()
        self.runs = 0

    def ask(self, gives: list[Result], *inputs: str, what: str = "lint", fresh: bool = False) -> list[Result]:
        """The results, of a check that gives @gives and counts in self.runs."""
        def check():
            self.runs += 1
            yield from gives

        return list(memo.results(what, list(inputs), check, fresh))

    def kept(self) -> list:
        """The files that are kept."""
        return list((locks.cache() / "memo").glob("*"))

    def test_again(self):
        """What passed or was skipped is told again, with the day it was seen."""
        self.assertEqual(self.ask(GOOD, "x"), GOOD)
        self.assertEqual(self.said.getvalue(), "")
        (path,) = self.kept()
        os.utime(path, (86400 * 365, 86400 * 365))
        self.assertEqual(self.ask(BAD, "x"), GOOD)
        self.assertEqual(self.runs, 1)
        for words in ("lint", "2 cached results", "1971-01-01", "FRESH=1"):
            self.assertIn(words, self.said.getvalue())

    def test_other_inputs(self):
        """Another input, or the same ones in another place, is another check."""
        self.ask(GOOD, "x", "y")
        for inputs, what in ((("x",), "lint"), (("x", "z"), "lint"), (("xy",), "lint"), (("x", "y", ""), "lint"),
                             (("x", "y"), "variants")):
            self.assertEqual(self.ask(BAD, *inputs, what=what), BAD)
        self.assertEqual(self.runs, 6)
        self.assertEqual(len(self.kept()), 1)

    def test_failure(self):
        """Nothing is kept where one failed, even if it passed before."""
        for _ in range(2):
            self.assertEqual(self.ask(BAD, "x"), BAD)
        self.assertEqual((self.runs, self.kept()), (2, []))

    def test_fresh(self):
        """Asked for afresh it runs anyway, and what passes is kept."""
        self.ask(GOOD, "x")
        self.assertEqual(self.ask(GOOD[:1], "x", fresh=True), GOOD[:1])
        self.assertEqual(self.ask(BAD, "x"), GOOD[:1])
        self.assertEqual(self.runs, 2)

    def test_refused(self):
        """What is not to be run is skipped with the reason, unless it is known,
        and that is not kept."""
        def refused() -> list[Result]:
            return list(memo.results("lint", ["x"], self.fail, False, "no time"))

        self.assertEqual((refused(), self.kept()), ([Result("lint", SKIPPED, "no time")], []))
        self.ask(GOOD, "x")
        self.assertEqual(refused(), GOOD)

    def test_broken_off(self):
        """Nothing is kept of a check that a failure or the caller ends."""
        def check():
            yield GOOD[0]
            raise process.Failure("no disk")

        with self.fails("no disk"):
            list(memo.results("lint", ["x"], check, False))
        next(memo.results("lint", ["x"], lambda: iter(GOOD), False))
        self.assertEqual(self.kept(), [])

    def test_damaged(self):
        """A file that cannot be read is as none, and written anew."""
        self.ask(GOOD, "x")
        (path,) = self.kept()
        for text in ("", "[[", "7", '[["a"]]', '[{"a": 1}]'):
            path.write_text(text)
            self.assertEqual(self.ask(GOOD, "x"), GOOD)
            self.assertEqual(memo.recall(path), GOOD)
        self.assertEqual((self.runs, len(self.kept())), (6, 1))
