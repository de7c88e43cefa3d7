# SPDX-License-Identifier: GPL-2.0
"""The arm64 guest: its kernel, its initramfs, how it is booted, who runs in it."""

import contextlib
import gzip
import io
import os
import shutil
import subprocess
import tarfile
import unittest
from hashlib import sha256
from pathlib import Path
from dataclasses import replace
from unittest import mock

from support import Case, KernelCase, git, put

# isort: split
from core import locks
from core import model
from core.ktap import FAILED, PASSED, Result
from guests import arm64
from guests import guest
from guests import watch
from prove import check
from source import build
from source import fetch
from source import tree

# Where Debian keeps mkfs.ext4.
SYSTEM = os.environ["PATH"] + ":/usr/sbin:/sbin"

# A make that configures what it is asked for, and builds a kernel and tests;
# it writes down how it was called.
MAKE = """
echo "$*" >> LOG
for word; do case "$word" in
O=*) out=${word#O=} ;;
INSTALL_PATH=*) install=${word#INSTALL_PATH=} ;;
OUT=*) mkdir -p "${word#OUT=}/alpha"; echo "$CC" > "${word#OUT=}/alpha/a_race" ;;
esac; done
mkdir -p "$out/arch/arm64/boot"
case "$*" in
*olddefconfig) cp ANSWER "$out/.config" ;;
*Image) echo "an image" > "$out/arch/arm64/boot/Image"; echo symbols > "$out/vmlinux" ;;
*" list") echo regress/alpha:a_race ;;
*" install "*) mkdir -p "$install"; echo "$LDFLAGS" > "$install/run_kselftest.sh" ;;
esac
"""

# A QEMU that lets this machine run the script, in the directory it shares.
QEMU = """
for word; do case "$word" in local,*) path=${word#*path=}; path=${path%%,*} ;; esac; done
echo "$*" > "$path/argv"
echo "[    0.000000] Booting Linux on physical CPU 0x0000000000"
echo "a word of QEMU's" >&2
cd "$path" && { sh script.sh > output.log 2>&1; echo $? > status; }
"""


class Configuration(Case):
    """build.fragments() of arm64, and what the fragment has."""

    def test_architecture(self):
        """All configurations are x86-64's, but for the guests of other
        architectures."""
        self.assertEqual([build.arch(name) for name in model.GUESTS], [build.ARM64, build.ARM64, build.UM, build.UM])
        self.assertEqual({build.arch(name) for name in model.CONFIGS}, {build.X86})
        images = {config: build.Kernel(Path("/k"), "v0", "c", config, "h", "gcc").image.name
                  for config in ("debug", "arm64", "um", "um-time")}
        self.assertEqual(images, {"debug": "bzImage", "arm64": "Image", "um": "linux", "um-time": "linux"})


class Building(KernelCase):
    """build.kernel() and build.kselftests() for arm64, with a fake make."""

    def setUp(self):
        super().setUp()
        self.log = self.dir / "made"
        put(self.dir / "arm64.config", "CONFIG_A=y\n")
        self.enterContext(mock.patch.object(build, "KCONFIG", self.dir))
        self.fake("make", MAKE.replace("LOG", str(self.log)).replace("ANSWER", str(self.dir / "arm64.config")))
        self.fake("aarch64-linux-gnu-gcc", "echo aarch64-linux-gnu-gcc 12.2\n")
        self.fake("gcc", "echo gcc 12.2\n")
        self.fake("aarch64-linux-gnu-objcopy", 'cp "$2" "$3"\n')
        for name in ("kconfig/merge_config.sh", "decode_stacktrace.sh"):
            put(self.kdir / "scripts" / name, "#!/bin/sh\n", 0o755)
        self.commit_kdir("Have scripts")
        self.enterContext(mock.patch.object(fetch, "verify", lambda *_: None))
        self.repo = self.imported()

    def test_kernel(self):
        """Every make is told the architecture; what comes out is kept, and not
        built again until the cross compiler is another.  Nothing is built to
        find out whether it is kept."""
        self.assertIsNone(build.cached(self.repo, self.base, "v9.1.2", "arm64"))
        self.assertFalse(self.log.exists())
        image = build.kernel(self.repo, self.base, "v9.1.2", "arm64", "patched")
        self.assertEqual(build.cached(self.repo, self.base, "v9.1.2", "arm64"), image)
        self.assertEqual((image.image.read_text(), image.compiler), ("an image\n", "aarch64-linux-gnu-gcc 12.2"))
        self.assertEqual((image.path / "vmlinux").read_text(), "symbols\n")
        self.assertTrue((image.path / "decode_stacktrace.sh").exists())
        made = self.log.read_text().splitlines()
        for line in made:
            self.assertIn("ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-", line)
            self.assertIn(f"O={locks.cache()}/build/v0-arm64 ", line)
        self.assertEqual([line.split()[-1] for line in made], ["tinyconfig", "olddefconfig", "Image"])
        self.assertIn(" KCFLAGS=-g1 ", made[-1])
        self.assertEqual(build.kernel(self.repo, self.base, "v9.1.2", "arm64", "patched"), image)
        self.fake("gcc", "echo gcc 14\n")
        build.kernel(self.repo, self.base, "v9.1.2", "arm64", "patched")
        self.assertEqual(self.log.read_text().splitlines(), made)
        self.fake("aarch64-linux-gnu-gcc", "echo aarch64-linux-gnu-gcc 14\n")
        self.assertNotEqual(build.kernel(self.repo, self.base, "v9.1.2", "arm64", "patched").path, image.path)

    def test_two_runs(self):
        """Of two runs that want the same, one builds, and the other takes what
        that has built, though it was not there when it asked."""
        made = []

        @contextlib.contextmanager
        def lock(_name):
            # What another run does until this one gets the lock.
            if not made:
                made.append("by another")
                build.kernel(self.repo, self.base, "v9.1.2", "arm64", "patched")
                build.kselftests(self.repo, "v9.1.2", ["alpha"], build.ARM64)
                made.append(self.log.read_text())
            yield

        with mock.patch.object(build, "lock", lock):
            build.kernel(self.repo, self.base, "v9.1.2", "arm64", "patched")
            self.assertEqual(self.log.read_text(), made[1])
            made.clear()
            shutil.rmtree(locks.cache() / "kselftest")
            build.kselftests(self.repo, "v9.1.2", ["alpha"], build.ARM64)
            self.assertEqual(self.log.read_text(), made[1])

    def test_words(self):
        """Another message of a commit builds nothing again: not the kernel, and
        not the tests."""
        image = build.kernel(self.repo, self.base, "v9.1.2", "arm64", "patched")
        tests = build.kselftests(self.repo, "v9.1.2", ["alpha"], build.ARM64)
        made = self.log.read_text()
        worktree = tree.worktree(self.repo, "test", "v9.1.2")
        git("commit", "-q", "--amend", "-m", "other words", cwd=worktree)
        other = git("rev-parse", "HEAD", cwd=worktree)
        self.assertEqual(build.kernel(self.repo, self.base, other, "arm64", "patched").path, image.path)
        self.assertEqual(build.kselftests(self.repo, other, ["alpha"], build.ARM64), tests)
        self.assertEqual(self.log.read_text(), made)

    def test_regress(self):
        """Our own tests of the topics lie beside the kselftests and are in
        their list; another content of theirs is another directory."""
        regress = self.dir / "regress"
        self.enterContext(mock.patch.object(build, "REGRESS", regress))
        put(regress / "alpha/a_race.c", "int main;\n")
        tests = build.kselftests(self.repo, "v9.1.2", ["alpha"], build.ARM64, ("alpha", "beta"))
        self.assertTrue((tests / "regress/alpha/a_race").exists())
        self.assertEqual((tests / "kselftest-list.txt").read_text(), "regress/alpha:a_race\n")
        (line,) = [line for line in self.log.read_text().splitlines() if " OUT=" in line]
        for word in (f"-C {regress} ", "TOPICS=alpha ", "CC=aarch64-linux-gnu-gcc", "/usr/include ", "TREE="):
            self.assertIn(word, line)
        self.assertEqual(build.kselftests(self.repo, "v9.1.2", ["alpha"], build.ARM64, ("alpha",)), tests)
        put(regress / "alpha/a_race.c", "int other;\n")
        self.assertNotEqual(build.kselftests(self.repo, "v9.1.2", ["alpha"], build.ARM64, ("alpha",)), tests)

    def test_kselftests(self):
        """They are linked statically, and those for x86-64 are others."""
        tests = build.kselftests(self.repo, "v9.1.2", ["alpha"], build.ARM64)
        self.assertEqual((tests / "run_kselftest.sh").read_text(), "-static\n")
        made = self.log.read_text().splitlines()
        self.assertEqual({"ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-" in line for line in made}, {True})
        self.assertIn("TARGETS=alpha", made[-1])
        self.assertNotEqual(build.kselftests(self.repo, "v9.1.2", ["alpha"]), tests)
        for line in self.log.read_text().splitlines()[len(made):]:
            self.assertNotIn("arm64", line)

    def test_some_of_a_target(self):
        """Of a target of which only some programs are wanted, these alone are built, before
        whole targets, and are in the list, but for benchmarks."""
        tests = build.kselftests(self.repo, "v9.1.2", ["alpha", "beta:one,two_bench"])
        part, whole = (line for line in self.log.read_text().splitlines() if " TARGETS=" in line)
        self.assertIn(" TARGETS=alpha", whole)
        self.assertNotIn("TEST_GEN_FILES", whole)
        out = locks.cache() / "build/v0-kselftest-x86_64/kselftest/beta"
        for word in (" TARGETS=beta ", " TEST_PROGS= ", f" TEST_GEN_FILES={out}/one {out}/two_bench"):
            self.assertIn(word, part + " ")
        self.assertEqual((tests / "kselftest-list.txt").read_text(), "beta:one\n")


class Initramfs(Case):
    """arm64.initramfs(), with a package of ours."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(fetch, "debian_mirrors", lambda _: ["http://one.example/debian"]))
        self.asked = self.dir / "asked"
        self.fake("dpkg-deb", '[ "$1" = --fsys-tarfile ] && cat "$2"\n')
        self.fake("mkfs.ext4", 'for image; do :; done; printf "a file system" > "$image"\n')
        self.fake("curl", f"""
            while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
            echo "$1" >> {self.asked}
            cp "{self.dir}/${{1##*/}}" "$out"
            """)
        self.pin("bin/busybox", "a program")

    def pin(self, path: str, text: str) -> None:
        """Serve and pin a package that has the file @path with @text."""
        with tarfile.open(self.dir / "busybox.deb", "w") as archive:
            entry = tarfile.TarInfo(f"./{path}")
            entry.mode, entry.size = 0o755, len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
        checksum = sha256((self.dir / "busybox.deb").read_bytes()).hexdigest()
        self.enterContext(mock.patch.object(arm64, "BUSYBOX", ("pool/main/busybox.deb", checksum)))

    def unpacked(self, path: Path) -> Path:
        """A directory with what the initramfs @path has."""
        root = self.dir / "unpacked"
        root.mkdir()
        subprocess.run(["cpio", "-i", "--quiet"], input=gzip.decompress(path.read_bytes()), cwd=root, check=True)
        return root

    def test_contents(self):
        """busybox, the scripts, a file system, and places to mount to."""
        root = self.unpacked(arm64.initramfs())
        self.assertEqual((root / "bin/busybox").read_text(), "a program")
        for name in ("init", "bin/busybox", "bin/mkfs.ext4", "usr/bin/timeout"):
            self.assertTrue((root / name).stat().st_mode & 0o111, name)
        self.assertEqual((root / "init").read_text(), (arm64.SOURCES / "init.sh").read_text())
        self.assertEqual(gzip.decompress((root / "lib/ext4.gz").read_bytes()), b"a file system")
        for name in ("dev", "mnt", "proc", "sys", "tmp"):
            self.assertEqual(list((root / name).iterdir()), [])

    def test_made_once(self):
        """It is made again only where something in it is another."""
        path = arm64.initramfs()
        before = path.stat().st_mtime_ns
        self.assertEqual((arm64.initramfs(), path.stat().st_mtime_ns), (path, before))
        self.assertEqual(self.asked.read_text(), "http://one.example/debian/pool/main/busybox.deb\n")
        self.pin("bin/busybox", "another program")
        self.assertNotEqual(arm64.initramfs(), path)
        self.assertEqual(list(locks.cache().rglob("*.part")), [])

    def test_refused(self):
        """A package that is another, or without a busybox, and a mkfs.ext4 that
        fails: nothing is kept that passes for an initramfs."""
        with mock.patch.object(arm64, "BUSYBOX", ("pool/main/busybox.deb", "0" * 64)), self.fails("checksum"):
            arm64.initramfs()
        self.fake("mkfs.ext4", "echo no space >&2; exit 1\n")
        with self.fails("no space"):
            arm64.initramfs()
        self.pin("bin/box", "a program")
        with self.fails("cannot unpack", "bin/busybox"):
            arm64.initramfs()
        self.assertEqual(list(locks.cache().rglob("initramfs-*.gz")), [])


class Scripts(Case):
    """The scripts of the initramfs that do not need a guest."""

    @unittest.skipUnless(shutil.which("mkfs.ext4", path=SYSTEM), "there is no mkfs.ext4")
    def test_real(self):
        """What is written is a whole file system, whatever was there before."""
        with mock.patch.object(fetch, "debian_file", lambda *_: None), mock.patch.object(fetch, "unpack"):
            (self.dir / "root/bin").mkdir(parents=True)
            arm64.fill_initramfs(self.dir / "root")
        used = gzip.decompress((self.dir / "root/lib/ext4.gz").read_bytes())
        self.assertLess(len(used), 8 << 20)
        with open(self.dir / "device", "wb") as device:
            device.write(used + b"junk" * (((arm64.EXT4_SIZE << 20) - len(used)) // 4))
            device.truncate(arm64.EXT4_SIZE << 20)
        done = subprocess.run(["e2fsck", "-fn", self.dir / "device"], env={"PATH": SYSTEM}, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_mkfs(self):
        """The last argument gets the file system, and keeps what is behind."""
        image = self.dir / "ext4.gz"
        image.write_bytes(gzip.compress(b"a file system"))
        text = (arm64.SOURCES / "mkfs.ext4.sh").read_text()
        self.assertIn("/lib/ext4.gz", text)
        script = put(self.dir / "mkfs.sh", text.replace("/lib/ext4.gz", str(image)))
        device = put(self.dir / "device", "x" * 20)
        subprocess.run(["sh", script, "-q", "-E", "lazy=0", device], check=True)
        self.assertEqual(device.read_text(), "a file system" + "x" * 7)

    def test_timeout(self):
        """The runner's option is left out, all else handed on."""
        text = (arm64.SOURCES / "timeout.sh").read_text()
        script = put(self.dir / "timeout.sh", text.replace("/bin/timeout", "echo"))
        for words in (["--foreground", "5", "true"], ["5", "true"]):
            done = subprocess.run(["sh", script, *words], check=True, capture_output=True, text=True)
            self.assertEqual(done.stdout, "5 true\n")


class Boot(Case):
    """arm64.boot() and the program, with a QEMU that is a shell script."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(arm64, "initramfs", lambda: Path("/cache/initramfs.gz")))
        self.image = mock.Mock(image=Path("/k/Image"))
        self.run_dir = self.dir / "run"

    def test_ran(self):
        """The script's status is told; the kernel's log, the script's output
        and what QEMU says are apart."""
        self.fake("qemu-system-aarch64", QEMU)
        ran = arm64.boot(self.image, self.run_dir, "echo hello; exit 3", cpus=4, memory="1G")
        self.assertEqual((ran.status, ran.output.read_text()), (3, "hello\n"))
        self.assertEqual(ran.console.read_text(), "[    0.000000] Booting Linux on physical CPU 0x0000000000\n")
        self.assertEqual((self.run_dir / "machine.log").read_text(), "a word of QEMU's\n")
        argv = (self.run_dir / "argv").read_text()
        for words in ("-M virt", "pauth-impdef=on", "-smp 4", "-m 1G", "-kernel /k/Image", "-no-reboot",
                      "-initrd /cache/initramfs.gz", "console=ttyAMA0", "panic=-1", "mount_tag=run"):
            self.assertIn(words, argv)
        self.assertNotIn("netdev", argv)

    def test_no_qemu(self):
        """Without QEMU the next step is named."""
        with mock.patch.dict("os.environ", {"PATH": str(self.bin)}), self.fails("qemu-system-aarch64", "make install"):
            arm64.boot(self.image, self.run_dir, "true")


class Chosen(KernelCase):
    """A topic's guests, and check.everything()."""

    def asks(self, name: str, *guests: str) -> model.Topic:
        """A topic that asks for @guests."""
        self.topic(name)
        path = self.root / "patches" / name / "series.toml"
        put(path, f"tests.guests = {list(guests)}\n" + path.read_text())
        return model.find_topic(name)

    def ran(self, *chosen: model.Topic) -> tuple[list[tuple], list[Result]]:
        """Which targets are built for which architecture and run under which
        name, and the results."""
        seen = []

        def one_guest(image, tests, name, _script, _what, round_robin=False):
            seen.append((*image, tests, name))
            return [Result(name, PASSED)]

        def apply(_repo, _on, series):
            return "HEAD" if len(series) == len(chosen) else f"{series[0].name} alone"

        def prepare(_repo, _base, revision, config, topics, _label, neighbours):
            return (config, revision), [one.name for one in topics] + [name for one in topics for name in one.neighbours
                                                                       if neighbours]

        with mock.patch.object(check, "build_guest", prepare), mock.patch.object(check, "cached", lambda *_: True), \
                mock.patch.object(check, "apply", apply), mock.patch.object(check, "guest_results", one_guest):
            subject = mock.Mock(base=self.base, repo=Path("/repo"), before="")
            subject.step = lambda name, work, needs, _minutes: (name, work, needs)
            steps = check.everything(subject, list(chosen), check.Run("tcg", False, check.Budget()), "")
            results = [result for name, work, needs in steps if "tests" in needs and not name.endswith(("out", "space"))
                       for result in work()]
        return seen, results

    def test_who_runs_where(self):
        """All run on both x86-64 kernels, which have all series, and the
        kernel's own on the first; on arm64, those that ask for it, with their
        own series."""
        both = ["alpha", "beta"]
        beta = replace(self.asks("beta", "arm64"), neighbours=("pidfd", "alpha"))
        seen, results = self.ran(self.topic("alpha"), beta)
        all_of_them = [*both, "pidfd", "alpha"]
        self.assertEqual(seen, [("trace", "HEAD", all_of_them, "kselftests trace"),
                                ("trace", "HEAD", all_of_them, "tools"),
                                ("debug", "HEAD", both, "kselftests debug"),
                                ("arm64", "beta alone", ["beta"], "kselftests arm64")])
        self.assertEqual(len(results), 4)

    def test_guest(self):
        """The results of the arm64 guest are its KTAP and its kernel's log."""
        def boot(_image, path, _script, timeout, label, cpus):
            put(path / "ktap", "TAP version 13\n1..1\nok 1 alpha\n")
            put(path / "console.log", "[    1.0] WARNING: suspicious RCU usage\n")
            return watch.Ran(0, path)

        put(self.root / "scripts/trace/check.sh", "")
        self.fake("qemu-system-aarch64", "echo QEMU 1\n")
        tests = put(self.dir / "tests/run_kselftest.sh", "").parent
        with mock.patch.object(arm64, "boot", boot), mock.patch.object(guest, "decode"), \
                mock.patch.object(guest, "ROOT", self.root), \
                mock.patch.object(guest.qemu, "boot", side_effect=AssertionError("booted x86")):
            results = list(check.guest_results(mock.Mock(config="arm64", path=Path("/kernel")), tests,
                                               "kselftests arm64", "true", check.Run("auto", True, check.Budget())))
        self.assertEqual([(one.name.split(" (")[0], one.verdict) for one in results],
                         [("kselftests arm64: alpha", PASSED), ("kselftests arm64: the kernel's log", FAILED)])
