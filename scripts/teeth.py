#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Show that the race tests of a topic can fail: run them on a debug kernel in
which parts of the series are left out and a delay widens the window.

patches/<topic>/variants/<base>/ has teeth.patch, which goes on top of the
series, is for nothing else, and lets debugfs say what is left out; and
teeth.toml with the cases: which knobs to set, what to run, what to expect.
"""

import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

from build import kernel, kselftests
from fetch import repository
from guest import SWAP, accelerator, boot, reports, run_directory
from ktap import FAILED, PASSED, SKIPPED, Result, count, parse, show
from project import GIT_IDENTITY, ROOT, Base, Failure, Topic, arguments, base, lock, output, run, say, topic, topics
from tree import apply, worktree

# Seconds for the guest with all cases.
PATIENCE = 3600


@dataclass(frozen=True)
class Case:
    """One case of teeth.toml.  @knobs: file below debugfs to what is written
    there; @command: run in the topic's directory of the installed kselftests,
    prints KTAP; @fails: whether a test of it has to fail, else all have to
    pass."""

    name: str
    command: str
    knobs: dict
    fails: bool


def directory(one: Topic, on: Base) -> Path:
    """Where the teeth of @one for @on are."""
    return ROOT / "patches" / one.name / "variants" / on.name


def cases(path: Path) -> list[Case]:
    """The cases of the teeth.toml at @path; Failure for one that is not
    complete."""
    with open(path, "rb") as stream:
        table = tomllib.load(stream)
    try:
        return [Case(row["name"], row["command"], row["knobs"], row["fails"]) for row in table["case"]]
    except KeyError as err:
        raise Failure(f"a case of {path} has no {err}: see the other cases there") from err


def patched(repo: Path, on: Base, one: Topic) -> str:
    """The commit of the series of @one with teeth.patch on it."""
    series = apply(repo, on, [one])
    with lock(f"{repo.name}-apply"):
        tree = worktree(repo, "apply", series)
        try:
            output("git", "-C", tree, "apply", "--index", directory(one, on) / "teeth.patch")
        except Failure as err:
            raise Failure(f"teeth.patch of {one.name} does not apply to its series ({err}): write it again with "
                          "'git diff' in the tree of 'make tree'") from err
        output("git", "-C", tree, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", f"{one.name}: teeth",
               env={**GIT_IDENTITY, "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
                    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"})
        return output("git", "-C", tree, "rev-parse", "HEAD")


def script(one: Topic, chosen: list[Case]) -> str:
    """The bash that runs @chosen in the guest; case N prints to N.ktap."""
    lines = [SWAP, "mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug",
             f"cd kselftest/{one.kselftest}"]
    for number, case in enumerate(chosen):
        lines += [f"echo {value} > /sys/kernel/debug/{name}" for name, value in case.knobs.items()]
        lines.append(f"echo 'teeth: {number + 1} of {len(chosen)}'; {case.command} > /mnt/{number}.ktap 2>&1")
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


def main() -> int:
    """Run all cases of a topic and end with 'N passed, N failed, N skipped'; a
    case passes where the tests fail as they should."""
    parser = arguments(__doc__)
    parser.add_argument("--topic", required=True, help="one of: " + ", ".join(topics()))
    parser.add_argument("--case", action="append", help="only cases with this in their names")
    parser.add_argument("--accel", default="auto", choices=("auto", "kvm", "tcg"), help="default: auto")
    args = parser.parse_args()
    on, one = base(args.base), topic(args.topic)
    if not (directory(one, on) / "teeth.toml").exists():
        raise Failure(f"topic '{one.name}' has no teeth for {on.name}: there is no {directory(one, on)}/teeth.toml")
    chosen = [case for case in cases(directory(one, on) / "teeth.toml")
              if not args.case or any(word in case.name for word in args.case)]
    if not chosen:
        raise Failure(f"no case has {' or '.join(args.case)} in its name: see {directory(one, on)}/teeth.toml")
    repo = repository(on, args.kdir)
    image = kernel(repo, on, patched(repo, on, one), "debug", f"{one.name}-teeth")
    run_dir = run_directory(f"teeth-{one.name}")
    shutil.copytree(kselftests(repo, apply(repo, on, [one]), [one.kselftest]), run_dir / "kselftest")
    ran = boot(image, run_dir, script(one, chosen), memory="2G", accel=accelerator(args.accel, image),
               timeout=PATIENCE, label=f"teeth of {one.name}")
    results = [judge(case, (run_dir / f"{number}.ktap").read_text(errors="replace"))
               for number, case in enumerate(chosen)]
    found = reports(ran.console.read_text(errors="replace"))
    results.append(Result("the kernel's log", FAILED if found else PASSED, "\n".join(found[:10])))
    show(results)
    say(f"teeth: what the tests printed is in {run_dir}")
    print(count(results))
    return any(result.verdict == FAILED for result in results)


if __name__ == "__main__":
    run(main)
