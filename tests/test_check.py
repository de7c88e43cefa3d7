# SPDX-License-Identifier: GPL-2.0
"""What make check does for which base; nothing is built or booted."""

import re
import sys
from pathlib import Path
from unittest import mock

from support import KernelCase, put

# isort: split
from core import model
from core import process
from core import steps
from core.ktap import FAILED, PASSED, SKIPPED, Result
from guests import watch
from prove import check
from prove import suites
from reports.runs import Figures
from source import build
from source import tree

MEASURED = check.measured


class Check(KernelCase):
    """check.main() with steps that say that they were asked."""

    def setUp(self):
        super().setUp()
        self.other = model.find_base("v1")
        self.asked, self.guests = [], PASSED
        for name in ("alpha", "beta"):
            self.topic(name, more=f'tests.um = ["{name}:one"]\n[base."v1"]\n'
                                  f'tests.kernel = ["of {name}"]\n')

        def step(name):
            def asked(*args, **_more):
                base = [arg.name for arg in args if isinstance(arg, model.Base)] or ["all"]
                self.asked.append(f"{base[0]}: {name}")
                return [Result(name, PASSED)]
            return asked

        def kselftest_guest(base, _repo, revision, config, chosen, _label, _what, only=(), neighbours=False,
                            tools=False, before=""):
            targets = [one.name for one in chosen] + [name for one in chosen for name in one.neighbours if neighbours]
            words = [f"{before}{config}", "+".join(targets), *only, *(["tools"] if tools else []), revision]
            self.asked.append(f"{base.name}: {', '.join(words)}")
            return [Result(f"{before}kselftests {config}: a", self.guests)]

        for module, name, fake in (
                (check, "tooling", lambda: step("tests")()[0]), (check.lint, "scripts", step("scripts")),
                (check.lint, "lint", step("lint")), (check.lint, "quick", step("text")),
                (check.configs, "compare_series", step("configs")), (check.litmus, "run_litmus", step("litmus")),
                (check, "measured", step("measured")), (check, "quick_suites", step("suites")),
                (check, "all_suites", step("all suites")), (check, "packages", step("package")),
                (check, "room_for_builds", lambda _what: None),
                (check, "repository", lambda base, kdir=None: base.name), (check, "kselftest_guest", kselftest_guest),
                (check, "apply", lambda _repo, base, chosen: f"{base.name}+{len(chosen)}")):
            self.enterContext(mock.patch.object(module, name, fake))

    def kept(self, name: str, base: model.Base) -> None:
        """Let the topic @name have a series for @base."""
        put(self.root / "patches" / name / base.name / "0001-x.patch", "")

    def check(self, *words: str) -> tuple[int, list[str]]:
        """The exit status, and the last lines that are printed."""
        self.asked.clear()
        self.said.truncate(0)
        self.said.seek(0)
        with mock.patch.object(sys, "argv", ["check.py", *words]):
            return check.main(), self.said.getvalue().splitlines()

    def test_quick(self):
        """Before a commit: texts, the tests that topics name, in guests of both
        kinds where they name any, touched objects; of other bases, that their
        series apply."""
        for base in (self.base, self.other):
            self.kept("alpha", base)
        self.kept("beta", self.other)
        status, lines = self.check()
        self.assertEqual((status, self.asked), (0, ["all: tests", "all: scripts", "v0: text", "v0: measured",
                                                    "v0: um, alpha, alpha:one, v0+1", "v0: suites",
                                                    "v0: configs"]))
        text = "\n".join(lines)
        for words in ("ok - alpha: git am\n", "ok - v1: alpha: git am\n", "ok - v1: beta: git am\n",
                      "ok - v1: alpha+beta: git am\n", "\n11 passed, 0 failed, 0 skipped"):
            self.assertIn(words, text)

    def test_beside(self):
        """A patch beside a series has to apply to it, or to the base if it is measured
        instead of the series, and one that takes the time with what takes it."""
        self.kept("alpha", self.base)
        for name in ("knockout", "rival", "time"):
            put(self.root / f"patches/alpha/variants/v0/{name}.patch", "")
        path = self.root / "patches/alpha/series.toml"
        put(path, 'compare = [{ name = "rival", on = "base" }]\n' + path.read_text())
        variant = mock.Mock(side_effect=lambda _repo, _base, _topic, name, instead: stop(name) if instead else "")

        def stop(name: str) -> None:
            raise process.Failure(f"{name}.patch does not apply")

        with (mock.patch.object(tree, "ROOT", self.root), mock.patch.object(check, "variant", variant),
              mock.patch.object(check, "with_benchmark") as timed):
            status, lines = self.check()
        self.assertEqual((status, timed.call_count), (1, 1))
        for words in ("ok - alpha: variants/v0/knockout.patch applies", "ok - alpha: variants/v0/time.patch applies",
                      "not ok - alpha: variants/v0/rival.patch applies # rival.patch does not apply"):
            self.assertIn(words, lines)

    def test_other_base(self):
        """A base that is named is checked as the reference is; where it has no
        User-Mode Linux, all runs in QEMU."""
        for base in (self.base, self.other):
            self.kept("alpha", base)
        path = self.root / "patches/alpha/series.toml"
        text = path.read_text().replace('[base."v1"]\n', '[base."v1"]\ntests.um = ["x:y"]\n')
        put(path, 'tests.qemu = ["alpha:two"]\n' + text)
        self.assertEqual(self.check("--base", "v1")[0], 0)
        self.assertEqual(self.asked[2:], ["v1: text", "v1: measured",
                                          "v1: check, alpha+of alpha, alpha:two, x:y, v1+1", "v1: suites",
                                          "v1: configs"])

    def test_full(self):
        """All of that, and then everything on every base, with the neighbours
        that the topics have there."""
        for base in (self.base, self.other):
            self.kept("alpha", base)
        self.kept("beta", self.other)
        path = self.root / "patches/alpha/series.toml"
        put(path, path.read_text().replace('[base."v0"]\n', '[base."v0"]\ntests.qemu = ["alpha:two"]\n'))
        self.assertEqual(self.check("--full")[0], 0)
        self.assertEqual(self.asked[8:], [
            "v0: trace, alpha, tools, v0+1", "v0: debug, alpha, v0+1", "v0: lint", "v0: litmus", "v0: configs",
            *(f"v0: {config}, alpha, alpha:two, v0+1" for config in ("kcsan", "rt", "up")),
            "v0: package", "v0: all suites", "v1: v1: trace, alpha+beta+of alpha+of beta, tools, v1+2",
            "v1: v1: debug, alpha+beta, v1+2", "v1: lint", "v1: litmus", "v1: litmus", "v1: configs",
            "v1: package"])

    def test_replaced(self):
        """A topic that another replaces is applied by itself, and its texts are
        looked at; everything else is done by itself, too, where everything is
        done."""
        for name in ("alpha", "beta"):
            self.kept(name, self.base)
        path = self.root / "patches/beta/series.toml"
        put(path, 'replaces = "alpha"\n' + path.read_text())
        status, lines = self.check()
        self.assertEqual((status, self.asked[2:]), (0, ["v0: text", "v0: measured", "v0: um, beta, beta:one, v0+1",
                                                        "v0: suites", "v0: configs"]))
        self.assertIn("ok - beta: git am", lines)
        self.assertNotIn("ok - alpha+beta: git am", lines)
        self.assertEqual(self.check("--full")[0], 0)
        self.assertEqual(self.asked[7:], [
            "v0: trace, beta, tools, v0+1", "v0: debug, beta, v0+1", "v0: lint", "v0: litmus", "v0: configs",
            "v0: package", "v0: all suites",
            "v0: alpha alone: um, alpha, alpha:one, v0+1", "v0: alpha alone: trace, alpha, tools, v0+1",
            "v0: alpha alone: debug, alpha, v0+1", "v0: lint", "v0: litmus", "v0: configs"])

    def test_red_unless_proved(self):
        """Without a test that passed in a guest, all else may pass: the run
        fails."""
        self.kept("alpha", self.base)
        self.guests = SKIPPED
        status, lines = self.check()
        self.assertEqual(status, 1)
        self.assertTrue([line for line in lines if line.startswith("not ok - a guest # no test passed")])
        self.assertEqual(lines[-1], "7 passed, 1 failed, 1 skipped")

    def test_own_tree(self):
        """A base that is somebody's own tree is left out, with what checks it."""
        for base in (self.base, self.other):
            self.kept("alpha", base)
        table = self.root / "bases.toml"
        put(table, re.sub("(?m)^url .*\n", "", table.read_text()))
        status, lines = self.check()
        self.assertEqual(status, 0)
        self.assertTrue([line for line in lines if "make check BASE=v1 KDIR=..." in line])

    def test_nothing_there(self):
        """A base without series is refused before anything is done."""
        self.kept("alpha", self.base)
        with self.fails("no topic", "v1"):
            self.check("--base", "v1")
        self.assertEqual(self.asked, [])

    def test_series_do_not_stack(self):
        """Series that do not go together are one failure, after which no guest
        is booted with them."""
        for name in ("alpha", "beta"):
            self.kept(name, self.base)

        def apply(_repo, base, chosen):
            if len(chosen) > 1:
                raise process.Failure("the hunk does not match")
            return base.name

        with mock.patch.object(check, "apply", apply):
            status, lines = self.check()
        self.assertEqual((status, self.asked), (1, ["all: tests", "all: scripts"]))
        self.assertIn("not ok - alpha+beta: git am # the hunk does not match", lines)

    def test_measured(self):
        """Figures and suites of another source than the series has are told, and fail
        nothing; a README without the figures that there are does."""
        one = self.topic("gamma")
        found = {}
        for module, name, fake in ((check, "newest_suites", lambda *_: found["where"]),
                                   (check, "fresh_suites", lambda *_: found["fresh"]), (check, "ROOT", self.root),
                                   (check, "read_json", lambda _path: {"suites": found["suites"]}),
                                   (check.figures, "out_of_date", lambda *_: found["wrong"]),
                                   (check.figures, "load", lambda *_: {"gamma": (one, Figures(
                                       [{"metric": "m", "condition": "c"}] * bool(found["where"]), [found["where"]],
                                       found["fresh"]))})):
            self.enterContext(mock.patch.object(module, name, fake))
        readme = [(self.root / "README.md", "text")]
        now = {"suite": "ltp", "config": "um"}
        before = now | {"earlier": True}
        for where, fresh, ran, wrong, verdicts in (
                    (None, False, now, [], [SKIPPED, SKIPPED, PASSED]),
                    (Path("2026-02-03"), False, now, [], [SKIPPED, SKIPPED, PASSED]),
                    (Path("2026-02-03"), True, now, [], [PASSED, PASSED, PASSED, PASSED]),
                    (Path("2026-02-03"), True, before, [], [PASSED, PASSED, SKIPPED, PASSED]),
                    (Path("2026-02-03"), True, now, readme, [PASSED, PASSED, PASSED, FAILED])):
            with self.subTest(where=where, fresh=fresh, ran=ran, wrong=wrong):
                found.update(where=where, fresh=fresh, suites=[ran], wrong=wrong)
                self.assertEqual([row.verdict for row in MEASURED(self.base, self.dir)], verdicts)

    def test_minutes(self):
        """A limit is a number of minutes, one or more."""
        self.kept("alpha", self.base)
        for text in ("0", "-1", "many"):
            with self.assertRaises(SystemExit), mock.patch("sys.stderr"):
                self.check("--minutes", text)

    def test_slowest(self):
        """The slowest tests are listed in the end, the longest first."""
        results = [Result(f"t{number}", PASSED, "", float(number)) for number in range(20)]
        self.assertEqual(check.slowest(results).splitlines()[::9], ["     19 s  t19", "     10 s  t10"])
        self.assertEqual(check.slowest([Result("a", PASSED)]), "")


class Budget(KernelCase):
    """What is done where there are no more than some minutes."""

    def setUp(self):
        super().setUp()
        self.now, self.has, self.built = 600.0, set(), []
        for module, name, fake in (
                (steps.time, "monotonic", lambda: self.now),
                (check, "cached", lambda _repo, _on, _revision, config: config in self.has),
                (check, "build_guest", self.prepare),
                (check, "guest_results", lambda _image, _tests, name, *_, **_more: [Result(name, PASSED)])):
            self.enterContext(mock.patch.object(module, name, fake))

    def prepare(self, _repo, _base, _revision, config, _chosen, _label, _neighbours) -> tuple[None, Path]:
        """A kernel and its tests are built."""
        self.built.append(config)
        return None, self.dir

    def guest(self, budget: steps.Budget, only: tuple[str, ...] = ()) -> Result:
        """The result of a debug guest."""
        (result,) = check.kselftest_guest(self.base, self.dir, "HEAD", "debug", [], "patched",
                                          check.Run("tcg", False, budget), only)
        return result

    def test_guest(self):
        """A guest that would not end in time is skipped, and its kernel not
        built; one whose kernel is there takes less."""
        needed = check.GUEST_MINUTES
        for has, minutes, spent, ran in (({"debug"}, needed, 0, True), ({"debug"}, needed + 1, 2, False),
                                         (set(), needed, 0, False), (set(), needed + check.BUILD_MINUTES, 0, True)):
            with self.subTest(has=has, minutes=minutes):
                self.has, self.now = has, 600.0
                self.built.clear()
                budget = steps.Budget(minutes)
                self.now += 60 * spent
                result = self.guest(budget)
                self.assertEqual((result.verdict, self.built), (PASSED, ["debug"]) if ran else (SKIPPED, []))
                if not ran:
                    self.assertIn(f"{minutes - spent} of {minutes} are left", result.why)

    def test_patience(self):
        """A guest that hangs is ended when the time is over."""
        budget = steps.Budget(20)
        self.now += 15 * 60
        self.assertEqual(budget.patience(check.GUEST_PATIENCE), 300)
        self.now += 3600
        self.assertEqual(budget.patience(check.GUEST_PATIENCE), 0)
        self.assertIn("0 of 20 are left", budget.refusal(1))

    def test_list(self):
        """A test that is named and is not there fails, so that none is left
        out in silence."""
        self.has = {"debug"}
        put(self.dir / "kselftest-list.txt", "alpha:one\nalpha:two\n")
        self.assertEqual(self.guest(steps.Budget(), ("alpha:two",)).verdict, PASSED)
        self.assertIn("no test alpha:three", self.guest(steps.Budget(), ("alpha:two", "alpha:three")).why)


class Suites(KernelCase):
    """Other people's suites, of which check decides when."""

    def setUp(self):
        super().setUp()
        self.asked, self.image = [], object()

        def short(_base, _repo, _revision, image, _options, refusal):
            self.asked.append((image is self.image, bool(refusal)))
            return [Result("suites: s: a", PASSED)]

        def both(_base, _repo, names, configs, _options):
            self.asked.append((names, configs))
            return [suites.Compared("s", "um", why="no package")]

        for module, name, fake in ((check, "apply", lambda *_: "HEAD"), (check, "cached", lambda *_: self.image),
                                   (suites, "short", short), (suites, "compare_suites", both)):
            self.enterContext(mock.patch.object(module, name, fake))

    def what(self, minutes: int | None = None) -> check.Run:
        """A run with so many minutes."""
        return check.Run("tcg", False, steps.Budget(minutes))

    def test_quick(self):
        """The short list takes the kernel that is there, and the time that is left;
        where there is none, or no User-Mode Linux, nothing is run."""
        self.assertEqual(len(list(check.quick_suites(self.base, self.dir, [], self.what()))), 1)
        list(check.quick_suites(self.base, self.dir, [], self.what(check.SUITE_MINUTES - 1)))
        self.assertEqual(self.asked, [(True, False), (True, True)])
        self.assertEqual(list(check.quick_suites(model.find_base("v1"), self.dir, [], self.what())), [])
        self.image = None
        self.assertEqual(list(check.quick_suites(self.base, self.dir, [], self.what())), [])

    def test_all(self):
        """All usual suites on both sides, in guests of both kinds, in time."""
        self.assertEqual([(one.name, one.verdict) for one in check.all_suites(self.base, self.dir, self.what(), "x: ")],
                         [("x: suites: s (um)", SKIPPED)])
        self.assertEqual(self.asked, [(list(suites.SUITES), ["um", "check"])])
        (refused,) = check.all_suites(self.base, self.dir, self.what(5), "")
        self.assertEqual((refused.verdict, len(self.asked)), (SKIPPED, 1))


class Guest(KernelCase):
    """check.guest_results(): what a guest leaves becomes results, which are kept."""

    def setUp(self):
        super().setUp()
        self.ktap, self.console, self.lockdep, self.boots = "1..1\nok 1 a\n", "all quiet\n", "", 0
        self.tests = put(self.dir / "tests/run_kselftest.sh", "").parent
        put(self.root / "scripts/trace/check.sh", "")
        self.enterContext(mock.patch.object(check, "ROOT", self.root))
        self.enterContext(mock.patch.object(check, "boot", self.boot))

    def boot(self, _image, _tests, name, _script, _label, **_options):
        """A User-Mode Linux guest."""
        self.boots += 1
        path = watch.run_directory(name)
        for name, text in (("ktap", self.ktap), ("console.log", self.console), ("lockdep_stats", self.lockdep)):
            put(path / name, text)
        return watch.Ran(0, path)

    def guest(self, script: str = "true", fresh: bool = False) -> list[tuple[str, str]]:
        """Name and verdict of each result."""
        found = check.guest_results(mock.Mock(config="um", path=Path("/kernel")), self.tests, "um", script,
                            check.Run("auto", fresh, steps.Budget()))
        return [(one.name, one.verdict) for one in found]

    def test_remembered(self):
        """What passed is booted again only with another script, or if asked."""
        good = [("um: a", PASSED), ("um: the kernel's log", PASSED)]
        self.assertEqual([self.guest(), self.guest()], [good, good])
        self.assertEqual(self.boots, 1)
        self.guest("another")
        self.guest(fresh=True)
        self.assertEqual(self.boots, 3)

    def test_emulator(self):
        """Guests of arm64 run again with another init of their own or QEMU."""
        for system in ("aarch64", "x86_64"):
            self.fake(f"qemu-system-{system}", f"echo {system} 7.2\n")
        self.assertEqual(check.emulator(mock.Mock(config="trace")), "x86_64 7.2")
        with mock.patch.object(check.arm64, "made_of", lambda: "0123"):
            self.assertEqual(check.emulator(mock.Mock(config="arm64")), "aarch64 7.2 0123")

    def test_failures(self):
        """A test that fails, a report in the log, and lockdep that has switched
        itself off are failures, and are not remembered."""
        for name, text, failed in (("ktap", "1..1\nnot ok 1 a\n", "um: a"), ("ktap", "", "um: KTAP"),
                                   ("console", "WARNING: at fs/pipe.c:1\n", "um: the kernel's log"),
                                   ("lockdep", " debug_locks:        0\n", "um: the kernel's log")):
            with self.subTest(name=name, text=text), mock.patch.object(self, name, text):
                for _ in range(2):
                    self.assertIn((failed, FAILED), self.guest())
        self.assertEqual(self.boots, 8)
        with mock.patch.object(self, "lockdep", " lock-classes: 9\n debug_locks:        1\n"):
            self.assertEqual(self.guest()[-1], ("um: the kernel's log", PASSED))


class Packages(KernelCase):
    """check.packages(): a package of make deb is built, and its kernel booted."""

    RELEASE = "9.1-hotpaths-check-0123456"

    def setUp(self):
        super().setUp()
        self.booted, self.console, self.boots = self.RELEASE, "all quiet\n", 0
        put(self.dir / "kernel/config", "CONFIG_A=y\n")
        image = build.Kernel(self.dir / "kernel", "v0", "c0", "trace", "h", "gcc")
        put(self.root / "scripts/send/deb.py", "")
        for module, name, fake in (
                (check, "ROOT", self.root), (check, "apply", lambda *_: "revision"),
                (check, "kernel", lambda *_: image), (check, "kernel_path", lambda *_: image.path),
                (check, "accelerator", lambda *_: "tcg"),
                (check.deb, "build_package", self.package),
                (check, "unpack", lambda _deb, members, where: put(where / members[0], "image")),
                (check.qemu, "boot", self.boot)):
            self.enterContext(mock.patch.object(module, name, fake))

    def package(self, _repo, _base, revision, config, label, out):
        """A package, of what was asked for."""
        self.assertEqual((revision, config, label), ("revision", "CONFIG_A=y\n", "check"))
        return put(out / f"linux-image-{self.RELEASE}_9.1-1.deb", "")

    def boot(self, image, run_dir, _script, **_options):
        """A guest of the package's image, which has nothing to do."""
        self.boots += 1
        self.assertEqual(image.image.read_text(), "image")
        put(run_dir / "console.log", self.console)
        put(run_dir / "output.log", self.booted + "\n")
        return watch.Ran(0, run_dir)

    def verdict(self) -> str:
        """That of the one result."""
        (found,) = check.packages(self.base, self.dir, [], check.Run("auto", False, steps.Budget()), "")
        return found.verdict

    def test_boots(self):
        """The release that boots is the package's; that is remembered."""
        self.assertEqual([self.verdict(), self.verdict(), self.boots], [PASSED, PASSED, 1])

    def test_failures(self):
        """Another kernel that boots, and a report in the log, are failures."""
        for name, text in (("booted", "9.1"), ("console", "WARNING: at fs/pipe.c:1\n")):
            with self.subTest(name=name), mock.patch.object(self, name, text):
                self.assertEqual(self.verdict(), FAILED)
