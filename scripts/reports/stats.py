# SPDX-License-Identifier: GPL-2.0
"""Compare kernels that were timed in rounds: in each round, every kernel is
booted once."""

from __future__ import annotations

import random
from math import exp, log
from statistics import fmean

# What an interval says of a row.
BETTER, WORSE, CANNOT_TELL = "better", "worse", "cannot tell"
# Fewer laps than these are too few for an interval.
LEAST_BOOTS = 5
# Half of an interval that is narrow, as a part of the ratio.
NARROW = 0.05
# The base is booted twice in each round; the second is what a ratio is compared with.
AGAIN = "again"


def middle(values: list[float]) -> float:
    """The mean of the middle half of @values: a round in which the host was
    busy does not count, and the others count alike."""
    cut = len(values) // 4
    return fmean(sorted(values)[cut:len(values) - cut])


def average(values: list[float]) -> float:
    """The middle() of the logarithms of @values, as a value."""
    return exp(middle([log(value) for value in values]))


def percentiles(draw, draws: int, level: float) -> tuple[float, float]:
    """The interval at @level of @draws values that draw() gives."""
    values = sorted(draw() for _ in range(draws))
    cut = int(draws * (1 - level) / 2)
    return values[cut], values[-cut - 1]


def base_values(one: dict, key: object) -> list[float]:
    """What the boots of the base in the round @one say of @key: up to two values."""
    return [one[name][key] for name in ("baseline", AGAIN) if key in one.get(name, {})]


def ratios(rounds: list[dict], side: str, key: object) -> list[float]:
    """The ratios of @side to the base in what @key names, round by round; @rounds have
    the values of each kernel by key.  The base of a round is the mean of its two
    boots, but of AGAIN the other one."""
    found = []
    for one in rounds:
        known = base_values(one, key)
        if side == AGAIN:
            known = known[:1]
        if known and key in one.get(side, {}):
            found.append(one[side][key] / (sum(known) / len(known)))
    return found


def paired(ratios: list[float], draws: int = 2000, level: float = 0.95) -> dict:
    """What the @ratios of two kernels say, one of each round: the 'ratio', which
    is the middle() of their logarithms, and its bootstrap 'interval' over rounds,
    at @level.  The same input gives the same interval."""
    source, logs = random.Random(1), [log(one) for one in ratios]
    low, high = percentiles(lambda: middle(source.choices(logs, k=len(logs))), draws, level)
    return {"ratio": average(ratios), "interval": [exp(low), exp(high)]}


def narrow(found: dict) -> bool:
    low, high = found["interval"]
    return (high - low) / 2 <= NARROW * found["ratio"]


def interval_verdict(interval: list[float] | tuple[float, float], more: bool) -> str:
    """What a ratio to the baseline with @interval says; @more: whether a larger
    value is better."""
    low, high = interval
    if low <= 1 <= high:
        return CANNOT_TELL
    return BETTER if (low > 1) == more else WORSE


def number(value: float) -> str:
    """A value as tables and figures show it: no more digits than it has meaning."""
    if value == 0:
        return "0"
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:.4g} M"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 0.01 else f"{value:.2g}"


def times(ratio: float) -> str:
    """@ratio with two digits after the point, or two that are not 0."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def interval(found: dict) -> str:
    return f"{times(found['ratio'])} [{', '.join(map(times, found['interval']))}]"
