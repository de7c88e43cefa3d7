# SPDX-License-Identifier: GPL-2.0
"""What lint says of a series, without a compiler."""

from dataclasses import replace
from unittest import mock

from support import KernelCase, git, put

# isort: split
import export
import lint
import tree
from ktap import FAILED, PASSED


class Committed(KernelCase):
    """lint.committed(): the patches are as exported, and so are the mirrors."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(lint, "ROOT", self.root))
        self.repo, self.file = self.imported(), "tools/testing/selftests/alpha/test.c"
        self.one = self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"), (self.file, "", "a test\n"))
        self.export(self.on)
        git("init", "-q", cwd=self.root)
        git("add", "-A", ".", cwd=self.root)

    def export(self, on) -> None:
        """Export the series for @on from what the patches give."""
        head = tree.apply(self.repo, self.on, [self.one])
        export.write(tree.worktree(self.repo, "apply", head), self.one, on, on.tag, head)

    def found(self, on) -> dict[str, tuple[str, str]]:
        """Verdict and reason by name."""
        head = tree.apply(self.repo, self.on, [self.one])
        found = lint.committed(self.one, on, tree.worktree(self.repo, "apply", head), head)
        return {one.name: (one.verdict, one.why) for one in found}

    def test_reference(self):
        """On the reference base, a patch or a mirror that was edited by hand
        is found, and so is a file that no patch adds."""
        good = {"alpha: patches are as exported": (PASSED, ""), "alpha: mirrors are in sync": (PASSED, "")}
        self.assertEqual(self.found(self.on), good)
        put(self.root / self.file, "another test\n")
        self.assertEqual(self.found(self.on)["alpha: mirrors are in sync"][0], FAILED)
        put(self.root / self.file, "a test\n")
        self.assertEqual(self.found(self.on), good)
        put(self.root / "tools/testing/selftests/alpha/more.c", "")
        git("add", "-A", ".", cwd=self.root)
        self.assertIn("more.c differs", self.found(self.on)["alpha: mirrors are in sync"][1])
        put(self.one.patches(self.on)[0].with_name("0003-more.patch"), "")
        self.assertIn("make export TOPIC=alpha BASE=v0", self.found(self.on)["alpha: patches are as exported"][1])

    def test_other_base(self):
        """The mirrors are not of another base."""
        other = replace(self.on, name="v1", reference=False)
        self.export(other)
        put(self.root / self.file, "another test\n")
        self.assertEqual(self.found(other), {"alpha: patches are as exported": (PASSED, "")})
