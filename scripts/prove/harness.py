#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run the tests of a topic that compile its code in user space, on this machine,
and see them fail where parts of that code are left out.

patches/<topic>/variants/<base>/harness.toml names the directory of the kernel's
tree and the program that make builds there, what it is told, the source file that
it compiles, and the cases: what is replaced in that file, each text of which has
to be there once.  Without liburcu to compile with, all are skipped.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from core.command import arguments, run
from core.install import need
from core.ktap import FAILED, PASSED, SKIPPED, Result, count, shown
from core.model import Base, Topic, need_series, read_toml
from core.process import Failure, output
from source.fetch import repository
from source.tree import apply, variants

# What the programs are compiled of.
NEEDED = ("tools", "lib", "include", "kernel", "arch/x86")
# Seconds for one run, and how often a race is given a chance to be seen.
PATIENCE = 300
RUNS = 10


def described(topic: Topic, base: Base) -> dict:
    """The harness.toml of @topic for @base; Failure where there is none."""
    path = variants(topic, base) / "harness.toml"
    if not has_harness(topic, base):
        raise Failure(f"topic '{topic.name}' has no tests in user space for {base.name}: there is no {path}")
    return read_toml(path)


def has_harness(topic: Topic, base: Base) -> bool:
    return (variants(topic, base) / "harness.toml").exists()


def left_out(source: str, case: dict) -> str:
    """@source with what @case replaces; Failure where a text is not there once."""
    for old, new in case["replace"]:
        if source.count(old) != 1:
            raise Failure(f"case '{case['name']}': '{old.strip().splitlines()[0]}' is in the source "
                          f"{source.count(old)} times: change harness.toml")
        source = source.replace(old, new)
    return source


def copied(repo: Path, revision: str, to: Path) -> None:
    """Copy what the programs are compiled of, at @revision, into the directory @to."""
    archive = to / "source.tar"
    output("git", "--git-dir", repo, "archive", "-o", archive, revision, *NEEDED)
    output("tar", "-xf", archive, "-C", to)
    archive.unlink()


def once(where: Path, program: str, words: list[str], fast: bool) -> str:
    """Compile @program in the directory @where and run it with @words, with the
    checks of the compiler or, if @fast, with none: what is wrong, '' if nothing.
    Raises Failure where it does not compile."""
    flags = ["EXTRA_CFLAGS=-O2 -fno-sanitize=all"] if fast else []
    for left in where.glob("*.o"):
        left.unlink()
    output("make", "-s", "-C", where, program, *flags)
    try:
        done = subprocess.run([where / program, *words], text=True, capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=PATIENCE, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return f"not done after {PATIENCE} s"
    said = done.stderr.strip().splitlines() or [""]
    return f"status {done.returncode}: {said[0]}" if done.returncode else ""


def run_harness(topic: Topic, base: Base, repo: Path) -> Iterator[Result]:
    """The results of @topic for @base: of its code as it is, and of each case.  Raises
    Failure as the functions above do."""
    table = described(topic, base)
    name = f"{topic.name}: {table['program']} in user space"
    if not shutil.which("make") or subprocess.run(["gcc", "-E", "-include", "urcu.h", "-x", "c", "/dev/null"],
                                                  capture_output=True, check=False).returncode:
        yield Result(name, SKIPPED, "there is no urcu.h: install liburcu-dev")
        return
    with tempfile.TemporaryDirectory() as scratch:
        copied(repo, apply(repo, base, [topic]), Path(scratch))
        where, path = Path(scratch) / table["directory"], Path(scratch) / table["source"]
        source = path.read_text()
        for fast in (False, True):
            wrong = once(where, table["program"], table["words"], fast)
            yield Result(name + (", optimised" if fast else ""), FAILED if wrong else PASSED, wrong)
        for case in table["case"]:
            path.write_text(left_out(source, case))
            wrong = next(filter(None, (once(where, table["program"], table["words"], True) for _ in range(RUNS))), "")
            yield Result(case["name"], PASSED if wrong else FAILED,
                         f"fails: {wrong}" if wrong else f"expected a failure in {RUNS} runs, but there was none")


def main() -> int:
    """Run the tests of a topic and end with 'N passed, N failed, N skipped'; a case
    passes where the tests fail as they should."""
    parser = arguments(__doc__, topics="one")
    args = parser.parse_args()
    topic = need_series(args.topic, args.base)
    need("source", "tests")
    results = shown(run_harness(topic, args.base, repository(args.base, args.kdir)))
    print(count(results))
    return any(result.verdict == FAILED for result in results)


if __name__ == "__main__":
    run(main)
