# SPDX-License-Identifier: GPL-2.0
"""Installing packages, without installing any."""

import argparse
import os
import signal
import subprocess
import sys
import time
from unittest import mock

from support import SCRIPTS, Case, put

# isort: split
from core import command
from core import install
from core import locks


class Need(Case):
    """install.need() with an apt-get that is a shell script."""

    def setUp(self):
        super().setUp()
        self.log = self.dir / "apt"
        self.fake("apt-get", f'echo "$@" >> {self.log}\n')
        self.enterContext(mock.patch.object(install, "missing", lambda names: [n for n in names if n in self.gone]))
        self.enterContext(mock.patch.object(install.os, "geteuid", lambda: 0))
        self.gone = {"git", "qemu-system-x86", "sparse"}
        os.environ[install.AGREED] = "1"

    def test_asked(self):
        """Nothing is installed without consent: by INSTALL=1, or by an answer."""
        del os.environ[install.AGREED]
        with self.fails("INSTALL=1", "apt-get install git"):
            install.need("source")
        self.enterContext(mock.patch.object(install.sys, "stdin", mock.Mock(isatty=lambda: True)))
        with mock.patch("builtins.input", lambda _question: ""), self.fails("2 Debian packages are missing"):
            install.ask("source", "lint")
        self.assertFalse(self.log.exists())
        with mock.patch("builtins.input", lambda _question: "y"):
            self.assertEqual(install.ask("source", "lint"), ["git", "sparse"])
        install.need("source")
        self.assertIn("recommends git", self.log.read_text())

    def test_groups(self):
        """What is missing of the groups is installed, and no more; nothing is
        run where all is there."""
        install.need("source", "build")
        self.assertEqual(self.log.read_text().splitlines(),
                         ["update", "install -y --no-install-recommends git"])
        self.log.unlink()
        self.gone.clear()
        install.need(*install.PACKAGES)
        self.assertFalse(self.log.exists())

    def test_no_root(self):
        """Without root and sudo, the command that installs them is named."""
        with mock.patch.object(install.os, "geteuid", lambda: 1000), \
                mock.patch.object(install.shutil, "which", lambda _name: None), \
                self.fails("apt-get install git sparse"):
            install.need("source", "lint")
        self.fake("sudo", 'exit 1\n')
        with mock.patch.object(install.os, "geteuid", lambda: 1000), self.fails("password", "sudo apt-get install git"):
            install.need("source")
        self.assertFalse(self.log.exists())


class Interrupted(Case):
    """process.logged() when the user interrupts it."""

    def interrupted(self, more: str, before: str = "") -> bool:
        """Whether a program that logged() runs with the arguments @more has
        come to its end after an interrupt; it begins with the shell @before."""
        done = self.dir / "done"
        done.unlink(missing_ok=True)
        go = self.dir / "go"
        go.unlink(missing_ok=True)
        self.fake("slow", f"{before}echo begun\nuntil [ -e {go} ]; do sleep 0.05; done\necho done > {done}\n")
        # What a shell starts in the background ignores interrupts.
        program = put(self.dir / "program.py", f"import signal, sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
                      "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                      "from core import command, process\nfrom pathlib import Path\n"
                      f"command.run(lambda: process.logged('slow', ['slow'], Path('{self.dir}/log'){more}))\n")
        with subprocess.Popen([sys.executable, program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True) as child:
            while child.poll() is None and not ((self.dir / "log").exists() and (self.dir / "log").read_text()):
                time.sleep(0.01)
            # logged() has started it, and is to wait for it by now.
            time.sleep(0.5)
            os.killpg(child.pid, signal.SIGINT)
            if more:
                time.sleep(0.2)
                self.assertIsNone(child.poll())
                go.touch()
            self.assertNotEqual(child.wait(), 0)
        (self.dir / "log").unlink()
        return done.exists()

    def test_finish(self):
        """What has to finish is waited for, and anything else is ended: a
        package manager that is stopped half-way leaves a broken system."""
        self.assertEqual([self.interrupted(", finish=True"), self.interrupted("")], [True, False])

    def test_children(self):
        """What it has started ends with it, also what nobody would tell: a build
        that goes on without the lock spoils the next one."""
        self.interrupted("", f"sleep 30 &\necho $! > {self.dir}/pid\n")
        stat = f"/proc/{(self.dir / 'pid').read_text().strip()}/stat"
        time.sleep(0.5)
        # Nobody may have asked for its status yet.
        self.assertTrue(not os.path.exists(stat) or " Z " in open(stat).read())


class Makefile(Case):
    """What make hands to the steps."""

    def given(self, *words: str) -> list[str]:
        """The arguments of the step that `make @words` runs."""
        self.fake("steps", 'printf "%s\\n" "$@"\n')
        return subprocess.run(["make", "-s", "-C", SCRIPTS.parent, "PYTHON=steps", *words], check=True,
                              capture_output=True, text=True).stdout.splitlines()

    def test_quoted(self):
        """Spaces and what the shell takes for its own reach the step as they
        are."""
        odd = f"a b; touch {self.dir}/ran $HOME \"'"
        self.assertEqual(self.given("bench", f"TOPIC={odd.replace('$', '$$')}", "OUT=c d", "BOOTS=x"),
                         ["scripts", "bench", "--topic", odd, "--boots", "x", "--out", "c d"])
        self.assertEqual(self.given("report", "BASE=a b"), ["scripts", "report", "--base", "a b"])
        self.assertEqual(self.given("check-full", "MINUTES=5", "BASE=v0"),
                         ["scripts", "check", "--base", "v0", "--minutes", "5", "--full"])
        self.assertEqual(self.given("tree", "TOPIC=pid") + self.given("tree"),
                         ["scripts", "tree", "--topic", "pid", "scripts", "branches"])
        self.assertFalse((self.dir / "ran").exists())

    def test_own(self):
        """INSTALL=1 is for the steps, and no make that they start has it; what another
        target takes is refused."""
        self.fake("steps", 'env\n')
        def environment(*words: str) -> str:
            return subprocess.run(["make", "-s", "-C", SCRIPTS.parent, "PYTHON=steps", *words],
                                  capture_output=True, text=True).stdout

        found = environment("check", "INSTALL=1")
        self.assertIn("\nHOTPATHS_INSTALL=1\n", found)
        self.assertNotRegex(found, r"(?m)^(INSTALL|MAKEFLAGS)=.*1")
        self.assertIn("\nHOTPATHS_INSTALL=\n", environment("check"))
        self.assertEqual(environment("shell", "TOPIC=pid", "CONFIG=trace"), "")


class Arguments(Case):
    """command.at_least() and locks.room_for_builds()."""

    def test_numbers(self):
        """Whole numbers within the limits."""
        self.assertEqual([command.at_least(1)("1"), command.at_least(1, 4)("4")], [1, 4])
        for kind, text in ((command.at_least(1), "0"), (command.at_least(1), "-1"), (command.at_least(1), "2.5"),
                           (command.at_least(1), "many"), (command.at_least(1, 4), "5"), (command.at_least(1), "")):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "not a whole number"):
                kind(text)

    def test_room(self):
        """What is needed is said before anything begins: more without builds."""
        for there, built, refused in ((20, False, False), (10, False, True), (10, True, False), (2, True, True)):
            with self.subTest(there=there, built=built), \
                    mock.patch.object(locks, "free", lambda _path, there=there: there << 30):
                if built:
                    (locks.cache() / "build").mkdir(exist_ok=True)
                if refused:
                    with self.fails(f"{there} GB free", "make check takes", "XDG_CACHE_HOME"):
                        locks.room_for_builds("make check")
                else:
                    locks.room_for_builds("make check")
