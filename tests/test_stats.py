# SPDX-License-Identifier: GPL-2.0
"""The statistics of timed runs, against values known from elsewhere."""

import unittest

import support  # noqa: F401

# isort: split
import stats

BASELINE = [100.0, 101.5, 99.2, 100.7, 98.9, 100.1, 101.0]
PATCHED = [80.1, 81.2, 79.0, 80.6, 79.4, 80.0, 80.9]


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
        found = stats.compare([10.0, 11.0, 12.0], [5.0, 5.5, 6.0], [22.0, 11.0, 11.0], more=True)
        self.assertEqual(found["medians"], {"baseline": 11.0, "patched": 5.5})
        self.assertEqual((found["ratio"], found["noise ratio"], found["boots"]), (0.5, 1.0, 3))
        self.assertEqual(found["verdict"], "loss")
        self.assertEqual(found["interval"], stats.ratio_interval([10.0, 11.0, 12.0], [5.0, 5.5, 6.0]))
        self.assertLessEqual(found["noise interval"][0], 1.0)

    def test_verdict(self):
        """A row is a gain or a loss only where it is clear of 1 and of what the
        same kernel shows against itself."""
        for interval, noise, verdict in (((1.2, 1.5), (0.9, 1.1), "gain"), ((0.5, 0.8), (0.9, 1.1), "loss"),
                                         ((0.9, 1.3), (0.99, 1.01), None), ((1.05, 1.3), (0.9, 1.1), None),
                                         ((0.85, 0.95), (0.9, 1.1), None), ((1.01, 1.1), (0.5, 0.9), "gain"),
                                         ((0.95, 0.99), (1.05, 1.1), "loss")):
            with self.subTest(interval=interval, noise=noise):
                other = {"gain": "loss", "loss": "gain"}.get(verdict)
                self.assertEqual(stats.verdict(interval, noise, True), verdict or "no difference seen")
                self.assertEqual(stats.verdict(interval, noise, False), other or "no difference seen")

    def test_precise(self):
        """Boots that differ by little are, and others are not."""
        self.assertTrue(stats.precise(BASELINE, PATCHED))
        self.assertFalse(stats.precise(BASELINE, [60.0, 100.0, 80.0, 120.0]))


class TwoSides(unittest.TestCase):
    """stats.two_sides()."""

    def verdicts(self, a: list[float], b: list[float]) -> list[str]:
        """What is said of @b where more is better, and where less is."""
        return [stats.two_sides(a, b, more)["verdict"] for more in (True, False)]

    def test_verdicts(self):
        """A gain or a loss only where the interval is clear of 1: which of them
        depends on whether more is better."""
        found = stats.two_sides(BASELINE, PATCHED, True)
        self.assertEqual((found["medians"], found["boots"]), ((100.1, 80.1), (7, 7)))
        self.assertEqual(found["interval"], stats.ratio_interval(BASELINE, PATCHED))
        self.assertEqual(self.verdicts(BASELINE, PATCHED), ["loss", "gain"])
        self.assertEqual(self.verdicts(PATCHED, BASELINE), ["gain", "loss"])
        self.assertEqual(self.verdicts(BASELINE, BASELINE[::-1]), ["no difference seen"] * 2)

    def test_few_boots(self):
        """One boot has no interval; few of them call nothing a gain, however far
        the sides are apart."""
        found = stats.two_sides([10.0], [1.0, 1.0, 1.0, 1.0, 1.0], False)
        self.assertEqual((found["ratio"], found["interval"], found["verdict"]), (0.1, None, stats.TOO_FEW))
        few = stats.LEAST_BOOTS - 1
        found = stats.two_sides(BASELINE[:few], PATCHED[:few], False)
        self.assertLess(found["interval"][1], 1)
        self.assertEqual(found["verdict"], stats.TOO_FEW)
        self.assertEqual(self.verdicts(BASELINE[:few + 1], PATCHED[:few + 1]), ["loss", "gain"])

    def test_zero(self):
        """What is nothing on the first side has no ratio, and no verdict."""
        found = stats.two_sides([0.0] * 6, [1.0] * 6, True)
        self.assertEqual((found["ratio"], found["interval"], found["verdict"]), (None, None, "no difference seen"))
        self.assertEqual(stats.two_sides([1.0] * 6, [0.0] * 6, True)["interval"], (0.0, 0.0))


if __name__ == "__main__":
    unittest.main()
