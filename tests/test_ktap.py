# SPDX-License-Identifier: GPL-2.0
"""Reading KTAP: what the kselftest runner prints becomes the right results."""

import unittest

import support  # noqa: F401

# isort: split
from core.ktap import FAILED, PASSED, SKIPPED, Result, count, parse

NESTED = """\
TAP version 13
1..3
# timeout set to 45
# selftests: pipe: pipe_test
# TAP version 13
# 1..3
# # Starting 3 tests from 1 test cases.
# #  RUN           global.order ...
# #            OK  global.order
# ok 1 global.order
# # pipe_test.c:12:memcg:Expected 0 (0) == err (5)
# not ok 2 global.memcg
# ok 3 global.notify # SKIP no watch queues
# # FAILED: 2 / 3 tests passed.
# # Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0
not ok 1 selftests: pipe: pipe_test # exit=1
# timeout set to 45
# selftests: pipe: bench.sh
# smoke
ok 2 selftests: pipe: bench.sh
# timeout set to 45
# selftests: pipe: root_test
ok 3 selftests: pipe: root_test # SKIP
"""


class Parse(unittest.TestCase):
    """ktap.parse()."""

    def test_runner_output(self):
        """Subtests count in place of their test, each under its name, and the
        test's own 'not ok' adds nothing when a subtest explains it."""
        self.assertEqual(parse(NESTED), [
            Result("pipe_test: global.order", PASSED),
            Result("pipe_test: global.memcg", FAILED),
            Result("pipe_test: global.notify", SKIPPED, "SKIP no watch queues"),
            Result("selftests: pipe: bench.sh", PASSED),
            Result("selftests: pipe: root_test", SKIPPED, "SKIP"),
        ])

    def test_skip_is_not_a_pass_nor_not_ok_a_skip(self):
        """A 'not ok' with SKIP behind it is still a failure; what was expected
        to fail counts as skipped."""
        self.assertEqual([one.verdict for one in parse(
            "1..3\nok 1 a # skip lower case\nnot ok 2 b # SKIP odd\nok 3 c # XFAIL known\n")],
            [SKIPPED, FAILED, SKIPPED])
        self.assertEqual(parse("ok 1 # XFAIL foo\n"), [Result("foo", SKIPPED, "XFAIL")])

    def test_skip_before_the_name(self):
        """kselftest.h says SKIP first, and then which test and why."""
        self.assertEqual(parse("1..1\nok 1 # SKIP tmpfs split: no large folios\n"),
                         [Result("tmpfs split: no large folios", SKIPPED, "SKIP")])

    def test_dash_before_the_name(self):
        """TAP's optional dash is not part of a name."""
        self.assertEqual(parse("ok 1 - a name - with dashes\n"), [Result("a name - with dashes", PASSED)])

    def test_test_failed_beyond_its_subtests(self):
        """All subtests passed, but the test exited with an error: that shows."""
        self.assertEqual(parse("1..1\n# 1..1\n# ok 1 sub\nnot ok 1 selftests: x: t # exit=139\n"), [
            Result("t: sub", PASSED), Result("selftests: x: t", FAILED, "exit=139")])

    def test_plan_of_subtests_not_kept(self):
        """A test that died after one of three subtests is a failure, even
        where the runner says ok."""
        found = parse("1..1\n# 1..3\n# ok 1 sub\nok 1 selftests: x: t\n")
        self.assertEqual([one.verdict for one in found], [PASSED, FAILED])
        self.assertIn("1 of 3", found[1].why)

    def test_plan_at_the_top_not_kept(self):
        """Fewer results than the runner planned is a failure."""
        found = parse("1..3\nok 1 a\nok 2 b\n")
        self.assertEqual([one.verdict for one in found], [PASSED, PASSED, FAILED])
        self.assertIn("2 of 3", found[2].why)

    def test_plan_for_each_collection(self):
        """Runners of 6.18 and before make one for each directory of tests; each is kept."""
        self.assertEqual({one.verdict for one in parse("1..1\nok 1 a\n1..2\nok 1 b\nok 2 c\n")}, {PASSED})
        for text in ("1..2\nok 1 a\n1..1\nok 1 b\n", "1..1\nok 1 a\n1..2\nok 1 b\n"):
            self.assertIn("1 of 2", parse(text)[-1].why)

    def test_surplus_and_repeated(self):
        """More results than were planned, and a number that comes twice, are
        failures, at every level."""
        for text, why in (("1..1\nok 1 a\nok 2 b\n", "2 of 1"), ("ok 1 a\nok 1 b\n", "result 1 came 2 times"),
                          ("1..1\n# 1..1\n# ok 1 a\n# ok 2 b\nok 1 s: x: t\n", "2 of 1"),
                          ("1..1\n# ok 3 a\n# ok 3 b\nok 1 s: x: t\n", "result 3 came 2 times")):
            found = parse(text)
            self.assertEqual([one.verdict for one in found], [PASSED, PASSED, FAILED], text)
            self.assertIn(why, found[-1].why)

    def test_times(self):
        """A stamp before a line says when it came; a result took the time since
        the one before, or since the plan."""
        found = parse("100.5 1..2\n103.5 ok 1 a\n104.0 # 1..1\n106.25 # ok 1 sub\n106.50 ok 2 s: x: t\n")
        self.assertEqual([(one.name, one.seconds) for one in found], [("a", 3.0), ("t: sub", 2.25)])
        self.assertEqual([one.seconds for one in parse("1..1\nok 1 a\n")], [0])

    def test_three_levels(self):
        """A plan counts the tests right below it, not the ones below those;
        all of the innermost count, under the names of both outer ones."""
        text = ("1..1\n# 1..2\n# # 1..3\n# # ok 1 a\n# # ok 2 b\n# # ok 3 c\n# ok 1 group\n# ok 2 other\n"
                "ok 1 selftests: x: t\n")
        self.assertEqual(parse(text), [Result("t: group: a", PASSED), Result("t: group: b", PASSED),
                                       Result("t: group: c", PASSED), Result("t: other", PASSED)])
        for line, why in (("# # ok 2 b\n", "2 of 3"), ("# ok 2 other\n", "1 of 2")):
            failed = [one.why for one in parse(text.replace(line, "")) if one.verdict == FAILED]
            self.assertEqual(failed, [why + " subtests ran"])

    def test_no_output(self):
        """Silence is a failure, and so is output without a result."""
        for text in ("", "TAP version 13\n1..0\n", "bash: run_kselftest.sh: not found\n"):
            self.assertEqual([one.verdict for one in parse(text)], [FAILED], text)

    def test_died_before_its_result(self):
        """Subtests whose test never got its own line are kept, and the end of
        the log is a failure."""
        found = parse("# 1..3\n# ok 1 sub\n# not ok 2 other\n")
        self.assertEqual([one.verdict for one in found], [PASSED, FAILED, FAILED])
        self.assertIn("before its result", found[2].why)

    def test_subtests_do_not_leak_into_the_next_test(self):
        """Each test gets its own subtests and plan."""
        found = parse("1..2\n# 1..2\n# ok 1 a\n# ok 2 b\nok 1 s: x: one\n# 1..1\n# ok 1 c\nok 2 s: x: two\n")
        self.assertEqual([one.name for one in found], ["one: a", "one: b", "two: c"])
        self.assertEqual({one.verdict for one in found}, {PASSED})


class Count(unittest.TestCase):
    """ktap.count()."""

    def test_exact_line(self):
        """The closing line, which CI reads."""
        self.assertEqual(count(parse(NESTED)), "2 passed, 1 failed, 2 skipped")
        self.assertEqual(count([]), "0 passed, 0 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main()
