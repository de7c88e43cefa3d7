#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Say of each series whether it fits another release: KDIR= is a kernel tree, or an
archive of one, or a linux-source package of Debian's.

A series is the one for the base of the same release, or else for --base.  It
applies as it is, or where git merges it, or the first patch that does not is named,
with the function that changed.  The touched objects are compiled with x86's
defconfig, and of a series that git had to merge, the patches are written anew.
"""

import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from core.command import arguments, run
from core.install import need
from core.ktap import FAILED, PASSED, Result, show
from core.locks import cache, lock, write_json
from core.model import Base, Topic, bases, chosen_topics, replaced
from core.process import GIT_IDENTITY, Failure, logged, output, say
from prove.lint import kernel_files
from send import export
from source.build import make_jobs, remembering, selected
from source.fetch import repository, unpack
from source.tree import apply_errors, worktree


def source_of(path: Path) -> Path:
    """The kernel tree that @path is, or has as an archive, which is unpacked in the
    cache.  Raises Failure where it is none."""
    tree = path.resolve()
    if path.is_file():
        scratch = cache() / "fit.part"
        shutil.rmtree(scratch, ignore_errors=True)
        tree = scratch / "source"
        tree.mkdir(parents=True)
        archive = path
        if path.suffix == ".deb":
            member = f"usr/src/{path.name.split('_')[0]}.tar.xz"
            unpack(path, (member,), scratch)
            archive = scratch / member
        logged("tar", ["tar", "-xf", archive, "-C", tree, "--strip-components=1"], cache() / "log" / "unpack.log")
    if not (tree / "MAINTAINERS").exists():
        raise Failure(f"KDIR={path} is no kernel: give a tree, an archive of one, or a linux-source package")
    return tree


def release_of(tree: Path) -> str:
    """The release of the kernel @tree, as 'v6.12.117'."""
    words = dict(line.split(" = ", 1) for line in (tree / "Makefile").read_text().splitlines()[:8] if " = " in line)
    return "v" + ".".join(words.get(word, "0") for word in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))


def snapshot(repo: Path, base: Base, tree: Path, all_files: bool = False) -> str:
    """The kernel @tree as a commit in @repo, the repository of @base, which has most
    of its files already; the tree itself is only read.  @all_files: those that its
    .gitignore names, too, which in Debian's sources is all of them."""
    env = {**GIT_IDENTITY, "GIT_INDEX_FILE": str(cache() / "fit.index")}
    git = ["git", "--git-dir", repo, "--work-tree", tree, "-c", "gc.auto=0"]
    output(*git, "read-tree", base.tag, env=env)
    output(*git, "add", "-A", *(["-f"] if all_files else []), ".", env=env, cwd=tree)
    made = output(*git, "write-tree", env=env)
    return output(*git, "commit-tree", "-m", release_of(tree), made, env=env)


def place(patch: Path, message: str) -> str:
    """Where @patch does not apply, from what `git apply` says: the function and its
    file, or the file, or the message itself."""
    found = re.search(r"error: patch failed: (\S+):(\d+)", message)
    if not found:
        return message.strip().splitlines()[0].removeprefix("error: ") if message.strip() else "git gave no reason"
    diff = patch.read_text(errors="replace").partition(f"\ndiff --git a/{found[1]} ")[2].partition("\ndiff --git ")[0]
    heading = re.search(rf"^@@ -{found[2]}[, ][^@]*@@ (.*)$", diff, re.M)
    name = re.search(r"(\w+)\(", heading[1]) if heading else None
    return f"{name[1]}() in {found[1]} changed" if name else f"{found[1]} changed at line {found[2]}"


def put_on(path: Path, patches: list[Path]) -> tuple[list[str], str]:
    """Apply @patches to the worktree @path: those that git had to merge, and why the
    first that does not apply does not, or nothing."""
    merged = []
    for patch in patches:
        message = apply_errors(path, patch)
        words = ["am", "-q", "--keep-cr", "--committer-date-is-author-date", *(["-3"] if message else []), patch]
        try:
            output("git", "-C", path, "-c", "core.hooksPath=/dev/null", *words, env=GIT_IDENTITY)
        except Failure:
            output("git", "-C", path, "am", "--abort", env=GIT_IDENTITY, check=False)
            return merged, f"{patch.name}: {place(patch, message)}"
        merged += [patch.name[:4]] if message else []
    return merged, ""


def compiled(path: Path, out: Path, start: str, name: str) -> tuple[int, str]:
    """Compile in @out what the worktree @path has changed since @start: how many
    objects, and what is wrong or nothing.  @name names the log."""
    log = cache() / "log" / f"fit-{name}.log"
    try:
        logged("defconfig", ["make", "-C", path, f"O={out}", make_jobs(), "defconfig", "prepare"], log,
               env=remembering())
        changed = output("git", "-C", path, "diff", "--name-only", start, "HEAD").splitlines()
        objects = selected(path, out, [one[:-2] + ".o" for one in kernel_files(changed, ".c")])
        if objects:
            logged("objects", ["make", "-C", path, f"O={out}", make_jobs(), *objects], log, env=remembering())
    except Failure as err:
        return 0, str(err)
    return len(objects), ""


@dataclass(frozen=True)
class Fit:
    """What came of the series @name for the base @base on another release: @why it does
    not fit, or nothing; the numbers of the patches that git had @merged; @objects that
    compile."""

    name: str
    base: str
    why: str
    merged: tuple[str, ...] = ()
    objects: int = 0

    def result(self) -> Result:
        what = f"{self.name} of {self.base}"
        if self.why:
            return Result(what, FAILED, self.why)
        how = f"applies with 3-way ({', '.join(self.merged)}), and is written anew" if self.merged else "applies"
        return Result(f"{what}: {how}; {self.objects} objects compile", PASSED)


def fit(repo: Path, base: Base, topic: Topic, start: str, to: Path) -> Fit:
    """Whether the series of @topic for @base fits the kernel @start in @repo, below
    which what it needs comes first; where git had to merge, it is written to @to."""
    path = worktree(repo, "fit", start)
    _, why = put_on(path, [patch for one in topic.below(base) for patch in one.patches(base)])
    under = output("git", "-C", path, "rev-parse", "HEAD")
    merged, why = ([], why) if why else put_on(path, topic.patches(base))
    if why:
        return Fit(topic.name, base.name, why)
    objects, why = compiled(path, cache() / "build" / f"{repo.name}-fit", start, topic.name)
    if merged and not why:
        to.mkdir(parents=True, exist_ok=True)
        for name, text in export.render(path, under, "HEAD", topic.cover(base)).items():
            (to / name).write_bytes(text.encode())
    return Fit(topic.name, base.name, why, tuple(merged), objects)


def main() -> int:
    """Try every series, or those that are named, print what comes of each, and write it
    to <release>.json below --out, which keeps what it has of others."""
    parser = arguments(__doc__, topics="some")
    parser.add_argument("--out", type=Path, default=Path("fit"),
                        help="where series are written, and what came of them (default: fit)")
    args = parser.parse_args()
    if not args.kdir:
        raise Failure("give the kernel with KDIR=: a tree, an archive of one, or a linux-source package of Debian's")
    need("source", "build")
    found = []
    with lock("fit"):
        tree = source_of(Path(args.kdir))
        release = release_of(tree)
        base = next((one for one in bases().values() if release.startswith(f"{one.name}.")), args.base)
        topics = chosen_topics(args.topic, base) + ([] if args.topic else replaced(base))
        repo = repository(base, None)
        say(f"fit: reading {release} (log of builds: {cache()}/log/fit-*.log)")
        start = snapshot(repo, base, tree, all_files=Path(args.kdir).is_file())
        for topic in topics:
            found.append(fit(repo, base, topic, start, args.out / release / topic.name))
            show([found[-1].result()])
        shutil.rmtree(cache() / "fit.part", ignore_errors=True)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{release}.json"
    known = {one["name"]: one for one in json.loads(path.read_text())} if path.exists() else {}
    write_json(path, list((known | {one.name: asdict(one) for one in found}).values()))
    return any(one.why for one in found)


if __name__ == "__main__":
    run(main)
