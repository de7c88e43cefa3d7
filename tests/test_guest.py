# SPDX-License-Identifier: GPL-2.0
"""Finding reports in a guest's log, and the command line of a guest."""

import os
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

from support import SCRIPTS, Case, put

# isort: split
import guest

BAD = {
    "lockdep": "[    5.1] WARNING: possible circular locking dependency detected",
    "recursion": "[    5.1] WARNING: possible recursive locking detected",
    "lock state": "[    5.1] WARNING: inconsistent lock state",
    "RCU use": "[    5.1] WARNING: suspicious RCU usage",
    "unlock": "[    5.1] WARNING: bad unlock balance detected!",
    "kasan": "[    6.2] BUG: KASAN: slab-use-after-free in anon_pipe_write+0x1f/0x5c0",
    "stall": "[   26.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "self stall": "[   26.0] rcu: INFO: rcu_sched self-detected stall on CPU",
    "hung task": "[  245.3] INFO: task pipe_load:123 blocked for more than 120 seconds.",
    "soft lockup": "[   48.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [pipe_load:99]",
    "warn": "[    7.3] WARNING: CPU: 1 PID: 77 at fs/pipe.c:123 pipe_release+0x10/0x20",
    "bug": "[    8.4] kernel BUG at mm/filemap.c:2345!",
    "oops": "[    8.4] Oops: 0000 [#1] SMP KASAN NOPTI",
    "null": "[    8.4] BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "sleep": "[    8.4] BUG: sleeping function called from invalid context at mm/page_alloc.c:12",
    "panic": "[    9.5] Kernel panic - not syncing: Fatal exception",
    "page": "[    9.6] Bad page state in process pipe_test  pfn:01234",
    "list": "[    9.7] list_del corruption. prev->next should be ffff8880, but was dead",
    "ubsan": "[    9.8] UBSAN: array-index-out-of-bounds in fs/pipe.c:1:2",
    "static key": "[    5.2] INFO: trying to register non-static key.",
    "slub": "[    9.7] BUG kmalloc-64 (Not tainted): Poison overwritten",
    "ext4": "[    9.8] EXT4-fs error (device loop0): ext4_find_entry:1463: inode #2: comm test",
    "xfs": "[    9.8] XFS (loop1): Corruption detected. Unmount and run xfs_repair",
    "xfs assert": "[    9.8] XFS: Assertion failed: ip->i_nblocks == 0, file: fs/xfs/xfs_inode.c, line: 1",
    "vfs": "[    9.8] VFS: Busy inodes after unmount of loop0. Self-destruct in 5 seconds.",
    "oom": "[    9.9] Out of memory: Killed process 88 (stress-ng)",
}

INNOCENT = """\
[    0.000000] Linux version 6.18.15 (hotpaths@hotpaths) (gcc (Debian 12.2.0-14) 12.2.0) #1 SMP
[    0.000000] Command line: virtme_hostname=virtme-ng panic=-1 ignore_loglevel hung_task_panic=0
[    0.100000] kasan: KernelAddressSanitizer initialized (generic)
[    0.100000] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
[    0.100000]  memory used by lock dependency info: 11921 kB
[    0.100000] rcu: Hierarchical RCU implementation.
[    0.100000] rcu: \tRCU lockdep checking is enabled.
[    0.100000] rcu: \tRCU CPU stall warnings timeout set to 21 (rcu_cpu_stall_timeout).
[    0.200000] Spectre V1 : Mitigation: usercopy/swapgs barriers and __user pointer sanitization
[    0.300000] Debug: sleeping function check, bug table and oops=panic are set up
[    1.000000] Memory cgroup out of memory: Killed process 70 (pipe_test) total-vm:2048kB
[    1.050000] EXT4-fs (loop0): mounted filesystem 1 r/w with ordered data mode. Quota mode: disabled.
[    1.060000] XFS (loop1): Unmounting Filesystem 2
[    1.100000] FAULT_INJECTION: forcing a failure.
[    1.200000] x86/mm: Checked W+X mappings: passed, no W+X pages found.
[    1.300000] reboot: Power down
"""


class Reports(Case):
    """guest.reports()."""

    def test_each_kind(self):
        """Every kind of report is found, alone and between innocent lines."""
        for name, line in BAD.items():
            found = guest.reports(INNOCENT + line + "\n" + INNOCENT)
            self.assertEqual(len(found), 1, name)
            self.assertTrue(found[0].endswith(line), name)

    def test_all_in_order(self):
        """Every line is reported once, in the log's order."""
        found = guest.reports("\n".join(BAD.values()))
        self.assertEqual([one.partition(": ")[2] for one in found], list(BAD.values()))

    def test_innocent_lines(self):
        """A healthy boot has no report, though it speaks of KASAN, RCU and locks."""
        self.assertEqual(guest.reports(INNOCENT), [])

    def test_kind_before_the_line(self):
        """The kind says what to look for."""
        self.assertEqual(guest.reports(BAD["hung task"]), ["hung task: " + BAD["hung task"]])
        self.assertEqual(guest.reports(BAD["warn"]), ["warning: " + BAD["warn"]])

    def test_exact_kinds(self):
        """Whoever made a report names it, also where the line says BUG or
        WARNING as well."""
        kinds = {"kasan": "kasan", "ubsan": "ubsan", "panic": "panic", "warn": "warning"}
        for kind, names in (("lockdep", ("lockdep", "recursion", "lock state", "RCU use", "unlock", "static key")),
                            ("rcu", ("stall", "self stall")), ("hung task", ("hung task", "soft lockup")),
                            ("bug", ("bug", "oops", "null", "sleep")), ("memory", ("page", "list", "oom", "slub")),
                            ("file system", ("ext4", "xfs", "xfs assert", "vfs"))):
            kinds |= dict.fromkeys(names, kind)
        self.assertEqual({name: guest.reports(line)[0].partition(": ")[0] for name, line in BAD.items()}, kinds)

    def test_allowed(self):
        """A kind that is provoked on purpose is left out, and no other."""
        log = BAD["oom"] + "\n" + BAD["warn"]
        self.assertEqual(guest.reports(log, ("memory",)), ["warning: " + BAD["warn"]])
        self.assertEqual(len(guest.reports(BAD["lockdep"], ("warning",))), 1)


class CommandLine(Case):
    """guest.vng(), guest.accelerator(), guest.run_directory()."""

    def vng(self, **more):
        """The command line for a kernel and a run's directory."""
        with mock.patch.object(guest, "tool", lambda name: Path("/venv/bin") / name):
            return guest.vng(Path("/k/bzImage"), Path("/r"), "true", 2, "1G", more.get("accel", "kvm"),
                             more.get("icount", False), more.get("by_turns", False))

    def test_accelerators(self):
        """KVM is only used where it was chosen, and icount only where asked."""
        self.assertNotIn("--disable-kvm", self.vng())
        self.assertIn("--disable-kvm", self.vng(accel="tcg"))
        self.assertFalse([word for word in self.vng(accel="tcg") if "icount" in word])
        self.assertIn("--qemu-opts=-icount shift=0,sleep=off", self.vng(accel="tcg", icount=True))
        self.assertIn("--qemu-opts=-accel tcg,thread=single", self.vng(accel="tcg", by_turns=True))
        self.assertFalse([word for word in self.vng(by_turns=True) if "thread=" in word])
        self.assertIn("/mnt=/r", self.vng())

    def test_wanted(self):
        """tcg is not probed; kvm that does not work is a Failure, auto is not."""
        with mock.patch.object(guest, "kvm_works", side_effect=AssertionError("probed")):
            self.assertEqual(guest.accelerator("tcg", None), "tcg")
        with mock.patch.object(guest, "kvm_works", return_value=False):
            self.assertEqual(guest.accelerator("auto", None), "tcg")
            with self.fails("ACCEL=tcg"):
                guest.accelerator("kvm", None)
        with mock.patch.object(guest, "kvm_works", return_value=True):
            self.assertEqual(guest.accelerator("auto", None), "kvm")

    def test_run_directory(self):
        """A run begins with an empty directory in the cache."""
        path = guest.run_directory("x")
        (path / "left").write_text("over")
        self.assertEqual(guest.run_directory("x"), path)
        self.assertEqual(list(path.iterdir()), [])
        self.assertTrue(path.is_relative_to(self.dir / "cache"))

    def test_two_runs(self):
        """A run directory that another process has is left alone."""
        program = ("import sys; sys.path.insert(0, sys.argv[1]); import guest; "
                   "print(guest.run_directory('x'), flush=True); sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", program, str(SCRIPTS)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as other:
            theirs = Path(other.stdout.readline().strip())
            put(theirs / "ktap", "of a run\n")
            self.assertEqual([guest.run_directory("x").name, guest.run_directory("x").name], ["x.2", "x.2"])
            self.assertTrue((theirs / "ktap").exists())
            other.stdin.close()
        with mock.patch.dict(guest.HELD, clear=True):
            self.assertEqual(guest.run_directory("x"), theirs)
        self.assertEqual(list(theirs.iterdir()), [])


class Boot(Case):
    """guest.boot() with a vng that is a shell script."""

    def boot(self, script: str, **more):
        """Boot with a fake vng that runs @script in the run's directory."""
        self.fake("vng", f"cd {self.dir / 'run'}\n{script}")
        kernel = mock.Mock(image=Path("/k/bzImage"))
        with mock.patch.object(guest, "tool", lambda name: self.bin / name), \
                mock.patch.object(guest, "search_path", lambda: os.environ["PATH"]):
            return guest.boot(kernel, self.dir / "run", "true", **more)

    def test_status(self):
        """The script's exit status is told; console and output are kept."""
        ran = self.boot("echo booted >&2; echo hello > output.log; echo 3 > status\n")
        self.assertEqual((ran.status, ran.console.read_text(), ran.output.read_text()),
                         (3, "booted\n", "hello\n"))

    def test_died(self):
        """A guest that never wrote a status is a Failure with the log's end,
        even where a former run left one."""
        (self.dir / "run").mkdir()
        (self.dir / "run/status").write_text("0\n")
        with self.fails("died", str(self.dir / "run/console.log"), "Kernel panic - here"):
            self.boot("echo 'Kernel panic - here' >&2; exit 0\n")

    def test_died_at_boot(self):
        """Under TCG, a guest that dies as it boots and says nothing, or that it
        ran into a breakpoint, is booted again; the logs are kept."""
        dies = "echo x >> boots; echo booting >&2; case $(wc -l < boots) in 1) exit 255;; " \
               "2) echo 'Oops: int3: 0000 [#1] SMP' >&2; echo 'Kernel panic - here' >&2; exit 255;; esac\n"
        ran = self.boot(dies + "echo hello > output.log; echo 0 > status\n")
        self.assertEqual((ran.status, ran.output.read_text(), ran.console.read_text()), (0, "hello\n", "booting\n"))
        self.assertEqual((ran.path / "console-died-1.log").read_text(), "booting\n")
        self.assertIn("panic", (ran.path / "console-died-2.log").read_text())

    def test_died_at_boot_again(self):
        """Not for ever, not with KVM, not where the kernel said something else,
        and not where the script had begun."""
        for boots, died, script, more in (
                (guest.BOOTS, "began", "exit 255", {}),
                (1, "began", "exit 255", {"accel": "kvm"}),
                (1, "began", "echo 'BUG: here' >&2; echo 'Oops: int3' >&2; exit 255", {}),
                (1, "ended", "echo hello > output.log; exit 255", {})):
            with self.subTest(script=script, **more):
                with self.fails(f"{died} (vng exited with 255)"):
                    self.boot(f"echo x >> boots; {script}\n", **more)
                self.assertEqual((self.dir / "run/boots").read_text(), "x\n" * boots)
                (self.dir / "run/boots").unlink()

    def test_hung(self):
        """A guest that hangs is stopped, with all of its session."""
        with self.fails("did not finish in 3 s", "last words"):
            self.boot("echo last words >&2; sleep 30 & echo $! > child; wait\n", timeout=3)
        child = int((self.dir / "run/child").read_text())
        for _ in range(100):
            try:
                state = Path(f"/proc/{child}/stat").read_text().split()[2]
            except OSError:
                state = "gone"
            if state in ("Z", "gone"):
                break
            time.sleep(0.1)
        self.assertIn(state, ("Z", "gone"))
