#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare a topic's series with its base: build both, boot both, measure both,
write the results and print the report.

The default evidence is mechanism counters and instructions per operation,
which are exact in an emulated machine too.  Time is measured where a probe
boot shows that KVM works, or with --timed.
"""

import argparse
import hashlib
import importlib
import json
import os
import platform
import re
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import machine
import rounds
from build import Kernel, compiler, fragments_hash, kernel, kselftests
from command import arguments, at_least, run
from fetch import repository
from guest import boot
from install import need
from locks import cache, room_for_builds, write_json
from measure import Measurement
from model import GUESTS, ROOT, Base, Topic, chosen_topics, find_base, find_topic
from process import Failure, output, say, sha256
from qemu import accelerator, version
from tree import apply, code_of, tree_of, variant, variants, with_benchmark
from watch import run_directory

from results import read_summary, write_report


@dataclass(frozen=True)
class Side:
    """What one column of the comparison is of: @revision in @repo, on @base."""

    repo: Path
    base: Base
    revision: str


def revisions(repo: Path, base: Base, topic: Topic) -> dict[str, Side]:
    """What is compared: the base, the first patches of the series that the
    topic names as `steps`, what is named as `instead` of it, the series that it
    `replaces`, the series, its variants that are named as `compared`, and the
    plain bases that are named as `beside`."""
    series = apply(repo, base, [topic])
    found = {"baseline": base.tag}
    for name, last in topic.steps.items():
        found[name] = output("git", "--git-dir", repo, "rev-parse", f"{series}~{len(topic.patches(base)) - last}")
    found.update({name: variant(repo, base, topic, name, instead=True) for name in topic.instead})
    if topic.replaces and not find_topic(topic.replaces).absent(base):
        found[topic.replaces] = apply(repo, base, [find_topic(topic.replaces)])
    found["patched"] = series
    found.update({name: variant(repo, base, topic, name) for name in topic.compared})
    sides = {name: Side(repo, base, revision) for name, revision in found.items()}
    for name in topic.beside:
        other = find_base(name)
        sides[name] = Side(repository(other), other, other.tag)
    return sides


def build_sides(topic: Topic, compared: dict[str, Side], config: str) -> dict[str, Kernel]:
    """The kernels of one configuration for all that is @compared, the baseline
    first: a build after another compiles only what differs."""
    return {name: kernel(side.repo, side.base, side.revision, config, f"{topic.name}-{name}")
            for name, side in compared.items()}


def chosen(compared: dict[str, Side], measurement: Measurement) -> dict[str, Side]:
    """Those of @compared that @measurement is of."""
    return {name: side for name, side in compared.items() if name in (measurement.sides or compared)}


def measures(topic: Topic) -> ModuleType:
    """The module of measure/ that says what is measured of @topic."""
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


def merge(sides: dict[str, list[dict]], topic: Topic) -> list[dict]:
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


def unfinished(base: Base, topic: Topic) -> Path:
    """Where in the cache the counts are kept until all figures of @topic are taken."""
    return cache() / "bench" / f"{base.name}-{topic.name}.json"


def counting() -> str:
    """The code that counts, as hex digits: what makes rows of runs, and the plugins."""
    scripts = ROOT / "scripts"
    sources = [scripts / "counters.py", scripts / "plugin.py", *sorted(scripts.glob("measure/*.py")),
               *sorted(scripts.glob("tcg/*"))]
    return hashlib.sha256(" ".join(map(sha256, sources)).encode()).hexdigest()


def identity(side: Side, measurement: Measurement, tests: Path, accel: str) -> str:
    """What the counts of @measurement on @side with the programs in @tests depend on, as
    hex digits.  kselftests() names these by the whole series, so any change of it, also
    of a page, counts again."""
    depends = (code_of(side.repo, side.revision), fragments_hash(measurement.config, side.base), compiler(),
               tests.name, counting(), version(), measurement.script, measurement.cpus, measurement.memory,
               measurement.icount, accel)
    return hashlib.sha256(repr(depends).encode()).hexdigest()


def counted(topic: Topic, compared: dict[str, Side], measurements: list[Measurement], tests: Path, accel: str,
            raw: Path) -> list[dict]:
    """The rows of @measurements, counters and instruction counts of a topic; the
    small raw files are copied to @raw.  What a run that was interrupted has counted
    is not counted again."""
    base = compared["baseline"].base
    store = unfinished(base, topic)
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
            store.parent.mkdir(exist_ok=True)
            write_json(store, have)
            for path in sorted(run_dir.glob("*.json")) + [run_dir / "output.log"]:
                (raw / name).mkdir(parents=True, exist_ok=True)
                shutil.copy(path, raw / name)
        rows += merge(sides, topic)
    return rows


def timed(topic: Topic, measurement: Measurement, kernels: dict[str, Kernel], tests: Path, accel: str,
          boots: tuple[int, int], raw: Path) -> list[dict]:
    """The rows of @measurement on @kernels, the baseline, the series and others,
    booted as rounds.rounds() says; @boots: its least and most."""
    def once(side: str) -> list[dict]:
        """The rows of one boot.  All boots of a side have one run directory, or
        the tests would lie in the cache a hundred times."""
        image = kernels.get(side, kernels["baseline"])
        return measurement.rows(guest_run(measurement, side, image, tests, accel, f"{topic.name}-timed-{side}"))

    cells = rounds.rounds(once, *boots, f"{topic.name}, {measurement.name}",
                          tuple(name for name in kernels if name not in rounds.SIDES))
    # Before anything is made of them: the boots took long.
    (raw / f"{measurement.config}-{measurement.cpus}.json").write_text(json.dumps(cells, indent=1) + "\n")
    if measurement.config in GUESTS:
        return rounds.compared(cells, topic.name)
    return rounds.compared(cells, topic.name, f", {measurement.cpus} CPUs"
                           + ("" if accel == "kvm" else ", emulated, not evidence"))


def is_timed(cell: dict) -> bool:
    """Whether the row @cell is of time."""
    return cell["evidence"].startswith("timed")


def timed_before(rows: list[dict], before: dict, kernels: list[dict]) -> list[dict]:
    """Those of @rows that were timed, in the environment() @before, if that was on a
    machine like this and of @kernels, as record() has them."""
    measured = {(one["side"], one["config"], one["code"]) for one in before["kernels"]}
    if (before["host CPU"] != machine.machine()["CPU model"]
            or any((one["side"], one["config"], one["code"]) not in measured for one in kernels)):
        return []
    return [cell for cell in rows if is_timed(cell)]


def kept(topic: Topic, compared: dict[str, Side], out: Path) -> tuple[list[dict], dict]:
    """The rows of a topic in @out, and the environment() that they were taken in.
    Raises Failure where there are none, or where they are of other code than what is
    @compared, or of what another compiler made of it."""
    summary, conditions = out / "summary.json", out / f"environment-{topic.name}.json"
    if not summary.exists() or not conditions.exists():
        raise Failure(f"{out} has no figures of {topic.name}; run make bench TOPIC={topic.name} first")
    before = json.loads(conditions.read_text())
    measured = {(one["side"], one["code"]) for one in before["kernels"]}
    for name, side in compared.items():
        if (name, code_of(side.repo, side.revision)) not in measured:
            raise Failure(f"the counts in {out} are of another {name} kernel; run make bench TOPIC={topic.name} anew")
    if before["compiler"] != compiler():
        raise Failure(f"the counts in {out} are of {before['compiler']}, which is not the compiler here; "
                      f"run make bench TOPIC={topic.name} anew")
    return [cell for cell in read_summary(summary) if cell["topic"] == topic.name], before


def in_place(rows: list[dict], before: list[dict]) -> list[dict]:
    """@rows in the order that @before has of their topics, metrics and conditions, with
    what is new behind what is most like it: so summary.json changes where a figure does."""
    def names(cell: dict) -> tuple[str, str, str]:
        return cell["topic"], cell["metric"], cell["condition"]

    order = {names(cell)[:length]: place for length in (1, 2, 3)
             for place, cell in reversed(list(enumerate(before + rows)))}
    return sorted(rows, key=lambda cell: tuple(order[names(cell)[:length]] for length in (1, 2, 3)))


def named(measurements: list[Measurement], names: list[str]) -> list[Measurement]:
    """Those of @measurements that are called @names.  Raises Failure where there is
    none of such a name."""
    known = {one.name: one for one in measurements}
    for name in names:
        if name not in known:
            raise Failure(f"there is no measurement '{name}'; give one of " + ", ".join(f"'{one}'" for one in known))
    return [known[name] for name in names]


def sweep(most: int) -> list[int]:
    """The numbers of CPUs that guests are timed with: 1, 2, 4 and so on, and @most."""
    return sorted({1 << power for power in range(most.bit_length())} | {most})


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
            "source tree": tree_of(side.repo, image.commit), "code": code_of(side.repo, image.commit)}


def environment(base: Base, accel: str, kernels: list[dict]) -> dict:
    """What the figures were measured on and with; @kernels: record() of each."""
    return {"base": base.tag, "accelerator": accel,
            "host kernel": platform.release(), "host CPU": machine.machine()["CPU model"],
            "host CPUs": os.cpu_count(), "compiler": compiler(),
            "qemu": version(),
            "guest mitigations": "as configured: on in bench, off in trace",
            "command line": " ".join(["scripts/bench.py", *sys.argv[1:]]),
            "kernels": kernels}


def bench(base: Base, topic: Topic, args: argparse.Namespace, out: Path) -> None:
    """Run everything for one topic and base as the command line @args says,
    and only then write the topic's part of @out: what an interrupted run had
    stays in the cache, and the figures that were there stay as they were."""
    repo = repository(base, args.kdir)
    compared = revisions(repo, base, topic)
    tests = kselftests(repo, compared["patched"].revision, [topic.kselftest], regress=(*topic.programs, "lines"))
    measurements, native = measures(topic).MEASUREMENTS, measures(topic).NATIVE if base.uml else None
    raw = run_directory(f"{base.name}-{topic.name}-raw")
    have, kernels = [], []
    if args.count or args.time_again:
        have, before = kept(topic, compared, out)
        accel, kernels = before["accelerator"], before["kernels"]
        measurements = named(measurements, args.count)
    else:
        probe = kernel(repo, base, base.tag, measurements[0].config, f"{topic.name}-baseline")
        accel = accelerator(args.accel, probe)
    rows = counted(topic, compared, measurements, tests, accel, raw)
    again = {(cell["metric"], cell["condition"]) for cell in rows}
    rows += [cell for cell in have if (cell["metric"], cell["condition"]) not in again]
    # Only from the cache: all of them were built by now.
    for config in dict.fromkeys(one.config for one in measurements):
        sides = {name: side for one in measurements if one.config == config
                 for name, side in chosen(compared, one).items()}
        own = [record(name, sides[name], image) for name, image in build_sides(topic, sides, config).items()]
        kernels += [one for one in own if one not in kernels]
    if args.count and not args.time_again:
        # The host that is on record took the time, which depends on it.
        conditions = {**before, "kernels": kernels}
    else:
        rows = [cell for cell in rows if not is_timed(cell)]
        boots = (args.boots, 3 * args.boots // 2)
        if args.timed or accel == "kvm":
            measurement = measures(topic).TIMED.measurement()
            images = build_sides(topic, {side: compared[side] for side in ("baseline", "patched")}, measurement.config)
            for count in sweep(args.cpus):
                rows += timed(topic, replace(measurement, cpus=count), images, tests, accel, boots, raw)
        if native:
            sides = timing(topic, compared)
            images = build_sides(topic, sides, native.config)
            own = [record(name, sides[name], image) for name, image in images.items()]
            earlier = timed_before(have, before, own) if args.time_again else []
            rows += rounds.repeated(timed(topic, native, images, tests, accel, boots, raw), earlier)
            kernels = [one for one in kernels if one["config"] != native.config] + own
        conditions = environment(base, accel, kernels)
    say(f"bench: what the benchmarks printed is in {raw}")
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / f"environment-{topic.name}.json", conditions)
    summary = out / "summary.json"
    on_record = read_summary(summary) if summary.exists() else []
    others = [cell for cell in on_record if cell["topic"] != topic.name]
    write_json(summary, in_place(others + rows, on_record))
    unfinished(base, topic).unlink(missing_ok=True)


def main() -> None:
    """Compare one topic, or all, and print the report."""
    parser = arguments(__doc__, topics="some", accel=True)
    # An emulated machine has 255 CPUs at the most.
    cpus = min(os.cpu_count() or 1, 255)
    parser.add_argument("--cpus", type=at_least(1, cpus), default=cpus,
                        help="virtual CPUs of the last timed guests, after 1, 2, 4 and so on (default: %(default)s)")
    parser.add_argument("--timed", action="store_true", help="measure time even where there is no KVM")
    parser.add_argument("--boots", type=at_least(5), default=20,
                        help="boots a side that time is taken of, and up to half as many more where the intervals "
                             "are wide (default: 20)")
    parser.add_argument("--time-again", action="store_true",
                        help="keep the counts that are there, which are exact, and take the time under User-Mode "
                             "Linux once more: what both runs find faster or slower is a gain or a loss")
    parser.add_argument("--count", action="append", default=[], metavar="NAME",
                        help="count the measurement of this name alone, and keep all else that is there, if it is of "
                             "this code (may be given again)")
    parser.add_argument("--out", help="where to write (default: results/<base>/<date>)")
    args = parser.parse_args()
    base, topics = args.base, chosen_topics(args.topic, args.base)
    need("source", "build", "guest", "tests")
    room_for_builds("make bench")
    out = Path(args.out) if args.out else ROOT / "results" / base.name / time.strftime("%Y-%m-%d")
    begin = time.monotonic()
    for topic in topics:
        bench(base, topic, args, out)
    write_report(out, args.kdir)
    print((out / "report.md").read_text())
    say(f"bench: done in {(time.monotonic() - begin) / 60:.0f} minutes; the report is {out / 'report.md'}")


if __name__ == "__main__":
    run(main)
