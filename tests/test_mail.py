# SPDX-License-Identifier: GPL-2.0
"""Writing the mbox that a submitter sends, and proving it, with the b4 that is
beside the Python that runs this."""

import mailbox
import re
import sys
from argparse import Namespace
from email.header import decode_header, make_header
from pathlib import Path
from unittest import mock

from support import GET_MAINTAINER, USER_CONFIG, Case, KernelCase, git, put
from test_cover import GOOD

# isort: split
from core import install
from send import cover
from send import mail
from source import tree

SENDER = "Jane Submitter <jane@example.com>"
JOSE = "Jos\u00e9 O'M\u00fcller <jose@example.com>"
LETTER = GOOD.replace("pipes", "alpha").replace("TOPIC=pipe", "TOPIC=alpha")
# As it is in the mail.
SHOWN = re.sub(r"<!-- .*\n", "", LETTER)
# checkpatch, which says what is in SAID, and where commits are looked up.
CHECKPATCH = "#!/bin/sh\necho \"$* in $GIT_ALTERNATE_OBJECT_DIRECTORIES\" >> SAID.asked\ncat SAID\n"


def decoded(header: str) -> str:
    """What a mail program shows for @header."""
    return str(make_header(decode_header(header)))


class Arguments(KernelCase):
    """What main() makes of what it is given."""

    def test_sender(self):
        """A name and an address; anything else is refused, with what was given."""
        self.assertEqual(mail.sender('"Jane  Submitter"  <jane@example.com>'), SENDER)
        for sender in ("", "Jane", "jane@example.com", "<jane@example.com>", "Jane <jane>", "Jane <jane@>",
                       "Jane <ja ne@example.com>", '"Submitter, Jane" <jane@example.com>'):
            with self.fails(f"'{sender}'", "Name <address>") as caught:
                mail.sender(sender)
            self.assertNotIn("\n", caught.message)

    def test_prefixes(self):
        """The brackets have PATCH, and other words around it."""
        for text, words in (("PATCH", [""]), ("RFC PATCH", ["RFC"]), ("PATCH RESEND 6.18.y", ["RESEND", "6.18.y"])):
            self.assertEqual(mail.prefixes(text), words)
        for text in ("", "net-next", "patch", "[PATCH]", "PATCHES", "PATCH\nTo: x"):
            with self.fails("PREFIX", "'PATCH mm-unstable'"):
                mail.prefixes(text)

    def test_base_commit(self):
        """The submitter's clone has the base's tag, of the base's source."""
        self.imported()
        with self.fails(str(self.kdir), "v9.1.2", "git fetch") as caught:
            mail.base_commit(self.base, self.kdir)
        self.assertNotIn("\n", caught.message)
        git("tag", "v9.1.2", cwd=self.kdir)
        self.assertEqual(mail.base_commit(self.base, self.kdir), git("rev-parse", "v9.1.2", cwd=self.kdir))
        self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"))
        put(self.kdir / "fs/pipe.c", "another\n")
        self.commit_kdir("mine")
        git("tag", "-f", "v9.1.2", cwd=self.kdir)
        with self.fails(f"KDIR={self.kdir} at v9.1.2", "fs/pipe.c"):
            mail.base_commit(self.base, self.kdir)


class Read(Case):
    """mail.check_mbox(): what a mail program sees."""

    def mbox(self, *edits: tuple[str, str]) -> Path:
        """An mbox of a cover letter and two patches, with @edits."""
        text = "From 0 Mon Sep 17 00:00:00 2001\nMessage-Id: <0>\nTo: a@b.c\nCc: d@e.f\n\nText.\n\n"
        for number in (1, 2):
            text += (f"From {number} Mon Sep 17 00:00:00 2001\nMessage-Id: <{number}>\nIn-Reply-To: <0>\nTo: a@b.c\n"
                     f"Cc: d@e.f\n\nWhy {number}.\n\nSigned-off-by: {SENDER}\n---\n+Signed-off-by: no <o@x.y>\n\n")
        for old, new in edits:
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        return put(self.dir / "x.mbox", text)

    def test_good(self):
        """What was checked is said; the name of who signs off may be written
        in another way."""
        mail.check_mbox(self.mbox(), SENDER, "Text.", 2)
        mail.check_mbox(self.mbox(), f'"Jane  Submitter" {SENDER.split()[-1]}', "Text.", 2)
        self.assertIn("mail: 3 messages", self.said.getvalue())

    def test_wrong(self):
        """Each mistake is told in one sentence."""
        for edit, words in ((("Why 1.", "Why?\nFrom here on."), ("4 messages", "2 patches", "'From '")),
                            (("Text.", "Next."), ("another text",)),
                            (("<1>\nIn-Reply-To: <0>", "<1>"), ("message 1 of 2", "cover letter")),
                            (("Cc: d@e.f\n\nWhy 2", "\nWhy 2"), ("message 2 of 2", "MAINTAINERS")),
                            (("To: a@b.c\nCc: d@e.f\n\nText", "Cc: d@e.f\n\nText"), ("message 0 of 2", "maintainer")),
                            ((f"Signed-off-by: {SENDER}\n", ""), ("message 1 of 2", "signed off by nobody")),
                            (("---", "Signed-off-by: O <o@x.y>\n---"), ("jane@example.com and o@x.y", "alone"))):
            with self.subTest(edit), self.fails(*words) as caught:
                mail.check_mbox(self.mbox(edit), SENDER, "Text.", 2)
            self.assertNotIn("\n", caught.message)


class Program(KernelCase):
    """mail.main(), for a series of two patches with a cover letter."""

    def setUp(self):
        super().setUp()
        self.answer = put(self.dir / "answer", "")
        put(self.kdir / "scripts/checkpatch.pl", CHECKPATCH.replace("SAID", str(self.answer)), 0o755)
        # By this b4 knows a kernel.
        put(self.kdir / "Kconfig", "")
        self.release()
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"),
                               ("fs/pipe.c", "line 9\n", "line nine\n"))
        self.cover(LETTER)
        for module in (install, mail):
            self.enterContext(mock.patch.object(module, "tool", lambda name: Path(sys.prefix) / "bin" / name))
        self.out = self.dir / "out.mbox"

    def release(self, maintainer: str = GET_MAINTAINER) -> None:
        """Import the fake kernel as the base, with @maintainer as get_maintainer.pl."""
        put(self.kdir / "scripts/get_maintainer.pl", maintainer, 0o755)
        self.commit_kdir("Linux 9.1.2")
        git("tag", "-f", "v9.1.2", cwd=self.kdir)
        self.repo = self.imported()

    def cover(self, text: str, subject: str = "alpha: it") -> None:
        """Let the series have a cover letter with @text."""
        put(self.one.cover(self.base), f"From: x\nSubject: [PATCH 0/2] {subject}\n\n{text}\nA Tester (2):\n")

    def mail(self, *words: str, sender: str = SENDER) -> list:
        """Run the program; the messages of the mbox, as a mail reader sees them."""
        with mock.patch.object(mail, "repository", lambda _on, _kdir: self.repo), \
                mock.patch.object(sys, "argv", ["mail.py", "--base", "v0", "--topic", "alpha", "--from", sender,
                                                "--out", str(self.out), *words]):
            mail.main()
        box = mailbox.mbox(self.out)
        self.addCleanup(box.close)
        return list(box)

    def refused(self, *words: str, argv: tuple[str, ...] = ()) -> str:
        """The failure, which has @words in it; nothing is written or left."""
        with self.fails(*words) as caught:
            self.mail(*argv)
        self.assertFalse(self.out.exists())
        self.nothing_left()
        return caught.message

    def nothing_left(self) -> None:
        """Of what b4 was shown, nothing is in the cached repository."""
        self.assertEqual(git("branch", "--list", "mail-*", cwd=self.repo), "")
        self.assertNotIn("mail-", git("config", "-l", "--local", cwd=self.repo))

    def test_good(self):
        """The mails: from and signed off by the person named alone, below the
        cover letter, to the maintainers; git am gives the tree, what was proven is
        said, patches/ is as it was, and what an interrupted run has left does not matter."""
        before = [path.read_text() for path in self.one.patches(self.base)]
        git("checkout", "-q", "-b", "mail-alpha", cwd=tree.worktree(self.repo, "mail", "v9.1.2"))
        self.cover(LETTER.replace("8 bytes", "# 8 bytes"))
        letter, *patches = mails = self.mail()
        self.assertEqual([one["Subject"] for one in mails],
                         ["[PATCH 0/2] alpha: it", "[PATCH 1/2] alpha: change 1", "[PATCH 2/2] alpha: change 2"])
        self.assertEqual([one["In-Reply-To"] for one in mails], [None] + 2 * [letter["Message-Id"]])
        self.assertEqual(len({one["Message-Id"] for one in mails}), 3)
        for one in mails:
            self.assertEqual([one["From"], one["To"], one["Cc"]],
                             [SENDER, "Fs Person <fs@example.com>", "linux-fs@example.com"])
        for one in patches:
            head, _, diff = one.get_payload().partition("\n---\n")
            self.assertEqual(re.findall(r"^[\w-]+-by: .*$", head, re.M), [f"Signed-off-by: {SENDER}"])
            self.assertNotIn("Tester", head + diff)
        body = letter.get_payload()
        self.assertTrue(body.startswith(SHOWN.replace("8 bytes", "# 8 bytes")), body)
        for words in ("\nJane Submitter (2):\n      alpha: change 1\n", " fs/pipe.c | 4 ++--\n", "\nBased on v9.1.2."):
            self.assertIn(words, body)
        for words in ("Signed-off-by", "base-commit", "<!--", "To: ", "Cc: "):
            self.assertNotIn(words, body)
        self.assertEqual({name for name in letter.keys() if name.startswith("X-")}, {"X-Mailer"})
        clone, split = self.dir / "clone", self.dir / "split"
        split.mkdir()
        git("clone", "-q", "-b", "v9.1.2", self.repo, clone, cwd=self.dir)
        git("mailsplit", f"-o{split}", self.out, cwd=clone)
        git("am", "-q", split / "0002", split / "0003", cwd=clone)
        self.assertEqual(git("rev-parse", "HEAD^{tree}", cwd=clone), git("rev-parse", "alpha^{tree}", cwd=self.kdir))
        for words in ("are not looked up", "is content with 0001-alpha-change-1.patch, 0002", "3 messages",
                      "git am of the mbox on v9.1.2 gives the tree of the series", "b4 am reads 2 of them", "no KDIR=",
                      "no ASSISTED_BY=", "read every line"):
            self.assertIn(words, self.said.getvalue())
        self.assertEqual([path.read_text() for path in self.one.patches(self.base)], before)
        self.nothing_left()

    def test_options(self):
        """A new version for a tree, which answers a mail, of a clone's commit, with
        tools disclosed before the sign-off; the user's configuration changes
        nothing; a second mbox differs in ids and dates."""
        self.cover(LETTER.replace("Changes since v3 of [1]:", "Changes in v2:"))
        words = ("--version", "2", "--subject-prefix", "PATCH fs-next", "--in-reply-to", "old@example.com",
                 "--assisted-by", "LLM sparse", "--kdir", str(self.kdir))
        letter, *patches = mails = self.mail(*words)
        self.assertEqual([one["Subject"].split("]")[0] for one in mails],
                         [f"[PATCH fs-next v2 {number}/2" for number in range(3)])
        self.assertEqual([letter["In-Reply-To"], letter["References"]], 2 * ["<old@example.com>"])
        for one in patches:
            self.assertEqual(one["References"].split(), ["<old@example.com>", letter["Message-Id"]])
            self.assertIn(f"Assisted-by: LLM sparse\nSigned-off-by: {SENDER}\n---\n", one.get_payload())
        commit = git("rev-parse", "v9.1.2", cwd=self.kdir)
        self.assertTrue(letter.get_payload().endswith(f"\n---\nbase-commit: {commit}\n"))
        asked = self.answer.with_suffix(".asked").read_text()
        self.assertIn(f"--ignore FILE_PATH_CHANGES,SPACING in {self.kdir}/.git/objects\n", asked)
        self.user_config(USER_CONFIG)
        self.assertEqual([(one["Subject"], one.get_payload()) for one in self.mail(*words)],
                         [(one["Subject"], one.get_payload()) for one in mails])

    def test_not_ascii(self):
        """Names, subject and text that are not ASCII arrive as they are, and all
        headers are ASCII."""
        self.repo.rename(self.dir / "elsewhere")
        self.release(GET_MAINTAINER.replace("Fs Person", "F\u00e9 P\u00e9rson"))
        self.cover(LETTER.replace("8 bytes", "Die Gr\u00f6\u00dfe"), "alpha: na\u00efve")
        patch = self.one.patches(self.base)[1]
        put(patch, patch.read_text().replace("+line nine", "+line neun, \u00fc"))
        mails = self.mail(sender=JOSE)
        for one in mails:
            self.assertTrue(all(value.isascii() for value in one.values()))
            self.assertEqual([decoded(one["From"]), decoded(one["To"])], [JOSE, "F\u00e9 P\u00e9rson <fs@example.com>"])
            self.assertEqual((one["MIME-Version"], one.get_content_charset(), one["Content-Transfer-Encoding"]),
                             ("1.0", "utf-8", "8bit"))
        self.assertEqual(decoded(mails[0]["Subject"]), "[PATCH 0/2] alpha: na\u00efve")
        for one, words in zip(mails, ("Die Gr\u00f6\u00dfe.\n", f"Signed-off-by: {JOSE}\n---\n",
                                      "+line neun, \u00fc\n"), strict=True):
            self.assertIn(words, one.get_payload(decode=True).decode())

    def test_one_patch(self):
        """The cover letter of a single patch is below its ---."""
        patch, other = self.one.patches(self.base)
        put(patch, patch.read_text().replace("\n---\n", "\nWhy.\n---\n", 1))
        other.unlink()
        (one,) = self.mail()
        self.assertEqual(one["Subject"], "[PATCH] alpha: change 1")
        self.assertTrue(one.get_payload().startswith(f"Why.\n\nSigned-off-by: {SENDER}\n---\n{SHOWN}"))

    def test_fixes(self):
        """Each fix is a mail of its own, with nothing but itself."""
        path = self.root / "patches/alpha/series.toml"
        put(path, path.read_text().replace('"alpha"', '""'))
        self.one.cover(self.base).unlink()
        for patch in self.one.patches(self.base):
            put(patch, patch.read_text().replace("\n---\n", "\nWhy.\n---\n", 1))
        one, two = self.mail()
        self.assertEqual([(mail["Subject"], mail["In-Reply-To"]) for mail in (one, two)],
                         [("[PATCH] alpha: change 1", None), ("[PATCH] alpha: change 2", None)])
        self.assertIn(f"Signed-off-by: {SENDER}\n---\nBased on v9.1.2.\n---\n fs/pipe.c | 2 +-\n", one.get_payload())

    def test_needs(self):
        """A series applies on what it needs, which its first mail names."""
        other = self.series("beta", ("fs/pipe.c", "line 8\n", "line eight\n"), start="alpha")
        git("branch", "-q", "-D", "alpha", cwd=self.kdir)
        path = self.root / "patches/beta/series.toml"
        put(path, 'needs = ["alpha"]\n' + path.read_text())
        (patch,) = other.patches(self.base)
        put(patch, patch.read_text().replace("\n---\n", "\nWhy.\n---\n", 1))
        put(other.cover(self.base), f"From: x\nSubject: [PATCH 0/1] beta: it\n\n{LETTER.replace('alpha', 'beta')}\n")
        (one,) = self.mail("--topic", "beta")
        self.assertEqual(one["Subject"], "[PATCH] beta: change 1")
        self.assertIn("Based on v9.1.2.\n  and: alpha: change 1\n  and: alpha: change 2\n---\n", one.get_payload())

    def test_clone(self):
        """Commits that messages refer to are looked up where the history is."""
        shallow = self.dir / "shallow"
        git("clone", "-q", "--depth", "2", "-b", "v9.1.2", f"file://{self.kdir}", shallow, cwd=self.dir)
        for kdir, there in ((None, False), (shallow, False), (self.kdir, True)):
            with mock.patch.object(mail, "search_path", lambda: "."):
                env = mail.git_environment(Namespace(kdir=kdir, base=self.base, sender=SENDER), self.dir)
            self.assertEqual("GIT_ALTERNATE_OBJECT_DIRECTORIES" in env, there, kdir)
            self.assertEqual(",UNKNOWN_COMMIT_ID" in str(env), not there)

    def test_before(self):
        """A sender and a prefix that are none, a topic that has no series, and a
        cover letter that is not complete are refused before anything is done."""
        with mock.patch.object(mail, "mails", side_effect=AssertionError("written")):
            self.refused("'Jane'", argv=("--from", "Jane"))
            self.refused("'mm'", argv=("--subject-prefix", "mm"))
            self.refused("no series for v1", argv=("--base", "v1"))
            self.assertEqual(self.refused("'Changes in v2'", argv=("--version", "2")).count("\n"), 0)
            self.cover("*** BLURB HERE ***\n")
            self.assertEqual(self.refused(*(f"'{title}'" for title in (*cover.WANTED, cover.SINCE, "***")),
                                          "without a symptom").count("\n"), 8)
            self.cover(LETTER.replace("A write of 64 KiB allocates", "No figures: A write of 64 KiB allocates"))
            self.refused("lacks figures", "make bench TOPIC=alpha")

    def test_another_tree(self):
        """A series that mail does not carry, since its lines end in CR LF."""
        patch = self.one.patches(self.base)[1]
        patch.write_bytes(patch.read_bytes().replace(b"+line nine\n", b"+line nine\r\n"))
        self.refused("gives another fs/pipe.c", "CR LF")

    def test_another_letter(self):
        """A cover letter from whose end b4 takes what it reads as a tag."""
        self.cover(LETTER.replace("[1] https:", "Cc: a@example.com\n[1] https:"))
        self.refused("another text", "'Cc:'")

    def test_nobody(self):
        """A series that only a list is for."""
        self.repo.rename(self.dir / "elsewhere")
        self.release("#!/bin/sh\ncase \"$*\" in *--nol*) ;; *) echo list@example.com ;; esac\n")
        self.refused("message 0 of 2 is to no maintainer")

    def test_b4(self):
        """What checkpatch has to say, and what b4 misses, is told in b4's words."""
        put(self.answer, "fs/pipe.c:7: WARNING: no\n")
        message = self.refused("b4 prep", "fs/pipe.c:7: WARNING: no", "Success: 0, Warning: 2", "make tree")
        self.assertNotIn("\x1b", message)
        put(self.answer, "")
        self.mail()
        mbox = put(self.dir / "half", self.out.read_text().rpartition("From mail ")[0])
        with self.fails("b4 am", "not content", "Total patches: 1"):
            mail.b4(self.kdir, {"XDG_CACHE_HOME": str(self.dir), "XDG_DATA_HOME": str(self.dir)},
                    "^Total patches: 2$", "am", "-m", mbox, "-o", self.dir / "am")
