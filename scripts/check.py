#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prove the whole repository: the tooling's own tests, lint, and every
kselftest of every topic in guests with the trace and the debug kernel.

The log of each guest is a check of its own: a report of lockdep, KASAN, RCU,
WARN, BUG or the hung-task detector in it is a failure.
"""

import shutil
import sys
import time
import unittest
from pathlib import Path

from build import kernel, kselftests
from fetch import repository
from guest import accelerator, boot, reports, run_directory
from ktap import FAILED, PASSED, SKIPPED, Result, count, parse
from lint import lint
from project import ROOT, Base, Failure, Topic, arguments, base, run, say, topics
from tree import apply

# Seconds that one test program may take, and a guest with all of them: the
# kernel's own tests are not made for emulated machines.
PATIENCE = 1800
GUEST_PATIENCE = 3600


def tooling() -> list[Result]:
    """The tooling's own tests; each is one result."""
    results = []

    class Collect(unittest.TextTestResult):
        """Keep a Result of each test."""

        def addSuccess(self, test):
            super().addSuccess(test)
            results.append(Result(test.id(), PASSED))

        def addFailure(self, test, err):
            super().addFailure(test, err)
            results.append(Result(test.id(), FAILED, self.failures[-1][1]))

        def addError(self, test, err):
            super().addError(test, err)
            results.append(Result(str(test), FAILED, self.errors[-1][1]))

        def addSkip(self, test, reason):
            super().addSkip(test, reason)
            results.append(Result(test.id(), SKIPPED, reason))

        def addSubTest(self, test, subtest, err):
            super().addSubTest(test, subtest, err)
            if err is not None:
                results.append(Result(subtest.id(), FAILED, str(err[1])))

    suite = unittest.defaultTestLoader.discover(str(ROOT / "tests"), top_level_dir=str(ROOT / "tests"))
    unittest.TextTestRunner(stream=sys.stdout, resultclass=Collect, verbosity=1).run(suite)
    return results


def guest(on: Base, repo: Path, revision: str, chosen: list[Topic], config: str, accel: str,
          with_tools: bool) -> list[Result]:
    """Boot the patched kernel of @config and run the kselftests of @chosen,
    those of the kernel that exercise the same code, and the tracing tools
    where @with_tools is set."""
    targets = [name for one in chosen for name in (one.kselftest, *one.neighbours)]
    results: list[Result] = []
    try:
        image = kernel(repo, on, revision, config, "patched")
        tests = kselftests(repo, revision, targets)
        run_dir = run_directory(f"check-{config}")
        shutil.copytree(tests, run_dir / "kselftest")
        shutil.copytree(ROOT / "scripts" / "trace", run_dir / "trace")
        # The runner opens /dev/stdout again for each test: give it a pipe.
        script = f"( cd kselftest && ./run_kselftest.sh -o {PATIENCE} 2>&1 | cat ) > kselftest.ktap\n"
        if with_tools:
            script += "bash trace/check.sh > tools.ktap 2>&1\n"
        ran = boot(image, run_dir, script, memory="2G", accel=accelerator(accel, image), timeout=GUEST_PATIENCE,
                   label=f"kselftests, {config} kernel")
    except Failure as err:
        return [Result(f"{config}: guest", FAILED, str(err))]
    for name in ["kselftest.ktap"] + (["tools.ktap"] if with_tools else []):
        text = (ran.path / name).read_text(errors="replace")
        results += [Result(f"{config}: {one.name}", one.verdict, one.why) for one in parse(text)]
    found = reports(ran.console.read_text(errors="replace"))
    results.append(Result(f"{config}: the kernel's log ({ran.console})", FAILED if found else PASSED,
                          "\n".join(found[:10])))
    for one in results:
        mark = {PASSED: "ok", FAILED: "not ok", SKIPPED: "skip"}[one.verdict]
        print(f"{mark} - {one.name}" + (f" # {one.why}" if one.why else ""), flush=True)
    if any(one.verdict == FAILED for one in results):
        say(f"check: what the guest printed is in {ran.path}")
    return results


def main() -> int:
    """Run all checks and end with the line 'N passed, N failed, N skipped'."""
    parser = arguments(__doc__)
    parser.add_argument("--accel", default="auto", choices=("auto", "kvm", "tcg"), help="default: auto")
    args = parser.parse_args()
    begin = time.monotonic()
    on = base(args.base)
    chosen = [one for one in topics().values() if one.patches(on)]
    say("check: the tooling's own tests")
    results = tooling()
    say("check: lint")
    results += lint(on, chosen, args.kdir)
    try:
        repo = repository(on, args.kdir)
        revision = apply(repo, on, chosen)
        for config in ("trace", "debug"):
            say(f"check: kselftests on the {config} kernel")
            results += guest(on, repo, revision, chosen, config, args.accel, config == "trace")
    except Failure as err:
        results.append(Result("kselftests", FAILED, str(err)))
    failed = [one for one in results if one.verdict == FAILED]
    if failed:
        print("\nFailed:")
        for one in failed:
            print(f"  {one.name}\n" + "".join(f"    {line}\n" for line in one.why.splitlines()), end="")
    say(f"check: {(time.monotonic() - begin) / 60:.0f} minutes")
    print(count(results))
    return bool(failed)


if __name__ == "__main__":
    run(main)
