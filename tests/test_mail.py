# SPDX-License-Identifier: GPL-2.0
"""Writing the mbox that a submitter sends."""

import mailbox
import re

from support import USER_CONFIG, KernelCase, git, put

# isort: split
import export
import mail

SENDER = "Jane Submitter <jane@example.com>"


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


class Mbox(KernelCase):
    """mail.mbox() of a series of two patches."""

    def setUp(self):
        super().setUp()
        self.repo = self.imported()
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"),
                               ("fs/pipe.c", "line 9\n", "line nine\n"))
        put(self.one.cover(self.on), "From: x\nSubject: [PATCH 0/2] alpha: the subject\n\nThe text.\n\nA Tester (2):\n")

    def messages(self, kdir=None, version=1, in_reply_to=None) -> list:
        """The messages of the mbox, as a mail reader sees them."""
        text = mail.mbox(self.repo, self.on, self.one, SENDER, kdir and str(kdir), version, in_reply_to)
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

    def test_recipients(self):
        """Maintainers are in To, the lists in Cc, as get_maintainer.pl says."""
        for one in self.messages():
            self.assertEqual((one["To"], one["Cc"]), ("Fs Person <fs@example.com>", "linux-fs@example.com"))

    def test_base_commit(self):
        """With the submitter's clone, the cover letter names its commit."""
        git("tag", "v9.1.2", cwd=self.kdir)
        commit = git("rev-parse", "v9.1.2^{commit}", cwd=self.kdir)
        body = self.messages(kdir=self.kdir)[0].get_payload()
        self.assertIn(f"\nbase-commit: {commit}\n", body)
        self.assertNotIn("Based on", body)

    def test_no_tag(self):
        """A clone that lacks the base's tag is refused, saying how to get it."""
        with self.fails(str(self.kdir), "v9.1.2", "git fetch") as caught:
            self.messages(kdir=self.kdir)
        self.assertNotIn("\n", caught.message)

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

    def test_prerequisites(self):
        """A series that builds on another one cannot be sent before it."""
        beta = self.series("beta", ("fs/pipe.c", "line 3\n", "line three\n"), start="alpha", prerequisites=("alpha",))
        with self.fails("'beta'", "alpha"):
            mail.mbox(self.repo, self.on, beta, SENDER, None, 1, None)

    def test_series_is_stored_unsigned(self):
        """Nothing of the submitter is left in patches/."""
        before = [path.read_text() for path in self.one.patches(self.on)]
        self.messages()
        self.assertEqual([path.read_text() for path in self.one.patches(self.on)], before)
        self.assertEqual(export.blurb(self.one.cover(self.on)), ("alpha: the subject", "The text."))
