#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write a series as a signed-off, threaded mbox with its cover letter, ready
for `git send-email` or b4.  Nothing is sent."""

import argparse
import os
import re
import tempfile
from email.utils import formatdate, parseaddr
from pathlib import Path

from export import blurb
from fetch import repository
from project import GIT_PLAIN, Base, Failure, Topic, base, lock, need_series, output, reference, run, say, topic, topics
from tree import am, commit_of, stacked, worktree


def identity(sender: str) -> dict[str, str]:
    """git's environment for the submitter 'Name <address>'; Failure where
    @sender is not of that form."""
    name, address = parseaddr(sender)
    if not name or not re.fullmatch(r"[^@\s]+@[^@\s]+", address):
        raise Failure(f"FROM='{sender}' is not of the form 'Name <address>': give the name and address that sign off")
    return GIT_PLAIN | {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", name), ("EMAIL", address), ("DATE", formatdate(localtime=True)))}


def base_commit(on: Base, kdir: str | None) -> str:
    """The commit of the base's tag in the submitter's own clone, or ''."""
    if not kdir:
        return ""
    commit = output("git", "-C", kdir, "rev-parse", "-q", "--verify", on.tag + "^{commit}", check=False)
    if not commit:
        raise Failure(f"KDIR={kdir} has no tag {on.tag}: fetch it there (git fetch --tags), so that the cover "
                      "letter can name the base commit")
    return commit


def recipients(tree: Path, patch: Path) -> tuple[list[str], list[str]]:
    """To: the maintainers, and Cc: everybody else and the lists, that
    get_maintainer.pl names for @patch."""
    def ask(*more: str) -> list[str]:
        return output(tree / "scripts/get_maintainer.pl", "--no-git", "--no-git-fallback", "--norolestats",
                      *more, patch, cwd=tree, check=False).splitlines()

    first = ask("--no-r", "--no-l")
    return first, [who for who in ask() if who not in first]


def header(message: str, fields: dict[str, list[str]]) -> str:
    """@message with address header @fields after its subject."""
    head, _, body = message.partition("\n\n")
    lines = [f"{name}: " + ",\n\t".join(values) for name, values in fields.items() if values]
    return "\n".join([head, *lines]) + "\n\n" + body


def mbox(repo: Path, on: Base, one: Topic, sender: str, kdir: str | None, version: int,
         in_reply_to: str | None) -> str:
    """The whole mbox as text."""
    env = identity(sender)
    commit = base_commit(on, kdir)
    if len(stacked([one], on)) > 1:
        raise Failure(f"topic '{one.name}' builds on {', '.join(one.prerequisites)}: submit those first")
    subject, text = blurb(one.cover(on))
    with lock(f"{repo.name}-mail"), tempfile.TemporaryDirectory() as scratch:
        tree = worktree(repo, "mail", commit_of(repo, on.tag))
        for patch in one.patches(on):
            am(tree, one, on, patch)
            output("git", "-C", tree, "commit", "-q", "--amend", "--reset-author", "--signoff", "--no-edit",
                   env=env)
        output("git", "-C", tree, "format-patch", "-q", "--cover-letter", "--thread=shallow", "--no-signature",
               "--numbered", f"--reroll-count={version}" if version > 1 else "--no-reroll-count",
               *([f"--in-reply-to={in_reply_to}"] if in_reply_to else []), "-o", scratch,
               f"{on.tag}..HEAD", env=env)
        files = sorted(Path(scratch).glob("*.patch"))
        people = {path: recipients(tree, path) for path in files[1:]}
        messages = []
        for path in files:
            content = path.read_text()
            if path == files[0]:
                content = content.replace("*** SUBJECT HERE ***", subject, 1)
                content = content.replace("*** BLURB HERE ***", text, 1).rstrip() + "\n"
                content += f"\nbase-commit: {commit}\n" if commit else f"\nBased on {on.tag}.\n"
                to = list(dict.fromkeys(who for first, _ in people.values() for who in first))
                cc = [who for who in dict.fromkeys(who for _, rest in people.values() for who in rest)
                      if who not in to]
            else:
                to, cc = people[path]
            messages.append(header(content, {"To": to, "Cc": cc}).rstrip() + "\n\n")
    return "".join(messages)


def main() -> None:
    """Write <topic>.mbox."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topic", required=True, help="one of: " + ", ".join(topics()))
    parser.add_argument("--base", default=reference().name, help="a base of bases.toml (default: %(default)s)")
    parser.add_argument("--from", dest="sender", required=True, help="'Name <address>' of who submits and signs off")
    parser.add_argument("--kdir", default=os.environ.get("KDIR"),
                        help="your clone with the base's tag, for the base-commit line")
    parser.add_argument("--version", type=int, default=1, help="of the series, for [PATCH vN] (default: 1)")
    parser.add_argument("--in-reply-to", help="the Message-ID to thread below")
    parser.add_argument("--out", type=Path, help="default: <topic>.mbox in this directory")
    args = parser.parse_args()
    on = base(args.base)
    one = need_series(topic(args.topic), on)
    out = args.out or Path(f"{one.name}.mbox")
    content = mbox(repository(on), on, one, args.sender, args.kdir, args.version, args.in_reply_to)
    out.write_text(content)
    if not args.kdir:
        say("mail: no KDIR=, so the cover letter names the tag and no base-commit")
    say(f"mail: {out}: read every line of it before you send it (Documentation/submitting.rst)")


if __name__ == "__main__":
    run(main)
