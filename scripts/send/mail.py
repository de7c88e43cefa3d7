#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Let b4 write a series as a signed-off, threaded mbox with its cover letter, or
fixes as a mail each, and prove that it is complete and applies.  Nothing is sent, no
network is used.
git adds the sign-off, and --in-reply-to is done here: b4 does neither.
"""

import argparse
import mailbox
import os
import re
import subprocess
import tempfile
from contextlib import closing
from email.utils import parseaddr
from pathlib import Path

from core.command import arguments, at_least, run
from core.install import need, search_path, tool
from core.locks import lock
from core.model import Base, need_series
from core.process import GIT_IDENTITY, GIT_PLAIN, Failure, output, say
from reports import measured
from reports.figures import NONE, without_markers
from send import cover
from send.export import blurb
from send.kernelscripts import IGNORED
from source.base_check import verify
from source.fetch import repository
from source.ports import subject
from source.tree import am, apply, below, worktree

# What b4 finds its branch by, which is not kept.
TRACKING = re.compile(r"^X-(?:B4-Tracking|Change-ID): .*\n(?:[ \t].*\n)*", re.M)
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def sender(text: str) -> str:
    """@text as 'Name <address>'; Failure where it is not of that form."""
    name, address = parseaddr(text)
    plain = f"{' '.join(name.split())} <{address}>"
    if not name or not re.fullmatch(r"[^@\s]+@[^@\s]+", address) or parseaddr(plain)[1] != address:
        raise Failure(f"FROM='{text}' is not of the form 'Name <address>': give the name and address that sign off")
    return plain


def prefixes(text: str) -> list[str]:
    """The words beside PATCH in @text, which is for the brackets of each subject, or
    an empty one; Failure where @text is no subject prefix."""
    if "PATCH" not in text.split() or not re.fullmatch(r"[\w./+ -]+", text):
        raise Failure(f"PREFIX='{text}' is no subject prefix: give words with PATCH among them, for instance "
                      "'PATCH mm-unstable' or 'RFC PATCH'")
    return [word for word in text.split() if word != "PATCH"] or [""]


def base_commit(base: Base, kdir: str | None) -> str:
    """The commit of the base's tag in the submitter's own clone, or ''.
    Raises Failure where there is none, or its source is another."""
    if not kdir:
        return ""
    commit = output("git", "-C", kdir, "rev-parse", "-q", "--verify", base.tag + "^{commit}", check=False)
    if not commit:
        raise Failure(f"KDIR={kdir} has no tag {base.tag}: fetch it there (git fetch --tags), so that what is "
                      "sent can name the base commit")
    verify(base, Path(output("git", "-C", kdir, "rev-parse", "--absolute-git-dir")), commit,
           f"KDIR={kdir} at {base.tag}")
    return commit


def history(base: Base, kdir: str | None) -> str:
    """Where the submitter's own clone has its objects, or '' if it lacks the history of
    the base's tag."""
    git = ("git", "-C", kdir or "/", "rev-parse")
    found = output(*git, "--is-shallow-repository", f"{base.tag}^{{commit}}^", check=False)
    if not re.fullmatch(r"false\n[0-9a-f]+", found):
        return ""
    return output(*git, "--path-format=absolute", "--git-path", "objects")


def git_environment(args: argparse.Namespace, scratch: Path) -> dict[str, str]:
    """How git and b4 are called: as the sender, with nobody's configuration, and
    with what b4 keeps in @scratch.  Commits that messages refer to are looked up
    in the sender's clone, if it has the history."""
    # lint looks at spaces, and knows labels of asm goto, which checkpatch takes
    # for operators.
    ignored, env, objects = IGNORED + ",SPACING", {}, history(args.base, args.kdir)
    if objects:
        env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = objects
    else:
        ignored += ",UNKNOWN_COMMIT_ID"
        say("mail: the commits that messages refer to are not looked up: that takes KDIR= with the history")
    name, address = parseaddr(args.sender)
    # Without a server b4 takes the web for it.  The diffs are as in the patches
    # that were exported and read.
    config = {"user.name": name, "user.email": address, "sendemail.smtpserver": "localhost",
              "diff.algorithm": "histogram", "b4.prep-cover-strategy": "branch-description",
              "b4.prep-cover-template": f"{scratch}/template", "b4.prep-perpatch-check-cmd":
              f"./scripts/checkpatch.pl -q --terse --no-summary --mailback --showfile --ignore {ignored}"}
    for number, (key, value) in enumerate(config.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return GIT_PLAIN | env | {"GIT_CONFIG_COUNT": str(len(config)), "XDG_DATA_HOME": f"{scratch}/data",
                              "XDG_CACHE_HOME": f"{scratch}/cache", "PATH": search_path()}


def b4(tree: Path, env: dict[str, str], wanted: str, *argv: str | Path) -> None:
    """Call b4 in @tree with @argv; Failure, with all that it says, where it fails
    or says nothing that matches @wanted."""
    done = subprocess.run([tool("b4"), "--offline-mode", "--no-stdin", "--no-interactive", *argv], cwd=tree,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env=os.environ | env)
    said = COLOUR.sub("", done.stdout).strip()
    if done.returncode or not re.search(wanted, said, re.M | re.S):
        raise Failure(f"b4 {argv[0]} is not content; fix the series in the tree of 'make tree':\n{said}")


def messages(tree: Path, env: dict[str, str], args: argparse.Namespace, letter: str, patches: list[Path],
             scratch: Path) -> str:
    """The mbox of the cover letter @letter, subject first, and of @patches, which b4 is
    shown on a branch of @tree; what they apply to is checked out there."""
    branch, git = f"mail-{args.topic.name}", ("git", "-C", tree)
    output(*git, "branch", "-q", "-D", branch, check=False)
    # b4 wants a branch to begin on.
    output(*git, "branch", "-q", "-f", f"{branch}-base")
    output(*git, "checkout", "-q", "-b", branch, env=env)
    trailers = [f"--trailer=Assisted-by: {args.assisted_by}"] if args.assisted_by else []
    for patch in patches:
        am(tree, args.topic, args.base, patch)
        output(*git, "commit", "-q", "--amend", "--no-edit", f"--author={args.sender}", *trailers,
               f"--trailer=Signed-off-by: {args.sender}", env=env)
    # b4 takes a line with # for a comment.
    output(*git, "config", f"branch.{branch}.description", re.sub("^#", ">#", letter, flags=re.M))
    b4(tree, env, "", "prep", "--enroll", f"{branch}-base", "--force-revision", str(args.version), "--set-prefixes",
       *args.prefixes, "--auto-to-cc")
    b4(tree, env, f"^Success: {len(patches)}, Warning: 0, Error: 0$", "prep", "--check")
    say(f"mail: b4 prep --check, with checkpatch, is content with {', '.join(path.name for path in patches)}")
    b4(tree, env, "", "send", "--no-sign", "--not-me-too", "-o", scratch / "mails")
    mails = [path.read_bytes().decode() for path in sorted((scratch / "mails").iterdir())]
    mails[0] = TRACKING.sub("", mails[0], 2)
    if args.in_reply_to:
        old = f"<{args.in_reply_to.strip('<>')}>"
        mails = [f"In-Reply-To: {old}\nReferences: {old}\n{mails[0]}",
                 *(mail.replace("\nReferences: ", f"\nReferences: {old}\n ", 1) for mail in mails[1:])]
    return "".join(f"From mail Mon Sep 17 00:00:00 2001\n{mail.rstrip()}\n\n" for mail in mails)


def check_mbox(path: Path, who: str, text: str, count: int) -> None:
    """Read the mbox @path of @count patches as a mail program does: the first
    message has the @text of the cover letter, the patches answer it and are
    signed off by @who alone, and all are to maintainers.  Raises Failure for what
    is not so."""
    with closing(mailbox.mbox(path, create=False)) as box:
        mails = [(mail, mail.get_payload(decode=True).decode()) for mail in box]
    # b4 puts the letter of one patch below its ---.
    first = int(count > 1)
    if len(mails) != count + first:
        raise Failure(f"the mbox has {len(mails)} messages for {count} patches and their cover letter: a line of a "
                      "message begins with 'From ', which mail programs take for the next message, so write it "
                      "otherwise")
    if text not in mails[0][1]:
        raise Failure("the first mail has another text than the cover letter: b4 takes lines of three dashes out, and "
                      "tags such as 'Cc:' in the last paragraph")
    for number, (mail, body) in enumerate(mails):
        name = f"message {number} of {count}"
        # b4 moves Cc to To where To is empty.
        if not mail["To"] or not mail["Cc"]:
            raise Failure(f"{name} is to no maintainer: give what the series touches one in MAINTAINERS")
        if number and mail["In-Reply-To"] != mails[0][0]["Message-Id"]:
            raise Failure(f"{name} does not answer the cover letter: write the mbox again")
        signed = [parseaddr(one)[1] for one in re.findall(r"^Signed-off-by: (.*)$", body.split("\n---\n")[0], re.M)]
        if number >= first and signed != [parseaddr(who)[1]]:
            raise Failure(f"{name} is signed off by {' and '.join(signed) or 'nobody'}, not by {who} alone: take "
                          "other sign-offs out of the patch")
    say(f"mail: {len(mails)} {'messages, below the cover letter as it is' if first else 'message'}, signed off, with "
        "recipients")


def applies(tree: Path, base: Base, mbox: Path, count: int, wanted: str) -> None:
    """Apply the last @count messages of @mbox to @tree, which has @base checked out,
    with git am.  Raises Failure where that does not give the git tree @wanted."""
    split = mbox.with_name("split")
    split.mkdir()
    output("git", "mailsplit", f"-o{split}", mbox)
    try:
        output("git", "-C", tree, "-c", "core.hooksPath=/dev/null", "am", "-q", *sorted(split.iterdir())[-count:],
               env=GIT_IDENTITY)
    except Failure as err:
        raise Failure(f"git am refuses the mbox on {base.tag} ({err}): fix the series") from err
    differ = output("git", "-C", tree, "diff", "--name-only", wanted, "HEAD").splitlines()
    if differ:
        raise Failure(f"git am of the mbox on {base.tag} gives another {differ[0]} than the series has: does it have "
                      "lines that end in CR LF, which mail does not keep?")
    say(f"mail: git am of the mbox on {base.tag} gives the tree of the series")


def letters(args: argparse.Namespace) -> list[tuple[str, str, list[Path]]]:
    """What is sent of args.topic, as subject and text of the cover letter, as it is
    committed, and patches: a series, or each fix alone, without a letter."""
    patches = args.topic.patches(args.base)
    if args.topic.fixes:
        return [(subject(patch), "", [patch]) for patch in patches]
    return [(*blurb(args.topic.cover(args.base)), patches)]


def wrong_letter(args: argparse.Namespace, text: str) -> list[str]:
    """What is wrong with the @text of the cover letter of args.topic, a sentence for each."""
    said = cover.wrong_letter(text, args.topic, args.version)
    if any(content.startswith(NONE) for content in measured.blocks(text).values()):
        said.append(f"the cover letter of {args.topic.name} lacks figures of the series as it is: run 'make bench "
                    f"TOPIC={args.topic.name}', which writes them")
    return said


def foot(args: argparse.Namespace, commit: str) -> str:
    """What the first mail ends with: what the patches apply to.  @commit: the id of
    the base in the sender's clone, or ''."""
    needed = [subject(patch) for one in args.topic.below(args.base) for patch in one.patches(args.base)]
    return ((f"base-commit: {commit}\n" if commit else f"Based on {args.base.tag}.\n")
            + "".join(f"  and: {one}\n" for one in needed))


def proven(repo: Path, args: argparse.Namespace, commit: str, letter: tuple[str, str, list[Path]], start: str,
           wanted: str) -> str:
    """The mbox of @letter, one of letters(), seen to give the commit @wanted on the
    commit @start.  @commit: as foot() has it.  Raises Failure for the first thing that
    is wrong."""
    base, topic = args.base, args.topic
    subject, text, patches = letter
    text = re.sub(r"\n{3,}", "\n\n", without_markers(text)).strip("\n")
    count = len(patches)
    with lock(f"{repo.name}-mail"), tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        mbox, template = scratch / "series.mbox", scratch / "template"
        template.write_text("${cover}\n\n---\n${shortlog}\n\n${diffstat}\n---\n" + foot(args, commit))
        tree = worktree(repo, "mail", start)
        env = git_environment(args, scratch)
        try:
            written = messages(tree, env, args, f"{subject}\n\n{text}", patches, scratch)
            if not text:
                # b4 takes the subject for a text.
                written = written.replace(f"\n---\n{subject}\n---\n", "\n---\n", 1)
            mbox.write_bytes(written.encode())
            check_mbox(mbox, args.sender, text, count)
            applies(worktree(repo, "mail", start), base, mbox, count, wanted)
            b4(tree, env, rf"\A(?!.*ERROR).*^Total patches: {count}$", "am", "-m", mbox, "-o", scratch / "am")
            say(f"mail: b4 am reads {count} of them")
        finally:
            output("git", "-C", worktree(repo, "mail", base.tag), "branch", "-q", "-D", f"mail-{topic.name}",
                   f"mail-{topic.name}-base",
                   check=False)
        return mbox.read_bytes().decode()


def mails(repo: Path, args: argparse.Namespace, commit: str, parts: list[tuple[str, str, list[Path]]]) -> str:
    """The mbox of all @parts, which letters() has, each proven as proven() does it."""
    head, found = apply(repo, args.base, [args.topic]), []
    start = below(repo, args.base, args.topic)
    for number, letter in enumerate(parts, 1):
        end = output("git", "--git-dir", repo, "rev-parse", f"{head}~{len(parts) - number}")
        found.append(proven(repo, args, commit, letter, start, end))
        start = end
    return "".join(found)


def main() -> None:
    parser = arguments(__doc__, topics="one")
    parser.add_argument("--from", dest="sender", type=sender, required=True,
                        help="'Name <address>' that submits and signs off")
    parser.add_argument("--version", type=at_least(1), default=1, help="of the series, for [PATCH vN] (default: 1)")
    parser.add_argument("--subject-prefix", dest="prefixes", type=prefixes, default="PATCH", help="with the tree that "
                        "it is for, for instance 'PATCH mm-unstable' (default: %(default)s)")
    parser.add_argument("--in-reply-to", default="", help="the Message-ID to thread below (default: a new thread)")
    parser.add_argument("--assisted-by", default="", help="tools for an Assisted-by: of each patch, where the tree's "
                        "rules ask for it")
    parser.add_argument("--out", type=Path, help="default: <topic>.mbox in this directory")
    args = parser.parse_args()
    base, args.topic = args.base, need_series(args.topic, args.base)
    commit = base_commit(base, args.kdir)
    parts = letters(args)
    wrong = [] if args.topic.fixes else wrong_letter(args, parts[0][1])
    if wrong:
        raise Failure("\n".join(wrong))
    need("source")
    # KDIR is the submitter's clone, which may be at another commit; but a base
    # that is nowhere else is in it.
    mbox = mails(repository(base, None if base.fetched else args.kdir), args, commit, parts)
    out = args.out or Path(f"{args.topic.name}.mbox")
    out.write_bytes(mbox.encode())
    if not commit:
        say("mail: no KDIR=, so the cover letter names the tag and no base-commit")
    if not args.assisted_by:
        say("mail: no ASSISTED_BY=, so no patch discloses the tools that were used; the tree's rules may ask for that")
    say(f"mail: {out}: read every line of it before you send it (Documentation/submitting.rst)")


if __name__ == "__main__":
    run(main)
