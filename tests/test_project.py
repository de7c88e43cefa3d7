# SPDX-License-Identifier: GPL-2.0
"""What every step shares: tables, failures, logs, locks."""

import contextlib
import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from unittest import mock

from support import MERGED, Case, KernelCase, put

# isort: split
import project
from project import Failure


class Tables(KernelCase):
    """The tables of bases and topics."""

    def test_unknown_base(self):
        """An unknown base is one sentence with the known ones."""
        with self.fails("'v5'", "v0, v1") as caught:
            project.base("v5")
        self.assertNotIn("\n", caught.message)

    def test_reference(self):
        """One base is the reference, which commands are about by default; none
        or two are a mistake."""
        self.assertEqual(project.reference(), self.on)
        self.assertEqual(project.arguments("").parse_args([]).base, "v0")
        table = self.root / "bases.toml"
        one = table.read_text()
        for text in (one.replace("reference = true\n", ""), one.replace("status", "reference = true\nstatus")
                     .replace("reference = true\nreference", "reference")):
            put(table, text)
            with self.fails("bases.toml", "'reference = true'"):
                project.reference()

    def test_keys(self):
        """A row of bases.toml that lacks a key, or has one too many, is named."""
        table = self.root / "bases.toml"
        one = table.read_text()
        for text, said in ((one.replace("status =", "state =", 1), "has no 'status'"),
                           (one.replace("status =", 'colour = "red"\nstatus =', 1), "has 'colour'")):
            put(table, text)
            with self.fails("bases.toml, base v0,", said):
                project.bases()

    def test_bases_no_table(self):
        """What is no TOML, or has another kind of value, is told in a sentence."""
        table = self.root / "bases.toml"
        good = table.read_text()
        for text, said in (("what is this\n", "cannot read"), ("base = 3\n", "no tables of bases"), ("", "no tables"),
                           (good.replace('tag = "v9.1.2"', "tag = 3"), "a 'tag' that is no string"),
                           (good.replace("reference = true", 'reference = "yes"'), "no true or false")):
            put(table, text)
            with self.subTest(said), self.fails("bases.toml", said):
                project.bases()

    def test_unknown_topic(self):
        """An unknown topic is one sentence with the known ones."""
        self.topic("alpha")
        self.topic("beta")
        with self.fails("'gamma'", "alpha, beta") as caught:
            project.topic("gamma")
        self.assertNotIn("\n", caught.message)

    def test_topic(self):
        """A topic is its series.toml; its patches come in order, without the
        cover letter and what is no patch."""
        one = self.topic("beta")
        self.assertEqual((one.name, one.kselftest, one.base["v0"].status), ("beta", "beta", "complete"))
        self.assertEqual(one.neighbours, ())
        directory = self.root / "patches/beta/v0"
        directory.mkdir()
        for name in ("0000-cover-letter.patch", "0002-b.patch", "0001-z.patch", "0010-a.patch", "notes.txt"):
            (directory / name).touch()
        self.assertEqual([path.name for path in one.patches(self.on)],
                         ["0001-z.patch", "0002-b.patch", "0010-a.patch"])
        self.assertEqual(one.cover(self.on), directory / "0000-cover-letter.patch")
        self.assertEqual(one.patches(project.base("v1")), [])


    def test_on(self):
        """A base's own words count there, and only there."""
        self.topic("alpha", more='steps = { half = 1 }\nneighbours = ["pidfd"]\nbeside = ["v1"]\n'
                   '[base."v1"]\nstatus = "in work"\nmerged = []\n')
        path = self.root / "patches/alpha/series.toml"
        put(path, 'neighbours = ["clone3"]\ncompared = ["held"]\n' + path.read_text())
        one = project.topic("alpha")
        here, there = one.on(self.on), one.on(project.base("v1"))
        self.assertEqual((here.steps, here.neighbours, here.beside, here.compared),
                         ({"half": 1}, ("pidfd",), ("v1",), ("held",)))
        self.assertEqual((there.steps, there.neighbours, there.beside, there.compared),
                         ({}, ("clone3",), (), ("held",)))
        self.assertEqual(here.on(self.on), here)

    def test_chosen(self):
        """Who asks for topics on a base gets them as they are there."""
        one = self.topic("alpha", more='steps = { half = 1 }\n')
        put(self.root / "patches/alpha/v0/0001-x.patch", "")
        self.assertEqual([chosen.steps for chosen in (project.need_series(one, self.on),
                                                      *project.chosen_topics(None, self.on),
                                                      *project.chosen_topics(["alpha"], self.on))],
                         [{"half": 1}] * 3)

    def test_merged(self):
        """What a base has from upstream, in order, and as words."""
        one = self.topic("alpha", merged=MERGED + ', { what = "the rest", release = "9.1", commit = "" }')
        found = one.merged(self.on)
        self.assertEqual([(row.what, row.release, row.commit) for row in found],
                         [("the half of it", "9.0", "0123456789abcdef"), ("the rest", "9.1", "")])
        self.assertEqual(project.listed(found), "the half of it since 9.0 (0123456789ab), the rest since 9.1")
        self.assertEqual(one.merged(project.base("v1")), ())

    def test_mistakes(self):
        """A mistake in a series.toml is one sentence with the file's name."""
        row = '[base."v1"]\nstatus = "complete"\n'
        for more, words in (
                ('[base."v7"]\nstatus = "complete"\nmerged = []\n', ("'v7'", "v0, v1")),
                (row, ("base v1", "no 'merged'")),
                ('[base."v1"]\nmerged = []\n', ("base v1", "no 'status'")),
                (row + 'merged = "v7.3"\n', ("base v1", "no list")),
                (row + 'merged = ["v7.3"]\n', ("base v1", "no list")),
                (row + 'merged = [{ what = "x", release = "7.0" }]\n', ("base v1", "no 'commit'")),
                (row + 'merged = [{ what = "x", commit = "" }]\n', ("base v1", "no 'release'")),
                (row + 'merged = [{ release = "7.0", commit = "" }]\n', ("base v1", "no 'what'")),
                (row + 'merged = [{ what = "x", release = "7.0", commit = "abc" }]\n', ("'abc'", "12")),
                (row + 'merged = [{ what = "x", release = "7.0", commit = "", by = "y" }]\n', ("'by'",)),
                (row + 'merged = []\nsummary = ""\n', ("base v1", "'summary'", "steps")),
                (row + 'merged = []\nbeside = ["v8"]\n', ("'v8'", "v0, v1")),
                (row + 'merged = []\nguests = ["vax"]\n', ("'vax'", "arm64")),
                ('[base."v1"]\nstatus = "soon"\nmerged = []\n', ("'soon'", "in work")),
                ('[base."v1"]\nstatus = "upstream"\nmerged = []\n', ("base v1", "nothing merged")),
                ("what is this\n", ("fix it",))):
            with self.subTest(more), self.fails("alpha/series.toml", *words) as caught:
                self.topic("alpha", more=more)
            self.assertNotIn("\n", caught.message)
        path = self.root / "patches/alpha/series.toml"
        self.topic("alpha")
        good = path.read_text()
        for text, words in ((good.replace("kselftest", "selftest"), ("no 'kselftest'",)), ("a = 1\n" + good, ("'a'",))):
            put(path, text)
            with self.fails(str(path), *words):
                project.topics()

    def test_no_series(self):
        """A topic without a series for a base is refused with what to do:
        another base, a beginning, or the base as it is."""
        one, other = self.topic("alpha"), project.base("v1")
        with self.fails("'alpha'", "v0", "make tree TOPIC=alpha BASE=v0"):
            project.need_series(one, self.on)
        self.assertEqual(project.need_series(one, self.on, new=True), one)
        with self.fails("no topic", "v0", "BASE="):
            project.chosen_topics(None, self.on)
        put(self.root / "patches/alpha/v1/0001-x.patch", "")
        with self.fails("'alpha'", "v0", "BASE=v1") as caught:
            project.chosen_topics(["alpha"], self.on)
        self.assertNotIn("\n", caught.message)
        self.assertEqual(project.chosen_topics(None, other), [one])
        upstream = self.topic("alpha", merged=MERGED, status="upstream")
        for new in (False, True):
            with self.fails("'alpha'", "v9.1.2 has it from upstream", "the half of it since 9.0", "as it is"):
                project.need_series(upstream, self.on, new=new)


class Repository(Case):
    """The tables that are committed."""

    def test_bases(self):
        """Every base has what a download needs, and agrees with itself, but for
        those that somebody's own tree is."""
        for name, one in project.bases().items():
            if not one.fetched:
                continue
            self.assertEqual(one.tag, "v" + one.version)
            self.assertTrue(one.version.startswith(name.removeprefix("v") + "."))
            self.assertRegex(one.sha256, "^[0-9a-f]{64}$")
            self.assertIn(one.version, one.pool)
            self.assertIn(one.version, one.url)

    def test_topics(self):
        """Every topic says of each base for which there are patches how far the
        series is."""
        known = project.topics()
        self.assertIn("pipe", known)
        for one in known.values():
            for on in project.bases().values():
                self.assertFalse(one.patches(on) and (on.name not in one.base or one.upstream(on)), one.name)
                own = one.on(on)
                self.assertTrue(all(last <= len(one.patches(on)) for last in own.steps.values()), one.name)


class Run(Case):
    """project.run()."""

    def status(self, main) -> tuple[int, str]:
        """Exit status and standard error of a program."""
        with contextlib.redirect_stderr(io.StringIO()) as err, self.assertRaises(SystemExit) as left:
            project.run(main)
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
        script = ("import os, signal, sys; sys.path.insert(0, sys.argv[1]); from project import run\n"
                  "def main():\n try: os.kill(os.getpid(), signal.SIGTERM); signal.pause()\n"
                  " finally: print('ended', flush=True)\nrun(main)\n")
        done = subprocess.run([sys.executable, "-c", script, Path(project.__file__).parent],
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
            project.run(lambda: 1 / 0)


class Output(Case):
    """project.output()."""

    def test_output(self):
        """Standard output, stripped, with input and environment as given."""
        self.assertEqual(project.output("sh", "-c", "cat; echo $X; echo no >&2", text="in\n", env={"X": "1"}), "in\n1")

    def test_failing(self):
        """The last line of standard error says why, unless nobody asks."""
        with self.fails("failed: the reason"):
            project.output("sh", "-c", "echo first >&2; echo the reason >&2; exit 1")
        self.assertEqual(project.output("sh", "-c", "echo part; exit 1", check=False), "part")

    def test_missing_program(self):
        """A program that is not there is told with what installs it."""
        with self.fails("no-such-program", "make install"):
            project.output("no-such-program")


class Logged(Case):
    """project.logged()."""

    def setUp(self):
        super().setUp()
        self.log = self.dir / "log/step.log"

    def sh(self, script: str, **more):
        """Run @script as a logged step."""
        project.logged("step", ["sh", "-c", script], self.log, **more)

    def test_log(self):
        """Both streams go to the log, which is made anew or appended to."""
        self.sh("echo one; echo two >&2")
        self.assertEqual(self.log.read_text(), "one\ntwo\n")
        self.sh("echo three", append=True)
        self.assertEqual(self.log.read_text(), "one\ntwo\nthree\n")
        self.sh("echo four")
        self.assertEqual(self.log.read_text(), "four\n")
        self.assertEqual(self.said.getvalue(), "")

    def test_failing(self):
        """A failure tells the log, the status and the log's last lines only."""
        with self.fails("step", "exit 7", str(self.log), "line 40") as caught:
            self.sh("seq -f 'line %g' 40; exit 7")
        self.assertNotIn("line 20\n", caught.message)

    def test_disk_full(self):
        """A full disk is told as such, with the place to free."""
        with self.fails("disk", str(self.dir / "cache/hotpaths")) as caught:
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
            project.logged("step", ["no-such-program"], self.log)


class Cache(Case):
    """project.cache(), project.lock() and the small helpers."""

    def test_cache(self):
        """The cache is where XDG_CACHE_HOME says."""
        self.assertEqual(project.cache(), self.dir / "cache/hotpaths")
        self.assertTrue(project.cache().is_dir())

    def test_no_cache(self):
        """A cache that cannot be made is told with what to set."""
        (self.dir / "file").touch()
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.dir / "file")}), self.fails("XDG_CACHE_HOME"):
            project.cache()

    def test_lock(self):
        """A second holder waits for the first, and says so; another name does not."""
        order, started = [], threading.Event()

        def second():
            started.set()
            with project.lock("x"):
                order.append("second")

        thread = threading.Thread(target=second)
        with project.lock("x"):
            thread.start()
            started.wait()
            thread.join(0.2)
            self.assertTrue(thread.is_alive())
            with project.lock("y"):
                order.append("first")
        thread.join(5)
        self.assertEqual(order, ["first", "second"])
        self.assertEqual(self.said.getvalue().count("waiting"), 1)
        self.assertIn(str(project.cache() / "lock/x"), self.said.getvalue())

    def test_lock_is_left_on_failure(self):
        """A step that fails does not keep its lock."""
        with self.fails("x"), project.lock("x"):
            raise Failure("x")
        with project.lock("x"):
            self.assertEqual(self.said.getvalue(), "")

    def test_tail(self):
        """The end of a log; nothing where there is none."""
        (self.dir / "log").write_text("a\nb\nc\n")
        self.assertEqual(project.tail(self.dir / "log", 2), "    b\n    c")
        self.assertEqual(project.tail(self.dir / "none"), "")

    def test_sha256(self):
        """The checksum is that of sha256sum."""
        (self.dir / "abc").write_text("abc")
        self.assertEqual(project.sha256(self.dir / "abc"),
                         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")


class Programs(Case):
    """The steps as programs."""

    def test_help(self):
        """Every step can be run alone and says what it does."""
        for path in sorted(project.ROOT.glob("scripts/*.py")):
            if "__main__" in path.read_text():
                text = project.output(sys.executable, path, "--help")
                self.assertIn("usage: " + path.name, text)

    def test_unknown_base(self):
        """A step with an unknown base exits with 1 and one line."""
        with self.fails("error: unknown base 'v1.0'"):
            project.output(sys.executable, project.ROOT / "scripts/fetch.py", "--base", "v1.0")
