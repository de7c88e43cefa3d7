# SPDX-License-Identifier: GPL-2.0
"""What make check does for which base; nothing is built or booted."""

import re
import sys
from unittest import mock

from support import KernelCase, put

# isort: split
import check
import project
from ktap import FAILED, PASSED, SKIPPED, Result


class Check(KernelCase):
    """check.main() with steps that say that they were asked."""

    def setUp(self):
        super().setUp()
        self.other = project.base("v1")
        self.asked, self.has = [], set()
        for name in ("alpha", "beta"):
            self.topic(name, more=f'[base."v1"]\nstatus = "complete"\nmerged = []\nneighbours = ["of {name}"]\n')

        def step(name):
            def asked(*args, **_more):
                on = [arg.name for arg in args if isinstance(arg, project.Base)] or ["all"]
                self.asked.append(f"{on[0]}: {name}")
                return [Result(name, PASSED)]
            return asked

        def kselftest_guest(on, _repo, revision, config, targets, _label, _accel, _budget, tools=False, before=""):
            words = [f"{before}{config}", "+".join(targets), *(["tools"] if tools else []), revision]
            self.asked.append(f"{on.name}: {', '.join(words)}")
            return [Result(f"{before}{config}", PASSED)]

        for module, name, fake in (
                (check, "tooling", step("tests")), (check.lint, "scripts", step("scripts")),
                (check.lint, "lint", step("lint")), (check.variants, "series", step("variants")),
                (check.herd, "series", step("litmus")),
                (check, "repository", lambda on, kdir=None: on.name), (check, "kselftest_guest", kselftest_guest),
                (check, "apply", lambda _repo, on, chosen: f"{on.name}+{len(chosen)}"),
                (check, "cached", lambda _repo, on, revision, config: (on.name, revision, config) in self.has)):
            self.enterContext(mock.patch.object(module, name, fake))

    def kept(self, name: str, on: project.Base) -> None:
        """Let the topic @name have a series for @on."""
        put(self.root / "patches" / name / on.name / "0001-x.patch", "")

    def check(self, *words: str) -> tuple[int, list[str]]:
        """The exit status, and the last lines that are printed."""
        self.asked.clear()
        self.said.truncate(0)
        self.said.seek(0)
        with mock.patch.object(sys, "argv", ["check.py", *words]):
            return check.main(), self.said.getvalue().splitlines()

    def test_reference(self):
        """Where only the reference base has series, all is about it."""
        self.kept("alpha", self.on)
        self.assertEqual(self.check()[0], 0)
        self.assertEqual(self.asked, ["all: tests", "all: scripts", "v0: lint", "v0: litmus",
                                      "v0: trace, alpha, tools, v0+1", "v0: debug, alpha, v0+1", "v0: variants"])

    def test_beside(self):
        """Another base's series are linted and applied, and what is left out
        is said; what is not about a base is done once."""
        for on in (self.on, self.other):
            self.kept("alpha", on)
        self.kept("beta", self.other)
        status, lines = self.check()
        self.assertEqual((status, self.asked[2:]),
                         (0, ["v0: lint", "v0: litmus", "v1: lint", "v0: trace, alpha, tools, v0+1",
                              "v0: debug, alpha, v0+1", "v0: variants"]))
        self.assertEqual([name.split(": ")[1] for name in self.asked].count("scripts"), 1)
        text = "\n".join(lines)
        for words in ("ok - v1: lint\n", "ok - v1: alpha+beta: git am\n", "skip - v1: kselftests trace # ",
                      "litmus tests", "make check BASE=v1", "\n9 passed, 0 failed, 1 skipped"):
            self.assertIn(words, text)

    def test_kernel_in_the_cache(self):
        """Where the kernel with all its series is there, it runs the tests, and
        those of neighbours that the topics have on that base."""
        self.kept("alpha", self.on)
        self.kept("alpha", self.other)
        self.kept("beta", self.other)
        self.has = {("v1", "v1+2", "trace")}
        status, lines = self.check()
        self.assertEqual((status, self.asked[-1]), (0, "v1: v1: trace, alpha+beta+of alpha+of beta, v1+2"))
        self.assertEqual(lines[-1], "10 passed, 0 failed, 0 skipped")

    def test_own_tree(self):
        """A base that is somebody's own tree is left out, with what checks it."""
        for on in (self.on, self.other):
            self.kept("alpha", on)
        table = self.root / "bases.toml"
        put(table, re.sub("(?m)^url .*\n", "", table.read_text()))
        status, lines = self.check()
        self.assertEqual((status, self.asked[-1]), (0, "v0: variants"))
        self.assertNotIn("v1: lint", self.asked)
        self.assertIn("skip - v1 # its source is your own tree: 'make check BASE=v1 KDIR=...' checks it", lines)

    def test_one_base(self):
        """A base that is named is checked as a whole, and no other one."""
        for on in (self.on, self.other):
            self.kept("alpha", on)
        self.assertEqual(self.check("--base", "v1")[0], 0)
        self.assertEqual(self.asked, ["all: tests", "all: scripts", "v1: lint", "v1: litmus",
                                      "v1: trace, alpha+of alpha, tools, v1+1", "v1: debug, alpha, v1+1",
                                      "v1: variants"])

    def test_nothing_there(self):
        """A base without series is refused before anything is done."""
        self.kept("alpha", self.on)
        with self.fails("no topic", "v1"):
            self.check("--base", "v1")
        self.assertEqual(self.asked, [])

    def test_failure(self):
        """What breaks off for one base fails, and the other is checked all
        the same; the exit status tells."""
        for on in (self.on, self.other):
            self.kept("alpha", on)
        with mock.patch.object(check, "repository", side_effect=project.Failure("no mirror")):
            status, lines = self.check()
        self.assertEqual(status, 1)
        self.assertEqual(self.asked, ["all: tests", "all: scripts"])
        for words in ("lint of v0", "lint of v1", "kernels of v0", "kernels of v1"):
            self.assertIn(f"not ok - {words} # no mirror", lines)
        self.assertEqual(lines[-1], "2 passed, 4 failed, 0 skipped")

    def test_series_do_not_stack(self):
        """Series of another base that do not go together are one failure."""
        for on in (self.on, self.other):
            self.kept("alpha", on)

        def apply(_repo, on, chosen):
            if on == self.other:
                raise project.Failure("the hunk does not match")
            return on.name

        with mock.patch.object(check, "apply", apply):
            status, lines = self.check()
        self.assertEqual(status, 1)
        self.assertIn("not ok - v1: alpha: git am # the hunk does not match", lines)


class Budget(KernelCase):
    """What is done where there are no more than some minutes."""

    def setUp(self):
        super().setUp()
        self.now, self.has = 600.0, set()
        self.built, self.refusals = [], []
        for module, name, fake in (
                (check.time, "monotonic", lambda: self.now),
                (check, "cached", lambda _repo, _on, _revision, config: config in self.has),
                (check, "kernel", lambda _repo, _on, _revision, config, _label: self.built.append(config)),
                (check, "kselftests", lambda *_: self.dir),
                (check, "guest", lambda _image, _tests, name, *_, **_more: [Result(name, PASSED)])):
            self.enterContext(mock.patch.object(module, name, fake))

    def guest(self, budget: check.Budget) -> Result:
        """The result of a debug guest."""
        (result,) = check.kselftest_guest(self.on, self.dir, "HEAD", "debug", ["alpha"], "patched", "tcg", budget)
        return result

    def variants(self, *_args, refusal: str, **_more) -> list[Result]:
        """What variants.series() gives."""
        self.refusals.append(refusal)
        return []

    def test_unlimited(self):
        """Who says nothing has all the time, and the cache is not asked."""
        budget = check.Budget()
        self.now += 1e6
        with mock.patch.object(check, "cached", side_effect=AssertionError):
            self.assertEqual(self.guest(budget), Result("kselftests debug", PASSED))
        self.assertEqual(budget.refusal(10 ** 6), "")

    def test_guest(self):
        """A guest that would not end in time is skipped, and its kernel not
        built; one whose kernel is there takes less."""
        needed = check.GUEST_MINUTES["debug"]
        for has, minutes, spent, ran in (({"debug"}, needed, 0, True), ({"debug"}, needed + 1, 2, False),
                                         (set(), needed, 0, False), (set(), needed + check.BUILD_MINUTES, 0, True)):
            with self.subTest(has=has, minutes=minutes):
                self.has, self.now = has, 600.0
                self.built.clear()
                budget = check.Budget(minutes)
                self.now += 60 * spent
                result = self.guest(budget)
                self.assertEqual((result.verdict, self.built), (PASSED, ["debug"]) if ran else (SKIPPED, []))
                if not ran:
                    self.assertIn(f"{minutes - spent} of {minutes} are left: 'make check'", result.why)

    def test_over(self):
        """Less than no time is none."""
        budget = check.Budget(5)
        self.now += 3600
        self.assertIn("0 of 5 are left", budget.refusal(1))

    def test_option(self):
        """--minutes says how many, for the other configurations, too."""
        self.topic("alpha")
        put(self.root / "patches/alpha/v0/0001-x.patch", "")
        for minutes, refused in (("5", True), ("5000", False)):
            self.refusals.clear()
            with mock.patch.object(sys, "argv", ["check.py", "--minutes", minutes]), \
                    mock.patch.object(check, "tooling", list), mock.patch.object(check.lint, "scripts", list), \
                    mock.patch.object(check.lint, "lint", lambda *_: []), \
                    mock.patch.object(check.herd, "series", lambda *_: []), \
                    mock.patch.object(check, "repository", lambda *_: self.dir), \
                    mock.patch.object(check, "apply", lambda *_: "HEAD"), \
                    mock.patch.object(check.variants, "series", self.variants):
                self.assertEqual(check.main(), 0)
            self.assertEqual([bool(one) for one in self.refusals], [refused])
            self.assertEqual(self.built, [] if refused else ["trace", "debug"])


class Told(KernelCase):
    """check.told()."""

    def test_results_stay(self):
        """What came before a Failure stays."""
        def some():
            yield Result("a", PASSED)
            yield Result("b", SKIPPED)
            raise project.Failure("why")

        self.assertEqual(list(check.told("the rest", some())),
                         [Result("a", PASSED), Result("b", SKIPPED), Result("the rest", FAILED, "why")])
