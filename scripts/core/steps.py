# SPDX-License-Identifier: GPL-2.0
"""The steps of a long run: which one it is at, how long the rest takes, and what each
of them needs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil

from core.install import need
from core.ktap import FAILED, SKIPPED, Result, show
from core.locks import cache, write_json
from core.process import Failure, say

# Seconds that a step takes whose results are all remembered.
REMEMBERED = 5


@dataclass(frozen=True)
class Budget:
    """The @minutes that a run may take from @begin on, a time.monotonic();
    None: as many as it needs."""

    minutes: int | None = None
    begin: float = field(default_factory=lambda: time.monotonic())

    @property
    def used(self) -> float:
        return (time.monotonic() - self.begin) / 60

    def refusal(self, needed: int) -> str:
        """Why nothing is begun that takes @needed minutes; empty where they
        are there."""
        if self.minutes is None or self.used + needed <= self.minutes:
            return ""
        return (f"it takes some {needed} minutes, and {max(self.minutes - self.used, 0):.0f} of {self.minutes} are "
                "left: run it without MINUTES=")

    def patience(self, most: float) -> float:
        """The seconds that a guest may take, @most at most."""
        return most if self.minutes is None else min(most, max(self.minutes - self.used, 0) * 60)


@dataclass(frozen=True)
class Step:
    """A part of a run: its name; what gives its results; the groups of packages that it
    needs; the minutes that it takes where that was never seen; and what its results
    follow from, or nothing where it does all its work each time."""

    name: str
    work: Callable[[], Iterable[Result]]
    needs: tuple[str, ...] = ("source",)
    minutes: float = 1
    inputs: str = ""


class Times:
    """How long steps took when they did their work, and what it was about when they
    passed last, in the cache."""

    def __init__(self, fresh: bool):
        self.path, self.fresh = cache() / "memo" / "steps.json", fresh
        self.path.parent.mkdir(exist_ok=True)
        try:
            self.known = json.loads(self.path.read_text())
        except (OSError, ValueError):
            self.known = {}

    def expected(self, step: Step) -> float:
        before = self.known.get(step.name, {})
        if step.inputs and before.get("passed") == step.inputs and not self.fresh:
            return REMEMBERED
        return before.get("seconds", step.minutes * 60)

    def took(self, step: Step, seconds: float, passed: bool) -> None:
        """@step took @seconds.  Far fewer than before are of one that remembered most."""
        before = self.known.get(step.name, {}).get("seconds", 0)
        self.known[step.name] = {"seconds": before if seconds < before / 4 else round(seconds, 1),
                                 "passed": step.inputs if passed else ""}
        write_json(self.path, self.known)


def carry_out(what: str, steps: list[Step], fresh: bool) -> list[Result]:
    """The results of all @steps of @what, each printed as it comes.  A Failure that
    breaks a step off is a result as well."""
    times, found = Times(fresh), []
    for number, step in enumerate(steps, 1):
        left = ceil(sum(map(times.expected, steps[number - 1:])) / 60)
        say(f"{what}: {number} of {len(steps)}, about {left} min left: {step.name}")
        begin, own = time.monotonic(), []
        try:
            need(*step.needs)
            for result in step.work():
                show([result])
                own.append(result)
        except Failure as err:
            own.append(Result(step.name, FAILED, str(err)))
            show(own[-1:])
        verdicts = {result.verdict for result in own}
        if verdicts - {SKIPPED}:
            times.took(step, time.monotonic() - begin, FAILED not in verdicts)
        found += own
    return found
