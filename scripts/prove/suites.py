#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run other people's suites of tests on the kernel without series and on the one
with all of them, and tell where the two differ.

Each program of a suite runs for itself, in a guest with lockdep and KASAN: under
User-Mode Linux, and in QEMU what that lacks.  A program that behaves otherwise on
the kernel with the series is repeated on both sides: where the kernel without
them does the same now and then, it is listed as unsteady, and otherwise it is a
failure.  What fails alike on both sides is listed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from core import machine
from core import memo
from core.command import arguments, at_least, run
from core.install import need
from core.ktap import FAILED, PASSED, SKIPPED, Result, count, shown
from core.locks import cache, room_for_builds
from core.model import ALL, ROOT, Base, chosen_topics
from core.process import Failure, say
from guests.guest import boot
from guests.klog import lockdep_off, report_at, short_of
from guests.qemu import accelerator, version
from guests.watch import Late, Ran, Unfinished
from measure.bench import unfinished
from measure.unixbench import timed
from prove.suite import (
    Absent, Had, Program, Suite, Where, cases, debian, fsx, jobs, kselftests, ltp, unixbench, xfstests)
from source.build import UM, Kernel, compiler, kernel
from source.fetch import repository
from source.tree import apply, code_of, tree_of

from reports.runs import free_directory, new_directory, newest_suites, read_json, write_report, write_run

SUITES = {suite.name: suite for suite in (*debian.SUITES, *(module.SUITE for module in (
    jobs, cases, fsx, xfstests, ltp, unixbench, kselftests)))}
# Raise this when what a guest does with a suite changes and its script does not.
RULES = 1
# The variables that name checkouts of the user's.
CHECKOUTS = ("CASES", "LTP", "XFSTESTS", "UNIXBENCH")
SIDES = ("baseline", "patched")
# The guest of what User-Mode Linux lacks, and how much slower it is.
EMULATED, SLOWER = "check", 4
MEMORY = "2G"
# How often a program is repeated on each side that behaves otherwise on one.
REPEATS = 5
# A report ends the guest, and the next one goes on behind the program: so often.
BOOTS = 40
PATIENCE = 7200
# How a program fails that the guest did not live to see the end of.
CUT_OFF = "the guest ended"
RUNNER = ROOT / "scripts/prove/suite/run.sh"
BEGINS = re.compile(r"hotpaths: (\S+) begins")
# What differs from run to run in one and the same report: the time, which CPU and
# process, offsets and other numbers, lines of the source.
VARIES = re.compile(r"\[ *\d+\.\d+\] |, CPU#.*|\+0x[0-9a-f/x]+|:\d+(?= at )|\b(0x)?[0-9a-f]*\d[0-9a-f]*\b")


@dataclass(frozen=True)
class Options:
    """How suites are run: QEMU's accelerator; whether to do again what is
    remembered; the seconds that one guest may take."""

    accel: str = "auto"
    fresh: bool = False
    patience: float = PATIENCE


@dataclass(frozen=True)
class Compared:
    """What one suite did on both sides in one kind of guest: its name, the
    configuration of its kernels, its version, what each program did by side, and
    of programs that did something else on one side, how often what was seen; @why:
    why there is nothing of that, which is a failure where it is @broken."""

    suite: str
    config: str
    version: str = ""
    seen: dict[str, dict[str, Result]] | None = None
    repeated: dict[str, dict[str, dict[str, int]]] | None = None
    why: str = ""
    broken: bool = False


def behaviour(result: Result) -> str:
    """What is compared of two runs of a program: its verdict, and how it failed."""
    return f"{result.verdict}: {result.why}" if result.why else result.verdict


def programs_script(suite: Suite, programs: list[Program], image: Kernel, slower: int) -> str:
    """The bash that a guest with the kernel @image runs for @programs of @suite."""
    config = image.path / "config"
    lines = [RUNNER.read_text(),
             f"cat > kernel.config << 'END'\n{config.read_text() if config.exists() else ''}END\n", suite.setup]
    lines += [f"program {shlex.quote(one.name)} {one.seconds * slower} {shlex.quote(one.command)}\n"
              for one in programs]
    return "\n".join([*lines, "cat /proc/lockdep_stats > lockdep_stats 2> /dev/null", "true\n"])


def first_report(console: str) -> tuple[str, str]:
    """The program that ran when the kernel first reported something in its log
    @console, and that report; empty where there is none."""
    runs, lines = "", console.splitlines()
    for place, line in enumerate(lines):
        begun, found = BEGINS.search(line), report_at(lines, place)
        if begun:
            runs = begun[1]
        elif found:
            return runs, found
    return "", ""


def steady(report: str) -> str:
    """@report of a kernel without what differs from run to run."""
    return " ".join(VARIES.sub("", report).split())


def outcomes(suite: Suite, ran: Ran) -> tuple[dict[str, Result], str]:
    """What the programs of @suite did in the guest that left @ran, by name, up to
    the one during which the kernel reported something or ended, and that one's
    name; empty where all came to their end."""
    console = ran.console.read_text(errors="replace")
    guilty, report = first_report(console)
    found = {}
    ended, began = ran.path / "ended", ran.path / "began"
    for line in ended.read_text().splitlines() if ended.exists() else ():
        name, status, begin, end = line.split("\t")
        if name == guilty:
            break
        said = (ran.path / "out" / name).read_text(errors="replace")
        found[name] = Result(name, *suite.judge(int(status), said), round(float(end) - float(begin), 2))
    if report:
        say(f"suites: {suite.name}: {guilty or 'before the first program'}: {report}")
        return found | {guilty: Result(guilty, FAILED, f"the kernel's log: {steady(report)}")}, guilty
    left = [name for name in (began.read_text().splitlines() if began.exists() else ()) if name not in found]
    if left:
        return found | {left[0]: Result(left[0], FAILED, CUT_OFF)}, left[0]
    return found, ""


def guests(image: Kernel, suite: Suite, had: Had, programs: list[Program], name: str,
           options: Options) -> dict[str, Result]:
    """What each of @programs of @suite does on the kernel @image, by its name, in
    as many guests as it takes.  Raises Failure where a guest ends without a
    program that is to blame, or too many do."""
    slower = 1 if image.config == UM.name else SLOWER
    accel = accelerator(options.accel, image) if slower > 1 else ""
    files = had.files or nothing()
    found: dict[str, Result] = {}
    for turn in range(1, BOOTS + 1):
        left = [one for one in programs if one.name not in found]
        if not left:
            return found
        whole = sum(one.seconds * slower for one in left) + 60
        limit = min(options.patience, whole)
        ended = None
        try:
            ran = boot(image, files, f"suite {name} {turn}".replace(" ", "-"),
                       programs_script(suite, left, image, slower), name, memory=MEMORY, timeout=limit, accel=accel)
        except Unfinished as err:
            ran, ended = err.ran, err
        # The logs are kept, but not one more copy of the programs.
        shutil.rmtree(ran.path / "kselftest", ignore_errors=True)
        new, guilty = outcomes(suite, ran)
        short = short_of(ran.console.read_text(errors="replace"))
        if short and any(result.verdict == FAILED for result in new.values()):
            raise Failure(f"{name}: {short}; the log is {ran.console}")
        if (isinstance(ended, Late) and limit < whole and len(new) > 1
                and new.get(guilty) == Result(guilty, FAILED, CUT_OFF)):
            # One guest may have been too short for all of them.
            say(f"suites: {suite.name}: {guilty} ran at the time limit of the guest, and begins the next one")
            del new[guilty]
        off = "" if guilty else lockdep_off(ran.path)
        if off or not new.keys() & {one.name for one in left}:
            raise ended or Failure(f"{name}: {off or 'no program ran'}; look at {ran.path}")
        found |= new
    raise Failure(f"{name}: {BOOTS} guests ended before all programs had run; the last log is {ran.console}")


def nothing() -> Path:
    path = cache() / "suite" / "nothing"
    path.mkdir(parents=True, exist_ok=True)
    return path


def remembered(suite: Suite, had: Had, programs: list[Program], image: Kernel) -> Path:
    """Where what @programs of @suite do on @image is kept."""
    made_of = [str(RULES), suite.name, had.version, had.files.name if had.files else "", image.path.name,
               programs_script(suite, programs, image, 1)]
    if image.config != UM.name:
        made_of.append(version())
    return cache() / "memo" / f"suite-{hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:20]}.json"


def side(suite: Suite, had: Had, programs: list[Program], image: Kernel, name: str,
         options: Options) -> dict[str, Result]:
    """What guests() says of one side, or what is kept of that."""
    path = remembered(suite, had, programs, image)
    known = memo.known(name, path, options.fresh)
    if known:
        return {result.name: result for result in known}
    found = guests(image, suite, had, programs, name, options)
    memo.keep(path, list(found.values()))
    return found


def repeat(suite: Suite, had: Had, programs: list[Program], image: Kernel, name: str,
           options: Options) -> dict[str, list[Result]]:
    """What each of @programs does in REPEATS more runs on @image."""
    again = [replace(one, name=f"{one.name}.{number}") for number in range(REPEATS) for one in programs]
    found = guests(image, suite, had, again, f"{name} again", options)
    return {one.name: [found[f"{one.name}.{number}"] for number in range(REPEATS)] for one in programs}


def frequencies(results: list[Result]) -> dict[str, int]:
    seen = [behaviour(result) for result in results]
    return {one: seen.count(one) for one in dict.fromkeys(seen)}


def compare_suite(suite: Suite, had: Had, programs: list[Program], images: dict[str, Kernel],
                  options: Options) -> Compared:
    """What @programs of @suite do on both sides.  What passes on the patched side
    alone is repeated as well: it may be the lucky run of a broken one."""
    config = images["patched"].config
    names = {one: f"{suite.name} {config} {one}" for one in SIDES}
    seen = {"patched": side(suite, had, programs, images["patched"], names["patched"], options)}
    seen["baseline"] = side(suite, had, programs, images["baseline"], names["baseline"], options)
    differ = [one for one in programs
              if behaviour(seen["baseline"][one.name]) != behaviour(seen["patched"][one.name])]
    repeated = {}
    if differ:
        say(f"suites: {suite.name}: {len(differ)} programs differ and are repeated: "
            + " ".join(one.name for one in differ))
        again = {one: repeat(suite, had, differ, images[one], names[one], options) for one in SIDES}
        repeated = {one.name: {which: frequencies([seen[which][one.name], *again[which][one.name]]) for which in SIDES}
                    for one in differ}
    done = Compared(suite.name, config, had.version, {one.name: {which: seen[which][one.name] for which in SIDES
                                                                 if one.name in seen[which]}
                                                      for one in programs}, repeated)
    if red(done):
        # A failure is never remembered.
        remembered(suite, had, programs, images["patched"]).unlink(missing_ok=True)
    if any(seen["baseline"][name].verdict == FAILED and PASSED in of["baseline"] for name, of in repeated.items()):
        # A failure that the base did not repeat would hide one of the series from then on.
        remembered(suite, had, programs, images["baseline"]).unlink(missing_ok=True)
    return done


def red(compared: Compared) -> list[str]:
    """The programs that did on the patched side what they never did on the
    baseline, and that is no pass."""
    return [name for name, sides in (compared.repeated or {}).items()
            if any(not one.startswith(PASSED) for one in sides["patched"].keys() - sides["baseline"].keys())]


def suite_results(compared: Compared) -> Iterator[Result]:
    """@compared as results: each program that differs, and the suite as a whole."""
    name = f"suites: {compared.suite} ({compared.config})"
    if compared.seen is None:
        yield Result(name, FAILED if compared.broken else SKIPPED, compared.why)
        return
    wrong = red(compared)
    for program, sides in compared.repeated.items():
        told = "; ".join(f"{which}: " + ", ".join(f"{times}x {one}" for one, times in sides[which].items())
                         for which in SIDES)
        yield Result(f"{name}: {program}", FAILED if program in wrong else PASSED, told)
    totals = {which: count([sides[which] for sides in compared.seen.values()]) for which in SIDES}
    yield Result(f"{name}: {len(compared.seen)} programs", PASSED if not wrong else FAILED,
                 f"baseline {totals['baseline']}; patched {totals['patched']}")


def chosen_programs(suite: Suite, had: Had, config: str, short: bool) -> list[Program]:
    """The programs of @suite that run in a guest of @config, or of these the
    @short list."""
    patterns = suite.short if short else suite.native if config == UM.name else suite.emulated
    return [one for one in had.programs if any(fnmatch(one.name, pattern) for pattern in patterns)]


def where(base: Base, repo: Path, revision: str) -> Where:
    """What suites are built from, with the user's checkouts, which the
    environment names."""
    return Where(base, repo, revision, {name: Path(os.environ[name]) for name in CHECKOUTS if os.environ.get(name)})


def short(base: Base, repo: Path, revision: str, image: Kernel, options: Options, refusal: str) -> Iterator[Result]:
    """The short list of each suite on the kernel @image with all series, where
    nothing may fail; @refusal is memo.results()'."""
    place = where(base, repo, revision)
    for suite in SUITES.values():
        if not suite.short:
            continue
        try:
            had = suite.get(place)
        except Failure as err:
            yield Result(f"suites: {suite.name}", SKIPPED if isinstance(err, Absent) else FAILED, str(err))
            continue
        programs = chosen_programs(suite, had, image.config, short=True)

        def seen(suite: Suite = suite, had: Had = had, programs: list[Program] = programs) -> Iterator[Result]:
            try:
                for result in guests(image, suite, had, programs, f"{suite.name} short", options).values():
                    yield replace(result, name=f"suites: {suite.name}: {result.name}")
            except Failure as err:
                yield Result(f"suites: {suite.name}: guest", FAILED, str(err))

        inputs = [str(RULES), had.version, had.files.name if had.files else "", image.path.name,
                  programs_script(suite, programs, image, 1)]
        yield from memo.results(f"suites: {suite.name}", inputs, seen, options.fresh, refusal)


def compare_suites(base: Base, repo: Path, names: list[str], configs: list[str],
                   options: Options) -> Iterator[Compared]:
    """Compare the suites @names in guests of @configs."""
    topics = chosen_topics(None, base)
    revision = apply(repo, base, topics)
    place = where(base, repo, revision)
    for config in configs:
        images: dict[str, Kernel] = {}
        for name in names:
            suite = SUITES[name]
            try:
                had = suite.get(place)
                programs = chosen_programs(suite, had, config, short=False)
                if not programs:
                    continue
                if not images:
                    images = {"baseline": kernel(repo, base, base.tag, config, "baseline"),
                              "patched": kernel(repo, base, revision, config, "patched")}
                yield compare_suite(suite, had, programs, images, options)
            except Failure as err:
                yield Compared(name, config, why=str(err), broken=not isinstance(err, Absent))


def json_row(compared: Compared) -> dict:
    row = {"suite": compared.suite, "summary": SUITES[compared.suite].summary, "config": compared.config}
    if compared.seen is None:
        return row | {"not run": compared.why}
    wrong = red(compared)
    totals = {which: {verdict: sum(sides[which].verdict == verdict for sides in compared.seen.values())
                      for verdict in (PASSED, FAILED, SKIPPED)} for which in SIDES}
    alike = {name: sides["patched"] for name, sides in compared.seen.items() if name not in compared.repeated}
    return row | {
        "version": compared.version, "programs": len(compared.seen), **totals,
        "differ": {name: compared.repeated[name] for name in wrong},
        "unsteady": {name: sides for name, sides in compared.repeated.items() if name not in wrong},
        "fail alike": {name: result.why for name, result in alike.items() if result.verdict == FAILED},
        "skip alike": sorted(name for name, result in alike.items() if result.verdict == SKIPPED),
        "pass alike": sorted(name for name, result in alike.items() if result.verdict == PASSED)}


def conditions(base: Base, repo: Path, configs: list[str]) -> dict:
    revisions = {"baseline": base.tag, "patched": apply(repo, base, chosen_topics(None, base))}
    return {"base": base.tag, "host CPU": machine.machine()["CPU model"], "host CPUs": os.cpu_count(),
            "compiler": compiler(), "virtual CPUs": 2, "memory": MEMORY, "repeats": REPEATS,
            "kernels": [{"side": which, "config": config, "source tree": tree_of(repo, revision),
                         "code": code_of(repo, revision)}
                        for config in configs for which, revision in revisions.items()]}


def content(base: Base, repo: Path, found: list[Compared]) -> dict:
    """What suites.json has: what was @found now, and what the newest run has of other
    suites, marked as earlier where its kernels or its compiler are not those of now."""
    configs = list(dict.fromkeys(one.config for one in found))
    newest, now = newest_suites(base), conditions(base, repo, configs)
    rows = {(one.suite, one.config): json_row(one) for one in found}
    if newest:
        had = read_json(newest / "suites.json")
        before = had["environment"]
        same = before["compiler"] == now["compiler"] and {kernel["code"] for kernel in before["kernels"]} == {
            kernel["code"] for kernel in now["kernels"]}
        earlier = {(row["suite"], row["config"]): row if same else row | {"earlier": True} for row in had["suites"]}
        # A suite that could not be had this time leaves what it did before.
        rows = earlier | {key: row for key, row in rows.items() if "not run" not in row or key not in earlier}
        if same:
            have = [kernel["config"] for kernel in now["kernels"]]
            now["kernels"] += [kernel for kernel in before["kernels"] if kernel["config"] not in have]
    return {"environment": now, "suites": list(rows.values())}


def unixbench_time(base: Base, repo: Path, found: list[Compared], most: int) -> dict[str, dict]:
    """The unixbench.json of a run by its name, from @most rounds of boots; nothing unless
    its programs were @found to pass under User-Mode Linux.  Raises Failure where a boot
    fails."""
    suite = unixbench.SUITE
    results = [result for one in found if (one.suite, one.config) == (suite.name, UM.name)
               for sides in (one.seen or {}).values() for result in sides.values()]
    if not results or any(result.verdict == FAILED for result in results):
        return {}
    had = suite.get(where(base, repo, base.tag))
    return {"unixbench.json": {"version": had.version, **timed(base, repo, had.files, most)}}


def main() -> int:
    parser = arguments(__doc__, accel=True, fresh=True)
    parser.add_argument("--suite", help=f"some of these, with commas: {','.join(SUITES)} (default: all)")
    parser.add_argument("--config", help="only the guests of this configuration (default: um, and check for what "
                                         "that lacks)")
    parser.add_argument("--boots", type=at_least(5), default=5,
                        help="rounds of boots for the time of unixbench (default: %(default)s)")
    parser.add_argument("--out", help="where to write (default: a new directory results/<base>/<date>)")
    args = parser.parse_args()
    base = args.base
    names = [name.strip() for name in args.suite.split(",")] if args.suite else list(SUITES)
    for name in names:
        if name not in SUITES:
            raise Failure(f"unknown suite '{name}': there are {', '.join(SUITES)}")
    need("source", "build", "guest", "tests", "suites")
    room_for_builds("make suites")
    repo = repository(base, args.kdir)
    out = free_directory(Path(args.out)) if args.out else new_directory(base)
    found, told = [], []
    for one in compare_suites(base, repo, names, [args.config] if args.config else guest_configs(base),
                    Options(args.accel, args.fresh)):
        found.append(one)
        told += shown(suite_results(one))
    # What programs did is remembered: a run that was interrupted repeats nothing.
    files = {"suites.json": content(base, repo, found)}
    try:
        files |= unixbench_time(base, repo, found, args.boots)
    except Failure as err:
        told += shown([Result("suites: time of unixbench", FAILED, str(err))])
    write_run(out, files)
    if "unixbench.json" in files:
        unfinished(base, ALL, "boots").unlink(missing_ok=True)
    write_report(base, args.kdir)
    say(f"suites: {out / 'suites.json'} has what was seen, the report of {base.name} a table of it")
    print(count(told))
    return any(result.verdict == FAILED for result in told)


def guest_configs(base: Base) -> list[str]:
    return [UM.name, EMULATED] if base.uml else [EMULATED]


if __name__ == "__main__":
    run(main)
