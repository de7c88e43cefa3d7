#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare a topic's series with its base: build both, boot both, measure both,
write a run, and where it is one of results/, the report.

There are counts of mechanisms and instructions, which are exact in an emulated
machine, too, and time, where the base's User-Mode Linux runs natively.
"""

import argparse
import hashlib
import importlib
import json
import os
import platform
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from core import machine
from core.command import arguments, at_least, run
from core.install import need
from core.locks import cache, room_for_builds, write_json
from core.model import ROOT, Base, Topic, chosen_topics, find_topic, measurable
from core.process import Failure, output, say, sha256
from guests.guest import boot
from guests.qemu import accelerator, version
from measure import Measurement
from measure import rounds
from source.build import Kernel, compiler, fragments_hash, kernel, kselftests
from source.fetch import repository
from source.tree import apply, code_of, tree_of, variant, variants, with_benchmark

from reports.runs import all_runs, averages, by_key, free_directory, key_of, new_directory, write_report, write_run

# Rounds of boots before the intervals are looked at.
LEAST_ROUNDS = 20


@dataclass(frozen=True)
class Side:
    """What one column of the comparison is of: @revision in @repo, on @base."""

    repo: Path
    base: Base
    revision: str


def revisions(repo: Path, base: Base, topic: Topic) -> dict[str, Side]:
    """What is compared: the base, the first patches of the series that the topic names
    as `steps`, what is named as `instead` of it, the series that it `replaces`, the
    series, and its variants that are named as `compared`."""
    series = apply(repo, base, [topic])
    found = {"baseline": base.tag}
    for name, last in topic.steps.items():
        found[name] = output("git", "--git-dir", repo, "rev-parse", f"{series}~{len(topic.patches(base)) - last}")
    found.update({name: variant(repo, base, topic, name, instead=True) for name in topic.instead})
    if topic.replaces and not find_topic(topic.replaces).absent(base):
        found[topic.replaces] = apply(repo, base, [find_topic(topic.replaces)])
    found["patched"] = series
    found.update({name: variant(repo, base, topic, name) for name in topic.compared})
    return {name: Side(repo, base, revision) for name, revision in found.items()}


def build_sides(topic: Topic, compared: dict[str, Side], config: str) -> dict[str, Kernel]:
    """The kernels of one configuration for all that is @compared, the baseline
    first: a build after another compiles only what differs."""
    return {name: kernel(side.repo, side.base, side.revision, config, f"{topic.name}-{name}")
            for name, side in compared.items()}


def chosen(compared: dict[str, Side], measurement: Measurement) -> dict[str, Side]:
    """The sides of @compared that @measurement is of."""
    return {name: side for name, side in compared.items() if name in (measurement.sides or compared)}


def measures(topic: Topic) -> ModuleType:
    return importlib.import_module(f"measure.{topic.name}")


def guest_run(measurement: Measurement, side: str, image: Kernel, tests: Path, accel: str, name: str) -> Path:
    """Boot @image for one measurement; the run's directory.  Raises Failure
    where the script failed or the kernel's log has a report in it."""
    ran = boot(image, tests, name, measurement.script, f"{measurement.name}, {side}", cpus=measurement.cpus,
               memory=measurement.memory, accel="tcg" if measurement.icount or measurement.plugin else accel,
               icount=measurement.icount, timeout=measurement.timeout, plugin=measurement.plugin)
    found = ran.reports()
    if found:
        raise Failure(f"the {side} kernel complained while {measurement.name} was measured: {found[0]} "
                      f"({ran.console})")
    if ran.status:
        raise Failure(f"measuring {measurement.name} on the {side} kernel failed; its output is {ran.output} "
                      f"and ends:\n{ran.output.read_text(errors='replace')[-1500:]}")
    return ran.path


def merge_sides(sides: dict[str, list[dict]], topic: Topic) -> list[dict]:
    """The rows of each side as rows of summary.json, one for each metric and
    condition, with a value for each side, and where rows have a 'detail' or
    'spread', the 'details' or 'spreads' of each side."""
    merged: dict[tuple, dict] = {}
    for side, rows in sides.items():
        for cell in rows:
            key = (cell["metric"], cell["condition"])
            whole = merged.setdefault(key, {"topic": topic.name, **{k: cell[k] for k in
                                            ("metric", "unit", "condition", "evidence")}, "values": {}})
            whole["values"][side] = cell["value"]
            for name in ("detail", "spread"):
                if name in cell:
                    whole.setdefault(f"{name}s", {})[side] = cell[name]
    return list(merged.values())


def unfinished(base: Base, topic: Topic, kind: str) -> Path:
    """Where in the cache the "counts" or "boots" of @topic are kept until the run is
    written."""
    path = cache() / "bench" / f"{base.name}-{topic.name}-{kind}.json"
    path.parent.mkdir(exist_ok=True)
    return path


def counting() -> str:
    """The code that counts, as hex digits: what makes rows of runs, and the plugins."""
    scripts = ROOT / "scripts"
    sources = [*sorted(scripts.glob("measure/*.py")), *sorted(scripts.glob("tcg/*"))]
    return hashlib.sha256(" ".join(map(sha256, sources)).encode()).hexdigest()


def identity(side: Side, measurement: Measurement, tests: Path, accel: str) -> str:
    """What the counts of @measurement on @side with the programs in @tests depend on, as
    hex digits.  kselftests() names these by the whole series, so any change of it, also
    of a page, counts again."""
    depends = (code_of(side.repo, side.revision), fragments_hash(measurement.config, side.base), compiler(),
               tests.name, counting(), version(), measurement.script, measurement.cpus, measurement.memory,
               measurement.icount, accel)
    return hashlib.sha256(repr(depends).encode()).hexdigest()


def counted(topic: Topic, compared: dict[str, Side], measurements: list[Measurement], tests: Path,
            accel: str) -> list[dict]:
    """The rows of @measurements, counters and instruction counts of a topic.  What a run
    that was interrupted has counted is not counted again."""
    base = compared["baseline"].base
    store = unfinished(base, topic, "counts")
    have = json.loads(store.read_text()) if store.exists() else {}
    rows = []
    for number, measurement in enumerate(measurements, 1):
        say(f"bench: {topic.name}, measurement {number} of {len(measurements)}: {measurement.name}")
        kernels = build_sides(topic, chosen(compared, measurement), measurement.config)
        sides = {}
        for side in kernels:
            key = identity(compared[side], measurement, tests, accel)
            if key in have:
                sides[side] = have[key]
                continue
            # vng takes no commas in the name of a directory.
            name = re.sub(r"[^\w.]+", "-", f"{topic.name} {measurement.name} {side}")
            run_dir = guest_run(measurement, side, kernels[side], tests, accel, f"{base.name}-{name}")
            sides[side] = have[key] = measurement.rows(run_dir)
            write_json(store, have)
        rows += merge_sides(sides, topic)
    return rows


def timing(topic: Topic, compared: dict[str, Side]) -> dict[str, Side]:
    """The baseline, the series and what the topic names as `timed` as User-Mode
    Linux times them: with the benchmark in the kernel, and a series with its
    time.patch."""
    base = compared["patched"].base
    own = {"patched": variants(topic, base) / "time.patch"}
    if topic.replaces:
        own[topic.replaces] = variants(find_topic(topic.replaces), base) / "time.patch"
    return {name: replace(side, revision=with_benchmark(side.repo, side.revision,
                                                        own[name] if name in own and own[name].exists() else None))
            for name, side in compared.items() if name in ("baseline", "patched", *topic.timed)}


def record(name: str, side: Side, image: Kernel) -> dict:
    """What environment() says of the kernel @image of the column @name.  A source
    is named by its git tree, which does not change with the words of a commit
    message."""
    return {"side": name, "base": side.base.tag, "config": image.config, "config hash": image.config_hash,
            "source tree": tree_of(side.repo, image.commit), "code": code_of(side.repo, side.revision)}


def environment(base: Base, accel: str, kernels: list[dict]) -> dict:
    """What the figures of a topic were measured on and with; @kernels: record() of
    each."""
    return {"base": base.tag, "accelerator": accel,
            "host kernel": platform.release(), "host CPU": machine.machine()["CPU model"],
            "host CPUs": os.cpu_count(), "compiler": compiler(),
            "qemu": version(),
            "guest mitigations": "as configured: on in bench and virtual, off in others",
            "command line": " ".join(["scripts", Path(sys.argv[0]).stem, *sys.argv[1:]]),
            "kernels": kernels}


def count_all(topic: Topic, compared: dict[str, Side], tests: Path,
              accelerated: str) -> tuple[list[dict], list[dict], str]:
    """All counts of @topic: the rows, record() of each kernel, the accelerator."""
    base, measurements = compared["baseline"].base, measures(topic).MEASUREMENTS
    accel = accelerator(accelerated, kernel(compared["baseline"].repo, base, base.tag, measurements[0].config,
                                            f"{topic.name}-baseline"))
    rows, kernels = counted(topic, compared, measurements, tests, accel), []
    # Only from the cache: all of them were built by now.
    for config in dict.fromkeys(one.config for one in measurements):
        sides = {name: side for one in measurements if one.config == config
                 for name, side in chosen(compared, one).items()}
        kernels += [record(name, sides[name], image) for name, image in build_sides(topic, sides, config).items()]
    return rows, kernels, accel


def clock(topic: Topic, compared: dict[str, Side], tests: Path, most: int) -> tuple[dict, list[dict]]:
    """The boots of at most @most rounds under User-Mode Linux, as boots.json has
    them, and record() of each kernel."""
    sides, native = timing(topic, compared), measures(topic).NATIVE
    images = build_sides(topic, sides, native.config)

    def boot_once(side: str) -> list[dict]:
        """The rows of one boot.  All boots of a side have one run directory, or
        the tests would lie in the cache a hundred times."""
        return native.rows(guest_run(native, side, images.get(side, images["baseline"]), tests, "",
                                     f"{topic.name}-timed-{side}"))

    depends = [*(image.path.name for image in images.values()), tests.name, native.script]
    store = unfinished(sides["baseline"].base, topic, "boots")
    boots = rounds.timed(boot_once, min(LEAST_ROUNDS, most), most, f"{topic.name}, {native.name}",
                         tuple(name for name in images if name not in rounds.SIDES), store,
                         hashlib.sha256(repr(depends).encode()).hexdigest())
    # Its source has the benchmark in it.
    return boots, [record(name, compared[name], image) | {"timed code": code_of(sides[name].repo, image.commit)}
                   for name, image in images.items()]


def rows_of_boots(topic: Topic, boots: dict) -> list[dict]:
    """The rows of summary.json of @boots, which have the averages; what else they
    say is computed from boots.json."""
    taken = by_key(boots)
    return [{"topic": topic.name, **cell, "values": averages(taken, key_of(cell))} for cell in boots["cells"]]


def bench(base: Base, topic: Topic, args: argparse.Namespace) -> tuple[dict, list[dict], dict]:
    """Measure one topic as the command line @args says: the environment, the rows
    of summary.json, and what boots.json has of it, or nothing."""
    repo = repository(base, args.kdir)
    compared = revisions(repo, base, topic)
    tests = kselftests(repo, compared["patched"].revision, [topic.target], regress=(*topic.programs, "lines"))
    rows, kernels, accel, boots = [], [], "", {}
    if args.only != "time":
        rows, kernels, accel = count_all(topic, compared, tests, args.accel)
    if args.only != "counts" and base.uml and measures(topic).NATIVE:
        boots, own = clock(topic, compared, tests, args.boots)
        rows, kernels = rows + rows_of_boots(topic, boots), kernels + own
    if not rows:
        raise Failure(f"nothing is timed of {topic.name} on {base.name}: leave ONLY=time out")
    return environment(base, accel, kernels), rows, boots


def main() -> None:
    parser = arguments(__doc__, topics="some", accel=True)
    parser.add_argument("--only", choices=("counts", "time"), help="take these alone (default: both)")
    parser.add_argument("--boots", type=at_least(5), default=100,
                        help="rounds of boots at most, fewer where the intervals are narrow before (default: 100)")
    parser.add_argument("--out", help="where to write (default: a new directory results/<base>/<date>)")
    args = parser.parse_args()
    base, topics = args.base, measurable(chosen_topics(args.topic, args.base))
    if not topics:
        raise Failure("fixes have no figures of their own: name a series that needs them")
    need("source", "build", "guest", "tests")
    room_for_builds("make bench")
    out = free_directory(Path(args.out)) if args.out else new_directory(base)
    begin = time.monotonic()
    measured = {topic.name: bench(base, topic, args) for topic in topics}
    boots = {name: found for name, (_, _, found) in measured.items() if found}
    write_run(out, {"environment.json": {name: conditions for name, (conditions, _, _) in measured.items()},
                    "summary.json": [row for _, rows, _ in measured.values() for row in rows],
                    **({"boots.json": boots} if boots else {})})
    for topic in topics:
        for kind in {"counts": ("counts",), "time": ("boots",)}.get(args.only, ("counts", "boots")):
            unfinished(base, topic, kind).unlink(missing_ok=True)
    if out.resolve() in all_runs(base):
        write_report(base, args.kdir)
    say(f"bench: done in {(time.monotonic() - begin) / 60:.0f} minutes; the run is {out}")


if __name__ == "__main__":
    run(main)
