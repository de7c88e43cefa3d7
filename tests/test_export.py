# SPDX-License-Identifier: GPL-2.0
"""Exporting a series: what is written, applied and written again is the same."""

import sys
from dataclasses import replace
from unittest import mock

from support import KernelCase, contents, git, put

# isort: split
from core import model
from send import export
from send import mirrors
from source import tree


class Export(KernelCase):
    """export.render(), mirrors() and write() on a tree with two commits."""

    def setUp(self):
        super().setUp()
        self.repo = self.imported()
        self.one = self.topic("alpha")
        self.path = tree.edit_tree(self.repo, self.base, self.one)
        put(self.path / "fs/pipe.c", (self.path / "fs/pipe.c").read_text().replace("line 7\n", "line seven\n"))
        self.commit("alpha: make it seven")
        put(self.path / "tools/testing/selftests/alpha/test.c", "int main(void) { return 0; }\n")
        put(self.path / "tools/testing/selftests/alpha/run.sh", "#!/bin/sh\ntrue\n", 0o755)
        put(self.path / "tools/testing/selftests/alpha/data.txt", "caf\u00e9\n")
        put(self.path / "Documentation/core/alpha.rst", "Alpha\n=====\n")
        put(self.path / "fs/new.c", "new\n")
        self.commit("selftests: add alpha")
        self.directory = self.root / "patches/alpha/v0"

    def commit(self, subject: str) -> None:
        """Commit all of the edited tree, as the user."""
        git("add", "-A", ".", cwd=self.path)
        git("commit", "-q", "-m", subject, "-m", "The reason.", cwd=self.path)

    def write(self) -> dict:
        """Export, and all files of the checkout after it."""
        export.write_patches(self.path, self.one, self.base, self.base.tag, "HEAD")
        mirrors.write(self.repo, self.base)
        return contents(self.root)

    def test_needs(self):
        """What a topic needs is in its tree, and not among its patches."""
        self.write()
        other = self.topic("beta")
        path = self.root / "patches/beta/series.toml"
        put(path, 'needs = ["alpha"]\n' + path.read_text())
        other = model.find_topic("beta")
        where = tree.edit_tree(self.repo, self.base, other)
        self.assertEqual((where / "fs/new.c").read_text(), "new\n")
        put(where / "fs/new.c", "newer\n")
        git("commit", "-q", "-a", "-m", "beta: make it newer", cwd=where)
        export.write_patches(where, other, self.base, tree.below(self.repo, self.base, other), "HEAD")
        self.assertEqual([path.name for path in other.patches(self.base)], ["0001-beta-make-it-newer.patch"])
        self.assertEqual(tree.apply(self.repo, self.base, [other, self.one]), tree.apply(self.repo, self.base, [other]))

    def test_fixes(self):
        """Fixes are written without a cover letter and without a number."""
        self.one = replace(self.one, kselftest="")
        self.write()
        names = sorted(path.name for path in self.directory.iterdir())
        self.assertEqual(names, ["0001-alpha-make-it-seven.patch", "0002-selftests-add-alpha.patch"])
        self.assertIn("Subject: [PATCH] alpha: make it seven\n", (self.directory / names[0]).read_text())

    def test_mirrors(self):
        """A mirrored file is the kernel's with all series, to the byte and with
        its mode."""
        beta = self.series("beta", ("fs/pipe.c", "line 20\n", "line twenty\n"), start="main")
        self.write()
        self.assertEqual(len(beta.patches(self.base)), 1)
        text = (self.root / "fs/pipe.c").read_text()
        self.assertTrue("line seven\n" in text and "line twenty\n" in text)
        below = self.root / "tools/testing/selftests/alpha"
        self.assertEqual((below / "data.txt").read_bytes(), "caf\u00e9\n".encode())
        self.assertEqual(oct((below / "run.sh").stat().st_mode & 0o777), "0o755")
        self.assertEqual(oct((below / "test.c").stat().st_mode & 0o777), "0o644")

    def test_replaced(self):
        """A file that only a replaced series changes is as that one leaves it; one that
        both change is not; the page names what each changes."""
        self.series("beta", ("fs/pipe.c", "line 20\n", "line twenty\n"), start="main")
        self.series("gamma", ("mm/own.c", "", "int own(void)\n{\n\treturn 0;\n}\n"),
                    ("fs/pipe.c", "line 20\n", "line XX\n"), start="main")
        path = self.root / "patches/beta/series.toml"
        put(path, 'replaces = "gamma"\n' + path.read_text())
        self.write()
        self.assertIn("line twenty\n", (self.root / "fs/pipe.c").read_text())
        self.assertIn("int own(void)\n", (self.root / "mm/own.c").read_text())
        self.assertIn("\nmm/own.c::\n\n  gamma: own\n", (self.root / mirrors.PAGE).read_text())
        self.assertEqual(mirrors.stale(self.repo, self.base), [])
        put(self.root / mirrors.PAGE, "old\n")
        self.assertEqual(mirrors.stale(self.repo, self.base), [str(mirrors.PAGE)])

    def test_changed_names(self):
        """A change belongs to the function, macro or type that begins last before it;
        comments between functions and prototypes of others do not."""
        lines = ["#define SIZE\t3", "/* one */", "static int one(void)", "{", "\treturn 1;", "}", "",
                 "int two(int);", "struct three {", "\tint x;", "};", "static bool four __read_mostly = true;",
                 "SYSCALL_DEFINE2(five, int, a,", "\tint, b)", "static DEFINE_PER_CPU(int, six);"]
        numbers = {1: "SIZE", 3: "one", 5: "one", 8: "two", 10: "three", 12: "four", 14: "five", 15: "six"}
        for number, name in numbers.items():
            self.assertEqual(list(mirrors.changed_names(lines, f"@@ -1,0 +{number} @@ int x(void)\n+x\n")), [name])
        for number in (2, 6, 7):
            self.assertEqual(list(mirrors.changed_names(lines, f"@@ -1 +{number} @@\n+x\n")), [])
        self.assertEqual(list(mirrors.changed_names(lines, "@@ -4,2 +5,0 @@\n-x\n")), ["one"])

    def test_stale_files_go(self):
        """Patches that the series no longer has are removed, and so is what is
        no mirror below the mirrored directories; our own pages stay."""
        page = put(self.root / "Documentation/ours.rst", "Ours\n")
        before = self.write()
        put(self.directory / "0003-old.patch", "old\n")
        put(self.root / "tools/testing/selftests/alpha/old.c", "old\n")
        put(self.root / "mm/old.c", "old\n")
        self.assertEqual(self.write(), before)
        self.assertTrue(page.exists())

    def test_cover_text_is_kept(self):
        """The text of the committed cover letter is kept, shortlog and
        diffstat are made anew, and neither date nor version of git is in it."""
        self.write()
        cover = self.directory / "0000-cover-letter.patch"
        put(cover, cover.read_text().replace("*** SUBJECT HERE ***", "alpha: a subject")
            .replace("*** BLURB HERE ***", "What it does.\n\nWhat it costs."))
        put(self.path / "fs/pipe.c", (self.path / "fs/pipe.c").read_text().replace("line 20\n", "line twenty\n"))
        self.commit("alpha: make it twenty")
        self.write()
        text = cover.read_text()
        self.assertEqual(export.blurb(cover), ("alpha: a subject", "What it does.\n\nWhat it costs."))
        self.assertIn("Subject: [PATCH 0/3] alpha: a subject\n", text)
        self.assertIn("A Tester (3):\n  alpha: make it seven\n", text)
        self.assertIn("6 files changed", text)
        self.assertNotRegex(text, r"(?m)^Date: |\*\*\*|^-- $")

    def test_other_base(self):
        """For another base than the reference there are patches, and what they were made from."""
        before = self.write()
        other = replace(self.base, name="v1", reference=False)
        put(self.path / "tools/testing/selftests/alpha/data.txt", "another\n")
        self.commit("alpha: have other data")
        export.write_patches(self.path, self.one, other, other.tag, "HEAD")
        after = contents(self.root)
        self.assertEqual({name for name in after if before.get(name) != after[name]},
                         {f"patches/alpha/v1/{name}" for name in (
                             "0000-cover-letter.patch", "0001-alpha-make-it-seven.patch",
                             "0002-selftests-add-alpha.patch", "0003-alpha-have-other-data.patch",
                             "ported")})
        self.assertEqual(before.keys() - after.keys(), set())

    def test_line_ends_are_kept(self):
        """Lines that end in CR LF do so in the patch, the mirror, and the tree
        that the patch gives."""
        name = "tools/testing/selftests/alpha/crlf.txt"
        put(self.path / name, "one\r\ntwo\n")
        self.commit("selftests: add a file from elsewhere")
        self.write()
        self.assertEqual((self.root / name).read_bytes(), b"one\r\ntwo\n")
        self.assertIn(b"\n+one\r\n+two\n", self.one.patches(self.base)[-1].read_bytes())
        head = tree.apply(self.repo, self.base, [self.one])
        self.assertEqual(git("rev-parse", f"{head}^{{tree}}", cwd=self.repo),
                         git("rev-parse", "HEAD^{tree}", cwd=self.path))

    def main(self, *words: str) -> None:
        """Run the step as a program in this process."""
        with mock.patch.object(export, "repository", lambda base, kdir: self.repo), \
             mock.patch.object(sys, "argv", ["export.py", "--base", "v0", *words]):
            export.main()

    def test_program(self):
        """`make export` takes the commits of the edited tree, after which the
        tree has no work of its own."""
        self.main("--topic", "alpha")
        self.assertEqual(len(self.one.patches(self.base)), 2)
        self.main("--topic", "alpha")
        said = self.said.getvalue()
        self.said.truncate(0)
        tree.edit_tree(self.repo, self.base, self.one)
        self.assertNotIn("work of its own", self.said.getvalue(), said)

    def test_refused(self):
        """Changes that are not committed, and a tree without commits, are
        refused, and nothing is written."""
        put(self.path / "fs/pipe.c", "not committed\n")
        with self.fails(str(self.path), "not committed"):
            self.main("--topic", "alpha")
        git("checkout", "-q", "-f", "--detach", "HEAD^", cwd=self.path)
        with self.fails("not on its branch alpha", "rebase --continue"):
            self.main("--topic", "alpha")
        self.topic("beta")
        with self.fails("nothing to export"):
            self.main("--topic", "beta")
        self.assertFalse(self.directory.exists())
