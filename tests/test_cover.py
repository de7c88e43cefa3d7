# SPDX-License-Identifier: GPL-2.0
"""What a cover letter has to have."""

from support import Case

# isort: split
import cover
from model import Topic

ONE = Topic(name="pipe", summary="", kselftest="pipes")
GOOD = """What the series does, in a paragraph. Costs are below.

Results
=======

                 before   after
   64 bytes        1519    1461   -3.8 %
   4 KiB           9522    9504   -0.2 %

What that means.

Costs:

8 bytes.

How to reproduce

  make kselftest TARGETS="pid pipes"

Changes since v3 of [1]:

 - Write it anew.

[1] https://lore.kernel.org/r/1
"""


class Cover(Case):
    """cover.sections() and cover.wrong()."""

    def test_sections(self):
        """A heading is a line of its own, with a colon, underlined, or bare."""
        found = cover.sections(GOOD)
        self.assertEqual(list(found), ["Results", "Costs", "How to reproduce", "Changes since ..."])
        self.assertTrue(found["Results"].startswith("                 before   after\n"))
        self.assertTrue(found["Results"].endswith("What that means."))
        self.assertEqual(found["Costs"], "8 bytes.")
        self.assertEqual(cover.sections("No heading at all.\n"), {})

    def test_good(self):
        """A first version says what changed since the list's."""
        self.assertEqual(cover.wrong(GOOD, ONE, 1), [])
        bench = GOOD.replace('kselftest TARGETS="pid pipes"', "bench TOPIC=pipe")
        self.assertEqual(cover.wrong(bench, ONE, 1), [])

    def test_long_lines(self):
        """Prose has 75 columns at most; tables and addresses may have more."""
        long = "word " * 15 + "x"
        (said,) = cover.wrong(GOOD.replace("What that means.", long), ONE, 1)
        self.assertIn("a line of 76 columns ('word word", said)
        for text in (long[1:], "   " + long, "https://lore.kernel.org/r/" + "1" * 60):
            self.assertEqual(cover.wrong(GOOD.replace("What that means.", text), ONE, 1), [])

    def test_next_version(self):
        """A later one what changed in it; the older changes may stay."""
        (said,) = cover.wrong(GOOD, ONE, 2)
        self.assertIn("no section 'Changes in v2'", said)
        for text in (GOOD.replace("Changes since v3 of [1]:", "Changes in v2:\n\n - Y\n\nChanges since v3 of [1]:"),
                     GOOD.replace("Changes since v3 of [1]:", "Changes in v2:")):
            self.assertEqual(cover.wrong(text, ONE, 2), [])
            self.assertIn("'Changes in v3'", cover.wrong(text, ONE, 3)[0])

    def test_wrong(self):
        """Each thing that is missing is one sentence."""
        for old, new, words in (
                ("Results\n=======", "Figures\n=======", "no section 'Results'"),
                ("Costs:\n", "Costs: ", "no section 'Costs'"),
                ("8 bytes.\n", "", "no section 'Costs'"),
                ("How to reproduce", "To reproduce", "no section 'How to reproduce'"),
                ("Changes since v3 of [1]", "News", "no section 'Changes since ...'"),
                ("   4 KiB           9522    9504   -0.2 %\n", "", "no table in its section 'Results'"),
                ("TARGETS=\"pid pipes\"", "TARGETS=pipe", "'TARGETS=pipes'"),
                ("make kselftest TARGETS=\"pid pipes\"", "make bench TOPIC=pipefs", "'make bench TOPIC=pipe'"),
                ("What that means.", "*** BLURB HERE ***", "the placeholder '***'"),
                ("What that means.", "TODO: measure it", "the placeholder 'TODO'")):
            with self.subTest(old=old, new=new):
                self.assertIn(old, GOOD)
                (said,) = cover.wrong(GOOD.replace(old, new), ONE, 1)
                self.assertTrue(said.startswith("the cover letter of pipe has "), said)
                self.assertIn(words, said)
                self.assertNotIn("\n", said)
        self.assertEqual(len(cover.wrong("*** BLURB HERE ***\n", ONE, 1)), 5)
