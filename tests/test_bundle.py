# SPDX-License-Identifier: GPL-2.0
"""The archive with which other machines measure: what runs there, without a boot, how
it is packed, and what takes in what comes back."""

import ast
import importlib.util
import json
import os
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from support import SCRIPTS, Case, KernelCase, put

# isort: split
from core.model import ALL, Topic
from measure import bundle
from reports import laps
from reports import machines
from reports import report
from reports import stats


def runner():
    """The program ./run of the archive, as a module."""
    spec = importlib.util.spec_from_file_location("bundle_run", SCRIPTS / "measure/bundle/run.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


run = runner()
JOBS = {"pid": [{"row": "alloc", "line": 0}, {"row": "thread", "line": 1}],
        "pipe": [{"row": "64 KiB", "line": 0, "bytes": 65536}]}
KERNELS = [{"name": name, "topic": "alpha", "side": side, "code": code, "jobs": jobs, "file": f"kernels/{name}"}
           for name, side, code, jobs in ((laps.BASE, "baseline", "base", ["pid", "pipe"]),
                                          ("alpha", "patched", "0123", ["pid"]),
                                          ("alpha-tree", "tree", "4567", ["pid"]))]
BUNDLE = {"bundle": "cafe", "base": "v0", "tag": "v9.1.2", "jobs": JOBS, "kernels": KERNELS}


def lap(cpus: int, base: float = 100, again: float = 100, alpha: float = 150) -> dict:
    """A lap of one row."""
    return {"cpus": cpus, "values": {laps.BASE: {"alloc": base}, stats.AGAIN: {"alloc": again},
                                     "alpha": {"alloc": alpha}, "alpha-tree": {"alloc": 50}}}


def point(cpus: int, share: bool = False, core: bool = False) -> dict:
    """A number of CPUs."""
    return {"cpus": cpus, "host": [0], "share": share, "core": core}


class Older(Case):
    """What the archive has runs on older machines."""

    def test_python(self):
        """All of it is Python 3.8, and imports nothing else of ours."""
        for path in (SCRIPTS / "measure/bundle/run.py", *(SCRIPTS / f"{name}.py" for name in bundle.MODULES)):
            parsed = ast.parse(path.read_text(), feature_version=(3, 8))
            for node in ast.walk(parsed):
                for name in ([one.name for one in node.names] if isinstance(node, ast.Import) else
                             [node.module] if isinstance(node, ast.ImportFrom) else []):
                    self.assertTrue(name in bundle.MODULES or not (SCRIPTS / f"{name}.py").exists(), (path.name, name))
                self.assertFalse(isinstance(node, ast.Attribute) and node.attr in ("removeprefix", "removesuffix"))


class Machine(Case):
    """What the program finds out of the machine."""

    def test_seccomp(self):
        """A kernel that is too old, or has no seccomp, is told with what to boot."""
        for release, mode, words in (("5.8.1-generic", 0, "5.9"), ("4.19", 2, "5.9"), ("6.1.0-13-amd64", -1, "seccomp"),
                                     ("6.1.0", 0, ""), ("6.1.0", 2, ""), ("5.10", 0, "")):
            problem = run.seccomp_problem(release, mode)
            self.assertEqual(bool(problem), bool(words), release)
            self.assertIn(words, problem)

    def test_memory(self):
        """Guests have their memory where there is room for it and programs may run."""
        self.assertEqual(run.available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), 2 << 20)
        self.assertEqual(run.available(""), 0)
        there, less = self.dir / "there", self.dir / "less"
        with mock.patch.object(run, "room", lambda place: run.MEMORY if place == there else 5):
            self.assertEqual(run.memory_place([less, there]), there)
            with self.assertRaisesRegex(run.Stop, "MB free.*TMPDIR"):
                run.memory_place([less])
        self.assertEqual(run.room(self.dir / "missing"), 0)
        found = os.statvfs(self.dir)
        noexec = SimpleNamespace(f_flag=os.ST_NOEXEC, f_bavail=found.f_bavail, f_frsize=found.f_frsize)
        self.assertGreater(run.room(self.dir), 0)
        with mock.patch.object(run.os, "statvfs", return_value=noexec):
            self.assertEqual(run.room(self.dir), 0)

    def test_cpus(self):
        """CPUs are given a core after the other; more than there are share one."""
        for cpu, (package, core) in enumerate(((0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 0))):
            where = self.dir / f"devices/system/cpu/cpu{cpu}/topology"
            put(where / "physical_package_id", f"{package}\n")
            put(where / "core_id", f"{core}\n")
        with mock.patch.object(run.machine, "SYS", self.dir):
            *order, cores = run.topology([0, 1, 2, 3, 4, 5])
            self.assertEqual((order, cores), ([0, 2, 4, 1, 3, 5], 3))
            self.assertEqual(run.topology([7, 8]), [7, 8, 2])
        found = run.points([1, 3, 4, 8], order, cores, 7)
        self.assertEqual([(one["host"], one["share"], one["core"]) for one in found], [
            ([0], False, False), ([0, 2, 4], False, False), ([0, 2, 4, 1], False, True), (order, True, True)])
        self.assertEqual([one["share"] for one in run.points([1, 2], order, cores, 1.5)], [False, True])
        self.assertEqual(run.quota("150000 100000\n"), 1.5)
        self.assertEqual(run.quota("max 100000\n"), float("inf"))
        self.assertEqual([run.default_cpus(number) for number in (1, 2, 6, 200)],
                         [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8, 16, 32, 64]])

    def test_arguments(self):
        """Numbers of CPUs, and minutes, or what is wrong with them."""
        args = run.parse(["--cpus", "4,1,4", "--minutes", "2.5"], 2, 10)
        self.assertEqual((args.cpus, args.minutes), ([1, 4], 2.5))
        self.assertEqual((run.parse([], 3, 20).cpus, run.parse([], 3, 20).minutes), ([1, 2, 3], 20))
        for argv in (["--cpus", "0"], ["--cpus", "65"], ["--cpus", "1,x"], ["--minutes", "0"], ["--minutes", "-1"]):
            with self.assertRaises(SystemExit), mock.patch.object(run.sys, "stderr"):
                run.parse(argv, 2, 10)


class Guests(Case):
    """What a guest printed."""

    def test_values(self):
        """Operations of all turns a second; bytes as operations; what a program says."""
        text = ("Linux\r\nhotpaths: cpus 2\r\nhotpaths: pid 0 100 1000\r\nhotpaths: pid 1 {\"ops_per_s\": 7.5}\r\n"
                "hotpaths: pid 0 200 2000\r\nhotpaths: pipe 0 131072 1000\r\nhotpaths: done\r\n")
        self.assertEqual(run.measured(text, JOBS, ["pid", "pipe"], 2), {"alloc": 1e8, "thread": 7.5, "64 KiB": 2e6})
        with self.assertRaisesRegex(run.Died, "4 CPUs"):
            run.measured(text, JOBS, ["pid"], 4)
        with self.assertRaisesRegex(run.Died, "nothing was done in 'thread'"):
            run.measured(text.replace("pid 1", "pid 9"), JOBS, ["pid"], 2)
        with self.assertRaisesRegex(run.Died, "nothing was done in '64 KiB'"):
            run.measured(text.replace("131072", "0"), JOBS, ["pipe"], 2)

    def test_reasons(self):
        """Why a guest died, with what to do where that is known."""
        for text, code, words in (
                ("Checking that seccomp filters can be installed...error\n", 1, "--security-opt"),
                ("x\n/tmp must be not mounted noexec\n", 1, "TMPDIR"), ("booting\n", -signal.SIGBUS, "no room"),
                ("hotpaths: failed: mount\r\nKernel panic - not syncing\nlast", 0, "Kernel panic"),
                ("", -11, "signal 11, and it said last: nothing"), ("a\nlast words\n\n", 3, "status 3.*last words")):
            self.assertRegex(run.why_died(text, code), words)

    def test_boot(self):
        """A guest gets its CPUs, memory and jobs, ends with all that it runs, and leaves
        nothing behind."""
        put(self.dir / "kernels/alpha", f"""#!/bin/sh
echo "$@" > {self.dir}/argv
sleep 100 > /dev/null 2>&1 & echo $! > {self.dir}/child
echo 'hotpaths: cpus 2
hotpaths: pid 0 5 1000
hotpaths: pid 1 {{"ops_per_s": 2}}
hotpaths: done'
""", 0o755)
        place = self.dir / "place"
        place.mkdir()
        here = {"cpus": 2, "host": sorted(os.sched_getaffinity(0))[:1], "share": True}
        with mock.patch.object(run, "HERE", self.dir):
            put(self.dir / "kernels/dies", "#!/bin/sh\necho last words\nexit 3\n", 0o755)
            with self.assertRaisesRegex(run.Died, "last words"):
                run.boot(BUNDLE, {"file": "kernels/dies"}, here, ["pid"], place)
            with mock.patch.object(run, "PATIENCE", 0.2), self.assertRaisesRegex(run.Died, "more than 0.2 s"):
                put(self.dir / "kernels/hangs", "#!/bin/sh\nsleep 100\n", 0o755)
                run.boot(BUNDLE, {"file": "kernels/hangs"}, here, ["pid"], place)
            found = run.boot(BUNDLE, {"file": "kernels/alpha"}, here, ["pid"], place)
        self.assertEqual(found, {"alloc": 5e6, "thread": 2})
        self.assertIn(" bench_spin=0 -- pid", (self.dir / "argv").read_text())
        self.assertIn(" ncpus=2 seccomp=on ", (self.dir / "argv").read_text())
        self.assertTrue((self.dir / "argv").read_text().endswith(" -- pid\n"))
        self.assertEqual(list(place.iterdir()), [])
        child = Path("/proc", (self.dir / "child").read_text().strip(), "stat")
        end = time.monotonic() + 10
        while child.exists() and " Z " not in child.read_text() and time.monotonic() < end:
            time.sleep(0.01)
        self.assertLess(time.monotonic(), end)


class Sessions(Case):
    """Laps with boots that take no time."""

    def setUp(self):
        super().setUp()
        self.out = self.dir / "out.json"
        self.boots = []
        self.time = 0.0
        self.enterContext(mock.patch.object(run, "boot", self.boot))
        self.enterContext(mock.patch.object(run.time, "monotonic", lambda: self.time))
        self.record = {"format": 1, "bundle": "cafe", "points": [point(1), point(2)], "laps": []}

    def boot(self, _bundle: dict, kernel: dict, at: dict, jobs: list, _place: Path) -> dict:
        """A boot of a minute."""
        if (at["cpus"], len(self.boots)) == self.dies:
            raise run.Died("it did")
        if len(self.boots) == self.interrupted:
            raise KeyboardInterrupt
        self.boots.append((at["cpus"], kernel["name"]))
        self.time += 60
        return {row["row"]: 100.0 + len(self.boots) for job in jobs for row in JOBS[job]}

    def session(self, minutes: float, dies: tuple = (), interrupted: int = -1):
        """A session of @minutes; dies: the number of CPUs, and the boot, that dies."""
        self.dies, self.interrupted = dies, interrupted
        return run.Session(BUNDLE, self.record, self.out, list(self.record["points"]), self.dir, minutes)

    def test_laps(self):
        """In a lap each kernel is booted once with the same CPUs, the base twice; the
        first one of each number of CPUs is dropped, and each is written when it is
        done."""
        self.session(4 * 8).run()
        for start in range(0, 32, 4):
            part = self.boots[start:start + 4]
            self.assertEqual(len({cpus for cpus, _ in part}), 1)
            self.assertEqual(sorted(name for _, name in part), ["alpha", "alpha-tree", laps.BASE, laps.BASE])
        self.assertEqual([len(laps.of_cpus(self.record["laps"], cpus)) for cpus in (1, 2)], [3, 3])
        self.assertGreater(len({tuple(name for _, name in self.boots[start:start + 4])
                                for start in range(0, 32, 4)}), 2)
        self.assertEqual(json.loads(self.out.read_text()), self.record)
        self.assertEqual(sum(line.startswith('{"cpus": ') for line in self.out.read_text().splitlines()), 6)
        self.assertIn("lap 8 of about 8", self.said.getvalue())
        self.assertEqual(self.said.getvalue().count("not counted"), 2)
        self.assertIn("1 CPU ", self.said.getvalue())
        self.assertIn("alpha-tree", self.said.getvalue())

    def test_interrupted(self):
        """An interrupt keeps the laps that were done, and the next run goes on with
        them."""
        with self.assertRaises(KeyboardInterrupt):
            self.session(1000, interrupted=15).run()
        self.assertEqual(len(json.loads(self.out.read_text())["laps"]), 1)
        fresh = {"format": 1, "bundle": "cafe"}
        self.assertEqual(run.resumed(self.out, fresh)["laps"], self.record["laps"])
        self.assertIn("the 1 laps", self.said.getvalue())
        self.assertEqual(run.resumed(self.dir / "none", fresh), fresh)
        for text, words in (("{", "cannot be read"), ("[]", "another bundle"),
                            (json.dumps({"format": 1, "bundle": "beef"}), "another bundle")):
            with self.assertRaisesRegex(run.Stop, words):
                run.resumed(put(self.dir / "other", text), fresh)

    def test_full_disk(self):
        """Where the file cannot be written it stays as it was, which is said once, and
        what was measured is written as soon as there is room."""
        session = self.session(4 * 5)
        real, full = run.os.fsync, [True, True, False]

        def fsync(number: int) -> None:
            """One that finds a full disk."""
            if full.pop(0):
                raise OSError(28, "No space left on device")
            real(number)

        put(self.out, "before")
        with mock.patch.object(run.os, "fsync", fsync):
            session.keep(lap(1))
            session.keep(lap(1))
            self.assertEqual((self.out.read_text(), session.unwritten), ("before", 2))
            self.assertEqual(list(self.dir.glob("*.part")), [])
            session.keep(lap(1))
        self.assertEqual((len(json.loads(self.out.read_text())["laps"]), session.unwritten), (3, 0))
        self.assertEqual(self.said.getvalue().count("No space left"), 1)

    def test_dies(self):
        """A number of CPUs with which a kernel does not run is left out; where none is
        left, that ends it."""
        self.session(4 * 5, dies=(2, 0)).run()
        self.session(4 * 5, dies=(2, 4)).run()
        self.assertIn("with 2 CPUs a kernel did not run: it did", self.said.getvalue())
        self.record["points"] = [point(1)]
        with self.assertRaisesRegex(run.Stop, "--cpus"):
            self.session(9, dies=(1, len(self.boots))).run()

    def test_shorter(self):
        """How many minutes a table takes is told as well where the time was over before
        each number of CPUs had a lap."""
        self.session(6).run()
        self.assertIn("a table takes 32 minutes: give --minutes 33", self.said.getvalue())

    def test_short(self):
        """Too few minutes for a table are told, with how many it takes."""
        session = self.session(13)
        session.run()
        self.assertIn("a table takes 32 minutes: give --minutes 33", self.said.getvalue())
        session.tell()
        self.assertIn("fewer than 3 laps", self.said.getvalue())


class Tables(Case):
    """What laps say."""

    def test_table(self):
        """The base, itself again, and each kernel in relation to it, with intervals, by
        CPUs; rows of CPUs that there are not are marked."""
        found = [lap(cpus, base, base, 1.5 * base) for cpus in (1, 4) for base in (100, 200, 300)] + [lap(8)]
        text = laps.table(found, ["alloc", "none"], ["alpha", "alpha-tree"], [point(1), point(4, True), point(8)])
        self.assertRegex(text, r"(?m)^ +1 CPU +4 CPUs\*$")
        self.assertRegex(text, r"(?m)^  base, op/s +200 +200$")
        self.assertRegex(text, r"(?m)^  A/A +1.00 \[1.00, 1.00\]  1.00 \[1.00, 1.00\]$")
        self.assertRegex(text, r"(?m)^  alpha +1.50 \[1.50, 1.50\]")
        self.assertIn("in each of 3 laps or more", text)
        self.assertIn("fewer than 5 laps", text)
        self.assertIn("* More CPUs than the machine has", text)
        self.assertNotIn("8 CPUs", text)
        self.assertEqual(laps.table([lap(1)], ["alloc"], ["alpha"], [point(1)]), "")
        self.assertEqual(laps.head(point(4, core=True)), "4 CPUs+")
        self.assertIsNone(laps.compared(found, "alloc", "alpha", 8))


class Taken(KernelCase):
    """Files of other machines."""

    def setUp(self):
        super().setUp()
        for module in (machines, report):
            self.enterContext(mock.patch.object(module, "ROOT", self.root))
        machine = {"CPU model": "A CPU (R) 9", "CPUs": 64, "machine": "abcdef0123", "SMT": "on", "governor": "save"}
        self.found = {**BUNDLE, "format": 1, "machine": machine, "virtual": False, "host kernel": "6.1",
                      "begun": "2026-02-03 10:00", "points": [point(1), point(64, core=True)],
                      "laps": [lap(cpus) for cpus in (1, 64)] * 3}
        self.file = self.dir / "file.json"

    def add(self, **changed) -> Path:
        """Where the file with @changed is taken in."""
        return machines.add(self.base, put(self.file, json.dumps({**self.found, **changed})))

    def test_added(self):
        """A file lies under the name of its machine; more laps of it take its place, and
        other laps do not."""
        path = self.add()
        self.assertEqual(path, self.root / "results/v0/machines/a-cpu-r-9-64-cpus-abcdef-cafe.json")
        self.assertEqual(self.add(laps=self.found["laps"] * 2), path)
        with self.fails("other laps"):
            self.add()
        other = self.add(machine={**self.found["machine"], "machine": "beef"})
        self.assertEqual(machines.files(self.base), [path, other])
        self.assertEqual(machines.wrong_file(self.base), "")
        put(path, "{}")
        self.assertIn("no file of a bundle", machines.wrong_file(self.base))

    def test_refused(self):
        """What is no such file, of another base, or without values, is told."""
        wrong = lap(1)
        del wrong["values"]["alpha"]
        for changed, words in (({"base": "v1"}, "BASE=v1"), ({"format": 0}, "format 0"), ({"laps": []}, "no laps"),
                               ({"laps": [lap(2)]}, "lap 1"), ({"laps": [wrong]}, "lap 1"),
                               ({"laps": [lap(1, alpha=0)]}, "lap 1")):
            with self.fails(words):
                self.add(**changed)
        with self.fails("ADD="):
            machines.add(self.base, self.dir / "missing")
        with self.fails("no file of a bundle"):
            machines.add(self.base, put(self.file, "[]"))

    def test_page(self):
        """Each machine has a table for each topic, of the series as it is, by CPUs."""
        topic = self.topic("alpha")
        self.assertEqual(machines.page(self.base, self.kdir, [topic]), "")
        self.add()
        for name in ("apply", "chosen_topics"):
            self.enterContext(mock.patch.object(machines, name))
        with mock.patch.object(machines, "code_of", return_value="0123"):
            text = machines.page(self.base, self.kdir, [topic])
        self.assertIn("## A CPU (R) 9, 64 CPUs\n", text)
        self.assertIn("| alpha | | 1 CPU | 64 CPUs+ |\n|---|---|---|---|\n| alloc | base, op/s | 100 | 100 |\n", text)
        self.assertIn("|  | alpha | 1.50 [1.50, 1.50] | 1.50 [1.50, 1.50] |", text)
        self.assertIn("|  | alpha-tree | 0.50", text)
        self.assertIn("\n\\+ Two CPUs share a core", text)
        with mock.patch.object(machines, "code_of", return_value="89ab"):
            self.assertIn("earlier state", machines.page(self.base, self.kdir, [topic]))
            self.assertNotIn("unixbench", text)
            with mock.patch.object(Topic, "earlier", return_value={"0123": "A comment changed."}):
                known = machines.page(self.base, self.kdir, [topic])
        self.assertIn("\nalpha: A comment changed.\n", known)
        self.assertEqual(known.replace("\nalpha: A comment changed.\n", ""), text)

    def test_all_series(self):
        """The kernel of all series has a table of its own, of all series as they are."""
        topic = self.topic("alpha")
        own = {**KERNELS[1], "name": "all-series", "topic": ALL.name, "code": "all", "jobs": ["pipe"]}
        values = {"values": {name: {"64 KiB": value} for name, value in
                             ((laps.BASE, 100), (stats.AGAIN, 100), ("all-series", 125))}}
        self.add(kernels=[KERNELS[0], own], laps=[{"cpus": cpus, **values} for cpus in (1, 64)] * 3)
        self.enterContext(mock.patch.object(machines, "apply", lambda _repo, _base, applied: applied))
        self.enterContext(mock.patch.object(machines, "chosen_topics", lambda _names, _base: [topic, topic]))
        for now, words in (("all", "| unixbench | | 1 CPU | 64 CPUs+ |\n|---|---|---|---|\n| 64 KiB | base, op/s | "),
                           ("other", "\nunixbench: of an earlier state of the series.\n")):
            with mock.patch.object(machines, "code_of", lambda _, applied, code=now: code if applied[1:] else ""):
                self.assertIn(words, machines.page(self.base, self.kdir, [topic]))

    def test_report(self):
        """'make report ADD=' takes the file in, and the report leads to the page."""
        self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"))
        self.imported()
        put(self.root / "patches/alpha/v0/0000-cover-letter.patch", "")
        put(self.file, json.dumps(self.found))
        with mock.patch.object(report, "tool", return_value=Path(report.sys.prefix) / "bin/python"), \
                mock.patch.object(report, "need"), mock.patch.object(report.plot, "plot"), \
                mock.patch.object(report.sys, "argv", ["report", "--base", "v0", "--add", str(self.file)]):
            report.main()
        self.assertIn("machines.md", (self.root / "results/v0/report.md").read_text())
        self.assertIn("64 CPUs", (self.root / "results/v0/machines.md").read_text())


class Archive(KernelCase):
    """bundle.py."""

    def test_jobs(self):
        """Each row of a job is a line of it that the guest's first program knows; of
        pipes bytes are counted."""
        for job, lines in bundle.JOBS.items():
            self.assertIn(job, bundle.JOB_OF.values())
            for number, row in enumerate(lines):
                self.assertIn(row[1].split()[0], ("ext4", "files", "bench", "run", "copies"))
                self.assertEqual([one["line"] for one in bundle.job_rows(job) if one["row"] == row[0]],
                                 [number] if row[0] else [])
        names = [one["row"] for job in bundle.JOBS for one in bundle.job_rows(job)]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual([one.get("bytes") for one in bundle.job_rows("pipe")], [64, 65536, 65536])
        self.assertFalse(any("bytes" in one for one in bundle.job_rows("pid")))

    def test_kernels(self):
        """The base of several topics is there once, with all jobs; of one topic alone, what
        it is compared with is there, too."""
        one, two = self.topic("pid"), self.topic("pageguard", more="\n").__class__(
            "pageguard", "", "filemap", replaces="filemap")

        def record(_name: str, side: SimpleNamespace, _image: object) -> dict:
            return {"side": "x", "code": side.revision}

        def sides(_repo: Path, _base: object, topic: object) -> dict:
            return {name: SimpleNamespace(repo=None, base=self.base,
                                          revision="base" if name == "baseline" else f"{topic.name} {name}")
                    for name in ("baseline", "patched", "tree" if topic.name == "pid" else "filemap")}

        def all_sides(_base: object, _repo: Path) -> dict:
            return {name: SimpleNamespace(repo=None, base=self.base, revision=revision)
                    for name, revision in (("baseline", "base"), ("patched", "all"))}

        with mock.patch.object(bundle, "revisions", sides), mock.patch.object(bundle, "record", record), \
                mock.patch.object(bundle.unixbench, "sides", all_sides), \
                mock.patch.object(bundle, "timing", lambda _topic, compared: compared), \
                mock.patch.object(bundle, "kernel", lambda *words: words[2]), \
                mock.patch.object(bundle, "code_of", lambda _repo, revision: f"timed {revision}"):
            both, alone, other, everything = (bundle.kernels(self.base, self.kdir, chosen)
                                              for chosen in ([one, two], [one], [two], [one, ALL]))
        self.assertEqual([(known["name"], known["topic"], known["jobs"]) for known, _ in both], [
            (laps.BASE, "pid", ["pid", "read"]), ("pid", "pid", ["pid"]), ("pageguard", "pageguard", ["read"])])
        self.assertEqual([known["name"] for known, _ in alone], [laps.BASE, "pid", "pid-tree"])
        self.assertEqual([(known["name"], known["topic"], known["jobs"]) for known, _ in everything], [
            (laps.BASE, "pid", ["pid", "unixbench"]), ("pid", "pid", ["pid"]), ("pid-tree", "pid", ["pid"]),
            (bundle.ALL_SERIES, "unixbench", ["unixbench"])])
        self.assertEqual([known["name"] for known, _ in other], [laps.BASE, "pageguard", "filemap"])

    def test_unixbench(self):
        """The sources of its programs are those of the checkout; a directory that is none
        is refused with what it has to have."""
        self.assertEqual({line.split()[2] for _, line in bundle.JOBS["unixbench"]}, set(bundle.unixbench.NAMES))
        for name in (*bundle.unixbench.NAMES, *bundle.unixbench.INCLUDED, "other"):
            put(self.dir / f"UnixBench/src/{name}.c", name)
        bundle.unixbench_sources(self.dir, self.dir / "copied")
        self.assertEqual({path.stem for path in (self.dir / "copied").iterdir()},
                         {*bundle.unixbench.NAMES, *bundle.unixbench.INCLUDED})
        self.assertEqual((bundle.minutes(self.dir), bundle.minutes(None)), (20, 10))
        with mock.patch.dict(bundle.os.environ, UNIXBENCH=str(self.dir / "none")), \
                mock.patch.object(bundle, "arguments", lambda *_, **__: SimpleNamespace(
                    add_argument=lambda *_, **__: None, parse_args=lambda: SimpleNamespace(base=self.base))), \
                self.fails("no checkout of UnixBench"):
            bundle.main()

    def test_packed(self):
        """An archive is the same on each machine, and is not left if it is too large."""
        top = self.dir / "hotpaths-v0"
        put(top / "run", "#!/bin/sh\n", 0o700)
        put(top / "lib/x.py", "x\n", 0o600)
        archive = self.dir / "out/a.tar.xz"
        bundle.pack(top, archive)
        with tarfile.open(archive) as packed:
            self.assertEqual([(one.name, oct(one.mode), one.uid, one.mtime) for one in packed if one.isfile()],
                             [("hotpaths-v0/lib/x.py", "0o644", 0, bundle.LONG_AGO),
                              ("hotpaths-v0/run", "0o755", 0, bundle.LONG_AGO)])
        with mock.patch.object(bundle, "MOST_BYTES", 1), self.fails("TOPIC="):
            bundle.pack(top, self.dir / "out/b.tar.xz")
        self.assertEqual([path.name for path in (self.dir / "out").iterdir()], ["a.tar.xz"])

    def test_init(self):
        """The guest's first program compiles without a warning, and says what it lacks."""
        done = subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", self.dir / "init",
                               SCRIPTS / "measure/bundle/init.c"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
