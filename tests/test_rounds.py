# SPDX-License-Identifier: GPL-2.0
"""Boots in rounds, and the rows that come out of them."""

import random

from support import Case

# isort: split
import rounds
from measure import row


class Rounds(Case):
    """rounds.rounds() with boots that take no time."""

    def run_rounds(self, spread: float, least: int, most: int) -> list[dict]:
        """The cells of boots whose figures differ by @spread; the order of the
        boots is in self.order."""
        self.order = []
        source = random.Random(2)

        def boot(side: str) -> list[dict]:
            number = len(self.order) // len(rounds.SIDES)
            self.order.append((number, side))
            value = (50 if side == "patched" else 100) * (1 + spread * source.uniform(-1, 1)) + 1e6 * (not number)
            return [row("throughput", "op/s", "a", "timed-uml", value)]

        return rounds.rounds(boot, least, most, "alpha")

    def test_order(self):
        """All sides are in each round, not always in the same order; the first
        round does not count."""
        (cell,) = self.run_rounds(0.001, 8, 20)
        self.assertEqual(len(self.order), 9 * 3)
        for number in range(9):
            self.assertEqual({side for nth, side in self.order if nth == number}, set(rounds.SIDES))
        self.assertGreater(len({tuple(self.order[3 * nth + n][1] for n in range(3)) for nth in range(9)}), 2)
        self.assertEqual({side: len(values) for side, values in cell["boots"].items()},
                         dict.fromkeys(rounds.SIDES, 8))
        self.assertLess(max(cell["boots"]["baseline"]), 1000)

    def test_precision(self):
        """It goes on until the intervals are narrow, or for the most rounds."""
        self.run_rounds(0.6, 5, 20)
        self.assertEqual(self.order[-1][0], 20)
        self.run_rounds(0.01, 5, 20)
        self.assertEqual(self.order[-1][0], 5)

    def test_rows(self):
        """A cell is a row with medians and a verdict; less of a time is better,
        and more of a rate."""
        cells = self.run_rounds(0.01, 5, 20)
        (one,) = rounds.compared(cells, "alpha", ", emulated")
        self.assertEqual((one["topic"], one["condition"]), ("alpha", "a, emulated"))
        self.assertEqual(one["statistics"]["verdict"], "loss")
        self.assertEqual(one["values"], one["statistics"]["medians"])
        (one,) = rounds.compared([{**cells[0], "unit": "ns"}], "alpha")
        self.assertEqual(one["statistics"]["verdict"], "gain")

    def test_repeated(self):
        """Where the time was taken before, a row is a gain or a loss only if both runs
        say so, and both are kept; of three runs the newest two count."""
        def run(*found: str) -> list[dict]:
            return [{**row("throughput", "op/s", condition, "timed-uml", 1), "statistics": {
                **dict.fromkeys(rounds.OF_A_RUN, len(found)), "verdict": verdict}}
                for condition, verdict in zip("abcd", found, strict=False)]

        def verdicts(rows: list[dict]) -> list[str]:
            return [one["statistics"]["verdict"] for one in rows]

        none = "no difference seen"
        first, second = run("gain", "gain", none), run("gain", "loss", "gain", "loss")
        both = rounds.repeated(second, first)
        self.assertEqual(verdicts(both), ["gain", none, none, "loss"])
        self.assertEqual([one["verdict"] for one in both[1]["statistics"]["runs"]], ["loss", "gain"])
        self.assertNotIn("runs", both[3]["statistics"])
        third = rounds.repeated(run("gain", "loss", none, "loss"), both)
        self.assertEqual(verdicts(third), ["gain", "loss", none, "loss"])
        self.assertEqual([one["boots"] for one in third[1]["statistics"]["runs"]], [4, 4])

    def test_others(self):
        """Others are booted in each round, too; they have a median and a ratio to
        the baseline, and nothing waits for these to be precise."""
        source = random.Random(3)
        booted = []

        def boot(side: str) -> list[dict]:
            booted.append(side)
            value = {"patched": 50, "tree": 200 * source.uniform(0.5, 1.5)}.get(side, 100)
            return [row("throughput", "op/s", "a", "timed-uml", value)]

        (one,) = rounds.compared(rounds.rounds(boot, 5, 20, "alpha", ("tree",)), "alpha")
        self.assertEqual({side: booted.count(side) for side in booted}, dict.fromkeys((*rounds.SIDES, "tree"), 6))
        self.assertEqual((one["values"]["baseline"], one["values"]["patched"]), (100, 50))
        other = one["statistics"]["others"]["tree"]
        self.assertEqual(other["ratio"], one["values"]["tree"] / 100)
        self.assertLess(other["interval"][0], other["ratio"])
        self.assertLess(other["ratio"], other["interval"][1])
