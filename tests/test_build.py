# SPDX-License-Identifier: GPL-2.0
"""The configuration fragments, and cleaning what builds leave."""

import subprocess
from unittest import mock

from support import Case, KernelCase, git, put

# isort: split
from core import locks
from core import model
from source import build


class Fragments(Case):
    """build.fragments(), requested() and fragments_hash()."""

    def test_unknown(self):
        """An unknown configuration is told with the known ones."""
        for ask in (build.fragments, build.requested, build.fragments_hash):
            with self.fails("'fast'", "bench, trace, debug"):
                ask("fast")

    def test_every_option(self):
        """Every line of the committed fragments that is not a comment is an
        option that requested() has; none is said twice in one file."""
        for config in model.CONFIGS:
            options = build.requested(config)
            wanted = {}
            for path in build.fragments(config):
                own = {}
                for line in path.read_text().splitlines():
                    if line.endswith(" is not set"):
                        name, value = line.removeprefix("# ").removesuffix(" is not set"), "n"
                    elif not line or line.startswith("# ") and "CONFIG_" not in line:
                        continue
                    else:
                        name, value = line.split("=", 1)
                    self.assertRegex(name, "^CONFIG_[A-Z0-9_]+$", path.name)
                    self.assertRegex(value, r'^(y|n|\d+|".*")$', f"{path.name}: {line}")
                    self.assertNotIn(name, own, path.name)
                    own[name] = value
                wanted.update(own)
            self.assertEqual(options, wanted)
            self.assertEqual(options["CONFIG_64BIT"], "y")
            self.assertEqual(options["CONFIG_INET"], "n")
            self.assertEqual(options["CONFIG_NR_CPUS"], {"bench": "256", "up": "1"}.get(config, "16"))

    def test_what_each_is_for(self):
        """The bench kernel debugs and traces nothing; the others do."""
        bench, trace, debug = map(build.requested, ("bench", "trace", "debug"))
        for name in ("CONFIG_PROVE_LOCKING", "CONFIG_FTRACE", "CONFIG_KASAN", "CONFIG_DEBUG_KERNEL"):
            self.assertNotEqual(bench.get(name), "y")
        self.assertEqual((trace["CONFIG_PROVE_LOCKING"], trace["CONFIG_LOCK_STAT"]), ("y", "y"))
        self.assertEqual((debug["CONFIG_KASAN"], debug["CONFIG_DEBUG_VM"]), ("y", "y"))

    def test_later_wins(self):
        """A configuration's own fragment overrides the common one."""
        put(self.dir / "common.config",
            "# CONFIG_A is what we like\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=\"a=b\"\n")
        put(self.dir / "bench.config", "# CONFIG_A is not set\nCONFIG_B=16\n")
        with mock.patch.object(build, "KCONFIG", self.dir):
            self.assertEqual(build.requested("bench"), {"CONFIG_A": "n", "CONFIG_B": "16", "CONFIG_C": '"a=b"'})
            before = build.fragments_hash("bench")
            self.assertRegex(before, "^[0-9a-f]{12}$")
            put(self.dir / "bench.config", "CONFIG_B=16\n")
            self.assertNotEqual(build.fragments_hash("bench"), before)


class Configure(Case):
    """build.configure() with a make that is a shell script."""

    def setUp(self):
        super().setUp()
        put(self.dir / "common.config", "CONFIG_A=y\n# CONFIG_B is not set\n")
        put(self.dir / "bench.config", "CONFIG_N=16\n")
        self.enterContext(mock.patch.object(build, "KCONFIG", self.dir))
        self.base = model.Base("v0", "v9.1.2", "9.1.2", "fake")
        self.out = self.dir / "out"
        self.source = self.dir / "linux"
        put(self.source / "scripts/kconfig/merge_config.sh", "#!/bin/sh\necho merged >> \"$KCONFIG_CONFIG\"\n", 0o755)

    def configure(self, config: str) -> None:
        """Configure with a make whose olddefconfig leaves @config."""
        put(self.dir / "answer", config)
        self.fake("make", f'echo "$*" >> {self.dir}/made\nmkdir -p {self.out}\n'
                          f'case "$*" in *olddefconfig) cp {self.dir}/answer {self.out}/.config ;; esac\n')
        build.configure(self.source, self.out, "bench", self.base)

    def test_taken_once(self):
        """A configuration that took all options is not made again, until a
        fragment changes."""
        self.configure("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_N=16\n")
        made = (self.dir / "made").read_text()
        self.assertEqual(made.count("tinyconfig"), 1)
        self.configure("CONFIG_A=y\nCONFIG_N=16\n")
        self.assertEqual((self.dir / "made").read_text(), made)
        put(self.dir / "bench.config", "CONFIG_N=8\n")
        self.configure("CONFIG_A=y\nCONFIG_N=8\n")
        self.assertEqual((self.dir / "made").read_text().count("tinyconfig"), 2)

    def test_base(self):
        """A base's own fragments come last, and count only there, and for
        their configuration."""
        self.configure("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_N=16\n")
        put(self.dir / "bases/v1/common.config", "# CONFIG_A is not set\nCONFIG_C=y\n")
        self.assertTrue(build.configured(self.out, "bench", self.base))
        self.base = model.Base("v1", "v9.2.0", "9.2.0", "fake")
        self.assertFalse(build.configured(self.out, "bench", self.base))
        self.configure("CONFIG_C=y\nCONFIG_N=16\n")
        self.assertTrue(build.configured(self.out, "bench", self.base))
        put(self.dir / "bases/v1/trace.config", "CONFIG_D=y\n")
        put(self.dir / "bases/v1/bench.config", "CONFIG_N=32\n")
        self.configure("CONFIG_C=y\nCONFIG_N=32\n")
        (self.dir / "bases/v1/bench.config").unlink()
        with self.fails("'bench'", "CONFIG_A=n"):
            put(self.dir / "bench.config", "CONFIG_N=16\nCONFIG_C=y\n")
            self.configure("CONFIG_A=y\nCONFIG_C=y\nCONFIG_N=16\n")

    def test_refused_options(self):
        """Options that the kernel did not take are named, each time."""
        for _ in range(2):
            with self.fails("'bench'", "CONFIG_A=y, CONFIG_B=n, CONFIG_N=16"):
                self.configure("CONFIG_B=y\nCONFIG_N=8\n")


# A kernel whose build copies two sources, and says which.
COPIES = """all: $(O)/a $(O)/b
$(O)/a: a.c
	cp a.c $@
$(O)/b: b.c
	cp b.c $@
"""


class CheckedOut(KernelCase):
    """build.checked_out() with a real make, for two build directories that
    share the worktree."""

    def setUp(self):
        super().setUp()
        put(self.kdir / "copies.mk", COPIES)
        self.trees = {}
        for name, a, b in (("base", "a0", "b0"), ("first", "a1", "b0"), ("second", "a1", "b1")):
            put(self.kdir / "a.c", a)
            put(self.kdir / "b.c", b)
            self.commit_kdir(name)
            self.trees[name] = git("rev-parse", "HEAD", cwd=self.kdir)
        self.repo = self.kdir / ".git"

    def make(self, out: str, name: str, stop: bool = False) -> tuple[set[str], str]:
        """Build commit @name in the directory @out, or @stop after one of the
        files; what make has compiled, and what is there."""
        path = self.dir / out
        source = build.checked_out(self.repo, path, self.trees[name])
        done = subprocess.run(["make", "-f", "copies.mk", f"O={path}", *([f"{path}/a"] if stop else [])], cwd=source,
                              capture_output=True, text=True, check=True)
        if not stop:
            build.mark_built(path, source)
        return ({line.split()[1] for line in done.stdout.splitlines() if line.startswith("cp ")},
                "".join((path / one).read_text() for one in "ab" if (path / one).exists()))

    def test_what_differs(self):
        """A build compiles what differs from the last one in its own
        directory, whatever was built elsewhere meanwhile."""
        self.assertEqual(self.make("x", "base"), ({"a.c", "b.c"}, "a0b0"))
        self.assertEqual(self.make("x", "base"), (set(), "a0b0"))
        self.assertEqual(self.make("y", "second"), ({"a.c", "b.c"}, "a1b1"))
        self.assertEqual(self.make("x", "first"), ({"a.c"}, "a1b0"))
        self.assertEqual(self.make("y", "second"), (set(), "a1b1"))
        self.assertEqual(self.make("x", "second"), ({"b.c"}, "a1b1"))
        self.assertEqual(self.make("y", "base"), ({"a.c", "b.c"}, "a0b0"))
        self.assertEqual(git("status", "--porcelain", cwd=locks.cache() / "tree/.git/build"), "")

    def test_interrupted(self):
        """After a build that was interrupted, everything is compiled that
        differs from what may be there."""
        self.make("x", "base")
        self.assertEqual(self.make("x", "second", stop=True), ({"a.c"}, "a1b0"))
        self.assertEqual(self.make("y", "first"), ({"a.c", "b.c"}, "a1b0"))
        self.assertEqual(self.make("x", "base"), ({"a.c", "b.c"}, "a0b0"))
        self.make("x", "second", stop=True)
        self.assertEqual(self.make("x", "second"), ({"a.c", "b.c"}, "a1b1"))

    def test_forgotten(self):
        """A tree that git has removed may have been anything."""
        self.make("x", "base")
        put(self.dir / "x/hotpaths.built", "0" * 40 + "\n")
        self.assertEqual(self.make("x", "base"), ({"a.c", "b.c"}, "a0b0"))
