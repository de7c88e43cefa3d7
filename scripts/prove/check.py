#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prove the repository, before each commit (`make check`) or as a whole (`make
check-full`, --full): Documentation/checking.rst says what each step does.

The log of each guest is a check of its own: a report of lockdep, KASAN, RCU,
WARN, BUG or the hung-task detector in it is a failure.  So is a run that shows
no guest, neither booted nor remembered.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from core import memo
from core.command import arguments, at_least, run
from core.install import ask, tool
from core.ktap import FAILED, PASSED, SKIPPED, Result, count, parse, shown
from core.locks import cache, room_for_builds
from core.model import GUESTS, KCONFIG, ROOT, Base, Topic, bases, chosen_topics, replaced, topics
from core.process import Failure, bash, say, sha256
from core.steps import Budget, Step, carry_out
from guests import arm64
from guests import qemu
from guests.guest import SWAP, boot, build_guest
from guests.klog import lockdep_off, short_of
from guests.qemu import accelerator
from guests.watch import run_directory
from prove import configs
from prove import harness
from prove import knockout
from prove import lint
from prove import litmus
from prove import models
from prove import suites
from reports import figures
from reports import machines
from send import deb
from source.build import ARM64, UM, Kernel, arch, cached, kernel, kernel_path, regress_hash
from source.fetch import repository, unpack
from source.tree import apply, variant, variants, with_benchmark

from reports.runs import fresh_suites, newest_suites, read_json

# Raise this when what happens in a guest changes without a change of what its
# results are remembered by: kernel, tests and script.
RULES = 1
# Seconds that a guest with all tests may take.
GUEST_PATIENCE = 3600
# The minutes that must be left for a guest to be booted, and for its kernel to
# be built if it is not there.
GUEST_MINUTES = 3
BUILD_MINUTES = 20
# The same of the short list of other people's suites, and of all of them.
SUITE_MINUTES, SUITES_MINUTES = 5, 120
# What is touched is compiled in these where it is not compiled in all others.
QUICK_CONFIGS = ("x86", "arm64")
# More kernels that the short list of tests runs on, and how they are called.
MORE_KERNELS = {"kcsan": "with KCSAN", "rt": "with PREEMPT_RT", "up": "on one CPU"}
# How many of the slowest tests are listed in the end.
SLOWEST = 10
# The groups of packages that it takes to build and boot.
BOOTS = ("source", "build", "guest", "tests")

KSELFTESTS = bash(ROOT / "scripts/guests/kselftests.sh")
# KASAN makes benchmarks slow, and their smoke tests are about the benchmarks,
# which run on the other kernels.
NO_SMOKE_TESTS = "sed -i '/_smoke\\.sh$/d' kselftest/kselftest-list.txt\n"
TOOLS = "bash trace/check.sh > ktap 2>&1\n"


@dataclass(frozen=True)
class Run:
    """What all checks of one run need to know: the accelerator of guests,
    whether to do again what is remembered, the time."""

    accel: str
    fresh: bool
    budget: Budget


class Subject:
    """A base that a run checks: @kdir is the user's own tree of it, @before comes before
    each result's name; @applies: whether its series were seen to apply."""

    def __init__(self, base: Base, kdir: str | None, before: str):
        self.base, self.kdir, self.before, self.applies = base, kdir, before, False
        self.chosen, self.apart = chosen_topics(None, base), replaced(base)

    @cached_property
    def repo(self) -> Path:
        return repository(self.base, self.kdir)

    @cached_property
    def inputs(self) -> str:
        """What most results follow from, as hex digits: patches, tests, configurations."""
        paths = [*sorted((ROOT / "patches").glob(f"**/{self.base.name}/*.patch")), *sorted(KCONFIG.rglob("*.config"))]
        return hashlib.sha256(" ".join([*map(sha256, paths), regress_hash()]).encode()).hexdigest()[:16]

    def step(self, name: str, work: Callable[[], Iterator[Result]], needs: tuple[str, ...], minutes: float) -> Step:
        """The step that does @work where the series apply."""
        name = f"{self.before}{name}"
        left_out = [Result(name, SKIPPED, "the series do not apply")]
        return Step(name, lambda: work() if self.applies else left_out, needs, minutes, self.inputs)


def tooling() -> Result:
    """The tooling's own tests, by pytest on all CPUs, which prints what fails."""
    done = subprocess.run([tool("python"), "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider",
                           "--no-header", "--tb=short"], cwd=ROOT,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, stdin=subprocess.DEVNULL)
    return Result("the tooling's tests", FAILED if done.returncode else PASSED,
                  f"pytest exited with {done.returncode}" if done.returncode else "")


def booted(image: Kernel, tests: Path, name: str, script: str, what: Run, round_robin: bool) -> Iterator[Result]:
    """Boot @image and run @script, which leaves KTAP in the file ktap, beside
    the installed kselftests @tests and the tracing scripts.  What the KTAP has
    and what the kernel's log says are the results; @round_robin is boot()'s."""
    emulated = image.config not in GUESTS
    try:
        ran = boot(image, tests, "check-" + name.replace(":", "").replace(" ", "-"), script, name,
                   memory="2G" if emulated else "", timeout=what.budget.patience(GUEST_PATIENCE),
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
        short = short_of(ran.console.read_text(errors="replace"))
        if short:
            yield Result("the host", FAILED, short)


def emulator(image: Kernel) -> str:
    """What runs guests of the kernel @image: QEMU's version, and arm64's init."""
    if image.config == UM.name:
        return ""
    system = "aarch64" if arch(image.config) == ARM64 else "x86_64"
    init = [arm64.made_of()] if arch(image.config) == ARM64 else []
    return " ".join([qemu.version(system), *init])


def guest_results(image: Kernel, tests: Path, name: str, script: str, what: Run,
                  round_robin: bool = False) -> Iterator[Result]:
    """The results of booted(), each with @name before it, or what is
    remembered of the same kernel, tests, script and emulator."""
    trace = [path.read_text() for pattern in ("measure/survey.py", "measure/survey/*.bt", "trace/*")
             for path in sorted((ROOT / "scripts").glob(pattern))] if script == TOOLS else []
    inputs = [str(RULES), image.path.name, tests.name, script, what.accel, emulator(image), str(round_robin), *trace]
    for result in memo.results(name, inputs, lambda: booted(image, tests, name, script, what, round_robin), what.fresh):
        yield replace(result, name=f"{name}: {result.name}")


def kselftest_guest(base: Base, repo: Path, revision: str, config: str, chosen: list[Topic], label: str,
                    what: Run, only: tuple[str, ...] = (), neighbours: bool = False, tools: bool = False,
                    before: str = "") -> Iterator[Result]:
    """The tests of the topics @chosen, and if @neighbours, of the kernel's own that
    exercise the same code, or the ones that @only names as the runner does, on the
    kernel of @revision with configuration @config, and if @tools, the tracing tools,
    where the time is left.  @label names the series in progress lines; @before comes
    before each result's name."""
    name = f"{before}kselftests {config}"
    needed = GUEST_MINUTES + (0 if cached(repo, base, revision, config) else BUILD_MINUTES)
    refusal = what.budget.refusal(needed)
    if refusal:
        yield Result(name, SKIPPED, refusal)
        return
    try:
        image, tests = build_guest(repo, base, revision, config, chosen, label, neighbours)
    except Failure as err:
        yield Result(f"{name}: build", FAILED, str(err))
        return
    missing = sorted(set(only) - set((tests / "kselftest-list.txt").read_text().split())) if only else []
    if missing:
        yield Result(name, FAILED, f"there is no test {missing[0]}: fix the topic's lists of tests")
        return
    script = SWAP if config != UM.name else ""
    script += NO_SMOKE_TESTS if config == "debug" else ""
    if only:
        script += "printf '%s\\n' " + " ".join(only) + " > kselftest/kselftest-list.txt\n"
    yield from guest_results(image, tests, name, script + KSELFTESTS, what)
    if tools:
        yield from guest_results(image, tests, f"{before}tools", TOOLS, what, round_robin=True)


def named_tests(chosen: list[Topic], which: str) -> tuple[str, ...]:
    """The tests that the topics @chosen name under the key @which of their
    series.toml, each once."""
    return tuple(dict.fromkeys(name for topic in chosen for name in getattr(topic, which)))


def quick_suites(base: Base, repo: Path, chosen: list[Topic], what: Run) -> Iterator[Result]:
    """The short list of other people's suites under User-Mode Linux, with the
    kernel that the tests ran on."""
    revision = apply(repo, base, chosen)
    image = cached(repo, base, revision, UM.name) if base.uml else None
    if image:
        yield from suites.short(base, repo, revision, image,
                                suites.Options(what.accel, what.fresh, what.budget.patience(GUEST_PATIENCE)),
                                what.budget.refusal(SUITE_MINUTES))


def all_suites(base: Base, repo: Path, what: Run, before: str) -> Iterator[Result]:
    refusal = what.budget.refusal(SUITES_MINUTES)
    if refusal:
        yield Result(f"{before}suites", SKIPPED, refusal)
        return
    for compared in suites.compare_suites(base, repo, list(suites.SUITES), suites.guest_configs(base),
                                suites.Options(what.accel, what.fresh)):
        for result in suites.suite_results(compared):
            yield replace(result, name=before + result.name)


def packages(base: Base, repo: Path, chosen: list[Topic], what: Run, before: str) -> Iterator[Result]:
    """Whether what `make deb` packs boots: of the kernel with the series of
    @chosen, in the configuration of the trace kernel."""
    name = f"{before}deb: the package's kernel boots"
    revision = apply(repo, base, chosen)

    def check() -> Iterator[Result]:
        config = kernel(repo, base, revision, "trace", "patched")
        where = run_directory("check-deb-package")
        made = deb.build_package(repo, base, revision, (config.path / "config").read_text(), "check", where)
        release = made.name.split("_")[0].removeprefix("linux-image-")
        unpack(made, (f"boot/vmlinuz-{release}",), where)
        image = replace(config, path=where)
        (where / f"boot/vmlinuz-{release}").rename(image.image)
        ran = qemu.boot(image, run_directory("check-deb"), "uname -r", accel=accelerator(what.accel, image),
                        timeout=what.budget.patience(GUEST_PATIENCE), label="deb")
        booted, found = ran.output.read_text().strip(), ran.reports()
        yield Result(name, PASSED if booted == release and not found else FAILED,
                     "\n".join(found[:10]) or f"{made.name} boots as {booted}")
        shutil.rmtree(where)

    inputs = [str(RULES), kernel_path(repo, base, revision, "trace").name, what.accel,
              sha256(ROOT / "scripts/send/deb.py")]
    yield from memo.results(name, inputs, check, what.fresh, what.budget.refusal(BUILD_MINUTES))


def applied(base: Base, chosen: list[Topic], repo: Path, before: str) -> Iterator[Result]:
    """Whether the series of @chosen apply to @base, each alone and all of them
    one on the other."""
    for stack in [*([topic] for topic in chosen), *([chosen] if len(chosen) > 1 else [])]:
        name = f"{before}{'+'.join(topic.name for topic in stack)}: git am"
        try:
            apply(repo, base, stack)
            yield Result(name, PASSED)
        except Failure as err:
            yield Result(name, FAILED, str(err))


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
            yield Result(name, PASSED)
        except Failure as err:
            yield Result(name, FAILED, str(err))


def apply_all(subject: Subject) -> Iterator[Result]:
    """Whether all series of @subject apply, and what lies beside them."""
    verdicts = []
    for stack in (subject.chosen, *([topic] for topic in subject.apart)):
        for result in applied(subject.base, stack, subject.repo, subject.before):
            verdicts.append(result.verdict)
            yield result
    subject.applies = set(verdicts) == {PASSED}
    for topic in (*subject.chosen, *subject.apart) if subject.applies else ():
        for result in beside(subject.base, topic, subject.repo, subject.before):
            subject.applies &= result.verdict == PASSED
            yield result


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
        old = [f"{row['suite']} ({row['config']})" for row in read_json(where / "suites.json")["suites"]
               if row.get("earlier")]
        yield Result(name, SKIPPED if old else PASSED, f"'make suites' for {', '.join(old)}" if old else "")
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


def check_texts(subject: Subject, what: Run) -> Iterator[Result]:
    """What is checked of patches, mirrors and figures without building anything."""
    yield from lint.quick(subject.base, [*subject.chosen, *subject.apart], subject.repo, what.fresh)
    yield from measured(subject.base, subject.repo)


def objects(subject: Subject, chosen: list[Topic], what: Run, before: str, names: tuple[str, ...]) -> Iterator[Result]:
    for result in configs.compare_series(chosen, subject.base, subject.repo, fresh=what.fresh,
                                 chosen=tuple(configs.CONFIGS[name] for name in names),
                                 refusal=what.budget.refusal(BUILD_MINUTES)):
        yield replace(result, name=before + result.name)


def quick_guests(subject: Subject, chosen: list[Topic], what: Run, before: str) -> Iterator[Step]:
    """The tests that prove a change: under User-Mode Linux, natively, and a
    short list in QEMU of what that lacks; or all of them there, where the base
    has no User-Mode Linux for it.  @before comes before each result's name."""
    base, (native, emulated) = subject.base, (named_tests(chosen, "native"), named_tests(chosen, "emulated"))
    wanted = {UM.name: native, "check": emulated} if base.uml else {"check": tuple(dict.fromkeys(emulated + native))}
    for config, only in wanted.items():
        if only:
            yield subject.step(
                f"{before}tests {'in QEMU' if config == 'check' else 'under User-Mode Linux'}",
                lambda config=config, only=only: kselftest_guest(
                    base, subject.repo, apply(subject.repo, base, chosen), config, chosen, "patched", what, only,
                    neighbours=True, before=subject.before + before), BOOTS, 20)


def quick_steps(subject: Subject, what: Run) -> Iterator[Step]:
    """What `make check` does for one base, but for the series' applying."""
    base, chosen = subject.base, subject.chosen
    yield subject.step("patches, mirrors, figures", lambda: check_texts(subject, what), ("source", "lint"), 3)
    yield from quick_guests(subject, chosen, what, "")
    yield subject.step("other people's tests, a short list", lambda: quick_suites(base, subject.repo, chosen, what),
                       (*BOOTS, "suites"), 3)
    yield subject.step("touched objects", lambda: objects(subject, chosen, what, "", QUICK_CONFIGS),
                       ("source", "build", "lint", "ports"), 4)


def everything(subject: Subject, chosen: list[Topic], what: Run, before: str) -> Iterator[Step]:
    """What is proved of the series of @chosen, one on the other; @before comes before
    each result's name.  The kernel's own tests of the same code run on the trace kernel
    alone, as KASAN makes these slow; on other architectures, a topic's with its own series."""
    base, name = subject.base, subject.before + before

    def tests(config: str, chosen: list[Topic], label: str = "patched", **more) -> Iterator[Result]:
        return kselftest_guest(base, subject.repo, apply(subject.repo, base, chosen), config, chosen, label, what,
                               before=name, **more)

    def named(results: Callable[[], Iterator[Result]]) -> Callable[[], Iterator[Result]]:
        """@results with the name of this before each."""
        return lambda: (replace(result, name=name + result.name) for result in results())

    yield subject.step(f"{before}all tests, trace kernel",
                       lambda: tests("trace", chosen, neighbours=True, tools=True), BOOTS, 40)
    yield subject.step(f"{before}all tests, debug kernel", lambda: tests("debug", chosen), BOOTS, 40)
    for topic in chosen:
        for config in topic.guests:
            yield subject.step(f"{before}tests of {topic.name}, {config}", lambda topic=topic, config=config: tests(
                config, [topic], topic.name), (*BOOTS, "ports"), 30)
    yield subject.step(f"{before}lint, the objects of each patch", named(lambda: lint.lint(
        base, chosen, subject.repo, what.fresh)), ("source", "build", "lint"), 15)
    yield subject.step(f"{before}litmus tests", named(lambda: (
        result for topic in chosen for result in litmus.run_litmus(topic, base, subject.repo))), ("source",), 2)
    modelled = [topic for topic in chosen if models.has_models(topic, base)]
    if modelled:
        yield subject.step(f"{before}models of protocols", named(lambda: (
            result for topic in modelled for result in models.run_models(topic))), ("models",), 5)
    yield subject.step(f"{before}touched objects, all configurations", lambda: objects(
        subject, chosen, what, name, tuple(configs.CONFIGS)), ("source", "build", "lint", "ports"), 25)
    for topic in chosen:
        if harness.has_harness(topic, base):
            yield subject.step(f"{before}{topic.name} in user space", named(lambda topic=topic: harness.run_harness(
                topic, base, subject.repo)), ("source", "tests"), 5)
        if knockout.has_cases(topic, base):
            yield subject.step(f"{before}{topic.name} with parts left out", named(
                lambda topic=topic: knockout.run_cases(topic, base, subject.repo, what.accel)), BOOTS, 30)


def full_steps(subject: Subject, what: Run) -> Iterator[Step]:
    """What `make check-full` adds for one base: of the series that go in together, and
    of each that one of them replaces.  MORE_KERNELS are of the reference base: klog
    names its known races."""
    base, chosen = subject.base, subject.chosen
    yield from everything(subject, chosen, what, "")
    only = named_tests(chosen, "emulated")
    for config, words in MORE_KERNELS.items() if base.reference and only else ():
        yield subject.step(f"tests {words}", lambda config=config: kselftest_guest(
            base, subject.repo, apply(subject.repo, base, chosen), config, chosen, "patched", what, only=only,
            before=subject.before), BOOTS, 40)
    yield subject.step("a package of make deb", lambda: packages(base, subject.repo, chosen, what, subject.before),
                       (*BOOTS, "deb"), 15)
    if base.uml:
        yield subject.step("other people's tests", lambda: all_suites(base, subject.repo, what, subject.before),
                           (*BOOTS, "suites"), 60)
    for topic in subject.apart:
        yield from quick_guests(subject, [topic], what, f"{topic.name} alone: ")
        yield from everything(subject, [topic], what, f"{topic.name} alone: ")


def concerned_bases(base: Base) -> Iterator[Base]:
    """The bases that a run about @base checks: with the reference go all others
    that have series, except where the source is the user's own tree."""
    yield base
    if base.reference:
        for other in bases().values():
            if other != base and any(topic.patches(other) for topic in topics().values()):
                if other.fetched:
                    yield other
                else:
                    say(f"check: {other.name} is left out, as its source is your own tree: 'make check "
                        f"BASE={other.name} KDIR=...' checks it")


def plan(base: Base, kdir: str | None, what: Run, everywhere: bool) -> list[Step]:
    """The steps of a run about @base: of other bases, that their series apply, or what
    full_steps() does where all is to be done @everywhere."""
    subjects = [Subject(one, kdir if one == base else None, "" if one == base else f"{one.name}: ")
                for one in concerned_bases(base)]
    steps = [Step("the tooling's own tests", lambda: [tooling(), *lint.scripts()], ("source", "lint"), 2)]
    for subject in subjects:
        there = (cache() / "git" / subject.base.name).exists()
        steps.append(Step(f"series apply to {subject.base.name}", lambda subject=subject: apply_all(subject),
                          ("source",), 1 if there else 5, subject.inputs))
    steps += quick_steps(subjects[0], what)
    return steps + [step for subject in subjects if everywhere for step in full_steps(subject, what)]


def proved(results: list[Result]) -> Iterator[Result]:
    """A failure where no test in a guest is among @results."""
    if not any(result.verdict == PASSED and "kselftests " in result.name for result in results):
        yield from shown([Result("a guest", FAILED, "no test passed in any guest, now or with the same inputs before: "
                                 "give the run more time (MINUTES=), or see above why none booted")])


def slowest(results: list[Result]) -> str:
    longest = sorted((result for result in results if result.seconds >= 1), key=lambda result: -result.seconds)
    return "".join(f"  {result.seconds:5.0f} s  {result.name}\n" for result in longest[:SLOWEST])


def main() -> int:
    parser = arguments(__doc__, accel=True, fresh=True)
    parser.add_argument("--full", action="store_true", help="everything, on every base; takes hours")
    parser.add_argument("--minutes", type=at_least(1),
                        help="end within so many: skip what would not (default: no limit)")
    args = parser.parse_args()
    what = Run(args.accel, args.fresh, Budget(args.minutes))
    steps = plan(args.base, args.kdir, what, args.full)
    ask(*(group for step in steps for group in step.needs))
    room_for_builds("make check")
    results = carry_out("check", steps, args.fresh)
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
