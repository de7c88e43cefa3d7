# SPDX-License-Identifier: GPL-2.0
"""The statistics of timed runs, against values known from elsewhere."""

import random
import unittest

import support  # noqa: F401

# isort: split
from reports import stats


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


class Verdict(unittest.TestCase):
    """stats.interval_verdict()."""

    def test_directions(self):
        """More of a rate is better, less of a time is; an interval with 1 in it says
        nothing."""
        self.assertEqual(stats.interval_verdict((1.1, 1.2), more=True), stats.BETTER)
        self.assertEqual(stats.interval_verdict((1.1, 1.2), more=False), stats.WORSE)
        self.assertEqual(stats.interval_verdict((0.8, 0.9), more=True), stats.WORSE)
        self.assertEqual(stats.interval_verdict((0.8, 0.9), more=False), stats.BETTER)
        self.assertEqual(stats.interval_verdict((0.8, 1.1), more=True), stats.CANNOT_TELL)


if __name__ == "__main__":
    unittest.main()
