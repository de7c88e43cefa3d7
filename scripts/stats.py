# SPDX-License-Identifier: GPL-2.0
"""Compare timed runs whose unit of replication is the boot."""

from __future__ import annotations

import itertools
import random
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
    come from one distribution; ties count half.  Meant for the dozen boots or
    so of a run: it goes through every way to split them."""
    def below(first: list[float], second: list[float]) -> float:
        return sum((x < y) + 0.5 * (x == y) for x in first for y in second)

    everything = a + b
    middle = len(a) * len(b) / 2
    seen = abs(below(a, b) - middle)
    extreme = total = 0
    for chosen in itertools.combinations(range(len(everything)), len(a)):
        inside = set(chosen)
        first = [everything[i] for i in chosen]
        second = [value for i, value in enumerate(everything) if i not in inside]
        total += 1
        extreme += abs(below(first, second) - middle) >= seen - 1e-9
    return extreme / total


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
