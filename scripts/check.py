#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prove the repository, before each commit or as a whole.

`make check` is what an engineer runs before a commit, of the reference base:
the tooling's own tests; the series apply, each alone and all of them one on the
other, on every base, and the patches beside them; lint; the tests under User-Mode
Linux with lockdep and KASAN, and a short list of other people's; a short list of
ours in QEMU, on x86-64 with both; touched objects of the final tree.  What takes
long and passed is remembered by what it was made from.  Of a topic that another
replaces, the series applies, and lint; its guests are booted by `make check-full`.

`make check-full` (--full) adds, on every base: each patch's objects, litmus
tests, all tests on the trace and the debug kernel and on arm64, the tracing
tools, the boot of a package of make deb, other people's suites on both sides,
parts left out, other configurations and architectures.

The log of each guest is a check of its own: a report of lockdep, KASAN, RCU,
WARN, BUG or the hung-task detector in it is a failure.  So is a run that shows
no guest, neither booted nor remembered.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

import arm64
import configs
import deb
import figures
import harness
import knockout
import lint
import litmus
import machines
import memo
import qemu
import suites
from build import ARM64, UM, Kernel, arch, cached, kernel, kernel_path
from command import arguments, at_least, run
from fetch import repository, unpack
from guest import SWAP, boot, prepare
from install import PACKAGES, need, tool
from klog import lockdep_off
from ktap import FAILED, PASSED, SKIPPED, Result, count, parse, shown
from locks import room_for_builds
from model import GUESTS, ROOT, Base, Topic, bases, chosen_topics, replaced, topics
from process import Failure, say, sha256
from qemu import accelerator
from tree import apply, variant, variants, with_benchmark
from watch import run_directory

from runs import fresh_suites, newest_suites

# Raise this when what happens in a guest changes without a change of what its
# results are remembered by: kernel, tests and script.
RULES = 1
# Seconds that one test program may take, and a guest with all of them: the
# kernel's own tests are not made for emulated machines.
PATIENCE = 1800
GUEST_PATIENCE = 3600
# The minutes that must be left for a guest to be booted, and for its kernel to
# be built if it is not there.
GUEST_MINUTES = 3
BUILD_MINUTES = 20
# The same of the short list of other people's suites, and of all of them.
SUITE_MINUTES, SUITES_MINUTES = 5, 120
# What is touched is compiled in these where it is not compiled in all others.
QUICK_CONFIGS = ("x86", "arm64")
# How many of the slowest tests are listed in the end.
SLOWEST = 10

# The runner opens /dev/stdout again for each test: give it a pipe.  Each line
# gets the time at which it came.
KSELFTESTS = f"""
( cd kselftest && ./run_kselftest.sh -o {PATIENCE} 2>&1 ) |
	while IFS= read -r line; do printf '%s %s\\n' "$EPOCHREALTIME" "$line"; done > ktap
cat /proc/lockdep_stats > lockdep_stats 2> /dev/null
"""
# KASAN makes benchmarks slow, and their smoke tests are about the benchmarks,
# which run on the other kernels.
NO_SMOKE_TESTS = "sed -i '/_smoke\\.sh$/d' kselftest/kselftest-list.txt\n"
TOOLS = "bash trace/check.sh > ktap 2>&1\n"


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
        return (f"it takes some {needed} minutes, and {max(self.minutes - self.used, 0):.0f} of {self.minutes} are "
                "left: run it without MINUTES=")

    def patience(self) -> float:
        """The seconds that a guest may take."""
        if self.minutes is None:
            return GUEST_PATIENCE
        return min(GUEST_PATIENCE, max(self.minutes - self.used, 0) * 60)


@dataclass(frozen=True)
class Run:
    """What all checks of one run need to know: the accelerator of guests,
    whether to do again what is remembered, the time, the name of the base that
    it is about, the user's own tree of that."""

    accel: str
    fresh: bool
    budget: Budget
    about: str = ""
    kdir: str | None = None


def tooling() -> list[Result]:
    """The tooling's own tests, by pytest on all CPUs; each is one result."""
    report = run_directory("pytest") / "report.xml"
    done = subprocess.run([tool("python"), "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider",
                           "--no-header", "--tb=short", f"--junitxml={report}"], cwd=ROOT,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, stdin=subprocess.DEVNULL)
    if not report.exists():
        return [Result("the tooling's tests", FAILED, f"pytest exited with {done.returncode} and left no report")]
    results = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        problem = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
        skipped = case.find("skipped")
        verdict = FAILED if problem is not None else SKIPPED if skipped is not None else PASSED
        why = problem.text or "" if problem is not None else skipped.get("message", "") if skipped is not None else ""
        results.append(Result(f"{case.get('classname')}.{case.get('name')}", verdict, why,
                              float(case.get("time", 0))))
    if done.returncode and not any(result.verdict == FAILED for result in results):
        results.append(Result("the tooling's tests", FAILED, f"pytest exited with {done.returncode}"))
    return results


def booted(image: Kernel, tests: Path, name: str, script: str, what: Run, round_robin: bool) -> Iterator[Result]:
    """Boot @image and run @script, which leaves KTAP in the file ktap, beside
    the installed kselftests @tests and the tracing scripts.  What the KTAP has
    and what the kernel's log says are the results; @round_robin is boot()'s."""
    emulated = image.config not in GUESTS
    try:
        ran = boot(image, tests, "check-" + name.replace(":", "").replace(" ", "-"), script, name,
                   memory="2G" if emulated else "", timeout=what.budget.patience(),
                   accel=accelerator(what.accel, image) if emulated else "", round_robin=round_robin)
    except Failure as err:
        yield Result("guest", FAILED, str(err))
        return
    ktap = ran.path / "ktap"
    results = parse(ktap.read_text(errors="replace") if ktap.exists() else "")
    yield from results
    found, off = ran.reports(), lockdep_off(ran.path)
    yield Result("the kernel's log", FAILED if found or off else PASSED, "\n".join([*found[:10], off][:10]).strip())
    if found or off or any(result.verdict == FAILED for result in results):
        say(f"check: what the guest printed is in {ran.path}")


def emulator(image: Kernel) -> str:
    """What runs guests of the kernel @image: QEMU's version, and arm64's init."""
    if image.config == UM.name:
        return ""
    system = "aarch64" if arch(image.config) == ARM64 else "x86_64"
    init = [arm64.made_of()] if arch(image.config) == ARM64 else []
    return " ".join([qemu.version(system), *init])


def guest(image: Kernel, tests: Path, name: str, script: str, what: Run, round_robin: bool = False) -> list[Result]:
    """The results of booted(), each with @name before it, or those that are
    remembered of the same kernel, tests, script and emulator."""
    trace = [path.read_text() for pattern in ("survey.py", "survey/*.bt", "trace/*")
             for path in sorted((ROOT / "scripts").glob(pattern))] if script == TOOLS else []
    inputs = [str(RULES), image.path.name, tests.name, script, what.accel, emulator(image), str(round_robin), *trace]
    return shown(replace(result, name=f"{name}: {result.name}")
                 for result in memo.results(name, inputs, lambda: booted(image, tests, name, script, what, round_robin),
                                         what.fresh))


def kselftest_guest(base: Base, repo: Path, revision: str, config: str, chosen: list[Topic], label: str,
                    what: Run, only: tuple[str, ...] = (), neighbours: bool = False, tools: bool = False,
                    before: str = "") -> list[Result]:
    """The tests of the topics @chosen, and if @neighbours, of the kernel's own
    that exercise the same code, or those of them that @only names as the runner
    does, on the kernel of @revision with configuration @config, and if @tools,
    the tracing tools, where the time is left.  @label names the series in
    progress lines; @before comes before each result's name."""
    name = f"{before}kselftests {config}"
    needed = GUEST_MINUTES + (0 if cached(repo, base, revision, config) else BUILD_MINUTES)
    refusal = what.budget.refusal(needed)
    if refusal:
        return shown([Result(name, SKIPPED, refusal)])
    say(f"check: {name}")
    try:
        image, tests = prepare(repo, base, revision, config, chosen, label, neighbours)
    except Failure as err:
        return shown([Result(f"{name}: build", FAILED, str(err))])
    missing = sorted(set(only) - set((tests / "kselftest-list.txt").read_text().split())) if only else []
    if missing:
        return shown([Result(name, FAILED, f"there is no test {missing[0]}: fix the topic's lists of tests")])
    script = SWAP if config != UM.name else ""
    script += NO_SMOKE_TESTS if config == "debug" else ""
    if only:
        script += "printf '%s\\n' " + " ".join(only) + " > kselftest/kselftest-list.txt\n"
    results = guest(image, tests, name, script + KSELFTESTS, what)
    if tools:
        results += guest(image, tests, f"{before}tools", TOOLS, what, round_robin=True)
    return results


def listed(chosen: list[Topic], which: str) -> tuple[str, ...]:
    """The tests that the topics @chosen name under the key @which of their
    series.toml, each once."""
    return tuple(dict.fromkeys(name for topic in chosen for name in getattr(topic, which)))


def quick_guests(base: Base, repo: Path, chosen: list[Topic], what: Run, before: str = "") -> Iterator[Result]:
    """The tests that prove a change: under User-Mode Linux, natively, and a
    short list in QEMU of what that lacks; or all of them there, where the base
    has no User-Mode Linux for it.  @before comes before each result's name."""
    revision = apply(repo, base, chosen)
    native, emulated = listed(chosen, "native"), listed(chosen, "emulated")
    wanted = {UM.name: native, "check": emulated} if base.uml else {"check": tuple(dict.fromkeys(emulated + native))}
    for config, only in wanted.items():
        if only:
            yield from kselftest_guest(base, repo, revision, config, chosen, "patched", what, only, neighbours=True,
                                       before=before)


def all_guests(base: Base, repo: Path, chosen: list[Topic], what: Run, before: str) -> Iterator[Result]:
    """The kselftests of @chosen on the trace and the debug kernel with all of
    their series, and on the former those of the kernel that exercise the same
    code: KASAN makes these slow.  On other architectures, a topic's kselftests
    run with its own series alone."""
    revision = apply(repo, base, chosen)
    yield from kselftest_guest(base, repo, revision, "trace", chosen, "patched", what, neighbours=True, tools=True,
                               before=before)
    yield from kselftest_guest(base, repo, revision, "debug", chosen, "patched", what, before=before)
    for topic in chosen:
        for config in topic.guests:
            yield from kselftest_guest(base, repo, apply(repo, base, [topic]), config, [topic], topic.name,
                                       what, before=before)


def quick_suites(base: Base, repo: Path, chosen: list[Topic], what: Run) -> Iterator[Result]:
    """The short list of other people's suites under User-Mode Linux, with the
    kernel that quick_guests() has built."""
    revision = apply(repo, base, chosen)
    image = cached(repo, base, revision, UM.name) if base.uml else None
    if image:
        yield from shown(suites.short(base, repo, revision, image,
                                      suites.Options(what.accel, what.fresh, what.budget.patience()),
                                      what.budget.refusal(SUITE_MINUTES)))


def all_suites(base: Base, repo: Path, what: Run, before: str) -> Iterator[Result]:
    """All suites on the kernel without series and on the one with all of them,
    where User-Mode Linux runs them natively."""
    if not base.uml:
        return
    refusal = what.budget.refusal(SUITES_MINUTES)
    if refusal:
        yield from shown([Result(f"{before}suites", SKIPPED, refusal)])
        return
    for compared in suites.both(base, repo, suites.USUAL, suites.guest_configs(base),
                                suites.Options(what.accel, what.fresh)):
        yield from shown(replace(result, name=before + result.name) for result in suites.results(compared))


def races(base: Base, repo: Path, chosen: list[Topic], what: Run, before: str) -> Iterator[Result]:
    """The short list of tests with KCSAN, on the reference base: its known races
    are those that klog names."""
    only = listed(chosen, "emulated")
    if base.reference and only:
        yield from kselftest_guest(base, repo, apply(repo, base, chosen), "kcsan", chosen, "patched", what, only=only,
                                   before=before)


def packages(base: Base, repo: Path, chosen: list[Topic], what: Run, before: str) -> Iterator[Result]:
    """Whether what `make deb` packs boots: of the kernel with the series of
    @chosen, in the configuration of the trace kernel."""
    name = f"{before}deb: the package's kernel boots"
    revision = apply(repo, base, chosen)

    def check() -> Iterator[Result]:
        """Build the package and boot its kernel, which has to be of its release."""
        config = kernel(repo, base, revision, "trace", "patched")
        where = run_directory("check-deb-package")
        made = deb.package(repo, base, revision, (config.path / "config").read_text(), "check", where)
        release = made.name.split("_")[0].removeprefix("linux-image-")
        unpack(made, (f"boot/vmlinuz-{release}",), where)
        image = replace(config, path=where)
        (where / f"boot/vmlinuz-{release}").rename(image.image)
        ran = qemu.boot(image, run_directory("check-deb"), "uname -r", accel=accelerator(what.accel, image),
                        timeout=what.budget.patience(), label="deb")
        booted, found = ran.output.read_text().strip(), ran.reports()
        yield Result(name, PASSED if booted == release and not found else FAILED,
                     "\n".join(found[:10]) or f"{made.name} boots as {booted}")
        shutil.rmtree(where)

    say(f"check: {before}a package of make deb")
    inputs = [str(RULES), kernel_path(repo, base, revision, "trace").name, what.accel, sha256(ROOT / "scripts/deb.py")]
    yield from shown(memo.results(name, inputs, check, what.fresh, what.budget.refusal(BUILD_MINUTES)))


def applied(base: Base, chosen: list[Topic], repo: Path, before: str) -> Iterator[Result]:
    """Whether the series of @chosen apply to @base, each alone and all of them
    one on the other."""
    for stack in [*([topic] for topic in chosen), *([chosen] if len(chosen) > 1 else [])]:
        name = f"{before}{'+'.join(topic.name for topic in stack)}: git am"
        try:
            apply(repo, base, stack)
            yield from shown([Result(name, PASSED)])
        except Failure as err:
            yield from shown([Result(name, FAILED, str(err))])


def beside(base: Base, topic: Topic, repo: Path, before: str) -> Iterator[Result]:
    """Whether the patches of variants() of @topic apply: to its series, or to the base
    if they are measured instead of it."""
    for patch in sorted(variants(topic, base).glob("*.patch")):
        name = f"{before}{topic.name}: variants/{base.name}/{patch.name} applies"
        try:
            if patch.stem == "time":
                with_benchmark(repo, apply(repo, base, [topic]), patch)
            else:
                variant(repo, base, topic, patch.stem, instead=patch.stem in topic.instead)
            yield from shown([Result(name, PASSED)])
        except Failure as err:
            yield from shown([Result(name, FAILED, str(err))])


def measured(base: Base, repo: Path) -> Iterator[Result]:
    """Whether the figures of each topic, and what suites did, are of the series as
    they are, a skip where they are not, since that takes long; and whether our texts
    have the figures that there are."""
    known = figures.load(base, repo)
    for topic, own in known.values():
        name = f"results/{base.name}: {topic.name} is measured as it is"
        if not own.rows:
            yield Result(name, SKIPPED, f"it never was: 'make bench TOPIC={topic.name}'")
        elif figures.gap(topic, own):
            yield Result(name, SKIPPED, figures.gap(topic, own))
        else:
            yield Result(name, PASSED)
            wrong = figures.wrong_price(topic, own)
            yield Result(f"results/{base.name}: the price of {topic.name}", FAILED if wrong else PASSED, wrong)
    name, where = f"results/{base.name}: suites ran on the series as they are", newest_suites(base)
    if where is None:
        yield Result(name, SKIPPED, "they never ran: 'make suites'")
    elif fresh_suites(base, repo, where):
        yield Result(name, PASSED)
    else:
        yield Result(name, SKIPPED, f"{where.name} had another source: 'make suites'")
    if machines.files(base):
        page = ROOT / "results" / base.name / "machines.md"
        same = page.exists() and page.read_text() == machines.page(base, repo, [topic for topic, _ in known.values()])
        yield Result(f"results/{base.name}: machines.md has what the files have", PASSED if same else FAILED,
                     "" if same else f"run 'make report BASE={base.name}'")
    wrong = figures.out_of_date(base, known)
    yield Result(f"texts have the figures of {base.name}", FAILED if wrong else PASSED,
                 f"{wrong[0][0].relative_to(ROOT)} has others: run 'make report BASE={base.name}'" if wrong else "")


def quick(base: Base, what: Run) -> Iterator[Result]:
    """What `make check` does for one base: of those that it is not about, that
    the series apply."""
    chosen, apart = chosen_topics(None, base), replaced(base)
    repo = repository(base, what.kdir)
    before = "" if base.name == what.about else f"{base.name}: "
    results = [result for stack in (chosen, *([topic] for topic in apart))
               for result in applied(base, stack, repo, before)]
    if all(result.verdict == PASSED for result in results):
        results += [result for topic in (*chosen, *apart) for result in beside(base, topic, repo, before)]
    yield from results
    if any(result.verdict == FAILED for result in results) or base.name != what.about:
        return
    say("check: patches and mirrors")
    yield from shown(lint.quick(base, [*chosen, *apart], repo, what.fresh))
    yield from shown(measured(base, repo))
    yield from quick_guests(base, repo, chosen, what)
    say("check: other people's tests")
    yield from quick_suites(base, repo, chosen, what)
    say("check: touched objects")
    yield from shown(configs.series(chosen, base, repo, fresh=what.fresh,
                                     chosen=tuple(configs.CONFIGS[name] for name in QUICK_CONFIGS),
                                     refusal=what.budget.refusal(BUILD_MINUTES)))


def full(base: Base, what: Run) -> Iterator[Result]:
    """What `make check-full` adds to quick() for one base: of the series that
    go in together, and of each that one of them replaces."""
    before = "" if base.name == what.about else f"{base.name}: "
    repo = repository(base, what.kdir)
    chosen = chosen_topics(None, base)
    yield from everything(base, chosen, what, before)
    yield from races(base, repo, chosen, what, before)
    yield from packages(base, repo, chosen, what, before)
    say(f"check: {before}other people's tests")
    yield from all_suites(base, repo, what, before)
    for topic in replaced(base):
        alone = f"{before}{topic.name} alone: "
        yield from quick_guests(base, repo, [topic], what, alone)
        yield from everything(base, [topic], what, alone)


def everything(base: Base, chosen: list[Topic], what: Run, before: str) -> Iterator[Result]:
    """What full() does of the series of @chosen, one on the other; @before
    comes before each result's name."""
    repo = repository(base, what.kdir)
    yield from all_guests(base, repo, chosen, what, before)
    say(f"check: {before}lint, and the objects of each patch")
    yield from shown(replace(result, name=before + result.name) for result in lint.lint(base, chosen, repo, what.fresh))
    say(f"check: {before}litmus tests")
    yield from shown(replace(result, name=before + result.name)
                     for topic in chosen for result in litmus.series(topic, base, repo))
    say(f"check: {before}other configurations")
    yield from shown(replace(result, name=before + result.name) for result in configs.series(
        chosen, base, repo, fresh=what.fresh, refusal=what.budget.refusal(BUILD_MINUTES)))
    for topic in chosen:
        if harness.available(topic, base):
            say(f"check: {before}{topic.name} in user space")
            yield from shown(replace(result, name=before + result.name) for result in harness.series(topic, base, repo))
        if knockout.available(topic, base):
            say(f"check: {before}{topic.name} with parts left out")
            yield from shown(replace(result, name=before + result.name)
                             for result in knockout.series(topic, base, repo, what.accel))


def failing(name: str, results: Iterator[Result]) -> Iterator[Result]:
    """@results; a Failure that breaks them off is a result as well, called
    @name."""
    try:
        yield from results
    except Failure as err:
        yield from shown([Result(name, FAILED, str(err))])


def concerned_bases(base: Base, kdir: str | None) -> Iterator[Base]:
    """The bases that a run about @base checks: with the reference go all others
    that have series, but for those that are somebody's own tree."""
    yield base
    if base.reference:
        for other in bases().values():
            if other != base and any(topic.patches(other) for topic in topics().values()):
                if other.fetched:
                    yield other
                else:
                    say(f"check: {other.name} is left out, as its source is your own tree: 'make check "
                        f"BASE={other.name} KDIR=...' checks it")


def proved(results: list[Result]) -> Iterator[Result]:
    """A failure where no test in a guest is among @results."""
    if not any(result.verdict == PASSED and "kselftests " in result.name for result in results):
        yield from shown([Result("a guest", FAILED, "no test passed in any guest, now or with the same inputs before: "
                                 "give the run more time (MINUTES=), or see above why none booted")])


def slowest(results: list[Result]) -> str:
    """The tests that took longest, as lines."""
    longest = sorted((result for result in results if result.seconds >= 1), key=lambda result: -result.seconds)
    return "".join(f"  {result.seconds:5.0f} s  {result.name}\n" for result in longest[:SLOWEST])


def main() -> int:
    """Run all checks and end with the line 'N passed, N failed, N skipped'."""
    parser = arguments(__doc__, accel=True, fresh=True)
    parser.add_argument("--full", action="store_true", help="everything, on every base; takes hours")
    parser.add_argument("--minutes", type=at_least(1),
                        help="end within so many: skip what would not (default: no limit)")
    args = parser.parse_args()
    base = args.base
    what = Run(args.accel, args.fresh, Budget(args.minutes), base.name, args.kdir)
    chosen_topics(None, base)
    need(*PACKAGES)
    room_for_builds("make check")
    say("check: the tooling's own tests")
    results = tooling()
    results += shown(lint.scripts())
    concerned = list(concerned_bases(base, args.kdir))
    steps: list[Callable[[Base, Run], Iterator[Result]]] = [quick, full] if args.full else [quick]
    for step in steps:
        for checked in concerned:
            results += failing(f"{step.__name__} check of {checked.name}",
                               step(checked, what if checked == base else replace(what, kdir=None)))
    results += proved(results)
    failed = [result for result in results if result.verdict == FAILED]
    if failed:
        print("\nFailed:")
        for result in failed:
            print(f"  {result.name}\n" + "".join(f"    {line}\n" for line in result.why.splitlines()), end="")
    longest = slowest(results)
    if longest:
        print(f"\nSlowest tests:\n{longest}", end="")
    say(f"check: {what.budget.used:.0f} minutes")
    print(count(results))
    return bool(failed)


if __name__ == "__main__":
    run(main)
