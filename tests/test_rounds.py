# SPDX-License-Identifier: GPL-2.0
"""Boots in rounds."""

import random

from support import Case

# isort: split
from measure import rounds
from measure import row


class Rounds(Case):
    """rounds.timed() with boots that take no time."""

    def setUp(self):
        super().setUp()
        self.order = []
        self.source = random.Random(2)

    def timed(self, spread: float, least: int, most: int, others: tuple[str, ...] = (), stop: int = 0,
              identity: str = "one") -> dict:
        """The boots of rounds whose figures differ by @spread; the sides are in
        self.order.  @stop: the boot that is interrupted."""
        def boot(side: str) -> list[dict]:
            self.order.append(side)
            if len(self.order) == stop:
                raise KeyboardInterrupt
            value = (50 if side == "patched" else 100) * (1 + spread * self.source.uniform(-1, 1))
            return [row("throughput", "op/s", "a", "timed-uml", value)]

        return rounds.timed(boot, least, most, "alpha", others, self.dir / "store.json", identity)

    def test_order(self):
        """All sides are in each round, not always in the same order; the first round
        does not count."""
        found = self.timed(0.9, 8, 9, ("tree",))
        self.assertEqual(len(found["rounds"]), 9)
        self.assertEqual(len(self.order), 10 * 4)
        sides = (*rounds.SIDES, "tree")
        for number in range(10):
            self.assertEqual(set(self.order[4 * number:4 * number + 4]), set(sides))
        self.assertGreater(len({tuple(self.order[4 * n:4 * n + 4]) for n in range(10)}), 2)
        self.assertEqual(found["cells"], [{"metric": "throughput", "unit": "op/s", "condition": "a",
                                           "evidence": "timed-uml"}])
        self.assertEqual(set(found["rounds"][0]), set(sides))

    def test_precision(self):
        """It ends once the intervals are narrow, or after the most rounds."""
        self.assertEqual(len(self.timed(0.9, 10, 25)["rounds"]), 25)
        self.assertEqual(len(self.timed(0.01, 10, 40, identity="two")["rounds"]), 10)

    def test_resumed(self):
        """A run that was interrupted goes on after its last whole round, if it is of the
        same kernels."""
        with self.assertRaises(KeyboardInterrupt):
            self.timed(0.9, 8, 8, stop=3 * 5 + 2)
        self.order = []
        self.assertEqual(len(self.timed(0.9, 8, 8)["rounds"]), 8)
        # Four rounds were there; the first of the rest is thrown away again.
        self.assertEqual(len(self.order), 3 * 5)
        # One that was interrupted after its last round boots nothing.
        self.order = []
        self.assertEqual(len(self.timed(0.9, 8, 8)["cells"]), 1)
        self.assertEqual(self.order, [])
        self.timed(0.9, 8, 8, identity="two")
        self.assertEqual(len(self.order), 3 * 9)
