# SPDX-License-Identifier: GPL-2.0
"""What make clean removes, and what it leaves alone."""

import sys
from unittest import mock

from support import KernelCase, git, put

# isort: split
from core import clean
from core import locks
from source import tree


class Clean(KernelCase):
    """clean.main() on a cache with builds and an edited tree."""

    def setUp(self):
        super().setUp()
        self.repo = self.imported()
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"))
        self.path = tree.edit_tree(self.repo, self.base, self.one)
        self.cache = locks.cache()
        put(self.cache / "kernel/0123/bzImage", "an image\n")
        put(self.cache / "suite/ltp-0123/ltp", "a program\n")
        put(self.cache / "bench/v0-alpha.json", "{}\n")
        put(self.cache / "download/linux.tar.xz", "a source\n")

    def clean(self, *words: str) -> None:
        """Run the step as a program in this process."""
        with mock.patch.object(sys, "argv", ["clean.py", *words]):
            clean.main()

    def test_rebuilt(self):
        """Builds and the steps' own worktrees go; downloads, repositories and
        edited trees stay."""
        tree.apply(self.repo, self.base, [self.one])
        self.clean()
        self.assertEqual(sorted(path.name for path in self.cache.iterdir()), ["download", "git", "lock", "tree"])
        self.assertEqual([path.name for path in self.cache.glob("tree/*/*")], ["alpha"])

    def test_list(self):
        """What there is and how much it is can be asked for, also while another run
        has the cache; nothing goes."""
        with locks.lock("v0-build"), mock.patch.object(clean, "megabytes", lambda *paths: len(paths)):
            self.clean("--list")
        self.assertIn("       1 MB  kernel: kernels are linked again", self.said.getvalue())
        self.assertTrue((self.cache / "kernel/0123/bzImage").exists())

    def test_all(self):
        """Everything goes, if the edited trees have nothing of their own."""
        self.clean("--all")
        self.assertFalse(self.cache.exists())

    def test_work_is_kept(self):
        """Changes and commits that were not exported are not deleted."""
        put(self.path / "fs/pipe.c", "changed\n")
        with self.fails(str(self.path), "make export TOPIC=alpha BASE=v0"):
            self.clean("--all")
        git("commit", "-q", "-a", "-m", "alpha: change it", cwd=self.path)
        with self.fails("not exported"):
            self.clean("--all")
        git("reset", "-q", "--hard", "HEAD^", cwd=self.path)
        put(self.path / "tools/new_test.c", "new\n")
        with self.fails("not exported"):
            self.clean("--all")
        self.assertTrue((self.cache / "kernel/0123/bzImage").exists())

    def test_another_run(self):
        """While another run holds a lock, nothing is removed."""
        with locks.lock("v0-build"), self.fails("v0-build", "another run"):
            self.clean()
        self.assertTrue((self.cache / "kernel/0123/bzImage").exists())
