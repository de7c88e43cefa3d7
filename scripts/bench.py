#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare a topic's series with its base: build both, boot both, measure both,
write the results and print the report.

The default evidence is mechanism counters and instructions per operation,
which are exact in an emulated machine too.  Time is measured where a probe
boot shows that KVM works, or with --timed.
"""

import argparse
import importlib
import json
import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import stats
from build import Kernel, compiler, kernel, kselftests
from fetch import repository
from guest import accelerator, boot, reports, run_directory
from install import need
from measure import Measurement
from project import (ROOT, Base, Failure, Topic, arguments, at_least, base, chosen_topics, output,
                     room_for_builds, run, say, write_json)
from report import read_summary
from tree import apply, tree_of, variant

# The two that time is compared of.
SIDES = ("baseline", "patched")


@dataclass(frozen=True)
class Side:
    """What one column of the comparison is of: @revision in @repo, on @base."""

    repo: Path
    base: Base
    revision: str


def revisions(repo: Path, on: Base, one: Topic) -> dict[str, Side]:
    """What is compared: the base, the first patches of the series that the
    topic names as `steps`, the series, its variants that are named as
    `compared`, and the plain bases that are named as `beside`."""
    series = apply(repo, on, [one])
    found = {"baseline": on.tag}
    for name, last in one.steps.items():
        found[name] = output("git", "--git-dir", repo, "rev-parse", f"{series}~{len(one.patches(on)) - last}")
    found["patched"] = series
    found.update({name: variant(repo, on, one, name) for name in one.compared})
    sides = {name: Side(repo, on, revision) for name, revision in found.items()}
    for name in one.beside:
        other = base(name)
        sides[name] = Side(repository(other), other, other.tag)
    return sides


def build_sides(one: Topic, compared: dict[str, Side], config: str) -> dict[str, Kernel]:
    """The kernels of one configuration for all that is @compared, the baseline
    first: a build after another compiles only what differs."""
    return {name: kernel(side.repo, side.base, side.revision, config, f"{one.name}-{name}")
            for name, side in compared.items()}


def measures(one: Topic) -> ModuleType:
    """The module of measure/ that says what is measured of @one."""
    return importlib.import_module(f"measure.{one.name}")


def guest_run(measurement: Measurement, side: str, image: Kernel, tests: Path, accel: str, name: str) -> Path:
    """Boot @image for one measurement; the run's directory.  Raises Failure
    where the script failed or the kernel's log has a report in it."""
    run_dir = run_directory(name)
    shutil.copytree(tests, run_dir / "kselftest")
    ran = boot(image, run_dir, measurement.script, cpus=measurement.cpus, memory=measurement.memory,
               accel="tcg" if measurement.icount else accel, icount=measurement.icount,
               timeout=measurement.timeout, label=f"{measurement.name}, {side}")
    if ran.status:
        raise Failure(f"measuring {measurement.name} on the {side} kernel failed; its output is {ran.output} "
                      f"and ends:\n{ran.output.read_text(errors='replace')[-1500:]}")
    found = reports(ran.console.read_text(errors="replace"))
    if found:
        raise Failure(f"the {side} kernel complained while {measurement.name} was measured: {found[0]} "
                      f"({ran.console})")
    return run_dir


def merge(sides: dict[str, list[dict]], one: Topic) -> list[dict]:
    """The rows of each side as rows of summary.json, one for each metric and
    condition, with a value for each side."""
    merged: dict[tuple, dict] = {}
    for side, rows in sides.items():
        for cell in rows:
            key = (cell["metric"], cell["condition"])
            whole = merged.setdefault(key, {"topic": one.name, **{k: cell[k] for k in
                                            ("metric", "unit", "condition", "evidence")}, "values": {}})
            whole["values"][side] = cell["value"]
    return list(merged.values())


def counted(one: Topic, compared: dict[str, Side], tests: Path, accel: str, raw: Path) -> list[dict]:
    """The rows of all counters and instruction counts of a topic; the small
    raw files are copied to @raw."""
    measurements = measures(one).MEASUREMENTS
    base_name = compared["baseline"].base.name
    rows = []
    for number, measurement in enumerate(measurements, 1):
        say(f"bench: {one.name}, measurement {number} of {len(measurements)}: {measurement.name}")
        kernels = build_sides(one, compared, measurement.config)
        sides = {}
        for side in kernels:
            name = f"{one.name}-{measurement.name.replace(' ', '-')}-{side}"
            run_dir = guest_run(measurement, side, kernels[side], tests, accel, f"{base_name}-{name}")
            sides[side] = measurement.rows(run_dir)
            for path in sorted(run_dir.glob("*.json")) + [run_dir / "output.log"]:
                (raw / name).mkdir(parents=True, exist_ok=True)
                shutil.copy(path, raw / name)
        rows += merge(sides, one)
    return rows


def timed(one: Topic, compared: dict[str, Side], tests: Path, accel: str, cpus: int, boots: int,
          raw: Path) -> list[dict]:
    """The rows of the timed comparison: @boots boots a side in ABBA order and
    as many baseline boots again for the noise floor (A/A), a median a boot."""
    measurement = replace(measures(one).TIMED, cpus=cpus)
    kernels = build_sides(one, {side: compared[side] for side in SIDES}, measurement.config)
    order = [side for pair in range(boots) for side in (SIDES if pair % 2 == 0 else SIDES[::-1])]
    order += ["again"] * boots
    cells: dict[tuple, dict] = {}
    for number, side in enumerate(order, 1):
        say(f"bench: {one.name}, timed boot {number} of {len(order)} ({side})")
        image = kernels["patched" if side == "patched" else "baseline"]
        run_dir = guest_run(measurement, side, image, tests, accel, f"{one.name}-timed-{side}-{number}")
        for cell in measurement.rows(run_dir):
            whole = cells.setdefault((cell["metric"], cell["condition"]), {**cell, "boots": {}})
            whole["boots"].setdefault(side, []).append(cell["value"])
    # Before anything is made of them: the boots took long.
    (raw / "timed.json").write_text(json.dumps(list(cells.values()), indent=1) + "\n")
    rows = []
    for cell in cells.values():
        compared = stats.compare(cell["boots"]["baseline"], cell["boots"]["patched"], cell["boots"]["again"])
        rows.append({"topic": one.name, "metric": cell["metric"], "unit": cell["unit"],
                     "condition": cell["condition"] + ("" if accel == "kvm" else ", emulated, not evidence"),
                     "evidence": "timed", "values": compared["medians"], "statistics": compared})
    return rows


def environment(on: Base, accel: str, kernels: list[tuple[str, Side, Kernel]]) -> dict:
    """What the figures were measured on and with.  A source is named by its
    git tree, which does not change with the words of a commit message."""
    cpu = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
           if line.startswith("model name")]
    return {"base": on.tag, "accelerator": accel,
            "host kernel": platform.release(), "host CPU": cpu[0] if cpu else platform.machine(),
            "host CPUs": os.cpu_count(), "compiler": compiler(),
            "qemu": output("qemu-system-x86_64", "--version").splitlines()[0],
            "guest mitigations": "as configured: on in bench, off in trace",
            "command line": " ".join(["scripts/bench.py", *sys.argv[1:]]),
            "kernels": [{"side": name, "base": side.base.tag, "config": one.config, "config hash": one.config_hash,
                         "source tree": tree_of(side.repo, one.commit)}
                        for name, side, one in kernels]}


def bench(on: Base, one: Topic, args: argparse.Namespace, out: Path) -> None:
    """Run everything for one topic and base as the command line @args says,
    and only then write the topic's part of @out: what an interrupted run had
    stays in the cache, and the figures that were there stay as they were."""
    repo = repository(on, args.kdir)
    compared = revisions(repo, on, one)
    tests = kselftests(repo, compared["patched"].revision, [one.kselftest])
    configs = list(dict.fromkeys(measurement.config for measurement in measures(one).MEASUREMENTS))
    probe = kernel(repo, on, on.tag, configs[0], f"{one.name}-baseline")
    accel = accelerator(args.accel, probe)
    raw = run_directory(f"{on.name}-{one.name}-raw")
    rows = counted(one, compared, tests, accel, raw)
    if args.timed or accel == "kvm":
        rows += timed(one, compared, tests, accel, args.cpus, args.boots, raw)
    # Only from the cache: all of them were built by now.
    kernels = [(name, compared[name], image) for config in configs
               for name, image in build_sides(one, compared, config).items()]
    say(f"bench: what the benchmarks printed is in {raw}")
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / f"environment-{one.name}.json", environment(on, accel, kernels))
    summary = out / "summary.json"
    others = [cell for cell in read_summary(summary) if cell["topic"] != one.name] if summary.exists() else []
    write_json(summary, others + rows)


def main() -> None:
    """Compare one topic, or all, and print the report."""
    parser = arguments(__doc__)
    parser.add_argument("--topic", action="append", help="default: every topic that has patches for the base")
    cpus = os.cpu_count() or 1
    parser.add_argument("--cpus", type=at_least(1, cpus), default=min(cpus, 16),
                        help="virtual CPUs of the timed guests (default: %(default)s)")
    parser.add_argument("--accel", default="auto", choices=("auto", "kvm", "tcg"), help="default: auto")
    parser.add_argument("--timed", action="store_true", help="measure time even where there is no KVM")
    parser.add_argument("--boots", type=at_least(5), default=5, help="timed boots a side, at least 5 (default: 5)")
    parser.add_argument("--out", help="where to write (default: results/<base>/<date>)")
    args = parser.parse_args()
    on = base(args.base)
    chosen = chosen_topics(args.topic, on)
    need("source", "build", "guest", "tests")
    room_for_builds("make bench")
    out = Path(args.out) if args.out else ROOT / "results" / on.name / time.strftime("%Y-%m-%d")
    begin = time.monotonic()
    for one in chosen:
        bench(on, one, args, out)
    # A program of its own: it runs where matplotlib is.
    output(sys.executable, ROOT / "scripts/report.py", out)
    print((out / "report.md").read_text())
    say(f"bench: done in {(time.monotonic() - begin) / 60:.0f} minutes; the report is {out / 'report.md'}")


if __name__ == "__main__":
    run(main)
