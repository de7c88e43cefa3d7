# SPDX-License-Identifier: GPL-2.0
"""Other people's suites: how they are had, what their guests leave, how the two
sides are compared; what is built are small programs, or fakes, and nothing is booted."""

import contextlib
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest import mock

from support import Case, KernelCase, git, put

# isort: split
from core.ktap import FAILED, PASSED, SKIPPED, Result
from core.process import Failure
from guests import watch
from measure.unixbench import NAMES
from prove import suites
from prove.suite import Absent, Had, Program, Suite, Where, checkout
from reports import suites_table as table
from prove.suite import cases, debian, fsx, jobs, kselftests, ltp, unixbench
from measure.unixbench import ALL
from reports import runs
from source.programs import built_suite


class Having(Case):
    """How suites are had."""

    def where(self, **checkouts: Path) -> Where:
        """A place with @checkouts."""
        return Where(mock.Mock(uml=True, tag="v0"), self.dir, "HEAD", checkouts)

    def test_checkout(self):
        """Without a checkout a suite is absent; with a wrong one that is an error,
        since the user meant to run it."""
        for module, name in ((cases, "CASES"), (ltp, "LTP"), (fsx, "XFSTESTS"), (unixbench, "UNIXBENCH")):
            with self.subTest(name=name):
                with self.assertRaises(Absent) as raised:
                    module.get(self.where())
                self.assertIn(f"{name}=dir", str(raised.exception))
                with self.assertRaises(Failure) as raised:
                    module.get(self.where(**{name: self.dir}))
                self.assertNotIsInstance(raised.exception, Absent)
        put(self.dir / "sign", "")
        self.assertEqual(checkout(self.where(X=self.dir), "X", "x", "sign"), self.dir)

    def test_cases(self):
        """Each C file of the directory is a program, which has a status for what it cannot do."""
        put(self.dir / "src/two.h", "")
        for name, status in (("01-good", 0), ("02-lacks", 4)):
            put(self.dir / f"src/{name}.c", f'#include "two.h"\nint main(void) {{ return {status}; }}\n')
        had = cases.get(self.where(CASES=self.dir / "src"))
        self.assertEqual([(one.name, one.command) for one in had.programs],
                         [("01-good", "$SUITE/01-good"), ("02-lacks", "$SUITE/02-lacks")])
        self.assertEqual([subprocess.run([had.files / one.name], check=False).returncode for one in had.programs],
                         [0, 4])
        self.assertEqual([cases.SUITE.judge(status, "")[0] for status in (0, 1, 4, 124)],
                         [PASSED, FAILED, SKIPPED, FAILED])

    def test_package(self):
        """A package that is not there makes its suite absent."""
        self.fake("dpkg-query", 'case "$*" in *rt-tests*) echo 2.4-1;; *) echo none >&2; exit 1;; esac\n')
        self.assertEqual(suites.SUITES["hackbench"].get(self.where()).version, "rt-tests 2.4-1")
        with self.assertRaises(Absent):
            suites.SUITES["stress-ng"].get(self.where())

    def test_built(self):
        """What was built is there the next time; what broke off is not."""
        runs = []

        def build(to: Path) -> None:
            runs.append(to)
            put(to / "program", "")

        def broken(to: Path) -> None:
            put(to / "program", "")
            raise Failure("no compiler")

        with self.fails("no compiler"):
            built_suite("a", ["1"], broken)
        paths = [built_suite("a", [word], build) for word in ("1", "1", "2")]
        self.assertEqual((len(runs), paths[0] == paths[1], paths[0] == paths[2]), (2, True, False))
        self.assertTrue((paths[0] / "program").exists())

    def test_ltp_lists(self):
        """Tests come from LTP's lists with their arguments, each once, where their
        program was built; those that take too long are left out."""
        for name in ("pipe01", "pipeio", "mmap2", "fork14"):
            put(self.dir / "testcases/bin" / name, "")
        put(self.dir / "runtest/syscalls", "# a list\npipe01 pipe01\nother01 other01\nfork14 fork14\n"
            "pipeio_1 pipeio -T pipeio_1 -f x80\n")
        put(self.dir / "runtest/mm", "#DESCRIPTION:Memory\nmtest06_2 mmap2 -a -p # fast\npipe01 pipe01 -x\n")
        self.assertEqual([(one.name, one.command) for one in ltp.programs(self.dir)],
                         [("pipe01", "pipe01"), ("pipeio_1", "pipeio -T pipeio_1 -f x80"),
                          ("mtest06_2", "mmap2 -a -p")])
        put(self.dir / "runtest/syscalls", "")
        put(self.dir / "runtest/mm", "")
        with self.fails("no test", "suite-ltp.log"):
            ltp.programs(self.dir)

    def unixbench(self) -> Had:
        """UnixBench from a checkout, with a compiler that says what it is told."""
        put(self.dir / "src/UnixBench/src/fstime.c", "")
        git("init", "-q", cwd=self.dir / "src")
        git("add", ".", cwd=self.dir / "src")
        git("commit", "-q", "-m", "UnixBench", cwd=self.dir / "src")
        self.fake("gcc", 't=$*; echo gcc 1\nwhile [ $# != 0 ]; do [ "$1" != -o ] || echo "$t" > "$2"; shift; done\n')
        return unixbench.get(self.where(UNIXBENCH=self.dir / "src"))

    def test_unixbench(self):
        """Each program is compiled from the checkout, statically, and the checkout stays
        as it is."""
        had = self.unixbench()
        self.assertEqual({path.name for path in had.files.iterdir()}, set(NAMES))
        self.assertIn(f"-static -Wl,--defsym=sleep=sync -o {had.files}.part/pipe "
                      f"{self.dir}/src/UnixBench/src/pipe.c", (had.files / "pipe").read_text())
        self.assertEqual(git("status", "--porcelain", cwd=self.dir / "src"), "")
        self.assertRegex(had.version, r"^UnixBench [0-9a-f]{7} of 2026-02-03$")

    def test_names(self):
        """Every name is one of a file, and no two programs of a suite have one."""
        had = [fsx.programs(), jobs.get(self.where()).programs, self.unixbench().programs]
        self.fake("dpkg-query", "echo 1\n")
        had += [suite.get(self.where()).programs for suite in debian.SUITES]
        with mock.patch.object(kselftests, "kselftests", lambda *_: self.dir):
            put(self.dir / "kselftest-list.txt", "pidfd:pidfd_wait\npidfd:pidfd_test\n"
                "filesystems/epoll:epoll_wakeup_test\nmm:ksft_cow.sh\n")
            own = kselftests.get(self.where()).programs
        self.assertEqual([(one.name, one.command) for one in own[:3]], [
            ("pidfd:pidfd_wait", "cd $SUITE/pidfd && ./pidfd_wait"),
            ("filesystems-epoll:epoll_wakeup_test", "cd $SUITE/filesystems/epoll && ./epoll_wakeup_test"),
            ("mm:cow", "mountpoint -q /tmp/disk && cd /tmp/disk && $SUITE/mm/cow")])
        for programs in (*had, own):
            names = Counter(one.name for one in programs)
            self.assertEqual(set(names.values()), {1})
            self.assertFalse([name for name in names if "/" in name or " " in name])

    def test_short(self):
        """Every pattern of what is run before a commit, or in QEMU, names something."""
        self.fake("dpkg-query", "echo 1\n")
        for suite in (*debian.SUITES, jobs.SUITE):
            names = [one.name for one in suite.get(self.where()).programs]
            for pattern in (*suite.short, *suite.emulated):
                self.assertTrue([name for name in names if suites.fnmatch(name, pattern)], pattern)


class Judging(Case):
    """What exit statuses and outputs mean."""

    def test_ltp(self):
        """Bits of the status; how it failed is where."""
        said = "pipe.c:12: TFAIL: got 3\npipe.c:9: TPASS: fine\nold01    1  TBROK  :  a.c:3: no\n"
        for status, text, judged in ((0, said, (PASSED, "")), (32, "", (SKIPPED, "not for this kernel")),
                                     (1, said, (FAILED, "old01: TBROK, pipe.c:12: TFAIL")),
                                     (33, "", (FAILED, "exit status 33")), (124, "", (FAILED, "did not end in time")),
                                     (4, "a.c:1: TWARN: x\n", (FAILED, "a.c:1: TWARN")),
                                     (139, said, (FAILED, "exit status 139"))):
            with self.subTest(status=status):
                self.assertEqual(ltp.judge(status, text), judged)

    def test_kselftests(self):
        """Which of its tests failed, in any order."""
        self.assertEqual(kselftests.judge(1, "ok 1 a\nnot ok 3 c\n# not ok 2 b\n"), (FAILED, "b; c"))
        self.assertEqual([kselftests.judge(status, "not ok 1 a")[0] for status in (0, 4, 124)],
                         [PASSED, SKIPPED, FAILED])

    def test_stress(self):
        """What a class cannot do here is no failure."""
        self.assertEqual([debian.judge_stress(status, "")[0] for status in (0, 2, 3, 4, 124)],
                         [PASSED, FAILED, SKIPPED, SKIPPED, FAILED])


class Runner(Case):
    """run.sh, without a guest."""

    def run_programs(self, lines: str) -> list[list[str]]:
        """The fields of "ended" after @lines of programs."""
        text = suites.RUNNER.read_text().replace("/dev/kmsg", str(self.dir / "kmsg")).replace(
            "/proc/sys/kernel/printk_devkmsg", str(self.dir / "printk")).replace("/tmp/work", str(self.dir / "work"))
        subprocess.run(["bash", "-c", text + lines], cwd=self.dir, check=True, stdin=subprocess.DEVNULL)
        return [line.split("\t") for line in (self.dir / "ended").read_text().splitlines()]

    def test_statuses(self):
        """Status, output and times of each; one that does not end is ended; each has
        an empty directory."""
        ended = self.run_programs("program good 9 'echo said; touch left'\nprogram bad 9 'ls; exit 3'\n"
                                  "program long 1 'sleep 60'\n")
        self.assertEqual([row[:2] for row in ended], [["good", "0"], ["bad", "3"], ["long", "124"]])
        self.assertTrue(all(float(row[2]) <= float(row[3]) for row in ended))
        self.assertEqual([(self.dir / "out" / name).read_text() for name in ("good", "bad")], ["said\n", ""])
        self.assertEqual((self.dir / "began").read_text().split(), ["good", "bad", "long"])

    def test_leftovers(self):
        """What a program leaves running does not run beside the next."""
        ended = self.run_programs("program leaves 9 'sleep 60 & echo $! > ../pid'\nprogram next 9 true\n")
        self.assertLess(float(ended[0][3]) - float(ended[0][2]), 30)
        stat = Path("/proc", (self.dir / "pid").read_text().strip(), "stat")
        self.assertTrue(not stat.exists() or " Z " in stat.read_text())


class Guests(KernelCase):
    """What guests leave, and how sides are compared, with guests that are faked:
    a table says what each program does on each side, in each of its runs."""

    def setUp(self):
        super().setUp()
        self.table, self.boots, self.lockdep = {}, [], "1"
        self.enterContext(mock.patch.object(suites, "boot", self.boot))
        self.suite = Suite("s", "a suite", lambda _where: self.had, short=("a*",))
        self.had = Had("1.0", tuple(Program(name, f"run {name}") for name in ("a1", "a2", "b1")))
        self.images = {side: self.image(side) for side in suites.SIDES}

    def image(self, side: str) -> mock.Mock:
        """The kernel of @side."""
        path = self.dir / side
        put(path / "config", "CONFIG_X=y\n")
        return mock.Mock(config="um", path=path)

    def boot(self, image, _files, name, script, _label, **_options):
        """Do for each program of @script what the table has: an exit status, or
        "report", "die" or, at the guest's time limit, "late"; the last entry of a list
        is what it does from then on."""
        path = watch.run_directory(name)
        names = [line.split()[1] for line in script.splitlines() if line.startswith("program ")]
        self.boots.append((image.path.name, names))
        log, began, ended, error = "", "", "", None
        for number, one in enumerate(names):
            does = self.table.get((image.path.name, one.partition(".")[0]), [0])
            what = does.pop(0) if len(does) > 1 else does[0]
            log += f"[    1.0] hotpaths: {one} begins\n"
            began += one + "\n"
            error = {"die": watch.Unfinished, "late": watch.Late}.get(what)
            if error:
                break
            if what == "report":
                log += "[    1.1] WARNING: fs/pipe.c:1 at f+0x1/0x2\n"
            put(path / "out" / one, "")
            ended += f"{one}\t{0 if what == 'report' else what}\t{number}.0\t{number}.5\n"
        for file, text in (("console.log", log), ("began", began), ("ended", ended),
                           ("lockdep_stats", f" debug_locks: {self.lockdep}\n")):
            put(path / file, text)
        ran = watch.Ran(0, path)
        if error:
            raise error("the guest did not finish", ran)
        return ran

    def compared(self) -> suites.Compared:
        """What compare_suite() says of all programs."""
        return suites.compare_suite(self.suite, self.had, list(self.had.programs), self.images, suites.Options())

    def shown(self) -> dict[str, tuple[str, str]]:
        """The results of compared(), by what comes behind the suite's name."""
        return {one.name.split(": ", 2)[-1].strip(): (one.verdict, one.why)
                for one in suites.suite_results(self.compared())}

    def test_alike(self):
        """What does the same on both sides is no failure, failing or not, and both
        sides are remembered."""
        for side in suites.SIDES:
            self.table[side, "a2"] = [3]
        for _ in range(2):
            self.assertEqual(self.shown(), {"3 programs": (PASSED, "baseline 2 passed, 1 failed, 0 skipped; "
                                                           "patched 2 passed, 1 failed, 0 skipped")})
        self.assertEqual([side for side, _ in self.boots], ["patched", "baseline"])

    def test_red(self):
        """What only the patched kernel does is a failure, listed by name, and not
        remembered of it."""
        self.table["patched", "b1"] = [1]
        for turn in range(1, 3):
            shown = self.shown()
            self.assertEqual(shown["b1"], (FAILED, f"baseline: {suites.REPEATS + 1}x passed; "
                                           f"patched: {suites.REPEATS + 1}x failed: exit status 1"))
            self.assertEqual(shown["3 programs"][0], FAILED)
            whole = [side for side, names in self.boots if names == ["a1", "a2", "b1"]]
            self.assertEqual(whole, ["patched", "baseline"] + ["patched"] * (turn - 1))

    def test_unsteady(self):
        """What the baseline does as well now and then is none; it is listed."""
        self.table["patched", "b1"] = [1, 0]
        self.table["baseline", "b1"] = [0, 0, 1, 0]
        shown = self.shown()
        self.assertEqual(shown["b1"][0], PASSED)
        self.assertIn("baseline: 5x passed, 1x failed", shown["b1"][1])
        self.assertEqual(shown["3 programs"][0], PASSED)

    def test_unlucky_base(self):
        """A failure of the base that its repeats do not show is not remembered: a
        series that always fails so would pass for it."""
        self.table["baseline", "b1"] = [1, 0]
        self.assertEqual(self.shown()["b1"][0], PASSED)
        self.table["patched", "b1"] = [1]
        done = suites.compare_suite(self.suite, self.had, list(self.had.programs), self.images, suites.Options())
        self.assertEqual(done.seen["b1"]["baseline"].verdict, PASSED)

    def test_otherwise_failing(self):
        """A program that fails in another way on the patched kernel differs."""
        self.table["baseline", "a1"], self.table["patched", "a1"] = [1], [2]
        self.assertEqual(self.shown()["a1"][0], FAILED)

    def test_better(self):
        """What passes on the patched kernel alone is told, and no failure."""
        self.table["baseline", "a1"] = [1]
        self.assertEqual(self.shown()["a1"][0], PASSED)

    def test_report(self):
        """A report in the log fails the program that runs, whatever its status, and
        another guest goes on behind it: what ran after the report proves nothing."""
        self.table["baseline", "a1"] = self.table["patched", "a1"] = ["report"]
        done = self.compared()
        self.assertEqual(done.seen["a1"]["patched"],
                         Result("a1", FAILED, "the kernel's log: warning: WARNING: fs/pipe.c at f"))
        self.assertEqual(done.seen["b1"]["patched"].verdict, PASSED)
        self.assertEqual([names for _, names in self.boots][:2], [["a1", "a2", "b1"], ["a2", "b1"]])

    def test_death(self):
        """A guest that ends fails the program that runs, and goes on behind it."""
        self.table["patched", "a2"] = ["die"]
        shown = self.shown()
        self.assertEqual(shown["a2"][0], FAILED)
        self.assertIn(f"patched: {suites.REPEATS + 1}x failed: the guest ended", shown["a2"][1])

    def test_short_of(self):
        """What fails where the machine was short of processes is blamed on no kernel."""
        self.table["patched", "a2"] = ["die"]
        with mock.patch.object(suites, "short_of", lambda _log: "could not start a process"), \
                self.fails("could not start a process", "console.log"):
            self.shown()

    def test_late(self):
        """A guest that has not the time for all programs leaves the one that runs at its
        end to the next guest, where it fails if it is still running then.  One that has
        the time fails it."""
        def guests(patience: float, *does: str | int) -> tuple[str, list[list[str]]]:
            """What becomes of a2 if it @does that, and what each guest runs."""
            self.boots.clear()
            self.table["patched", "a2"] = list(does)
            found = suites.guests(self.images["patched"], self.suite, self.had, list(self.had.programs), "late",
                                  suites.Options(patience=patience))
            self.assertEqual(found["b1"].verdict, PASSED)
            return found["a2"].verdict, [names for _, names in self.boots]

        self.assertEqual(guests(100, "late", 0), (PASSED, [["a1", "a2", "b1"], ["a2", "b1"]]))
        self.assertEqual(guests(100, "late"), (FAILED, [["a1", "a2", "b1"], ["a2", "b1"], ["b1"]]))
        self.assertEqual(guests(7200, "late", 0), (FAILED, [["a1", "a2", "b1"], ["b1"]]))

    def test_nothing_ran(self):
        """A guest in which nothing ran, and lockdep that is off, break off."""
        with mock.patch.object(suites, "boot", side_effect=watch.Unfinished(
                "no guest", watch.Ran(None, put(self.dir / "none/console.log", "").parent))), self.fails("no guest"):
            self.compared()
        self.lockdep = "0"
        with self.fails("lockdep was off"):
            self.compared()

    def test_first_report(self):
        """The report belongs to the program that began last before it."""
        for lines, found in (
                (["hotpaths: a begins", "hotpaths: b begins", "BUG: KASAN: use", "hotpaths: c begins"], "b"),
                (["WARNING: at boot", "hotpaths: a begins"], ""), (["hotpaths: a begins", "fine"], "")):
            self.assertEqual(suites.first_report("\n".join(lines))[0], found)

    def test_same_report(self):
        """Reports are the same where only times, numbers and lines differ."""
        for one, other, same in (
                ("warning: [  3.1] WARNING: fs/pipe.c:12 at f+0x1/0x20, CPU#0: a/71",
                 "warning: [ 30.25] WARNING: fs/pipe.c:13 at f+0x4/0x22, CPU#1: b/9", True),
                ("warning: [  3.1] WARNING: fs/pipe.c:12 at f+0x1/0x20",
                 "warning: [  3.1] WARNING: fs/pipe.c:12 at g+0x1/0x2", False),
                ("hung task: [9.0] INFO: task cat:12 blocked for more than 120 seconds.",
                 "hung task: [8.0] INFO: task cat:345 blocked for more than 241 seconds.", True),
                ("kasan: [1.0] BUG: KASAN: slab-use-after-free in pipe_read+0x1/0x2",
                 "kasan: [1.0] BUG: KASAN: slab-use-after-free in pipe_write+0x1/0x2", False)):
            self.assertEqual(suites.steady(one) == suites.steady(other), same, suites.steady(one))

    def test_short(self):
        """The short list: one side, and any failure is one; what cannot be had is
        skipped, and nothing is run without the time."""
        def absent(_where):
            raise Absent("give it with X=dir")

        with mock.patch.object(suites, "SUITES", {
                "s": self.suite, "t": Suite("t", "absent", absent, short=("*",)), "u": Suite("u", "long", absent)}):
            def short(refusal=""):
                return {one.name: (one.verdict, one.why) for one in suites.short(
                    self.base, self.dir, "HEAD", self.images["patched"], suites.Options(), refusal)}

            self.assertEqual(short("no time")["suites: s"], (SKIPPED, "no time"))
            self.table["patched", "a2"] = [1, 0]
            self.assertEqual(short(), {"suites: s: a1": (PASSED, ""), "suites: s: a2": (FAILED, "exit status 1"),
                                       "suites: t": (SKIPPED, "give it with X=dir")})
            self.assertEqual(short()["suites: s: a2"], (PASSED, ""))
            self.assertEqual(short("no time")["suites: s: a2"], (PASSED, ""))
            self.assertEqual(len(self.boots), 2)

    def test_broken(self):
        """A suite that cannot be built or booted is a failure, and the others run."""
        def broken(_where):
            raise Failure("LTP failed")

        def absent(_where):
            raise Absent("give it with X=dir")

        table = {"t": Suite("t", "broken", broken, short=("*",)), "u": Suite("u", "absent", absent, short=("*",)),
                 "s": self.suite}
        with mock.patch.object(suites, "SUITES", table), \
                mock.patch.object(suites, "kernel", lambda *words: self.images[words[-1]]), \
                mock.patch.object(suites, "apply", lambda *_: "HEAD"), \
                mock.patch.object(suites, "chosen_topics", lambda *_: []):
            done = suites.compare_suites(self.base, self.dir, list(table), ["um"], suites.Options())
            found = [one for compared in done for one in suites.suite_results(compared)]
            self.assertEqual([(one.name, one.verdict) for one in found], [
                ("suites: t (um)", FAILED), ("suites: u (um)", SKIPPED), ("suites: s (um): 3 programs", PASSED)])
            self.lockdep = "0"
            short = suites.short(self.base, self.dir, "HEAD", self.images["patched"], suites.Options(), "")
            self.assertEqual([(one.name, one.verdict) for one in short], [
                ("suites: t", FAILED), ("suites: u", SKIPPED), ("suites: s: guest", FAILED)])

    def test_written(self):
        """suites.json has what was seen, and keeps what it had of other suites: as
        earlier where kernels or compiler are others now."""
        self.table["patched", "b1"] = [1]
        done = self.compared()
        other = replace(done, suite="hackbench", seen=None, why="no package")
        with mock.patch.object(suites, "conditions", lambda *_: {
                "base": "v0", "host CPU": "cpu", "compiler": self.compiler, "virtual CPUs": 2, "memory": "2G",
                "repeats": 5, "kernels": [{"side": "patched", "config": "um", "code": self.code}]}), \
                mock.patch.object(suites, "SUITES", {"s": self.suite, "hackbench": suites.SUITES["hackbench"]}):
            self.code, self.compiler = "1", "gcc"
            self.enterContext(mock.patch.object(runs, "ROOT", self.root))

            def write(*found) -> dict:
                """The newest suites.json after a run that @found that."""
                out = runs.new_directory(self.base)
                runs.write_run(out, {"suites.json": suites.content(self.base, self.dir, list(found))})
                return json.loads((out / "suites.json").read_text())

            write(done)
            write(other)
            # Not to be had this time: what it did before stays.
            content = write(replace(done, seen=None, why="no checkout"))
            self.assertEqual([row["suite"] for row in content["suites"]], ["s", "hackbench"])
            self.code = "2"
            later = write(other)
            write(done)
            self.compiler = "another"
            last = write(other)
            again = write(done)
        for one in (later, last):
            self.assertEqual([(row["suite"], row.get("earlier", False)) for row in one["suites"]],
                             [("s", True), ("hackbench", True)])
        self.assertNotIn("earlier", again["suites"][0])
        self.assertIn("| s * | 1.0 | um |", "\n".join(table.suites_section(last, True)))
        self.assertNotIn(" * ", "\n".join(table.suites_section(content, True)))
        self.assertIn("| s * | 1.0 | um |", "\n".join(table.suites_section(content, False)))
        row = content["suites"][0]
        self.assertEqual((row["programs"], row["baseline"], row["patched"]["failed"], list(row["differ"])),
                         (3, {PASSED: 3, FAILED: 0, SKIPPED: 0}, 1, ["b1"]))
        self.assertEqual(row["pass alike"], ["a1", "a2"])
        row["fail alike"] = {"c1": "a" * 200}
        text = "\n".join(table.suites_section(content, True))
        self.assertIn("- s (um), c1, fails alike: " + "a" * 96 + " ...\n", text)
        self.assertIn("| s | 1.0 | um | 3 | 3, 0, 0 | 2, 1, 0 | 1 | 0 |", text)
        self.assertIn("| hackbench | no package | um | not run |", text)
        self.assertIn("s (um), b1, differs: baseline 6x passed; patched 6x failed: exit status 1", text)

    def test_fresh(self):
        """Whether suites ran on the series as they are is told by their code."""
        self.assertIsNone(runs.newest_suites(self.base))
        put(self.root / "results/v0/2026-01-02/suites.json", json.dumps(
            {"environment": {"kernels": [{"side": "baseline", "code": "b"}, {"side": "patched", "code": "p"}]}}))
        with mock.patch.object(runs, "ROOT", self.root), mock.patch.object(runs, "apply", lambda *_: "rev"), \
                mock.patch.object(runs, "chosen_topics", lambda *_: []):
            where = runs.newest_suites(self.base)
            for code, fresh in (("p", True), ("b", False)):
                with mock.patch.object(runs, "code_of", lambda _repo, _revision, code=code: code):
                    self.assertEqual(runs.fresh_suites(self.base, self.dir, where), fresh)


class Command(KernelCase):
    """suites.main()."""

    def test_unknown(self):
        """A suite that is not known is named, with those that are."""
        with mock.patch.object(sys, "argv", ["suites.py", "--suite", "ltp,tpl"]), self.fails("'tpl'", "hackbench"):
            suites.main()

    def test_time(self):
        """The time of unixbench is taken where its programs passed under User-Mode Linux;
        where that breaks off, the run fails and has what suites did."""
        def main(timed: mock.Mock, config: str = "um", verdict: str = PASSED) -> tuple[int, set[str]]:
            """The status of a run in which the only program had @verdict, and its files."""
            one = suites.Compared("unixbench", config, "1", {"pipe": {
                "baseline": Result("pipe", PASSED), "patched": Result("pipe", verdict)}}, {})
            out = self.dir / f"out{len(list(self.dir.glob('out*')))}"
            with contextlib.ExitStack() as stack:
                for name in ("need", "room_for_builds", "write_report", "repository", "content"):
                    stack.enter_context(mock.patch.object(suites, name, return_value={}))
                for module, name, value in ((suites, "compare_suites", lambda *_: [one]), (suites, "timed", timed),
                                            (unixbench, "SUITE", Suite("unixbench", "", lambda _where: Had(
                                                "1", (), self.dir)))):
                    stack.enter_context(mock.patch.object(module, name, value))
                stack.enter_context(mock.patch.object(sys, "argv", ["suites.py", "--boots", "7", "--out", str(out)]))
                status = suites.main()
            return status, {path.name for path in out.iterdir()}

        timed, store = mock.Mock(return_value={"rounds": []}), suites.unfinished(self.base, ALL, "boots")
        put(store, "{}")
        for config, verdict in (("check", PASSED), ("um", FAILED)):
            self.assertEqual(main(timed, config, verdict), (0, {"suites.json"}))
        timed.assert_not_called()
        self.assertEqual(main(mock.Mock(side_effect=Failure("a boot died"))), (1, {"suites.json"}))
        self.assertIn("a boot died", self.said.getvalue())
        self.assertTrue(store.exists())
        self.assertEqual(main(timed), (0, {"suites.json", "unixbench.json"}))
        self.assertEqual(timed.call_args[0][2:], (self.dir, 7))
        self.assertFalse(store.exists())
