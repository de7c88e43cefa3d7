#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Remove what can be made again from the cache: builds, kernels, suites, guest
runs, logs, remembered results and counts, and the steps' own worktrees.
Downloads, the kernel repositories and the trees that series are edited in stay;
--all removes those too, unless a tree has work that was not exported."""

import fcntl
import shutil
from contextlib import ExitStack
from pathlib import Path

from command import arguments, run
from locks import cache
from model import topics
from process import Failure, output, say

REBUILT = ("bench", "build", "ccache", "herd", "kernel", "kselftest", "plugin", "run", "log", "memo", "suite",
           "kvm.json", "unpack.part", "kdir.part")


def unexported(tree: Path) -> bool:
    """Whether the edited @tree has changes or commits that were not exported."""
    synced = output("git", "-C", tree, "rev-parse", "-q", "--verify", f"refs/hotpaths/synced/{tree.name}", check=False)
    head = output("git", "-C", tree, "rev-parse", "-q", "--verify", "HEAD", check=False)
    return head != synced or bool(output("git", "-C", tree, "status", "--porcelain", check=False))


def alone(root: Path, held: ExitStack) -> None:
    """Take all locks of the cache @root until @held is closed; Failure where
    another run has one."""
    for path in sorted([*root.glob("lock/*"), *root.glob("run/*.lock")]):
        stream = held.enter_context(open(path, "w"))
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(f"another run has {path}: wait for its end, then clean") from None


def main() -> None:
    """Clean the cache."""
    parser = arguments(__doc__, base=False)
    parser.add_argument("--all", action="store_true", help="remove the whole cache, exported trees included")
    args = parser.parse_args()
    root = cache()
    with ExitStack() as held:
        alone(root, held)
        edited = [path for path in root.glob("tree/*/*") if path.name in topics()]
        if args.all:
            left = [path for path in edited if unexported(path)]
            if left:
                raise Failure(f"{left[0]} has work that was not exported: commit it, and 'make export "
                              f"TOPIC={left[0].name} BASE={left[0].parent.name}' keeps it, or remove that "
                              "directory yourself")
            gone = [root]
        else:
            gone = [root / name for name in REBUILT]
            gone += [path for path in root.glob("tree/*/*") if path not in edited]
        for path in gone:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    say(f"clean: {root} {'is gone' if args.all else 'keeps downloads, repositories and edited trees'}")


if __name__ == "__main__":
    run(main)
