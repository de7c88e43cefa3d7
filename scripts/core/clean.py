#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Say what the cache has and how much it is, and remove what can be made again.
Downloads, the kernel repositories and the trees that series are edited in stay;
--all removes those too, unless a tree has work that was not exported."""

import fcntl
import shutil
from contextlib import ExitStack
from pathlib import Path

from core.command import arguments, run
from core.locks import cache
from core.model import topics
from core.process import Failure, output, say

# What can be made again, and what that takes.
REBUILT = {
    "build": "kernels compile from the beginning, 8 to 10 minutes each",
    "ccache": "what was compiled before is compiled again",
    "kernel": "kernels are linked again",
    "kselftest": "tests are built again",
    "suite": "other people's suites are built again",
    "memo": "make check does all its work again, 24 minutes",
    "bench": "an interrupted make bench begins again",
    "run": "logs of guests, and what was measured in them, are gone",
    "log": "logs of builds are gone",
    "herd": "herd7 is downloaded again", "plugin": "plugins of QEMU are compiled again",
    "kvm.json": "KVM is tried again", "unpack.part": "nothing", "kdir.part": "nothing",
    "fit.part": "nothing", "fit.index": "nothing", "models": "paths to errors in models are gone",
}
# What stays, and what it would take.
KEPT = {"download": "sources are downloaded again", "git": "sources are imported again, 2 minutes each",
        "venv": "Python tools are downloaded again"}


def megabytes(*paths: Path) -> int:
    there = [path for path in paths if path.exists()]
    return sum(int(line.split()[0]) for line in output("du", "-sm", *there).splitlines()) if there else 0


def listing(root: Path, own: list[Path], edited: list[Path]) -> list[str]:
    """A line for each part of the cache @root: how much it is, and what it takes to have
    it again; @own: the worktrees of the steps; @edited: the worktrees of series."""
    rows = [(megabytes(root / name), f"{name}: {words}") for name, words in REBUILT.items()]
    rows.append((megabytes(*own), "tree: worktrees are checked out again"))
    lines = [f"{size:8} MB  {words}" for size, words in sorted(rows, reverse=True) if size]
    kept = [(megabytes(root / name), f"{name}: {words}") for name, words in KEPT.items()]
    kept.append((megabytes(*edited), "tree: trees that series are edited in"))
    return ["Can be made again:", *lines, f"{sum(size for size, _ in rows):8} MB  in all", "Stays without ALL=1:",
            *(f"{size:8} MB  {words}" for size, words in kept if size)]


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
    parser = arguments(__doc__, base=False)
    parser.add_argument("--all", action="store_true", help="remove the whole cache, exported trees included")
    parser.add_argument("--list", action="store_true", help="remove nothing")
    args = parser.parse_args()
    root = cache()
    edited = [path for path in root.glob("tree/*/*") if path.name in topics()]
    own = [path for path in root.glob("tree/*/*") if path not in edited]
    print("\n".join(listing(root, own, edited)))
    if args.list:
        return
    with ExitStack() as held:
        alone(root, held)
        if args.all:
            left = [path for path in edited if unexported(path)]
            if left:
                raise Failure(f"{left[0]} has work that was not exported: commit it, and 'make export "
                              f"TOPIC={left[0].name} BASE={left[0].parent.name}' keeps it, or remove that "
                              "directory yourself")
            gone = [root]
        else:
            gone = [*(root / name for name in REBUILT), *own]
        for path in gone:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    say(f"clean: {root} {'is gone' if args.all else 'keeps downloads, repositories and edited trees'}")


if __name__ == "__main__":
    run(main)
