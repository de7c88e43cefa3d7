#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Apply a series to its base, and keep the git tree in which it is edited.

`make tree TOPIC=pipe` leaves a git tree with the series on the branch of the
topic's name; edit and rebase there, then `make export TOPIC=pipe`.
"""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from core.command import arguments, run
from core.install import need
from core.locks import cache, lock
from core.model import ROOT, Base, Topic, need_series
from core.process import GIT_IDENTITY, GIT_PLAIN, Failure, output, say
from source.base_check import not_needed, reverses
from source.fetch import repository

# What a kernel of User-Mode Linux gets to be timed.
UM = ROOT / "scripts" / "um"
# What gives C its text without comments, indentation and empty lines.
UNCOMMENT = ("gcc", "-fpreprocessed", "-dD", "-E", "-P", "-w", "-x", "c", "-")


def worktree(repo: Path, name: str, revision: str) -> Path:
    """A worktree of @repo called @name (made where it is not there), with a
    detached HEAD at @revision and nothing left of an interrupted run.  Only
    files that differ are written, so that an incremental build stays
    incremental."""
    path = cache() / "tree" / repo.name / name
    if not (path / ".git").exists():
        output("git", "--git-dir", repo, "worktree", "prune")
        say(f"tree: checking out {path}")
        output("git", "--git-dir", repo, "worktree", "add", "-q", "-f", "--detach", path, revision, env=GIT_PLAIN)
    else:
        # The caller holds a lock, so a lock of git's is of a run that died.
        Path(output("git", "-C", path, "rev-parse", "--git-path", "index.lock")).unlink(missing_ok=True)
        output("git", "-C", path, "am", "--abort", env=GIT_IDENTITY, check=False)
        output("git", "-C", path, "checkout", "-q", "-f", "--detach", revision, env=GIT_PLAIN)
        output("git", "-C", path, "clean", "-fdq", env=GIT_PLAIN)
    return path


def commit_of(repo: Path, revision: str) -> str:
    return output("git", "--git-dir", repo, "rev-parse", revision + "^{commit}")


def tree_of(repo: Path, revision: str) -> str:
    """The id of the git tree of @revision in @repo: the source that it has,
    whatever its messages say."""
    return output("git", "--git-dir", repo, "rev-parse", revision + "^{tree}")


def is_code(path: str) -> bool:
    """Whether a kernel that figures are taken on may be built from @path: not from
    documentation, tools, MAINTAINERS, and other architectures than x86 and UML."""
    if re.match(r"arch/[^/]+/", path):
        return path.startswith(("arch/x86/", "arch/um/"))
    return not path.startswith(("Documentation/", "tools/", "MAINTAINERS"))


def uncommented(text: str) -> str:
    return subprocess.run(UNCOMMENT, input=text, capture_output=True, text=True, check=True).stdout


def code_of(repo: Path, revision: str) -> str:
    """What a kernel of @revision in @repo that figures are taken on is built from, as 12
    hex digits: what is_code() of the base, and of the files that differ from it in more
    than comments of C."""
    git = ("git", "--git-dir", repo)
    base = output(*git, "rev-list", "--max-parents=0", revision)
    digest = hashlib.sha256()
    for line in output(*git, "ls-tree", "-r", base).splitlines():
        if is_code(line.split("\t")[1]):
            digest.update(f"{line}\n".encode())
    for line in output(*git, "diff-tree", "-r", "--no-renames", base, revision).splitlines():
        meta, path = line.removeprefix(":").split("\t")
        if not is_code(path):
            continue
        modes, blobs = meta.split()[:2], meta.split()[2:4]
        texts = [output(*git, "cat-file", "blob", blob) if blob.strip("0") else "" for blob in blobs]
        if path.endswith((".c", ".h")):
            texts = [uncommented(text) for text in texts]
        before, after = zip(modes, texts, strict=True)
        if before != after:
            digest.update(f"{path} {after}\0".encode())
    return digest.hexdigest()[:12]


def explain(topic: Topic, base: Base, patch: Path, message: str) -> str:
    """One sentence for a patch of the series of @topic for @base that `git am`
    refused, from its messages: the file, the hunk's line, what to do."""
    where = re.search(r"error: patch failed: (\S+):(\d+)", message)
    other = re.search(r"error: (\S+): (.*)", message)
    if where:
        what = f"the hunk for {where[1]} line {where[2]} does not match"
    elif other:
        what = f"{other[1]}: {other[2]}"
    else:
        what = message.strip().splitlines()[-1] if message.strip() else "git am gave no reason"
    return (f"{topic.name}/{patch.name} does not apply to {base.tag}: {what}. Restore the last series that "
            f"applied ('git checkout <commit> patches/{topic.name}/{base.name}'), and change that with 'make tree' and "
            "'make export'")


def below(repo: Path, base: Base, topic: Topic) -> str:
    """The commit that the series of @topic for @base begins on: @base, with what the
    topic needs."""
    return apply(repo, base, topic.below(base)) if topic.below(base) else commit_of(repo, base.tag)


def apply(repo: Path, base: Base, chosen: list[Topic]) -> str:
    """The commit of @base with the series of @chosen on it, and below them what
    these need, by `git am`.

    The same patches give the same commit id; it is kept in the repository,
    so the second call is immediate.  Raises Failure naming the patch, file
    and hunk that do not apply; the worktree is left clean.
    """
    chosen = [need_series(topic, base) for topic in chosen]
    needed = {one.name: one for topic in chosen for one in topic.below(base)}
    order = [*needed.values(), *(topic for topic in chosen if topic.name not in needed)]
    patches = [(topic, patch) for topic in order for patch in topic.patches(base)]
    digest = hashlib.sha256(commit_of(repo, base.tag).encode())
    for _, patch in patches:
        digest.update(patch.read_bytes())
    ref = f"refs/hotpaths/series/{digest.hexdigest()[:20]}"
    known = output("git", "--git-dir", repo, "rev-parse", "-q", "--verify", ref, check=False)
    if known:
        return known
    with lock(f"{repo.name}-apply"):
        path = worktree(repo, "apply", base.tag)
        for topic, patch in patches:
            am(path, topic, base, patch, merge=len(order) > 1)
        output("git", "-C", path, "update-ref", ref, "HEAD")
        return output("git", "-C", path, "rev-parse", "HEAD")


def am(path: Path, topic: Topic, base: Base, patch: Path, merge: bool = False) -> None:
    """Apply one patch of the series of @topic for @base to the worktree @path
    with `git am`; Failure, with the worktree as it was, if it does not apply.
    @merge: let git merge it, since the series of several topics touch
    neighbouring lines of the same lists (TARGETS, MAINTAINERS)."""
    try:
        output("git", "-C", path, "-c", "core.hooksPath=/dev/null", "am", "-q", *(["-3"] if merge else []),
               "--keep-cr", "--committer-date-is-author-date", patch, env=GIT_IDENTITY)
    except Failure:
        output("git", "-C", path, "am", "--abort", env=GIT_IDENTITY, check=False)
        if reverses(patch, "-C", path):
            raise Failure(not_needed(topic, base, patch, base.tag, "remove that file, and let 'make tree' and "
                                     "'make export' number the rest anew")) from None
        raise Failure(explain(topic, base, patch, apply_errors(path, patch))) from None


def apply_errors(path: Path, patch: Path) -> str:
    """What `git apply --check` says on standard error about @patch."""
    return subprocess.run(["git", "-C", str(path), "apply", "--check", str(patch)], capture_output=True,
                          text=True, errors="replace").stderr


def variants(topic: Topic, base: Base) -> Path:
    """The directory of what belongs to the series of @topic for @base, but is
    never part of it: kernels to compare with, or to see tests fail."""
    return ROOT / "patches" / topic.name / "variants" / base.name


def variant(repo: Path, base: Base, topic: Topic, name: str, instead: bool = False) -> str:
    """The commit of the series of @topic with @name.patch of variants() on it,
    or if @instead, of @base with it.  Raises Failure where that patch does not
    apply."""
    below = commit_of(repo, base.tag) if instead else apply(repo, base, [topic])
    with lock(f"{repo.name}-apply"):
        path = worktree(repo, "apply", below)
        try:
            output("git", "-C", path, "apply", "--index", variants(topic, base) / f"{name}.patch")
        except Failure as err:
            raise Failure(f"{name}.patch of {topic.name} does not apply to {base.tag if instead else 'its series'} "
                          f"({err}): write it again with 'git diff' in the tree of 'make tree'") from err
        output("git", "-C", path, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", f"{topic.name}: {name}",
               env=GIT_IDENTITY)
        return output("git", "-C", path, "rev-parse", "HEAD")


def with_benchmark(repo: Path, revision: str, own: Path | None = None) -> str:
    """The commit of @revision, of a base whose User-Mode Linux has SMP, with
    what it takes to time it there: the benchmark within the kernel, cheaper
    interrupts, the barriers of x86, and the patch @own if there is one.  Raises
    Failure where a patch does not apply."""
    with lock(f"{repo.name}-apply"):
        path = worktree(repo, "apply", revision)
        for patch in [*sorted(UM.glob("*.patch")), *([own] if own else [])]:
            output("git", "-C", path, "apply", "--index", patch)
        shutil.copy(UM / "hotpaths_bench.c", path / "kernel" / "hotpaths_bench.c")
        with open(path / "kernel/Makefile", "a") as makefile:
            makefile.write("\nobj-y += hotpaths_bench.o\n")
        # The .gitignore of a package may have names of directories.
        output("git", "-C", path, "add", "-f", "kernel/Makefile", "kernel/hotpaths_bench.c")
        output("git", "-C", path, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Add what takes the time",
               env=GIT_IDENTITY)
        return output("git", "-C", path, "rev-parse", "HEAD")


def edit_tree(repo: Path, base: Base, topic: Topic) -> Path:
    """The tree in which the series of @topic is edited, on the branch of the
    topic's name.  A tree with the user's own commits or changes is left alone."""
    path = cache() / "tree" / repo.name / topic.name
    synced = f"refs/hotpaths/synced/{topic.name}"
    head = apply(repo, base, [topic]) if topic.patches(base) else below(repo, base, topic)
    if not (path / ".git").exists():
        output("git", "--git-dir", repo, "worktree", "prune")
        branch = output("git", "--git-dir", repo, "rev-parse", "-q", "--verify", f"refs/heads/{topic.name}",
                        check=False)
        last = output("git", "--git-dir", repo, "rev-parse", "-q", "--verify", synced, check=False)
        # A directory that was removed by hand may leave commits on the branch.
        own = branch not in ("", last)
        output("git", "--git-dir", repo, "worktree", "add", "-q", "-f",
               *([path, topic.name] if own else ["-B", topic.name, path, head]))
        if own:
            say(f"tree: {path} has the commits of the branch {topic.name} again")
            return path
        for key, value in (("user.name", GIT_IDENTITY["GIT_AUTHOR_NAME"]),
                           ("user.email", GIT_IDENTITY["GIT_AUTHOR_EMAIL"])):
            output("git", "-C", path, "config", key, value)
    else:
        now = output("git", "-C", path, "rev-parse", "HEAD")
        last = output("git", "-C", path, "rev-parse", "-q", "--verify", synced, check=False)
        dirty = output("git", "-C", path, "status", "--porcelain", "--untracked-files=no")
        if dirty or (now not in (last, head)):
            say(f"tree: {path} has work of its own; left as it is (make export takes it)")
            return path
        output("git", "-C", path, "reset", "-q", "--keep", head)
    output("git", "-C", path, "update-ref", synced, head)
    return path


def main() -> None:
    args = arguments(__doc__, topics="one").parse_args()
    topic = need_series(args.topic, args.base, new=True)
    need("source")
    path = edit_tree(repository(args.base, args.kdir), args.base, topic)
    say(f"tree: {path}: branch {topic.name}, {len(topic.patches(args.base))} patches on "
        f"{' and '.join([args.base.tag, *(one.name for one in topic.below(args.base))])}")


if __name__ == "__main__":
    run(main)
