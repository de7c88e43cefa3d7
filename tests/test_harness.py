# SPDX-License-Identifier: GPL-2.0
"""Tests in user space: leaving parts out, and judging what a program does."""

from unittest import mock

from support import Case, put

# isort: split
from core.ktap import FAILED, PASSED, SKIPPED
from core.model import ROOT, find_base, find_topic
from prove import harness

# A program that fails if a word is not in the source that it is compiled of.
MAKEFILE = "program: source.c\n\t@printf '#!/bin/sh\\ngrep -q barrier %s || { echo raced; exit 1; }\\n' " \
           "$(CURDIR)/source.c > program; chmod +x program\n.PHONY: program\n"
TABLE = {"directory": "t", "program": "program", "words": ["1"], "source": "t/source.c",
         "case": [{"name": "no barrier", "replace": [["barrier", "nothing"]]},
                  {"name": "another word", "replace": [["word", "verb"]]}]}


class LeftOut(Case):
    """harness.left_out()."""

    def test_not_there(self):
        """What is not there, or twice, is told with its case."""
        for source in ("", "a a"):
            with self.subTest(source), self.fails("'x'", f"{source.count('a')} times"):
                harness.left_out(source, {"name": "x", "replace": [["a", "b"]]})


class Series(Case):
    """harness.run_harness() on a fake source."""

    def results(self, urcu: bool = True) -> list:
        """The results with the fake source, on a machine that has liburcu or not."""
        self.fake("gcc", f"exit {0 if urcu else 1}\n")
        with mock.patch.multiple(harness, described=lambda *_: TABLE, apply=lambda *_: "HEAD",
                                 copied=lambda _repo, _revision, to: (put(to / "t/Makefile", MAKEFILE),
                                                                      put(to / "t/source.c", "word barrier\n"))):
            return list(harness.run_harness(find_topic("pid"), find_base("v7.3"), self.dir))

    def test_knocked_out(self):
        """As it is the program passes; where a part is left out it should fail."""
        self.assertEqual([one.verdict for one in self.results()], [PASSED, PASSED, PASSED, FAILED])

    def test_no_liburcu(self):
        """Without it there is one result, which says so."""
        found = self.results(urcu=False)
        self.assertEqual([one.verdict for one in found], [SKIPPED])
        self.assertIn("liburcu", found[0].why)

    def test_own_cases(self):
        """Every text that harness.toml replaces is in the series, once."""
        base, topic = find_base("v7.3"), find_topic("pid")
        table = harness.described(topic, base)
        source = (ROOT / table["source"]).read_text()
        for case in table["case"]:
            with self.subTest(case["name"]):
                self.assertNotEqual(harness.left_out(source, case), source)
