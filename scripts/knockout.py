#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Show that the race tests of a topic can fail: run them on a kernel in which
parts of the series are left out, or a delay widens the window.

patches/<topic>/variants/<base>/ has knockout.patch, which goes on top of the
series, is for nothing else, and lets debugfs say what is left out; and
knockout.toml with the kernel's configuration and the cases: which knobs to set,
what to run, what to expect.
"""

import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from build import kernel, kselftests
from fetch import repository
from guest import SWAP, accelerator, boot, reports, run_directory
from install import need
from ktap import FAILED, PASSED, SKIPPED, Result, count, parse, shown
from project import Base, Failure, Topic, arguments, base, need_series, run, say, topic, topics
from tree import apply, variant, variants

# Seconds for the guest with all cases.
PATIENCE = 3600


@dataclass(frozen=True)
class Case:
    """One case of knockout.toml.  @knobs: file below debugfs to what is written
    there; @command: run in the topic's directory of the installed kselftests,
    prints KTAP; @fails: whether a test of it has to fail, else all have to
    pass."""

    name: str
    command: str
    knobs: dict
    fails: bool


def cases(path: Path) -> tuple[str, list[Case]]:
    """The configuration of the kernel and the cases that the knockout.toml at
    @path has; Failure for a case that is not complete."""
    with open(path, "rb") as stream:
        table = tomllib.load(stream)
    try:
        return table["config"], [Case(row["name"], row["command"], row["knobs"], row["fails"]) for row in table["case"]]
    except KeyError as err:
        raise Failure(f"{path} or a case of it has no {err}: see the other cases") from err


def script(one: Topic, chosen: list[Case]) -> str:
    """The bash that runs @chosen in the guest; case N prints to N.ktap."""
    lines = [SWAP, "mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug",
             f"cd kselftest/{one.kselftest}"]
    for number, case in enumerate(chosen):
        lines += [f"echo {value} > /sys/kernel/debug/{name}" for name, value in case.knobs.items()]
        lines.append(f"echo 'knockout: {number + 1} of {len(chosen)}'; {case.command} > /mnt/{number}.ktap 2>&1")
    return "\n".join(lines) + "\n"


def judge(case: Case, text: str) -> Result:
    """Whether the KTAP @text is what @case expects."""
    results = parse(text)
    broken = [one.why for one in results if one.name == "KTAP"]
    if broken:
        return Result(case.name, FAILED, f"its output is not complete: {broken[0]}")
    failed = [one.name for one in results if one.verdict == FAILED]
    if not any(one.verdict != SKIPPED for one in results):
        return Result(case.name, SKIPPED, "all tests are skipped")
    if case.fails:
        return Result(case.name, PASSED if failed else FAILED,
                      f"fails: {', '.join(failed)}" if failed else "no test noticed")
    return Result(case.name, FAILED if failed else PASSED, ", ".join(failed))


def available(one: Topic, on: Base) -> bool:
    """Whether the series of @one for @on has cases."""
    return (variants(one, on) / "knockout.toml").exists()


def series(one: Topic, on: Base, repo: Path, accel: str, words: list[str] | None = None) -> Iterator[Result]:
    """The results of the cases of @one for @on, or of those with one of @words
    in their names, and of the kernel's log.  Raises Failure where there is no
    case, or the guest ends early."""
    config, known = cases(variants(one, on) / "knockout.toml")
    chosen = [case for case in known if not words or any(word in case.name for word in words)]
    if not chosen:
        raise Failure(f"no case has {' or '.join(words)} in its name: see {variants(one, on)}/knockout.toml")
    image = kernel(repo, on, variant(repo, on, one, "knockout"), config, f"{one.name}-knockout")
    run_dir = run_directory(f"{on.name}-knockout-{one.name}")
    shutil.copytree(kselftests(repo, apply(repo, on, [one]), [one.kselftest]), run_dir / "kselftest")
    ran = boot(image, run_dir, script(one, chosen), memory="2G", accel=accelerator(accel, image),
               timeout=PATIENCE, label=f"knock-outs of {one.name}")
    if not (run_dir / f"{len(chosen) - 1}.ktap").exists():
        raise Failure(f"the guest ended before its last case: {ran.output} and swap.log beside it say why")
    for number, case in enumerate(chosen):
        yield judge(case, (run_dir / f"{number}.ktap").read_text(errors="replace"))
    found = reports(ran.console.read_text(errors="replace"))
    yield Result("the kernel's log", FAILED if found else PASSED, "\n".join(found[:10]))
    say(f"knockout: what the tests printed is in {run_dir}")


def main() -> int:
    """Run all cases of a topic and end with 'N passed, N failed, N skipped'; a
    case passes where the tests fail as they should."""
    parser = arguments(__doc__)
    parser.add_argument("--topic", required=True, help="one of: " + ", ".join(topics()))
    parser.add_argument("--case", action="append", help="only cases with this in their names")
    parser.add_argument("--accel", default="auto", choices=("auto", "kvm", "tcg"), help="default: auto")
    args = parser.parse_args()
    on = base(args.base)
    one = need_series(topic(args.topic), on)
    if not available(one, on):
        raise Failure(f"topic '{one.name}' has no knock-outs for {on.name}: there is no "
                      f"{variants(one, on)}/knockout.toml")
    need("source", "build", "guest", "tests")
    results = shown(series(one, on, repository(on, args.kdir), args.accel, args.case))
    print(count(results))
    return any(result.verdict == FAILED for result in results)


if __name__ == "__main__":
    run(main)
