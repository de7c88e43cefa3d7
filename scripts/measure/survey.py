#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Look with bpftrace at the load of a machine that runs any kernel, and say for
each series whether it would gain from it.

It runs the scripts of survey/, one after the other.  Root is needed, and nothing
is changed.  What a kernel does not let be seen is left out, with a sentence.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.command import arguments, at_least, run
from core.process import Failure, say

SCRIPTS = Path(__file__).resolve().parent / "survey"
KALLSYMS = Path("/proc/kallsyms")
# Seconds that bpftrace may take to begin and to end.
PATIENCE = 120
PAGE = 4096
# The largest reads that filemap makes faster, in bytes; pageguard's are a page.
SMALL = 64
# Below this part of a CPU's time, waiting is not worth a patch; above so many
# operations a second, what each of them costs is.
WAITING, MANY = 0.001, 10000


@dataclass(frozen=True)
class Probe:
    """A script of survey/; @shows: what it shows, as a phrase; @instead: the
    script that is run where this one does not work, if any."""

    name: str
    shows: str
    instead: str = ""


@dataclass(frozen=True)
class Survey:
    """What is looked at for a topic, and what is made of it: @verdict takes the
    maps of all its probes that worked, none of them where nothing happened, and
    the seconds."""

    probes: tuple[Probe, ...]
    verdict: Callable[[dict, float], str]


def total(value: object) -> float:
    """What a map of bpftrace adds up to: a number, a histogram, or a table of
    either; 0 for one that is not there."""
    if isinstance(value, dict):
        return sum(map(total, value.values()))
    if isinstance(value, list):
        return sum(bucket["count"] for bucket in value)
    return value or 0


def at_or_above(buckets: list[dict], least: int) -> int:
    """How many of a histogram's values are @least or more, a power of two."""
    return sum(bucket["count"] for bucket in buckets if bucket.get("min", 0) >= least)


def share(part: float, whole: float) -> str:
    share = part / whole * 100
    return f"{share:.0f} %" if share >= 1 or not share else "less than 1 %"


def rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def milliseconds(waited: float, seconds: float) -> str:
    return f"{waited / 1e6 / seconds:.3g} ms in each second"


def pipe_verdict(maps: dict, seconds: float) -> str:
    """Whether pipes would gain: from writes of a page or more, whose pages are
    then allocated and filled without the mutex, if somebody waits for that."""
    if not maps:
        return "no: nobody wrote to a pipe"
    if "@bytes" not in maps:
        return "cannot tell: how large the writes to pipes are is not seen here"
    writes, large = total(maps["@bytes"]), at_or_above(maps["@bytes"], PAGE)
    what = f"{share(large, writes)} of {writes / seconds:,.0f} writes a second are of a page or more"
    if not large:
        return f"hardly: {what}, and smaller ones gain from patches 2 and 3 only"
    if "@wait_ns" not in maps:
        if "@write_ns" not in maps:
            return f"perhaps: {what}, but waits for the mutex are not seen here"
        return (f"perhaps: {what}, and writers spend {milliseconds(total(maps['@in_write_ns']), seconds)} in them, "
                "waiting for the mutex or for room, which cannot be told apart here")
    waited, held = total(maps.get("@waited_ns")), total(maps.get("@held_ns"))
    times = (f"the mutex is waited for {milliseconds(waited, seconds)}, and held {milliseconds(held, seconds)}")
    if waited < WAITING * seconds * 1e9:
        return f"hardly: {what}, but {times}"
    return f"yes: {what}, and {times}"


def pid_verdict(maps: dict, seconds: float) -> str:
    """Whether creating tasks would gain: from shorter waits for pidmap_lock."""
    if "@made" in maps:
        made = total(maps["@made"]) / seconds
        return (f"{'perhaps' if made >= MANY else 'hardly'}: {made:,.0f} tasks a second are made, but waits for "
                "pidmap_lock are not seen here")
    tasks, waited = total(maps.get("@tasks")), total(maps.get("@waited_ns"))
    what = (f"{tasks / seconds:,.0f} tasks a second are made, and pidmap_lock is waited for "
            f"{total(maps.get('@waits')) / seconds:,.0f} times and {milliseconds(waited, seconds)}")
    if waited >= WAITING * seconds * 1e9:
        return f"yes: {what}"
    if tasks >= MANY * seconds:
        return f"a little: {what}; each clone and exit takes fewer instructions"
    return f"hardly: {what}"


def cached_reads(maps: dict, seconds: float, small: dict, most: int) -> str:
    """Whether cached reads would gain: from @small ones, by file and CPU, of up to
    @most bytes, and most of all of files that several CPUs read."""
    if "@hits" not in maps:
        return "no: no read was answered from the page cache"
    hits = total(maps["@hits"])
    files: dict[str, list[float]] = {}
    for key, count in small.items():
        files.setdefault(key.rsplit(",", 1)[0], []).append(count)
    number, shared = total(small), sum(sum(cpus) for cpus in files.values() if len(cpus) > 1)
    what = (f"{share(number, hits)} of {hits / seconds:,.0f} reads a second that hit the page cache are of {most:,} "
            "bytes or less")
    if not number:
        return f"no: {what}, and the series changes only those"
    what += f", {share(shared, number)} of these of files that several CPUs read"
    if number < MANY * seconds:
        return f"hardly: {what}; they are few"
    return f"yes: {what}" if shared >= number / 10 else f"a little: {what}; each takes fewer instructions"


def filemap_verdict(maps: dict, seconds: float) -> str:
    return cached_reads(maps, seconds, maps.get("@small", {}), SMALL)


def pageguard_verdict(maps: dict, seconds: float) -> str:
    return cached_reads(maps, seconds, maps.get("@page", {}), PAGE)


def fault_verdict(maps: dict, seconds: float) -> str:
    """Whether page faults would gain: from those that come back after I/O and
    wait for mmap_lock then."""
    if "@faults" not in maps:
        return "no: there was no page fault under a VMA lock"
    retries, waited = total(maps.get("@retries_after_io")), total(maps.get("@waited_ns"))
    what = (f"{rate(retries / seconds)} of {rate(total(maps['@faults']) / seconds)} faults a second come back after "
            f"I/O, and wait for mmap_lock {milliseconds(waited, seconds)}")
    if not retries:
        return f"no: {what}"
    return f"yes: {what}" if waited >= WAITING * seconds * 1e9 else f"hardly: {what}"


CACHED = (Probe("filemap_read", "reads that hit the page cache"), Probe("shmem_read", "reads of tmpfs"))
SURVEYS = {
    "pipe": Survey((Probe("pipe_write_size", "the sizes of writes to pipes"),
                    Probe("pipe_mutex", "waits for pipe->mutex", "pipe_write_time")), pipe_verdict),
    "pid": Survey((Probe("pid_lock", "waits for pidmap_lock", "pid_tasks"),), pid_verdict),
    "pageguard": Survey(CACHED, pageguard_verdict),
    "filemap": Survey(CACHED, filemap_verdict),
    "fault": Survey((Probe("fault_retry", "page faults that come back"),), fault_verdict),
}


def kernel_symbols() -> set[str]:
    return {line.split()[2] for line in KALLSYMS.read_text().splitlines() if line.count(" ") >= 2}


def fitted_script(text: str, known: set[str]) -> str:
    """The script @text for a kernel that has the symbols @known: before 6.15, the
    functions of pipes had other names; with lockdep, mutex_lock() has.  With
    the fault series, faults under a VMA lock are handled in one place."""
    if "anon_pipe_write" not in known:
        text = re.sub(r"\banon_pipe_(read|write)\b", r"pipe_\1", text)
    if "mutex_lock" not in known:
        text = re.sub(r":mutex_lock$", ":mutex_lock_nested", text, flags=re.MULTILINE)
    if "handle_vma_fault" in known:
        text = text.replace("kprobe:handle_mm_fault\n/arg2 & 0x1000/", "kprobe:handle_vma_fault")
        text = text.replace("kretprobe:handle_mm_fault", "kretprobe:handle_vma_fault")
    return text


def printed_maps(text: str) -> dict:
    """The maps of what bpftrace has printed as JSON, by name."""
    found = {}
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and row.get("type") in ("map", "hist") and isinstance(row["data"], dict):
            found |= row["data"]
    return found


def looked(name: str, known: set[str], duration: int, command: str) -> tuple[dict | None, float, str]:
    """Run the script @name for @duration seconds, or while the @command runs:
    its maps, or None where it does not work; the seconds; and then why."""
    text = fitted_script((SCRIPTS / f"{name}.bt").read_text(), known)
    if not command:
        text += f"\ninterval:s:{duration}\n{{\n\texit();\n}}\n"
    with tempfile.TemporaryDirectory() as where:
        script = Path(where) / f"{name}.bt"
        script.write_text(text)
        begin = time.monotonic()
        try:
            done = subprocess.run(["bpftrace", "-f", "json", str(script), *(["-c", command] if command else [])],
                                  capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                                  timeout=None if command else duration + PATIENCE)
        except subprocess.TimeoutExpired:
            return None, 0, "bpftrace did not come to an end"
    if done.returncode:
        text = f"{done.stdout}\n{done.stderr}".replace(f"{where}/", "")
        said = [line.strip() for line in text.splitlines() if line.strip()]
        return None, 0, next((line for line in reversed(said) if "ERROR" in line),
                             said[-1] if said else f"bpftrace ended with status {done.returncode}")
    return printed_maps(done.stdout), time.monotonic() - begin if command else duration, ""


def merged(one: dict, other: dict) -> dict:
    """The maps of two probes: numbers, histograms and tables of the same name
    are added up."""
    found = dict(one)
    for name, value in other.items():
        before = found.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            found[name] = merged(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            found[name] = before + value
        else:
            found[name] = value if before is None else before + value
    return found


def surveyed(topic: str, look: Callable[[str], tuple[dict | None, float, str]]) -> tuple[dict | None, float, list[str]]:
    """What the probes of @topic show, where @look is looked() of a script's name:
    their maps, None where none works; the seconds that the last of them looked;
    and a sentence for each that does not work."""
    maps, seconds, missing = None, 0.0, []
    for probe in SURVEYS[topic].probes:
        found, took, why = look(probe.name)
        if found is None:
            missing.append(f"{probe.shows} cannot be seen here: {probe.name}.bt does not work ({why})")
            if probe.instead:
                found, took, why = look(probe.instead)
                if found is None:
                    missing.append(f"nor does {probe.instead}.bt ({why})")
        if found is not None:
            maps, seconds = merged(maps or {}, found), took
    return maps, seconds, missing


def main() -> None:
    parser = arguments(__doc__, base=False)
    parser.add_argument("--topic", help=f"some of {' '.join(SURVEYS)}, separated by blanks (default: all)")
    parser.add_argument("--duration", type=at_least(1, 86400), default=10,
                        help="seconds for each script (default: %(default)s)")
    parser.add_argument("--exec", default="", help="look while this command runs, once for each script")
    args = parser.parse_args()
    chosen = (args.topic or " ".join(SURVEYS)).split()
    for topic in chosen:
        if topic not in SURVEYS:
            raise Failure(f"there is no survey for '{topic}': there are {', '.join(SURVEYS)}")
    if not shutil.which("bpftrace"):
        raise Failure("bpftrace is not installed: install it, and run this again")
    try:
        words = shlex.split(args.exec)
    except ValueError as err:
        raise Failure(f"--exec is no command ({err}): quote it") from err
    if args.exec and not (words and shutil.which(words[0])):
        raise Failure(f"there is no program '{' '.join(words[:1])}' to look at: give another command")
    if os.geteuid():
        raise Failure("bpftrace takes root: run 'sudo make survey'")
    if not Path("/sys/kernel/tracing/events").exists():
        say("survey: tracefs is not mounted, without which little can be seen: 'mount -t tracefs tracefs "
            "/sys/kernel/tracing' mounts it")
    known = kernel_symbols()

    @cache
    def look(name: str) -> tuple[dict | None, float, str]:
        say(f"survey: {name}.bt" + ("" if args.exec else f", {args.duration} s"))
        return looked(name, known, args.duration, args.exec)

    verdicts = []
    for topic in chosen:
        maps, seconds, missing = surveyed(topic, look)
        for sentence in missing:
            say(f"survey: {topic}: {sentence}")
        verdict = "cannot tell: this kernel does not let it be seen" if maps is None else \
            SURVEYS[topic].verdict(maps, seconds)
        verdicts.append(f"{topic}: {verdict}.")
    print("Would this machine gain?\n" + "\n".join(verdicts))


if __name__ == "__main__":
    run(main)
