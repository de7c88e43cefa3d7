#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the series of a base differs in from that of the reference base, which it
is ported from.

Export writes a file beside the patches of each other base, with the patch-id of
each patch of the reference base as it was then. `make lint` fails where one has
changed since, or is not in the port, unless series.toml says under `lacks` of that
base why it cannot have it.  `make diff` prints what differs.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from core.command import arguments, run
from core.ktap import FAILED, PASSED, Result
from core.model import ROOT, Base, Topic, bases, need_series, reference, topics
from core.process import Failure, say
from source.fetch import repository
from source.tree import apply, below

NAME = "ported"
SUBJECT = re.compile(r"^Subject: \[[^]]*\] (.*(?:\n .*)*)", re.M)


def subject(patch: Path) -> str:
    """The subject of @patch without what is in brackets; '' where it has none."""
    found = SUBJECT.search(patch.read_text().partition("\n\n")[0])
    return " ".join(found[1].split()) if found else ""


def patch_id(patch: Path) -> str:
    """What identifies the change that @patch makes, whatever its message and line
    numbers say, as 12 hex digits."""
    done = subprocess.run(["git", "patch-id", "--stable"], input=patch.read_bytes(), capture_output=True, check=True)
    return done.stdout.decode()[:12]


def changes(topic: Topic, base: Base) -> dict[str, str]:
    """The patches of @topic for @base: subject to patch-id."""
    return {subject(patch) or patch.name: patch_id(patch) for patch in topic.patches(base)}


def record(topic: Topic) -> str:
    """The file that says which patches of the reference base a port is made from."""
    return "".join(f"{made} {name}\n" for name, made in changes(topic, reference()).items())


def lacking(topic: Topic, base: Base) -> dict[str, str]:
    """What the series of @topic for @base lacks of that for the reference base and
    says nothing about: subject to what is wrong."""
    path = ROOT / "patches" / topic.name / base.name / NAME
    known = dict(line.split(" ", 1)[::-1] for line in path.read_text().splitlines()) if path.exists() else {}
    have, wanted, lacks = changes(topic, base), changes(topic, reference()), topic.lacks(base)
    current = {name for name, made in wanted.items() if name in have and known.get(name) == made}
    wrong = {name: "is in 'lacks' of a port that has it, or is no patch of the reference base" for name in lacks
             if name in current or name not in wanted}
    for name in wanted:
        if name not in current and name not in lacks:
            wrong[name] = "has changed since the port" if name in have else "is not in the port"
    return wrong


def results() -> Iterator[Result]:
    """Whether each port has what the reference base has."""
    for topic in topics().values():
        for base in bases().values():
            if base.reference or not topic.patches(base) or not topic.patches(reference()):
                continue
            wrong = [f"'{name}' {why}: see 'make diff TOPIC={topic.name} BASE={base.name}', port it and run 'make "
                     f"export', or say why not in series.toml, as 'lacks' of {base.name}"
                     for name, why in lacking(topic, base).items()]
            known = "".join(f", but not '{name}': {why}" for name, why in topic.lacks(base).items())
            yield Result(f"{topic.name}: {base.name} has what {reference().name} has{known}",
                         FAILED if wrong else PASSED, wrong[0] if wrong else "")


def range_diff(topic: Topic, base: Base, repo: Path, other: Path) -> str:
    """git range-diff from the series of @topic for the reference base, which is in
    the repository @other, to that for @base in @repo."""
    one = reference()
    ranges = [f"{below(where, of, topic)}..{apply(where, of, [topic.for_base(of)])}"
              for where, of in ((other, one), (repo, base))]
    done = subprocess.run(["git", "--git-dir", repo, "range-diff", "--no-color", "--creation-factor=90", *ranges],
                          env={**os.environ, "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(other / "objects")},
                          capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise Failure(f"git range-diff failed ({done.stderr.strip()}): run 'git fsck' in {repo} and {other}")
    return done.stdout


def main() -> None:
    """Print the range-diff of one topic."""
    args = arguments(__doc__, topics="one").parse_args()
    if args.base.reference:
        raise Failure(f"{args.base.name} is what others are ported from: give one of those with BASE=")
    topic = need_series(args.topic, args.base)
    print(range_diff(topic, args.base, repository(args.base, args.kdir), repository(reference(), None)), end="")
    for name, why in topic.lacks(args.base).items():
        say(f"diff: {args.base.name} lacks '{name}': {why}")


if __name__ == "__main__":
    run(main)
