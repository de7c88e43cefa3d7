# SPDX-License-Identifier: GPL-2.0
"""Whether a second run finds the same faster and slower."""

import json

from support import Case, put

# isort: split
import verdicts


class Verdicts(Case):
    """verdicts.verdicts() and compared()."""

    def summary(self, name: str, **found: str) -> dict:
        """The statistics of a run called @name, whose conditions have the verdicts @found."""
        rows = [{"topic": "pid", "metric": "throughput", "unit": "op/s", "condition": condition,
                 "evidence": "timed-uml", "values": {"baseline": 1, "patched": 2},
                 "statistics": {"verdict": verdict, "ratio": 2, "interval": [1.5, 2.5]}}
                for condition, verdict in found.items()]
        put(self.dir / name / "summary.json", json.dumps(rows))
        return verdicts.verdicts(self.dir / name)

    def test_differ(self):
        """What one run alone found is listed, and what both did counted; rows of one
        run alone are neither."""
        first = self.summary("a", one="gain", two="loss", three="gain", four="no difference seen", five="gain")
        second = self.summary("b", one="gain", two="loss", three="no difference seen", four="no difference seen")
        differ, same = verdicts.compared(first, second)
        self.assertEqual(differ, ["pid | throughput | three: gain 2.00 (1.50 to 2.50), then no difference seen 2.00 "
                                  "(1.50 to 2.50)"])
        self.assertEqual(same, 2)

    def test_nothing(self):
        """A run that is not there, has no times, or has other rows, is told."""
        with self.fails("summary.json", "missing"):
            verdicts.verdicts(self.dir / "none")
        with self.fails("timed", "make bench"):
            self.summary("empty")
        with self.fails("in common"):
            verdicts.compared(self.summary("a", one="gain"), self.summary("b", two="gain"))
