# SPDX-License-Identifier: GPL-2.0
"""Applying series, the tree that they are edited in, and what robots take."""

import re
import shutil
import subprocess
import sys
from unittest import mock

from support import MERGED, SCRIPTS, USER_CONFIG, KernelCase, git, put

# isort: split
from core import locks
from prove import lint
from send import branches
from source import fetch
from source import tree

SEVEN = ("fs/pipe.c", "line 7\n", "line seven\n")
NINE = ("fs/pipe.c", "line 20\n", "line twenty\n")


class Apply(KernelCase):
    """tree.apply()."""

    def setUp(self):
        super().setUp()
        self.repo = self.imported()

    def show(self, commit: str, path: str = "fs/pipe.c") -> list[str]:
        """The lines of a file in the cached repository."""
        return git("show", f"{commit}:{path}", cwd=self.repo).splitlines()

    def test_applies(self):
        """The commit has both patches, in order, on the base, by nobody's
        name but the patch's; it stays in the repository."""
        head = tree.apply(self.repo, self.base, [self.series("alpha", SEVEN, NINE)])
        lines = self.show(head)
        self.assertEqual((lines[6], lines[19], len(lines)), ("line seven", "line twenty", 30))
        self.assertEqual(git("log", "--format=%s", f"v9.1.2..{head}", cwd=self.repo).splitlines(),
                         ["alpha: change 2", "alpha: change 1"])

    def test_same_commit_twice(self):
        """The same patches give the same commit id, kept or made anew in
        another repository; the second call applies nothing."""
        one = self.series("alpha", SEVEN, NINE)
        head = tree.apply(self.repo, self.base, [one])
        with mock.patch.object(tree, "am", side_effect=AssertionError("applied again")):
            self.assertEqual(tree.apply(self.repo, self.base, [one]), head)
        self.repo.rename(self.dir / "elsewhere")
        tree.worktree(self.dir / "elsewhere", "unused", "v9.1.2")
        (locks.cache() / "tree").rename(self.dir / "trees")
        self.assertEqual(tree.apply(self.imported(), self.base, [one]), head)

    def test_other_patches_other_commit(self):
        """A patch that was edited is applied anew."""
        one = self.series("alpha", SEVEN)
        head = tree.apply(self.repo, self.base, [one])
        patch = one.patches(self.base)[0]
        patch.write_text(patch.read_text().replace("+line seven", "+line 7.0"))
        again = tree.apply(self.repo, self.base, [one])
        self.assertNotEqual(again, head)
        self.assertEqual(self.show(again)[6], "line 7.0")

    def test_does_not_apply(self):
        """A patch that does not apply is told in one sentence with its name,
        the file and the line; the worktree is left clean, and works on.  No
        git identity is needed for that."""
        one = self.series("alpha", SEVEN, NINE)
        patch = one.patches(self.base)[1]
        good = patch.read_text()
        patch.write_text(good.replace("-line 20", "-line 20 as it never was"))
        with self.fails(f"alpha/{patch.name}", "fs/pipe.c line 17 ", "does not apply") as caught:
            tree.apply(self.repo, self.base, [one])
        self.assertNotIn("\n", caught.message)
        place = locks.cache() / "tree/v0/apply"
        self.assertEqual(git("status", "--porcelain", cwd=place), "")
        self.assertEqual(list(self.repo.glob("**/rebase-apply")), [])
        patch.write_text(good)
        self.assertEqual(self.show(tree.apply(self.repo, self.base, [one]))[19], "line twenty")

    def test_user_configuration(self):
        """The user's configuration changes no commit id, neither of the base
        nor of the series."""
        one = self.series("alpha", SEVEN, NINE)
        head = tree.apply(self.repo, self.base, [one])
        self.user_config(USER_CONFIG)
        self.repo.rename(self.dir / "elsewhere")
        (locks.cache() / "tree").rename(self.dir / "trees")
        self.assertEqual(tree.apply(self.imported(), self.base, [one]), head)

    def test_no_patches(self):
        """A topic without a series for the base is refused, with what the base
        has of it."""
        with self.fails("'alpha'", "v0", "no patches"):
            tree.apply(self.repo, self.base, [self.topic("alpha")])
        with self.fails("'beta'", "from upstream", "the half of it since 9.0") as caught:
            tree.apply(self.repo, self.base, [self.topic("beta", merged=MERGED)])
        self.assertNotIn("\n", caught.message)

    def test_already_there(self):
        """A patch whose change the base has is told in one sentence, with what
        is known of it, and the series to use for another base."""
        one = self.series("alpha", SEVEN, NINE)
        patch = one.patches(self.base)[1]
        patch.write_text(patch.read_text().replace("-line 20", "-line XX").replace("+line twenty", "+line 20"))
        with self.fails(f"v9.1.2 already has the change of alpha/{patch.name}: ", "make export") as caught:
            tree.apply(self.repo, self.base, [one])
        self.assertNotIn("from upstream", caught.message)
        put(self.root / "patches/alpha/v1/0001-x.patch", "")
        one = self.topic("alpha", merged=MERGED)
        with self.fails(f"alpha/{patch.name} (from upstream: the half of it since 9.0 (0123456789ab)): ",
                        "patches/alpha/v1 with BASE=v1 if your kernel is 9.2.0") as caught:
            tree.apply(self.repo, self.base, [one])
        self.assertNotIn("\n", caught.message)
        self.assertEqual(git("status", "--porcelain", cwd=locks.cache() / "tree/v0/apply"), "")

    def test_neighbours(self):
        """Series that change neighbouring lines stack, in either order, which
        `git am` by itself refuses; one that is applied alone has to fit."""
        first, second = self.series("alpha", SEVEN), self.series("beta", ("fs/pipe.c", "line 9\n", "line nine\n"))
        for chosen in ([first, second], [second, first]):
            lines = self.show(tree.apply(self.repo, self.base, chosen))
            self.assertEqual((lines[6], lines[8]), ("line seven", "line nine"))
        patch = second.patches(self.base)[0]
        patch.write_text(patch.read_text().replace(" line 8\n", " line 8.0\n"))
        with self.fails(patch.name, "does not apply"):
            tree.apply(self.repo, self.base, [second])

    def test_with_benchmark(self):
        """The benchmark is compiled into the kernel, with the patches that it
        takes, and the revision stays as it is; one that does not apply is told."""
        scripts = self.dir / "um"
        put(scripts / "hotpaths_bench.c", "int main;\n")
        put(scripts / "barriers.patch",
            "--- a/fs/pipe.c\n+++ b/fs/pipe.c\n@@ -1,3 +1,3 @@\n line 1\n-line 2\n+mb 2\n line 3\n")
        put(scripts / "soft-ipi.patch",
            "--- a/fs/pipe.c\n+++ b/fs/pipe.c\n@@ -1,3 +1,3 @@\n-line 1\n+soft 1\n mb 2\n line 3\n")
        put(self.kdir / "kernel/Makefile", "obj-y = fork.o\n")
        self.commit_kdir("Have a Makefile")
        self.enterContext(mock.patch.object(tree, "UM", scripts))
        self.enterContext(mock.patch.object(fetch, "verify", lambda *_: None))
        shutil.rmtree(self.repo)
        repo = self.imported()
        commit = tree.with_benchmark(repo, "v9.1.2")
        self.assertEqual(tree.with_benchmark(repo, "v9.1.2"), commit)
        self.assertEqual(git("diff", "--name-only", "v9.1.2", commit, cwd=repo).split(),
                         ["fs/pipe.c", "kernel/Makefile", "kernel/hotpaths_bench.c"])
        self.assertEqual(git("show", f"{commit}:fs/pipe.c", cwd=repo).splitlines()[:2], ["soft 1", "mb 2"])
        self.assertIn("obj-y += hotpaths_bench.o", git("show", f"{commit}:kernel/Makefile", cwd=repo).splitlines())
        with self.fails("patch"):
            tree.with_benchmark(repo, "v9.1.2", scripts / "soft-ipi.patch")

    def test_variant(self):
        """A variant is the series with a patch on it, the same commit each
        time; one that does not apply is named."""
        repo, one = self.repo, self.series("alpha", ("fs/pipe.c", "line 3\n", "line three\n"))
        with mock.patch.object(tree, "ROOT", self.root):
            path = put(tree.variants(one, self.base) / "held.patch", "What it is for.\n\n"
                       "--- a/fs/pipe.c\n+++ b/fs/pipe.c\n@@ -1,4 +1,4 @@\n line 1\n line 2\n"
                       "-line three\n+line held\n line 4\n")
            held = tree.variant(repo, self.base, one, "held")
            self.assertEqual(tree.variant(repo, self.base, one, "held"), held)
            self.assertEqual(git("rev-parse", held + "^", cwd=repo), tree.apply(repo, self.base, [one]))
            self.assertIn("line held\n", git("show", f"{held}:fs/pipe.c", cwd=repo))
            put(path, path.read_text().replace("line three", "line 3"))
            with self.fails("held.patch of alpha", "make tree"):
                tree.variant(repo, self.base, one, "held")


class Worktree(KernelCase):
    """tree.worktree()."""

    def test_only_what_differs_is_written(self):
        """Going to another revision and back leaves other files' times alone,
        so that a build stays incremental."""
        repo = self.imported()
        head = tree.apply(repo, self.base, [self.series("alpha", SEVEN)])
        path = tree.worktree(repo, "build", "v9.1.2")
        before = (path / "Makefile").stat().st_mtime_ns
        self.assertEqual(tree.worktree(repo, "build", head), path)
        self.assertIn("line seven", (path / "fs/pipe.c").read_text())
        tree.worktree(repo, "build", "v9.1.2")
        self.assertNotIn("line seven", (path / "fs/pipe.c").read_text())
        self.assertEqual((path / "Makefile").stat().st_mtime_ns, before)

    def test_interrupted_run(self):
        """Nothing is left of a run that broke off amid a patch: neither what
        git am remembers, nor changed and added files."""
        repo = self.imported()
        one = self.series("alpha", SEVEN, ("fs/new.c", "", "new\n"))
        with mock.patch.object(tree, "am", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            tree.apply(repo, self.base, [one])
        place = locks.cache() / "tree/v0/apply"
        bad = put(self.dir / "bad.patch", one.patches(self.base)[0].read_text().replace("-line 7\n", "-line X\n"))
        with self.assertRaises(subprocess.CalledProcessError):
            git("am", "-q", one.patches(self.base)[1], bad, cwd=place)
        put(place / "fs/pipe.c", "half\n")
        put(place / "fs/half.c", "half\n")
        git("add", "fs/half.c", cwd=place)
        self.assertEqual(tree.worktree(repo, "apply", "v9.1.2"), place)
        self.assertEqual((git("status", "--porcelain", cwd=place), list(repo.glob("**/rebase-apply"))), ("", []))
        self.assertEqual(git("rev-parse", "HEAD", cwd=place), git("rev-parse", "v9.1.2^{commit}", cwd=repo))
        self.assertEqual(git("show", f"{tree.apply(repo, self.base, [one])}:fs/new.c", cwd=repo), "new")

    def test_made_again(self):
        """A worktree that somebody removed is made again."""
        repo = self.imported()
        path = tree.worktree(repo, "build", "v9.1.2")
        path.rename(self.dir / "gone")
        self.assertEqual(tree.worktree(repo, "build", "v9.1.2"), path)
        self.assertTrue((path / "fs/pipe.c").exists())


class EditTree(KernelCase):
    """tree.edit_tree()."""

    def setUp(self):
        super().setUp()
        self.repo = self.imported()
        self.one = self.series("alpha", SEVEN)
        self.path = tree.edit_tree(self.repo, self.base, self.one)

    def head(self) -> str:
        """The commit that the edited tree is at."""
        return git("rev-parse", "HEAD", cwd=self.path)

    def edit_patch(self) -> None:
        """Change the topic's patch, as `git pull` would."""
        patch = self.one.patches(self.base)[0]
        patch.write_text(patch.read_text().replace("+line seven", "+line 7.0"))

    def test_follows_the_patches(self):
        """Where there is no work in it, it follows the patches."""
        self.edit_patch()
        tree.edit_tree(self.repo, self.base, self.one)
        self.assertIn("line 7.0\n", (self.path / "fs/pipe.c").read_text())
        self.assertEqual(git("symbolic-ref", "--short", "HEAD", cwd=self.path), "alpha")

    def test_own_commits(self):
        """The user's commits are left alone, also when the patches change."""
        put(self.path / "fs/pipe.c", "mine\n")
        git("commit", "-q", "-a", "-m", "mine", cwd=self.path)
        mine = self.head()
        for _ in range(2):
            self.assertEqual(tree.edit_tree(self.repo, self.base, self.one), self.path)
            self.assertEqual(self.head(), mine)
            self.edit_patch()
        self.assertIn("left as it is", self.said.getvalue())

    def test_own_changes(self):
        """So are changes that are not committed."""
        before = self.head()
        put(self.path / "fs/pipe.c", "mine\n")
        self.edit_patch()
        tree.edit_tree(self.repo, self.base, self.one)
        self.assertEqual(((self.path / "fs/pipe.c").read_text(), self.head()), ("mine\n", before))

    def test_removed_by_hand(self):
        """Where somebody removed the directory, the user's commits are there
        again, and left alone from then on."""
        put(self.path / "fs/pipe.c", "mine\n")
        git("commit", "-q", "-a", "-m", "mine", cwd=self.path)
        mine = self.head()
        shutil.rmtree(self.path)
        for _ in range(2):
            self.assertEqual(tree.edit_tree(self.repo, self.base, self.one), self.path)
            self.assertEqual(((self.path / "fs/pipe.c").read_text(), self.head()), ("mine\n", mine))
            self.assertEqual(git("symbolic-ref", "--short", "HEAD", cwd=self.path), "alpha")
            self.edit_patch()

    def test_program(self):
        """make tree names the tree."""
        with mock.patch.object(sys, "argv", ["tree.py", "--base", "v0", "--topic", "alpha"]):
            tree.main()
        self.assertIn(f"{self.path}: branch alpha, 1 patches on v9.1.2", self.said.getvalue())


class Robots(KernelCase):
    """branches.main(), and upstream/: what is ready for robots."""

    def branches(self, *words: str) -> str:
        """Run the step as a program in this process; what it says last."""
        with mock.patch.object(sys, "argv", ["branches.py", "--base", "v0", *map(str, words)]):
            branches.main()
        return self.said.getvalue().splitlines()[-1].split("branches: ")[1]

    def test_history(self):
        """Each series is a branch on the user's own commit of the base, and one command
        pushes them, again after a change; the clone is as it was."""
        git("commit", "-q", "--allow-empty", "-m", "Linux 9.1.2, tagged", cwd=self.kdir)
        git("tag", "v9.1.2", cwd=self.kdir)
        one, _ = self.series("alpha", SEVEN, NINE), self.series("beta", NINE)
        git("init", "-q", "--bare", self.dir / "own", cwd=self.dir)
        before = git("for-each-ref", cwd=self.kdir)
        for text in ("line seven", "line 7.0"):
            patch = one.patches(self.base)[0]
            patch.write_text(patch.read_text().replace("+line seven", f"+{text}"))
            command = self.branches("--kdir", self.kdir)
            self.assertTrue(command.endswith(" push --force URL hotpaths/alpha hotpaths/beta"), command)
            git(*command.replace("URL", str(self.dir / "own")).split()[1:], cwd=self.dir)
            self.assertEqual(git("log", "--format=%s", "hotpaths/alpha", cwd=self.dir / "own").splitlines(),
                             ["alpha: change 2", "alpha: change 1", "Linux 9.1.2, tagged", "Linux 9.1.2"])
            self.assertEqual(git("rev-parse", "hotpaths/beta^", cwd=self.dir / "own"),
                             git("rev-parse", "v9.1.2", cwd=self.kdir))
            self.assertIn(text, git("show", "hotpaths/alpha:fs/pipe.c", cwd=self.dir / "own").splitlines())
        self.assertEqual(git("for-each-ref", cwd=self.kdir), before)

    def test_no_history(self):
        """Without a clone, or where that lacks what came before the base, there are branches,
        and it is said that no robot can merge them."""
        repo = self.imported()
        self.series("alpha", SEVEN)
        git("tag", "v9.1.2", "main", cwd=self.kdir)
        for words in ((), ("--kdir", self.kdir)):
            self.assertIn("give KDIR=", self.branches(*words))
            (made,) = git("for-each-ref", "--format=%(refname)", "refs/heads/hotpaths", cwd=repo).splitlines()
            self.assertEqual(git("log", "--format=%s", made, cwd=repo).splitlines(), ["alpha: change 1", "Linux 9.1.2"])

    def test_lkp(self):
        """The file for lkp-tests takes these branches alone, and names nobody."""
        text = (SCRIPTS.parent / "upstream/lkp-tests/hotpaths").read_text()
        said = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith("#"))
        self.assertEqual(said["branch_denylist"], ".*")
        self.assertTrue(re.fullmatch(said["branch_allowlist"], f"{branches.PREFIX}/pipe"))
        self.assertEqual(set(re.findall("[^ <]+@[^ >]+", text)), {"you@example.org"})

    def test_patches(self):
        """What is for other projects is by nobody yet, as the series are."""
        for path in sorted((SCRIPTS.parent / "upstream").glob("*/*.patch")):
            text = path.read_text()
            self.assertTrue(text.startswith(f"From {'0' * 40} "), path)
            self.assertIn("\nFrom: hotpaths <hotpaths@localhost>\n", text)
            self.assertIsNone(lint.TAGS.search(text), path)


class Code(KernelCase):
    """tree.code_of()."""

    def test_only_what_is_built(self):
        """A file that figures do not depend on changes nothing, any other does."""
        path = tree.edit_tree(self.imported(), self.base, self.topic("beta"))

        def code(name: str) -> str:
            """The code of a tree that has @name, too."""
            put(path / name, "new\n")
            git("add", "-f", name, cwd=path)
            git("commit", "-q", "-m", name, cwd=path)
            return tree.code_of(path / git("rev-parse", "--git-dir", cwd=path), "HEAD")

        before = code("Documentation/x.rst")
        for name in ("tools/x.c", "MAINTAINERS", "arch/hexagon/lib/x.S", "arch/arm/x.c"):
            self.assertEqual(code(name), before, name)
        for name in ("arch/x86/x.c", "arch/um/x.c", "arch/Kconfig", "fs/x.c"):
            after = code(name)
            self.assertNotEqual(after, before, name)
            before = after

    def test_comments(self):
        """Another comment is the same code, in a file of the base, too; what only looks
        like a comment is none."""
        path = tree.edit_tree(self.imported(), self.base, self.topic("beta"))

        def code(text: str, name: str = "fs/x.c") -> str:
            """The code of a tree whose file @name has @text."""
            put(path / name, text)
            git("add", "-f", name, cwd=path)
            git("commit", "-q", "--allow-empty", "-m", "x", cwd=path)
            return tree.code_of(path / git("rev-parse", "--git-dir", cwd=path), "HEAD")

        before = code("#define A 1 /* one */\n/*\n * two\n */\nint x = '\"'; // three\n")
        self.assertEqual(code("// of\n#define A 1\nint x = '\"';\n\n\n/* another */"), before)
        self.assertNotEqual(code("#define A 2\nint x = '\"';\n"), before)
        for one, other in (('char *x = "/* a */";\n', 'char *x = "/* b */";\n'),
                           ('char *x = "a  b";\n', 'char *x = "a b";\n'),
                           ("#error don't // a\nint x;\n", "#error don't // a\nint y; // it's\n")):
            self.assertNotEqual(code(one), code(other))
        self.assertEqual(code("#define A /* one\ntwo */ 1\n"), code("#define A 1 // one\n"))
        before = code("int x;\n")
        self.assertEqual(code("/* new */\n" + (path / "fs/pipe.c").read_text(), "fs/pipe.c"), before)
        git("rm", "-q", "fs/pipe.c", cwd=path)
        self.assertNotEqual(code("int x;\n"), before)


class Explain(KernelCase):
    """tree.explain()."""

    def test_messages(self):
        """The hunk where git names one, else what git says, else that it is silent."""
        one, patch = self.topic("alpha"), self.dir / "alpha/v0/0001-x.patch"
        for message, words in (("error: patch failed: mm/filemap.c:123\nerror: mm/filemap.c: patch does not apply",
                                "mm/filemap.c line 123"),
                               ("error: mm/gone.c: No such file or directory", "mm/gone.c: No such file"),
                               ("fatal: corrupt patch at line 7", "corrupt patch at line 7"),
                               ("", "no reason")):
            text = tree.explain(one, self.base, patch, message)
            self.assertIn(words, text)
            self.assertIn("alpha/0001-x.patch", text)
