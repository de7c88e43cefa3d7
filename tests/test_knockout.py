# SPDX-License-Identifier: GPL-2.0
"""The cases of knockout, without a kernel."""

import itertools
from unittest import mock

from support import Case, put

# isort: split
from core.ktap import FAILED, PASSED, SKIPPED
from core.model import CONFIGS, GUESTS, Topic, bases, topics
from prove import knockout

ONE = Topic(name="filemap", summary="", kselftest="filemap")
CASE = knockout.Case(name="nothing counted", command="./race -t truncate", knobs={"race/skip": 2}, fails=True,
                     config="trace")


def ktap(*verdicts: str) -> str:
    """The output of a test program with one test for each of @verdicts."""
    return f"TAP version 13\n1..{len(verdicts)}\n" + "".join(
        f"{verdict.split(' #')[0]} {number} test{number}{' #' + verdict.split(' #')[1] if ' #' in verdict else ''}\n"
        for number, verdict in enumerate(verdicts, 1))


class Teeth(Case):
    """Reading, running and judging cases."""

    def test_committed(self):
        """Every knockout.toml of the repository can be read, and has a case in
        which nothing is left out and cases that have to fail."""
        found = 0
        for one, base in itertools.product(topics().values(), bases().values()):
            path = knockout.variants(one, base) / "knockout.toml"
            if path.exists():
                found += 1
                cases = knockout.read_cases(path)
                self.assertLessEqual({case.config for case in cases}, {*CONFIGS, *GUESTS})
                self.assertEqual({case.fails for case in cases}, {False, True})
                self.assertTrue((path.parent / "knockout.patch").exists())
        self.assertTrue(found)

    def test_incomplete(self):
        """A case without a member is told by its name."""
        put(self.dir / "knockout.toml", 'config = "debug"\n[[case]]\nname = "x"\ncommand = "true"\nfails = true\n')
        with self.fails("knobs", "knockout.toml"):
            knockout.read_cases(self.dir / "knockout.toml")

    def test_no_toml(self):
        """A file that is none is told, and not by a traceback."""
        with self.fails("cannot read", "knockout.toml"):
            knockout.read_cases(put(self.dir / "knockout.toml", "[[case]\n"))

    def test_configs(self):
        """Cases that name another configuration than the file run in a guest of
        their own, with what they print beside them."""
        row = '[[case]]\nname = "{}"\ncommand = "true"\nknobs = {{}}\nfails = false\n'
        put(self.dir / "knockout.toml", 'config = "um"\n' + row.format("a") + row.format("b") + 'config = "trace"\n'
            + row.format("c"))
        booted = []

        def boot(_image, _tests, name, script, _label, **more):
            booted.append((name, script.count("knockout: "), more["accel"]))
            for number in range(script.count("knockout: ")):
                put(self.dir / f"{number}.ktap", ktap("ok"))
            return mock.Mock(path=self.dir, reports=lambda: [])

        for name, fake in (("variants", lambda *_: self.dir), ("variant", mock.Mock()), ("boot", boot),
                           ("build_guest", lambda *_: (None, None)), ("accelerator", lambda *_: "tcg")):
            self.enterContext(mock.patch.object(knockout, name, fake))
        results = list(knockout.run_cases(ONE, mock.Mock(), self.dir, "auto"))
        self.assertEqual([(result.name, result.verdict) for result in results],
                         [("a", PASSED), ("c", PASSED), ("um: the kernel's log", PASSED), ("b", PASSED),
                          ("trace: the kernel's log", PASSED)])
        self.assertEqual([one[1:] for one in booted], [(2, ""), (1, "tcg")])

    def test_script(self):
        """The knobs are set before the command, whose output is kept."""
        lines = knockout.cases_script(ONE, [CASE]).splitlines()
        self.assertEqual(lines[-2], "echo 2 > /sys/kernel/debug/race/skip || exit 1")
        self.assertTrue(lines[-1].endswith("./race -t truncate > /mnt/0.ktap 2>&1"))

    def test_judge(self):
        """A test has to fail, or none, as the case says; skipping is told."""
        calm = knockout.Case(name="all counted", command="", knobs={}, fails=False, config="trace")
        for case, text, verdict in ((CASE, ktap("ok", "not ok"), PASSED), (CASE, ktap("ok", "ok"), FAILED),
                                    (calm, ktap("ok", "ok"), PASSED), (calm, ktap("ok", "not ok"), FAILED),
                                    (CASE, ktap("ok # SKIP no swap"), SKIPPED),
                                    # A test that died has not noticed anything.
                                    (CASE, "", FAILED), (CASE, ktap("ok").replace("1..1", "1..2"), FAILED)):
            self.assertEqual(knockout.judge_case(case, text).verdict, verdict, text)
