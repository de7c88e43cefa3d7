# SPDX-License-Identifier: GPL-2.0
"""Builds in other configurations: what make is asked, and judging what came
out.  No kernel, no compiler: make is a shell script."""

import sys
from unittest import mock

from support import Case, KernelCase, git, put

# isort: split
from core import locks
from core import model
from core.ktap import FAILED, PASSED, SKIPPED
from prove import configs
from prove import lint
from prove.configs import Built, Config
from source import build

# What gcc 12 writes for -fstack-usage.
SU = """/linux/fs/pipe.c:267:1:pipe_read\t176\tstatic
/linux/fs/pipe.c:431:1:pipe_write\t200\tstatic
/linux/fs/pipe.c:90:6:pipe_lock\t0\tstatic
/linux/fs/pipe.c:95:13:wait.constprop\t48\tstatic
/linux/fs/pipe.c:95:13:wait\t64\tdynamic,bounded
"""

# make of a kernel that has fs/pipe.c and fs/extra.c, and configures what is in
# the file 'configured' of its tree.  An object that is built is said in the
# log with its source's lines 'says: ' on it, its stack frames are the lines
# 'frame: '; a line 'breaks' is an error.
MAKE = """
echo "$*" >> LOG
dry=
for word; do
    case $word in
    O=*) out=${word#O=} ;;
    -n) dry=y ;;
    esac
done
while [ "$1" != -C ]; do shift; done
source=$2
for word; do
    case $word in
    tinyconfig) echo tiny > $out/.config ;;
    olddefconfig) cp $source/answer $out/.config ;;
    */) for name in $(cat $source/configured); do
        [ $dry ] && [ ! -e $out/$name ] && echo "gcc -c -o $name $source/${name%o}c"
        done ;;
    *.o) mkdir -p $out/fs
         code=$source/${word%o}c
         sed -n "s|^says: |$code:|p" $code
         sed -n "s|^frame: \\(\\w*\\) |$code:1:2:\\1\\t|p" $code | sed 's/$/\\tstatic/' > $out/${word%o}su
         grep -q breaks $code && exit 2
         touch $out/$word ;;
    esac
done
"""


class Stacks(Case):
    """configs.stacks(): what -fstack-usage writes."""

    def test_parse(self):
        """Each function has its bytes; of clones, the largest count."""
        self.assertEqual(configs.stacks(SU), {"pipe_read": 176, "pipe_write": 200, "pipe_lock": 0, "wait": 64})

    def test_clang(self):
        """clang says no column."""
        self.assertEqual(configs.stacks("linux/mm/filemap.c:3397:filemap_fault\t184\tstatic\n"
                                         "linux/mm/filemap.c:221:next.llvm.7\t112\tdynamic\n"),
                         {"filemap_fault": 184, "next": 112})


class Diagnostics(Case):
    """lint.diagnostics(), on what cross compilers print."""

    def test_moved(self):
        """A warning that moved to another line is the same; notes and what
        make says are none."""
        text = "  CC      fs/pipe.o\n{0}fs/pipe.c:{1}:25: warning: ‘x’ defined but not used [-Wunused]\n" \
               "{0}fs/pipe.c:1:2: note: declared here\nmake[3]: *** [Makefile:287: fs/pipe.o] Error 1\n"
        one, other = (lint.diagnostics(text.format("../", line)) for line in (1, 20))
        self.assertEqual(one, other)
        self.assertEqual(one, {"fs/pipe.c: warning: ‘x’ defined but not used [-Wunused]"})

    def test_clang(self):
        """clang's look the same, and what it counts at the end is none."""
        self.assertEqual(lint.diagnostics("../mm/filemap.c:7:5: error: use of undeclared identifier 'x'\n"
                                          "    7 |         x = 0;\n      |         ^\n1 error generated.\n"),
                         {"mm/filemap.c: error: use of undeclared identifier 'x'"})

    def test_guard(self):
        """guard() is not taken for a lock that is left, but what sparse says of others is kept."""
        text = "../fs/pidfs.c:{}:6: warning: context imbalance in 'f' - {}\n"
        self.assertEqual(lint.diagnostics(text.format(639, "wrong count at exit")
                                          + text.format(7, "different lock contexts for basic block")),
                         {"fs/pidfs.c: warning: context imbalance in 'f' - different lock contexts for basic block"})


class Frame(Case):
    """configs.frame(): one function."""

    def test_verdicts(self):
        """Larger than on the base or than the limit fails."""
        for before, after, verdict, why in (
                (100, 100, PASSED, "100 bytes, 100 on the base"),
                (100, 96, PASSED, "96 bytes, 100 on the base"),
                (100, 104, FAILED, "104 bytes, 100 on the base"),
                (None, 1024, PASSED, "1024 bytes"),
                (None, 1025, FAILED, "1025 bytes, more than 1024"),
                (1100, 1100, FAILED, "1100 bytes, more than 1024"),
                (100, None, SKIPPED, "f() is inlined with the series"),
                (None, None, SKIPPED, "there is no f() of its own")):
            self.assertEqual(configs.frame("f", before, after, 1024), (verdict, why))

    def test_slack(self):
        """It may grow by the configuration's slack, and by no more."""
        self.assertEqual(configs.frame("f", 464, 480, 1024, 16), (PASSED, "480 bytes, 464 on the base"))
        self.assertEqual(configs.frame("f", 464, 488, 1024, 16), (FAILED, "488 bytes, 464 on the base"))
        self.assertEqual(configs.frame("f", 464, 480, 472, 16), (FAILED, "480 bytes, more than 472"))


class Judge(Case):
    """configs.judge_config() and unseen()."""

    def judged(self, before: Built, after: Built, *frames: str) -> list[tuple[str, str, str]]:
        """The results as (name, verdict, why)."""
        return [(one.name, one.verdict, one.why) for one in configs.judge_config(Config("tiny"), before, after, frames)]

    def test_new_warning(self):
        """What the base says, too, is not held against the series."""
        before = Built(["fs/pipe.o"], {"fs/pipe.c: warning: old", "fs/pipe.c: warning: gone"})
        after = Built(["fs/pipe.o"], {"fs/pipe.c: warning: old", "fs/pipe.c: warning: new"})
        self.assertEqual(self.judged(before, after),
                         [("tiny: 1 objects build with W=1", FAILED, "fs/pipe.c: warning: new")])
        self.assertEqual(self.judged(after, after)[0][1:], (PASSED, ""))

    def test_broken(self):
        """What does not build is said once: with the compiler's errors, or
        else with the log's end; a base that does not is told from it."""
        good = Built(["fs/pipe.o"], stacks={"fs/pipe.c": {"f": 8}})
        broken = Built(["fs/pipe.o"], {"fs/pipe.c: error: no"}, broken="exit 2")
        self.assertEqual([row[1:] for row in self.judged(good, broken, "fs/pipe.c:f")],
                         [(FAILED, "fs/pipe.c: error: no")])
        self.assertEqual(self.judged(good, Built(["fs/pipe.o"], broken="exit 2"))[0][1:], (FAILED, "exit 2"))
        self.assertEqual([row[1:] for row in self.judged(broken, good, "fs/pipe.c:f")],
                         [(FAILED, "on the base: exit 2")])

    def test_nothing_configured(self):
        """A configuration that has none of the objects says so."""
        self.assertEqual(self.judged(Built([]), Built([]), "fs/pipe.c:f"),
                         [("tiny: 0 objects build with W=1", SKIPPED, "")])

    def test_lost(self):
        """A series that switches an object off is found."""
        self.assertEqual(self.judged(Built(["fs/pipe.o"]), Built([]))[0][1:],
                         (FAILED, "not configured with the series: fs/pipe.o"))

    def test_frames(self):
        """Frames are looked at in files that the configuration builds."""
        before = Built(["fs/pipe.o"], stacks={"fs/pipe.c": {"f": 8}})
        after = Built(["fs/pipe.o"], stacks={"fs/pipe.c": {"f": 16, "g": 8}})
        self.assertEqual(self.judged(before, after, "fs/pipe.c:f", "fs/pipe.c:g", "fs/none.c:f")[1:],
                         [("tiny: stack frame of fs/pipe.c:f", FAILED, "16 bytes, 8 on the base"),
                          ("tiny: stack frame of fs/pipe.c:g", PASSED, "8 bytes")])

    def test_unseen(self):
        """An object or a function that no configuration has is a mistake."""
        built = [Built(["fs/pipe.o"]), Built(["fs/a.o"], stacks={"fs/a.c": {"f": 8}})]
        self.assertEqual([(one.name, one.verdict) for one in
                          configs.unseen(["fs/pipe.o", "fs/b.o"], ("fs/a.c:f", "fs/a.c:typo"), built)],
                         [("fs/b.o is built", FAILED), ("stack frame of fs/a.c:typo", FAILED)])


class Fragments(Case):
    """The committed fragments of the configurations."""

    def test_every_variant(self):
        """Each configuration has its fragment, each fragment its configuration."""
        files = {path.stem for path in (model.KCONFIG / "configs").glob("*.config")}
        self.assertEqual(files, {"common", *configs.CONFIGS})

    def test_bases(self):
        """What is there for a base alone is merged, all of it."""
        for base in model.bases().values():
            below = model.KCONFIG / "bases" / base.name
            merged = {path for one in configs.CONFIGS.values() for path in one.fragments(base)}
            merged |= {path for config in (*model.CONFIGS, *model.GUESTS) for path in build.fragments(config, base)}
            self.assertLessEqual(set(below.rglob("*.config")), merged)

    def test_every_line(self):
        """Every line is a comment or an option that options() reads, said once
        in a file; a configuration repeats of the common ones only what it changes."""
        for one in configs.CONFIGS.values():
            for path in one.fragments():
                lines = [line for line in path.read_text().splitlines()
                         if line and (not line.startswith("# ") or "CONFIG_" in line)]
                self.assertEqual(len(build.options([path])), len(lines), path)
                for line in lines:
                    self.assertRegex(line, r"^(CONFIG_[A-Z0-9_]+=(y|\d+)|# CONFIG_[A-Z0-9_]+ is not set)$", path)
            common, own = (build.options([path]).items() for path in one.fragments())
            self.assertEqual(common & own, set(), one.name)

    def test_locks(self):
        """Every architecture proves that its mappings have locks, and one
        configuration that they have none."""
        said = {one: build.options(one.fragments()).get("CONFIG_PER_VMA_LOCK") for one in configs.CONFIGS.values()}
        self.assertEqual({one.arch for one, value in said.items() if value == "y"},
                         {"arm64", "arm", "riscv", "s390", "powerpc", "loongarch"})
        self.assertEqual([one.name for one, value in said.items() if value == "n"], ["nosmp"])


class Words(Case):
    """What a Config says of its compiler and its objects."""

    def test_gcc(self):
        """gcc is the machine's, or a cross compiler; clang is switched off,
        whatever the environment says."""
        self.assertEqual(Config("one").compiler, "gcc")
        one = Config("one", arch="vax", cross="vax-linux-gnu-")
        self.assertEqual(one.compiler, "vax-linux-gnu-gcc")
        self.assertEqual(one.words, ("ARCH=vax", "CROSS_COMPILE=vax-linux-gnu-", "LLVM=", "KCFLAGS=-fstack-usage"))
        self.assertTrue(one.wants("fs/pipe.o"))

    def test_port(self):
        """A port is clang's, and looks at its own files and at mm/."""
        one = configs.port("vax")
        self.assertEqual(one.compiler, "clang-19")
        self.assertEqual(one.words, ("ARCH=vax", "CROSS_COMPILE=", "LLVM=-19", "KCFLAGS=-fstack-usage"))
        self.assertEqual([name for name in ("arch/vax/mm/fault.o", "arch/vaxen/a.o", "mm/a.o", "fs/mm/a.o")
                          if one.wants(name)], ["arch/vax/mm/fault.o", "mm/a.o"])


class Compare(KernelCase):
    """configs.compare_configs() and the program, with a make that is a script."""

    def setUp(self):
        super().setUp()
        self.log = self.dir / "made"
        self.fake("make", MAKE.replace("LOG", str(self.log)))
        self.fake("gcc", "echo gcc 12\n")
        put(self.dir / "kconfig/configs/common.config", "CONFIG_A=y\n")
        put(self.dir / "kconfig/configs/one.config", "# CONFIG_B is not set\n")
        put(self.dir / "kconfig/configs/two.config", "CONFIG_C=y\n")
        self.enterContext(mock.patch.object(configs, "KCONFIG", self.dir / "kconfig"))
        self.chosen = (Config("one"), Config("two", arch="i386", limit=1024))
        self.enterContext(mock.patch.object(configs, "CONFIGS", {one.name: one for one in self.chosen}))
        put(self.kdir / "scripts/kconfig/merge_config.sh", "#!/bin/sh\necho merged >> \"$KCONFIG_CONFIG\"\n", 0o755)
        put(self.kdir / "answer", "CONFIG_A=y\nCONFIG_C=y\n")
        put(self.kdir / "configured", "fs/pipe.o\n")
        put(self.kdir / "fs/pipe.c", "says: 7:1: warning: old\nframe: pipe_read 96\nframe: pipe_write 128\n")
        put(self.kdir / "fs/extra.c", "breaks\n")
        self.commit_kdir("Have what the builds need")

    def compared(self, *edits: tuple[str, str, str], frames: tuple[str, ...] = ()) -> dict[str, tuple[str, str]]:
        """Verdict and reason by name, of a branch with @edits."""
        self.series("alpha", *edits)
        repo = self.imported()
        git("fetch", "-q", self.kdir, "alpha:alpha", cwd=repo)
        objects = configs.touched(repo, self.base.tag, "alpha")
        found = configs.compare_configs(repo, self.base, "alpha", objects, frames, self.chosen)
        return {one.name: (one.verdict, one.why) for one in found}

    def test_good(self):
        """The old warning is none; each configuration is configured anew for the
        base only, built in a place of its own, without sparse."""
        self.assertEqual(self.compared(("fs/pipe.c", "7:1", "8:1"), frames=("fs/pipe.c:pipe_read",)), {
            "one: 1 objects build with W=1": (PASSED, ""),
            "one: stack frame of fs/pipe.c:pipe_read": (PASSED, "96 bytes, 96 on the base"),
            "two: 1 objects build with W=1": (PASSED, ""),
            "two: stack frame of fs/pipe.c:pipe_read": (PASSED, "96 bytes, 96 on the base")})
        made = self.log.read_text().splitlines()
        self.assertEqual([line for line in made if "C=1" in line or "KCFLAGS=-fstack-usage" not in line], [])
        self.assertEqual(sum("tinyconfig" in line for line in made), 2)
        self.assertEqual(sum("olddefconfig" in line for line in made), 4)
        for name, arch in (("one", "x86_64"), ("two", "i386")):
            mine = [line for line in made if f"O={locks.cache()}/build/v0-configs-{name} " in line]
            self.assertEqual(len(mine), len(made) // 2)
            self.assertEqual([line for line in mine if f"ARCH={arch} " not in line], [])
            self.assertEqual(sum("W=1" in line and line.endswith("fs/pipe.o") for line in mine), 2)

    def test_error(self):
        """An object that no longer compiles fails with the compiler's words."""
        found = self.compared(("fs/pipe.c", "7:1: warning: old", "8:1: error: no such thing\nbreaks"))
        self.assertEqual(found["one: 1 objects build with W=1"][0], FAILED)
        self.assertIn("error: no such thing", found["one: 1 objects build with W=1"][1])

    def test_not_configured(self):
        """An object that is not configured is not built, though make would;
        where no configuration has it, that is said."""
        found = self.compared(("fs/extra.c", "breaks", "still breaks"), ("fs/new.c", "", "a new file"))
        self.assertEqual({name: row[0] for name, row in found.items()}, {
            "one: 0 objects build with W=1": SKIPPED, "two: 0 objects build with W=1": SKIPPED,
            "fs/extra.o is built": FAILED, "fs/new.o is built": FAILED})
        self.assertNotIn("fs/extra.o", self.log.read_text())

    def test_refused_option(self):
        """An option that was not taken fails that configuration, and no other."""
        put(self.dir / "kconfig/configs/two.config", "CONFIG_D=y\n")
        found = self.compared(("fs/pipe.c", "7:1", "8:1"))
        self.assertEqual(found["one: 1 objects build with W=1"], (PASSED, ""))
        self.assertEqual(found["two: builds"][0], FAILED)
        self.assertIn("'configs/two' did not take CONFIG_D=y", found["two: builds"][1])
        self.assertEqual(len(found), 2)

    def test_clang(self):
        """A configuration that is clang's tells every make so; a clang that is not
        installed."""
        self.chosen = (Config("one", llvm="-7"), Config("two", llvm="-8"))
        self.fake("clang-7", "echo clang 7\n")
        found = self.compared(("fs/pipe.c", "7:1", "8:1"))
        self.assertEqual(found["one: 1 objects build with W=1"], (PASSED, ""))
        self.assertEqual(found["two: builds"], (FAILED, "cannot run clang-8: 'make install' installs what is missing"))
        self.assertEqual([line for line in self.log.read_text().splitlines() if " LLVM=-7 " not in line], [])
        self.assertIn("configs: one: clang 7", self.said.getvalue())

    def test_remembered(self):
        """A series that passed is not built again until something changes: a
        fragment, a compiler, a frame, the patches."""
        repo = self.imported()
        one = self.series("alpha", ("fs/pipe.c", "7:1", "8:1"))

        def builds(of: model.Topic = one, fresh: bool = False) -> bool:
            before = self.log.read_text() if self.log.exists() else ""
            found = list(configs.compare_series([of], self.base, repo, chosen=self.chosen, fresh=fresh))
            self.assertEqual([(row.name, row.verdict) for row in found][:2],
                             [(f"alpha: {name}: 1 objects build with W=1", PASSED) for name in ("one", "two")])
            return self.log.read_text() != before

        self.assertEqual([builds(), builds(), builds(fresh=True), builds()], [True, False, True, False])
        two = self.dir / "kconfig/configs/two.config"
        put(two, two.read_text() + "# a comment\n")
        self.assertFalse(builds())
        put(two, two.read_text() + "# CONFIG_Z is not set\n")
        self.assertEqual([builds(), builds()], [True, False])
        self.fake("gcc", "echo gcc 13\n")
        self.assertEqual([builds(), builds()], [True, False])
        (patch,) = one.patches(self.base)
        put(patch, patch.read_text().replace("+says: 8:1", "+says: 9:1"))
        self.assertEqual([builds(), builds()], [True, False])

    def program(self, *words: str) -> int:
        """The exit status of the program called with @words."""
        with mock.patch.object(sys, "argv", ["configs.py", "--base", "v0", *words]):
            return int(configs.main())

    def test_program(self):
        """Every topic's patches, or one configuration of one topic, or a revision;
        the exit status says whether all passed."""
        self.imported()
        self.series("alpha", ("fs/pipe.c", "7:1", "8:1"))
        one = self.root / "patches/alpha/series.toml"
        put(one, 'lint.frames = ["fs/pipe.c:pipe_read"]\n' + one.read_text())
        self.series("beta", ("fs/pipe.c", "pipe_read 96", "pipe_read 104\nsays: 8:1: warning: new"))
        self.assertEqual(self.program("--topic", "alpha", "--config", "one"), 0)
        self.assertIn("ok - alpha: one: stack frame of fs/pipe.c:pipe_read # 96 bytes, 96 on the base",
                      self.said.getvalue())
        self.assertIn("configs: 2 passed, 0 failed, 0 skipped", self.said.getvalue())
        self.assertEqual(self.program("--topic", "beta"), 1)
        self.assertIn("not ok - beta: two: 1 objects build with W=1 # ", self.said.getvalue())
        # Both touch the same lines, so one does not apply on the other.
        self.assertEqual(self.program(), 1)
        self.assertIn("not ok - alpha+beta: git am # ", self.said.getvalue())

    def test_below(self):
        """A configuration builds only what is below its directories; what is below
        no configuration's is said."""
        self.chosen = (Config("one", below=("mm/",)), Config("two", below=("fs/",)))
        found = self.compared(("fs/pipe.c", "7:1", "8:1"), ("fs/extra.c", "breaks", "still breaks"))
        self.assertEqual({name: row[0] for name, row in found.items()}, {
            "one: 0 objects build with W=1": SKIPPED, "two: 1 objects build with W=1": PASSED,
            "fs/extra.o is built": FAILED})
