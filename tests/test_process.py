# SPDX-License-Identifier: GPL-2.0
"""Commands that are run, and how they fail."""

import errno
from unittest import mock

from support import Case

# isort: split
from core import process


class Output(Case):
    """process.output()."""

    def test_output(self):
        """Standard output, stripped, with input and environment as given."""
        self.assertEqual(process.output("sh", "-c", "cat; echo $X; echo no >&2", text="in\n", env={"X": "1"}), "in\n1")

    def test_missing_program(self):
        """A program that is not there is told with what installs it."""
        with self.fails("no-such-program", "make install"):
            process.output("no-such-program")
        with mock.patch.object(process.subprocess, "run", side_effect=OSError(errno.EAGAIN, "try again")), \
                self.fails("true (try again)", "one more process"):
            process.output("true")

    def test_tail(self):
        """The end of a log; nothing where there is none."""
        (self.dir / "log").write_text("a\nb\nc\n")
        self.assertEqual(process.tail(self.dir / "log", 2), "    b\n    c")
        self.assertEqual(process.tail(self.dir / "none"), "")


class Logged(Case):
    """process.logged()."""

    def setUp(self):
        super().setUp()
        self.log = self.dir / "log/step.log"

    def sh(self, script: str, **more):
        """Run @script as a logged step."""
        process.logged("step", ["sh", "-c", script], self.log, **more)

    def test_log(self):
        """Both streams go to the log, which is made anew or appended to."""
        self.sh("echo one; echo two >&2")
        self.assertEqual(self.log.read_text(), "one\ntwo\n")
        self.sh("echo three", append=True)
        self.assertEqual(self.log.read_text(), "one\ntwo\nthree\n")
        self.sh("echo four")
        self.assertEqual(self.log.read_text(), "four\n")
        self.assertEqual(self.said.getvalue(), "")

    def test_disk_full(self):
        """A full disk is told as such, with the place to free."""
        with self.fails("disk", str(self.log)) as caught:
            self.sh("echo 'cc1: fatal: x.o: No space left on device'; exit 1")
        self.assertNotIn("\n", caught.message)

    def test_progress(self):
        """A long step says how far it is, and where."""
        self.sh("echo a; echo b; sleep 0.35", every=0.1)
        lines = self.said.getvalue().splitlines()
        self.assertGreaterEqual(len(lines), 2)
        self.assertIn(f"2 lines in {self.log}", lines[-1])

    def test_missing_program(self):
        """A program that is not there is told with what installs it."""
        with self.fails("no-such-program", "make install"):
            process.logged("step", ["no-such-program"], self.log)
