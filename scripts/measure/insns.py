# SPDX-License-Identifier: GPL-2.0
"""Instructions of an operation, and of those while a lock is held, as the plugin of
scripts/tcg/insns.c counts them on a kernel without lockdep or tracing."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

from core.process import Failure
from measure import plugin

from measure import Measurement, json_lines, row


def measurement(script: str, rows: Callable[[Path], list[dict]], **locks) -> Measurement:
    """The measurement of the bash @script, whose benchmarks mark windows and
    operations; @locks are what plugin.insns_option() takes: the locks that are meant."""
    prelude = "set -e\ncat /proc/kallsyms > symbols\n"
    return Measurement("instructions", "bench", prelude + script, rows, icount=True, cpus=1, timeout=1800,
                       plugin=partial(plugin.insns_option, **locks))


def sampled(metric: str, unit: str, condition: str, values: list[float], evidence: str = "icount") -> dict:
    """The row of @values, one for each operation or run: their mean, and beside it the
    standard deviation, how many there are, and the least."""
    return {**row(metric, unit, condition, evidence, statistics.fmean(values)),
            "spread": {"deviation": float(f"{statistics.pstdev(values):.3g}"), "number": len(values),
                       "least": float(f"{min(values):.6g}")}}


def windows(run: Path, *names: str) -> list[tuple[str, dict, dict]]:
    """What the benchmarks said, in the files called @names in the order in which
    they ran: for each run that name, its result, and the window of the plugin that
    it was counted in.  Raises Failure where these do not match."""
    counted = json_lines(run / "insns.json")
    said = [(name, result) for name in names for result in json_lines(run / name)]
    if len(counted) != len(said) or not counted or not all(window["ops"] for window in counted):
        raise Failure(f"{run} has {len(counted)} windows of {len(said)} runs, or an empty one: look at the guest's "
                      "output there")
    found = [(name, result, window) for (name, result), window in zip(said, counted, strict=True)]
    for name, result, window in found:
        ran = len(window["ops"])
        # Where the files are not in the order of the runs.
        if result.get("count", ran) != ran:
            raise Failure(f"{run} has a window of {ran} operations for {result['count']} that {name} has: name the "
                          "files in the order in which the benchmarks ran")
    return found


def held(window: dict, counts: Callable[[int], bool] = lambda _address: True) -> list[int]:
    """The instructions of each operation of @window while the lock was held: of
    those times that began at an address that @counts."""
    found = [0] * len(window["ops"])
    for operation, address, instructions in window["sections"]:
        if counts(address):
            found[operation] += instructions
    return found
