# SPDX-License-Identifier: GPL-2.0
"""The plugin that records memory accesses, driven by a stand-in for QEMU, and
the program that runs in the guest, without it."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import Case, put

# isort: split
from measure import plugin
from source.build import REGRESS

OPEN, OP, END, CLOSE = 1, 2, 3, 4
TICK = "ffffffff81000800"


@unittest.skipUnless(shutil.which("gcc"), "there is no gcc")
class Plugin(Case):
    """scripts/tcg/lines.c."""

    @classmethod
    def setUpClass(cls):
        cls.built = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.built.cleanup)
        cls.driver = Path(cls.built.name) / "driver"
        subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-I", plugin.SOURCE, "-I",
                        plugin.MARKS, "-o", cls.driver, Path(__file__).with_name("plugin_driver.c"),
                        plugin.SOURCE / "lines.c"], check=True)

    def drive(self, *commands: str, cpus: int = 2) -> subprocess.CompletedProcess:
        """Let the plugin see @commands of the driver."""
        return subprocess.run([self.driver, str(cpus), f"out={self.dir / 'lines.json'}", f"tick={TICK}"],
                              input="\n".join(commands) + "\n", capture_output=True, text=True)

    def windows(self, *commands: str, cpus: int = 2) -> list[dict]:
        """What the plugin writes of @commands, which it is not to complain of."""
        done = self.drive(*commands, cpus=cpus)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [json.loads(line) for line in (self.dir / "lines.json").read_text().splitlines()]

    def test_shared(self):
        """What one CPU writes and another touches is told, by operation and by
        instruction; what all read, or one has for itself, is only counted."""
        found = self.windows(
            f"mark 0 {OPEN}",
            f"mark 0 {OP}", "store 0 a0 1000 8", "load 0 a4 1038 8", "load 0 a0 2000 4", "store 0 a8 3000 8",
            f"mark 1 {OP}", "load 1 b0 1010 4", "load 1 b4 2010 4", "store 1 b8 4000 8",
            f"mark 0 {OP}", "load 0 a4 1000 8", f"mark 0 {END}", f"mark 1 {END}", f"mark 0 {CLOSE}")
        self.assertEqual(found, [{"ops": [2, 1], "ticks": [[], []], "touched": 4, "lines": [
            {"line": 0x1000, "va": 0xffff888000001000, "cpus": [[0, [[1, 1, 1], [2, 1, 0]]], [1, [[1, 1, 0]]]],
             "sites": [[0xa4, 2, 0], [0xb0, 1, 0], [0xa0, 0, 1]]}]}])

    def test_both_write(self):
        """Two writers share; what only one of three CPUs uses is no matter of theirs."""
        [window] = self.windows(
            f"mark 2 {OPEN}", f"mark 0 {OP}", f"mark 2 {OP}", "store 0 a0 1000 8", "store 2 a0 1000 8",
            "store 0 a0 5000 8", f"mark 0 {END}", f"mark 2 {END}", f"mark 2 {CLOSE}", cpus=3)
        self.assertEqual((window["ops"], window["touched"]), ([1, 0, 1], 2))
        self.assertEqual([line["cpus"] for line in window["lines"]], [[[0, [[1, 0, 1]]], [2, [[1, 0, 1]]]]])

    def test_outside(self):
        """What a CPU does before its first mark, after its last, or on another
        CPU's account does not count, and nor do devices."""
        [window] = self.windows(
            "store 0 a0 1000 8", f"mark 0 {OPEN}", "store 0 a0 1000 8", "store 1 a0 1000 8", f"mark 0 {OP}",
            "store 1 a0 1000 8", "load 0 a0 1000 8", "io 0 a0 6000 8", f"mark 1 {OP}", "io 1 a0 6000 8",
            f"mark 1 {END}", f"mark 0 {END}", "store 1 a0 1000 8", f"mark 0 {CLOSE}")
        self.assertEqual(window, {"ops": [1, 1], "ticks": [[], []], "touched": 1, "lines": []})

    def test_two_lines(self):
        """An access that straddles lines is one of each."""
        [window] = self.windows(
            f"mark 0 {OPEN}", f"mark 0 {OP}", f"mark 1 {OP}", "store 0 a0 103c 8", "load 1 a0 103c 4",
            "load 1 a0 1040 4", f"mark 0 {END}", f"mark 1 {END}", f"mark 0 {CLOSE}")
        self.assertEqual(sorted(line["line"] for line in window["lines"]), [0x1000, 0x1040])

    def test_windows(self):
        """A window knows nothing of the one before."""
        once = [f"mark 0 {OPEN}", f"mark 0 {OP}", f"mark 1 {OP}", "store 0 a0 1000 8", f"mark 0 {END}",
                f"mark 1 {END}", f"mark 0 {CLOSE}"]
        self.assertEqual(self.windows(*once, *(word.replace("store 0", "load 1") for word in once)),
                         [{"ops": [1, 1], "ticks": [[], []], "touched": 1, "lines": []}] * 2)

    def test_ticks(self):
        """Operations that the timer came upon are told, once each; the next
        window has its own."""
        window = [f"mark 0 {OPEN}", "tick 1 0", f"mark 1 {OP}", f"mark 1 {OP}", "tick 1 0", "tick 1 0",
                  f"mark 1 {OP}", "tick 1 0", f"mark 1 {END}", "tick 1 0", f"mark 0 {CLOSE}"]
        found = self.windows(*window, f"mark 0 {OPEN}", f"mark 0 {OP}", f"mark 0 {END}", f"mark 0 {CLOSE}")
        self.assertEqual([one["ticks"] for one in found], [[[], [2, 3]], [[], []]])

    def test_many(self):
        """Neither many lines, many operations nor many instructions are lost."""
        accesses = [f"{kind} {cpu} {0xa0 + op:x} {0x1000000 * (1 + line):x} 8" for op in range(40)
                    for cpu, kind in ((0, "store"), (1, "load")) for line in [*range(20), op + 100]]
        marked = [word for number, access in enumerate(accesses)
                  for word in ([f"mark {access.split()[1]} {OP}"] if number % 21 == 0 else []) + [access]]
        [window] = self.windows(f"mark 0 {OPEN}", *marked, f"mark 0 {END}", f"mark 1 {END}", f"mark 0 {CLOSE}")
        self.assertEqual((window["ops"], window["touched"], len(window["lines"])), ([40, 40], 60, 60))
        for line in window["lines"]:
            once = line["line"] // 0x1000000 > 100
            self.assertEqual([len(turns) for _cpu, turns in line["cpus"]], [1, 1] if once else [40, 40])
            self.assertEqual(len(line["sites"]), 1 if once else 40)

    def test_kernel(self):
        """The kernel has no marks: the same bytes there are an instruction like others."""
        self.assertEqual(self.windows(f"kmark 0 {OPEN}", f"kmark 0 {OP}", f"kmark 0 {CLOSE}"), [])

    def test_errors(self):
        """Marks that make no window, and arguments that make no sense, end it
        with one line."""
        for commands, words in (([f"mark 0 {CLOSE}"], "not opened"), ([f"mark 0 {OPEN}"] * 2, "another one"),
                                ([f"mark 0 {OP}"], "no window is open"),
                                ([f"mark 0 {OPEN}", f"mark 0 {OP}", f"mark 0 {CLOSE}"], "while a CPU is in it")):
            with self.subTest(commands=commands):
                done = self.drive(*commands)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
                self.assertIn(words, done.stderr)
        for argv, words in ((["2"], "out=FILE"), (["2", "in=x", "tick=1"], "out=FILE"),
                            (["2", "out=x", "tock=1"], "tick=ADDRESS"),
                            (["65", f"out={self.dir}/x", "tick=1"], "64 CPUs"),
                            (["2", f"out={self.dir}/none/x", "tick=1"], "No such file")):
            with self.subTest(argv=argv):
                done = subprocess.run([self.driver, *argv], input="", capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1))
                self.assertIn(words, done.stderr)

    def test_built(self):
        """It is compiled once for the same sources, and again for others."""
        path = plugin.plugin_path("lines")
        self.assertIn(b"qemu_plugin_install", path.read_bytes())
        with mock.patch.object(plugin, "compile_command", side_effect=AssertionError("compiled")):
            self.assertEqual(plugin.plugin_path("lines"), path)
        shutil.copytree(plugin.SOURCE, self.dir / "lines")
        self.enterContext(mock.patch.object(plugin, "SOURCE", self.dir / "lines"))
        put(self.dir / "lines/lines.c", (plugin.SOURCE / "lines.c").read_text() + "/* new */\n")
        self.assertNotEqual(plugin.plugin_path("lines"), path)
        put(self.dir / "lines/lines.c", "nonsense\n")
        with self.fails("gcc"):
            plugin.plugin_path("lines")


class Option(Case):
    """plugin.lines_option()."""

    def test_option(self):
        """QEMU is told of the plugin, its output and the kernel's timer, with
        the commas of paths doubled; a kernel without that is told."""
        self.enterContext(mock.patch.object(plugin, "plugin_path", lambda name: Path(f"/c/a,b/{name}.so")))
        kernel = mock.Mock(path=self.dir)
        self.fake("nm", f"echo 0000000000000010 T asm_{plugin.TICK}; echo {TICK} t {plugin.TICK}\n")
        self.assertEqual(plugin.lines_option(kernel, Path("/r")), f"/c/a,,b/lines.so,out=/r/lines.json,tick={TICK}")
        self.fake("nm", "echo 0000000000000010 T another\n")
        with self.fails(plugin.TICK, "vmlinux"):
            plugin.lines_option(kernel, Path("/r"))


@unittest.skipUnless(shutil.which("gcc"), "there is no gcc")
class Workload(Case):
    """regress/lines/shared_lines.c on this machine."""

    @classmethod
    def setUpClass(cls):
        cls.built = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.built.cleanup)
        cls.program = Path(cls.built.name) / "shared_lines"
        subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", REGRESS, "-o", cls.program,
                        REGRESS / "lines/shared_lines.c"], check=True)

    def run_it(self, *argv: str) -> subprocess.CompletedProcess:
        """Run the program with @argv."""
        return subprocess.run([self.program, *argv], capture_output=True, text=True, timeout=60)

    def test_operations(self):
        """Each operation works, and has its line, by operation and CPUs."""
        names = ["nothing", "read-one", "read-shared", "read-own", "pipe-own", "clone", "fault-anon", "fault-file"]
        cpus = [1, 2] if len(os.sched_getaffinity(0)) > 1 else [1]
        done = self.run_it("--json", "--op", ",".join(names), "--cpus", ",".join(map(str, cpus)), "--count", "5",
                           "--warmup", "2", "--dir", str(self.dir))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(one["op"], one["cpus"], one["count"], one["size"]) for one in found],
                         [(name, nr, 5, 64) for name in names for nr in cpus])
        self.assertEqual({one["dir"] for one in found if one["op"].startswith("read")}, {self.dir.name})
        self.assertEqual(list(self.dir.glob("shared_lines*")), [])

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "this machine has one CPU")
    def test_pairs(self):
        """A writer and a reader, also of more than the pipe has room for."""
        done = self.run_it("--json", "--op", "pipe-pair", "--size", "64K", "--count", "20")
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 1))

    def test_refused(self):
        """Wrong usage and too few CPUs are told."""
        for status, argv in ((2, ["--op", "spoon"]), (2, ["--op", "pipe-pair", "--cpus", "1"]), (2, ["--cpus", "0"]),
                             (1, ["--op", "read-own", "--cpus", "1", "--dir", str(self.dir / "none")])):
            with self.subTest(argv=argv):
                done = self.run_it(*argv)
                self.assertEqual((done.returncode, done.stdout), (status, ""))
                self.assertTrue(done.stderr.startswith("shared_lines: "))
        if len(os.sched_getaffinity(0)) < 64:
            self.assertEqual(self.run_it("--cpus", "64").returncode, 4)
