#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Time the benchmarks of regress/ on the kernel that is booted now, and keep the
figures under a name (--save); or compare two names (-a, -b).

Each boot is one sample: run it again with the same name after a reboot.  Root is
not needed; what takes it is left out, which is said.  The boots lie in
$XDG_DATA_HOME/hotpaths, not in the cache: a boot cannot be had again.
"""

import argparse
import importlib
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import machine
import stats
from build import REGRESS, compiler, regress_hash
from command import arguments, at_least, run
from figures import number
from locks import cache, write_json
from measure import DIRECTORY, Timing, json_lines
from model import Topic, measurable, topics
from process import Failure, logged, output, say

from runs import more_is_better

# The exit status of a benchmark that says that something is not supported here.
SKIP = 4
# Seconds that a run may take more than it is timed for: files are written, and
# memory fills up, before.
PATIENCE = 300
# What the boots of a run have in common, and may not differ in between two runs.
ONE_KERNEL, COMPARABLE = ("machine", "settings", "kernel"), ("machine", "settings")


def seconds(text: str) -> float:
    """The type of --duration, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.01 <= value <= 600:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds from 0.01 to 600")
    return value


def home() -> Path:
    """$XDG_DATA_HOME/hotpaths."""
    return Path(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")) / "hotpaths"


def boots(name: str) -> list[dict]:
    """The boots that are kept as @name, the oldest first; Failure for what is no name,
    or no boot."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._+-]*", name):
        raise Failure(f"'{name}' cannot be the name of a run: use letters, digits, dots and dashes")
    found = []
    for path in (home() / "host" / name).glob("boot-*.json"):
        try:
            found.append(json.loads(path.read_text()))
        except ValueError as err:
            raise Failure(f"cannot read {path} ({err}): remove it, and boot that kernel once more") from err
    return sorted(found, key=lambda boot: boot["date"])


def differences(one: dict, other: dict, keys: tuple[str, ...]) -> str:
    """What the boots @one and @other differ in below @keys, with both values; empty
    where they do not."""
    return "; ".join(f"{name}: '{one[key].get(name)}' and '{other[key].get(name)}'" for key in keys
                     for name in one[key] | other[key] if one[key].get(name) != other[key].get(name))


def programs(timings: list[Timing]) -> Path:
    """The directory with the benchmarks of @timings, built with this machine's own
    headers where they are not there: all boots and kernels run the same ones."""
    out = home() / "programs" / regress_hash()[:16]
    wanted = sorted({timing.program for timing in timings if not (out / timing.program).exists()})
    if wanted:
        log = cache() / "log" / "build-host.log"
        say(f"build: {', '.join(wanted)} (log: {log})")
        logged("building the benchmarks", ["make", "-s", "-C", REGRESS, "TREE=/", "HEADERS=/usr/include",
                                           f"OUT={out}", *(out / name for name in wanted)], log)
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


def time_all(chosen: dict[str, Timing], programs_in: Path, cwd: Path, duration: float,
             rounds: int) -> tuple[list[dict], dict[tuple[str, str], int]]:
    """All cases of all topics, one after the other, @rounds times: the rows, with the
    median of the rounds, and how many cases of a topic were left out for what reason."""
    system = output("findmnt", "-n", "-o", "FSTYPE", "-T", cwd, check=False) or machine.UNKNOWN
    rows: dict[tuple, dict] = {}
    skipped: dict[tuple[str, str], str] = {}
    cases = [(topic, timing, case) for topic, timing in chosen.items() for case in timing.cases]
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
                one["condition"] += f", {system}" if DIRECTORY in case else ""
                rows.setdefault((topic, one["metric"], one["condition"]),
                                {"topic": topic, **one, "rounds": []})["rounds"].append(one["value"])
    why = [(topic, reason) for (topic, _), reason in skipped.items()]
    return ([{**row, "value": statistics.median(row["rounds"])} for row in rows.values()],
            {one: why.count(one) for one in why})


def refuse(name: str, boot: dict) -> None:
    """Failure where what is kept as @name is of another machine, kernel or way to
    measure than @boot."""
    found = [differences(known, boot, ONE_KERNEL) for known in boots(name)]
    if any(found):
        raise Failure(f"'{name}' has a boot that differs from this one ({max(found)}): give another name with SAVE=")


def save(name: str, boot: dict) -> Path:
    """Keep @boot as one of @name; the topics that the same boot was measured with
    before stay.  Failure as refuse() has it."""
    refuse(name, boot)
    again = {row["topic"] for row in boot["rows"]}
    before = [row for known in boots(name) if known["boot"] == boot["boot"] for row in known["rows"]]
    path = home() / "host" / name / f"boot-{boot['boot']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, boot | {"rows": [row for row in before if row["topic"] not in again] + boot["rows"]})
    return path


def cells(found: list[dict]) -> dict[tuple, list[float]]:
    """The values of all boots @found by topic, metric, condition and unit."""
    rows: dict[tuple, list[float]] = {}
    for boot in found:
        for row in boot["rows"]:
            rows.setdefault((row["topic"], row["metric"], row["condition"], row["unit"]), []).append(row["value"])
    return rows


def compared(a: str, b: str) -> str:
    """The runs that are kept as @a and @b, row by row, as Markdown.  Failure where one
    is not there, or where the machine or the way to measure differs."""
    sides = {name: boots(name) for name in (a, b)}
    for name, found in sides.items():
        if not found:
            raise Failure(f"there is no run '{name}': 'make bench-host SAVE={name}' measures the kernel that is booted")
    one, other = sides[a], sides[b]
    wrong = differences(one[-1], other[-1], COMPARABLE)
    if wrong:
        raise Failure(f"something else than the kernel differs between these runs ({wrong}): measure one of them again "
                      "on the machine of the other, set up in the same way")
    lines = [*(f"- {name}: {found[-1]['kernel']['release']} {found[-1]['kernel']['version']}, {len(found)} boots"
               for name, found in sides.items()), ""]
    if one[-1]["date"] < other[0]["date"] or other[-1]["date"] < one[0]["date"]:
        lines += ["All boots of one kernel were before those of the other: boot them by turns, or what has changed "
                  "meanwhile is in the ratio.", ""]
    if any(boot["virtual"] for boot in [*one, *other]):
        lines += ["This is a virtual machine: what its neighbours do is in the figures.", ""]
    heads = ["topic", "metric", "condition", "unit", a, b, "ratio, 95 % interval", "verdict"]
    lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    before, after = cells(one), cells(other)
    for key in (key for key in before if key in after):
        found = stats.two_sides(before[key], after[key], more_is_better(key[3]))
        ratio = "n/a" if found["ratio"] is None else f"{found['ratio']:.3f}"
        span = " [{:.3f}, {:.3f}]".format(*found["interval"]) if found["interval"] else ", no interval"
        lines.append("| " + " | ".join([*key, *map(number, found["medians"]), ratio + span, found["verdict"]]) + " |")
    return "\n".join(lines) + "\n"


def chosen_timings(named: list[Topic] | None) -> dict[str, Timing]:
    """What is timed of the topics @named, or of all but those that another
    replaces, which is timed as they are."""
    apart = set() if named else {topic.replaces for topic in topics().values()}
    return {topic.name: importlib.import_module(f"measure.{topic.name}").TIMED
            for topic in measurable(named or list(topics().values())) if topic.name not in apart}


def main() -> None:
    """Measure this boot and keep it, or compare two runs."""
    parser = arguments(__doc__, base=False, topics="some")
    parser.add_argument("--save", help="the name that this kernel's boots are kept under")
    parser.add_argument("-a", help="a name to compare ...")
    parser.add_argument("-b", help="... with this one")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()),
                        help="where benchmarks make their files, on the file system that is of interest "
                             "(default: %(default)s)")
    parser.add_argument("--duration", type=seconds, default=1.0, help="seconds of each run (default: %(default)g)")
    parser.add_argument("--rounds", type=at_least(1, 1000), default=3,
                        help="how often each is run in this boot; the median counts (default: %(default)s)")
    args = parser.parse_args()
    if args.a and args.b:
        if args.a == args.b:
            raise Failure(f"'{args.a}' is on both sides: give two names with A= and B=")
        print(compared(args.a, args.b), end="")
        return
    if not args.save:
        raise Failure("give --save with the name of this kernel, or two names to compare with -a and -b")
    if not os.access(args.dir, os.W_OK | os.X_OK):
        raise Failure(f"{args.dir} is no directory that you may write: give another one with DIR=")
    chosen = chosen_timings(args.topic)
    boot = {"boot": machine.text(machine.PROC / "sys/kernel/random/boot_id"),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": machine.machine(),
            "kernel": {"release": platform.release(), "version": platform.version()},
            "settings": {"seconds of each run": args.duration, "benchmarks": regress_hash()[:16],
                         "compiler": compiler()}, "virtual": machine.virtual(), "rows": []}
    refuse(args.save, boot)
    built = programs(list(chosen.values()))
    with tempfile.TemporaryDirectory(prefix="hotpaths-", dir=args.dir.resolve()) as work:
        boot["rows"], skipped = time_all(chosen, built, Path(work), args.duration, args.rounds)
    for (topic, why), count in skipped.items():
        say(f"bench-host: {topic}: left out, {count} times: {why}")
    if not boot["rows"]:
        raise Failure("nothing could be measured here: see the reasons above")
    path = save(args.save, boot)
    say(f"bench-host: {len(boot['rows'])} rows are in {path}; '{args.save}' has {len(boots(args.save))} boots of "
        f"{boot['kernel']['release']}")


if __name__ == "__main__":
    run(main)
