# SPDX-License-Identifier: GPL-2.0
"""What other machines measured with the bundle that bundle.py makes: a file each, as
it came, in results/<base>/machines/.  What two machines measured is never pooled."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from core.model import ALL, ROOT, Base, Topic, chosen_topics
from core.process import Failure
from reports import laps
from reports import stats
from source.tree import apply, code_of

from reports.runs import read_json

FORMAT = 1
INTRODUCTION = ("Throughput of kernels that run natively as User-Mode Linux, with a bundle of `make bundle`: the base,",
                "and each kernel in relation to it, by CPUs.")
KEYS = ("format", "bundle", "base", "tag", "jobs", "kernels", "machine", "virtual", "host kernel", "begun", "points",
        "laps")


def directory(base: Base) -> Path:
    return ROOT / "results" / base.name / "machines"


def read_machine(path: Path) -> dict:
    """The file @path of a bundle's ./run; Failure where it is none."""
    found = read_json(path)
    if not isinstance(found, dict) or any(key not in found for key in KEYS):
        raise Failure(f"{path} is no file of a bundle's ./run: give the one that it has written")
    if found["format"] != FORMAT:
        raise Failure(f"{path} is of format {found['format']}, and this reads {FORMAT}: measure with a bundle of this "
                      "checkout")
    kernels = {kernel["name"] for kernel in found["kernels"]} | {stats.AGAIN}
    points = {point["cpus"] for point in found["points"]}
    for number, lap in enumerate(found["laps"], 1):
        if lap["cpus"] not in points or set(lap["values"]) != kernels or not all(
                isinstance(value, float | int) and value > 0 for rows in lap["values"].values()
                for value in rows.values()):
            raise Failure(f"{path}, lap {number}, has not a positive value for each kernel: take the file as it was "
                          "written")
    if not found["laps"]:
        raise Failure(f"{path} has no laps: nothing was measured")
    return found


def files(base: Base) -> list[Path]:
    return sorted(directory(base).glob("*.json"))


def add(base: Base, path: Path) -> Path:
    """Take the file @path in, under the name of its machine; where it is then.  It
    takes the place of an earlier state of the same laps, and lies beside others of that
    machine."""
    if not path.is_file():
        raise Failure(f"there is no file {path}: give the one that a bundle's ./run has written, with ADD=")
    found = read_machine(path)
    if found["base"] != base.name:
        raise Failure(f"{path} is of {found['base']}: add BASE={found['base']}")
    name = re.sub(r"[^a-z0-9]+", "-", f"{found['machine']['CPU model']} {found['machine']['CPUs']} cpus".lower())
    out = directory(base) / f"{name.strip('-')}-{found['machine']['machine'][:6]}-{found['bundle']}.json"
    if out.exists() and found["laps"][:len(read_machine(out)["laps"])] != read_machine(out)["laps"]:
        raise Failure(f"{out} has other laps of that machine: keep one of the two")
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(out.name + ".part")
    shutil.copyfile(path, partial)
    partial.rename(out)
    return out


def topic_lines(found: dict, topic: Topic, states: dict[str, str]) -> list[str]:
    """The table of @topic in what the file @found has, as Markdown, or nothing.
    @states: code_of() the series as it is and of earlier states that count, and why."""
    own = [kernel for kernel in found["kernels"] if kernel["topic"] == topic.name and kernel["name"] != laps.BASE]
    points = [point for point in found["points"]
              if len(laps.of_cpus(found["laps"], point["cpus"])) >= laps.LEAST]
    series = next((kernel for kernel in own if kernel["side"] == "patched"), None)
    if not series or not points:
        return []
    if series["code"] not in states:
        return [f"{topic.name}: of an earlier state of the series.", ""]
    lines = [f"| {topic.name} | | " + " | ".join(map(laps.head, points)) + " |", "|---" * (len(points) + 2) + "|"]
    for job in series["jobs"]:
        for row in found["jobs"][job]:
            cells_of = laps.row_lines(found["laps"], row["row"], [one["name"] for one in own], points)
            for number, cells in enumerate(cells_of):
                lines.append("| " + " | ".join(["" if number else row["row"], *cells]) + " |")
    why = states[series["code"]]
    return [*lines, "", *([f"{topic.name}: {why}", ""] if why else [])]


def page(base: Base, repo: Path, topics: list[Topic]) -> str:
    """What they measured of @topics, whose series are applied in @repo, and of all series
    together, as a page of Markdown; nothing where there are none."""
    known = {path: read_machine(path) for path in files(base)}
    if not known:
        return ""
    series = [*((topic, [topic]) for topic in topics), (ALL, chosen_topics(None, base))]
    states = {topic.name: topic.earlier(base) | {code_of(repo, apply(repo, base, applied)): ""}
              for topic, applied in series}
    lines = []
    for path, found in known.items():
        own = found["machine"]
        least = min((len(laps.of_cpus(found["laps"], point["cpus"])) for point in found["points"]), default=0)
        lines += [f"## {own['CPU model']}, {own['CPUs']} CPUs" + (", a virtual machine" if found["virtual"] else ""),
                  "", f"[{path.name}](machines/{path.name}): {found['tag']} under Linux {found['host kernel']}, "
                  f"{found['begun']}, SMT {own['SMT']}, governor {own['governor']}.", ""]
        for topic, _ in series:
            lines += topic_lines(found, topic, states[topic.name])
        # A mark at the beginning of a line would be a list's.
        lines += [re.sub(r"^([*+])", r"\\\1", note) for note in laps.notes(found["points"], max(least, laps.LEAST))]
        lines += [""]
    return "\n".join([f"# What other machines measured on {base.tag}", "", *INTRODUCTION, "",
                      *lines]).rstrip() + "\n"


def wrong_file(base: Base) -> str:
    try:
        for path in files(base):
            read_machine(path)
    except Failure as err:
        return str(err)
    return ""
