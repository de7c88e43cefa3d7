# SPDX-License-Identifier: GPL-2.0
"""What is taken for a measured number, and where it may stand."""

from support import Case

# isort: split
from reports import measured

BLOCK = "<!-- figures: table -->\n  1.4x\n\n<!-- end of figures -->"
RST = ".. figures: costs\n\n22 %\n\n.. end of figures"


class Measured(Case):
    """measured.numbers(), blocks(), wrong() and wrong_message()."""

    def found(self, text: str) -> list[str]:
        """The measured numbers of @text, in words."""
        return [words for _, words in measured.numbers(text)]

    def test_measured(self):
        """Percentages, ratios, counts and times, and what is compared."""
        for text, words in (
                ("22 % less", "22 %"), ("22% less", "22%"), ("by 4.2 per cent", "4.2 per cent"), ("1.4x", "1.4x"),
                ("2 to 3 times as fast", "3 times"), ("at 0.78 of that", "0.78"), ("1.83 and more", "1.83"),
                ("it is 0.78.", "0.78"), ("(1.25-1.63)", "1.25-1.63"), ("2 -> 0", "2 -> 0"), ("8.9 → 0", "8.9 → 0"),
                ("155 instructions", "155 instructions"), ("155\nmore instructions", "155 more instructions"),
                ("71,062 instructions", "71,062 instructions"), ("80 ns", "80 ns"), ("3 ms", "3 ms"),
                ("10 op/s", "10 op/s"), ("9 Mop/s", "9 Mop/s"), ("4 M/s", "4 M/s"), ("200 MB/s", "200 MB/s"),
                ("2 acquisitions", "2 acquisitions"), ("47.0, not 34.5", "47.0, not 34.5"),
                ("8 pages instead of 3", "8 pages instead of 3"), ("30 boots", "30 boots"),
                ("476 pass", "476 pass"), ("8 shared lines", "8 shared lines"), ("13 cache lines", "13 cache lines")):
            with self.subTest(text=text):
                self.assertEqual(self.found(text), [words])

    def test_not_measured(self):
        """Limits, sizes, versions, dates, addresses, and what a command takes."""
        for text in ("16 pages", "up to 4 KiB", "7.3.4", "6.18", "Python 3.11", "24 minutes", "x86-64", "2026-11-25",
                     "results/v7.3/2026-11-25", "https://lore.kernel.org/r/0.78%", "patch 5", "5 writers, 10 readers",
                     "75 columns", "v7.3 -> v7.4", "0x20", "150 lines of code", "[1]", "-icount shift=0,sleep=off",
                     "2 CPUs", "1.2.3", "for 64 B", "64-byte lines", "twice", "100 msecs", "25 GB"):
            with self.subTest(text=text):
                self.assertEqual(self.found(text), [])

    def test_exceptions(self):
        """Each exception has a reason, and is one: without it the words would be found."""
        for words, reason in measured.EXCEPT.items():
            with self.subTest(words=words):
                self.assertTrue(reason)
                self.assertEqual(self.found(words.replace(" ", "\n")), [])
                self.assertTrue(measured.MEASURED.search(words))

    def test_blocks(self):
        """What is in a block is not looked at; lines are counted with it."""
        for block, name, body in ((BLOCK, "table", "  1.4x\n\n"), (RST, "costs", "\n22 %\n\n")):
            text = f"a\n\n{block}\n\n9 ns\n"
            with self.subTest(block=block):
                self.assertEqual(measured.blocks(text), {name: body})
                self.assertEqual(measured.numbers(text), [(text.count("\n"), "9 ns")])
                self.assertEqual(measured.wrong_text(text.replace("9 ns", "9 s"), "a text"), [])
        self.assertEqual(measured.blocks("<!-- figures: table -->\n<!-- end of figures -->\n"), {"table": ""})

    def test_wrong(self):
        """A number, and a marker without its other half, are a sentence each."""
        (said,) = measured.wrong_text("a\n9 ns\n", "README.md")
        self.assertTrue(said.startswith("README.md has '9 ns' in line 2: "), said)
        for line in (*BLOCK.splitlines(), *RST.splitlines()):
            if "figures" in line:
                with self.subTest(line=line):
                    (said,) = measured.wrong_text(f"a\n{line}\nb\n", "README.md")
                    self.assertTrue(said.startswith(f"README.md has '{line}' without its other half: "), said)

    def test_swallowed(self):
        """A marker without an end does not hide what is before the next block."""
        text = f"<!-- figures: table -->\n9 ns\n{BLOCK}\n"
        self.assertEqual(measured.numbers(text), [(2, "9 ns")])
        self.assertIn("'<!-- figures: table -->' without its other half", measured.wrong_text(text, "README.md")[1])

    def test_message(self):
        """A message has as many measured numbers as are known of it."""
        self.assertEqual(measured.wrong_message("9 ns, 3 %", "a message", 2), [])
        (said,) = measured.wrong_message("9 ns, 3 %", "a message", 1)
        self.assertTrue(said.startswith("a message has 2 measured numbers in its message, not 1 (9 ns, 3 %): "), said)
        self.assertIn("not 1 (none)", measured.wrong_message("", "a message", 1)[0])
