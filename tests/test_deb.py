# SPDX-License-Identifier: GPL-2.0
"""The packages that make deb builds, with a make that is a shell script."""

import sys
from pathlib import Path
from unittest import mock

from support import KernelCase, put

# isort: split
from core import locks
from send import deb
from source import tree

CONFIG = """# Linux configuration
CONFIG_SMP=y
CONFIG_LOCALVERSION="-amd64"
CONFIG_LOCALVERSION_AUTO=y
CONFIG_SYSTEM_TRUSTED_KEYS="debian/certs/key.pem"
"""
# What it is asked for goes to the file made; bindeb-pkg leaves a package whose
# release is that of the configuration, and one of debugging symbols.
MAKE = """echo "$@" >> {dir}/made
for word; do case $word in O=*) out=${{word#O=}} ;; esac; done
case "$*" in
*bindeb-pkg*)
	[ -e {dir}/broken ] && exit 0
	cp "$out/.config" {dir}/config
	release=9.1.2$(sed -n 's/^CONFIG_LOCALVERSION="\\(.*\\)"/\\1/p' "$out/.config")
	touch "$out/../linux-image-$release-dbg_$KDEB_PKGVERSION.deb"
	echo "$release" > "$out/../linux-image-${{release}}_$KDEB_PKGVERSION.deb" ;;
esac
"""


class Packages(KernelCase):
    """deb.py of a fake kernel."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(tree, "ROOT", self.root))
        self.series("alpha", ("fs/pipe.c", "line 1\n", "LINE 1\n"))
        self.series("beta", ("fs/pipe.c", "line 20\n", "LINE 20\n"))
        self.repo = self.imported()
        self.fake("make", MAKE.format(dir=self.dir))
        self.config = put(self.dir / "config-file", CONFIG)

    def deb(self, *words: str) -> list[Path]:
        """The packages that the command leaves in the directory out."""
        with mock.patch.object(deb, "repository", lambda *_: self.repo), \
                mock.patch.object(locks, "free", lambda _path: 100 << 30), \
                mock.patch.object(sys, "argv", ["deb.py", "--base", "v0", "--out", str(self.dir / "out"), *words]):
            deb.main()
        return sorted((self.dir / "out").iterdir())

    def test_packages(self):
        """One package without and one with the series, of releases that name
        them and their sources, and what to do next."""
        found = self.deb("--topic", "alpha beta", "--config", str(self.config))
        revision = tree.apply(self.repo, self.base, [deb.chosen_topics(None, self.base)[0]])
        self.assertEqual(len(found), 2)
        series, base = sorted(found, key=lambda path: "base" in path.name)
        tag = tree.tree_of(self.repo, self.base.tag)[:7]
        self.assertEqual(base.name, f"linux-image-9.1.2-hotpaths-base-{tag}_9.1.2-1.deb")
        self.assertRegex(series.name, r"^linux-image-9\.1\.2-hotpaths-alpha-beta-[0-9a-f]{7}_9\.1\.2-1\.deb$")
        self.assertNotIn(tree.tree_of(self.repo, revision)[:7], series.name)
        self.assertIn(f"dpkg -i {base} {series}", self.said.getvalue())

    def test_config(self):
        """The configuration is the given one, with another release, and without
        keys that only a distribution has."""
        self.deb("--topic", "alpha", "--config", str(self.config))
        lines = (self.dir / "config").read_text().splitlines()
        self.assertIn("CONFIG_SMP=y", lines)
        self.assertIn('CONFIG_SYSTEM_TRUSTED_KEYS=""', lines)
        self.assertIn("# CONFIG_LOCALVERSION_AUTO is not set", lines)
        self.assertEqual(sum("CONFIG_LOCALVERSION=" in line for line in lines), 1)
        self.assertNotIn("CONFIG_MODULE_SIG_KEY", "\n".join(lines))

    def test_no_config(self):
        """Without a configuration, nothing is built."""
        self.config.write_text("nothing\n")
        with self.fails("config-file is no kernel configuration", "CONFIG="):
            self.deb("--config", str(self.config))
        with mock.patch.object(deb.machine, "config", lambda: ""), self.fails("cannot be read", "CONFIG="):
            self.deb()
        self.assertFalse((self.dir / "made").exists())

    def test_no_package(self):
        """A build that leaves no package is an error, and an older one is not
        taken for it."""
        self.deb("--topic", "alpha", "--config", str(self.config))
        put(self.dir / "broken", "")
        with self.fails("left no linux-image package", "log"):
            self.deb("--topic", "alpha", "--config", str(self.config))
