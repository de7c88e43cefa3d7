# SPDX-License-Identifier: GPL-2.0
"""What lint says of a series, without a compiler."""

from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

from support import KernelCase, git, put

# isort: split
from test_cover import GOOD

# isort: split
from core import model
from core.ktap import FAILED, PASSED, Result
from prove import lint
from send import export
from send import mirrors
from source import tree


LETTER = GOOD.replace("pipes", "alpha").replace("TOPIC=pipe", "TOPIC=alpha")


class Committed(KernelCase):
    """lint.committed(): the patches are as exported, and so are the mirrors."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(lint, "ROOT", self.root))
        self.repo, self.file = self.imported(), "tools/testing/selftests/alpha/test.c"
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"), (self.file, "", "a test\n"))
        self.export(self.base)
        git("init", "-q", cwd=self.root)
        git("add", "-A", ".", cwd=self.root)

    def export(self, base) -> None:
        """Export the series for @base from what the patches give."""
        head = tree.apply(self.repo, self.base, [self.one])
        export.write_patches(tree.worktree(self.repo, "apply", head), self.one, base, base.tag, head)

    def found(self, base) -> dict[str, tuple[str, str]]:
        """Verdict and reason by name."""
        head = tree.apply(self.repo, self.base, [self.one])
        found = lint.committed(self.one, base, tree.worktree(self.repo, "apply", head), base.tag, head)
        return {one.name: (one.verdict, one.why) for one in found}

    def test_reference(self):
        """A patch that was edited by hand is found, and so is a file that is
        none of them; on the reference base, a mirror, and a file that no series
        changes."""
        self.assertEqual(self.found(self.base), {"alpha: patches are as exported": (PASSED, "")})
        mirrors.write(self.repo, self.base)
        self.assertEqual(lint.mirrored(self.base, self.repo).verdict, PASSED)
        for path, text, why in ((self.file, "another test\n", "test.c differs"),
                                ("fs/pipe.c", "line\n", "pipe.c differs"),
                                ("tools/testing/selftests/alpha/more.c", "", "more.c differs")):
            before = (self.root / path).read_text() if (self.root / path).exists() else None
            put(self.root / path, text)
            self.assertIn(why, lint.mirrored(self.base, self.repo).why)
            if before is not None:
                put(self.root / path, before)
        put(self.one.patches(self.base)[0].with_name("0003-more.patch"), "")
        self.assertIn("make export TOPIC=alpha BASE=v0", self.found(self.base)["alpha: patches are as exported"][1])

    def test_needs(self):
        """What a topic needs is applied before the lock is taken that this takes, too."""
        held = []

        @contextmanager
        def once(name: str):
            """As lock(), but a second time is no wait for ever."""
            self.assertNotIn(name, held)
            held.append(name)
            yield
            held.remove(name)

        for name, line in (("beta", "line 3\n"), ("gamma", "line 5\n")):
            self.series(name, ("fs/pipe.c", line, f"{name}\n"))
        path = self.root / "patches/alpha/series.toml"
        put(path, 'needs = ["beta", "gamma"]\n' + path.read_text())
        self.one = model.find_topic("alpha")
        head = tree.apply(self.repo, self.base, [self.one])
        for module in (lint, tree):
            self.enterContext(mock.patch.object(module, "lock", once))
        self.enterContext(mock.patch.object(lint, "patch_texts", lambda *_: []))
        self.enterContext(mock.patch.object(lint, "text_inputs", lambda *_: ["inputs"]))
        self.assertTrue(list(lint.written(self.one, self.base, self.repo, head, False)))


class Texts(KernelCase):
    """lint.patch_texts(): what is said of a patch without a compiler."""

    def setUp(self):
        super().setUp()
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"))
        put(self.one.cover(self.base), "Subject: [PATCH 0/1] alpha\n\nWhy.\n\n" + LETTER)
        # The checkers themselves are not on trial, nor installed.
        for name, fake in (("complaint", lambda *_argv, **_more: ""), ("search_path", lambda: "")):
            self.enterContext(mock.patch.object(lint, name, fake))

    def failed(self) -> list[str]:
        """The names of what is not passed, after the patch's."""
        return [one.name.rpartition(": ")[2] for one in lint.patch_texts(self.one, self.base, self.kdir)
                if one.verdict != PASSED]

    def test_maintainers(self):
        """The list that gets every patch does not maintain anything."""
        self.assertEqual(self.failed(), [])
        script = self.kdir / "scripts/get_maintainer.pl"
        put(script, "#!/bin/sh\necho linux-kernel@vger.kernel.org\n", 0o755)
        self.assertEqual(self.failed(), ["get_maintainer"])

    def test_cover(self):
        """A cover letter with a placeholder is not written, nor one of what is to be
        sent that lacks a section."""
        letter = self.one.cover(self.base)
        complete = letter.read_text()
        for old, new in (("alpha\n\nWhy.", "*** SUBJECT HERE ***\n\nWhy."), ("Why.", "*** BLURB HERE ***")):
            put(letter, complete.replace(old, new))
            self.assertEqual(self.failed(), ["written"])
        put(letter, complete.replace("Costs", "Prices"))
        self.assertEqual(self.failed(), ["written"])
        self.base = replace(self.base, reference=False)
        self.assertEqual(self.failed(), [])
        put(letter, complete + "*** BLURB HERE ***\n")
        self.assertEqual(self.failed(), ["written"])

    def test_measured(self):
        """A message of what is to be sent has the measured numbers that are known
        of it, its Date and diff aside."""
        (patch,) = self.one.patches(self.base)
        put(patch, patch.read_text().replace("\n---\n", "\n9 ns, 2 -> 0.\n---\n", 1))
        self.assertEqual(self.failed(), ["measured numbers"])
        self.one = replace(self.one, measured={"1": 2})
        self.assertEqual(self.failed(), [])
        self.one = replace(self.one, measured={"1": 1})
        self.assertEqual(self.failed(), ["measured numbers"])
        self.base = replace(self.base, reference=False)
        self.assertEqual(self.failed(), [])

    def test_pages(self):
        """README and our own pages, not those that are mirrored, have no measured
        numbers outside of blocks."""
        for name in ("README.md", "Documentation/own.rst", "Documentation/mm/theirs.rst"):
            put(self.root / name, "9 ns\n")
        self.enterContext(mock.patch.object(lint, "ROOT", self.root))
        self.assertEqual([(one.name, one.verdict) for one in lint.pages()],
                         [("README.md: measured numbers", FAILED), ("Documentation/own.rst: measured numbers", FAILED)])
        put(self.root / "README.md", "<!-- figures: table -->\n9 ns\n<!-- end of figures -->\n")
        self.assertEqual(next(lint.pages()), Result("README.md: measured numbers", PASSED, ""))

    def test_tags(self):
        """No person's tag is stored."""
        (patch,) = self.one.patches(self.base)
        put(patch, patch.read_text().replace("\n---\n", "\nReviewed-by: A B <a@example.com>\n---\n", 1))
        self.assertEqual(self.failed(), ["no person's tag"])


class Checkpatch(KernelCase):
    """lint.checkpatch(): what checkpatch says, but for labels of asm goto."""

    SPACING = ("CHECK:SPACING: spaces preferred around that '%' (ctx:WxV)\n#23: FILE: asm/uaccess.h:639:\n"
               "+\t\t\t {}\n \t\t\t                     ^")
    LABEL = SPACING.format("_ASM_EXTABLE_UA(1b, %l[fault])")
    TOTAL = "total: 0 errors, 0 warnings, 6 checks, 75 lines checked"

    def left(self, *reports: str, message: str = "") -> str:
        """What checkpatch() makes of @reports on a patch with that message."""
        self.enterContext(mock.patch.object(lint, "search_path", lambda: ""))
        with mock.patch.object(lint, "complaint", lambda *_argv, **_more: "\n\n".join(reports)):
            return lint.checkpatch(self.kdir, put(self.root / "0001-a.patch", f"Subject: a\n\n{message}\n"))

    def test_content(self):
        """Nothing said, or nothing but of labels."""
        self.assertEqual(self.left(), "")
        self.assertEqual(self.left(self.LABEL, self.LABEL, self.TOTAL), "")

    def test_others(self):
        """Everything else is left: other reports, and that it cannot run."""
        for other in (self.SPACING.format("a %b"), "ERROR:OPEN_BRACE: open brace\n#1: FILE: a.c:1:\n+{"):
            self.assertEqual(self.left(self.LABEL, other, self.TOTAL), f"{other}\n\n{self.TOTAL}")
        self.assertEqual(self.left("Can't locate strict.pm"), "Can't locate strict.pm")

    def test_backport(self):
        """Of what is mainline's, errors are left."""
        taste = "WARNING:LONG_LINE: line too long\n#1: FILE: a.c:1:\n+a", self.SPACING.format("a %b")
        error, words = "ERROR:OPEN_BRACE: open brace\n#1: FILE: a.c:1:\n+{", "commit 0123456789ab upstream."
        self.assertEqual(self.left(*taste, self.TOTAL, message=words), "")
        self.assertEqual(self.left(*taste, error, message=words), error)
        self.assertNotEqual(self.left(*taste, self.TOTAL, message=f"It is like {words}"), "")


class Remembered(KernelCase):
    """lint.lint_series() builds once what passed."""

    def setUp(self):
        super().setUp()
        self.repo, self.built, self.verdict = self.imported(), 0, PASSED
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"))
        self.fake("sparse", "echo 0.6.4\n")

        def builds(one, _on, _repo, _head):
            self.built += 1
            yield Result(f"{one.name}: builds", self.verdict)

        for name, other in (("builds", builds), ("written", lambda *_: iter(())),
                            ("mirrored", lambda *_: Result("mirrors", PASSED))):
            self.enterContext(mock.patch.object(lint, name, other))

    def lint(self, fresh: bool = False) -> list[tuple[str, str]]:
        """Name and verdict of each result."""
        found = [(one.name, one.verdict) for one in lint.lint(self.base, [self.one], self.repo, fresh)]
        self.assertEqual(found.pop(), ("mirrors", PASSED))
        return found

    def test_once(self):
        """The second time, the same results come without a build, unless they
        are asked for afresh or sparse is another; a failure is built again."""
        good = [("alpha: git am", PASSED), ("alpha: builds", PASSED)]
        self.assertEqual([self.lint(), self.lint()], [good, good])
        self.assertEqual(self.built, 1)
        self.assertEqual(self.lint(fresh=True), good)
        self.fake("sparse", "echo 0.6.5\n")
        self.assertEqual(self.lint(), good)
        self.assertEqual(self.built, 3)
        self.fake("sparse", "echo 0.6.6\n")
        self.verdict = FAILED
        self.assertEqual([self.lint()[1], self.lint()[1]], [("alpha: builds", FAILED)] * 2)
        self.assertEqual(self.built, 5)

    def test_words(self):
        """Other words in a message are no reason to build; another subject, by
        which results are named, is, and so is another source."""
        (patch,) = self.one.patches(self.base)
        old = patch.read_text()
        for text, builds in ((old, 1), (old.replace("\n---\n", "\nMore.\n---\n"), 1),
                             (old.replace("alpha: change 1", "alpha: edit 1"), 2),
                             (old.replace("line seven", "line 7a"), 3)):
            put(patch, text)
            self.assertEqual(self.lint(), [("alpha: git am", PASSED), ("alpha: builds", PASSED)])
            self.assertEqual(self.built, builds)

    def test_whitespace(self):
        """The line below a heading is no conflict marker; a space at the end of a line
        is told, and so is a marker in code."""
        git("init", "-q", cwd=self.dir)
        for name, text, words in (("a.txt", "", ""), ("page.rst", "Reading\n=======\n", ""),
                                  ("page.rst", "Reading\n======= \n", "trailing whitespace"),
                                  ("a.c", "=======\n", "a.c:1: leftover conflict marker")):
            put(self.dir / name, text)
            git("add", name, cwd=self.dir)
            git("commit", "-q", "--allow-empty", "-m", name, cwd=self.dir)
            if name != "a.txt":
                found = lint.whitespace(self.dir, "HEAD")
                self.assertEqual(bool(found), bool(words), name)
                self.assertIn(words, found)

    def test_does_not_apply(self):
        """A series that does not apply is one failure, and nothing is built."""
        (patch,) = self.one.patches(self.base)
        put(patch, patch.read_text().replace("-line 7\n", "-line X\n"))
        self.assertEqual(self.lint(), [("alpha: git am", FAILED)])
        self.assertEqual(self.built, 0)
