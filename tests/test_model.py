# SPDX-License-Identifier: GPL-2.0
"""The tables of bases and topics."""

import shutil
from dataclasses import replace

from support import MERGED, Case, KernelCase, put

# isort: split
from core import command
from core import model


class Tables(KernelCase):
    """The tables of bases and topics."""

    def test_unknown_base(self):
        """An unknown base is one sentence with the known ones."""
        with self.fails("'v5'", "v0, v1") as caught:
            model.find_base("v5")
        self.assertNotIn("\n", caught.message)

    def test_reference(self):
        """One base is the reference, which commands are about by default; none
        or two are a mistake."""
        self.assertEqual(model.reference(), self.base)
        self.assertEqual(command.arguments("").parse_args([]).base, self.base)
        table = self.root / "bases.toml"
        one = table.read_text()
        for text in (one.replace("reference = true\n", ""), one.replace("status", "reference = true\nstatus")
                     .replace("reference = true\nreference", "reference")):
            put(table, text)
            with self.fails("bases.toml", "'reference = true'"):
                model.reference()

    def test_keys(self):
        """A row of bases.toml that lacks a key, or has one too many, is named."""
        table = self.root / "bases.toml"
        one = table.read_text()
        for text, said in ((one.replace("status =", "state =", 1), "has no 'status'"),
                           (one.replace("status =", 'colour = "red"\nstatus =', 1), "has 'colour'")):
            put(table, text)
            with self.fails("bases.toml, base v0,", said):
                model.bases()

    def test_bases_no_table(self):
        """What is no TOML, or has another kind of value, is told in a sentence."""
        table = self.root / "bases.toml"
        good = table.read_text()
        for text, said in (("what is this\n", "cannot read"), ("base = 3\n", "no tables of bases"), ("", "no tables"),
                           (good.replace('tag = "v9.1.2"', "tag = 3"), "a 'tag' that is no string"),
                           (good.replace("reference = true", 'reference = "yes"'), "no true or false")):
            put(table, text)
            with self.subTest(said), self.fails("bases.toml", said):
                model.bases()

    def test_unknown_topic(self):
        """An unknown topic is one sentence with the known ones."""
        self.topic("alpha")
        self.topic("beta")
        with self.fails("'gamma'", "alpha, beta") as caught:
            model.find_topic("gamma")
        self.assertNotIn("\n", caught.message)

    def test_topic(self):
        """A topic is its series.toml; its patches come in order, without the
        cover letter and what is no patch."""
        one = self.topic("beta")
        self.assertEqual((one.name, one.kselftest), ("beta", "beta"))
        self.assertEqual(one.neighbours, ())
        directory = self.root / "patches/beta/v0"
        directory.mkdir()
        for name in ("0000-cover-letter.patch", "0002-b.patch", "0001-z.patch", "0010-a.patch", "notes.txt"):
            (directory / name).touch()
        self.assertEqual([path.name for path in one.patches(self.base)],
                         ["0001-z.patch", "0002-b.patch", "0010-a.patch"])
        self.assertEqual(one.cover(self.base), directory / "0000-cover-letter.patch")
        self.assertEqual(one.patches(model.find_base("v1")), [])

    def test_replaces(self):
        """A topic that replaces another takes its place among all series where both
        have one, and who names both is told."""
        one = self.topic("alpha")
        self.topic("beta")
        path = self.root / "patches/beta/series.toml"
        text = path.read_text()
        put(path, 'replaces = "alpha"\n' + text)
        put(self.root / "patches/beta/v0/0001-x.patch", "")
        two = model.find_topic("beta")
        self.assertEqual((model.chosen_topics(None, self.base), model.replaced(self.base)), ([two], []))
        put(self.root / "patches/alpha/v0/0001-x.patch", "")
        self.assertEqual((model.chosen_topics(None, self.base), model.replaced(self.base)), ([two], [one]))
        self.assertEqual(model.chosen_topics([one], self.base), [one])
        shutil.rmtree(self.root / "patches/beta/v0")
        self.assertEqual((model.chosen_topics(None, self.base), model.replaced(self.base)), ([one], []))
        with self.fails("'beta' replaces 'alpha'", "name one"):
            model.chosen_topics([one, two], self.base)
        for other in ("beta", "gamma"):
            put(path, f'replaces = "{other}"\n' + text)
            with self.subTest(other), self.fails("topic 'beta' replaces", "patches/ has alpha"):
                model.topics()

    def test_needs(self):
        """What a topic needs is below it where the base has patches of it; what needs
        something itself, or is no other topic, cannot be needed."""
        self.topic("alpha")
        self.topic("beta")
        path = self.root / "patches/beta/series.toml"
        text = path.read_text()
        put(path, 'needs = ["alpha"]\n' + text)
        self.assertEqual(model.find_topic("beta").below(self.base), [])
        put(self.root / "patches/alpha/v0/0001-x.patch", "")
        self.assertEqual(model.find_topic("beta").below(self.base), [model.find_topic("alpha")])
        for other in ("beta", "gamma"):
            put(path, f'needs = ["{other}"]\n' + text)
            with self.subTest(other), self.fails("topic 'beta' needs", "another topic"):
                model.topics()

    def test_fixes(self):
        """Fixes have no tests of their own, no cover letter, and nothing to measure."""
        one = replace(self.topic("alpha"), kselftest="")
        self.assertEqual((one.fixes, one.cover(self.base), one.programs), (True, None, ()))
        self.assertEqual(model.measurable([one, two := self.topic("beta")]), [two])

    def test_mistakes(self):
        """A mistake in a series.toml is one sentence with the file's name."""
        row = '[base."v1"]\n'
        for more, words in (
                ('[base."v7"]\n', ("'v7'", "v0, v1")),
                (row + 'merged = "v7.3"\n', ("base v1", "no list")),
                (row + 'merged = ["v7.3"]\n', ("base v1", "no list")),
                (row + 'merged = [{ what = "x", release = "7.0" }]\n', ("base v1", "no 'commit'")),
                (row + 'merged = [{ what = "x", commit = "" }]\n', ("base v1", "no 'release'")),
                (row + 'merged = [{ release = "7.0", commit = "" }]\n', ("base v1", "no 'what'")),
                (row + 'merged = [{ what = "x", release = "7.0", commit = "abc" }]\n', ("'abc'", "12")),
                (row + 'merged = [{ what = "x", release = "7.0", commit = "", by = "y" }]\n', ("'by'",)),
                (row + 'summary = ""\n', ("base v1", "'summary'", "compare")),
                (row + 'tests.guests = ["vax"]\n', ("'vax'", "arm64")),
                (row + 'compare = [{ name = "map", timed = true }, { name = "tree", on = "base" }]\n',
                 ("'map'", "tree")),
                (row + 'compare = [{ name = "map", on = "tree" }]\n', ("'map' on 'tree'", "base, series")),
                (row + 'tests.uml = []\n', ("'uml'", "um")),
                ("what is this\n", ("fix it",))):
            with self.subTest(more), self.fails("alpha/series.toml", *words) as caught:
                self.topic("alpha", more=more)
            self.assertNotIn("\n", caught.message)
        path = self.root / "patches/alpha/series.toml"
        self.topic("alpha")
        good = path.read_text()
        for text, words in ((good.replace("summary", "summery"), ("no 'summary'",)), ("a = 1\n" + good, ("'a'",))):
            put(path, text)
            with self.fails(str(path), *words):
                model.topics()

    def test_no_series(self):
        """A topic without a series for a base is refused with what to do:
        another base, a beginning, or the base as it is."""
        one, other = self.topic("alpha"), model.find_base("v1")
        with self.fails("'alpha'", "v0", "make tree TOPIC=alpha BASE=v0"):
            model.need_series(one, self.base)
        self.assertEqual(model.need_series(one, self.base, new=True), one)
        with self.fails("no topic", "v0", "BASE="):
            model.chosen_topics(None, self.base)
        put(self.root / "patches/alpha/v1/0001-x.patch", "")
        with self.fails("'alpha'", "v0", "BASE=v1") as caught:
            model.chosen_topics([one], self.base)
        self.assertNotIn("\n", caught.message)
        self.assertEqual(model.chosen_topics(None, other), [one])
        with self.fails("'alpha'", "v9.1.2 has it from upstream", "the half of it since 9.0", "as it is"):
            model.need_series(self.topic("alpha", merged=MERGED), self.base)


class Repository(Case):
    """The tables that are committed."""

    def test_bases(self):
        """Every base has what a download needs, and agrees with itself, but for
        those that somebody's own tree is."""
        for name, one in model.bases().items():
            if not one.fetched:
                continue
            self.assertEqual(one.tag, "v" + one.version)
            self.assertTrue(one.version.startswith(name.removeprefix("v") + "."))
            self.assertRegex(one.sha256, "^[0-9a-f]{64}$")
            self.assertIn(one.version, one.pool)
            self.assertIn(one.version, one.url)
