# SPDX-License-Identifier: GPL-2.0
"""Litmus tests: getting herd7, and judging what it finds."""

import io
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from unittest import mock

from support import Case, KernelCase, git, put

# isort: split
from core import locks
from core.ktap import FAILED, PASSED, SKIPPED
from prove import litmus
from source import fetch

# A herd7 that finds what the test's line 'herd: ' says, and writes down where
# and how it was called.
HERD7 = """
if [ "$1" = -version ]; then echo "RELEASE, Rev: exported"; exit; fi
echo "$PWD $*" >> LOG
for test; do :; done
echo "Test $(basename "$test" .litmus) Allowed"
sed -n 's/^herd: //p' "$test"
"""

# The dynamic loader of the private herd7.
LOADER = """#!/bin/sh
[ "$1" = --library-path ] && [ -d "$2" ] && [ -e "$3" ] && [ "$4" = -set-libdir ] && [ -d "$5" ] || exit 127
shift 5
[ "$1" = -version ] && echo "7.58, Rev: exported"
"""


def described(result: str, *finds: str) -> str:
    """A litmus test that says @result, and of which herd7 prints @finds."""
    return f"C test\n\n(*\n * {result}\n *\n * Why.\n *)\n" + "".join(f"herd: {line}\n" for line in finds)


class Judge(Case):
    """litmus.judge_litmus(): the comment against what herd7 printed."""

    def judged(self, result: str, *printed: str) -> str:
        """The verdict on a test with the comment @result."""
        return litmus.judge_litmus(put(self.dir / "t.litmus", described(result)),
                            "\n".join(("Test t Allowed", *printed)) + "\n")

    def test_as_expected(self):
        """All three results, as the comment says."""
        for line in ("Never 0 3", "Sometimes 1 2", "Always 3 0"):
            with self.subTest(line):
                self.assertEqual(self.judged(f"Result: {line.split()[0]}", f"Observation t {line}"), "")

    def test_nothing_runs(self):
        """Never in no execution at all proves nothing."""
        self.assertIn("no execution", self.judged("Result: Never", "Observation t Never 0 0"))

    def test_no_result(self):
        """herd7's own error is in the verdict; silence is said to be one."""
        self.assertIn("Unknown macro", self.judged("Result: Never", "File \"t\": Unknown macro smp_mbb (User error)"))
        self.assertIn("nothing", litmus.judge_litmus(self.dir / "t.litmus", "\n"))

    def test_no_comment(self):
        """A test that does not say what it expects fails."""
        self.assertIn("no comment", self.judged("It is never so.", "Observation t Never 0 2"))

    def test_first_line(self):
        """The comment's first line counts as in the kernel's scripts."""
        test = put(self.dir / "t.litmus", "C t\n(* Result: Never *)\n")
        self.assertEqual(litmus.judge_litmus(test, "Observation t Never 0 1\n"), "")

    def test_data_race(self):
        """A data race has to be expected, and an expected one found."""
        race = ("Flag data-race", "Observation t Sometimes 1 2")
        self.assertEqual(self.judged("Result: Sometimes", *race), "an unexpected data race")
        self.assertEqual(self.judged("Result: Sometimes DATARACE", *race), "")
        self.assertEqual(self.judged("Result: Sometimes DATARACE", race[1]), "not the expected data race")


class Private(Case):
    """litmus.herd7(): the one on PATH, or Debian's in the cache."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch("platform.machine", lambda: "x86_64"))
        self.enterContext(mock.patch.object(fetch, "debian_mirrors", lambda _: ["http://one.example/debian"]))
        self.pool = self.dir / "pool"
        self.pool.mkdir()
        self.asked = self.dir / "asked"
        # A machine that may have a herd7 of its own.
        self.fake("herd7", "exit 127\n")
        self.fake("dpkg-deb", '[ "$1" = --fsys-tarfile ] && cat "$2"\n')
        self.fake("curl", f"""
            while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
            echo "$1" >> {self.asked}
            cat "{self.pool}/${{1##*/}}" > "$out" || {{ echo "curl: (22) the server says 404"; exit 22; }}
            """)
        share = "usr/share/herdtools7/herd"
        self.debs([("herdtools7.deb", {"usr/bin/herd7": "a program", f"{share}/stdlib.cat": "", "usr/bin/diy7": ""},
                    ("usr/bin/herd7", share)),
                   ("libc6.deb", {f"{litmus.LIBRARIES}/ld-linux-x86-64.so.2": LOADER}, (litmus.LIBRARIES,))])
        self.root = locks.cache() / "herd"

    def debs(self, packages: list[tuple[str, dict[str, str], tuple[str, ...]]]) -> None:
        """Serve @packages (name, files, what is unpacked) and pin them."""
        rows = []
        for name, files, members in packages:
            with tarfile.open(self.pool / name, "w") as archive:
                for path, text in files.items():
                    entry = tarfile.TarInfo(f"./{path}")
                    entry.mode, entry.size = 0o755, len(text)
                    archive.addfile(entry, io.BytesIO(text.encode()))
            rows.append((f"pool/main/{name}", sha256((self.pool / name).read_bytes()).hexdigest(), members))
        self.enterContext(mock.patch.object(litmus, "DEBS", tuple(rows)))

    def refused(self, *words: str) -> None:
        """There is no herd7, said in one line with @words, and none half done
        that passes for one."""
        why = litmus.herd7()
        self.assertIsInstance(why, str)
        self.assertNotIn("\n", why)
        for word in ("herd7 7.58 or later is not installed", *words):
            self.assertIn(word, why)
        self.assertFalse(self.root.exists())

    def test_fetched(self):
        """Where there is none, or one too old for the model, Debian's is
        fetched, once, and only what it needs unpacked."""
        self.fake("herd7", HERD7.replace("RELEASE", "7.56.3"))
        argv = litmus.herd7()
        self.assertEqual(argv, litmus.private(self.root))
        self.assertEqual(litmus.release(argv), (7, 58))
        self.assertEqual(litmus.herd7(), argv)
        self.assertEqual(self.asked.read_text().split(), ["http://one.example/debian/pool/main/herdtools7.deb",
                                                          "http://one.example/debian/pool/main/libc6.deb"])
        self.assertFalse((self.root / "usr/bin/diy7").exists())
        self.assertEqual(list(locks.cache().glob("**/*.part")), [])

    def test_other_pins(self):
        """Other packages than those that were unpacked are fetched anew."""
        litmus.herd7()
        put(self.root / "old", "")
        _, *others = litmus.DEBS
        self.debs([("herdtools7_2.deb", {"usr/bin/herd7": "newer", "usr/share/herdtools7/herd/stdlib.cat": ""},
                    ("usr/bin/herd7", "usr/share/herdtools7/herd"))])
        with mock.patch.object(litmus, "DEBS", (*litmus.DEBS, *others)):
            self.assertEqual(litmus.herd7(), litmus.private(self.root))
        self.assertEqual((self.root / "usr/bin/herd7").read_text(), "newer")
        self.assertFalse((self.root / "old").exists())

    def test_member_missing(self):
        """A package that is not packed as it was."""
        self.debs([("herdtools7.deb", {"opt/herd7": ""}, ("usr/bin/herd7",))])
        self.refused("cannot unpack", "usr/bin/herd7")

    def test_does_not_run(self):
        """A herd7 that this machine cannot run is not kept."""
        self.debs([("all.deb", {"usr/bin/herd7": "", "usr/share/herdtools7/herd/stdlib.cat": "",
                                f"{litmus.LIBRARIES}/ld-linux-x86-64.so.2": "#!/bin/sh\nexit 1\n"}, ("usr",))])
        self.refused("does not run")

    def test_other_machine(self):
        """Debian's are for x86-64."""
        with mock.patch("platform.machine", lambda: "riscv64"):
            self.refused("riscv64")
        self.assertFalse(self.asked.exists())

    def test_no_dpkg(self):
        """A machine that is not Debian."""
        (self.bin / "dpkg-deb").unlink()
        with mock.patch.dict("os.environ", {"PATH": str(self.bin)}):
            self.refused("dpkg-deb")

    def test_gone(self):
        """A package that no mirror has."""
        (self.pool / "libc6.deb").unlink()
        self.refused("Debian's package could not be downloaded", "libc6.deb", "404")


class Verify(KernelCase):
    """litmus.run_tests() and the program, with a fake herd7 on PATH."""

    def setUp(self):
        super().setUp()
        self.log = self.dir / "log"
        self.fake("herd7", HERD7.replace("RELEASE", "7.58").replace("LOG", str(self.log)))
        put(self.kdir / "tools/memory-model/linux-kernel.cfg", "model linux-kernel.cat\n")
        self.commit_kdir("Have a memory model")
        self.good = put(self.dir / "tests/good.litmus", described("Result: Never", "Observation good Never 0 2"))
        self.bad = put(self.dir / "tests/bad.litmus", described("Result: Never", "Observation bad Sometimes 1 2"))

    def program(self, *words: str) -> int:
        """The exit status of the program called with @words."""
        with mock.patch.object(sys, "argv", ["litmus.py", "--base", "v0", *map(str, words)]):
            return int(litmus.main())

    def test_verdicts(self):
        """Each test has a result, in order; herd7 runs where the model is."""
        results = litmus.run_tests(self.kdir, [self.good, self.bad], "alpha: ")
        self.assertEqual([(one.name, one.verdict, one.why) for one in results],
                         [("alpha: good.litmus", PASSED, ""), ("alpha: bad.litmus", FAILED, "Sometimes, not Never")])
        self.assertEqual(self.log.read_text().splitlines()[0],
                         f"{self.kdir}/tools/memory-model -conf linux-kernel.cfg {self.good}")

    def test_relative(self):
        """A path relative to where we are is found from where the model is."""
        done = subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); "
                               "from prove import litmus; from pathlib import Path; "
                               "print(litmus.run_tests(Path('linux'), [Path('tests/good.litmus')])[0].verdict)",
                               str(Path(litmus.__file__).parents[1])],
                              cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.stdout, "passed\n", done.stderr)

    def test_no_herd(self):
        """Without a herd7 all are skipped, and say why."""
        with mock.patch.object(litmus, "herd7", lambda: "there is none"):
            results = litmus.run_tests(self.kdir, [self.good, self.bad])
        self.assertEqual({(one.verdict, one.why) for one in results}, {(SKIPPED, "there is none")})

    def test_no_model(self):
        """A tree that has no model is refused."""
        with self.fails("memory model", "tools/memory-model"):
            litmus.run_tests(self.dir, [self.good])

    def test_timeout(self):
        """A test that does not end fails."""
        self.fake("herd7", '[ "$1" = -version ] && { echo 7.58; exit; }\nexec sleep 60\n')
        with mock.patch.object(litmus, "PATIENCE", 0.2):
            (result,) = litmus.run_tests(self.kdir, [self.good])
        self.assertEqual((result.verdict, result.why), (FAILED, "not done after 0.2 s"))

    def test_series(self):
        """Of a series, the litmus tests that it adds, and only these."""
        put(self.kdir / "tools/memory-model/litmus-tests/base.litmus", "not ours")
        self.commit_kdir("Have a litmus test")
        self.imported()
        new = "Documentation/litmus-tests/alpha/alpha.litmus"
        self.series("alpha", ("fs/pipe.c", "line 7\n", "line seven\n"), (new, "", self.bad.read_text()))
        self.series("beta", ("fs/pipe.c", "line 20\n", "line twenty\n"))
        self.assertEqual(self.program("--topic", "alpha"), 1)
        self.assertEqual(self.program("--topic", "beta"), 0)
        self.assertEqual(self.program(), 1)
        self.assertIn("not ok - alpha: alpha.litmus # Sometimes", self.said.getvalue())
        self.assertIn("litmus: 0 passed, 0 failed, 0 skipped", self.said.getvalue())
        self.assertEqual(len(self.log.read_text().splitlines()), 2)
        self.assertEqual(git("status", "--porcelain", cwd=self.kdir), "")
