# SPDX-License-Identifier: GPL-2.0
"""Read the KTAP that kselftests print, and count results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
RESULT = re.compile(r"^(?P<indent>(?:# ?)*)\s*(?P<verdict>ok|not ok) (?P<number>\d+)(?P<rest>.*)$")
PLAN = re.compile(r"^(?P<indent>(?:# ?)*)\s*1\.\.(?P<count>\d+)")
# What a guest may put before each line: the time at which it came, in seconds.
STAMP = re.compile(r"^(?P<time>\d+\.\d+) ")
# Directives of results that say nothing about the kernel, or that it is known
# to fail.
EXCUSES = ("SKIP", "XFAIL")


@dataclass(frozen=True)
class Result:
    """One check: its name, passed, failed or skipped, why, and the seconds
    that it took where that is known."""

    name: str
    verdict: str
    why: str = ""
    seconds: float = 0


def depth(indent: str) -> int:
    return indent.count("#")


def directive_of(rest: str) -> tuple[str, str]:
    """Name and directive of what follows the number in a result line."""
    name, _, directive = f" {rest.strip().removeprefix('- ')}".partition(" # ")
    word, _, behind = directive.partition(" ")
    if not name and word.upper() in EXCUSES:
        # kselftest.h has the name behind it.
        return behind.strip(), word
    return name.strip(), directive.strip()


def verdict_of(mark: str, directive: str) -> str:
    """Passed, failed or skipped: an expected failure counts as skipped."""
    if mark == "not ok":
        return FAILED
    return SKIPPED if directive.upper().startswith(EXCUSES) else PASSED


def broken_plan(plan: int | None, numbers: list[int]) -> str:
    """What is wrong with the @numbers of the results for which the @plan was
    made; empty where it was kept, or where there is none."""
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        return f"result {twice[0]} came {numbers.count(twice[0])} times"
    if plan is not None and plan != len(numbers):
        return f"{len(numbers)} of {plan} subtests ran"
    return ""


def parse(text: str) -> list[Result]:
    """The results in KTAP @text, whose lines may have stamps, of the innermost
    tests: a test that has subtests counts only through them, unless it failed
    beyond them.  A plan that was not kept, in either direction, is a failure."""
    results: list[Result] = []
    inner: dict[int, list[Result]] = {}
    numbers: dict[int, list[int]] = {}
    planned: dict[int, int] = {}
    before = now = 0.0
    outer_wrong = ""
    for line in text.splitlines():
        stamp = STAMP.match(line)
        if stamp:
            line, now = line[stamp.end():], float(stamp["time"])
        plan = PLAN.match(line)
        if plan:
            level = depth(plan["indent"])
            # Up to 7.0, run_kselftest.sh makes a plan for each collection of tests.
            outer_wrong = outer_wrong or (broken_plan(planned.get(0), numbers.pop(0, [])) if level == 0 else "")
            planned[level] = int(plan["count"])
            before = now
            continue
        match = RESULT.match(line)
        if not match:
            continue
        level = depth(match["indent"])
        name, directive = directive_of(match["rest"])
        verdict = verdict_of(match["verdict"], directive)
        subtests = inner.pop(level + 1, [])
        wrong = broken_plan(planned.pop(level + 1, None), numbers.pop(level + 1, []))
        numbers.setdefault(level, []).append(int(match["number"]))
        own = Result(name, verdict, directive, round(max(now - before, 0), 2) if before else 0)
        before = now
        if not subtests:
            found = [Result(name, FAILED, wrong) if wrong and verdict == PASSED else own]
        else:
            outer = name.split(": ")[-1].strip()
            found = [replace(sub, name=f"{outer}: {sub.name}") for sub in subtests]
            if wrong:
                found.append(Result(name, FAILED, wrong))
            elif verdict == FAILED and not any(sub.verdict == FAILED for sub in subtests):
                found.append(own)
        inner.setdefault(level, []).extend(found)
    for level in sorted(inner):
        results += inner[level]
    if not results:
        return [Result("KTAP", FAILED, "no result was printed")]
    # Leftover nested results: their test never came to its own line.
    if any(inner):
        results.append(Result("KTAP", FAILED, "a test ended before its result"))
    wrong = outer_wrong or broken_plan(planned.get(0), numbers.get(0, []))
    if wrong:
        results.append(Result("KTAP", FAILED, f"at the outermost level, {wrong}"))
    return results


def show(results: list[Result]) -> None:
    for result in results:
        mark = {PASSED: "ok", FAILED: "not ok", SKIPPED: "skip"}[result.verdict]
        print(f"{mark} - {result.name}" + (f" # {result.why}" if result.why else ""), flush=True)


def shown(results: Iterable[Result]) -> list[Result]:
    found = []
    for result in results:
        found.append(result)
        show([result])
    return found


def count(results: list[Result]) -> str:
    return ", ".join(f"{sum(result.verdict == verdict for result in results)} {verdict}"
                     for verdict in (PASSED, FAILED, SKIPPED))
