# SPDX-License-Identifier: GPL-2.0
"""Writing the mbox that a submitter sends, and proving it."""

import mailbox
import os
import re
import sys
from dataclasses import replace
from email.header import decode_header, make_header
from pathlib import Path
from unittest import mock

from support import GET_MAINTAINER, USER_CONFIG, KernelCase, git, put
from test_cover import GOOD

# isort: split
import cover
import export
import install
import mail
import mailcheck
import tree

SENDER = "Jane Submitter <jane@example.com>"
JOSE = "Jos\u00e9 O'M\u00fcller <jose@example.com>"
FORM = mail.Form(SENDER)

# Who maintains line 9 does not maintain line 7.
FOR_NINE = """#!/bin/sh
for last; do :; done
grep -q '^+line nine' "$last" && echo "Fs Person <fs@example.com>"
case "$*" in
*--no-l*) ;;
*) echo "linux-fs@example.com" ;;
esac
"""

# b4 as far as it is used: what it is asked for, and on which commit, is in
# ANSWERS/log; it says what is in ANSWERS/am and ANSWERS/check.
B4 = """
while [ "${1#--}" != "$1" ] || [ "$1" = -c ]; do
	[ "$1" = -c ] && shift && echo "config $1" >> ANSWERS/log
	shift
done
echo "$* ($(git symbolic-ref --short -q HEAD) $(git log -1 --format=%s) by $(git config user.name))" >> ANSWERS/log
case "$1 $2" in
am*) cat ANSWERS/am ;;
"prep --enroll") git config branch.hotpaths-mail.b4-prep-cover-strategy commit ;;
"prep --check") echo "objects in $GIT_ALTERNATE_OBJECT_DIRECTORIES" >> ANSWERS/log; cat ANSWERS/check ;;
esac
"""


class Identity(KernelCase):
    """mail.identity()."""

    def test_good(self):
        """A name and an address become author and committer."""
        env = mail.identity(SENDER)
        for who in ("AUTHOR", "COMMITTER"):
            self.assertEqual((env[f"GIT_{who}_NAME"], env[f"GIT_{who}_EMAIL"]), ("Jane Submitter", "jane@example.com"))

    def test_bad(self):
        """Anything else is refused, with what was given."""
        for sender in ("", "Jane", "jane@example.com", "<jane@example.com>", "Jane <jane>", "Jane <jane@>",
                       "Jane <ja ne@example.com>"):
            with self.fails(f"'{sender}'", "Name <address>") as caught:
                mail.identity(sender)
            self.assertNotIn("\n", caught.message)


class Words(KernelCase):
    """mail.subject_prefix() and mail.encoded()."""

    def test_prefix(self):
        """The brackets have PATCH, and other words around it."""
        for words in ("PATCH", "PATCH net-next", "RFC PATCH", "PATCH 6.18.y", "PATCH RESEND mm-unstable"):
            self.assertEqual(mail.subject_prefix(words), words)
        for words in ("", "net-next", "patch", "[PATCH]", "PATCHES", "PATCH\nTo: x"):
            with self.fails("PREFIX", "'PATCH mm-unstable'"):
                mail.subject_prefix(words)

    def test_encoded(self):
        """A header is ASCII, addresses stay addresses, and what is ASCII stays
        as it is."""
        self.assertEqual(mail.encoded("To", '"A. B" <a@b.c>,\n\tC <c@d.e>'), '"A. B" <a@b.c>,\n\tC <c@d.e>')
        value = mail.encoded("Cc", '"M\u00fcller, J." <m@b.c>,\n\tlist@example.com')
        self.assertTrue(value.isascii())
        first, second = value.split(",\n\t")
        self.assertEqual(str(make_header(decode_header(first))), "M\u00fcller, J. <m@b.c>")
        self.assertEqual(second, "list@example.com")
        subject = "[PATCH 0/2] na\u00efve " + 12 * "words and "
        value = mail.encoded("Subject", subject)
        self.assertTrue(value.isascii())
        self.assertLessEqual(max(map(len, value.split("\n"))), 78)
        self.assertEqual(str(make_header(decode_header(value))), subject)


class SeriesCase(KernelCase):
    """A base that is imported, as self.repo, and a series of two patches for
    it, as self.one."""

    def setUp(self):
        super().setUp()
        self.repo = self.imported()
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"),
                               ("fs/pipe.c", "line 9\n", "line nine\n"))


class Mbox(SeriesCase):
    """mail.messages() of a series of two patches."""

    def setUp(self):
        super().setUp()
        put(self.one.cover(self.base),
            "From: x\nSubject: [PATCH 0/2] alpha: the subject\n\nThe text.\n\nA Tester (2):\n")

    def messages(self, **form) -> list:
        """The messages of the mbox, as a mail reader sees them."""
        text = "".join(mail.messages(self.repo, self.base, self.one, replace(FORM, **form)))
        box = mailbox.mbox(put(self.dir / "out.mbox", text))
        self.addCleanup(box.close)
        return list(box)

    def test_signed_off(self):
        """Each patch is from the person named and signed off by them, once;
        nobody else is named, and the cover letter is not signed."""
        cover, *patches = self.messages()
        self.assertEqual(len(patches), 2)
        for one in patches:
            body = one.get_payload()
            self.assertEqual(re.findall(r"^[\w-]+-by: .*$", body, re.MULTILINE), [f"Signed-off-by: {SENDER}"])
            self.assertLess(body.index("Signed-off-by"), body.index("\n---\n"))
            self.assertNotIn("Tester", body)
        for one in (cover, *patches):
            self.assertEqual(one["From"], SENDER)
        self.assertNotIn("Signed-off-by", cover.get_payload())

    def test_cover(self):
        """The cover letter has the committed text and names the base's tag."""
        cover = self.messages()[0]
        self.assertEqual(cover["Subject"], "[PATCH 0/2] alpha: the subject")
        body = cover.get_payload()
        self.assertTrue(body.startswith("The text.\n"))
        self.assertIn("Jane Submitter (2):\n  alpha: change 1\n  alpha: change 2\n", body)
        self.assertIn("\nBased on v9.1.2.\n", body)
        self.assertNotIn("base-commit", body)
        self.assertNotIn("***", str(cover))

    def test_threading(self):
        """Every patch answers the cover letter, and all ids differ."""
        cover, *patches = self.messages()
        self.assertIsNone(cover["In-Reply-To"])
        self.assertEqual([one["In-Reply-To"] for one in patches], [cover["Message-Id"]] * 2)
        self.assertEqual(len({one["Message-Id"] for one in (cover, *patches)}), 3)

    def test_next_version(self):
        """A new version says so in each subject and answers what it is told to."""
        cover, *patches = self.messages(version=2, in_reply_to="old@example.com")
        self.assertEqual(cover["In-Reply-To"], "<old@example.com>")
        self.assertEqual([one["Subject"] for one in (cover, *patches)], [
            "[PATCH v2 0/2] alpha: the subject", "[PATCH v2 1/2] alpha: change 1", "[PATCH v2 2/2] alpha: change 2"])
        self.assertEqual([one["References"].split() for one in patches],
                         [["<old@example.com>", cover["Message-Id"]]] * 2)

    def test_prefix(self):
        """The tree that it is for stands before the version."""
        self.assertEqual([one["Subject"].split("]")[0] for one in self.messages(prefix="PATCH mm-new", version=3)],
                         [f"[PATCH mm-new v3 {number}/2" for number in range(3)])

    def test_assisted_by(self):
        """What tools did is said before the sign-off, where it is given."""
        for one in self.messages(assisted_by="LLM sparse")[1:]:
            self.assertIn(f"Assisted-by: LLM sparse\nSigned-off-by: {SENDER}\n---\n", one.get_payload())

    def test_not_ascii(self):
        """Names, subject and text that are not ASCII arrive as they are: all
        headers are ASCII, and the text is said to be UTF-8."""
        put(self.one.cover(self.base), "From: x\nSubject: [PATCH 0/2] alpha: na\u00efve\n\n"
                                     "Die Gr\u00f6\u00dfe.\n\nX (2):\n")
        put(self.kdir / "scripts/get_maintainer.pl", GET_MAINTAINER.replace("Fs Person", "F\u00e9 P\u00e9rson"), 0o755)
        self.commit_kdir("Linux 9.1.2")
        self.repo.rename(self.dir / "elsewhere")
        self.repo = self.imported()
        messages = self.messages(sender=JOSE)
        for one in messages:
            self.assertTrue(all(value.isascii() for value in one.values()))
            self.assertEqual(str(make_header(decode_header(one["From"]))), JOSE)
            self.assertEqual(str(make_header(decode_header(one["To"]))), "F\u00e9 P\u00e9rson <fs@example.com>")
            self.assertEqual((one["MIME-Version"], one.get_content_charset(), one["Content-Transfer-Encoding"]),
                             ("1.0", "utf-8", "8bit"))
        self.assertEqual(str(make_header(decode_header(messages[0]["Subject"]))), "[PATCH 0/2] alpha: na\u00efve")
        text = [one.get_payload(decode=True).decode() for one in messages]
        self.assertTrue(text[0].startswith("Die Gr\u00f6\u00dfe.\n"))
        self.assertTrue(text[1].startswith(f"Signed-off-by: {JOSE}\n---\n"))
        mailcheck.read(self.dir / "out.mbox", JOSE, 2)

    def test_text_alone_is_not_ascii(self):
        """So it is where only what the patch adds is not ASCII, and git does
        not say so; where all is, nothing is said."""
        self.assertIsNone(self.messages()[1]["Content-Type"])
        patch = self.one.patches(self.base)[1]
        put(patch, patch.read_text().replace("+line nine", "+line neun, \u00fc"))
        plain, one = self.messages()[1:]
        self.assertIsNone(plain["Content-Type"])
        self.assertEqual((one.get_content_charset(), one["Content-Transfer-Encoding"]), ("utf-8", "8bit"))
        self.assertIn("+line neun, \u00fc\n", one.get_payload(decode=True).decode())

    def test_recipients(self):
        """Maintainers are in To, the lists in Cc, as get_maintainer.pl says."""
        for one in self.messages():
            self.assertEqual((one["To"], one["Cc"]), ("Fs Person <fs@example.com>", "linux-fs@example.com"))

    def test_nobody_maintains_it(self):
        """A patch that only a list is for goes to those whom the rest is for."""
        put(self.kdir / "scripts/get_maintainer.pl", FOR_NINE, 0o755)
        self.commit_kdir("Linux 9.1.2")
        self.repo.rename(self.dir / "elsewhere")
        self.repo = self.imported()
        for one in self.messages():
            self.assertEqual((one["To"], one["Cc"]), ("Fs Person <fs@example.com>", "linux-fs@example.com"))

    def test_base_commit(self):
        """With the submitter's clone, the cover letter names its commit."""
        git("tag", "v9.1.2", cwd=self.kdir)
        commit = git("rev-parse", "v9.1.2^{commit}", cwd=self.kdir)
        body = self.messages(commit=mail.base_commit(self.base, self.kdir))[0].get_payload()
        self.assertIn(f"\nbase-commit: {commit}\n", body)
        self.assertNotIn("Based on", body)

    def test_no_tag(self):
        """A clone that lacks the base's tag is refused, saying how to get it."""
        with self.fails(str(self.kdir), "v9.1.2", "git fetch") as caught:
            mail.base_commit(self.base, self.kdir)
        self.assertNotIn("\n", caught.message)

    def test_other_source(self):
        """So is one whose tag names another source than the base's."""
        put(self.kdir / "fs/pipe.c", "another\n")
        self.commit_kdir("mine")
        git("tag", "v9.1.2", cwd=self.kdir)
        with self.fails(f"KDIR={self.kdir} at v9.1.2", "fs/pipe.c"):
            mail.base_commit(self.base, self.kdir)

    def test_again(self):
        """A second mbox has the same messages, but for ids and dates."""
        first, second = self.messages(), self.messages()
        self.assertEqual([(one["Subject"], one.get_payload()) for one in first],
                         [(one["Subject"], one.get_payload()) for one in second])

    def test_user_configuration(self):
        """The user's configuration does not change the messages."""
        first = self.messages()
        self.user_config(USER_CONFIG)
        self.assertEqual([(one["Subject"], one.get_payload()) for one in self.messages()],
                         [(one["Subject"], one.get_payload()) for one in first])

    def test_applies(self):
        """git am takes the patches of the mbox, which give the series' tree."""
        self.messages()
        messages = self.dir / "out.mbox"
        clone = self.dir / "clone"
        git("clone", "-q", "-b", "v9.1.2", self.repo, clone, cwd=self.dir)
        split = self.dir / "split"
        split.mkdir()
        self.assertEqual(git("mailsplit", f"-o{split}", messages, cwd=clone), "3")
        git("am", "-q", split / "0002", split / "0003", cwd=clone)
        self.assertEqual(git("rev-parse", "HEAD^{tree}", cwd=clone), git("rev-parse", "alpha^{tree}", cwd=self.kdir))

    def test_series_is_stored_unsigned(self):
        """Nothing of the submitter is left in patches/."""
        before = [path.read_text() for path in self.one.patches(self.base)]
        self.messages()
        self.assertEqual([path.read_text() for path in self.one.patches(self.base)], before)
        self.assertEqual(export.blurb(self.one.cover(self.base)), ("alpha: the subject", "The text."))


class Read(KernelCase):
    """mailcheck.read(): what a mail program sees."""

    def mbox(self, *edits: tuple[str, str]) -> Path:
        """An mbox of a cover letter and one patch, with @edits."""
        text = ("From 1 Mon Sep 17 00:00:00 2001\nMessage-Id: <1>\nTo: a@b.c\nSubject: [PATCH 0/1] x\n\nText.\n\n"
                "From 2 Mon Sep 17 00:00:00 2001\nMessage-Id: <2>\nIn-Reply-To: <1>\nTo: a@b.c\n"
                f"Subject: [PATCH 1/1] y\n\nWhy.\n\nSigned-off-by: {SENDER}\n---\n"
                "+Signed-off-by: no <one@example.com>\n\n")
        for old, new in edits:
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        return put(self.dir / "x.mbox", text)

    def test_good(self):
        """What was checked is said; the name of who signs off may be written
        in another way."""
        mailcheck.read(self.mbox(), SENDER, 1)
        mailcheck.read(self.mbox(), f'"Jane  Submitter" {SENDER.split()[-1]}', 1)
        self.assertIn("mail: 2 messages", self.said.getvalue())

    def test_wrong(self):
        """Each mistake is told in one sentence."""
        for edit, words in ((("Why.", "Why?\nFrom here on."), ("3 messages", "1 patches", "'From '")),
                            (("<2>\nIn-Reply-To: <1>", "<2>"), ("message 1 of 1", "cover letter")),
                            (("To: a@b.c\nSubject: [PATCH 1", "Subject: [PATCH 1"), ("message 1 of 1", "MAINTAINERS")),
                            (("To: a@b.c\nSubject: [PATCH 0", "Subject: [PATCH 0"), ("message 0 of 1", "nobody")),
                            ((f"Signed-off-by: {SENDER}\n", ""), ("message 1 of 1", "signed off by nobody")),
                            (("---", "Signed-off-by: O <o@x.y>\n---"), ("jane@example.com and o@x.y", "alone"))):
            with self.subTest(edit), self.fails(*words) as caught:
                mailcheck.read(self.mbox(edit), SENDER, 1)
            self.assertNotIn("\n", caught.message)


class Program(SeriesCase):
    """mail.main() with a b4 that is a shell script."""

    def setUp(self):
        super().setUp()
        self.cover(GOOD.replace("pipes", "alpha").replace("TOPIC=pipe", "TOPIC=alpha"))
        self.answers = self.dir / "answers"
        put(self.answers / "am", "---\nTotal patches: 2\n---\n")
        put(self.answers / "check", "---\n\x1b[32mo\x1b[0m fine\n---\nSuccess: 2, Warning: 0, Error: 0\n")
        self.fake("b4", B4.replace("ANSWERS", str(self.answers)))
        for module in (install, mailcheck):
            self.enterContext(mock.patch.object(module, "tool", lambda name: self.bin / name))
        self.out = self.dir / "out.mbox"

    def cover(self, text: str) -> None:
        """Let the series have a cover letter with @text."""
        put(self.one.cover(self.base), f"From: x\nSubject: [PATCH 0/2] alpha: it\n\n{text}\nA Tester (2):\n")

    def mail(self, *words: str) -> None:
        """Run the program."""
        with mock.patch.object(mail, "repository", lambda _on, _kdir: self.repo), \
                mock.patch.object(sys, "argv", ["mail.py", "--base", "v0", "--topic", "alpha", "--from", SENDER,
                                                "--out", str(self.out), *words]):
            mail.main()

    def refused(self, *words: str, argv: tuple[str, ...] = ()) -> str:
        """The failure, which has @words in it; nothing is written."""
        with self.fails(*words) as caught:
            self.mail(*argv)
        self.assertFalse(self.out.exists())
        return caught.message

    def test_good(self):
        """What was proven is said, b4 sees the signed-off commits on a branch
        of its own, and nothing of that is left."""
        self.mail("--version", "1", "--subject-prefix", "PATCH fs-next")
        with open(self.out) as stream:
            self.assertEqual(stream.read().count("Subject: [PATCH fs-next "), 3)
        said = self.said.getvalue()
        for words in ("3 messages", "git am of the mbox on v9.1.2 gives the tree of the series, 2 commits",
                      "b4 am reads the cover letter and 2 patches", "are not looked up", "content with 2 patches",
                      "no KDIR=", "read every line"):
            self.assertIn(words, said)
        log = (self.answers / "log").read_text().splitlines()
        self.assertRegex(log[0], r"^am -m .* \( alpha: change 2 by Jane Submitter\)$")
        self.assertEqual(log[1], "prep --enroll v9.1.2 (hotpaths-mail alpha: change 2 by Jane Submitter)")
        self.assertRegex(log[2], r"^config b4\.prep-perpatch-check-cmd=/.*/checkpatch\.pl .* --ignore "
                                 r"FILE_PATH_CHANGES,SPACING,UNKNOWN_COMMIT_ID$")
        self.assertTrue(log[3].startswith("prep --check (hotpaths-mail "))
        self.assertEqual(log[4], "objects in ")
        self.assertEqual(git("branch", "--list", "hotpaths-mail", cwd=self.repo), "")
        self.assertNotIn("hotpaths-mail", git("config", "-l", "--local", cwd=self.repo))

    def test_clone(self):
        """Commits that messages refer to are looked up in the sender's clone,
        if it has the history of the base."""
        git("tag", "v9.1.2", cwd=self.kdir)
        self.mail("--kdir", str(self.kdir))
        self.assertIn("base-commit: " + git("rev-parse", "v9.1.2", cwd=self.kdir), self.out.read_text())
        self.assertIn("objects in \n", (self.answers / "log").read_text())
        git("commit", "-q", "--allow-empty", "-m", "Linux 9.1.2 again", cwd=self.kdir)
        git("tag", "-f", "v9.1.2", cwd=self.kdir)
        (self.answers / "log").unlink()
        self.mail("--kdir", str(self.kdir))
        log = (self.answers / "log").read_text()
        self.assertIn(f"objects in {self.kdir}/.git/objects\n", log)
        self.assertIn("--ignore FILE_PATH_CHANGES,SPACING\n", log)
        shallow = self.dir / "shallow"
        git("clone", "-q", "--depth", "1", "-b", "v9.1.2", f"file://{self.kdir}", shallow, cwd=self.dir)
        (self.answers / "log").unlink()
        self.mail("--kdir", str(shallow))
        self.assertIn("objects in \n", (self.answers / "log").read_text())

    def test_cover(self):
        """A cover letter that is not complete is refused before anything is
        done, with a sentence for each thing."""
        with mock.patch.object(mail, "messages", side_effect=AssertionError("written")):
            self.assertEqual(self.refused("'Changes in v2'", argv=("--version", "2")).count("\n"), 0)
            self.cover("*** BLURB HERE ***\n")
            self.assertEqual(self.refused(*(f"'{title}'" for title in (*cover.WANTED, cover.SINCE, "***")),
                                          "without a symptom").count("\n"), 8)

    def test_arguments(self):
        """So are a sender and a prefix that are none, and a topic that has no
        series."""
        with mock.patch.object(mail, "messages", side_effect=AssertionError("written")):
            self.refused("'Jane'", argv=("--from", "Jane"))
            self.refused("'mm'", argv=("--subject-prefix", "mm"))
            self.refused("no series for v1", argv=("--base", "v1"))

    def test_another_tree(self):
        """A series that mail does not carry, since its lines end in CR LF."""
        patch = self.one.patches(self.base)[1]
        patch.write_bytes(patch.read_bytes().replace(b"+line nine\n", b"+line nine\r\n"))
        self.refused("gives another fs/pipe.c", "CR LF")

    def test_b4(self):
        """What b4 misses, or has to say, is told in its words; the branch is
        not left behind."""
        put(self.answers / "am", "ERROR: missing [2/2]!\nTotal patches: 1\n")
        self.refused("b4 am does not find 2 patches", "missing [2/2]")
        put(self.answers / "am", "Total patches: 2\n")
        put(self.answers / "check", "\x1b[31mo\x1b[0m checkpatch.pl: fs/pipe.c:7: WARNING: no\n"
                                    "Success: 1, Warning: 1, Error: 0\n")
        message = self.refused("b4 prep --check", "fs/pipe.c:7: WARNING: no", "make tree")
        self.assertNotIn("\x1b", message)
        self.assertEqual(git("branch", "--list", "hotpaths-mail", cwd=self.repo), "")
        self.fake("b4", "echo 'CRITICAL: no'; exit 2\n")
        self.refused("b4 am failed: CRITICAL: no")

    def test_left_over(self):
        """A branch that an interrupted run has left does not matter."""
        place = tree.worktree(self.repo, "mail", "v9.1.2")
        git("checkout", "-q", "-b", "hotpaths-mail", cwd=place)
        self.mail()
        self.assertTrue(self.out.exists())
        self.assertFalse(os.path.exists(place / ".git/rebase-apply"))
