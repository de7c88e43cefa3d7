#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write a series as a signed-off, threaded mbox with its cover letter, and
prove that it is complete and applies.  Nothing is sent."""

import re
import tempfile
from dataclasses import dataclass
from email.header import Header
from email.utils import formataddr, formatdate, getaddresses, parseaddr
from pathlib import Path

import cover
import mailcheck
from command import arguments, at_least, run
from export import SKELETON, blurb
from fetch import repository
from install import need
from kernelscripts import maintainers
from locks import lock
from model import Base, Topic, need_series
from process import GIT_PLAIN, Failure, output, say
from tree import am, commit_of, worktree

from patches import verify

ADDRESSES = ("From", "To", "Cc")
FIELD = re.compile(r"^([\w-]+): (.*(?:\n[ \t].*)*)", re.M)
EIGHT_BIT = {"MIME-Version": "1.0", "Content-Type": "text/plain; charset=UTF-8", "Content-Transfer-Encoding": "8bit"}


@dataclass(frozen=True)
class Form:
    """How a series is sent: by whom, 'Name <address>', who signs off; as which
    version; with which words in the brackets of the subject; below which
    Message-ID, or none; the base's commit in the sender's clone, or nothing;
    and what the sender was assisted by, or nothing."""

    sender: str
    version: int = 1
    prefix: str = "PATCH"
    in_reply_to: str = ""
    commit: str = ""
    assisted_by: str = ""


def identity(sender: str) -> dict[str, str]:
    """git's environment for the submitter 'Name <address>'; Failure where
    @sender is not of that form."""
    name, address = parseaddr(sender)
    if not name or not re.fullmatch(r"[^@\s]+@[^@\s]+", address):
        raise Failure(f"FROM='{sender}' is not of the form 'Name <address>': give the name and address that sign off")
    return GIT_PLAIN | {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", name), ("EMAIL", address), ("DATE", formatdate(localtime=True)))}


def base_commit(base: Base, kdir: str | None) -> str:
    """The commit of the base's tag in the submitter's own clone, or ''.
    Raises Failure where there is none, or its source is another."""
    if not kdir:
        return ""
    commit = output("git", "-C", kdir, "rev-parse", "-q", "--verify", base.tag + "^{commit}", check=False)
    if not commit:
        raise Failure(f"KDIR={kdir} has no tag {base.tag}: fetch it there (git fetch --tags), so that the cover "
                      "letter can name the base commit")
    verify(base, Path(output("git", "-C", kdir, "rev-parse", "--absolute-git-dir")), commit,
           f"KDIR={kdir} at {base.tag}")
    return commit


def subject_prefix(words: str) -> str:
    """@words for the brackets of each subject; Failure where they are none."""
    if "PATCH" not in words.split() or not re.fullmatch(r"[\w./+ -]+", words):
        raise Failure(f"PREFIX='{words}' is no subject prefix: give words with PATCH among them, for instance "
                      "'PATCH mm-unstable' or 'RFC PATCH'")
    return words


def recipients(tree: Path, patch: Path) -> tuple[list[str], list[str]]:
    """To: the maintainers, and Cc: everybody else and the lists, that
    get_maintainer.pl names for @patch."""
    first = maintainers(tree, patch, "--no-r", "--no-l")
    return first, [who for who in maintainers(tree, patch) if who not in first]


def encoded(field: str, value: str) -> str:
    """The @value of the header @field as mail has it: in ASCII."""
    if value.isascii():
        return value
    if field in ADDRESSES:
        return ",\n\t".join(formataddr(one) for one in getaddresses([value]))
    return Header(value, "utf-8", header_name=field).encode()


def compose(message: str, to: list[str], cc: list[str]) -> str:
    """The @message that git made with its recipients, all headers in ASCII,
    and said to be UTF-8 if its text is not ASCII."""
    head, _, body = message.partition("\n\n")
    envelope, _, rest = head.partition("\n")
    fields = dict(FIELD.findall(rest)) | {"To": ",\n\t".join(to), "Cc": ",\n\t".join(cc)}
    if not body.isascii():
        fields |= EIGHT_BIT
    lines = [f"{name}: {encoded(name, value)}" for name, value in fields.items() if value]
    return "\n".join([envelope, *lines]) + "\n\n" + body.rstrip("\n") + "\n\n"


def messages(repo: Path, base: Base, topic: Topic, form: Form) -> list[str]:
    """The cover letter and the patches of the series as mails."""
    env = identity(form.sender)
    subject, text = blurb(topic.cover(base))
    with lock(f"{repo.name}-mail"), tempfile.TemporaryDirectory() as scratch:
        tree = worktree(repo, "mail", commit_of(repo, base.tag))
        for patch in topic.patches(base):
            am(tree, topic, base, patch)
            if form.assisted_by:
                # Before the sign-off, which is about all that is above it.
                output("git", "-C", tree, "commit", "-q", "--amend", "--no-edit",
                       "--trailer", f"Assisted-by: {form.assisted_by}", env=env)
            output("git", "-C", tree, "commit", "-q", "--amend", "--reset-author", "--signoff", "--no-edit",
                   env=env)
        # The diffs are as in the patches that were exported and read.
        output("git", "-C", tree, "-c", "diff.algorithm=histogram", "format-patch", "-q", "--cover-letter",
               "--thread=shallow", "--no-signature", "--numbered", f"--subject-prefix={form.prefix}",
               f"--reroll-count={form.version}" if form.version > 1 else "--no-reroll-count",
               *([f"--in-reply-to={form.in_reply_to}"] if form.in_reply_to else []), "-o", scratch,
               f"{base.tag}..HEAD", env=env)
        letter, *patches = sorted(Path(scratch).glob("*.patch"))
        people = [recipients(tree, path) for path in patches]
        content = letter.read_bytes().decode()
        content = content.replace(SKELETON[0], subject, 1).replace(SKELETON[1], text, 1).rstrip() + "\n"
        content += f"\nbase-commit: {form.commit}\n" if form.commit else f"\nBased on {base.tag}.\n"
        to = list(dict.fromkeys(who for first, _ in people for who in first))
        cc = [who for who in dict.fromkeys(who for _, rest in people for who in rest) if who not in to]
        mails = [compose(content, to, cc)]
        for path, (first, rest) in zip(patches, people, strict=True):
            # What nobody maintains is for those who maintain the rest.
            mails.append(compose(path.read_bytes().decode(), first or to, rest))
        return mails


def main() -> None:
    """Write <topic>.mbox."""
    parser = arguments(__doc__, topics="one")
    parser.add_argument("--from", dest="sender", required=True, help="'Name <address>' of who submits and signs off")
    parser.add_argument("--version", type=at_least(1), default=1, help="of the series, for [PATCH vN] (default: 1)")
    parser.add_argument("--subject-prefix", default="PATCH", help="with the tree that it is for, for instance "
                        "'PATCH mm-unstable' (default: %(default)s)")
    parser.add_argument("--in-reply-to", default="", help="the Message-ID to thread below (default: a new thread)")
    parser.add_argument("--assisted-by", default="", help="tools for an Assisted-by: of each patch, where the tree's "
                        "rules ask for it")
    parser.add_argument("--out", type=Path, help="default: <topic>.mbox in this directory")
    args = parser.parse_args()
    base, topic = args.base, need_series(args.topic, args.base)
    form = Form(args.sender, args.version, subject_prefix(args.subject_prefix), args.in_reply_to,
                base_commit(base, args.kdir), args.assisted_by)
    identity(form.sender)
    wrong = cover.wrong(blurb(topic.cover(base))[1], topic, form.version)
    if wrong:
        raise Failure("\n".join(wrong))
    need("source")
    # KDIR is the submitter's clone, which may be at another commit; but a base
    # that is nowhere else is in it.
    repo = repository(base, None if base.fetched else args.kdir)
    mails = messages(repo, base, topic, form)
    mailcheck.verify(repo, base, topic, form.sender, mails, args.kdir)
    out = args.out or Path(f"{topic.name}.mbox")
    out.write_bytes("".join(mails).encode())
    if not args.kdir:
        say("mail: no KDIR=, so the cover letter names the tag and no base-commit")
    if not form.assisted_by:
        say("mail: no ASSISTED_BY=, so no patch discloses the tools that were used; the tree's rules may ask for that")
    say(f"mail: {out}: read every line of it before you send it (Documentation/submitting.rst)")


if __name__ == "__main__":
    run(main)
