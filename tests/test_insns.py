# SPDX-License-Identifier: GPL-2.0
"""The plugin that counts instructions, driven by a stand-in for QEMU, and what
it is told about a kernel."""

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from support import Case, put

# isort: split
from measure import insns
from measure import plugin

OPEN, OP, END, CLOSE = 1, 2, 3, 4
# Addresses in the kernel.
IP, BEGIN, TAKEN, RELEASE = (f"ffffffff8100{low}" for low in ("0100", "0200", "0300", "0400"))
LOCK = "ffff888000001000"

# What objdump prints of a function that takes a mutex in both ways, of one that ends in
# taking it, and of one that releases it as it ends.
WRITE = """
ffffffff81000010 <pipe_write>:
ffffffff81000010:\tpush   %rbx
ffffffff81000011:\tcall   ffffffff81000900 <mutex_lock>
ffffffff81000016:\tmov    %rax,%rbx
ffffffff81000018:\tcall   ffffffff81000050 <pipe_prepare>
ffffffff8100001d:\tmov    0x10(%rbx),%rax
ffffffff81000020:\tje     ffffffff81000016 <pipe_write+0x6>
ffffffff81000022:\tcall   ffffffff81000a00 <mutex_unlock>
ffffffff81000027:\tret
"""
PREPARE = """
ffffffff81000050 <pipe_prepare>:
ffffffff81000050:\tnop
ffffffff81000051:\tjmp    ffffffff81000900 <mutex_lock>
"""
TRIM = """
ffffffff81000070 <pipe_trim.part.0>:
ffffffff81000070:\tjmp    ffffffff81000a00 <mutex_unlock>
"""


@unittest.skipUnless(shutil.which("gcc"), "there is no gcc")
class Plugin(Case):
    """scripts/tcg/insns.c."""

    @classmethod
    def setUpClass(cls):
        cls.built = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.built.cleanup)
        cls.driver = Path(cls.built.name) / "driver"
        subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-I", plugin.SOURCE, "-I",
                        plugin.MARKS, "-o", cls.driver, Path(__file__).with_name("plugin_driver.c"),
                        plugin.SOURCE / "insns.c"], check=True)

    def drive(self, *commands: str, options: tuple[str, ...] = (), cpus: int = 1) -> subprocess.CompletedProcess:
        """Let the plugin see @commands of the driver, of a guest of @cpus."""
        return subprocess.run([self.driver, str(cpus), f"out={self.dir / 'insns.json'}", *options],
                              input="\n".join(commands) + "\n", capture_output=True, text=True)

    def windows(self, *commands: str, **more) -> list[dict]:
        """What the plugin writes of @commands, which it is not to complain of."""
        done = self.drive(*commands, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [json.loads(line) for line in (self.dir / "insns.json").read_text().splitlines()]

    def test_operations(self):
        """Instructions from a mark to the next one, the second mark included; those
        before the window, between operations and after them do not count."""
        self.assertEqual(self.windows(
            f"mark 0 {OP}", f"run 0 {IP} 5", f"mark 0 {END}", f"mark 0 {OPEN}", f"run 0 {IP} 9", f"mark 0 {OP}",
            f"run 0 {IP} 3", f"mark 0 {OP}", f"run 0 {IP} 7", f"mark 0 {END}", f"run 0 {IP} 11", f"mark 0 {CLOSE}"),
            [{"ops": [4, 8], "sections": []}])

    def test_windows(self):
        """A window knows nothing of the one before."""
        once = [f"mark 0 {OPEN}", f"mark 0 {OP}", f"run 0 {IP} 3", f"mark 0 {END}", f"mark 0 {CLOSE}"]
        self.assertEqual(self.windows(*once, *once), [{"ops": [4], "sections": []}] * 2)

    def test_spinlock(self):
        """A spinlock is held from a store of its word to one of its byte, and what
        is stored elsewhere does not matter."""
        [window] = self.windows(
            f"mark 0 {OPEN}", f"mark 0 {OP}", f"store 0 {IP} 1000 4", f"run 0 {IP} 10", f"store 0 {IP} 2000 1",
            f"store 0 {IP} 1000 1", f"run 0 {IP} 10", f"mark 0 {OP}", f"store 0 {IP} 1000 4", f"store 0 {IP} 1000 1",
            f"mark 0 {END}", f"store 0 {IP} 1000 4", f"store 0 {IP} 1000 1", f"mark 0 {CLOSE}",
            options=(f"lock={LOCK}",))
        self.assertEqual(window["sections"], [[0, int(IP, 16), 12], [1, int(IP, 16), 1]])

    def test_mutex(self):
        """A mutex is held from one of the first addresses to one of the others; one
        that says so twice has held it since the first."""
        [window] = self.windows(
            f"mark 0 {OPEN}", f"mark 0 {OP}", f"run 0 {BEGIN} 1", f"run 0 {IP} 5", f"run 0 {TAKEN} 1",
            f"run 0 {RELEASE} 1", f"run 0 {RELEASE} 1", f"run 0 {TAKEN} 1", f"run 0 {IP} 2", f"run 0 {RELEASE} 1",
            f"mark 0 {END}", f"mark 0 {CLOSE}", options=(f"begin={BEGIN}:{TAKEN}", f"end={RELEASE}"))
        self.assertEqual(window["sections"], [[0, int(BEGIN, 16), 7], [0, int(TAKEN, 16), 3]])

    def test_many(self):
        """Many operations and sections are not lost."""
        one = [f"mark 0 {OP}", f"run 0 {BEGIN} 1", f"run 0 {RELEASE} 1"]
        [window] = self.windows(f"mark 0 {OPEN}", *one * 3000, f"mark 0 {END}", f"mark 0 {CLOSE}",
                                options=(f"begin={BEGIN}", f"end={RELEASE}"))
        self.assertEqual((window["ops"], len(window["sections"])), ([3] * 3000, 3000))
        self.assertEqual(window["sections"][-1], [2999, int(BEGIN, 16), 1])

    def test_cpus(self):
        """Of several CPUs, what the one that marks executes counts, whichever it is."""
        once = [f"run 0 {IP} 30", f"mark 1 {OPEN}", f"run 0 {IP} 4", f"mark 1 {OP}", f"run 1 {IP} 2", f"run 0 {IP} 3",
                f"run 2 {IP} 5", f"run 1 {IP} 7", f"mark 1 {OP}", f"run 2 {IP} 6", f"mark 1 {END}", f"run 0 {IP} 8",
                f"mark 1 {CLOSE}"]
        other = [f"mark 2 {OPEN}", f"mark 2 {OP}", f"run 1 {IP} 3", f"run 2 {IP} 1", f"mark 2 {END}",
                 f"mark 2 {CLOSE}"]
        self.assertEqual([window["ops"] for window in self.windows(*once, *other, *once, cpus=3)],
                         [[10, 1], [2], [10, 1]])

    def test_errors(self):
        """Marks that make no window, and arguments that make no sense, end it
        with one line."""
        for commands, words in (([f"mark 0 {CLOSE}"], "not opened"), ([f"mark 0 {OPEN}"] * 2, "another one"),
                                ([f"mark 0 {OPEN}", f"mark 0 {OP}", f"mark 0 {CLOSE}"], "within an operation"),
                                ([f"mark 0 {OPEN}", f"mark 1 {OP}"], "two CPUs")):
            with self.subTest(commands=commands):
                done = self.drive(*commands)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
                self.assertIn(words, done.stderr)
        for argv, words in ((["1"], "out=FILE"), (["1", "in=x"], "'in=x'"), (["1", "begin=1:x"], "begin"),
                            (["2", f"out={self.dir}/x", "lock=1"], "one CPU"),
                            (["2", f"out={self.dir}/x", "begin=1", "end=2"], "one CPU"),
                            (["1", f"out={self.dir}/x", f"end={':'.join(['1'] * 65)}"], "end="),
                            (["1", f"out={self.dir}/none/x"], "out=FILE")):
            with self.subTest(argv=argv):
                done = subprocess.run([self.driver, *argv], input="", capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1))
                self.assertIn(words, done.stderr)


class Option(Case):
    """plugin.insns_option()."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(plugin, "plugin_path", lambda name: Path(f"/c/{name}.so")))
        self.kernel = mock.Mock(path=self.dir)
        names = ("pipe_write", "pipe_prepare", "pipe_trim.part.0", "another", "pidmap_lock")
        self.fake("nm", "".join(f"echo {number:016x} t {name}\n" for number, name in enumerate(names)))
        put(self.dir / "pipe_write", WRITE)
        put(self.dir / "pipe_prepare", PREPARE)
        put(self.dir / "pipe_trim.part.0", TRIM)
        self.fake("objdump", f'name="${{3#--disassemble=}}"; cat "{self.dir}/$name"\n')

    def test_mutex(self):
        """It is held behind a call of mutex_lock(), and behind that of a function
        that ends in it, until the call of or the jump to mutex_unlock()."""
        self.assertEqual(plugin.insns_option(self.kernel, Path("/r"), functions=("pipe_",)),
                         "/c/insns.so,out=/r/insns.json,begin=ffffffff81000016:ffffffff8100001d,"
                         "end=ffffffff81000022:ffffffff81000070")

    def test_spinlock(self):
        """A spinlock is a variable; one that is not there is told."""
        self.assertEqual(plugin.insns_option(self.kernel, Path("/r"), spinlock="pidmap_lock"),
                         f"/c/insns.so,out=/r/insns.json,lock={4:016x}")
        self.assertEqual(plugin.insns_option(self.kernel, Path("/r")), "/c/insns.so,out=/r/insns.json")
        with self.fails("no inode_lock"):
            plugin.insns_option(self.kernel, Path("/r"), spinlock="inode_lock")

    def test_moved(self):
        """Functions that take no mutex any more are told."""
        with self.fails("fifo_*()", "no mutex"):
            plugin.insns_option(self.kernel, Path("/r"), functions=("fifo_",))


class Rows(Case):
    """What measure.insns makes of windows."""

    def test_sampled(self):
        """A row is a mean, with deviation, number and least beside it."""
        found = insns.sampled("m", "u", "c", [1, 3])
        self.assertEqual((found["value"], found["evidence"], found["spread"]),
                         (2.0, "icount", {"deviation": 1.0, "number": 2, "least": 1.0}))

    def test_windows(self):
        """Windows and results go together in order; others are told."""
        put(self.dir / "insns.json", '{"ops": [1], "sections": []}\n{"ops": [2], "sections": []}\n')
        put(self.dir / "a.json", '{"size": 1}\n')
        put(self.dir / "b.json", '{"size": 2}\n')
        self.assertEqual([(name, result["size"], window["ops"])
                          for name, result, window in insns.windows(self.dir, "a.json", "b.json")],
                         [("a.json", 1, [1]), ("b.json", 2, [2])])
        with self.fails("2 windows of 1 runs"):
            insns.windows(self.dir, "a.json")
        put(self.dir / "b.json", '{"count": 2}\n')
        with self.fails("a window of 1 operations for 2 that b.json has"):
            insns.windows(self.dir, "a.json", "b.json")
        put(self.dir / "insns.json", '{"ops": [1], "sections": []}\n{"ops": [], "sections": []}\n')
        with self.fails("an empty one"):
            insns.windows(self.dir, "a.json", "b.json")

    def test_held(self):
        """What an operation held the lock for adds up, 0 where it did not."""
        window = {"ops": [9, 9], "sections": [[1, 16, 5], [1, 32, 7]]}
        self.assertEqual(insns.held(window), [0, 12])
        self.assertEqual(insns.held(window, lambda address: address == 16), [0, 5])


if __name__ == "__main__":
    unittest.main()
