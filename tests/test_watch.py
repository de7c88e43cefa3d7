# SPDX-License-Identifier: GPL-2.0
"""The directories of guests, and when a guest is ended."""

import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

from support import SCRIPTS, Case, put

# isort: split
from guests import watch


class Directories(Case):
    """watch.run_directory()."""

    def test_two_runs(self):
        """A run directory that another process has is left alone."""
        program = ("import sys; sys.path.insert(0, sys.argv[1]); from guests import watch; "
                   "print(watch.run_directory('x'), flush=True); sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", program, str(SCRIPTS)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as other:
            theirs = Path(other.stdout.readline().strip())
            put(theirs / "ktap", "of a run\n")
            self.assertEqual([watch.run_directory("x").name, watch.run_directory("x").name], ["x.2", "x.2"])
            self.assertTrue((theirs / "ktap").exists())
            other.stdin.close()
        with mock.patch.dict(watch.HELD, clear=True):
            self.assertEqual(watch.run_directory("x"), theirs)
        self.assertEqual(list(theirs.iterdir()), [])


class Watch(Case):
    """watch.watch() with guests that are shell scripts."""

    def setUp(self):
        super().setUp()
        for name, seconds in (("LOOK", 0.1), ("GRACE", 0.5)):
            self.enterContext(mock.patch.object(watch, name, seconds))

    def watch(self, script: str, timeout: float = 20) -> tuple[watch.Ran, float]:
        """What came out of a guest that runs @script, and the seconds it took."""
        begin = time.monotonic()
        ran = watch.watch(["sh", "-c", f"cd {self.dir / 'run'}; {script}"], self.dir / "run", "true", timeout, "x")
        return ran, time.monotonic() - begin

    def test_report(self):
        """A guest whose kernel has reported something wrong is ended soon, with
        the rest of the report; what the script printed until then is kept."""
        for before in ("", "printf 'WARNING: poss' >&2; sleep 0.3; echo 'ible recursive locking' >&2; "):
            with self.subTest(before):
                ran, seconds = self.watch(f"echo began > output.log; {before or 'echo BUG: here >&2; '}"
                                          "sleep 0.2; echo the rest >&2; sleep 60")
                self.assertIsNone(ran.status)
                self.assertLess(seconds, 10)
                self.assertEqual(ran.output.read_text(), "began\n")
                self.assertTrue(ran.console.read_text().endswith("the rest\n"))
                self.assertEqual(len(ran.reports()), 1)

    def test_no_report(self):
        """Other words end no guest, nor half of a line that tells of a known race;
        nor does a report one that comes to its end."""
        ran, _ = self.watch("echo began > output.log; echo hello >&2; sleep 1; echo 3 > status")
        self.assertEqual((ran.status, ran.reports()), (3, []))
        ran, _ = self.watch("echo began > output.log; echo BUG: here >&2; sleep 0.2; echo 0 > status")
        self.assertEqual((ran.status, len(ran.reports())), (0, 1))
        ran, _ = self.watch("echo began > output.log; printf 'BUG: KCSAN: data-race in filemap_read / page_' >&2; "
                            "sleep 1; echo cache_sync_ra >&2; echo 3 > status")
        self.assertEqual((ran.status, ran.reports()), (3, []))

    def test_known_report(self):
        """A report ends no guest whose rest says that it is a known one."""
        ran, _ = self.watch("echo began > output.log; echo WARNING: suspicious RCU usage >&2; sleep 0.2; "
                            "echo ' flush_tlb_mm+0x5b/0xc0' >&2; sleep 1; echo 3 > status")
        self.assertEqual((ran.status, ran.reports()), (3, []))

    def test_report_at_boot(self):
        """A guest that is ended before its script began has failed as such."""
        with self.assertRaises(watch.BootFailed):
            self.watch("echo BUG: here >&2; sleep 60")
