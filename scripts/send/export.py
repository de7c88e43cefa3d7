#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write patches/<topic>/<base>/ and the mirrors from a topic's git tree.

This is the only thing that writes there.  The cover letter's text is kept from the
committed one (or a skeleton is made); its shortlog and diffstat are made anew, and so
are the blocks of figures in our texts; figures of an earlier state go."""

import ctypes
import os
import re
import shutil
import tempfile
from pathlib import Path

from core.command import arguments, run
from core.install import need
from core.model import ROOT, Base, Topic, need_series, reference
from core.process import GIT_IDENTITY, Failure, output, say
from reports import figures
from send import mirrors
from source import ports
from source.fetch import repository
from source.tree import below, edit_tree

FORMAT = ("--full-index", "--zero-commit", "--no-signature", "--no-base", "--no-thread", "--suffix=.patch",
          "--subject-prefix=PATCH")
# How a series differs from fixes, which are mails of their own.
SERIES, FIXES = ("--numbered", "--cover-letter"), ("--no-numbered", "--no-cover-letter")
AT_FDCWD, RENAME_EXCHANGE = -100, 2
SKELETON = "*** SUBJECT HERE ***", "*** BLURB HERE ***"


def blurb(cover: Path) -> tuple[str, str]:
    """Subject and text of a committed cover letter, or git's placeholders."""
    if not cover.exists():
        return SKELETON
    body = cover.read_text().partition("\n\n")[2]
    # The shortlog begins with 'name (count):'.
    text = re.split(r"^\S.* \(\d+\):\n", body, maxsplit=1, flags=re.M)[0]
    return ports.subject(cover) or SKELETON[0], text.strip("\n")


def render(tree: Path, start: str, head: str, cover: Path | None) -> dict[str, str]:
    """The series start..head of the git @tree as files: name to content, the
    cover letter's text taken from @cover; without one, they are fixes."""
    with tempfile.TemporaryDirectory() as scratch:
        output("git", "-C", tree, "-c", "diff.algorithm=histogram", "format-patch", "-q", *FORMAT,
               *(SERIES if cover else FIXES), "-o", scratch,
               f"{start}..{head}", env=GIT_IDENTITY)
        files = {path.name: path.read_bytes().decode() for path in sorted(Path(scratch).iterdir())}
    if not cover:
        return files
    subject, text = blurb(cover)
    letter = files["0000-cover-letter.patch"]
    letter = letter.replace(SKELETON[0], subject, 1).replace(SKELETON[1], text, 1)
    # The date would change with every export.
    files["0000-cover-letter.patch"] = re.sub(r"^Date: .*\n", "", letter, count=1, flags=re.M)
    return files


def exchange(one: Path, other: Path) -> None:
    """Let the directories @one and @other take each other's place, in one step."""
    if ctypes.CDLL(None, use_errno=True).renameat2(AT_FDCWD, bytes(one), AT_FDCWD, bytes(other), RENAME_EXCHANGE):
        raise Failure(f"cannot exchange {one} and {other} ({os.strerror(ctypes.get_errno())}): have the checkout on "
                      "a local file system")


def write_patches(tree: Path, topic: Topic, base: Base, start: str, head: str) -> None:
    """Replace the patches of @topic for @base by start..head of the git @tree."""
    directory = ROOT / "patches" / topic.name / base.name
    files = render(tree, start, head, topic.cover(base))
    if not base.reference and topic.patches(reference()):
        files[ports.NAME] = ports.record(topic)
    # Half a series does not apply, and the next export would take none at all
    # for an empty one: make all of it, then let it take the other's place.
    fresh = directory.with_name(f"{base.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name, content in files.items():
        (fresh / name).write_bytes(content.encode())
    directory.mkdir(exist_ok=True)
    exchange(fresh, directory)
    shutil.rmtree(fresh)
    say(f"export: {len(topic.patches(base))} patches to {directory}")


def main() -> None:
    args = arguments(__doc__, topics="one").parse_args()
    base, topic = args.base, need_series(args.topic, args.base, new=True)
    need("source")
    repo = repository(base, args.kdir)
    tree = edit_tree(repo, base, topic)
    if output("git", "-C", tree, "status", "--porcelain", "--untracked-files=no"):
        raise Failure(f"{tree} has changes that are not committed: commit them to the patch they belong to "
                      "(git commit --fixup, git rebase -i --autosquash), then export")
    if output("git", "-C", tree, "symbolic-ref", "-q", "--short", "HEAD", check=False) != topic.name:
        raise Failure(f"{tree} is not on its branch {topic.name}: end the rebase (git rebase --continue), then export")
    head = output("git", "-C", tree, "rev-parse", "HEAD")
    start = below(repo, base, topic)
    if head == start:
        raise Failure(f"{tree} has no commits of its own on {base.tag}: there is nothing to export")
    write_patches(tree, topic, base, start, head)
    output("git", "-C", tree, "update-ref", f"refs/hotpaths/synced/{topic.name}", head)
    if base.reference:
        mirrors.write(repo, base)
    for path, text in figures.out_of_date(base, figures.load(base, repo)):
        path.write_text(text)
        say(f"export: figures in {path}")


if __name__ == "__main__":
    run(main)
