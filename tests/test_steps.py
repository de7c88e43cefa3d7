# SPDX-License-Identifier: GPL-2.0
"""The steps of a long run: how far it is, and how long the rest takes."""

import re
from unittest import mock

from support import Case

# isort: split
from core import process
from core import steps
from core.ktap import FAILED, PASSED, SKIPPED, Result


class CarryOut(Case):
    """steps.carry_out() with a clock of its own."""

    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.enterContext(mock.patch.object(steps.time, "monotonic", lambda: self.now))
        self.needed = []
        self.enterContext(mock.patch.object(steps, "need", lambda *groups: self.needed.append(groups)))

    def step(self, name: str, minutes: float, takes: float, inputs: str = "", verdict: str = PASSED) -> steps.Step:
        """A step that is said to take @minutes, and @takes others."""
        def work():
            """Let the time pass."""
            self.now += takes * 60
            yield Result(name, verdict)

        return steps.Step(name, work, (f"packages of {name}",), minutes, inputs)

    def left(self, *chosen: steps.Step, fresh: bool = False) -> list[str]:
        """What is said before each step."""
        self.said.truncate(0)
        self.said.seek(0)
        steps.carry_out("check", list(chosen), fresh)
        return re.findall(r"check: (\d of \d, about \d+ min left: .*)", self.said.getvalue())

    def test_progress(self):
        """Each says which it is and what the rest takes: what is known of it at first,
        what it took, or next to nothing where it would do the same again."""
        one, two = self.step("a", 3, 10), self.step("b", 4, 7, "inputs")
        self.assertEqual(self.left(one, two), ["1 of 2, about 7 min left: a", "2 of 2, about 4 min left: b"])
        self.assertEqual(self.needed, [("packages of a",), ("packages of b",)])
        self.assertEqual(self.left(one, two)[0], "1 of 2, about 11 min left: a")
        self.assertEqual(self.left(one, two, fresh=True)[0], "1 of 2, about 17 min left: a")
        self.assertEqual(self.left(one, self.step("b", 4, 0.1, "others"))[0], "1 of 2, about 17 min left: a")
        self.left(self.step("c", 9, 0.1, "inputs", SKIPPED))
        self.assertEqual(self.left(self.step("c", 9, 1, "inputs"))[0], "1 of 1, about 9 min left: c")
        # It remembered its results: what it takes without is not forgotten.
        self.assertEqual(self.left(one, self.step("b", 4, 7, "third"))[0], "1 of 2, about 17 min left: a")
        self.left(one, self.step("b", 4, 7, "third", FAILED))
        self.assertEqual(self.left(one, self.step("b", 4, 7, "third"))[0], "1 of 2, about 17 min left: a")

    def test_failure(self):
        """What breaks a step off is a result beside those before it, and the next step
        is carried out."""
        def work():
            """Half of it."""
            yield Result("a", PASSED)
            raise process.Failure("why")

        self.assertEqual(steps.carry_out("check", [steps.Step("first", work), self.step("b", 1, 1)], False),
                         [Result("a", PASSED), Result("first", FAILED, "why"), Result("b", PASSED)])
