# SPDX-License-Identifier: GPL-2.0
"""Count mechanisms from the kernel's tracepoints: what happens while a lock is held.

The guest's side is a piece of bash that records, the host's side reads the
text of the trace.  Counts are exact; where the trace lost events, reading it
fails instead of counting less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.process import Failure

LINE = re.compile(r"^\s*(?P<comm>.+)-(?P<pid>\d+)\s+\[\d+\]\s+\S+\s+(?P<time>[\d.]+): "
                  r"(?P<event>\w+)(?:: |\()(?P<rest>.*)$")


@dataclass(frozen=True)
class Event:
    """One line of a trace.  @time: in seconds."""

    pid: int
    time: float
    name: str
    rest: str


@dataclass
class Section:
    """One time that a task held the lock.  @syscall: the system call that the
    task was last seen to enter ('' if none); @counts: events by name."""

    pid: int
    syscall: str
    counts: dict[str, int] = field(default_factory=dict)


def setup(events: dict[str, str]) -> str:
    """bash that prepares tracefs for @events (name 'subsystem/event' to filter, '' for
    none), without starting it, and defines trace_start and trace_stop FILE."""
    lines = ["T=/sys/kernel/tracing",
             "mountpoint -q $T || mount -t tracefs tracefs $T",
             "echo mono > $T/trace_clock",
             "echo 32768 > $T/buffer_size_kb",
             "echo 0 > $T/tracing_on"]
    for name, event_filter in events.items():
        if event_filter:
            lines.append(f"echo '{event_filter}' > $T/events/{name}/filter")
        lines.append(f"echo 1 > $T/events/{name}/enable")
    lines += ["trace_start() { echo > $T/trace; echo 1 > $T/tracing_on; }",
              "trace_stop() {",
              "  echo 0 > $T/tracing_on",
              "  cat $T/per_cpu/cpu*/stats | awk '/^(overrun|dropped events):/ { lost += $NF }"
              " END { print \"# lost\", lost + 0 }' > \"$1\"",
              "  cat $T/trace >> \"$1\"",
              "}"]
    return "\n".join(lines) + "\n"


def events(path: Path) -> Iterator[Event]:
    """The events of a trace that trace_stop wrote, in order.  Raises Failure
    where the trace is empty or lost events."""
    seen = False
    with open(path, errors="replace") as stream:
        for line in stream:
            if line.startswith("# lost ") and line.split()[2] != "0":
                raise Failure(f"the trace {path} lost {line.split()[2]} events: give it a larger buffer "
                              "or less work")
            match = LINE.match(line)
            if match:
                seen = True
                yield Event(int(match["pid"]), float(match["time"]), match["event"], match["rest"])
    if not seen:
        raise Failure(f"the trace {path} has no events: look at the guest's output beside it")


def marked(path: Path) -> list[tuple[str, list[Event]]]:
    """What lies between the benchmark's begin and end marks in the trace
    @path: the begin mark's text and the events, in order.  Raises Failure
    where there are no marks."""
    parts: list[tuple[str, list[Event]]] = []
    inside = False
    for event in events(path):
        if event.name == "tracing_mark_write":
            inside = ": begin" in event.rest
            if inside:
                parts.append((event.rest, []))
        elif inside:
            parts[-1][1].append(event)
    if not parts:
        raise Failure(f"the trace {path} has no marks of the benchmark: look at the guest's output beside it")
    return parts


# What raw_syscalls:sys_enter calls the calls that are counted, on x86-64.
NUMBERS = {"0": "read", "1": "write"}


def entered(event: Event) -> str:
    """The system call that @event enters, '' if it is another event."""
    if event.name == "sys_enter":
        return NUMBERS.get(event.rest.removeprefix("NR ").split(" ", 1)[0], "another")
    for prefix in ("sys_enter_", "sys_"):
        if event.name.startswith(prefix) and not event.name.startswith("sys_exit_"):
            return event.name.removeprefix(prefix)
    return ""


def sections(stream: Iterable[Event], lock: str) -> list[Section]:
    """Every time that a task held a lock of class @lock, in order of release,
    with what the task did meanwhile.  A section that is open at either end of
    the stream does not count."""
    held: dict[int, Section] = {}
    calls: dict[int, str] = {}
    done = []
    for event in stream:
        call = entered(event)
        if call:
            calls[event.pid] = call
        elif event.name == "lock_acquired" and event.rest.split(" ", 1)[1].strip() == lock:
            held[event.pid] = Section(event.pid, calls.get(event.pid, ""))
        elif event.name == "lock_release" and event.rest.split(" ", 1)[1].strip() == lock:
            if event.pid in held:
                done.append(held.pop(event.pid))
        elif event.pid in held:
            counts = held[event.pid].counts
            counts[event.name] = counts.get(event.name, 0) + 1
    return done
