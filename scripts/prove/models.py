#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check models of the series' protocols with SPIN: that no interleaving of their steps
loses data or a wakeup, and that some does where a step is left out.

regress/<topic>/models/models.toml lists the cases: the Promela file, the parameters
('set'), and a step that is taken out ('without', what WITHOUT is defined as).  A case
with all steps has to be free of errors in a search that is complete; one without a step
has to have an error.  The models are about the series for the reference base.  Without
spin all are skipped.
"""

import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from core.command import arguments, run
from core.ktap import FAILED, PASSED, SKIPPED, Result, count, shown
from core.locks import cache
from core.model import Base, Topic, chosen_topics, expect, read_toml
from core.process import Failure, output, say
from source.build import REGRESS

# Seconds and MiB that one search may take, and the steps of its longest path.
PATIENCE = 120
MEMORY = 2000
DEPTH = 1_000_000
# States are compressed, and of two orders of steps that do not touch the same, one is
# looked at.
FLAGS = ("-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=4096", f"-DMEMLIM={MEMORY}")

STATES = re.compile(r"^ *(\d+) states, stored", re.M)
ERRORS = re.compile(r"errors: (\d+)$", re.M)
PROBLEM = re.compile(r"^pan:\d+: (.*?) \(at depth \d+\)$", re.M)
# What makes a search tell less than it seems to.
INCOMPLETE = re.compile(r"^(?:error|pan): (max search depth too small|reached -DMEMLIM bound|out of memory)", re.M)


def has_models(topic: Topic, base: Base) -> bool:
    """Whether @topic has models, which are about the reference base."""
    return base.reference and (REGRESS / topic.name / "models/models.toml").exists()


def read_models(topic: Topic) -> Iterator[tuple[str, Path, list[str], bool]]:
    """Of each case of @topic the name, the file, the options of the preprocessor, and
    whether an error is expected.  Raises Failure for a file that is not as it should be."""
    path = REGRESS / topic.name / "models/models.toml"
    for model in read_toml(path)["model"]:
        expect(f"{path}, a model", model, {"file", "case"}, {"set"})
        for case in model["case"]:
            expect(f"{path}, a case of {model['file']}", case, {"name"}, {"set", "without"})
            source, values = path.with_name(model["file"]), model.get("set", {}) | case.get("set", {})
            options = [f"-D{key}={value}" for key, value in values.items()]
            step = case.get("without")
            if step and not re.search(rf"^#define {step}\s.*\bWITH\({step}\)", source.read_text(), re.M | re.S):
                raise Failure(f"{path}, case '{case['name']}': {source.name} has no step {step}: name one of its own")
            yield case["name"], source, [*options, f"-DWITHOUT={step or 0}"], bool(step)


def judge_search(printed: str, wrong: bool) -> tuple[str, str]:
    """The verdict on what a search @printed, and what was found: an error if @wrong is
    expected, else none in all states."""
    states, errors, problem = STATES.search(printed), ERRORS.search(printed), PROBLEM.search(printed)
    if not states or not errors:
        return FAILED, f"no result: {(printed.strip().splitlines() or ['it printed nothing'])[-1]}"
    size, incomplete = f"{int(states[1]):,} states", INCOMPLETE.search(printed)
    if problem:
        return (PASSED if wrong else FAILED), f"{problem[1]}, {size}"
    if incomplete:
        return FAILED, f"{incomplete[1]}, {size}"
    return (FAILED if wrong else PASSED), f"{'no error without it, ' if wrong else ''}{size}"


def limited() -> None:
    """Let the program that begins now have no more memory than a search may take."""
    resource.setrlimit(resource.RLIMIT_AS, ((MEMORY + 500) << 20,) * 2)


def search(source: Path, options: list[str], where: Path) -> str:
    """What the search of the model @source with @options prints, done in the directory
    @where; a path to an error is left there.  Raises Failure where it does not compile,
    subprocess.TimeoutExpired where it takes too long."""
    output("spin", *options, "-a", source, cwd=where)
    output("gcc", *FLAGS, "-o", "pan", "pan.c", cwd=where)
    done = subprocess.run(["./pan", f"-m{DEPTH}", "-w22"], cwd=where, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", timeout=PATIENCE,
                          preexec_fn=limited)
    return done.stdout


def run_case(name: str, source: Path, options: list[str], wrong: bool) -> Result:
    """The result of the case @name: see read_models().  The path to an error that is not
    expected is kept."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch)
        try:
            verdict, why = judge_search(search(source, options, where), wrong)
        except Failure as err:
            verdict, why = FAILED, str(err)
        except subprocess.TimeoutExpired:
            verdict, why = FAILED, f"not done after {PATIENCE} s"
        for trail in where.glob("*.trail") if verdict == FAILED else ():
            words = re.findall(r"\w+", name)
            kept = cache() / "models" / f"{'-'.join(words)}.trail"
            kept.parent.mkdir(exist_ok=True)
            shutil.copy(trail, kept)
            why += f": see 'spin -k {kept} -t -p {' '.join(options)} {source}'"
    return Result(name, verdict, why, round(time.monotonic() - begin, 1))


def run_models(topic: Topic) -> Iterator[Result]:
    for program in ("spin", "gcc"):
        if not shutil.which(program):
            yield Result(f"{topic.name}: models", SKIPPED, f"there is no {program}: 'apt-get install {program}'")
            return
    for name, source, options, wrong in read_models(topic):
        yield run_case(f"{topic.name}: {source.stem}: {name}", source, options, wrong)


def main() -> int:
    """Run the models and end with 'N passed, N failed, N skipped'; a case without a
    step passes where there is an error, as there should be."""
    parser = arguments(__doc__, topics="some")
    args = parser.parse_args()
    chosen = [topic for topic in chosen_topics(args.topic, args.base) if has_models(topic, args.base)]
    results = shown(result for topic in chosen for result in run_models(topic))
    say(f"models: {count(results)}")
    return any(result.verdict == FAILED for result in results)


if __name__ == "__main__":
    run(main)
