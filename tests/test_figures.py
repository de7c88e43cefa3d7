# SPDX-License-Identifier: GPL-2.0
"""The blocks of figures in README, pages and cover letters."""

import copy
from dataclasses import replace
from pathlib import Path
from unittest import mock

from support import Case, KernelCase, put

# isort: split
from core import model
from core.model import Row, Topic
from reports import figures
from reports import runs
from test_report import ROWS, cell

TOPIC = Topic("pipe", "pages under the mutex", "pipe", see="a mutex", row=(
    Row("allocs", "allocs", "write", "allocations"), Row("free", "throughput", "free", "tasks"),
    Row("price", "throughput", "bound", "bound tasks", cost=True)),
    text={"symptom": "A write allocates {allocs.baseline} pages, and {allocs.patched} with the series "
                     "({allocs.change}); {free.tree} {free.ratio} {free.times}.", "bad": "{nothing.baseline}"})
OWN = runs.Figures(ROWS, [Path("results/v9.1/2026-02-03")], True)
BASE = mock.Mock()
BASE.name, BASE.version = "v0", "9.1"


class Numbers(Case):
    """How figures are shown."""

    def test_number(self):
        """Four digits, and whole numbers from a thousand up."""
        for value, text in ((0, "0"), (0.0, "0"), (14, "14"), (14.0, "14"), (0.5, "0.5"), (13.98765, "13.99"),
                            (999.94, "999.9"), (1000, "1,000"), (73412.6, "73,413"), (-2500, "-2,500"),
                            (0.00123456, "0.0012"), (14356250, "14.36 M")):
            self.assertEqual(figures.number(value), text)

    def test_moved(self):
        """The change has its sign; none is 0, from nothing is not a ratio, and
        half a row has none; a time has its ratio."""
        for before, after, text in ((14, 0, "-100.0 %"), (100, 150, "+50.0 %"), (1000, 999.4, "-0.1 %"),
                                    (7, 7, "0 %"), (0, 0, "0 %"), (0, 3, "n/a")):
            self.assertEqual(figures.moved(cell("m", "c", baseline=before, patched=after)), text)
        self.assertEqual(figures.moved(cell("m", "c", baseline=1)), "")
        self.assertEqual(figures.moved(ROWS[1]), "2.00 [1.91, 2.09]")

    def test_moved_by_chance(self):
        """What is left of a mean is as uncertain as it is large; of a row that was counted
        again, as the base is."""
        spread = {"deviation": 10, "number": 100}
        for before, after, text in ((40, 4, "-90.0 % ± 5.0"), (40, 0, "-100.0 %")):
            row = cell("m", "c", baseline=before, patched=after)
            self.assertEqual(figures.moved(row | {"spreads": {"baseline": spread, "patched": {**spread, "deviation":
                                                  1 if after else 0}}}), text.replace("5.0", "0.7"))
            self.assertEqual(figures.moved(row | {"again": 50}), text)


class Blocks(Case):
    """figures.fill()."""

    known = {"pipe": (TOPIC, OWN)}

    def fill(self, text: str, letter: str = "", known: dict | None = None) -> str:
        """@text with its blocks filled."""
        with mock.patch.object(Topic, "patches", lambda *_: []):
            return figures.fill(text, BASE, known or self.known, letter)

    def test_letter(self):
        """A letter has its topic's table, in columns, with the price marked."""
        text = "a\n<!-- figures: table -->\nold\n<!-- end of figures -->\nb\n"
        found = self.fill(text, "pipe")
        self.assertEqual(found.splitlines()[2:6], [
            "                9.1 series",
            "  allocations    14      0  -100.0 %",
            "  tasks         100    200  2.00 [1.91, 2.09]",
            "  * bound tasks 100     80  0.80 [0.70, 0.90]"])
        self.assertIn("9.1 against itself: 1.00 to 1.00.", " ".join(found.split()))
        self.assertTrue(found.startswith("a\n<!-- figures: table -->\n") and found.endswith("figures -->\nb\n"))
        self.assertEqual(self.fill(found, "pipe"), found)

    def test_noise(self):
        """A row in which the base is far from itself is named."""
        rows = copy.deepcopy(ROWS)
        rows[1]["statistics"]["sides"]["again"]["ratio"] = 1.2
        found = self.fill("<!-- figures: table -->\n<!-- end of figures -->\n", "pipe",
                          {"pipe": (TOPIC, replace(OWN, rows=rows))})
        self.assertIn("9.1 against itself: 1.00 to 1.00, 1.20 in 'tasks'.", " ".join(found.split()))

    def test_sentence(self):
        """A text has its figures in it, in a page of reStructuredText, too."""
        found = self.fill(".. figures: pipe.symptom\n.. end of figures\n")
        self.assertEqual(found, ".. figures: pipe.symptom\n\nA write allocates 14 pages, and 0 with the series (-100.0 "
                         "%); 50 2.00\n2.0 times.\n\n.. end of figures\n")
        self.assertEqual(self.fill(found), found)
        for name, words in (("pipe.other", "no text 'other'"), ("pipe.bad", "'nothing'"), ("pid.x", "no such topic")):
            with self.fails(words):
                self.fill(f".. figures: {name}\n.. end of figures\n")

    def test_stale(self):
        """Where figures are of an earlier state, the block says so, and what to do."""
        known = {"pipe": (TOPIC, runs.Figures(ROWS, OWN.runs, False))}
        text = "<!-- figures: table -->\n<!-- end of figures -->\n"
        self.assertIn("Run 'make bench TOPIC=pipe'", " ".join(self.fill(text, "pipe", known).split()))
        self.assertIn("| figures of an earlier state |", self.fill(text, "", known))

    def test_readme(self):
        """README has a line for each series that goes in with the others: what goes away, the
        gain, the price."""
        found = self.fill("<!-- figures: table -->\n<!-- end of figures -->\n")
        self.assertIn("| a mutex | allocations: 14 → 0 | tasks: 2.00 times [1.91, 2.09] | "
                      "bound tasks: 0.80 times [0.70, 0.90] | +0 -0 |", found)
        with mock.patch.object(figures, "replaced", lambda _base: [TOPIC]):
            self.assertNotIn("a mutex", self.fill("<!-- figures: table -->\n<!-- end of figures -->\n"))
        self.assertIn("pipe: bound tasks: 0.80 times [0.70, 0.90]", self.fill(".. figures: costs\n.. end of figures\n"))

    def test_readme_gain(self):
        """README's gain is a row in which the base is like itself, and says where figures are
        of a state before the last changes."""
        rows = copy.deepcopy(ROWS)
        rows[1]["statistics"]["sides"]["again"]["ratio"] = 1.2
        own = replace(OWN, rows=rows, notes=("Taken before.",))
        found = self.fill("<!-- figures: table -->\n<!-- end of figures -->\n", known={"pipe": (TOPIC, own)})
        self.assertIn("| none in time |", found)
        self.assertIn("\n\nFigures of before the last changes, see the letters: pipe.\n", found)
        self.assertNotIn("Figures of before", self.fill("<!-- figures: table -->\n<!-- end of figures -->\n"))

    def test_missing(self):
        """Where a row is missing, as after a run of time alone, there are no figures."""
        known = {"pipe": (TOPIC, runs.Figures(ROWS[1:], OWN.runs, True))}
        text = "<!-- figures: table -->\n<!-- end of figures -->\n"
        found = " ".join(self.fill(text, "pipe", known).split())
        self.assertIn("1 rows are not measured, 'allocations' first. Run 'make bench TOPIC=pipe'", found)
        self.assertIn("| not all measured |", self.fill(text, "", known))
        with self.fails("'allocs', 'write' of pipe", "series.toml"):
            figures.find(TOPIC, TOPIC.row[0], ROWS[1:])

    def test_price(self):
        """The price is a row that got worse, and in which the base is like itself."""
        self.assertEqual(figures.wrong_price(TOPIC, OWN), "")
        bad = {**ROWS[2], "statistics": {**ROWS[2]["statistics"], "sides": {"again": {"interval": [1.1, 1.2]}}}}
        for row, words in ((bad, "two boots of the base"), ({**ROWS[1], "condition": "bound"}, "did not get worse")):
            self.assertIn(words, figures.wrong_price(TOPIC, runs.Figures([*ROWS[:2], row], OWN.runs, True)))

    def test_markers(self):
        """A mail has the blocks without their markers."""
        text = "a\n<!-- figures: table -->\nx\n<!-- end of figures -->\nb\n"
        self.assertEqual(figures.without_markers(text), "a\nx\nb\n")

    def test_knockouts(self):
        """Each test has the cases that it has to notice below it, or none."""
        put(self.dir / "knockout.toml", 'config = "um"\n' + "".join(
            f'[[case]]\nname = "{name}"\ncommand = "./one -t x"\nfails = {fails}\n'
            for name, fails in (("nothing is left out", "false"), ("a barrier is", "true"))))
        topic = replace(TOPIC, native=("pipe:one", "regress/pipe:one_smoke.sh"), emulated=("pipe:two",))
        with mock.patch.object(figures, "variants", lambda *_: self.dir):
            self.assertEqual(figures.knockouts(BASE, {"pipe": (topic, OWN)}),
                             "pipe: one\n  - a barrier is\npipe: two\n  - none")


class Texts(KernelCase):
    """figures.out_of_date() of README, pages and letters."""

    def test_found(self):
        """Each file whose blocks are not what they are to be is found, with its text."""
        one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"))
        block = "<!-- figures: table -->\n<!-- end of figures -->\n"
        for path in ("README.md", "Documentation/page.rst", "patches/alpha/v0/0000-cover-letter.patch"):
            put(self.root / path, f"text\n{block if path != 'Documentation/page.rst' else ''}")
        for module in (figures, runs):
            self.enterContext(mock.patch.object(module, "ROOT", self.root))
        known = figures.load(self.base, self.imported())
        self.assertEqual(list(known), ["alpha"])
        found = dict(figures.out_of_date(self.base, known))
        self.assertEqual([path.name for path in found], ["README.md", "0000-cover-letter.patch"])
        self.assertIn("not measured yet", found[self.root / "README.md"])
        for path, text in found.items():
            put(path, text)
        self.assertEqual(figures.out_of_date(self.base, known), [])
        self.assertEqual(figures.kernel_lines(one, self.base), "+1 -1")


class Rows(KernelCase):
    """What series.toml says of figures."""

    def test_refused(self):
        """More than twelve rows, two of one id, no price, an unknown key."""
        row = '[[row]]\nid = "{}"\nmetric = "m"\ncondition = "c"\nlabel = "l"\n{}'
        cost = "cost = true\n"
        for more, words in (("".join(row.format(n, "") for n in range(13)), "13 rows"),
                            (row.format("a", cost) + row.format("a", ""), "two rows of one id"),
                            (row.format("a", ""), "cost = true"), (row.format("a", 'x = "1"\n'), "'x'"),
                            ('[panel]\ntitle = "t"\n', "'curve'")):
            with self.subTest(words=words), self.fails(words):
                self.topic("alpha", more=more)
        one = self.topic("alpha", more=row.format("a", cost) + '[panel]\ntitle = "t"\nx = "x"\n[[panel.curve]]\n'
                         'label = "l"\npoints = [[1, "c"]]\n')
        self.assertEqual((one.row[0].cost, one.panel.curve[0].points), (True, ((1.0, "c"),)))
        self.assertEqual(model.MOST_ROWS, 12)
