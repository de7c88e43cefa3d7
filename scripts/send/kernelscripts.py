# SPDX-License-Identifier: GPL-2.0
"""The kernel's own scripts, asked about a patch."""

from pathlib import Path

from core.process import output

# What checkpatch may not say of any patch: a directory has its line in
# MAINTAINERS from the first patch that adds to it, which checkpatch cannot see
# from a later one; maintainers() can.
IGNORED = "FILE_PATH_CHANGES"
# What get_maintainer.pl names for every patch.
EVERYBODY = "linux-kernel@vger.kernel.org"


def maintainers(tree: Path, patch: Path) -> list[str]:
    """Whom get_maintainer.pl of @tree names for @patch, people and lists, by
    MAINTAINERS alone and without their roles."""
    return output(tree / "scripts/get_maintainer.pl", "--no-git", "--no-git-fallback", "--norolestats", patch,
                  cwd=tree, check=False).splitlines()
