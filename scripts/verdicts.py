#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compare what two runs of make bench found faster and slower.

A verdict that one run alone has found does not repeat.  `make verdicts
A=results/v7.3/2026-11-25 B=dir` lists these; the second run is made with
`make bench TIME_AGAIN=1 OUT=dir`, of a copy of the first.
"""

from pathlib import Path

from command import arguments, run
from process import Failure
from stats import NO_DIFFERENCE

from results import read_summary


def verdicts(where: Path) -> dict[tuple[str, str, str], dict]:
    """The statistics of each timed row in the results directory @where, by topic,
    metric and condition; Failure where there is none."""
    summary = where / "summary.json"
    if not summary.exists():
        raise Failure(f"{summary} is missing: 'make bench OUT={where}' writes it")
    found = {(row["topic"], row["metric"], row["condition"]): row["statistics"]
             for row in read_summary(summary) if "statistics" in row}
    if not found:
        raise Failure(f"{where} has no row that was timed: 'make bench' takes the time")
    return found


def compared(first: dict, second: dict) -> tuple[list[str], int]:
    """A line for each row of both runs whose verdict differs, and how many rows
    have one of gain or loss in both; Failure where they have no row in common."""
    both = [key for key in first if key in second]
    if not both:
        raise Failure("the two runs have no timed row in common: give two runs of the same topics")
    differ = [f"{' | '.join(key)}: " + ", then ".join(
        f"{one['verdict']} {one['ratio']:.2f} ({one['interval'][0]:.2f} to {one['interval'][1]:.2f})"
        for one in (first[key], second[key])) for key in both if first[key]["verdict"] != second[key]["verdict"]]
    same = sum(first[key]["verdict"] == second[key]["verdict"] != NO_DIFFERENCE for key in both)
    return differ, same


def main() -> int:
    """Print what differs; the status is 1 if anything does."""
    parser = arguments(__doc__, base=False)
    parser.add_argument("-a", type=Path, required=True, help="a results directory")
    parser.add_argument("-b", type=Path, required=True, help="that of the second run")
    args = parser.parse_args()
    differ, same = compared(verdicts(args.a), verdicts(args.b))
    print("\n".join([*differ, f"{same} gains and losses are in both runs, {len(differ)} verdicts differ"]))
    return bool(differ)


if __name__ == "__main__":
    run(main)
