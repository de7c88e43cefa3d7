# SPDX-License-Identifier: GPL-2.0
"""Cache lines that CPUs share: the workload that is run, and what the plugin of
scripts/tcg recorded of it, as rows.

Interrupts and other tasks are recorded with the operations that they come upon.
Three rules keep them out of the figures, and another figure shows what they keep
out: see contended(), undisturbed() and per_operation_rows().
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from core.process import Failure
from measure import plugin

from measure import Measurement, json_lines, row, size_name

CPUS = (2, 4, 16)
# Of the operations in which a CPU touches a line, the share in which others may
# have taken it away for it to count.
TAKEN = 0.1
# What a function does less often per operation is not named in a row's detail,
# and nor is what is not among the first SHOWN.
NAMED = 0.25
SHOWN = 12
USER_END = 1 << 47

# How conditions call what regress/lines/shared_lines does.
NAMES = {
    "nothing": "nothing", "read-one": "{dir} {size}", "read-shared": "{dir} {size} one open file",
    "read-own": "{dir} {size} own files", "pipe-own": "{size} own pipes", "pipe-pair": "{size} 1w1r",
    "clone": "clone+exit", "fault-anon": "anonymous", "fault-file": "{dir}",
}


def measurement(runs: str) -> Measurement:
    """The measurement of the bash @runs, which calls `lines` with options of
    regress/lines/shared_lines."""
    script = f"""
set -e
cat /proc/kallsyms > symbols
lines() {{
	kselftest/regress/lines/shared_lines --cpus {','.join(map(str, CPUS))} --json "$@" >> ops.json
}}
lines --op nothing
{runs}"""
    return Measurement("shared cache lines", "bench", script, rows, cpus=max(CPUS), memory="2G", timeout=1800,
                       plugin=plugin.lines_option)


class Symbols:
    """The symbols of a running kernel, from @path, a copy of its /proc/kallsyms."""

    def __init__(self, path: Path):
        self.names: dict[int, str] = {}
        image = {"_text": 0, "_end": 0}
        for line in path.read_text().splitlines():
            address, _kind, name = line.split()[:3]
            # Of several names at one place, any one will do.
            self.names.setdefault(int(address, 16), name)
            if name in image:
                image[name] = int(address, 16)
        self.addresses = sorted(self.names)
        self.image = (image["_text"], image["_end"])
        if not all(self.image):
            raise Failure(f"{path} has no _text or no _end: the guest's kernel wants CONFIG_KALLSYMS_ALL, and its "
                          "script root")

    def function(self, address: int) -> str:
        """The function that has the instruction at @address."""
        if address < USER_END:
            return "user space"
        # A part that the compiler has split off is of the same function.
        return self.before(address).split(".")[0]

    def data(self, address: int) -> str:
        """The variable of the kernel at @address; '' for allocated memory."""
        return self.before(address) if self.image[0] <= address < self.image[1] else ""

    def before(self, address: int) -> str:
        """The last symbol that is not above @address."""
        place = bisect_right(self.addresses, address)
        return self.names[self.addresses[place - 1]] if place else hex(address)


def contended(line: dict) -> set[int]:
    """The CPUs from which others may have taken @line in a tenth or more of
    the operations in which they touch it.

    A CPU misses a line when another one has written it since, or has touched it
    since and is to lose it to a write of this one.  Whatever the order, that is no
    more often than others write it, and than this one writes and others touch it.
    So what all read and a timer tick writes does not count, and nor does what one
    CPU has for itself but for a task that was woken up once.
    """
    touched = {cpu: len(turns) for cpu, turns in line["cpus"]}
    written = {cpu: sum(1 for _op, _loads, stores in turns if stores) for cpu, turns in line["cpus"]}
    found = set()
    for cpu, own in touched.items():
        others_write = sum(written.values()) - written[cpu]
        others_touch = sum(touched.values()) - own
        if others_write + min(written[cpu], others_touch) >= TAKEN * own:
            found.add(cpu)
    return found


def everybody(line: dict) -> set[int]:
    return {cpu for cpu, _turns in line["cpus"]}


def every(window: dict) -> dict[int, list[int]]:
    """The operations of each CPU that did any, by number."""
    return {cpu: list(range(1, count + 1)) for cpu, count in enumerate(window["ops"]) if count}


def undisturbed(window: dict) -> dict[int, list[int]]:
    """The operations that no timer interrupted; all of a CPU, where one interrupted
    each."""
    ticked = [set(ops) for ops in window["ticks"]]
    return {cpu: [op for op in ops if op not in ticked[cpu]] or ops for cpu, ops in every(window).items()}


def within(lines: list[dict], which: dict[int, list[int]]) -> list[dict]:
    """@lines with what the operations of @which did to them, and nothing else."""
    wanted = {cpu: set(ops) for cpu, ops in which.items()}
    found = []
    for line in lines:
        cpus = [[cpu, [turn for turn in turns if turn[0] in wanted[cpu]]] for cpu, turns in line["cpus"]]
        found.append({**line, "cpus": [[cpu, turns] for cpu, turns in cpus if turns]})
    return found


def operations(lines: list[dict], which: dict[int, list[int]],
               whose: Callable[[dict], set[int]]) -> list[list[tuple[int, int, int]]]:
    """For each CPU of @which, and each of its operations there, how many of
    @lines it touched, how often, and how often it wrote to them: of each line, what
    those CPUs did that @whose tells of it."""
    found = {cpu: dict.fromkeys(ops, (0, 0, 0)) for cpu, ops in which.items()}
    for line in lines:
        counted = whose(line)
        for cpu, turns in line["cpus"]:
            for op, loads, stores in turns if cpu in counted else ():
                touched, accesses, writes = found[cpu][op]
                found[cpu][op] = (touched + 1, accesses + loads + stores, writes + stores)
    return [list(done.values()) for done in found.values()]


def detail(lines: list[dict], total: int, symbols: Symbols) -> str:
    """Which functions access the contended ones of @lines, and which of these
    are variables of the kernel, with accesses for each of @total operations, most
    first.  What an instruction did is not known by CPU and operation, so all of
    it is told of lines that count for most of what touches them."""
    functions, data = Counter(), Counter()
    for line in lines:
        counted = contended(line)
        touched = [(cpu in counted, len(turns)) for cpu, turns in line["cpus"]]
        if 2 * sum(times for counts, times in touched if counts) <= sum(times for _counts, times in touched):
            continue
        accesses = 0
        for ip, loads, stores in line["sites"]:
            functions[symbols.function(ip)] += loads + stores
            accesses += loads + stores
        if symbols.data(line["va"]):
            data[symbols.data(line["va"])] += accesses
    words = []
    for what, found in (("", functions), ("variables: ", data)):
        named = [f"{name} {count / total:.3g}" for name, count in found.most_common(SHOWN)
                 if count >= NAMED * total]
        words += [what + ", ".join(named)] if named else []
    return "; ".join(words)


def per_operation_rows(window: dict, condition: str, symbols: Symbols) -> list[dict]:
    """The rows of one window.  shared_lines_per_op, shared_accesses_per_op and
    shared_writes_per_op are of what a typical operation does to contended lines: the
    median over the undisturbed operations of each CPU, in which what happens in fewer
    than half of them does not show; then the mean over CPUs, as one may write and
    another read.
    shared_lines_per_op_mean is of all operations, and of all lines that one CPU
    wrote, however seldom, and another touched."""
    calm = undisturbed(window)
    lines = within(window["lines"], calm)
    typical = operations(lines, calm, contended)
    middle = [statistics.fmean(statistics.median(cell[which] for cell in cpu) for cpu in typical)
              for which in range(3)]
    whole = operations(window["lines"], every(window), everybody)
    mean = statistics.fmean(touched for cpu in whole for touched, _accesses, _writes in cpu)
    return [row("shared_lines_per_op", "lines", condition, "lines", middle[0]),
            {**row("shared_accesses_per_op", "accesses", condition, "lines", middle[1]),
             "detail": detail(lines, sum(window["ops"]), symbols) if middle[0] else ""},
            row("shared_writes_per_op", "writes", condition, "lines", middle[2]),
            row("shared_lines_per_op_mean", "lines", condition, "lines", mean)]


def rows(run: Path) -> list[dict]:
    """The rows of a run's directory, which has the windows of the plugin
    (lines.json), what was done in them (ops.json) and the kernel's symbols.
    Raises Failure where windows are missing, empty, or not of what was done: 0
    is a good figure, and must not come of nothing."""
    symbols = Symbols(run / "symbols")
    windows, results = json_lines(run / "lines.json"), json_lines(run / "ops.json")
    if len(windows) != len(results) or not windows:
        raise Failure(f"{run} has {len(windows)} windows of {len(results)} runs: look at the guest's output there")
    found = []
    for window, result in zip(windows, results, strict=True):
        done = [count for count in window["ops"] if count]
        if done != [result["count"]] * result["cpus"]:
            raise Failure(f"{run}: CPUs did {done} operations and not {result['count']} each, in {result}: look at "
                          "the guest's output there")
        if not window["touched"]:
            raise Failure(f"{run}: the plugin saw no access to memory in {result}: does this QEMU tell of them?")
        name = NAMES[result["op"]].format(dir=result["dir"], size=size_name(result["size"]))
        found += per_operation_rows(window, f"{name} {result['cpus']} CPUs", symbols)
    return sorted(found, key=lambda one: one["metric"] != "shared_lines_per_op")
