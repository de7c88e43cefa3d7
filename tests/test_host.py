# SPDX-License-Identifier: GPL-2.0
"""What make bench-host keeps of this machine's kernel, and what make
bench-compare says of it."""

import argparse
import contextlib
import gzip
import io
import json
import os
import sys
from unittest import mock

from support import Case, put

# isort: split
import benchhost
import comparehost
import machine
import measure
import perf
import saved
from command import arguments

CPU = "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu {}\n"
BENCHMARK = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
*--root*) echo "fake_bench: that takes root" >&2; exit 4 ;;
*--broken*) echo "fake_bench: the data are damaged" >&2; exit 1 ;;
esac
echo '{{"ops":50,"rate":7.5}}'
"""
STAT = """case "$*" in
*lock*) echo 'switch b is not available'; exit 1 ;;
*c2c*) echo 'failed: memory events not supported' >&2; exit 1 ;;
esac
log=$4
shift 7
printf '%s\\n' '# started' '<not supported>,,cycles,0,100.00,,' '77,,cache-misses:u,0,100.00,,' \\
	'100,,context-switches,9,100.00,,' > "$log"
exec "$@"
"""
LOCKS = """ contended   total wait     max wait     avg wait         type   caller

         3      6.00 us      3.00 us      2.00 us     spinlock   alloc_pid+0x10
         1      2.50 ms      2.50 ms      2.50 ms        mutex   anon_pipe_write+0x20
"""


def boot(number: int, values: dict[str, float], **more) -> dict:
    """The record of a boot of a run, with rows of the topic pid that have these
    @values by condition."""
    return {"format": saved.FORMAT, "boot": f"boot{number}", "date": f"2026-01-{number:02}T00:00:00Z",
            "machine": {"machine": "0123", "CPU model": "A CPU", "CPUs": 4, "SMT": "on", "governor": "performance",
                        "mitigations": {"meltdown": "Not affected"}},
            "kernel": {"release": "9.1", "version": "#1"}, "settings": {"seconds of each run": 1.0}, "virtual": False,
            "rows": [{"topic": "pid", "metric": "throughput", "unit": "op/s", "condition": name, "evidence": "timed",
                      "value": value} for name, value in values.items()], **more}


class HostCase(Case):
    """A test with saved runs in a directory of its own."""

    def setUp(self):
        super().setUp()
        os.environ["XDG_DATA_HOME"] = str(self.dir / "data")


class Machine(HostCase):
    """machine.py on a made-up /proc and /sys."""

    def setUp(self):
        super().setUp()
        for name in ("PROC", "SYS", "ROOT"):
            self.enterContext(mock.patch.object(machine, name, self.dir / name))
        put(self.dir / "PROC/cpuinfo", CPU.format("hypervisor avx"))

    def test_machine(self):
        """What decides whether runs may be compared, and what is not known."""
        cpu = self.dir / "SYS/devices/system/cpu"
        put(cpu / "smt/control", "on\n")
        for number, governor in enumerate(("powersave", "performance", "powersave")):
            put(cpu / f"cpu{number}/cpufreq/scaling_governor", governor + "\n")
        put(cpu / "vulnerabilities/meltdown", "Mitigation: PTI\n")
        put(cpu / "intel_pstate/no_turbo", "1\n")
        put(self.dir / "ROOT/etc/machine-id", "00112233445566778899aabbccddeeff\n")
        found = machine.machine()
        own = found.pop("machine")
        self.assertRegex(own, "^[0-9a-f]{12}$")
        self.assertNotIn(own, "00112233445566778899aabbccddeeff")
        put(self.dir / "ROOT/etc/machine-id", "10112233445566778899aabbccddeeff\n")
        self.assertNotEqual(machine.machine()["machine"], own)
        self.assertEqual(found, {"CPU model": "A CPU", "CPUs": os.cpu_count(), "SMT": "on",
                                 "governor": "performance, powersave", "turbo": "off",
                                 "mitigations": {"meltdown": "Mitigation: PTI"}})
        self.assertTrue(machine.virtual())
        put(self.dir / "PROC/cpuinfo", CPU.format("avx"))
        self.assertFalse(machine.virtual())

    def test_nothing_known(self):
        """A kernel that tells nothing is no error."""
        (self.dir / "PROC/cpuinfo").unlink()
        found = machine.machine()
        self.assertEqual([found[key] for key in ("machine", "governor", "turbo", "mitigations")],
                         ["not known", "not known", "not known", {}])
        self.assertEqual((machine.config(), machine.kernel()["proc version"]), ("", "not known"))

    def test_config(self):
        """The configuration comes from /proc if it is there, or from /boot."""
        put(self.dir / f"ROOT/boot/config-{machine.platform.release()}", "CONFIG_A=y\n")
        self.assertEqual(machine.config(), "CONFIG_A=y\n")
        (self.dir / "PROC/config.gz").write_bytes(gzip.compress(b"CONFIG_B=y\n"))
        self.assertEqual(machine.config(), "CONFIG_B=y\n")

    def test_differences(self):
        """Both values are named, also of what one side does not have."""
        self.assertEqual(machine.differences({"CPUs": 4, "mitigations": {"a": "x", "b": "y"}},
                                             {"CPUs": 8, "mitigations": {"a": "x", "c": "z"}}),
                         ["CPUs: '4' and '8'", "mitigations, b: 'y' and 'not known'",
                          "mitigations, c: 'not known' and 'z'"])
        self.assertEqual(machine.config_differences(
            'CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_LOCALVERSION="-a"\n',
            'CONFIG_A=m\nCONFIG_B=y\nCONFIG_LOCALVERSION="-b"\n'), ["CONFIG_A", "CONFIG_B"])


class Saved(HostCase):
    """saved.py: a directory for each name, a file for each boot."""

    def test_boots(self):
        """Another boot is one more, the same boot's other topics are added, and
        its configuration lies beside it."""
        path = saved.add("base", boot(2, {"a": 1}), "CONFIG_A=y\n")
        self.assertEqual(path.parent, self.dir / "data/hotpaths/host/base")
        saved.add("base", boot(1, {"a": 2}), "")
        again = boot(2, {"b": 3})
        again["rows"][0]["topic"] = "pipe"
        saved.add("base", again, "CONFIG_A=y\n")
        found = saved.boots("base")
        self.assertEqual([[(row["topic"], row["value"]) for row in one["rows"]] for one in found],
                         [[("pid", 2)], [("pid", 1), ("pipe", 3)]])
        self.assertEqual([saved.config_of("base", one) for one in found], ["", "CONFIG_A=y\n"])
        saved.add("base", boot(2, {"a": 9}), "")
        self.assertEqual(sorted((row["topic"], row["value"]) for row in saved.boots("base")[1]["rows"]),
                         [("pid", 9), ("pipe", 3)])
        self.assertEqual(saved.names(), ["base"])

    def test_refused(self):
        """A name is of one kernel, of one machine, and one way to measure; it is
        no path."""
        saved.add("base", boot(1, {"a": 1}), "")
        saved.refuse("base", boot(2, {}))
        saved.refuse("other", boot(2, {}, kernel={"release": "9.2", "version": "#1"}))
        with self.fails("release: '9.1' and '9.2'", "SAVE="):
            saved.refuse("base", boot(2, {}, kernel={"release": "9.2", "version": "#1"}))
        with self.fails("seconds of each run: '1.0' and '3.0'"):
            saved.refuse("base", boot(2, {}, settings={"seconds of each run": 3.0}))
        for name in ("", "../x", "a/b", ".a", "-a"):
            with self.fails("cannot be the name"):
                saved.directory(name)

    def test_damaged(self):
        """A file that is no boot is named."""
        place = saved.directory("base")
        for text in ("{", "[]", "{}", json.dumps(boot(1, {}, format=saved.FORMAT + 1))):
            put(place / "boot-1.json", text)
            with self.fails("boot-1.json", "remove it"):
                saved.boots("base")

    def test_home(self):
        """Without XDG_DATA_HOME it is in the home directory."""
        del os.environ["XDG_DATA_HOME"]
        self.assertEqual(saved.home(), self.dir / ".local/share/hotpaths")
        os.environ["XDG_DATA_HOME"] = str(put(self.dir / "file", ""))
        with self.fails("XDG_DATA_HOME"):
            saved.home()


class Perf(HostCase):
    """perf.py with a perf that is a shell script."""

    def test_partly(self):
        """What does not work is said in a sentence, also what is counted in user
        mode alone; the rest is counted for each operation."""
        self.fake("perf", STAT)
        found = perf.find()
        self.assertEqual((found.events, found.locks, found.lines), (("context-switches",), False, False))
        self.assertEqual(len(found.why), 3)
        for words, why in zip(("cycles, cache-misses", "switch b is not available", "memory events"), found.why,
                              strict=True):
            self.assertIn(words, why)
        rows, waits = perf.beside(found, ["sh", "-c", 'echo \'{"ops":50}\''], "ops", self.dir, 0)
        self.assertEqual((rows, waits), ([("context_switches", "per operation", 2.0)], []))

    def test_all(self):
        """Waits for locks are added up and the longest are kept; of c2c, it is
        the number of lines."""
        self.fake("perf", f"""case "$*" in
*report*) echo '  Total Shared Cache Lines          :         20' ;;
*lock*) cat <<'END' >&2
{LOCKS}END
shift 4; exec "$@" ;;
*c2c*) : ;;
*) printf '%s\\n' 4000,,cycles,1,100.00,, 200,,cache-misses,1,100.00,, 2,,context-switches,1,100.00,, > "$4"
shift 7; exec "$@" ;;
esac
""")
        found = perf.find()
        self.assertEqual(found, perf.Perf(perf.EVENTS, True, True))
        rows, waits = perf.beside(found, ["sh", "-c", 'echo \'{"ops":2}\''], "ops", self.dir, 0)
        self.assertEqual([(metric, value) for metric, _unit, value in rows], [
            ("cycles", 2000.0), ("cache_misses", 100.0), ("context_switches", 1.0), ("lock_waits", 2.0),
            ("lock_wait", 1253000.0), ("shared_lines", 20.0)])
        self.assertEqual(waits, [
            {"waits": 1, "ns": 2.5e6, "lock": "mutex", "where": "anon_pipe_write+0x20"},
            {"waits": 3, "ns": 6000.0, "lock": "spinlock", "where": "alloc_pid+0x10"}])

    def test_none(self):
        """Where there is no perf, that is all that is said."""
        with mock.patch.object(perf.shutil, "which", lambda _name: None):
            self.assertEqual(perf.find(), perf.Perf(why=("perf is not installed, so nothing is counted beside the "
                                                         "rows",)))


class Measured(HostCase):
    """benchhost.py with a benchmark that is a shell script."""

    def setUp(self):
        super().setUp()
        self.log = self.dir / "ran"
        put(self.dir / "programs/pid/fake_bench", BENCHMARK.format(log=self.log), 0o755)

    def timing(self, *cases: str) -> dict[str, measure.Timing]:
        """A topic with these cases of the fake benchmark."""
        def rows(results: list[dict]) -> list[dict]:
            """One row of one result."""
            return [measure.row("throughput", "op/s", "fake", "timed", one["rate"]) for one in results]

        return {"pid": measure.Timing("pid/fake_bench", cases, "ops", rows)}

    def measured(self, *cases: str, rounds: int = 2, counted: perf.Perf | None = None) -> dict:
        """What benchhost.measured() finds of these cases."""
        with mock.patch.object(benchhost, "filesystem", lambda _directory: "ext9"):
            return benchhost.measured(self.timing(*cases), self.dir / "programs", self.dir, 0.5, rounds,
                                      counted or perf.Perf())

    def test_rounds(self):
        """Each case runs once in each round, for the given time, and the median
        is kept; one that uses files says on what."""
        found = self.measured("--quick --seconds {seconds}", "--dir {directory}")
        self.assertEqual(self.log.read_text().splitlines(),
                         ["--quick --seconds 0.5 --json", f"--dir {self.dir} --json"] * 2)
        self.assertEqual([(row["topic"], row["condition"], row["value"], row["rounds"]) for row in found["rows"]],
                         [("pid", "fake", 7.5, [7.5, 7.5]), ("pid", "fake, ext9", 7.5, [7.5, 7.5])])
        self.assertEqual((found["skipped"], found["waits"]), ([], []))

    def test_skipped(self):
        """What is not supported here is left out with the benchmark's reason, and
        not tried again."""
        found = self.measured("--root --seconds {seconds}", "--quick")
        self.assertEqual(found["skipped"], [{"topic": "pid", "case": "--root", "why": "fake_bench: that takes root"}])
        self.assertEqual(self.log.read_text().count("--root"), 1)
        self.assertEqual(len(found["rows"]), 1)
        benchhost.told(found["skipped"] * 2)
        self.assertIn("pid: 2 runs are left out: fake_bench: that takes root", self.said.getvalue())

    def test_failed(self):
        """A benchmark that fails is an error."""
        with self.fails("--broken", "status 1", "the data are damaged"):
            self.measured("--broken")

    def test_beside_perf(self):
        """What perf counts is a row of its own beside that of the case."""
        self.fake("perf", STAT)
        found = self.measured("--quick", counted=perf.Perf(("context-switches",)))
        self.assertEqual([(row["metric"], row["condition"], row["evidence"], row["value"]) for row in found["rows"]],
                         [("throughput", "fake", "timed", 7.5), ("context_switches", "fake", "perf", 2.0)])

    def run_main(self, *words: str) -> None:
        """Run the command with the fake benchmark as all that there is."""
        with contextlib.ExitStack() as stack:
            for where, name, value in ((benchhost, "chosen_timings", lambda _named: self.timing("--quick", "--root")),
                                       (benchhost, "programs", lambda _timings: self.dir / "programs"),
                                       (benchhost, "filesystem", lambda _directory: "ext9"),
                                       (sys, "argv", ["benchhost.py", "--save", "base", *words])):
                stack.enter_context(mock.patch.object(where, name, value))
            benchhost.main()

    def test_main(self):
        """A boot is kept with its machine and kernel; the same name for another
        kernel is refused before anything runs."""
        self.run_main("--no-perf", "--dir", str(self.dir), "--rounds", "1")
        [found] = saved.boots("base")
        self.assertEqual(found["boot"], machine.boot_id())
        self.assertEqual(found["machine"], machine.machine())
        self.assertEqual([row["value"] for row in found["rows"]], [7.5])
        self.assertEqual(found["perf"]["not there"], ["perf was not wanted"])
        self.assertIn("'base' has 1 boot of", self.said.getvalue())
        self.log.unlink()
        with mock.patch.object(machine.platform, "release", lambda: "9.9"), self.fails("'9.9'", "SAVE="):
            self.run_main("--no-perf", "--dir", str(self.dir))
        self.assertFalse(self.log.exists())

    def test_relative(self):
        """A directory may be named from the current one."""
        self.enterContext(contextlib.chdir(self.dir))
        (self.dir / "files").mkdir()
        with mock.patch.object(self, "timing", lambda *_cases: Measured.timing(self, "--dir {directory}")):
            self.run_main("--no-perf", "--dir", "files", "--rounds", "1")
        self.assertIn(f"--dir {self.dir}/files/hotpaths-", self.log.read_text())

    def test_no_directory(self):
        """A directory that is not there is named."""
        with self.fails(f"{self.dir}/none", "DIR="):
            self.run_main("--dir", f"{self.dir}/none")

    def test_numbers(self):
        """A duration is a number of seconds within reason."""
        self.assertEqual([benchhost.seconds(text) for text in ("0.5", "600")], [0.5, 600])
        for text in ("0", "-1", "nan", "inf", "x", "601"):
            with self.assertRaises(argparse.ArgumentTypeError):
                benchhost.seconds(text)

    def test_programs(self):
        """Benchmarks are built once, without the kernel's headers, and lie with
        the saved runs."""
        self.fake("make", f'echo "$@" >> {self.dir}/made\nfor word; do :; done\nmkdir -p "$(dirname "$word")"\n'
                  'touch "$word"\n')
        self.fake("gcc", "exit 0\n")
        timings = list(self.timing("--quick").values())
        for _again in range(2):
            built = benchhost.programs(timings)
        self.assertEqual(built.parent, self.dir / "data/hotpaths/programs")
        self.assertTrue((built / "pid/fake_bench").exists())
        [made] = (self.dir / "made").read_text().splitlines()
        self.assertIn("HEADERS=/usr/include", made)
        self.assertEqual([path.name for path in built.parent.iterdir()], [built.name])

    def test_every_topic(self):
        """All topics have something that is timed, with rows of one result each."""
        found = benchhost.chosen_timings(None)
        self.assertEqual(sorted(found), ["fault", "pageguard", "pid", "pipe"])
        for timing in found.values():
            self.assertTrue((benchhost.REGRESS / f"{timing.program}.c").exists())


class Compared(HostCase):
    """comparehost.py on runs made by hand."""

    def save(self, name: str, release: str, first: int, *values: float, step: int = 1, **more) -> None:
        """Save a boot of kernel @release for each of @values."""
        for nth, value in enumerate(values):
            saved.add(name, boot(first + nth * step, {"thread": value, "same": 100 + nth}, **{
                "kernel": {"release": release, "version": "#1"}, **more}), "")

    def output(self, a: str, b: str) -> str:
        """What the command prints."""
        with mock.patch.object(sys, "argv", ["comparehost.py", "-a", a, "-b", b]), \
                contextlib.redirect_stdout(io.StringIO()) as said:
            comparehost.main()
        return said.getvalue()

    def test_verdicts(self):
        """A row that is clear of 1 is better or worse, the others are not; boots
        by turns need no caution."""
        self.save("base", "9.1", 1, 100, 101, 99, 100, 102, step=2)
        self.save("patched", "9.1-p", 2, 120, 121, 119, 120, 122, step=2)
        text = self.output("base", "patched")
        self.assertRegex(text, r"`throughput` \| thread \| 100 \| 120 \| \+20\.0 % \| 1\.200 \[1\.\d+, 1\.\d+\] "
                               r"\| 5 and 5 \| better \| op/s")
        self.assertRegex(text, r"same \| 102 \| 102 \| \+0\.0 % \| 1\.000 \[0\.\d+, 1\.\d+\] \| 5 and 5 \| cannot tell")
        self.assertIn("2 rows: 1 better, 0 worse, 1 cannot tell, 0 too few boots.", text)
        self.assertNotIn("by turns", text)
        self.assertIn("0 better, 1 worse", self.output("patched", "base"))

    def test_one_boot(self):
        """With one boot there is no interval, which is said."""
        self.save("base", "9.1", 1, 100)
        self.save("patched", "9.1-p", 2, 500)
        text = self.output("base", "patched")
        self.assertIn("there is no interval, and nothing is called better or worse", text)
        self.assertIn("5.000, no interval | 1 and 1 | too few boots", text)
        self.assertIn("0 better, 0 worse", text)

    def test_cautions(self):
        """Few boots, the same kernel, boots in a row, and a virtual machine."""
        self.save("base", "9.1", 1, 100, 101, virtual=True)
        self.save("patched", "9.1", 5, 100, 101)
        text = self.output("base", "patched")
        for words in ("fewer than 5", "same kernel", "by turns", "virtual machine"):
            self.assertIn(words, text)

    def test_configs(self):
        """Options that differ are named, if both are known."""
        runs = [boot(1, {"a": 1})], [boot(2, {"a": 1})]
        names = "a", "b"
        self.assertIn("differ in CONFIG_B.",
                      comparehost.written(*runs, names, ("CONFIG_A=y\n", "CONFIG_A=y\nCONFIG_B=y\n")))
        self.assertNotIn("CONFIG", comparehost.written(*runs, names, ("", "CONFIG_B=y\n")))
        many = "".join(f"CONFIG_{number:02}=y\n" for number in range(20))
        self.assertIn("CONFIG_12 and 7 more", comparehost.written(*runs, names, ("CONFIG_00=y\n", many)))

    def test_other_machine(self):
        """Machines that differ are not compared, and what differs is named."""
        self.save("base", "9.1", 1, 100)
        for what, value, words in (("machine", "4567", "machine: '0123' and '4567'"),
                                   ("CPU model", "B CPU", "CPU model: 'A CPU' and 'B CPU'"),
                                   ("CPUs", 8, "CPUs: '4' and '8'"),
                                   ("governor", "powersave", "governor: 'performance' and 'powersave'"),
                                   ("mitigations", {"meltdown": "Vulnerable"},
                                    "mitigations, meltdown: 'Not affected' and 'Vulnerable'")):
            with self.subTest(what=what):
                self.save(f"other-{what}".replace(" ", "-"), "9.1-p", 2, 100,
                          machine={**boot(1, {})["machine"], what: value})
                with self.fails(words, "measure one of them again"):
                    self.output("base", f"other-{what}".replace(" ", "-"))

    def test_names(self):
        """A name that is not there, and the same on both sides."""
        with self.fails("no run 'base'", "nothing is saved yet", "SAVE=base"):
            self.output("base", "patched")
        self.save("base", "9.1", 1, 100)
        with self.fails("no run 'patched'", "there are base"):
            self.output("base", "patched")
        with self.fails("both sides"):
            self.output("base", "base")

    def test_other_rows(self):
        """Rows of one side only are counted, and runs without a common row are
        refused."""
        saved.add("a", boot(1, {"x": 1, "y": 1}), "")
        saved.add("b", boot(2, {"x": 1}), "")
        saved.add("c", boot(3, {"z": 1}), "")
        self.assertIn("1 rows are in one of the runs only", self.output("a", "b"))
        with self.fails("no row in common"):
            self.output("a", "c")

    def test_waits(self):
        """Who waited longest for locks is shown by row."""
        one = boot(1, {"x": 1}, waits=[{"topic": "pid", "condition": "x", "waits": 3, "ns": 2e6, "lock": "spinlock",
                                        "where": "alloc_pid"}])
        text = comparehost.written([one], [boot(2, {"x": 1})], ("a", "b"))
        self.assertIn("- a, x: alloc_pid (spinlock, 3 times, 2 ms)", text)


class Given(Case):
    """What both commands take."""

    def test_topics(self):
        """Several topics may be given in one word."""
        args = arguments("", base=False, topics="some").parse_args(["--topic", "pipe pid", "--topic", "fault"])
        self.assertEqual([topic.name for topic in args.topic], ["pipe", "pid", "fault"])
        with self.fails("unknown topic 'x'"):
            arguments("", base=False, topics="some").parse_args(["--topic", "pipe x"])

    def test_every_row_has_a_direction(self):
        """More is better of rates alone."""
        self.assertEqual([comparehost.more_is_better(unit) for unit in
                          ("MB/s", "op/s", "per s", "ns", "ms", "per operation", "cache lines seen")],
                         [True, True, True, False, False, False, False])
