# SPDX-License-Identifier: GPL-2.0
"""What a cover letter has to have, and how long it may be."""

from unittest import mock

from support import Case

# isort: split
from core.model import Topic
from send import cover

ONE = Topic(name="pipe", summary="", kselftest="pipes")
GOOD = """The problem, in a paragraph. Costs are below.

<!-- figures: symptom -->
A write of 64 KiB allocates 8 pages under the mutex.
<!-- end of figures -->

What it does
============

 1  Less. 2  Tests.

User space:

Nothing changes.

Figures

<!-- figures: table -->
                 before   after
   64 bytes        1519    1461   -3.8 %
   4 KiB           9522    9504   -0.2 %
<!-- end of figures -->

What that means.

Costs:

8 bytes.

Related work

 - A pool of pages, merged in 7.2:
   https://lore.kernel.org/r/2
 - A larger one: https://lore.kernel.org/r/3

How to run it

  make kselftest TARGETS="pid pipes"
  make bench TOPIC=pipe

Changes since v3 of [1]:

 - Write it anew.

[1] https://lore.kernel.org/r/1
"""


class Cover(Case):
    """cover.letter_sections(), cover.size() and cover.wrong_letter()."""

    def changed(self, old: str, new: str, version: int = 1) -> list[str]:
        """What is wrong with GOOD with @new in place of @old."""
        self.assertIn(old, GOOD)
        return cover.wrong_letter(GOOD.replace(old, new), ONE, version)

    def test_sections(self):
        """A heading is a line of its own, with a colon, underlined, or bare."""
        found = cover.letter_sections(GOOD)
        self.assertEqual(list(found), [*cover.WANTED, cover.SINCE])
        self.assertEqual(found[cover.DOES], " 1  Less. 2  Tests.")
        self.assertTrue(found[cover.FIGURES].startswith("<!-- figures: table -->\n"))
        self.assertTrue(found[cover.FIGURES].endswith("What that means."))
        self.assertEqual(found[cover.COSTS], "8 bytes.")
        self.assertEqual(cover.letter_sections("No heading at all.\n"), {})

    def test_good(self):
        """A first version says what changed since the list's."""
        self.assertEqual(cover.wrong_letter(GOOD, ONE, 1), [])

    def test_size(self):
        """Lines and words are those of all of it; numbers are not those of blocks,
        addresses, and words that have some."""
        self.assertEqual(cover.size("At 1.5, 1,000 of x86-64 v7.3.4 [1].\nhttps://a/2 3\n"),
                         {"lines": 2, "words": 9, "numbers": 3})
        self.assertEqual(cover.size(GOOD)["numbers"], 4)
        self.assertEqual(cover.size(GOOD)["lines"], len(GOOD.splitlines()))

    def test_limits(self):
        """A letter at a limit passes, and one beyond it does not."""
        for what in ("lines", "words", "numbers"):
            have = cover.size(GOOD)[what]
            with self.subTest(what=what), mock.patch.object(cover, what.upper(), have):
                self.assertEqual(cover.wrong_letter(GOOD, ONE, 1), [])
                setattr(cover, what.upper(), have - 1)
                (said,) = cover.wrong_letter(GOOD, ONE, 1)
                self.assertIn(f"has {have} {what}: {have - 1} are the limit", said)
        self.assertEqual((cover.LINES, cover.WORDS, cover.NUMBERS), (100, 800, 60))

    def test_changes(self):
        """Changes have ten lines at most, without the addresses that they refer to."""
        item = " - Write it anew.\n"
        self.assertEqual(self.changed(item, item * 10), [])
        (said,) = self.changed(item, item * 11)
        self.assertIn("has 11 lines below 'Changes since ...': 10 are", said)

    def test_long_lines(self):
        """A line has 75 columns at most; blocks and addresses may have more."""
        long = "word " * 15 + "x"
        (said,) = self.changed("What that means.", long)
        self.assertIn("a line of 76 columns ('word word", said)
        self.assertEqual(self.changed("What that means.", long[1:]), [])
        self.assertEqual(self.changed("What that means.", "https://lore.kernel.org/r/" + "1" * 60), [])
        self.assertEqual(self.changed("   64 bytes    ", "   " + long), [])

    def test_next_version(self):
        """A later one says what changed in it; the older changes may stay."""
        (said,) = cover.wrong_letter(GOOD, ONE, 2)
        self.assertIn("no section 'Changes in v2'", said)
        for new in ("Changes in v2:\n\n - Y\n\nChanges since v3 of [1]:", "Changes in v2:"):
            self.assertEqual(self.changed("Changes since v3 of [1]:", new, 2), [])
            self.assertIn("'Changes in v3'", self.changed("Changes since v3 of [1]:", new, 3)[0])

    def test_wrong(self):
        """Each thing that is missing is one sentence."""
        table = GOOD[GOOD.index("                 before"):GOOD.index("<!-- end of figures -->\n\nWhat that")]
        for old, new, words in (
                ("What it does\n============", "What is there\n=====", "no section 'What it does'"),
                ("User space:", "Users:", "no section 'User space'"),
                ("Costs:\n", "Costs: ", "no section 'Costs'"),
                ("8 bytes.\n", "", "no section 'Costs'"),
                ("How to run it", "To run it", "no section 'How to run it'"),
                ("Changes since v3 of [1]", "News", "no section 'Changes since ...'"),
                ("Figures\n\n<!-- figures: table -->\n" + table + "<!-- end of figures -->\n\nWhat that means.\n\n"
                 "Costs:\n\n8 bytes.\n", "Costs:\n\n8 bytes.\n\nFigures\n\n<!-- figures: table -->\n" + table
                 + "<!-- end of figures -->\n", "in another order than What it does, "),
                (table, "", "no table in its section 'Figures'"),
                ("What that means.", table, "a table that nobody generates ('64 bytes "),
                ("<!-- figures: symptom -->\nA write of 64 KiB allocates 8 pages under the mutex.\n"
                 "<!-- end of figures -->\n", "", "begins without a symptom"),
                ("What that means.", "It is 1.4x as fast.", "has '1.4x' in line 24: "),
                ("\n   https://lore.kernel.org/r/2", "", "without an address ('- A pool of pages"),
                ("TARGETS=\"pid pipes\"", "TARGETS=pipe", "'TARGETS=pipes'"),
                ("make bench TOPIC=pipe", "make bench TOPIC=pipefs", "'make bench TOPIC=pipe'"),
                ("What that means.", "*** BLURB HERE ***", "the placeholder '***'"),
                ("What that means.", "TODO: measure it", "the placeholder 'TODO'")):
            with self.subTest(old=old, new=new):
                said = self.changed(old, new)
                self.assertIn(words, said[0])
                self.assertTrue(said[0].startswith("the cover letter of pipe "), said)
                self.assertEqual([one for one in said if "\n" in one], [])
        self.assertEqual(len(cover.wrong_letter("*** BLURB HERE ***\n", ONE, 1)), 9)
