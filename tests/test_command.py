# SPDX-License-Identifier: GPL-2.0
"""How commands begin and end."""

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from unittest import mock

from support import Case

# isort: split
from core import command
from core import model
from core import process
from core.process import Failure


class Run(Case):
    """command.run()."""

    def status(self, main) -> tuple[int, str]:
        """Exit status and standard error of a program."""
        with contextlib.redirect_stderr(io.StringIO()) as err, self.assertRaises(SystemExit) as left:
            command.run(main)
        return left.exception.code, err.getvalue()

    def test_failure(self):
        """A Failure is one line on standard error, and exit status 1."""
        self.assertEqual(self.status(mock.Mock(side_effect=Failure("no disk: buy one"))),
                         (1, "error: no disk: buy one\n"))

    def test_success_and_status(self):
        """A program's own status is kept; none is success."""
        self.assertEqual(self.status(lambda: None), (0, ""))
        self.assertEqual(self.status(lambda: 3), (3, ""))
        self.assertEqual(self.status(lambda: True), (1, ""))

    def test_interrupt(self):
        """An interrupt is told in one line, with the shell's status."""
        status, text = self.status(mock.Mock(side_effect=KeyboardInterrupt))
        self.assertEqual((status, text.count("\n")), (130, 1))
        self.assertTrue(text.startswith("error: "))

    def test_terminated(self):
        """SIGTERM runs what is in finally blocks, where guests are ended."""
        script = ("import os, signal, sys; sys.path.insert(0, sys.argv[1]); from core.command import run\n"
                  "def main():\n try: os.kill(os.getpid(), signal.SIGTERM); signal.pause()\n"
                  " finally: print('ended', flush=True)\nrun(main)\n")
        done = subprocess.run([sys.executable, "-c", script, Path(process.__file__).parents[1]],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (143, "ended\n"))

    def test_os_error(self):
        """What the system refuses is told in one line with the file's name."""
        status, text = self.status((self.dir / "not there").read_text)
        self.assertEqual((status, text.count("\n")), (1, 1))
        self.assertTrue(text.startswith("error: "))
        self.assertIn(str(self.dir / "not there"), text)

    def test_bug_is_not_hidden(self):
        """A bug of ours keeps its traceback."""
        with self.assertRaises(ZeroDivisionError):
            command.run(lambda: 1 / 0)


class Programs(Case):
    """The steps as programs."""

    def test_help(self):
        """Every step can be run alone and says what it does."""
        with self.fails("where STEP is one of"):
            process.output(sys.executable, model.ROOT / "scripts", "nothing")
        for path in sorted(model.ROOT.glob("scripts/*/*.py")):
            if "__main__" in path.read_text():
                text = process.output(sys.executable, model.ROOT / "scripts", path.stem, "--help")
                self.assertIn("usage: " + path.name, text)

    def test_unknown_base(self):
        """A step with an unknown base exits with 1 and one line."""
        with self.fails("error: unknown base 'v1.0'"):
            process.output(sys.executable, model.ROOT / "scripts", "fetch", "--base", "v1.0")
