#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Time the benchmarks of regress/ on the kernel that is booted now, and keep
the figures under a name.

Run it again with the same name after each reboot: each boot is one sample.
comparehost.py compares two names.  Root is not needed: what takes it is left
out, which is said.
"""

import argparse
import importlib
import os
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import machine
import perf
import saved
from build import REGRESS, compiler, regress_hash
from command import arguments, at_least, run
from locks import cache
from measure import DIRECTORY, DURATION, Timing, json_lines
from model import Topic, measurable, topics
from process import Failure, logged, output, say

# The exit status of a benchmark that says that something is not supported here.
SKIP = 4
# Seconds that a run may take more than it is timed for: files are written, and
# memory fills up, before.
PATIENCE = 300
# The load, in running tasks for each CPU, at which a machine is not idle.
BUSY = 0.2


def seconds(text: str) -> float:
    """The type of --duration, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.01 <= value <= 600:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds from 0.01 to 600")
    return value


def programs(timings: list[Timing]) -> Path:
    """The benchmarks of @timings, built where they are not there yet: a
    directory with <topic>/<program>.  All boots and kernels run the same ones,
    so they lie with the saved runs, not in the cache.  They are built with this
    machine's own headers, and linked statically."""
    for name in ("gcc", "make"):
        if not shutil.which(name):
            raise Failure(f"there is no {name} to build the benchmarks with: install gcc, make and the C library's "
                          "development files")
    out = saved.home() / "programs" / regress_hash()[:16]
    wanted = sorted({timing.program for timing in timings if not (out / timing.program).exists()})
    if wanted:
        log = cache() / "log" / "build-host.log"
        say(f"build: {', '.join(wanted)} (log: {log})")
        partial = out.with_name(f"{out.name}.{os.getpid()}.part")
        shutil.rmtree(partial, ignore_errors=True)
        logged("building the benchmarks", ["make", "-s", "-C", REGRESS, "TREE=/", "HEADERS=/usr/include",
                                           f"OUT={partial}", *(partial / name for name in wanted)], log)
        for name in wanted:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (partial / name).rename(out / name)
        shutil.rmtree(partial)
    return out


def result(argv: list[str], cwd: Path, duration: float) -> tuple[dict | None, str]:
    """The JSON object that the benchmark @argv prints, run in @cwd; or None, and
    the reason that it gives for not doing it here.  Failure where it fails."""
    try:
        done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=duration + PATIENCE)
    except subprocess.TimeoutExpired as err:
        raise Failure(f"'{shlex.join(argv)}' did not end in {err.timeout:.0f} s: run it by hand to see why") from err
    if done.returncode == SKIP:
        return None, (done.stderr.strip().splitlines() or ["it gives no reason"])[-1]
    (cwd / "result").write_text(done.stdout)
    found = json_lines(cwd / "result")
    if done.returncode or len(found) != 1:
        raise Failure(f"'{shlex.join(argv)}' failed with status {done.returncode}: "
                      f"{done.stderr.strip()[-300:] or 'run it by hand to see why'}")
    return found[0], ""


def filesystem(directory: Path) -> str:
    """The type of the file system that @directory is on."""
    return output("findmnt", "-n", "-o", "FSTYPE", "-T", directory, check=False) or machine.UNKNOWN


def condition(case: str, words: str, kind: str) -> str:
    """The condition @words of a row of @case, and on what @kind of file system
    if it uses one."""
    return f"{words}, {kind}" if DIRECTORY in case else words


def measured(chosen: dict[str, Timing], programs_in: Path, cwd: Path, duration: float, rounds: int,
             counted: perf.Perf) -> dict[str, list[dict]]:
    """All cases of all topics, one after the other, @rounds times, and then
    beside perf: 'rows' with the median of the rounds and their values; 'waits'
    for locks; 'skipped' with the reasons."""
    kind = filesystem(cwd)
    rows: dict[tuple, dict] = {}
    waits, skipped = [], {}
    cases = [(topic, timing, case) for topic, timing in chosen.items() for case in timing.cases]
    names: dict[tuple, str] = {}
    for turn in range(rounds):
        say(f"bench-host: round {turn + 1} of {rounds}, {len(cases) - len(skipped)} runs of {duration:g} s")
        for topic, timing, case in cases:
            if (topic, case) in skipped:
                continue
            found, why = result(timing.argv(case, programs_in, duration, cwd), cwd, duration)
            if found is None:
                skipped[topic, case] = why
                continue
            for one in timing.rows([found]):
                words = condition(case, one["condition"], kind)
                whole = rows.setdefault((topic, one["metric"], words), {
                    "topic": topic, **one, "condition": words, "rounds": []})
                whole["rounds"].append(one["value"])
                names[topic, case] = words
    for row in rows.values():
        row["value"] = statistics.median(row["rounds"])
    beside = []
    if counted.events or counted.locks or counted.lines:
        say(f"bench-host: the same beside perf, {len(names)} runs each")
        for topic, timing, case in cases:
            if (topic, case) in names:
                found, longest = perf.beside(counted, timing.argv(case, programs_in, duration, cwd),
                                             timing.operations, cwd, duration)
                where = {"topic": topic, "condition": names[topic, case]}
                beside += [{**where, "metric": metric, "unit": unit, "evidence": "perf",
                            "value": float(f"{value:.6g}")} for metric, unit, value in found]
                waits += [{**where, **one} for one in longest]
    return {"rows": sorted([*rows.values(), *beside], key=lambda one: list(chosen).index(one["topic"])),
            "waits": waits,
            "skipped": [{"topic": topic, "case": case.replace(f" --seconds {DURATION}", ""), "why": why}
                        for (topic, case), why in skipped.items()]}


def told(skipped: list[dict]) -> None:
    """Say what was left out: each reason once, with how often."""
    reasons: dict[tuple[str, str], int] = {}
    for one in skipped:
        key = (one["topic"], one["why"])
        reasons[key] = reasons.get(key, 0) + 1
    for (topic, why), number in reasons.items():
        say(f"bench-host: {topic}: {number} {'run is' if number == 1 else 'runs are'} left out: {why}")


def chosen_timings(named: list[Topic] | None) -> dict[str, Timing]:
    """What is timed of the topics @named, or of all but those that another
    replaces, which is timed as they are."""
    apart = set() if named else {topic.replaces for topic in topics().values()}
    return {topic.name: importlib.import_module(f"measure.{topic.name}").TIMED
            for topic in measurable(named or list(topics().values())) if topic.name not in apart}


def main() -> None:
    """Measure this boot and keep it."""
    parser = arguments(__doc__, base=False, topics="some")
    parser.add_argument("--save", required=True, help="the name that this kernel's boots are kept under")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()),
                        help="where benchmarks make their files, on the file system that is of interest "
                             "(default: %(default)s)")
    parser.add_argument("--duration", type=seconds, default=1.0, help="seconds of each run (default: %(default)g)")
    parser.add_argument("--rounds", type=at_least(1, 1000), default=3,
                        help="how often each is run in this boot; the median counts (default: %(default)s)")
    parser.add_argument("--no-perf", action="store_true", help="do not run anything beside perf")
    args = parser.parse_args()
    chosen = chosen_timings(args.topic)
    if not os.access(args.dir, os.W_OK | os.X_OK):
        raise Failure(f"{args.dir} is no directory that you may write: give another one with DIR=")
    # The benchmarks run elsewhere.
    where = args.dir.resolve()
    boot = {"format": saved.FORMAT, "boot": machine.boot_id(),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": machine.machine(), "kernel": machine.kernel(),
            "settings": {"seconds of each run": args.duration, "benchmarks": regress_hash()[:16],
                         "compiler": compiler()},
            "virtual": machine.virtual(), "load": os.getloadavg()[0], "root": os.geteuid() == 0}
    saved.refuse(args.save, boot)
    if boot["load"] > BUSY * (os.cpu_count() or 1):
        say(f"bench-host: this machine is not idle, its load is {boot['load']:.1f}: what else runs is in the figures")
    counted = perf.Perf(why=("perf was not wanted",)) if args.no_perf else perf.find()
    for why in counted.why:
        say(f"bench-host: {why}")
    built = programs(list(chosen.values()))
    with tempfile.TemporaryDirectory(prefix="hotpaths-", dir=where) as work:
        boot |= measured(chosen, built, Path(work), args.duration, args.rounds, counted)
    boot |= {"perf": {"events": counted.events, "lock contention": counted.locks, "c2c": counted.lines,
                      "not there": counted.why}}
    told(boot["skipped"])
    if not boot["rows"]:
        raise Failure("nothing could be measured here: see the reasons above")
    config = machine.config()
    if not config:
        say("bench-host: the kernel's configuration cannot be read, so it is not kept")
    path = saved.add(args.save, boot, config)
    number = len(saved.boots(args.save))
    say(f"bench-host: {len(boot['rows'])} rows are in {path}; '{args.save}' has {number} "
        f"{'boot' if number == 1 else 'boots'} of {boot['kernel']['release']} now")


if __name__ == "__main__":
    run(main)
