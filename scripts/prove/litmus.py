#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run litmus tests with herd7 and the kernel's memory model: tests that the series add,
and tests below regress/, which are about the series for the reference base.

Each test says in a comment what the model should find ('Result: Never',
'Sometimes' or 'Always', the convention of tools/memory-model), and fails
where it finds something else.  Without a herd7 all are skipped.
"""

import platform
import re
import shutil
import subprocess
from pathlib import Path

from core.command import arguments, run
from core.ktap import FAILED, PASSED, SKIPPED, Result, count, show
from core.locks import cache, lock
from core.model import Base, Topic, chosen_topics
from core.process import Failure, output, say
from source import fetch
from source.build import REGRESS
from source.tree import apply, commit_of, worktree

# The release that tools/memory-model/README asks for.
OLDEST = (7, 58)
# Debian's herd7 for machines without one: its package is not in releases
# before Debian 14, and wants a newer C library than they have.  Each file
# below the root of a mirror (apt names the mirror), its checksum, and what of
# it is unpacked.
LIBRARIES = "usr/lib/x86_64-linux-gnu"
DEBS = (
    ("pool/main/h/herdtools7/herdtools7_7.58-2_amd64.deb",
     "97a6e2bfbc2c516cd9816e8c87c3acc412953479a3351b308d139e0af9550672",
     ("usr/bin/herd7", "usr/share/herdtools7/herd")),
    ("pool/main/g/glibc/libc6_2.43-7_amd64.deb",
     "5c71715c51103beb4fbba9fe9f8dff604af6610dfa71c70bff342f54a7860803", (LIBRARIES,)),
    ("pool/main/g/gmp/libgmp10_6.3.0+dfsg-3_amd64.deb",
     "d0d0265eb01770f17afd0f7c8c0622f80479dcfbbe13653a0debeec61464e622", (LIBRARIES,)),
)
# Seconds that one test may take.
PATIENCE = 300

EXPECTED = re.compile(r"^[( ]\* Result: (?P<outcome>Never|Sometimes|Always)(?P<race> DATARACE)?\b", re.M)
OBSERVATION = re.compile(r"^Observation \S+ (?P<outcome>Never|Sometimes|Always) (?P<yes>\d+) (?P<no>\d+)$", re.M)


def release(argv: list[str]) -> tuple[int, ...]:
    """The release of the herd7 that @argv runs, (0,) where it does not run."""
    try:
        match = re.match(r"(\d+(?:\.\d+)*)", output(*argv, "-version"))
    except Failure:
        match = None
    return tuple(map(int, match[1].split("."))) if match else (0,)


def private(root: Path) -> list[str]:
    """The command that runs the herd7 unpacked in @root, with the C library
    beside it."""
    libraries = root / LIBRARIES
    return [str(word) for word in (libraries / "ld-linux-x86-64.so.2", "--library-path", libraries,
                                   root / "usr/bin/herd7", "-set-libdir", root / "usr/share/herdtools7/herd")]


def provide(root: Path) -> None:
    """Fetch Debian's herd7 and unpack it into @root, all of it or nothing.
    Raises Failure where a file cannot be had, is another, or does not run."""
    archives = [(fetch.debian_file(pool, checksum), members) for pool, checksum, members in DEBS]
    scratch = root.with_name(root.name + ".part")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    for archive, members in archives:
        fetch.unpack(archive, members, scratch)
    if release(private(scratch)) < OLDEST:
        raise Failure(f"the herd7 in {scratch} does not run: install one on PATH")
    (scratch / "hotpaths.debs").write_text(stamp())
    shutil.rmtree(root, ignore_errors=True)
    scratch.rename(root)


def stamp() -> str:
    """What tells the private herd7 from one of other packages."""
    return "".join(f"{checksum} {pool}\n" for pool, checksum, _ in DEBS)


def herd7() -> list[str] | str:
    """The words that a command line of herd7 begins with: the one on PATH if it
    is recent enough, else Debian's in the cache, fetched where it is not there.
    A string, one sentence, says why there is none."""
    if shutil.which("herd7") and release(["herd7"]) >= OLDEST:
        return ["herd7"]
    wanted = f"herd7 {'.'.join(map(str, OLDEST))} or later is not installed"
    if platform.machine() != "x86_64":
        return f"{wanted}, and there is none to fetch for {platform.machine()}"
    for name in ("dpkg-deb", "curl"):
        if not shutil.which(name):
            return f"{wanted}, and there is no {name} to fetch it with"
    root = cache() / "herd"
    with lock("herd"):
        have = root / "hotpaths.debs"
        if not have.exists() or have.read_text() != stamp():
            try:
                provide(root)
            except Failure as err:
                return f"{wanted}, and Debian's package could not be downloaded: {' '.join(str(err).split())}"
    return private(root)


def judge_litmus(test: Path, printed: str) -> str:
    """What is wrong with what herd7 @printed of @test, empty if nothing is: it
    has to find what the comment in @test says, in executions that there are,
    and no data race that the comment does not mention."""
    expected = EXPECTED.search(test.read_text())
    if not expected:
        return "no comment says the result: add '* Result: Never', Sometimes or Always"
    found = OBSERVATION.search(printed)
    if not found:
        lines = [line for line in printed.splitlines() if line.strip()]
        return f"herd7 has no result: {lines[-1] if lines else 'it printed nothing'}"
    if found["yes"] == found["no"] == "0":
        return "no execution comes to its end"
    if found["outcome"] != expected["outcome"]:
        return f"{found['outcome']}, not {expected['outcome']}"
    raced = re.search(r"^Flag data-race$", printed, re.M)
    if bool(raced) != bool(expected["race"]):
        return "an unexpected data race" if raced else "not the expected data race"
    return ""


def run_tests(source: Path, tests: list[Path], prefix: str = "") -> list[Result]:
    """The result of each of @tests under the memory model of the kernel tree
    @source, called @prefix and its file's name.  Raises Failure for a tree
    without a model."""
    model = source / "tools/memory-model"
    if not (model / "linux-kernel.cfg").exists():
        raise Failure(f"{source} has no memory model: give a kernel tree with tools/memory-model")
    if not tests:
        return []
    argv = herd7()
    results = []
    for test in tests:
        name = prefix + test.name
        if isinstance(argv, str):
            results.append(Result(name, SKIPPED, argv))
            continue
        try:
            done = subprocess.run([*argv, "-conf", "linux-kernel.cfg", test.resolve()], cwd=model, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  errors="replace", timeout=PATIENCE)
            problem = judge_litmus(test, done.stdout)
        except subprocess.TimeoutExpired:
            problem = f"not done after {PATIENCE} s"
        results.append(Result(name, FAILED if problem else PASSED, problem))
    return results


def added(source: Path, start: str, head: str) -> list[Path]:
    """The litmus tests that the commits from @start to @head add or change in
    the kernel tree @source, which has @head checked out."""
    names = output("git", "-C", source, "diff", "--name-only", "--no-renames", "--diff-filter=AM", start, head, "--",
                   "*.litmus")
    return [source / name for name in names.splitlines()]


def own(topic: Topic, base: Base) -> list[Path]:
    """Our litmus tests of the series of @topic for @base, which are not sent."""
    return sorted((REGRESS / topic.name / "litmus").glob("*.litmus")) if base.reference else []


def run_litmus(topic: Topic, base: Base, repo: Path) -> list[Result]:
    """The results of the litmus tests of the series of @topic, and of ours."""
    head = apply(repo, base, [topic])
    with lock(f"{repo.name}-apply"):
        source = worktree(repo, "apply", head)
        tests = [*added(source, commit_of(repo, base.tag), head), *own(topic, base)]
        return run_tests(source, tests, f"{topic.name}: ")


def main() -> int:
    parser = arguments(__doc__, topics="some")
    args = parser.parse_args()
    repo = fetch.repository(args.base, args.kdir)
    results = [result for topic in chosen_topics(args.topic, args.base)
               for result in run_litmus(topic, args.base, repo)]
    show(results)
    say(f"litmus: {count(results)}")
    return any(result.verdict == FAILED for result in results)


if __name__ == "__main__":
    run(main)
