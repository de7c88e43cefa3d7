#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Remove what can be made again from the cache: builds, kernels, guest runs,
logs, remembered results and the steps' own worktrees.  Downloads, the kernel
repositories and the trees that series are edited in stay; --all removes those
too."""

import argparse
import shutil

from project import cache, run, say, topics

REBUILT = ("build", "kernel", "kselftest", "run", "log", "seen", "kvm.json", "unpack.part", "kdir.part")


def main() -> None:
    """Clean the cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="remove the whole cache, your edited trees included")
    args = parser.parse_args()
    root = cache()
    if args.all:
        gone = [root]
    else:
        gone = [root / name for name in REBUILT]
        gone += [path for path in root.glob("tree/*/*") if path.name not in topics()]
    for path in gone:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    say(f"clean: {root} {'is gone' if args.all else 'keeps downloads, repositories and edited trees'}")


if __name__ == "__main__":
    run(main)
