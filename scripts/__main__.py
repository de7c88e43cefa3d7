# SPDX-License-Identifier: GPL-2.0
"""Run one step, a module of a room beside this file: python3 scripts STEP [options].

  prove     what make check, suites and knockout do
  send      patches, letters, mails and packages
  measure   benchmarks, counters, the bundle, the survey
  reports   runs, statistics, figures, texts
  guests    kernels that are booted, and their logs
  source    a base, the series on it, builds
  core      processes, the cache, tables, results

A room imports from the ones below it alone.  kconfig, tcg, trace and um have what
kernels, QEMU and guests are given.
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run the step that the command line names, or name all that there are."""
    steps = {path.stem: path.parent.name for path in sorted(HERE.glob("*/*.py"))
             if "\nif __name__ ==" in path.read_text()}
    if len(sys.argv) < 2 or sys.argv[1] not in steps:
        sys.exit(f"usage: python3 scripts STEP [options], where STEP is one of {', '.join(steps)}")
    step = sys.argv.pop(1)
    # As when it is run by its path, but with the rooms on the path of modules.
    sys.path[0] = str(HERE)
    runpy.run_module(f"{steps[step]}.{step}", run_name="__main__", alter_sys=True)


main()
