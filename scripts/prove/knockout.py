#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Show that the race tests of a topic can fail: run them on a kernel in which
parts of the series are left out, or a delay widens the window.

patches/<topic>/variants/<base>/ has knockout.patch, which goes on top of the
series, is for nothing else, and lets debugfs say what is left out; and
knockout.toml with the kernel's configuration and the cases: which knobs to set,
what to run, what to expect, and for some, another configuration.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.command import arguments, run
from core.install import need
from core.ktap import FAILED, PASSED, SKIPPED, Result, count, parse, shown
from core.model import GUESTS, Base, Topic, need_series, read_toml
from core.process import Failure, say
from guests.guest import SWAP, boot, build_guest
from guests.qemu import accelerator
from source.fetch import repository
from source.tree import variant, variants

# Seconds for the guest with all cases.
PATIENCE = 3600


@dataclass(frozen=True)
class Case:
    """One case of knockout.toml.  @knobs: file below debugfs to what is written
    there; @command: run in the topic's directory of the installed kselftests,
    prints KTAP; @fails: whether a test of it has to fail, else all have to
    pass; @config: the kernel's configuration; @cpus: the CPUs that it takes."""

    name: str
    command: str
    knobs: dict
    fails: bool
    config: str
    cpus: int = 2


def read_cases(path: Path) -> list[Case]:
    """The cases that the knockout.toml at @path has, each with a configuration
    of its own or the one that the file names for all others; Failure for a case
    that is not complete."""
    table = read_toml(path)
    try:
        return [Case(row["name"], row["command"], row["knobs"], row["fails"], row.get("config", table["config"]),
                     row.get("cpus", 2))
                for row in table["case"]]
    except KeyError as err:
        raise Failure(f"{path} or a case of it has no {err}: see the other cases") from err


def cases_script(topic: Topic, chosen: list[Case]) -> str:
    """The bash that runs @chosen in the guest; case N prints to N.ktap."""
    lines = [SWAP, "mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug",
             # Tasks that a case leaves waiting for ever are for its tests to notice.
             "[ ! -e /proc/sys/kernel/hung_task_timeout_secs ] || echo 0 > /proc/sys/kernel/hung_task_timeout_secs",
             f"cd kselftest/{topic.kselftest}"]
    for number, case in enumerate(chosen):
        # Without its knob a case would run with the knob of the case before.
        lines += [f"echo {value} > /sys/kernel/debug/{name} || exit 1" for name, value in case.knobs.items()]
        lines.append(f"echo 'knockout: {number + 1} of {len(chosen)}'; {case.command} > /mnt/{number}.ktap 2>&1")
    return "\n".join(lines) + "\n"


def judge_case(case: Case, text: str) -> Result:
    """Whether the KTAP @text is what @case expects."""
    results = parse(text)
    broken = [result.why for result in results if result.name == "KTAP"]
    if broken:
        return Result(case.name, FAILED, f"its output is not complete: {broken[0]}")
    failed = [result.name for result in results if result.verdict == FAILED]
    if not any(result.verdict != SKIPPED for result in results):
        return Result(case.name, SKIPPED, "all tests are skipped")
    if case.fails:
        return Result(case.name, PASSED if failed else FAILED,
                      f"fails: {', '.join(failed)}" if failed else "expected a failure, but every test passed")
    return Result(case.name, FAILED if failed else PASSED, ", ".join(failed))


def has_cases(topic: Topic, base: Base) -> bool:
    return (variants(topic, base) / "knockout.toml").exists()


def guest_cases(topic: Topic, base: Base, repo: Path, accel: str, config: str, chosen: list[Case]) -> Iterator[Result]:
    """The results of the cases @chosen of @topic for @base on the kernel of
    configuration @config, and of its log.  Raises Failure where the guest ends
    early."""
    image, tests = build_guest(repo, base, variant(repo, base, topic, "knockout"), config, [topic],
                           f"{topic.name}-knockout")
    ran = boot(image, tests, f"{base.name}-knockout-{topic.name}-{config}", cases_script(topic, chosen),
               f"knock-outs of {topic.name}, {config}", cpus=max(case.cpus for case in chosen), memory="2G",
               accel="" if config in GUESTS else accelerator(accel, image), timeout=PATIENCE)
    found = ran.reports()
    if not found and not (ran.path / f"{len(chosen) - 1}.ktap").exists():
        raise Failure(f"the guest ended before its last case: {ran.output} and swap.log beside it say why")
    for number, case in enumerate(chosen):
        ktap = ran.path / f"{number}.ktap"
        yield judge_case(case, ktap.read_text(errors="replace") if ktap.exists() else "")
    yield Result(f"{config}: the kernel's log", FAILED if found else PASSED, "\n".join(found[:10]))
    say(f"knockout: what the tests printed is in {ran.path}")


def run_cases(topic: Topic, base: Base, repo: Path, accel: str, words: list[str] | None = None) -> Iterator[Result]:
    """The results of the cases of @topic for @base, or of those with one of @words
    in their names, and of the kernels' logs.  Raises Failure where there is no
    case, or a guest ends early."""
    known = read_cases(variants(topic, base) / "knockout.toml")
    chosen = [case for case in known if not words or any(word in case.name for word in words)]
    if not chosen:
        raise Failure(f"no case has {' or '.join(words)} in its name: see {variants(topic, base)}/knockout.toml")
    for config in dict.fromkeys(case.config for case in chosen):
        yield from guest_cases(topic, base, repo, accel, config, [case for case in chosen if case.config == config])


def main() -> int:
    """Run all cases of a topic and end with 'N passed, N failed, N skipped'; a
    case passes where the tests fail as they should."""
    parser = arguments(__doc__, topics="one", accel=True)
    parser.add_argument("--case", action="append", help="only cases with this in their names")
    args = parser.parse_args()
    base, topic = args.base, need_series(args.topic, args.base)
    if not has_cases(topic, base):
        raise Failure(f"topic '{topic.name}' has no knock-outs for {base.name}: there is no "
                      f"{variants(topic, base)}/knockout.toml")
    need("source", "build", "guest", "tests")
    results = shown(run_cases(topic, base, repository(base, args.kdir), args.accel, args.case))
    print(count(results))
    return any(result.verdict == FAILED for result in results)


if __name__ == "__main__":
    run(main)
