# SPDX-License-Identifier: GPL-2.0
"""Read the KTAP that kselftests print, and count results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
RESULT = re.compile(r"^(?P<indent>(?:# ?)*)\s*(?P<verdict>ok|not ok) (?P<number>\d+)(?P<rest>.*)$")
PLAN = re.compile(r"^(?P<indent>(?:# ?)*)\s*1\.\.(?P<count>\d+)")


@dataclass(frozen=True)
class Result:
    """One check: its name, passed, failed or skipped, and why."""

    name: str
    verdict: str
    why: str = ""


def depth(indent: str) -> int:
    """How deep a line is nested: the kselftest runner puts '# ' before each."""
    return indent.count("#")


def parse(text: str) -> list[Result]:
    """The results in KTAP @text, of the innermost tests: a test that has
    subtests counts only through them, unless it failed beyond them.  A plan
    that was not kept is a failure."""
    results: list[Result] = []
    inner: dict[int, list[Result]] = {}
    ran: dict[int, int] = {}
    planned: dict[int, int] = {}
    for line in text.splitlines():
        plan = PLAN.match(line)
        if plan:
            planned[depth(plan["indent"])] = int(plan["count"])
            continue
        match = RESULT.match(line)
        if not match:
            continue
        level = depth(match["indent"])
        name, _, directive = f" {match['rest'].strip().removeprefix('- ')}".partition(" # ")
        if not name and directive.upper().startswith("SKIP "):
            # kselftest.h has the name behind it.
            directive, name = directive[:4], directive[5:]
        if match["verdict"] == "not ok":
            verdict = FAILED
        elif directive.upper().startswith("SKIP"):
            verdict = SKIPPED
        else:
            verdict = PASSED
        subtests = inner.pop(level + 1, [])
        children = ran.pop(level + 1, 0)
        plan_inside = planned.pop(level + 1, None)
        ran[level] = ran.get(level, 0) + 1
        own = Result(name.strip(), verdict, directive.strip())
        if not subtests:
            found = [own]
            if plan_inside and verdict == PASSED:
                found = [Result(own.name, FAILED, f"0 of {plan_inside} subtests ran")]
        else:
            found = [Result(f"{name.split(': ')[-1].strip()}: {sub.name}", sub.verdict, sub.why) for sub in subtests]
            if plan_inside is not None and plan_inside != children:
                found.append(Result(name.strip(), FAILED, f"{children} of {plan_inside} subtests ran"))
            elif verdict == FAILED and not any(sub.verdict == FAILED for sub in subtests):
                found.append(own)
        inner.setdefault(level, []).extend(found)
    for level in sorted(inner):
        results += inner[level]
    if not results:
        return [Result("KTAP", FAILED, "no result was printed")]
    # Leftover nested results: their test never came to its own line.
    for level in inner:
        if level:
            results.append(Result("KTAP", FAILED, "a test ended before its result"))
            break
    if planned.get(0, 0) > ran.get(0, 0):
        results.append(Result("KTAP", FAILED, f"fewer than the {planned[0]} planned tests ran"))
    return results


def show(results: list[Result]) -> None:
    """Print a line for each of @results, with the reason where there is one."""
    for one in results:
        mark = {PASSED: "ok", FAILED: "not ok", SKIPPED: "skip"}[one.verdict]
        print(f"{mark} - {one.name}" + (f" # {one.why}" if one.why else ""), flush=True)


def shown(results: Iterable[Result]) -> list[Result]:
    """All of @results, each printed as it comes."""
    found = []
    for one in results:
        found.append(one)
        show([one])
    return found


def count(results: list[Result]) -> str:
    """The closing line: 'N passed, N failed, N skipped'."""
    return ", ".join(f"{sum(one.verdict == verdict for one in results)} {verdict}"
                     for verdict in (PASSED, FAILED, SKIPPED))
