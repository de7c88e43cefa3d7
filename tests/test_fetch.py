# SPDX-License-Identifier: GPL-2.0
"""Getting a base: mirrors, downloads, and the user's own tree."""

import hashlib
import os
import subprocess
from dataclasses import replace
from unittest import mock

from support import MERGED, Case, KernelCase, contents, git, put

# isort: split
from core import locks
from core import model
from source import fetch

GOOD = "the archive"
# curl, as far as it is used: the last argument is the URL, -o names the file.
# It takes the answers from files in $ANSWERS named after the URL's host.
CURL = """
while [ $# -gt 1 ]; do
	[ "$1" = -o ] && out=$2
	[ "$1 $2" = "-C -" ] && resume=1
	shift
done
host=${1#*://}
host=${host%%/*}
echo "$1" >> ANSWERS/log
[ -e "ANSWERS/$host" ] || { echo "curl: (6) Could not resolve host: $host"; exit 6; }
[ "$resume" ] || : > "$out"
cat "ANSWERS/$host" >> "$out"
[ ! -e "ANSWERS/$host.status" ] || { echo "curl: (18) $host closed the transfer"; exit 18; }
"""


class Mirrors(Case):
    """fetch.debian_mirrors() with a fake apt-get."""

    def test_sites(self):
        """Debian's own mirrors, each once, in apt's order; no other origin. The
        security archive has what is below pool/updates, and nothing else."""
        self.fake("apt-get", """[ "$*" = 'indextargets --format $(SITE) $(ORIGIN)' ] || exit 1
            echo 'http://one.example/debian Debian'
            echo 'http://one.example/debian Debian'
            echo 'http://security.example/debian-security Debian'
            echo 'http://vendor.example/apt Some Vendor'
            echo 'http://nameless.example/apt '
            echo 'http://two.example/debian Debian'
            """)
        self.assertEqual(fetch.debian_mirrors("pool/main/l/linux/linux_1.orig.tar.xz"),
                         ["http://one.example/debian", "http://two.example/debian"])
        self.assertEqual(fetch.debian_mirrors("pool/updates/main/l/linux-1/linux-source-1_all.deb"),
                         ["http://security.example/debian-security"])

    def test_no_apt(self):
        """A machine without apt has none."""
        with mock.patch.dict("os.environ", {"PATH": str(self.bin)}):
            self.assertEqual(fetch.debian_mirrors("pool/main/a"), [])


class Download(Case):
    """fetch.download() with a fake curl."""

    def setUp(self):
        super().setUp()
        self.base = model.Base("v0", "v9.1.2", "9.1.2", "fake", pool="pool/l/linux_9.1.2.orig.tar.xz",
                                 sha256=hashlib.sha256(GOOD.encode()).hexdigest(),
                                 url="https://kernel.example/v9.x/linux-9.1.2.tar.xz")
        self.answers = self.dir / "answers"
        self.answers.mkdir()
        self.fake("curl", CURL.replace("ANSWERS", str(self.answers)))
        self.fake("apt-get", "echo 'http://one.example/debian Debian'; echo 'http://two.example/debian Debian'\n")
        self.archive = locks.cache() / "download/linux_9.1.2.orig.tar.xz"
        self.part = self.archive.with_name(self.archive.name + ".part")

    def asked(self) -> list[str]:
        """The URLs that curl was given."""
        log = self.answers / "log"
        return log.read_text().split() if log.exists() else []

    def test_first_mirror(self):
        """The first mirror that has the file is enough, and the second call
        asks nobody."""
        put(self.answers / "one.example", GOOD)
        self.assertEqual(fetch.download(self.base), self.archive)
        self.assertEqual(self.archive.read_text(), GOOD)
        self.assertEqual(fetch.download(self.base), self.archive)
        self.assertEqual(self.asked(), ["http://one.example/debian/pool/l/linux_9.1.2.orig.tar.xz"])
        self.assertFalse(self.part.exists())

    def test_resume(self):
        """A download that broke off keeps its part and goes on from there."""
        put(self.answers / "one.example", GOOD[:4])
        put(self.answers / "one.example.status", "")
        with self.fails("v0"):
            fetch.download(self.base)
        self.assertEqual(self.part.read_text(), GOOD[:4])
        self.assertFalse(self.archive.exists())
        put(self.answers / "one.example", GOOD[4:])
        (self.answers / "one.example.status").unlink()
        self.assertEqual(fetch.download(self.base).read_text(), GOOD)

    def test_wrong_checksum(self):
        """A file with another checksum is removed, and the next mirror asked."""
        put(self.answers / "one.example", "something else")
        put(self.answers / "two.example", GOOD)
        self.assertEqual(fetch.download(self.base).read_text(), GOOD)
        self.assertEqual(len(self.asked()), 2)

    def test_kernel_org_last(self):
        """kernel.org comes last, and its own archive has its own name."""
        put(self.answers / "kernel.example", "packed differently")
        self.assertEqual(fetch.download(self.base), self.archive.with_name("linux-9.1.2.tar.xz"))
        self.assertEqual([url.split("/")[2] for url in self.asked()], ["one.example", "two.example", "kernel.example"])

    def test_nobody_answers(self):
        """The failure has what each source answered, and a way out."""
        put(self.answers / "two.example", "")
        put(self.answers / "two.example.status", "")
        with self.fails("resolve host: one.example", "two.example closed", "resolve host: kernel.example",
                        "KDIR=") as caught:
            fetch.download(self.base)
        self.assertNotIn("\n", caught.message)

    def test_no_source(self):
        """A base that only Debian has, on a machine without mirrors, is said
        to have no source."""
        self.fake("apt-get", "exit 0\n")
        with self.fails("no source", "KDIR="):
            fetch.download(replace(self.base, url=""))
        self.assertEqual(self.asked(), [])


class Archive(KernelCase):
    """fetch.repository() from a downloaded archive."""

    def test_import(self):
        """The archive becomes a repository with the base's tag, all of its
        files in it; the second call and the same source give the same."""
        self.enterContext(mock.patch.object(fetch, "debian_mirrors", lambda _: []))
        base = replace(self.base, url="https://kernel.example/linux-9.1.2.tar.gz")
        archive = locks.cache() / "download/linux-9.1.2.tar.gz"
        archive.parent.mkdir()
        git("archive", "--prefix=linux-9.1.2/", "-o", archive, "HEAD", cwd=self.kdir)
        repo = fetch.repository(base)
        self.assertEqual(git("rev-parse", "v9.1.2^{tree}", cwd=repo), git("rev-parse", "HEAD^{tree}", cwd=self.kdir))
        self.assertIn("fs/kept.orig", git("ls-tree", "-r", "--name-only", "v9.1.2", cwd=repo).splitlines())
        self.assertEqual(fetch.repository(base), repo)
        commit = git("rev-parse", "v9.1.2^{commit}", cwd=repo)
        repo.rename(self.dir / "elsewhere")
        self.assertEqual(git("rev-parse", "v9.1.2^{commit}", cwd=fetch.repository(base)), commit)
        self.assertEqual(list(locks.cache().glob("**/*.part")), [])

    def test_package(self):
        """So does an archive within a package of Debian's."""
        self.enterContext(mock.patch.object(fetch, "debian_mirrors", lambda _: []))
        package = locks.cache() / "download/linux-source-9.1_9.1.2_all.deb"
        base = replace(self.base, pool=f"pool/{package.name}", member="usr/src/linux-source-9.1.tar.gz")
        root = self.dir / "package"
        put(root / "DEBIAN/control", "Package: linux-source-9.1\nVersion: 9.1.2\nArchitecture: all\n"
                                     "Maintainer: nobody <nobody@example.com>\nDescription: source\n")
        (root / base.member).parent.mkdir(parents=True)
        git("archive", "--prefix=linux-source-9.1/", "-o", root / base.member, "HEAD", cwd=self.kdir)
        package.parent.mkdir()
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, package], check=True, capture_output=True)
        repo = fetch.repository(base)
        self.assertEqual(git("rev-parse", "v9.1.2^{tree}", cwd=repo), git("rev-parse", "HEAD^{tree}", cwd=self.kdir))
        self.assertEqual(list(locks.cache().glob("**/*.part")), [])

    def test_interrupted_import(self):
        """An import that broke off is made anew."""
        repo = locks.cache() / "git/v0"
        put(repo.with_name("v0.part") / "HEAD", "half\n")
        fetch.store(self.kdir, self.base, repo)
        self.assertEqual(git("log", "-1", "--format=%an %s", "v9.1.2", cwd=repo), "hotpaths Linux 9.1.2")


class Kdir(KernelCase):
    """fetch.from_kdir(): the user's own tree is checked, and only read."""

    def setUp(self):
        super().setUp()
        self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"), ("fs/pipe.c", "line 9\n", "line nine\n"),
                    ("tools/new.c", "", "new\n"), ("tools/new.c", "new\n", "newer\n"))

    def state(self):
        """All that must not change in the user's tree."""
        return (contents(self.kdir), git("for-each-ref", cwd=self.kdir), git("rev-parse", "HEAD", cwd=self.kdir),
                git("status", "--porcelain", cwd=self.kdir), git("stash", "list", cwd=self.kdir))

    def refused(self, *words: str) -> None:
        """The tree is refused in one sentence, nothing is imported, and the
        tree is as it was."""
        before = self.state()
        with self.fails(*words) as caught:
            fetch.repository(self.base, str(self.kdir))
        self.assertNotIn("\n", caught.message)
        self.assertEqual(self.state(), before)
        self.assertEqual(list((locks.cache() / "git").glob("*-kdir-*[0-9a-f]")), [])

    def test_the_release(self):
        """A clean tree of the release is imported, once, and not written to."""
        before = self.state()
        repo = fetch.repository(self.base, str(self.kdir))
        self.assertEqual(git("rev-parse", "v9.1.2^{tree}", cwd=repo), git("rev-parse", "HEAD^{tree}", cwd=self.kdir))
        self.assertEqual(fetch.repository(self.base, str(self.kdir)), repo)
        self.assertEqual(self.state(), before)
        self.assertTrue(repo.is_relative_to(self.dir / "cache"))

    def test_a_distribution_tree(self):
        """Commits that leave the files of the patches alone are accepted, and
        imported apart from the plain release."""
        plain = fetch.repository(self.base, str(self.kdir))
        put(self.kdir / "fs/other.c", "mine\n")
        self.commit_kdir("mine")
        repo = fetch.repository(self.base, str(self.kdir))
        self.assertNotEqual(repo, plain)
        self.assertEqual(git("show", "v9.1.2:fs/other.c", cwd=repo), "mine")

    def test_touched_blobs(self):
        """A file's id on the base is that of the first patch which names it;
        a file that the series adds has none."""
        self.assertEqual(fetch.touched_blobs(self.base),
                         {"fs/pipe.c": git("rev-parse", "main:fs/pipe.c", cwd=self.kdir)})

    def test_other_release(self):
        """Another release is named, with the one that is wanted."""
        put(self.kdir / "Makefile", (self.kdir / "Makefile").read_text().replace("SUBLEVEL = 2", "SUBLEVEL = 3"))
        self.commit_kdir("Linux 9.1.3")
        self.refused("9.1.3", "9.1.2", "v0, v1")

    def test_other_base(self):
        """The release of another base is told with that base."""
        put(self.kdir / "Makefile", (self.kdir / "Makefile").read_text()
            .replace("PATCHLEVEL = 1", "PATCHLEVEL = 2").replace("SUBLEVEL = 2", "SUBLEVEL = 0"))
        self.commit_kdir("Linux 9.2.0")
        self.refused("9.2.0", "9.1.2", "BASE=v1")

    def test_patch_is_there(self):
        """A tree that has one of the patches is told which, with what is known
        of it; its own index is not touched."""
        git("cherry-pick", "alpha~3", "alpha~2", cwd=self.kdir)
        self.topic("alpha", merged=MERGED)
        self.refused(str(self.kdir), "alpha/0002-alpha-change-2.patch", "the half of it since 9.0", "v9.1.2")

    def test_local_changes(self):
        """Changes that are not committed are named; untracked files are none."""
        put(self.kdir / "untracked.c", "x\n")
        put(self.kdir / "fs/pipe.c", "changed\n")
        self.refused("local changes", "fs/pipe.c")

    def test_touched_file_differs(self):
        """A commit that changes a file of the patches is refused by its name."""
        put(self.kdir / "fs/pipe.c", (self.kdir / "fs/pipe.c").read_text() + "one more\n")
        self.commit_kdir("mine")
        self.refused("fs/pipe.c", "v9.1.2")

    def test_not_a_kernel_tree(self):
        """A directory that is no kernel tree is refused, also an absent one."""
        for path in (self.dir / "bin", self.dir / "nowhere"):
            with self.fails(str(path), "not a kernel tree") as caught:
                fetch.repository(self.base, str(path))
            self.assertNotIn("\n", caught.message)
        self.assertEqual(list((self.dir / "bin").iterdir()), [])

    def test_owner(self):
        """A tree that git does not read, as it belongs to another user, is not taken
        for one without git: its local changes would be in the base."""
        put(self.kdir / "fs/pipe.c", "changed\n")
        with mock.patch.dict(os.environ, {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}), self.fails("safe.directory"):
            fetch.repository(self.base, str(self.kdir))
        self.assertEqual(list((locks.cache() / "git").glob("*-kdir-*[0-9a-f]")), [])

    def test_without_git(self):
        """An unpacked archive is imported too, and checked in the same way;
        what a build has left in it, which the kernel's .gitignore names, is
        not."""
        plain = self.dir / "plain"
        git("worktree", "add", "-q", "--detach", plain, "main", cwd=self.kdir)
        (plain / ".git").unlink()
        put(plain / "fs/built.orig", "an object\n")
        before = contents(plain)
        repo = fetch.repository(self.base, str(plain))
        self.assertEqual(set(git("ls-tree", "-r", "--name-only", "v9.1.2", cwd=repo).splitlines()),
                         set(before) - {"fs/built.orig", "fs/kept.orig"})
        self.assertEqual(contents(plain), before)
        self.assertFalse((plain / ".git").exists())

    def test_without_git_refused(self):
        """An unpacked archive of another release leaves no repository."""
        plain = self.dir / "plain"
        put(plain / "MAINTAINERS", "")
        put(plain / "Makefile", "VERSION = 8\nPATCHLEVEL = 0\nSUBLEVEL = 1\n")
        with self.fails("8.0.1"):
            fetch.repository(self.base, str(plain))
        self.assertEqual(list((locks.cache() / "git").glob("*-kdir-*[0-9a-f]")), [])
