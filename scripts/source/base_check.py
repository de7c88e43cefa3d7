# SPDX-License-Identifier: GPL-2.0
"""What the patches of the series know of their base: the files that they touch
there, and whether a kernel has a change already."""

import os
import subprocess
import tempfile
from pathlib import Path

from core.model import Base, Topic, bases, listed, topics
from core.process import Failure, output


def touched_blobs(base: Base) -> dict[str, str]:
    """The blob id on @base of each file that some series changes there, from
    the patches' index lines: the first patch that names a file counts, and of what
    a topic needs it was there before."""
    blobs: dict[str, str] = {}
    for topic in topics().values():
        seen = set()
        for patch in (patch for one in (*topic.below(base), topic) for patch in one.patches(base)):
            path = None
            for line in patch.read_text(errors="replace").splitlines():
                if line.startswith("diff --git a/"):
                    path = line.split(" b/", 1)[1]
                elif line.startswith("index ") and path and path not in seen:
                    seen.add(path)
                    old = line.split()[1].split("..")[0]
                    if old.strip("0"):
                        blobs.setdefault(path, old)
    return blobs


def reverses(patch: Path, *git: str | Path, words: tuple[str, ...] = (), env: dict | None = None) -> bool:
    """Whether the change of @patch is there already: whether it can be taken
    out of what `git @git apply @words` looks at."""
    return subprocess.run(["git", *map(str, git), "apply", *words, "--reverse", "--check", str(patch)],
                          env={**os.environ, **(env or {})}, capture_output=True).returncode == 0


def not_needed(topic: Topic, base: Base, patch: Path, where: str, drop: str) -> str:
    """One sentence about a patch of the series of @topic for @base whose change
    is in @where already; @drop says how to do without it."""
    merged = topic.merged(base)
    others = [f", or use patches/{topic.name}/{other.name} with BASE={other.name} if your kernel is {other.version}"
              for other in bases().values() if other.name != base.name and topic.patches(other)]
    return (f"{where} already has the change of {topic.name}/{patch.name}"
            + (f" (from upstream: {listed(merged)})" if merged else "") + f": {drop}" + "".join(others))


def already(base: Base, repository: Path, revision: str, path: str) -> tuple[Topic, Path] | None:
    """The first patch for @base that changes the file @path whose change
    @revision in @repository has, with its topic."""
    with tempfile.TemporaryDirectory() as scratch:
        env = {"GIT_INDEX_FILE": f"{scratch}/index"}
        output("git", "--git-dir", repository, "read-tree", revision, env=env)
        for topic in topics().values():
            for patch in topic.patches(base):
                if f"\ndiff --git a/{path} " in patch.read_text(errors="replace") \
                        and reverses(patch, "--git-dir", repository, words=("--cached",), env=env):
                    return topic, patch
    return None


def verify(base: Base, repository: Path, revision: str, what: str) -> None:
    """Check that @revision in @repository is @base as far as the patches can
    tell: the release in its Makefile, and the files that they touch."""
    makefile = output("git", "--git-dir", repository, "show", f"{revision}:Makefile")
    words = dict(line.split(" = ", 1) for line in makefile.splitlines()[:8] if " = " in line)
    version = ".".join(words.get(word, "?") for word in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))
    if version != base.version:
        same = [other.name for other in bases().values() if other.version == version]
        raise Failure(f"{what} is Linux {version}, not {base.version}: check out {base.tag}, or "
                      + (f"use what is made for it with BASE={same[0]}" if same else
                         f"name the base that it is with BASE= ({', '.join(bases())})"))
    blobs = touched_blobs(base)
    listing = output("git", "--git-dir", repository, "ls-tree", "-r", revision, "--", *blobs) if blobs else ""
    have = {line.split("\t")[1]: line.split()[2] for line in listing.splitlines()}
    wrong = [path for path, blob in blobs.items() if have.get(path) != blob]
    if wrong:
        known = already(base, repository, revision, wrong[0])
        if known:
            raise Failure(not_needed(known[0], base, known[1], what, "leave that patch out and apply the others "
                                     f"with 'git am', or give a tree of {base.tag} as it was released"))
        raise Failure(f"{wrong[0]} of {what} differs from {base.tag}: the patches are made for the "
                      "release itself, so take your changes out of that file")
