# SPDX-License-Identifier: GPL-2.0
"""Counting from traces: what ftrace prints becomes exact counts, or a Failure."""

import os
import subprocess

from support import Case, put

# isort: split
from measure import counters
from measure.counters import Event, entered, events, marked, sections

LOCK = "&pipe->mutex"
HEAD = """\
# lost 0
# tracer: nop
#
# entries-in-buffer/entries-written: 20/20   #P:2
#
#                                _-----=> irqs-off/BH-disabled
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""
# Two tasks, two classes of lock; the second task's section lies inside the
# first one's.  Long lines are continued after a backslash.
TRACE = HEAD + """\
      pipe_load-101     [000] .....    12.000001: lock_acquired: 00000000aa11bb22 &pipe->mutex
      pipe_load-101     [000] .....    12.000002: mm_page_alloc: page=000000003c1f pfn=0x1234 order=0 \
migratetype=0 gfp_flags=GFP_HIGHUSER
      pipe_load-101     [000] .....    12.000003: lock_release: 00000000aa11bb22 &pipe->mutex
      pipe_load-101     [000] .....    12.000100: tracing_mark_write: pipe_load: begin mode=pair size=65536
      pipe_load-101     [000] .....    12.000101: sys_write(fd: 5, buf: 7f00deadb000, count: 10000)
      pipe_load-101     [000] .....    12.000102: lock_acquired: 00000000aa11bb22 &pipe->mutex
      pipe_load-101     [000] d..1.    12.000103: mm_page_alloc: page=000000003c1f pfn=0x1234 order=0 \
migratetype=0 gfp_flags=GFP_HIGHUSER|__GFP_ACCOUNT
   pipe_load-102        [001] .....    12.000104: sys_enter_read: fd: 0x00000004, buf: 0x7f00, count: 0x00010000
   pipe_load-102        [001] .....    12.000105: mm_page_alloc: page=000000003c20 pfn=0x1235 order=0 \
migratetype=0 gfp_flags=GFP_KERNEL
   pipe_load-102        [001] .....    12.000106: lock_acquired: 00000000cc33dd44 &pipe->mutex
   pipe_load-102        [001] .....    12.000107: mm_page_free: page=000000003c20 pfn=0x1235 order=0
   pipe_load-102        [001] .....    12.000108: lock_release: 00000000cc33dd44 &pipe->mutex
      pipe_load-101     [000] .....    12.000109: lock_acquired: 00000000ee55ff66 &sb->s_type->i_mutex_key
      pipe_load-101     [000] .....    12.000110: lock_release: 00000000ee55ff66 &sb->s_type->i_mutex_key
      pipe_load-101     [000] .....    12.000111: mm_page_alloc: page=000000003c21 pfn=0x1236 order=0 \
migratetype=0 gfp_flags=GFP_HIGHUSER
      pipe_load-101     [000] .....    12.000112: lock_release: 00000000aa11bb22 &pipe->mutex
      pipe_load-101     [000] .....    12.000113: sys_write -> 0x10000
      pipe_load-101     [000] .....    12.000114: mm_page_alloc: page=000000003c22 pfn=0x1237 order=0 \
migratetype=0 gfp_flags=GFP_KERNEL
      pipe_load-101     [000] .....    12.000115: tracing_mark_write: pipe_load: end mode=pair size=65536
      pipe_load-101     [000] .....    12.000116: lock_acquired: 00000000aa11bb22 &pipe->mutex
      pipe_load-101     [000] .....    12.000117: lock_release: 00000000aa11bb22 &pipe->mutex
"""


class Lines(Case):
    """counters.LINE and counters.events()."""

    def read(self, text: str) -> list[Event]:
        """The events of a trace with @text."""
        return list(events(put(self.dir / "trace", text)))

    def test_fields(self):
        """The fields of an event are those of its line."""
        found = self.read(TRACE)
        self.assertEqual(found[0], Event(101, 12.000001, "lock_acquired", "00000000aa11bb22 &pipe->mutex"))
        self.assertEqual(found[6].rest, "page=000000003c1f pfn=0x1234 order=0 migratetype=0 "
                                        "gfp_flags=GFP_HIGHUSER|__GFP_ACCOUNT")

    def test_both_forms_of_a_system_call(self):
        """ftrace prints sys_write(…) or sys_enter_write: …; a return is none."""
        found = [one.name for one in self.read(TRACE) if one.name.startswith("sys_")]
        self.assertEqual(found, ["sys_write", "sys_enter_read"])

    def test_odd_task_names(self):
        """A task's name may have blanks, dashes, colons and brackets."""
        for comm in ("kworker/0:1-ev [x]", "<...>", "a b-7 c"):
            found = self.read(f"{comm}-4321 [003] d.h1. 7.5: lock_release: 0000 {LOCK}\n")
            self.assertEqual([(one.pid, one.time, one.name) for one in found], [(4321, 7.5, "lock_release")])

    def test_lost_events(self):
        """A trace that lost events is refused, naming it and how many."""
        with self.fails("lost 17", str(self.dir / "trace")):
            self.read(TRACE.replace("# lost 0", "# lost 17"))

    def test_empty(self):
        """A trace without events is refused."""
        with self.fails("no events", str(self.dir / "trace")):
            self.read(HEAD)


class Marked(Case):
    """counters.marked()."""

    def read(self, *texts: str) -> list[tuple[str, list[float]]]:
        """The parts of a trace of events with @texts, one a second: each
        begin mark's text, and the seconds of the events after it."""
        lines = [f"x-1 [000] ..... {time}.0: {text}" for time, text in enumerate(texts)]
        return [(mark, [one.time for one in part])
                for mark, part in marked(put(self.dir / "trace", "\n".join(lines) + "\n"))]

    def test_between_marks(self):
        """Only what lies between begin and end, the marks not included."""
        [(mark, part)] = marked(put(self.dir / "trace", TRACE))
        self.assertEqual(mark, "pipe_load: begin mode=pair size=65536")
        self.assertEqual([round(one.time % 1 * 1e6) for one in part], list(range(101, 113)) + [114])

    def test_each_begin_is_a_part(self):
        """Each begin opens a part with its own text, in order, also an empty
        one and one without an end."""
        call, mark = "sys_write(fd: 5)", "tracing_mark_write: x: "
        self.assertEqual(self.read(call, mark + "begin a", call, mark + "end a", call, mark + "begin b",
                                   mark + "end b", mark + "begin c", call),
                         [("x: begin a", [2]), ("x: begin b", []), ("x: begin c", [8])])

    def test_no_marks(self):
        """A trace without a begin mark is refused by its name."""
        with self.fails("no marks", str(self.dir / "trace")):
            self.read("sys_write(fd: 5)", "tracing_mark_write: x: end a")


class Entered(Case):
    """counters.entered()."""

    def test_names(self):
        """Both forms of an entry name the call; a return and others name none."""
        for name, call in (("sys_write", "write"), ("sys_enter_read", "read"), ("sys_enter_exit_group", "exit_group"),
                           ("sys_exit_write", ""), ("lock_acquired", ""), ("mm_page_alloc", "")):
            self.assertEqual(entered(Event(1, 0.0, name, "")), call, name)


class Sections(Case):
    """counters.sections()."""

    def setUp(self):
        super().setUp()
        self.path = put(self.dir / "trace", TRACE)
        self.events = list(events(self.path))

    def test_interleaved_tasks(self):
        """Each task's events count in its own section, in order of release,
        and not the events of a task that does not hold the lock."""
        [(_, part)] = marked(self.path)
        found = sections(part, LOCK)
        self.assertEqual([(one.pid, one.syscall) for one in found], [(102, "read"), (101, "write")])
        self.assertEqual(found[0].counts, {"mm_page_free": 1})
        self.assertEqual(found[1].counts["mm_page_alloc"], 2)
        self.assertNotIn("mm_page_free", found[1].counts)

    def test_other_locks(self):
        """Another class of lock makes no section and ends none."""
        self.assertEqual(len(sections(self.events, LOCK)), 4)
        found = sections(self.events, "&sb->s_type->i_mutex_key")
        self.assertEqual([(one.pid, one.counts) for one in found], [(101, {})])
        self.assertEqual(sections(self.events, "mutex"), [])

    def test_open_sections(self):
        """Sections that are open at either end of the stream do not count."""
        self.assertEqual(sections([Event(1, 1.0, "lock_release", f"00aa {LOCK}"),
                                   Event(1, 2.0, "lock_acquired", f"00aa {LOCK}"),
                                   Event(1, 3.0, "mm_page_alloc", "")], LOCK), [])

    def test_unknown_syscall(self):
        """A task that was in its call already has a section without a name."""
        [found] = sections(self.events[:3], LOCK)
        self.assertEqual(found.syscall, "")

    def test_call(self):
        """A section is of the call that its own task entered last."""
        def section(pid):
            return [Event(pid, 0.0, name, f"00aa {LOCK}") for name in ("lock_acquired", "lock_release")]

        def call(pid, name):
            return [Event(pid, 0.0, name, "")]

        stream = (call(1, "sys_write") + section(1) + section(1) + call(2, "sys_enter_read") + section(2)
                  + call(1, "sys_enter_read") + section(1))
        self.assertEqual([(one.pid, one.syscall) for one in sections(stream, LOCK)],
                         [(1, "write"), (1, "write"), (2, "read"), (1, "read")])


class Setup(Case):
    """The bash that records, run against a directory that passes for tracefs."""

    def test_recording(self):
        """Filters and switches are written before the start, and the trace
        begins with what all CPUs lost: overruns and drops, not commit overruns."""
        tracefs = self.dir / "tracing"
        put(tracefs / "events/lock/lock_acquired/enable", "0")
        put(tracefs / "events/kmem/mm_page_free/enable", "0")
        for cpu, lost in ((0, 3), (1, 4)):
            put(tracefs / f"per_cpu/cpu{cpu}/stats", f"entries: 9\noverrun: {lost}\ncommit overrun: 100\n"
                                                     "bytes: 5\ndropped events: 1\nread events: 0\n")
        self.fake("mountpoint", "exit 0\n")
        out = self.dir / "out.trace"
        script = counters.setup({"lock/lock_acquired": f'name == "{LOCK}" && comm == "x"',
                                 "kmem/mm_page_free": ""})
        script += f"trace_start\ncat $T/tracing_on\necho {'x-1 [000] ..... 1: e: r'!r} > $T/trace\ntrace_stop {out}\n"
        done = subprocess.run(["bash", "-euc", script.replace("/sys/kernel/tracing", str(tracefs))],
                              capture_output=True, text=True, env=os.environ, check=True)
        self.assertEqual(done.stdout, "1\n")
        self.assertEqual(out.read_text(), "# lost 9\nx-1 [000] ..... 1: e: r\n")
        self.assertEqual({name: (tracefs / name).read_text().strip() for name in (
            "trace_clock", "buffer_size_kb", "tracing_on", "events/lock/lock_acquired/filter",
            "events/lock/lock_acquired/enable", "events/kmem/mm_page_free/enable")},
            {"trace_clock": "mono", "buffer_size_kb": "32768", "tracing_on": "0",
             "events/lock/lock_acquired/filter": f'name == "{LOCK}" && comm == "x"',
             "events/lock/lock_acquired/enable": "1", "events/kmem/mm_page_free/enable": "1"})
        self.assertFalse((tracefs / "events/kmem/mm_page_free/filter").exists())
