# SPDX-License-Identifier: GPL-2.0
"""What the tests share: the modules of scripts/ on the path, a private cache,
programs faked on PATH, and a tiny git tree that passes for a kernel."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

from core import install
from core import locks
from core import model
from core import process
from reports import figures
from reports import runs
from send import export
from send import mirrors
from source import fetch

BASES = """
[base."v0"]
tag = "v9.1.2"
version = "9.1.2"
reference = true
status = "a fake one"
uml = true

[base."v1"]
tag = "v9.2.0"
version = "9.2.0"
url = "https://kernel.example/linux-9.2.0.tar.xz"
status = "another fake one"
"""

MAKEFILE = """# SPDX-License-Identifier: GPL-2.0
VERSION = 9
PATCHLEVEL = 1
SUBLEVEL = 2
EXTRAVERSION =
NAME = Fake Kernel
"""

GET_MAINTAINER = """#!/bin/sh
case "$*" in
*--nol*) echo "Fs Person <fs@example.com>" ;;
*) printf '%s\\n' "Fs Person <fs@example.com>" "linux-fs@example.com" ;;
esac
"""

PIPE = "".join(f"line {number}\n" for number in range(1, 31))

SERIES = """summary = "A fake series"
tests.target = "{name}"

[base."v0"]
merged = [{merged}]
"""
# What a base has from upstream, as series.toml has it.
MERGED = '{ what = "the half of it", release = "9.0", commit = "0123456789abcdef" }'


# A user's configuration that signs all commits, with a program that cannot,
# and formats patches in another way.
USER_CONFIG = """[commit]
	gpgSign = true
[gpg]
	program = false
[format]
	signOff = true
[diff]
	noprefix = true
"""


def git(*argv, cwd: Path) -> str:
    """Run git as somebody who is not the tooling; its output, stripped."""
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "A Tester"), ("EMAIL", "tester@example.com"),
                               ("DATE", "2026-02-03T04:05:06Z"))}
    return subprocess.run(["git", *map(str, argv)], cwd=cwd, check=True, capture_output=True, text=True,
                          env={**os.environ, **who}).stdout.strip()


def put(path: Path, text: str, mode: int = 0o644) -> Path:
    """Write @text to @path, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def contents(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of every file below @directory, .git left out."""
    return {str(path.relative_to(directory)): (path.stat().st_mode, path.read_bytes())
            for path in sorted(directory.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(directory).parts}


class Case(unittest.TestCase):
    """A test with a temporary directory, self.dir, that also holds its cache,
    with no git configuration but its own.  self.said: what was printed."""

    def setUp(self):
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        self.enterContext(mock.patch.dict(os.environ, {
            "XDG_CACHE_HOME": str(self.dir / "cache"), "HOME": str(self.dir), "LC_ALL": "C",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(self.dir), "PATH": f"{self.bin}:{os.environ['PATH']}"}))
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "KDIR", "XDG_DATA_HOME"):
            os.environ.pop(name, None)
        # No test installs anything.
        self.enterContext(mock.patch.object(install, "missing", lambda _packages: []))
        self.said = self.enterContext(contextlib.redirect_stdout(io.StringIO()))

    def fake(self, name: str, script: str) -> None:
        """A shell script called @name, first on PATH."""
        put(self.bin / name, "#!/bin/sh\n" + script, 0o755)

    def user_config(self, text: str) -> None:
        """Let git find @text as the user's own configuration from now on."""
        put(self.dir / ".gitconfig", text)
        os.environ.pop("GIT_CONFIG_GLOBAL", None)

    def fails(self, *words: str):
        """Expect a Failure that has all @words in it; its message is in the
        returned object's .message after the with block."""
        return Fails(self, words)


class Fails:
    """The context of Case.fails."""

    def __init__(self, case: Case, words: tuple[str, ...]):
        self.case, self.words, self.message = case, words, ""

    def __enter__(self):
        return self

    def __exit__(self, kind, err, _trace):
        self.case.assertIsNotNone(kind, "no Failure was raised")
        if not issubclass(kind, process.Failure):
            return False
        self.message = str(err)
        for word in self.words:
            self.case.assertIn(word, self.message)
        return True


class KernelCase(Case):
    """A test with a checkout of its own (self.root), a fake kernel in git
    (self.kdir) and its import into the cache (self.repo) as base v0 (self.base)."""

    def setUp(self):
        super().setUp()
        self.root = self.dir / "root"
        put(self.root / "bases.toml", BASES)
        (self.root / "patches").mkdir()
        put(self.root / "README.md", "")
        for module in (model, export, mirrors, figures, runs):
            self.enterContext(mock.patch.object(module, "ROOT", self.root))
        self.base = model.find_base("v0")
        self.kdir = self.dir / "linux"
        put(self.kdir / "Makefile", MAKEFILE)
        put(self.kdir / "MAINTAINERS", "PIPE\nM:\tFs Person <fs@example.com>\n")
        put(self.kdir / "fs/pipe.c", PIPE)
        put(self.kdir / "fs/kept.orig", "a file of the release that .gitignore names\n")
        put(self.kdir / ".gitignore", "*.orig\n")
        put(self.kdir / "scripts/get_maintainer.pl", GET_MAINTAINER, 0o755)
        git("init", "-q", "-b", "main", cwd=self.kdir)
        self.commit_kdir("Linux 9.1.2")

    def commit_kdir(self, subject: str) -> None:
        """Commit all of the fake kernel's tree."""
        git("add", "-A", "-f", ".", cwd=self.kdir)
        git("commit", "-q", "-m", subject, cwd=self.kdir)

    def imported(self) -> Path:
        """The fake kernel as the cached repository of the base."""
        repo = locks.cache() / "git" / self.base.name
        if not repo.exists():
            fetch.store(self.kdir, self.base, repo)
        return repo

    def topic(self, name: str, merged: str = "", more: str = "") -> model.Topic:
        """A topic of the temporary checkout, without patches yet; @more is
        added to its series.toml."""
        put(self.root / "patches" / name / "series.toml",
            SERIES.format(name=name, merged=merged) + more)
        return model.find_topic(name)

    def series(self, name: str, *edits: tuple[str, str, str], start: str = "HEAD") -> model.Topic:
        """A topic with one patch for each of @edits (path, old, new), made on
        the revision @start of the fake kernel and kept there as branch @name."""
        one = self.topic(name)
        git("checkout", "-q", "-b", name, start, cwd=self.kdir)
        begin = git("rev-parse", "HEAD", cwd=self.kdir)
        for number, (path, old, new) in enumerate(edits, 1):
            target = self.kdir / path
            before = target.read_text() if target.exists() else ""
            self.assertIn(old, before)
            put(target, before.replace(old, new, 1))
            self.commit_kdir(f"{name}: change {number}")
        git("format-patch", "-q", "--full-index", "--no-signature", "-o", self.root / "patches" / name / "v0",
            f"{begin}..HEAD", cwd=self.kdir)
        git("checkout", "-q", "main", cwd=self.kdir)
        return one
