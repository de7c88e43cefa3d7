# SPDX-License-Identifier: GPL-2.0
"""Prove that the mails of a series are complete and apply, as those who get
them will see: with Python's mailbox, with git am, and with b4 and checkpatch.
Nothing needs the network."""

import mailbox
import os
import re
import subprocess
import tempfile
from contextlib import closing
from email.utils import parseaddr
from pathlib import Path

from install import search_path, tool
from kernelscripts import IGNORED
from locks import lock
from model import Base, Topic
from process import GIT_IDENTITY, GIT_PLAIN, Failure, output, say
from tree import apply, worktree

# The branch that b4 is shown.  It is in the steps' own repository.
BRANCH = "hotpaths-mail"
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def read(path: Path, sender: str, count: int) -> None:
    """Read the mbox @path of @count patches as a mail program does: each patch
    answers the cover letter and is signed off by @sender alone, and all
    have recipients.  Raises Failure for what is not so."""
    with closing(mailbox.mbox(path, create=False)) as box:
        mails = [(mail, mail.get_payload(decode=True).decode()) for mail in box]
    if len(mails) != count + 1:
        raise Failure(f"the mbox has {len(mails)} messages for {count} patches and their cover letter: a line of a "
                      "message begins with 'From ', which mail programs take for the next message, so write it "
                      "otherwise")
    address = parseaddr(sender)[1]
    for number, (mail, body) in enumerate(mails):
        name = f"message {number} of {count}"
        if not mail["To"]:
            raise Failure(f"{name} is to nobody: give what it touches a maintainer in MAINTAINERS")
        if not number:
            continue
        if mail["In-Reply-To"] != mails[0][0]["Message-Id"]:
            raise Failure(f"{name} does not answer the cover letter: write the mbox again")
        signed = [parseaddr(who)[1] for who in re.findall(r"^Signed-off-by: (.*)$", body.split("\n---\n")[0], re.M)]
        if signed != [address]:
            raise Failure(f"{name} is signed off by {' and '.join(signed) or 'nobody'}, not by {address} alone: take "
                          "other sign-offs out of the patch")
    say(f"mail: {len(mails)} messages, numbered, below the cover letter, signed off, with recipients")


def b4(tree: Path, scratch: Path, sender: str, *argv: str, env: dict | None = None) -> str:
    """What b4 says when @sender calls it in @tree without network with @argv;
    it keeps what it keeps in @scratch.  Raises Failure with its last line where
    it fails."""
    name, address = parseaddr(sender)
    settings = {"user.name": name, "user.email": address}
    config = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        config |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    done = subprocess.run([tool("b4"), "--offline-mode", "--no-stdin", "--no-interactive", *argv], cwd=tree,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env={**os.environ, **GIT_PLAIN, **config, **(env or {}),
                                                 "XDG_DATA_HOME": f"{scratch}/data", "XDG_CACHE_HOME": f"{scratch}/b4",
                                                 "PATH": search_path()})
    said = COLOUR.sub("", done.stdout).strip()
    if done.returncode:
        raise Failure(f"b4 {argv[0]} failed: {said.splitlines()[-1] if said else 'it says nothing'}")
    return said


def applies(tree: Path, base: Base, mbox: Path, scratch: Path, wanted: str) -> None:
    """Apply the patches of @mbox to @tree, which has @base checked out, with git
    am.  Raises Failure where that does not give the git tree @wanted."""
    split = scratch / "split"
    split.mkdir()
    output("git", "-C", tree, "mailsplit", f"-o{split}", mbox)
    patches = sorted(split.iterdir())[1:]
    try:
        output("git", "-C", tree, "-c", "core.hooksPath=/dev/null", "am", "-q", *patches, env=GIT_IDENTITY)
    except Failure as err:
        raise Failure(f"git am refuses the mbox on {base.tag} ({err}): fix the series") from err
    differ = output("git", "-C", tree, "diff", "--name-only", wanted, "HEAD").splitlines()
    if differ:
        raise Failure(f"git am of the mbox on {base.tag} gives another {differ[0]} than the series has: does it have "
                      "lines that end in CR LF, which mail does not keep?")
    say(f"mail: git am of the mbox on {base.tag} gives the tree of the series, {len(patches)} commits")


def b4_reads(tree: Path, sender: str, mbox: Path, scratch: Path, count: int) -> None:
    """Let b4 read @mbox as a maintainer's does.  Raises Failure where it misses
    any of the @count patches."""
    said = b4(tree, scratch, sender, "am", "-m", str(mbox), "-o", str(scratch / "am"))
    found = re.search(r"^Total patches: (\d+)$", said, re.M)
    if not found or int(found[1]) != count or "ERROR" in said:
        raise Failure(f"b4 am does not find {count} patches in the mbox; it says:\n{said}")
    say(f"mail: b4 am reads the cover letter and {count} patches")


def history(base: Base, kdir: str | None) -> str:
    """Where git has the objects of the sender's clone @kdir, if the history of
    @base is in it, else nothing."""
    if not kdir or output("git", "-C", kdir, "rev-parse", "--is-shallow-repository") == "true" \
            or not output("git", "-C", kdir, "rev-parse", "-q", "--verify", f"{base.tag}^{{commit}}^", check=False):
        return ""
    return output("git", "-C", kdir, "rev-parse", "--path-format=absolute", "--git-path", "objects")


def b4_checks(tree: Path, base: Base, sender: str, scratch: Path, kdir: str | None, count: int) -> None:
    """Let `b4 prep --check` look at the commits in @tree, on a branch that is
    enrolled for that: checkpatch, signed-off commits.  Commits that messages
    refer to are looked up in @kdir.  Raises Failure with what it finds."""
    # lint looks at spaces, and knows labels of asm goto, which checkpatch takes
    # for operators.
    ignored, env, objects = IGNORED + ",SPACING", {}, history(base, kdir)
    if objects:
        env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = objects
    else:
        ignored += ",UNKNOWN_COMMIT_ID"
        say("mail: the commits that messages refer to are not looked up: that takes KDIR= with the history")
    say(f"mail: b4 prep --check: checkpatch for each of {count} patches")
    command = f"{tree}/scripts/checkpatch.pl -q --terse --no-summary --mailback --showfile --ignore {ignored}"
    output("git", "-C", tree, "checkout", "-q", "-B", BRANCH, env=GIT_PLAIN)
    try:
        b4(tree, scratch, sender, "prep", "--enroll", base.tag)
        said = b4(tree, scratch, sender, "-c", f"b4.prep-perpatch-check-cmd={command}", "prep", "--check", env=env)
    finally:
        output("git", "-C", tree, "checkout", "-q", "-f", "--detach", env=GIT_PLAIN)
        output("git", "-C", tree, "branch", "-q", "-D", BRANCH)
    found = re.search(r"^Success: (\d+), Warning: 0, Error: 0$", said, re.M)
    if not found or int(found[1]) != count:
        raise Failure(f"b4 prep --check has something to say; fix it in the tree of 'make tree':\n{said}")
    say(f"mail: b4 prep --check is content with {count} patches")


def verify(repo: Path, base: Base, topic: Topic, sender: str, mails: list[str], kdir: str | None) -> None:
    """Prove that @mails, the cover letter first, are the series of @topic for
    @base, signed off by @sender; what was checked is said.  @kdir is the
    sender's clone or None.  Raises Failure for the first thing that is wrong."""
    wanted, count = apply(repo, base, [topic]), len(mails) - 1
    with lock(f"{repo.name}-mail"), tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        mbox = scratch / "series.mbox"
        mbox.write_bytes("".join(mails).encode())
        read(mbox, sender, count)
        tree = worktree(repo, "mail", base.tag)
        applies(tree, base, mbox, scratch, wanted)
        b4_reads(tree, sender, mbox, scratch, count)
        b4_checks(tree, base, sender, scratch, kdir, count)
