# SPDX-License-Identifier: GPL-2.0
"""The model of more CPUs, and what it has to foretell first."""

from pathlib import Path

from support import Case

# isort: split
from reports import linesmodel
from reports import runs


class Gates(Case):
    """linesmodel.Model with figures that follow it, or do not."""

    def setUp(self):
        super().setUp()
        self.visits = {"tmpfs": 4, "ext4": 2}
        self.rows = []
        for system, visits in self.visits.items():
            for size in linesmodel.SIZES:
                private = 60 + int(size) / 40
                apart = 2e9 / private
                one = {side: 1e9 * linesmodel.throughput(2, private, count * 15)
                       for side, count in (("baseline", visits), ("patched", 0), ("frozen", visits))}
                self.time(system, size, "a file each", dict.fromkeys(one, apart))
                self.time(system, size, "one page", one)
            for size in ("64B", "4KiB"):
                for metric, part in (("shared_writes_per_op", 1), ("shared_lines_per_op", 1 / visits)):
                    self.rows.append({"metric": metric, "condition": f"{system} {size} 2 CPUs", "values": {
                        "baseline": visits * part, "patched": 0, "frozen": visits * part}})

    def time(self, system: str, size: str, what: str, values: dict):
        """A row of time, with narrow intervals."""
        def told(side: str) -> dict:
            ratio = values[side] / values["baseline"]
            return {"ratio": ratio, "interval": [0.99 * ratio, 1.01 * ratio]}

        self.rows.append({"metric": "throughput", "condition": f"{system}, {size} B, 2 CPUs, {what}", "values": values,
                          "statistics": {**told("patched"), "sides": {"frozen": told("frozen"),
                                                                      runs.AGAIN: told("baseline")}}})

    def text(self) -> str:
        """What the report says."""
        return "\n".join(linesmodel.model_section(runs.Figures(self.rows, [Path("x")], True)))

    def test_holds(self):
        """Where all is foretold, more CPUs are asked about, and the visit's cost is
        found."""
        text = self.text()
        self.assertIn("`shared_writes_per_op`, counted with 2 CPUs; a visit takes 15 ns", text)
        for gate in ("the base on ext4, with L of tmpfs | 6 | 0 % | holds", "patched / base | 12 | 0 % | holds",
                     "frozen / base | 12 | 0 % | holds", "16 threads | 4 | 2 % | holds"):
            self.assertIn(gate, text)
        self.assertIn("| 4 CPUs | 8 CPUs | 16 CPUs | 32 CPUs | 64 CPUs |", text)
        self.assertRegex(text, r"(?m)^\| tmpfs \| .*\| 62\.\d \|$")

    def test_fails(self):
        """Where one is not, none is."""
        for row in self.rows:
            if row["condition"] == "ext4, 64 B, 2 CPUs, one page":
                row["statistics"] |= {"ratio": 0.7, "interval": [0.6, 0.8]}
        text = self.text()
        self.assertIn("patched / base | 12 | ", text)
        self.assertIn("in another direction: ext4, 64 B", text)
        self.assertIn("nothing is said of more CPUs", text)
        self.assertNotIn("16 CPUs", text)

    def test_not_known(self):
        """Nothing is said where a row is missing."""
        self.assertEqual(linesmodel.model_section(runs.Figures(self.rows[1:], [Path("x")], True)), [])
        self.assertEqual(linesmodel.model_section(runs.Figures([], [], False)), [])

    def test_network(self):
        """One CPU waits for nobody; many are as fast as the line; two are between."""
        self.assertAlmostEqual(linesmodel.throughput(1, 90, 10), 1 / 100)
        self.assertAlmostEqual(linesmodel.throughput(1000, 90, 10), 1 / 10, 4)
        self.assertAlmostEqual(linesmodel.throughput(8, 90, 0), 8 / 90)
        self.assertTrue(1 / 100 < linesmodel.throughput(2, 90, 10) < 2 / 100)
