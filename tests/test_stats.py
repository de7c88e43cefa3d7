# SPDX-License-Identifier: GPL-2.0
"""The statistics of timed runs, against values known from elsewhere."""

import unittest

import support  # noqa: F401

# isort: split
import stats

BASELINE = [100.0, 101.5, 99.2, 100.7, 98.9, 100.1, 101.0]
PATCHED = [80.1, 81.2, 79.0, 80.6, 79.4, 80.0, 80.9]


class RankTest(unittest.TestCase):
    """stats.rank_test(), an exact two-sided Mann-Whitney test."""

    def test_known_values(self):
        """Separated samples give 2 / C(m+n, m); U of 6 in 3 by 3 gives 14/20."""
        for a, b, p in (([1, 2, 3], [4, 5, 6], 2 / 20),
                        ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 2 / 252),
                        ([10, 9, 8, 7, 6, 5], [4, 3, 2, 1], 2 / 210),
                        ([1, 3, 5], [2, 4, 6], 14 / 20),
                        ([1, 2, 3, 4, 6], [5, 7, 8, 9, 10], 4 / 252),
                        ([1], [2], 1.0)):
            self.assertAlmostEqual(stats.rank_test(a, b), p, places=12, msg=f"{a} {b}")

    def test_symmetric(self):
        """Which side is which does not matter, nor the unit."""
        a, b = [3.1, 4.7, 2.2, 9.0], [5.0, 8.8, 7.1, 6.6, 9.9]
        self.assertEqual(stats.rank_test(a, b), stats.rank_test(b, a))
        self.assertEqual(stats.rank_test(a, b), stats.rank_test([8 * x for x in a], [8 * x for x in b]))

    def test_ties(self):
        """Identical samples give 1; a tie counts half: of the 6 ways to split
        1, 2, 2, 3 in two pairs, those of {1,2} and {2,3} are the extreme 4."""
        self.assertEqual(stats.rank_test([5, 5, 5], [5, 5, 5]), 1.0)
        self.assertAlmostEqual(stats.rank_test([1, 2], [2, 3]), 4 / 6)

    def test_many(self):
        """20 boots a side, of 137,846,528,820 ways to split them."""
        self.assertAlmostEqual(stats.rank_test(list(range(20)), list(range(20, 40))), 2 / 137846528820, places=20)


class RatioInterval(unittest.TestCase):
    """stats.ratio_interval()."""

    def test_deterministic(self):
        """The same boots give the same interval."""
        self.assertEqual(stats.ratio_interval(BASELINE, PATCHED), stats.ratio_interval(BASELINE, PATCHED))

    def test_contains_the_true_ratio(self):
        """The interval has the ratio in it, is narrow, and excludes 1."""
        low, high = stats.ratio_interval(BASELINE, PATCHED)
        self.assertLess(low, 0.8)
        self.assertGreater(high, 0.8)
        self.assertGreater(low, 0.77)
        self.assertLess(high, 0.83)

    def test_wider_at_a_higher_level(self):
        """More confidence takes a wider interval."""
        low, high = stats.ratio_interval(BASELINE, PATCHED, level=0.5)
        lower, higher = stats.ratio_interval(BASELINE, PATCHED, level=0.99)
        self.assertLess(lower, low)
        self.assertLess(high, higher)

    def test_identical_samples(self):
        """Boots that all measure the same leave no doubt."""
        self.assertEqual(stats.ratio_interval([5.0] * 5, [5.0] * 5), (1.0, 1.0))
        self.assertEqual(stats.ratio_interval([4.0] * 5, [2.0] * 5), (0.5, 0.5))

    def test_one_draw_by_hand(self):
        """With one boot a side, there is one ratio."""
        self.assertEqual(stats.ratio_interval([8.0], [2.0], draws=100), (0.25, 0.25))


class Compare(unittest.TestCase):
    """stats.compare()."""

    def test_whole(self):
        """Medians and ratio of the sides, and the noise from the same kernel."""
        found = stats.compare([10.0, 11.0, 12.0], [5.0, 5.5, 6.0], [22.0, 11.0, 11.0])
        self.assertEqual(found["medians"], {"baseline": 11.0, "patched": 5.5})
        self.assertEqual((found["ratio"], found["noise ratio"], found["boots"]), (0.5, 1.0, 3))
        self.assertAlmostEqual(found["p"], 0.1)
        self.assertEqual(found["interval"], stats.ratio_interval([10.0, 11.0, 12.0], [5.0, 5.5, 6.0]))
        self.assertLessEqual(found["noise interval"][0], 1.0)


if __name__ == "__main__":
    unittest.main()
