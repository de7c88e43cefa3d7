# SPDX-License-Identifier: GPL-2.0
"""What make bench compares."""

import argparse
import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

from support import KernelCase, git, put

# isort: split
import bench
import model
import tree
from measure import Measurement
from process import Failure


class Revisions(KernelCase):
    """bench.revisions() of a series of three patches."""

    def setUp(self):
        super().setUp()
        self.one = self.series("alpha", *[("fs/pipe.c", f"line {n}\n", f"LINE {n}\n") for n in (1, 12, 24)])
        self.repo = self.imported()

    def pipe(self, side: bench.Side) -> list[str]:
        """The lines of fs/pipe.c on @side which the series or a variant changed."""
        return [line for line in git("show", f"{side.revision}:fs/pipe.c", cwd=side.repo).splitlines()
                if not line.startswith("line")]

    def test_plain(self):
        """The base and the series, the base first."""
        found = bench.revisions(self.repo, self.base, self.one)
        self.assertEqual(list(found), ["baseline", "patched"])
        self.assertEqual(self.pipe(found["baseline"]), [])
        self.assertEqual(self.pipe(found["patched"]), ["LINE 1", "LINE 12", "LINE 24"])

    def test_columns(self):
        """Steps come before the series, variants and other bases after it;
        another base is of its own repository."""
        put(self.root / "patches/alpha/variants/v0/odd.patch",
            "--- a/fs/pipe.c\n+++ b/fs/pipe.c\n@@ -1,3 +1,3 @@\n-LINE 1\n+odd 1\n line 2\n line 3\n")
        put(self.root / "patches/alpha/variants/v0/other.patch",
            "--- a/fs/pipe.c\n+++ b/fs/pipe.c\n@@ -1,3 +1,3 @@\n-line 1\n+other 1\n line 2\n line 3\n")
        self.enterContext(mock.patch.object(tree, "ROOT", self.root))
        other = model.find_base("v1")
        put(self.kdir / "Makefile", (self.kdir / "Makefile").read_text().replace("VERSION = 9", "VERSION = 10"))
        fetch_of = {"v1": self.kdir / ".git"}
        git("commit", "-q", "-a", "-m", "next", cwd=self.kdir)
        git("tag", other.tag, cwd=self.kdir)
        one = replace(self.one, steps={"first": 1, "second": 2}, instead=("other",), compared=("odd",),
                      beside=("v1",))
        with mock.patch.object(bench, "repository", lambda base: fetch_of[base.name]):
            found = bench.revisions(self.repo, self.base, one)
        self.assertEqual(list(found), ["baseline", "first", "second", "other", "patched", "odd", "v1"])
        self.assertEqual([self.pipe(found[name]) for name in ("first", "second", "other", "odd")],
                         [["LINE 1"], ["LINE 1", "LINE 12"], ["other 1"], ["odd 1", "LINE 12", "LINE 24"]])
        self.assertEqual([found[name].base.name for name in found], ["v0"] * 6 + ["v1"])
        self.assertIn("VERSION = 10", git("show", f"{found['v1'].revision}:Makefile", cwd=found["v1"].repo))

    def test_replaced(self):
        """What a topic replaces is a column before it, where that has a series."""
        one = replace(self.one, replaces="beta")
        self.topic("beta")
        self.assertEqual(list(bench.revisions(self.repo, self.base, one)), ["baseline", "patched"])
        self.series("beta", ("fs/pipe.c", "line 5\n", "LINE 5\n"))
        found = bench.revisions(self.repo, self.base, one)
        self.assertEqual(list(found), ["baseline", "beta", "patched"])
        self.assertEqual(self.pipe(found["beta"]), ["LINE 5"])

    def bench(self, measured: mock.Mock, time_again: bool = False, count: tuple[str, ...] = ()) -> Path:
        """Run bench.bench() with all that takes a kernel replaced, and what is
        @measured; the results directory."""
        out = self.dir / "results/v0/today"
        args = argparse.Namespace(kdir=None, accel="tcg", timed=False, boots=5, time_again=time_again,
                                  count=list(count))
        with contextlib.ExitStack() as stack:
            for name, value in (("repository", lambda *_: self.repo), ("kselftests", mock.Mock()),
                                ("kernel", mock.Mock()), ("measures", mock.Mock(return_value=mock.Mock(MEASUREMENTS=[
                                    Measurement("writes", "trace", "", mock.Mock())], NATIVE=None))),
                                ("environment", lambda _base, accel, kernels: [accel, kernels]),
                                ("record", lambda *_: {}), ("counted", measured)):
                stack.enter_context(mock.patch.object(bench, name, value))
            bench.bench(self.base, self.one, args, out)
        return out

    def test_interrupted(self):
        """A run that does not come to its end leaves the figures as they were."""
        def measured(one, compared, measurements, tests, accel, raw):
            put(raw / "x/output.log", "first")
            return [row]

        row = {"topic": "alpha", "metric": "allocs", "condition": "64KiB", "evidence": "counter", "value": 1}
        (self.dir / "results/v0/today").mkdir(parents=True)
        out = self.bench(measured)
        with self.assertRaises(KeyboardInterrupt):
            self.bench(mock.Mock(side_effect=KeyboardInterrupt))
        self.assertEqual(json.loads((out / "summary.json").read_text()), [row])

    def test_resumed(self):
        """What was counted before an interruption is not counted again, until the
        figures are written; the directory of a guest has a name that vng takes."""
        def rows(_run: Path) -> list[dict]:
            return [{"metric": "insns", "unit": "", "condition": "", "evidence": "icount", "value": 1}]

        compared = bench.revisions(self.repo, self.base, self.one)
        measurement = Measurement("instructions, 2 CPUs", "trace", "true\n", rows)
        guest = mock.Mock(side_effect=[self.dir, KeyboardInterrupt, self.dir])
        (self.dir / "output.log").touch()
        with contextlib.ExitStack() as stack:
            for name, value in (("kernel", mock.Mock()), ("guest_run", guest)):
                stack.enter_context(mock.patch.object(bench, name, value))
            with self.assertRaises(KeyboardInterrupt):
                bench.counted(self.one, compared, [measurement], self.dir, "tcg", self.dir / "raw")
            (row,) = bench.counted(self.one, compared, [measurement], self.dir, "tcg", self.dir / "raw")
            self.assertEqual(row["values"], {"baseline": 1, "patched": 1})
            self.assertEqual([call.args[-1] for call in guest.mock_calls],
                             [f"v0-alpha-instructions-2-CPUs-{side}" for side in ("baseline", "patched", "patched")])
            other, more = (lambda: "other"), replace(measurement, memory="2G")
            for changed, tests, name, does in ((more, self.dir, "counting", bench.counting),
                                               (measurement, self.dir / "other", "counting", bench.counting),
                                               (measurement, self.dir, "counting", other),
                                               (measurement, self.dir, "version", other)):
                with self.subTest(memory=changed.memory, tests=tests, name=name, other=does is other), \
                        mock.patch.object(bench, name, does):
                    guest.reset_mock()
                    guest.side_effect = [self.dir] * 2
                    bench.counted(self.one, compared, [changed], tests, "tcg", self.dir / "raw")
                    self.assertEqual(guest.call_count, 2)
        put(self.dir / "results/v0/today/summary.json", "[]")
        self.assertTrue(bench.unfinished(self.base, self.one).exists())
        self.bench(mock.Mock(return_value=[]))
        self.assertFalse(bench.unfinished(self.base, self.one).exists())

    def test_kept(self):
        """What keeps the figures of a topic keeps nothing else, and only where
        all that is compared is the code that was measured."""
        compared = bench.revisions(self.repo, self.base, self.one)
        out = self.dir / "out"
        with self.fails("has no figures of alpha", "make bench TOPIC=alpha"):
            bench.kept(self.one, compared, out)
        row = {"topic": "alpha", "metric": "allocs", "unit": "pages", "condition": "64KiB",
               "evidence": "counter", "values": {}}
        put(out / "summary.json", json.dumps([row, {**row, "topic": "beta"}]))
        codes = {name: tree.code_of(side.repo, side.revision) for name, side in compared.items()}
        kernels = [{"side": name, "code": code} for name, code in codes.items()]
        # The kernels that are timed have the same names, and a benchmark in them.
        kernels += [{"side": name, "code": "timed"} for name in codes]
        before = {"compiler": bench.compiler(), "kernels": kernels}
        put(out / "environment-alpha.json", json.dumps(before))
        self.assertEqual(bench.kept(self.one, compared, out), ([row], before))
        put(out / "environment-alpha.json", json.dumps({**before, "compiler": "gcc 0"}))
        with self.fails("are of gcc 0, which is not the compiler here", "make bench TOPIC=alpha"):
            bench.kept(self.one, compared, out)
        put(out / "environment-alpha.json", json.dumps({**before, "kernels": [
            one for one in kernels if one != {"side": "patched", "code": codes["patched"]}]}))
        with self.fails("of another patched kernel"):
            bench.kept(self.one, compared, out)

    def test_time_again(self):
        """Where only the time is taken anew, nothing is counted or built for it, and
        what is on record of the kernels that were counted stays."""
        compared = bench.revisions(self.repo, self.base, self.one)
        kernels = [{"side": name, "config": "trace", "code": tree.code_of(side.repo, side.revision)}
                   for name, side in compared.items()]
        out = self.dir / "results/v0/today"
        put(out / "summary.json", json.dumps([{"topic": "alpha", "metric": "allocs", "unit": "pages",
                                               "condition": "64KiB", "evidence": "counter", "values": {}}]))
        put(out / "environment-alpha.json", json.dumps({
            "accelerator": "tcg", "compiler": bench.compiler(), "kernels": kernels}))
        nothing = mock.Mock(return_value=[])
        with mock.patch.object(bench, "kernel", mock.Mock(side_effect=AssertionError)):
            self.bench(nothing, time_again=True)
        self.assertEqual(nothing.mock_calls[0].args[2], [])
        self.assertEqual(json.loads((out / "environment-alpha.json").read_text()), ["tcg", kernels])

    def test_count(self):
        """Where one measurement is counted, its rows take the place of those that were
        there, and all others stay, of time, too, and so does the machine that took it;
        its kernels come to those on record."""
        compared = bench.revisions(self.repo, self.base, self.one)
        kernels = [{"side": name, "config": "bench", "code": tree.code_of(side.repo, side.revision)}
                   for name, side in compared.items()]
        out = self.dir / "results/v0/today"
        row = {"topic": "alpha", "metric": "allocs", "unit": "pages", "condition": "64KiB", "evidence": "counter",
               "values": {"patched": 1}}
        others = [{**row, "condition": "4KiB"}, {**row, "metric": "throughput", "evidence": "timed-uml"}]
        put(out / "summary.json", json.dumps([*others, row]))
        before = {"accelerator": "tcg", "host CPU": "another", "compiler": bench.compiler(), "kernels": kernels}
        put(out / "environment-alpha.json", json.dumps(before))
        new = {**row, "values": {"patched": 2}}
        measured = mock.Mock(return_value=[new])
        with self.fails("no measurement 'reads'", "'writes'"):
            self.bench(measured, count=("reads",))
        self.bench(measured, count=("writes",))
        self.assertEqual([one.name for one in measured.mock_calls[0].args[2]], ["writes"])
        self.assertEqual(json.loads((out / "summary.json").read_text()), [others[0], new, others[1]])
        self.assertEqual(json.loads((out / "environment-alpha.json").read_text()),
                         {**before, "kernels": [*kernels, {}, {}]})

    def test_in_place(self):
        """Rows stay where they were, and new ones come behind those of their metric, and
        of their topic."""
        def rows(*names: str) -> list[dict]:
            return [dict(zip(("topic", "metric", "condition"), name.split("/"), strict=True)) for name in names]

        before = rows("b/m/2", "b/n/2", "b/m/1", "a/m/1")
        self.assertEqual(bench.in_place(rows("c/m/1", "a/m/1", "b/k/1", "b/m/3", "b/m/1", "b/n/2", "b/m/2"), before),
                         rows("b/m/2", "b/m/1", "b/m/3", "b/n/2", "b/k/1", "a/m/1", "c/m/1"))
        self.assertEqual(bench.in_place(before, []), rows("b/m/2", "b/m/1", "b/n/2", "a/m/1"))

    def test_timed_before(self):
        """An earlier time counts beside a new one if a machine like this took it of the
        same kernels."""
        kernels = [{"side": "baseline", "config": "um-time", "code": "a"}]
        before = {"host CPU": bench.machine.machine()["CPU model"], "kernels": [{**kernels[0], "base": "v0"}]}
        row = {"topic": "alpha", "evidence": "timed-uml", "metric": "throughput", "unit": "op/s", "condition": "",
               "values": {}}
        rows = [row, {**row, "evidence": "counter"}]
        self.assertEqual(bench.timed_before(rows, before, kernels), [row])
        self.assertEqual(bench.timed_before(rows, {**before, "host CPU": "another"}, kernels), [])
        self.assertEqual(bench.timed_before(rows, before, [{**kernels[0], "code": "b"}]), [])

    def test_chosen(self):
        """A measurement is of all columns, or of those that it names and that are
        there; the time is taken of the base, the series and what is named."""
        compared = dict.fromkeys(("baseline", "tree", "map", "patched"), mock.Mock())
        self.assertEqual(list(bench.chosen(compared, mock.Mock(sides=()))), list(compared))
        self.assertEqual(list(bench.chosen(compared, mock.Mock(sides=("patched", "baseline", "none")))),
                         ["baseline", "patched"])
        sides = bench.revisions(self.repo, self.base, self.one)
        sides = {"baseline": sides["baseline"], "tree": sides["baseline"], "map": sides["baseline"],
                 "patched": sides["patched"]}
        with mock.patch.object(bench, "with_benchmark", lambda _repo, revision, _own: f"{revision} and a clock"):
            timed = bench.timing(replace(self.one, timed=("map",)), sides)
        self.assertEqual(list(timed), ["baseline", "map", "patched"])
        self.assertEqual(timed["map"].revision, f"{self.base.tag} and a clock")

    def test_own_patches(self):
        """The series, and the one that it replaces, are timed with their own patches
        for that; others are not."""
        for name in ("alpha", "beta"):
            put(self.root / f"patches/{name}/variants/v0/time.patch", "")
        self.topic("beta")
        self.enterContext(mock.patch.object(tree, "ROOT", self.root))
        side = bench.revisions(self.repo, self.base, self.one)["patched"]
        with mock.patch.object(bench, "with_benchmark", lambda _repo, _revision, own: own and own.parts[-4]):
            timed = bench.timing(replace(self.one, replaces="beta", timed=("beta", "other")),
                                 dict.fromkeys(("baseline", "other", "beta", "patched"), side))
        self.assertEqual({name: one.revision for name, one in timed.items()},
                         {"baseline": None, "other": None, "beta": "beta", "patched": "alpha"})

    def test_failed(self):
        """A run that fails leaves no results, and no directory for them."""
        with self.assertRaises(Failure):
            self.bench(mock.Mock(side_effect=Failure("the guest died")))
        self.assertFalse((self.dir / "results").exists())

    def test_cpus(self):
        """Timed guests have up to the CPUs of this machine, and no more: said
        before anything is built."""
        self.enterContext(mock.patch.object(bench, "need", side_effect=AssertionError("installed")))
        for there, asked in ((4, "5"), (4, "0"), (4, "x"), (64, "65")):
            with self.subTest(there=there, asked=asked), mock.patch.object(bench.os, "cpu_count", return_value=there), \
                    mock.patch.object(sys, "argv", ["bench.py", "--cpus", asked]), \
                    mock.patch("sys.stderr"), self.assertRaises(SystemExit):
                bench.main()
        seen = []
        self.enterContext(mock.patch.object(bench, "need"))
        self.enterContext(mock.patch.object(bench, "room_for_builds"))
        self.enterContext(mock.patch.object(bench, "write_report"))
        self.enterContext(mock.patch.object(bench, "bench", lambda _base, _topic, args, out: (
            seen.append(args.cpus), put(out / "report.md", "a report\n"))))
        for there in (4, 64):
            with mock.patch.object(bench.os, "cpu_count", return_value=there), \
                    mock.patch.object(sys, "argv", ["bench.py", "--out", str(self.dir / "out")]):
                bench.main()
        self.assertEqual(seen, [4, 64])
        self.assertEqual([bench.sweep(most) for most in (1, 2, 6, 8)], [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]])

    def test_built_of(self):
        """Each side's kernel is built of its own base."""
        sides = bench.revisions(self.repo, self.base, self.one)
        sides["v1"] = bench.Side(self.dir / "other", model.find_base("v1"), "v9.2.0")
        with mock.patch.object(bench, "kernel", lambda *args: args):
            built = bench.build_sides(self.one, sides, "trace")
        self.assertEqual(built["v1"], (self.dir / "other", model.find_base("v1"), "v9.2.0", "trace", "alpha-v1"))
        self.assertEqual(built["baseline"][:3], (self.repo, self.base, "v9.1.2"))
