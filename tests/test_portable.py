# SPDX-License-Identifier: GPL-2.0
"""The mechanisms in user space, regress/portable/: what they print, and that a way that
is wrong is seen."""

import json
import subprocess
from pathlib import Path

from support import SCRIPTS, Case, put

PORTABLE = SCRIPTS.parent / "regress" / "portable"
MOST_LINES = 150
# What is taken out of each, and what is said then.
KNOCKOUTS = {
    "guard": (("if (object == atomic_load(&current))", "if (1)", "an object that is gone"),
              ("memory_order_acquire) == old)", "memory_order_acquire) == old && 0)", "an object that is gone"),
              ("while (one = 1, !atomic_compare_exchange_weak(&old->count, &one, GONE))",
               "for (one = GONE, old->count = GONE; one != GONE;)", "an object that is gone")),
    "numbers": (("if (!(atomic_fetch_or(&chunks[number / SLOTS].used, bit) & bit))",
                 "atomic_fetch_or(&chunks[number / SLOTS].used, bit);\n\t\tif (1)", "two owners"),),
    "pages": (("memcpy(page, from, PAGE)", "memcpy(page, from, PAGE / 2)", "other bytes"),),
}


class Programs(Case):
    """Each of them."""

    def built(self, name: str, source: Path) -> Path:
        """The program @name, built of @source without a warning."""
        out = self.dir / name
        done = subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-pthread", "-I", PORTABLE, "-o", out, source],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return out

    def test_output(self):
        """A line of JSON for each number of threads, with something done in each way;
        what is no option is told."""
        for name in KNOCKOUTS:
            self.assertLessEqual(len((PORTABLE / f"{name}.c").read_text().splitlines()), MOST_LINES)
            program = self.built(name, PORTABLE / f"{name}.c")
            done = subprocess.run([program, "--threads", "1,3", "--ms", "60", "--json"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            found = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([one["threads"] for one in found], [1, 3])
            self.assertTrue(all(value > 0 for one in found for value in one.values()), found)
            done = subprocess.run([program, "--threads", "2", "--ms", "5"], capture_output=True, text=True)
            self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 3))
            for wrong in (["--threads", "0"], ["--threads", "1,x"], ["--ms", "0"], ["--ms"], ["--jsonl"]):
                self.assertEqual(subprocess.run([program, *wrong], capture_output=True).returncode, 2, wrong)

    def test_knockouts(self):
        """Without a part of the mechanism, a reader or an owner finds out."""
        for name, parts in KNOCKOUTS.items():
            text = (PORTABLE / f"{name}.c").read_text()
            for old, new, said in parts:
                with self.subTest(name=name, old=old):
                    self.assertIn(old, text)
                    program = self.built("knockout", put(self.dir / "knockout.c", text.replace(old, new)))
                    done = subprocess.run([program, "--threads", "2", "--ms", "400"], capture_output=True, text=True)
                    self.assertEqual(done.returncode, 1, done.stdout)
                    self.assertIn(said, done.stderr)
