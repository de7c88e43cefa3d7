# SPDX-License-Identifier: GPL-2.0
"""Time kernels by boots in rounds: in each round every kernel is booted once, the
base twice, in random order."""

import json
import random
from collections.abc import Callable
from pathlib import Path

from core.locks import write_json
from core.process import say
from reports import stats

from reports.runs import AGAIN, by_key, statistics

# What is compared, beside variants: the base against itself is what a ratio has
# to be seen next to.
SIDES = ("baseline", "patched", AGAIN)
# Rounds between two looks whether the figures are precise enough, and what part
# of the rows has to be.
LOOK, ENOUGH = 10, 0.8


def precise(rounds: list[dict]) -> float:
    """The part of the rows whose ratios have narrow intervals after @rounds, as
    by_key() has them."""
    keys = {key for one in rounds for cells in one.values() for key in cells}
    found = [stats.narrow(statistics(rounds, key)) for key in keys]
    return sum(found) / len(found)


def resumed(store: Path, identity: str) -> tuple[list[dict], list[dict]]:
    """The cells and rounds that a run of the same @identity left in @store when it
    was interrupted, as boots.json has them; none otherwise."""
    left = json.loads(store.read_text()) if store.exists() else {}
    return (left["cells"], left["rounds"]) if left.get("identity") == identity else ([], [])


def timed(boot: Callable[[str], list[dict]], least: int, most: int, what: str, others: tuple[str, ...], store: Path,
          identity: str) -> dict:
    """The boots of @least to @most rounds, as boots.json has them of a topic: fewer
    than @most if the intervals of ENOUGH rows are narrow.  @boot boots the kernel
    of a side and returns its rows; SIDES and @others are booted in each round, in
    random order.  The first round after a start is thrown away: caches of the host
    are cold.  @what is measured, for progress.  What is there is kept in @store,
    for a run of the same @identity to go on with."""
    cells, rounds = resumed(store, identity)
    sides, order = (*SIDES, *others), random.Random(1 + len(rounds))
    cold = True
    while len(rounds) < most:
        if len(rounds) >= least and not len(rounds) % LOOK and not cold:
            part = precise(by_key({"cells": cells, "rounds": rounds}))
            say(f"bench: {what}: the intervals of {100 * part:.0f} % of the rows are narrow")
            if part >= ENOUGH:
                break
        shuffled = order.sample(sides, len(sides))
        say(f"bench: {what}, round {len(rounds) + (not cold)} of {most} at most: {', '.join(shuffled)}")
        found = {side: boot(side) for side in shuffled}
        cells = [{name: row[name] for name in ("metric", "unit", "condition", "evidence")} for row in found["baseline"]]
        if not cold:
            rounds.append({side: [row["value"] for row in found[side]] for side in sides})
            write_json(store, {"identity": identity, "cells": cells, "rounds": rounds})
        cold = False
    return {"cells": cells, "rounds": rounds}
