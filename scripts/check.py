#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prove the whole repository: the tooling's own tests, lint, the touched
objects in other configurations, the litmus tests that the series add, and
every kselftest of every topic in guests with the trace and the debug kernel,
and on arm64 where the topic asks for it.

The log of each guest is a check of its own: a report of lockdep, KASAN, RCU,
WARN, BUG or the hung-task detector in it is a failure.

That is of one base.  With the reference base go, of every other base that has
series, what needs no kernel to be built: they apply, alone and one on the
other, lint, the touched objects, and kselftests where the trace kernel is in
the cache.

What takes long comes last, guests in the order of what they find.  Whoever has
no more than some minutes, as CI has, says so, and what would not end in them is
skipped.
"""

import shutil
import sys
import time
import unittest
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import arm64
import herd
import lint
import seen
import variants
from build import ARM64, Kernel, arch, cached, kernel, kselftests
from fetch import repository
from guest import SWAP, accelerator, boot, reports, run_directory
from ktap import FAILED, PASSED, SKIPPED, Result, count, parse, show, shown
from project import ROOT, Base, Failure, Topic, arguments, base, bases, chosen_topics, run, say, topics
from tree import apply

# Seconds that one test program may take, and a guest with all of them: the
# kernel's own tests are not made for emulated machines.
PATIENCE = 1800
GUEST_PATIENCE = 3600
# The minutes that these take on 2 CPUs, rounded up: a kernel of which nothing
# is built, the tests of a guest, what is compiled in other configurations.
BUILD_MINUTES = 25
GUEST_MINUTES = {"trace": 30, "debug": 20, "arm64": 20}
VARIANTS_MINUTES = 25


@dataclass(frozen=True)
class Budget:
    """The @minutes that a run may take from @begin on, a time.monotonic();
    None: as many as it needs."""

    minutes: int | None = None
    begin: float = field(default_factory=lambda: time.monotonic())

    @property
    def used(self) -> float:
        """The minutes that are over."""
        return (time.monotonic() - self.begin) / 60

    def refusal(self, needed: int) -> str:
        """Why nothing is begun that takes @needed minutes; empty where they
        are there."""
        if self.minutes is None or self.used + needed <= self.minutes:
            return ""
        return (f"it takes up to {needed} minutes, and {max(self.minutes - self.used, 0):.0f} of {self.minutes} are "
                "left: 'make check' without MINUTES= has it")


def tooling() -> list[Result]:
    """The tooling's own tests; each is one result."""
    results = []

    class Collect(unittest.TextTestResult):
        """Keep a Result of each test."""

        def addSuccess(self, test):
            super().addSuccess(test)
            results.append(Result(test.id(), PASSED))

        def addFailure(self, test, err):
            super().addFailure(test, err)
            results.append(Result(test.id(), FAILED, self.failures[-1][1]))

        def addError(self, test, err):
            super().addError(test, err)
            results.append(Result(str(test), FAILED, self.errors[-1][1]))

        def addSkip(self, test, reason):
            super().addSkip(test, reason)
            results.append(Result(test.id(), SKIPPED, reason))

        def addSubTest(self, test, subtest, err):
            super().addSubTest(test, subtest, err)
            if err is not None:
                results.append(Result(subtest.id(), FAILED, str(err[1])))

    suite = unittest.defaultTestLoader.discover(str(ROOT / "tests"), top_level_dir=str(ROOT / "tests"))
    unittest.TextTestRunner(stream=sys.stdout, resultclass=Collect, verbosity=1).run(suite)
    return results


# The runner opens /dev/stdout again for each test: give it a pipe.
KSELFTESTS = SWAP + f"( cd kselftest && ./run_kselftest.sh -o {PATIENCE} 2>&1 | cat ) > ktap\n"
# KASAN makes benchmarks slow, and their smoke tests are about the benchmarks,
# which run on the other kernels.
NO_SMOKE_TESTS = "sed -i '/_smoke\\.sh$/d' kselftest/kselftest-list.txt\n"
TOOLS = "bash trace/check.sh > ktap 2>&1\n"


def guest(image: Kernel, tests: Path, name: str, script: str, accel: str, by_turns: bool = False) -> list[Result]:
    """Boot @image and run @script, which leaves KTAP in the file ktap, beside
    the installed kselftests @tests and the tracing scripts.  What the KTAP has
    and what the kernel's log says are the results, each with @name before it;
    @by_turns is boot()'s."""
    run_dir = run_directory("check-" + name.replace(":", "").replace(" ", "-"))
    shutil.copytree(tests, run_dir / "kselftest")
    shutil.copytree(ROOT / "scripts" / "trace", run_dir / "trace")
    try:
        if image.config == ARM64.name:
            ran = arm64.boot(image, run_dir, script, timeout=GUEST_PATIENCE, label=name)
        else:
            ran = boot(image, run_dir, script, memory="2G", accel=accelerator(accel, image), by_turns=by_turns,
                       timeout=GUEST_PATIENCE, label=name)
    except Failure as err:
        return list(shown([Result(f"{name}: guest", FAILED, str(err))]))
    text = (run_dir / "ktap").read_text(errors="replace") if (run_dir / "ktap").exists() else ""
    results = [Result(f"{name}: {one.name}", one.verdict, one.why) for one in parse(text)]
    found = reports(ran.console.read_text(errors="replace"))
    results.append(Result(f"{name}: the kernel's log ({ran.console})", FAILED if found else PASSED,
                          "\n".join(found[:10])))
    show(results)
    if any(one.verdict == FAILED for one in results):
        say(f"check: what the guest printed is in {run_dir}")
    return results


def kselftest_guest(on: Base, repo: Path, revision: str, config: str, targets: list[str], label: str,
                    accel: str, budget: Budget, tools: bool = False, before: str = "") -> list[Result]:
    """The kselftests of @targets on the kernel of @revision with configuration
    @config, and if @tools, the tracing tools, where @budget has the time.
    @label names the series in progress lines; @before comes before each
    result's name."""
    needed = GUEST_MINUTES[config]
    if budget.minutes is not None and not cached(repo, on, revision, config):
        needed += BUILD_MINUTES
    refusal = budget.refusal(needed)
    if refusal:
        return list(shown([Result(f"{before}kselftests {config}", SKIPPED, refusal)]))
    say(f"check: {before}kselftests on the {config} kernel")
    try:
        image = kernel(repo, on, revision, config, label)
        # Topics may share a directory of tests.
        tests = kselftests(repo, revision, list(dict.fromkeys(targets)), arch(config))
    except Failure as err:
        return [Result(f"{before}{config}: build", FAILED, str(err))]
    script = NO_SMOKE_TESTS + KSELFTESTS if config == "debug" else KSELFTESTS
    results = guest(image, tests, f"{before}kselftests {config}", script, accel)
    if tools:
        results += guest(image, tests, f"{before}tools", TOOLS, accel, by_turns=True)
    return results


def tested(chosen: list[Topic]) -> list[str]:
    """The kselftests of @chosen, and those of the kernel that exercise the
    same code."""
    return [one.kselftest for one in chosen] + [name for one in chosen for name in one.neighbours]


def guests(on: Base, repo: Path, revision: str, chosen: list[Topic], accel: str, budget: Budget) -> list[Result]:
    """The kselftests of @chosen on the trace and the debug kernel of @revision,
    which has all of their series, and on the former those of the kernel that
    exercise the same code: KASAN makes these slow.  On other architectures, a
    topic's kselftests run with its own series alone."""
    results = kselftest_guest(on, repo, revision, "trace", tested(chosen), "patched", accel, budget, tools=True)
    results += kselftest_guest(on, repo, revision, "debug", [one.kselftest for one in chosen], "patched", accel,
                               budget)
    for one in chosen:
        for config in one.guests:
            results += kselftest_guest(on, repo, apply(repo, on, [one]), config, [one.kselftest], one.name, accel,
                                       budget)
    return results


def texts(on: Base, chosen: list[Topic], kdir: str | None, fresh: bool) -> Iterator[Result]:
    """What needs no kernel, of the series of @chosen for @on: lint with the
    touched objects, litmus tests."""
    repo = repository(on, kdir)
    say("check: lint")
    yield from shown(lint.lint(on, chosen, repo, fresh))
    say("check: litmus tests")
    yield from shown(result for one in chosen for result in herd.series(one, on, repo))


def kernels(on: Base, chosen: list[Topic], kdir: str | None, accel: str, fresh: bool,
            budget: Budget) -> Iterator[Result]:
    """What takes kernels of the series of @chosen for @on, all of them one on
    the other: guests, and other configurations."""
    repo = repository(on, kdir)
    yield from guests(on, repo, apply(repo, on, chosen), chosen, accel, budget)
    say("check: other configurations")
    yield from shown(variants.series(chosen, on, repo, fresh=fresh, refusal=budget.refusal(VARIANTS_MINUTES)))


def beside(on: Base, fresh: bool) -> Iterator[Result]:
    """What is always checked of the series for @on beside those for the
    reference base; the names of the results begin with the name of @on."""
    chosen = chosen_topics(None, on)
    before = f"{on.name}: "
    say(f"check: {before}lint")
    repo = repository(on)
    yield from shown(replace(result, name=before + result.name) for result in lint.lint(on, chosen, repo, fresh))
    names = "+".join(one.name for one in chosen)
    try:
        apply(repo, on, chosen)
    except Failure as err:
        yield from shown([Result(f"{before}{names}: git am", FAILED, str(err))])
        return
    yield from shown([Result(f"{before}{names}: git am", PASSED)])


def guest_beside(on: Base, accel: str, budget: Budget) -> Iterator[Result]:
    """The kselftests of the series for @on, which is not the reference base,
    where the kernel that they run on is in the cache; what else there is to
    check of them is said."""
    chosen = chosen_topics(None, on)
    before = f"{on.name}: "
    repo = repository(on)
    revision = apply(repo, on, chosen)
    if cached(repo, on, revision, "trace"):
        yield from kselftest_guest(on, repo, revision, "trace", tested(chosen), "patched",
                                   accel, budget, before=before)
    else:
        yield from shown([Result(f"{before}kselftests trace", SKIPPED, "the kernel with all series is not in the "
                                 f"cache: 'make check BASE={on.name}' builds it")])
    say(f"check: {before}to save time, other configurations, litmus tests and guests with other kernels are left out: "
        f"'make check BASE={on.name}' has them")


def told(what: str, results: Iterator[Result]) -> Iterator[Result]:
    """@results; a Failure that breaks them off is a result as well, of @what
    is left."""
    try:
        yield from results
    except Failure as err:
        yield from shown([Result(what, FAILED, str(err))])


def main() -> int:
    """Run all checks and end with the line 'N passed, N failed, N skipped'."""
    parser = arguments(__doc__)
    parser.add_argument("--accel", default="auto", choices=("auto", "kvm", "tcg"), help="default: auto")
    parser.add_argument("--minutes", type=int, help="skip what would not end within so many (default: skip nothing)")
    seen.argument(parser)
    args = parser.parse_args()
    budget = Budget(args.minutes)
    on = base(args.base)
    chosen = chosen_topics(None, on)
    say("check: the tooling's own tests")
    results = tooling()
    results += shown(lint.scripts())
    others = [one for one in bases().values() if one != on and any(topic.patches(one) for topic in topics().values())]
    others = others if on.reference else []
    results += told(f"lint of {on.name}", texts(on, chosen, args.kdir, args.fresh))
    for other in others:
        if other.fetched:
            results += told(f"lint of {other.name}", beside(other, args.fresh))
        else:
            results += shown([Result(other.name, SKIPPED, f"its source is your own tree: 'make check BASE={other.name} "
                                     "KDIR=...' checks it")])
    results += told(f"kernels of {on.name}", kernels(on, chosen, args.kdir, args.accel, args.fresh, budget))
    for other in others:
        if other.fetched:
            results += told(f"kernels of {other.name}", guest_beside(other, args.accel, budget))
    failed = [one for one in results if one.verdict == FAILED]
    if failed:
        print("\nFailed:")
        for one in failed:
            print(f"  {one.name}\n" + "".join(f"    {line}\n" for line in one.why.splitlines()), end="")
    say(f"check: {budget.used:.0f} minutes")
    print(count(results))
    return bool(failed)


if __name__ == "__main__":
    run(main)
