# SPDX-License-Identifier: GPL-2.0
"""Remember the results of long checks whose outcome follows from their inputs:
a source, a configuration, compilers, and a number that changes with the check
(RULES).

What passed is kept in the cache under a hash of those inputs, and told again
as long as none of them changes.  A failure is never kept.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path

from core.ktap import FAILED, SKIPPED, Result
from core.locks import cache, write_json
from core.process import say


def recall(path: Path) -> list[Result]:
    """The results that are kept in @path; none where it is not there or was
    not written by keep()."""
    try:
        return [Result(*row) for row in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError):
        return []


def known(what: str, path: Path, fresh: bool) -> list[Result]:
    """What recall() has of @path, saying so for the check called @what; none if
    all is to be done @fresh."""
    found = [] if fresh else recall(path)
    if found:
        day = time.strftime("%Y-%m-%d", time.localtime(path.stat().st_mtime))
        say(f"{what}: {len(found)} cached results of {day}, from the same inputs (FRESH=1 runs it anyway)")
    return found


def keep(path: Path, results: list[Result]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, [astuple(result) for result in results])


def results(what: str, inputs: list[str], check: Callable[[], Iterator[Result]], fresh: bool,
            refusal: str = "") -> Iterator[Result]:
    """The results of @check, which is called @what in a progress line, as it
    gives them, or what is kept of a run with the same @inputs.  @fresh:
    run it anyway.  @refusal: do not run it; where nothing is kept, one result
    says that it is skipped for that reason.  What passed or was skipped is
    kept; where anything failed, or the check broke off, nothing is."""
    key = hashlib.sha256(json.dumps([what, *inputs]).encode()).hexdigest()[:20]
    path = cache() / "memo" / f"{key}.json"
    have = known(what, path, fresh)
    if have:
        yield from have
        return
    if refusal:
        yield Result(what, SKIPPED, refusal)
        return
    found = []
    for result in check():
        found.append(result)
        yield result
    if not any(result.verdict == FAILED for result in found):
        keep(path, found)
