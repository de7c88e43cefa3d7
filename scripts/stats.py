# SPDX-License-Identifier: GPL-2.0
"""Compare timed runs whose unit of replication is the boot."""

from __future__ import annotations

import random
from statistics import median

GAIN, LOSS, NO_DIFFERENCE, TOO_FEW = "gain", "loss", "no difference seen", "too few boots"
# Of samples of one distribution, the interval is clear of 1 in 3 of 100 cases with
# five boots a side, but in 7 with four.
LEAST_BOOTS = 5


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
        return GAIN if more else LOSS
    if high < min(1, noise[0]):
        return LOSS if more else GAIN
    return NO_DIFFERENCE


def narrow(interval: list[float] | tuple[float, float], ratio: float, width: float = 0.05) -> bool:
    """Whether the @interval of @ratio reaches no further than @width of it to both
    sides."""
    return (interval[1] - interval[0]) / 2 <= width * ratio


def precise(a: list[float], b: list[float], width: float = 0.05) -> bool:
    """Whether the interval of the ratio of @b to @a is narrow()."""
    return narrow(ratio_interval(a, b, draws=1000), median(b) / median(a), width)


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


def two_sides(a: list[float], b: list[float], more: bool) -> dict:
    """The medians over the boots of two sides, the ratio of @b to @a, its
    interval, the number of boots of each, and the verdict on @b; @more: whether
    a larger value is better.  There is no ratio (None) where a boot of @a has 0,
    and no interval without a ratio or where a side has one boot."""
    ratio = median(b) / median(a) if min(a) > 0 else None
    interval = ratio_interval(a, b) if ratio is not None and min(len(a), len(b)) > 1 else None
    said = TOO_FEW
    if min(len(a), len(b)) >= LEAST_BOOTS:
        said = verdict(interval or (1, 1), (1, 1), more)
    return {"medians": (median(a), median(b)), "boots": (len(a), len(b)), "ratio": ratio, "interval": interval,
            "verdict": said}
