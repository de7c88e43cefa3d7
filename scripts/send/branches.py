#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Make a branch of each series, for a git tree that test robots take.

With KDIR=, a clone that has the history, the branches begin at its commit of the base:
robots merge and bisect.  That clone is only read, and nothing is pushed.
"""

from pathlib import Path

from core.command import arguments, run
from core.install import need
from core.locks import cache, lock
from core.model import Base, chosen_topics
from core.process import output, say
from send.mail import base_commit, history
from source.fetch import repository
from source.tree import apply

# As upstream/lkp-tests/hotpaths has it.
PREFIX = "hotpaths"


def with_history(base: Base, commit: str, objects: str) -> Path:
    """The bare repository in the cache that has @base as @commit of the submitter's
    clone, whose @objects it borrows."""
    repo = cache() / "git" / f"{base.name}-history"
    with lock("fetch"):
        output("git", "init", "-q", "--bare", repo)
        (repo / "objects/info/alternates").write_text(f"{objects}\n")
        output("git", "--git-dir", repo, "update-ref", f"refs/tags/{base.tag}", commit)
    return repo


def main() -> None:
    args = arguments(__doc__).parse_args()
    base, chosen, made = args.base, chosen_topics(None, args.base), []
    commit = base_commit(base, args.kdir)
    objects = history(base, args.kdir)
    need("source")
    repo = (with_history(base, commit, objects) if objects else
            repository(base, None if base.fetched else args.kdir))
    for topic in chosen:
        made.append(f"{PREFIX}/{topic.name}")
        output("git", "--git-dir", repo, "update-ref", f"refs/heads/{made[-1]}", apply(repo, base, [topic]))
        say(f"branches: {made[-1]}: {len(topic.patches(base))} patches on "
            f"{' and '.join([base.tag, *(one.name for one in topic.below(base))])}")
    if objects:
        say(f"branches: git --git-dir {repo} push --force URL {' '.join(made)}")
    else:
        say(f"branches: {repo} has them without the history, so that robots cannot merge them: give KDIR=, a clone "
            f"that has {base.tag} and what came before")


if __name__ == "__main__":
    run(main)
