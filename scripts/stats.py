# SPDX-License-Identifier: GPL-2.0
"""Compare timed runs whose unit of replication is the boot."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import Counter
from statistics import median


def ratio_interval(a: list[float], b: list[float], draws: int = 10000, level: float = 0.95) -> tuple[float, float]:
    """The bootstrap interval, at @level, of median(@b) / median(@a) over
    boots.  The same input gives the same interval."""
    source = random.Random(1)
    ratios = sorted(median(source.choices(b, k=len(b))) / median(source.choices(a, k=len(a)))
                    for _ in range(draws))
    cut = int(draws * (1 - level) / 2)
    return ratios[cut], ratios[-cut - 1]


def rank_test(a: list[float], b: list[float]) -> float:
    """The exact two-sided p-value of the Mann-Whitney rank test that @a and @b
    come from one distribution; ties share their ranks.  It counts every way to
    choose as many ranks, by their sum."""
    everything = sorted(a + b)

    def rank(value: float) -> int:
        """Twice the mean rank of @value, so that it is whole with ties, too."""
        return bisect_left(everything, value) + bisect_right(everything, value) + 1

    # ways[n][total]: in how many ways n of the ranks so far have that sum.
    ways = [Counter({0: 1})] + [Counter() for _ in a]
    for value in everything:
        for chosen in range(len(a), 0, -1):
            for total, count in ways[chosen - 1].items():
                ways[chosen][total + rank(value)] += count
    middle = len(a) * (len(everything) + 1)
    seen = abs(sum(map(rank, a)) - middle)
    extreme = sum(count for total, count in ways[len(a)].items() if abs(total - middle) >= seen)
    return extreme / ways[len(a)].total()


def compare(baseline: list[float], patched: list[float], again: list[float]) -> dict:
    """Medians, ratio with its interval, p-value, and the noise floor: the same
    of the baseline against itself (@again)."""
    return {"medians": {"baseline": median(baseline), "patched": median(patched)},
            "ratio": median(patched) / median(baseline),
            "interval": ratio_interval(baseline, patched),
            "p": rank_test(baseline, patched),
            "noise ratio": median(again) / median(baseline),
            "noise interval": ratio_interval(baseline, again),
            "boots": len(baseline)}
