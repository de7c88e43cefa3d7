# SPDX-License-Identifier: GPL-2.0
"""Models of protocols: the cases, and judging what SPIN finds."""

import re
import sys
from unittest import mock

from support import Case, put

# isort: split
from core import locks
from core.ktap import FAILED, PASSED, SKIPPED
from core.model import find_base, find_topic, topics
from prove import models

# What a search prints.
CLEAN = "State-vector 124 byte, depth reached 472, errors: 0\n   185432 states, stored\n"
WRONG = "pan:1: invalid end state (at depth 303)\npan: wrote a.pml.trail\n" + \
        CLEAN.replace("errors: 0", "errors: 1").replace("185432", "12")
TABLE = """[[model]]
file = "a.pml"
set = { NT = 2, LAST = 3 }

[[model.case]]
name = "all steps"

[[model.case]]
name = "no barrier"
without = "MB"
set = { NT = 1 }
"""
MODEL = "#define MB\t1\t/* a barrier */\n#define WITH(step) (WITHOUT != step)\nif :: WITH(MB) -> mb() :: else fi\n"


class Judge(Case):
    """models.judge_search(): what a search printed."""

    def test_complete(self):
        """No error in all states is what a model with all steps has."""
        self.assertEqual(models.judge_search(CLEAN, wrong=False), (PASSED, "185,432 states"))
        self.assertEqual(models.judge_search(CLEAN, wrong=True), (FAILED, "no error without it, 185,432 states"))

    def test_incomplete(self):
        """A search that ends early proves nothing, either way."""
        for before, why in (("error", "max search depth too small"), ("pan", "reached -DMEMLIM bound")):
            for wrong in (False, True):
                with self.subTest(why, wrong=wrong):
                    verdict, said = models.judge_search(f"{before}: {why}\n{CLEAN}", wrong)
                    self.assertEqual(verdict, FAILED)
                    self.assertIn(why, said)

    def test_no_result(self):
        """A program that dies has no result, which is told with its last line."""
        for printed, said in (("Segmentation fault\n", "Segmentation fault"), ("", "it printed nothing")):
            self.assertEqual(models.judge_search(printed, wrong=True), (FAILED, f"no result: {said}"))


class Cases(Case):
    """models.read_models() and models.run_models(), with a fake spin and gcc."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(models, "REGRESS", self.dir / "regress"))
        self.where = self.dir / "regress/alpha/models"
        self.topic = mock.Mock()
        self.topic.name = "alpha"
        put(self.where / "models.toml", TABLE)
        put(self.where / "a.pml", MODEL)
        self.finds(PASSED)
        self.fake("spin", f'echo "$*" >> {self.dir}/log; touch pan.c\n')

    def finds(self, *where: str) -> None:
        """Let a search find an error in models of which all @where is defined."""
        put(self.dir / "clean", CLEAN)
        put(self.dir / "wrong", WRONG)
        wrong = " && ".join(f"tail -n1 {self.dir}/log | grep -q -e {word}" for word in where)
        self.fake("gcc", 'printf "#!/bin/sh\\nif %s; then touch a.pml.trail; cat %s; else cat %s; fi\\n" '
                         f"'{wrong}' {self.dir}/wrong {self.dir}/clean > pan; chmod +x pan\n")

    def verdicts(self) -> list[str]:
        """The verdicts of all cases."""
        return [result.verdict for result in models.run_models(self.topic)]

    def test_options(self):
        """A case has the parameters of its model and its own."""
        self.assertEqual([(name, source.name, options, wrong)
                          for name, source, options, wrong in models.read_models(self.topic)],
                         [("all steps", "a.pml", ["-DNT=2", "-DLAST=3", "-DWITHOUT=0"], False),
                          ("no barrier", "a.pml", ["-DNT=1", "-DLAST=3", "-DWITHOUT=MB"], True)])

    def test_verdicts(self):
        """Without a step there has to be an error, and with all steps none."""
        self.finds("WITHOUT=MB")
        self.assertEqual(self.verdicts(), [PASSED, PASSED])
        self.finds("-a")
        self.assertEqual(self.verdicts(), [FAILED, PASSED])
        self.finds("nothing")
        self.assertEqual(self.verdicts(), [PASSED, FAILED])

    def test_trail(self):
        """The path to an error that should not be is kept, and the command that shows it."""
        self.finds("-a")
        first, second = models.run_models(self.topic)
        kept = locks.cache() / "models/alpha-a-all-steps.trail"
        self.assertTrue(kept.exists())
        self.assertIn(f"see 'spin -k {kept} -t -p -DNT=2 -DLAST=3 -DWITHOUT=0 {self.where}/a.pml'", first.why)
        self.assertNotIn("spin", second.why)

    def test_no_such_step(self):
        """A step that the model does not have would be found to matter."""
        put(self.where / "a.pml", MODEL.replace("WITH(MB)", "true"))
        with self.fails("'no barrier'", "no step MB"):
            list(models.read_models(self.topic))

    def test_no_spin(self):
        """Without spin there is one result, which says what to install."""
        (self.bin / "spin").unlink()
        with mock.patch("shutil.which", lambda name: None if name == "spin" else name):
            (result,) = models.run_models(self.topic)
        self.assertEqual(result.verdict, SKIPPED)
        self.assertIn("apt-get install spin", result.why)

    def test_timeout(self):
        """A search that does not end fails."""
        self.fake("gcc", 'printf "#!/bin/sh\\nexec sleep 60\\n" > pan; chmod +x pan\n')
        with mock.patch.object(models, "PATIENCE", 0.2):
            self.assertEqual(next(models.run_models(self.topic)).why, "not done after 0.2 s")

    def test_does_not_compile(self):
        """What spin says of a model that it cannot read is the reason."""
        self.fake("spin", "echo a.pml:3, Error: syntax error; exit 1\n")
        self.assertIn("syntax error", next(models.run_models(self.topic)).why)


class Own(Case):
    """The models that there are."""

    def test_program(self):
        """The program runs the cases of the topics that have models, for the reference base."""
        with mock.patch.object(models, "run_models", lambda topic: [models.Result(topic.name, PASSED)]), \
                mock.patch.object(sys, "argv", ["models.py", "--topic", "pipe fault"]):
            self.assertFalse(models.main())
        self.assertIn("models: 1 passed, 0 failed, 0 skipped", self.said.getvalue())
        self.assertFalse(models.has_models(find_topic("pipe"), find_base("v6.18")))

    def test_steps(self):
        """Each step that a model can do without has a case, and each model one with all."""
        for topic in topics().values():
            if not models.has_models(topic, find_base("v7.3")):
                continue
            known = list(models.read_models(topic))
            for source in sorted((models.REGRESS / topic.name / "models").glob("*.pml")):
                with self.subTest(source.name):
                    steps = re.findall(r"^#define (\w+)\s+(\d+)\s+/\*", source.read_text(), re.M)
                    self.assertEqual([number for _, number in steps], [str(n + 1) for n in range(len(steps))])
                    own = [options[-1] for _, where, options, _ in known if where == source]
                    self.assertEqual(set(own), {f"-DWITHOUT={name}" for name, _ in [*steps, ("0", "")]})
