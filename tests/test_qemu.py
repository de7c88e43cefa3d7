# SPDX-License-Identifier: GPL-2.0
"""The command line of QEMU, and booting with a vng that is a shell script."""

import os
import time
from pathlib import Path
from unittest import mock

from support import Case

# isort: split
from guests import qemu


class CommandLine(Case):
    """qemu.vng(), qemu.accelerator()."""

    def vng(self, **more):
        """The command line for a kernel and a run's directory."""
        with mock.patch.object(qemu, "tool", lambda name: Path("/venv/bin") / name):
            return qemu.vng(Path("/k/bzImage"), Path("/r"), "true", 2, "1G", more.get("accel", "kvm"),
                             more.get("icount", False), more.get("round_robin", False), more.get("plugin"))

    def test_accelerators(self):
        """KVM is only used where it was chosen, and icount only where asked."""
        self.assertNotIn("--disable-kvm", self.vng())
        self.assertIn("--disable-kvm", self.vng(accel="tcg"))
        self.assertFalse([word for word in self.vng(accel="tcg") if "icount" in word])
        self.assertIn("--qemu-opts=-icount shift=0,sleep=off", self.vng(accel="tcg", icount=True))
        self.assertIn("--qemu-opts=-accel tcg,thread=single", self.vng(accel="tcg", round_robin=True))
        self.assertFalse([word for word in self.vng(round_robin=True) if "thread=" in word])
        self.assertIn("/mnt=/r", self.vng())

    def test_plugin(self):
        """The guest of a plugin has instructions for a clock; all of QEMU's
        options are in one word, for a shell."""
        self.assertEqual([word for word in self.vng(accel="tcg", plugin="/c/a b.so,out=/r/x") if "opts" in word],
                         ["--qemu-opts=-icount shift=0,sleep=off -plugin '/c/a b.so,out=/r/x'"])
        self.assertFalse([word for word in self.vng(accel="tcg", round_robin=True) if "plugin" in word])

    def test_wanted(self):
        """tcg is not probed; kvm that does not work is a Failure, auto is not."""
        with mock.patch.object(qemu, "kvm_works", side_effect=AssertionError("probed")):
            self.assertEqual(qemu.accelerator("tcg", None), "tcg")
        with mock.patch.object(qemu, "kvm_works", return_value=False):
            self.assertEqual(qemu.accelerator("auto", None), "tcg")
            with self.fails("ACCEL=tcg"):
                qemu.accelerator("kvm", None)
        with mock.patch.object(qemu, "kvm_works", return_value=True):
            self.assertEqual(qemu.accelerator("auto", None), "kvm")


class Boot(Case):
    """qemu.boot() with a vng that is a shell script."""

    def boot(self, script: str, **more):
        """Boot with a fake vng that runs @script in the run's directory."""
        self.fake("vng", f"cd {self.dir / 'run'}\n{script}")
        kernel = mock.Mock(image=Path("/k/bzImage"))
        with mock.patch.object(qemu, "tool", lambda name: self.bin / name), \
                mock.patch.object(qemu, "search_path", lambda: os.environ["PATH"]):
            return qemu.boot(kernel, self.dir / "run", "true", **more)

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
                (qemu.BOOTS, "began", "exit 255", {}),
                (1, "began", "exit 255", {"accel": "kvm"}),
                (1, "began", "echo 'BUG: here' >&2; echo 'Oops: int3' >&2; exit 255", {}),
                (1, "ended", "echo hello > output.log; exit 255", {})):
            with self.subTest(script=script, **more):
                with self.fails(f"{died} (vng exited with 255)"):
                    self.boot(f"echo x >> boots; {script}\n", **more)
                self.assertEqual((self.dir / "run/boots").read_text(), "x\n" * boots)
                (self.dir / "run/boots").unlink()

    def test_reported_early(self):
        """Under TCG, a guest with KASAN's report of the first interrupt is booted
        again; not with another report, nor with that one behind the start of
        init, where the guest is what it is."""
        early = f"echo 'BUG: {qemu.EARLY}+0x1/0x2' >&2"
        init = "echo 'Run /sbin/init as init process' >&2"
        ends = "echo hello > output.log; echo 0 > status"
        for boots, script, more in (
                (2, f"[ $(wc -l < boots) = 2 ] || {early}; {init}; {ends}", {}),
                (2, f"[ $(wc -l < boots) = 2 ] || {{ {early}; exit 255; }}; {init}; {ends}", {}),
                (qemu.BOOTS, f"{early}; {init}; {ends}", {}),
                (1, f"{early}; {init}; {ends}", {"accel": "kvm"}),
                (1, f"echo 'BUG: KASAN: here' >&2; {early}; {init}; {ends}", {}),
                (1, f"{init}; {early}; {ends}", {})):
            with self.subTest(script=script, **more):
                self.assertEqual(self.boot(f"echo x >> boots; {script}\n", **more).status, 0)
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
