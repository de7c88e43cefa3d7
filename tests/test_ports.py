# SPDX-License-Identifier: GPL-2.0
"""What a port lacks of the series of the reference base, and whether series fit
another release."""

from unittest import mock

from support import BASES, KernelCase, git, put

# isort: split
from core import locks
from core import model
from core.ktap import FAILED, PASSED
from prove import fit
from source import fetch
from source import ports

LACKS = '\n[base."v1"]\nlacks = { "%s" = "it has no such file" }\n'


class Ported(KernelCase):
    """ports.lacking() and results(), of a series for v0 that was ported to v1."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(ports, "ROOT", self.root))
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"),
                               ("fs/pipe.c", "line 20\n", "line twenty\n"))
        self.other = model.find_base("v1")
        self.patches = self.one.patches(self.base)
        for patch in self.patches:
            put(self.root / "patches/alpha/v1" / patch.name, patch.read_text())
        put(self.root / "patches/alpha/v1" / ports.NAME, ports.record(self.one))

    def wrong(self) -> dict[str, str]:
        """What lint says of the port, as it is now."""
        return ports.lacking(model.find_topic("alpha"), self.other)

    def test_message(self):
        """A change of the message, or of where the lines are, is none of the patch."""
        self.assertEqual(self.wrong(), {})
        text = self.patches[0].read_text()
        self.assertIn("@@ -4,7 +4,7 @@", text)
        put(self.patches[0], text.replace("\n---\n", "\nMore words.\n---\n").replace("@@ -4", "@@ -9"))
        self.assertEqual(self.wrong(), {})
        self.assertEqual([one.verdict for one in ports.results()], [PASSED])

    def test_changed(self):
        """A patch that changes after the port is found, until it is recorded again; so
        is one that the port never had."""
        put(self.patches[1], self.patches[1].read_text().replace("+line twenty", "+line 2 times ten"))
        self.assertEqual(self.wrong(), {"alpha: change 2": "has changed since the port"})
        found, = ports.results()
        self.assertEqual(found.verdict, FAILED)
        self.assertIn("make diff TOPIC=alpha BASE=v1", found.why)
        put(self.root / "patches/alpha/v1" / ports.NAME, ports.record(self.one))
        self.assertEqual(self.wrong(), {})
        (self.root / "patches/alpha/v1" / self.patches[1].name).unlink()
        self.assertEqual(self.wrong(), {"alpha: change 2": "is not in the port"})

    def test_lacks(self):
        """What series.toml says that a port lacks is none of it, and has to be true."""
        (self.root / "patches/alpha/v1" / self.patches[1].name).unlink()
        path = self.root / "patches/alpha/series.toml"
        before = path.read_text()
        put(path, before + LACKS % "alpha: change 2")
        self.assertEqual(self.wrong(), {})
        put(path, before + LACKS % "alpha: change 1")
        self.assertEqual(set(self.wrong()), {"alpha: change 1", "alpha: change 2"})

    def test_no_record(self):
        """A port that says nothing of what it was made from has nothing of it."""
        (self.root / "patches/alpha/v1" / ports.NAME).unlink()
        self.assertEqual(len(self.wrong()), 2)

    def test_range_diff(self):
        """What differs is shown, though the two bases are in two repositories."""
        put(self.root / "bases.toml", BASES.replace('"9.2.0"', '"9.1.2"').replace("v9.2.0", "v9.1.2"))
        other = model.find_base("v1")
        put(self.kdir / "fs/pipe.c", (self.kdir / "fs/pipe.c").read_text().replace("line 6\n", "line six\n"))
        port = self.root / "patches/alpha/v1" / self.patches[0].name
        put(port, port.read_text().replace(" line 6\n", " line six\n"))
        for patch in port.parent.glob("*.patch"):
            put(patch, "".join(line for line in patch.read_text().splitlines(True) if not line.startswith("index ")))
        repo = locks.cache() / "git/v1"
        fetch.store(self.kdir, other, repo)
        git("checkout", "-q", "--", ".", cwd=self.kdir)
        said = ports.range_diff(self.one, other, repo, self.imported())
        self.assertIn("alpha: change 1", said)
        self.assertIn("line six", said)
        self.assertIn("=", said.splitlines()[-1])


class Fit(KernelCase):
    """fit.fit() of another kernel; nothing is compiled."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(fit, "compiled", lambda *_args: (1, "")))
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"),
                               ("fs/pipe.c", "line 20\n", "line twenty\n"))
        put(self.one.cover(self.base), "Subject: [PATCH 0/2] alpha\n\nWhy.\n")
        self.repo, self.out = self.imported(), self.dir / "out"

    def tried(self, *edits: tuple[str, str]):
        """The result for the kernel that differs in @edits of fs/pipe.c."""
        text = (self.kdir / "fs/pipe.c").read_text()
        for old, new in edits:
            text = text.replace(old, new)
        put(self.kdir / "fs/pipe.c", text)
        start = fit.snapshot(self.repo, self.base, fit.source_of(self.kdir))
        return fit.fit(self.repo, self.base, self.one, start, self.out)

    def test_as_it_is(self):
        """A kernel that differs elsewhere takes the series, and nothing is written."""
        found = self.tried(("line 29\n", "line 29\nline\n"))
        self.assertEqual((found, self.out.exists()), (fit.Fit("alpha", self.base.name, "", (), 1), False))
        self.assertEqual((found.result().verdict, found.result().name),
                         (PASSED, f"alpha of {self.base.name}: applies; 1 objects compile"))

    def test_ignored(self):
        """Files that an archive's own .gitignore names are part of it."""
        put(self.kdir / ".gitignore", "/*\n")
        put(self.kdir / "fs/new.c", "new\n")
        for all_files, there in ((False, 0), (True, 1)):
            start = fit.snapshot(self.repo, self.base, self.kdir, all_files)
            found = git("--git-dir", self.repo, "ls-tree", "-r", "--name-only", start, cwd=self.dir).splitlines()
            self.assertEqual(found.count("fs/new.c"), there)

    def test_merged(self):
        """Where git merges a patch, the series is written, and applies there."""
        found = self.tried(("line 5\n", "line five\n"))
        self.assertEqual((found.result().verdict, found.merged), (PASSED, ("0001",)))
        self.assertIn("3-way (0001)", found.result().name)
        self.assertIn(" line five\n", (self.out / self.one.patches(self.base)[0].name).read_text())
        self.assertTrue((self.out / "0000-cover-letter.patch").exists())
        git("apply", "--check", self.out / self.one.patches(self.base)[0].name, cwd=self.kdir)

    def test_refused(self):
        """Where one does not apply, it is said which, and where."""
        found = self.tried(("line 20\n", "line zwanzig\n"))
        self.assertEqual((found.result().verdict, self.out.exists()), (FAILED, False))
        self.assertRegex(found.why, r"^0002-\S+: fs/pipe.c changed at line 17$")

    def test_function(self):
        """The function is that of the hunk which git names."""
        patch = put(self.dir / "0001-a.patch", "\ndiff --git a/fs/a.c b/fs/a.c\n@@ -3,2 +3,2 @@ static int one(int a)\n"
                    "\ndiff --git a/fs/b.c b/fs/b.c\n@@ -3,2 +3,2 @@ static int two(int b)\n")
        self.assertEqual(fit.place(patch, "error: patch failed: fs/b.c:3\n"), "two() in fs/b.c changed")
        self.assertEqual(fit.place(patch, "error: fs/c.c: No such file or directory\n"),
                         "fs/c.c: No such file or directory")

    def test_source(self):
        """An archive is unpacked; what is no kernel is told as such."""
        archive = self.dir / "linux.tar.gz"
        git("archive", "--prefix=linux/", "-o", archive, "HEAD", cwd=self.kdir)
        (locks.cache() / "log").mkdir(parents=True, exist_ok=True)
        self.assertEqual(fit.release_of(fit.source_of(archive)), "v9.1.2")
        with self.fails("no kernel", "KDIR="):
            fit.source_of(self.dir)
