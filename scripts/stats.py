# SPDX-License-Identifier: GPL-2.0
"""Compare timed runs whose unit of replication is the boot."""

from __future__ import annotations

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


def verdict(interval: tuple[float, float], noise: tuple[float, float], more: bool) -> str:
    """What may be said of a row whose ratio to the baseline has @interval, where
    the baseline's ratio to itself has the interval @noise; @more: whether a
    larger value is better.  Nothing, unless @interval is clear of 1 and of
    @noise."""
    low, high = interval
    if low > max(1, noise[1]):
        return "gain" if more else "loss"
    if high < min(1, noise[0]):
        return "loss" if more else "gain"
    return "no difference seen"


def precise(a: list[float], b: list[float], width: float = 0.05) -> bool:
    """Whether the interval of the ratio of @b to @a reaches no further than
    @width of it to both sides."""
    low, high = ratio_interval(a, b, draws=1000)
    return (high - low) / 2 <= width * median(b) / median(a)


def compare(baseline: list[float], patched: list[float], again: list[float], more: bool) -> dict:
    """Medians, ratio with its interval, the noise floor: the same of
    the baseline against itself (@again), and what may be said of it; @more is
    verdict()'s."""
    interval, noise = ratio_interval(baseline, patched), ratio_interval(baseline, again)
    return {"medians": {"baseline": median(baseline), "patched": median(patched)},
            "ratio": median(patched) / median(baseline),
            "interval": interval,
            "noise ratio": median(again) / median(baseline),
            "noise interval": noise,
            "verdict": verdict(interval, noise, more),
            "boots": len(baseline)}
