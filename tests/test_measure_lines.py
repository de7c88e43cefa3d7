# SPDX-License-Identifier: GPL-2.0
"""The rows of shared cache lines, from windows made by hand."""

import json

from support import Case, put

# isort: split
from measure import filemap, lines, pipe
from measure import plugin

SYMBOLS = """ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t fget
ffffffff81000200 T fput.cold
ffffffff81000200 T an_alias
ffffffff82000000 D pidmap_lock
ffffffff82000040 D jiffies
ffffffff83000000 B _end
ffffffffc0000000 t module_function	[some_module]
"""
FGET, FPUT, USER = 0xffffffff81000110, 0xffffffff81000200, 0x401000
MEMORY, PIDMAP_LOCK = 0xffff888001000000, 0xffffffff82000000


def every(count: int, loads: int = 1, stores: int = 1, step: int = 1) -> list[list[int]]:
    """The same in each @step-th of @count operations."""
    return [[op, loads, stores] for op in range(step, count + 1, step)]


def line(*cpus: list, va: int = MEMORY, sites: tuple = ()) -> dict:
    """A line of a window, touched as @cpus have it, in order."""
    return {"line": va & 0xfffffff, "va": va, "cpus": [[cpu, turns] for cpu, turns in enumerate(cpus) if turns],
            "sites": [list(site) for site in sites]}


class Rules(Case):
    """lines.per_operation_rows() and what it is made of."""

    def setUp(self):
        super().setUp()
        self.symbols = lines.Symbols(put(self.dir / "symbols", SYMBOLS))

    def figures(self, *found: dict, ops=(100, 100), ticks=()) -> tuple[float, float, float]:
        """Lines, accesses and the mean of lines of a window with these lines;
        @ticks came upon these operations of each CPU."""
        window = {"ops": list(ops), "lines": list(found), "touched": 1000, "ticks": [list(ticks) for _ in ops]}
        rows = lines.per_operation_rows(window, "x 2 CPUs", self.symbols)
        self.assertEqual([one["metric"] for one in rows],
                         ["shared_lines_per_op", "shared_accesses_per_op", "shared_writes_per_op",
                          "shared_lines_per_op_mean"])
        self.assertEqual({(one["condition"], one["evidence"]) for one in rows}, {("x 2 CPUs", "lines")})
        self.writes = rows.pop(2)["value"]
        return tuple(one["value"] for one in rows)

    def test_each_operation(self):
        """Lines that each operation touches count one each, and all accesses to
        them."""
        self.assertEqual(self.figures(), (0, 0, 0))
        self.assertEqual(self.figures(line(every(100), every(100))), (1, 2, 1))
        self.assertEqual(self.figures(line(every(100), every(100)), line(every(100, 3, 1), every(100, 3, 0))),
                         (2, 5.5, 2))
        self.assertEqual(self.writes, 1.5)

    def test_one_side(self):
        """A line that half of the CPUs touch is half a line per operation."""
        self.assertEqual(self.figures(line(every(100), every(100, 1, 0)), ops=(100, 100, 100, 100)), (0.5, 0.75, 0.5))

    def test_seldom(self):
        """What happens in fewer than half of the operations, such as a timer
        tick, is in the mean alone."""
        self.assertEqual(self.figures(line(every(100, step=10), every(100, step=10))), (0, 0, 0.1))
        self.assertEqual(self.figures(line(every(100), every(100)), line(every(100, step=4), every(100, step=5))),
                         (1, 2, 1.225))

    def test_ticks(self):
        """Where operations are so long that the timer comes upon most of them,
        those that it did not come upon tell what they do themselves; where it
        came upon all, there is no telling."""
        often = [turn for turn in every(100) if turn[0] % 4]
        self.assertEqual(self.figures(line(often, often)), (1, 2, 0.75))
        self.assertEqual(self.figures(line(often, often), ticks=[op for op, _, _ in often]), (0, 0, 0.75))
        self.assertEqual(self.figures(line(often, often), ticks=range(1, 101)), (1, 2, 0.75))

    def test_written_by_ticks(self):
        """What ticks write, and operations read, is not contended even where
        there are many ticks."""
        ticked = [[op, 1, int(op % 4 == 0)] for op in range(1, 101)]
        self.assertEqual(self.figures(line(ticked, every(100, 1, 0))), (1, 1, 1))
        self.assertEqual(self.figures(line(ticked, every(100, 1, 0)), ticks=range(4, 101, 4)), (0, 0, 1))

    def test_read_mostly(self):
        """A line that each operation reads, and a tick writes once, is not
        contended."""
        ticked = [[op, 1, int(op == 50)] for op in range(1, 101)]
        self.assertEqual(self.figures(line(ticked, every(100, 1, 0))), (0, 0, 1))
        often = [[op, 1, int(op % 10 == 0)] for op in range(1, 101)]
        self.assertEqual(self.figures(line(often, every(100, 1, 0))), (1, 1, 1))
        # One that has a writer, and many readers, is.
        readers = [every(100, 1, 0)] * 15
        self.assertEqual(self.figures(line(every(100), *readers), ops=(100,) * 16), (1, 1.0625, 1))

    def test_own(self):
        """A CPU's own line that another one has once looked at, or written to
        wake up a task, is not contended."""
        own = [[op, 3, int(op % 10 == 0)] for op in range(1, 101)]
        for other in ([[7, 1, 0]], [[7, 1, 1]]):
            self.assertEqual(self.figures(line(own, other)), (0, 0, 0.505))

    def test_moving(self):
        """Memory that is another for each operation, which one CPU writes and
        the next one reads, is as shared as what stays where it is."""
        moving = [line([[op, 0, 8]], [[op, 8, 0]]) for op in range(1, 101)]
        self.assertEqual(self.figures(*moving), (1, 8, 1))

    def test_idle(self):
        """CPUs without operations are not in the mean."""
        self.assertEqual(self.figures(line(every(10), [], every(10)), ops=(10, 0, 10, 0)), (1, 2, 1))

    def test_detail(self):
        """Functions and variables are named with accesses per operation, most
        first; what does little is not."""
        found = [line(every(10), every(10), sites=((FGET, 20, 20), (USER, 5, 0))),
                 line(every(10), every(10), va=PIDMAP_LOCK, sites=((FPUT, 0, 10), (FGET + 1, 1, 1))),
                 line([[1, 1, 1]], [[1, 1, 1]], va=PIDMAP_LOCK + 0x40, sites=((FPUT + 4, 1, 1),))]
        found.append(line([[op, 3, 0] for op in range(1, 101)], [[1, 1, 1]], sites=((FPUT + 8, 301, 1),)))
        self.assertEqual(lines.detail(found, 20, self.symbols),
                         "fget 2.1, fput 0.6, user space 0.25; variables: pidmap_lock 0.6")
        self.assertEqual(lines.detail([], 20, self.symbols), "")

    def test_no_symbols(self):
        """Symbols without addresses, as who is not root sees them, are told."""
        with self.fails("_text"):
            lines.Symbols(put(self.dir / "symbols", "0000000000000000 T _text\n0000000000000000 T fget\n"))


class Rows(Case):
    """lines.rows() of a run's directory."""

    def run_of(self, *windows: dict, results: list[dict]) -> list[dict]:
        """The rows of @windows and @results."""
        put(self.dir / "symbols", SYMBOLS)
        put(self.dir / "lines.json", "".join(json.dumps(one) + "\n" for one in windows))
        put(self.dir / "ops.json", "".join(json.dumps(one) + "\n" for one in results))
        return lines.rows(self.dir)

    def result(self, **more) -> dict:
        """What shared_lines prints."""
        return {"bench": "shared_lines", "op": "read-one", "dir": "ext4", "cpus": 2, "size": 64, "count": 10, **more}

    def test_rows(self):
        """Conditions name the file system, the size and the CPUs; a metric comes
        after the other."""
        window = {"ops": [10, 10, 0, 0], "ticks": [[]] * 4, "touched": 9, "lines": [line(every(10), every(10))]}
        found = self.run_of(window, {**window, "lines": []}, results=[
            self.result(), self.result(op="pipe-own", dir=None, size=65536)])
        self.assertEqual([(one["metric"], one["condition"], one["value"]) for one in found], [
            ("shared_lines_per_op", "ext4 64B 2 CPUs", 1), ("shared_lines_per_op", "64KiB own pipes 2 CPUs", 0),
            ("shared_accesses_per_op", "ext4 64B 2 CPUs", 2), ("shared_writes_per_op", "ext4 64B 2 CPUs", 1),
            ("shared_lines_per_op_mean", "ext4 64B 2 CPUs", 1),
            ("shared_accesses_per_op", "64KiB own pipes 2 CPUs", 0),
            ("shared_writes_per_op", "64KiB own pipes 2 CPUs", 0),
            ("shared_lines_per_op_mean", "64KiB own pipes 2 CPUs", 0)])

    def test_missing(self):
        """A window too few, or one of other operations, gives no figures."""
        window = {"ops": [10, 10], "touched": 9, "lines": []}
        with self.fails("0 windows of 1", str(self.dir)):
            self.run_of(results=[self.result()])
        with self.fails("0 windows of 0"):
            self.run_of(results=[])
        for ops in ([10, 9], [10], [10, 10, 10]):
            with self.fails("operations"):
                self.run_of({**window, "ops": ops}, results=[self.result()])

    def test_blind(self):
        """A window without any access is no proof that nothing is shared."""
        with self.fails("no access", "read-one"):
            self.run_of({"ops": [10, 10], "touched": 0, "lines": []}, results=[self.result()])

    def test_script(self):
        """The script of a topic keeps the symbols and begins with the window
        that shows what is there without operations."""
        for topic in (filemap, pipe):
            one = topic.MEASUREMENTS[-1]
            self.assertEqual((one.plugin, one.config, one.cpus, one.icount), (plugin.lines_option, "bench", 16, False))
            self.assertLess(one.script.index("> symbols"), one.script.index("lines --op nothing\n"))
            self.assertIn("--cpus 2,4,16", one.script)
