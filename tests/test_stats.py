# SPDX-License-Identifier: GPL-2.0
"""The statistics of timed runs, against values known from elsewhere."""

import random
import unittest

import support  # noqa: F401

# isort: split
import stats

BASELINE = [100.0, 101.5, 99.2, 100.7, 98.9, 100.1, 101.0]
PATCHED = [80.1, 81.2, 79.0, 80.6, 79.4, 80.0, 80.9]


class Paired(unittest.TestCase):
    """stats.paired()."""

    def test_outliers(self):
        """A quarter of the rounds at each end moves neither ratio nor interval far."""
        found = stats.paired([0.01, 0.1, *[1.5] * 12, 30, 100])
        self.assertAlmostEqual(found["ratio"], 1.5)
        self.assertLess(found["interval"][1], 4)

    def test_coverage(self):
        """The interval has the true ratio in it in some 95 of 100 samples."""
        source, hits = random.Random(5), 0
        for _ in range(200):
            low, high = stats.paired([source.lognormvariate(0.3, 0.2) for _ in range(40)], draws=300)["interval"]
            hits += low <= 2.718281828 ** 0.3 <= high
        self.assertGreater(hits, 180)

    def test_narrow(self):
        """Five per cent to both sides is narrow."""
        self.assertTrue(stats.narrow({"ratio": 2, "interval": [1.91, 2.09]}))
        self.assertFalse(stats.narrow({"ratio": 2, "interval": [1.89, 2.12]}))


class RatioInterval(unittest.TestCase):
    """stats.ratio_interval()."""

    def test_contains_the_true_ratio(self):
        """The interval has the ratio in it, is narrow, excludes 1, and is the same each time."""
        low, high = stats.ratio_interval(BASELINE, PATCHED)
        self.assertTrue(0.77 < low < 0.8 < high < 0.83)
        self.assertEqual(stats.ratio_interval(BASELINE, PATCHED), (low, high))

    def test_identical_samples(self):
        """Boots that all measure the same leave no doubt."""
        self.assertEqual(stats.ratio_interval([5.0] * 5, [5.0] * 5), (1.0, 1.0))
        self.assertEqual(stats.ratio_interval([4.0] * 5, [2.0] * 5), (0.5, 0.5))


class Verdict(unittest.TestCase):
    """stats.verdict() and two_sides()."""

    def test_directions(self):
        """More of a rate is better, less of a time is; an interval with 1 in it says
        nothing."""
        self.assertEqual(stats.verdict((1.1, 1.2), more=True), stats.BETTER)
        self.assertEqual(stats.verdict((1.1, 1.2), more=False), stats.WORSE)
        self.assertEqual(stats.verdict((0.8, 0.9), more=True), stats.WORSE)
        self.assertEqual(stats.verdict((0.8, 0.9), more=False), stats.BETTER)
        self.assertEqual(stats.verdict((0.8, 1.1), more=True), stats.CANNOT_TELL)

    def test_two_sides(self):
        """Medians, ratio and interval of two sides that are no pairs; too few boots say
        nothing, and a zero has no ratio."""
        found = stats.two_sides(BASELINE, PATCHED, more=False)
        self.assertEqual((found["medians"], found["boots"], found["verdict"]), ((100.1, 80.1), (7, 7), stats.BETTER))
        self.assertEqual(stats.two_sides(BASELINE[:4], PATCHED, more=False)["verdict"], stats.TOO_FEW)
        self.assertIsNone(stats.two_sides([0, 1], [1, 1], more=True)["ratio"])
        self.assertIsNone(stats.two_sides([1], [2], more=True)["interval"])


if __name__ == "__main__":
    unittest.main()
