# SPDX-License-Identifier: GPL-2.0
"""What make bench-host keeps of this machine's kernel, and what make
bench-compare says of it."""

import argparse
import contextlib
import gzip
import os
import sys
from pathlib import Path
from unittest import mock

from support import Case, put

# isort: split
import benchhost
import locks
import machine
import measure

CPU = "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu hypervisor avx\n"
BENCHMARK = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
*--root*) echo "fake_bench: that takes root" >&2; exit 4 ;;
*--broken*) echo "fake_bench: the data are damaged" >&2; exit 1 ;;
esac
echo '{{"ops":50,"rate":7.5}}'
"""


def boot(number: int, values: dict[str, float], **more) -> dict:
    """The record of a boot, with rows of the topic pid that have these @values by
    condition."""
    return {"boot": f"{number}", "date": f"2026-01-{number:02}T00:00:00Z",
            "machine": {"CPU model": "A CPU", "CPUs": 4},
            "kernel": {"release": "9.1", "version": "#1"}, "settings": {"seconds of each run": 1.0}, "virtual": False,
            "rows": [{"topic": "pid", "metric": "throughput", "unit": "op/s", "condition": name,
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
        put(self.dir / "PROC/cpuinfo", CPU)

    def test_machine(self):
        """What decides whether runs may be compared, and what is not known; the id of
        the machine does not leave it."""
        cpu = self.dir / "SYS/devices/system/cpu"
        put(cpu / "smt/control", "on\n")
        for number, governor in enumerate(("powersave", "performance", "powersave")):
            put(cpu / f"cpu{number}/cpufreq/scaling_governor", governor + "\n")
        put(cpu / "vulnerabilities/meltdown", "Mitigation: PTI\n")
        put(self.dir / "ROOT/etc/machine-id", "00112233445566778899aabbccddeeff\n")
        found = machine.machine()
        self.assertRegex(found.pop("machine"), "^(?!001122334455)[0-9a-f]{12}$")
        self.assertEqual(found, {"CPU model": "A CPU", "CPUs": os.cpu_count(), "SMT": "on", "boost": "not known",
                                 "governor": "performance, powersave", "no turbo": "not known",
                                 "meltdown": "Mitigation: PTI"})
        self.assertTrue(machine.virtual())
        put(self.dir / "PROC/cpuinfo", CPU.replace("hypervisor", ""))
        self.assertFalse(machine.virtual())

    def test_config(self):
        """The configuration comes from /proc if it is there, or from /boot."""
        self.assertEqual(machine.config(), "")
        put(self.dir / f"ROOT/boot/config-{machine.platform.release()}", "CONFIG_A=y\n")
        self.assertEqual(machine.config(), "CONFIG_A=y")
        (self.dir / "PROC/config.gz").write_bytes(gzip.compress(b"CONFIG_B=y\n"))
        self.assertEqual(machine.config(), "CONFIG_B=y\n")


class Measured(HostCase):
    """Measuring with a benchmark that is a shell script."""

    def setUp(self):
        super().setUp()
        self.log = self.dir / "ran"
        put(self.dir / "programs/pid/fake_bench", BENCHMARK.format(log=self.log), 0o755)

    def timing(self, *cases: str) -> dict[str, measure.Timing]:
        """A topic with these cases of the fake benchmark."""
        return {"pid": measure.Timing("pid/fake_bench", cases, "ops", lambda results: [
            measure.row("throughput", "op/s", "fake", "timed", one["rate"]) for one in results])}

    def measured(self, *cases: str) -> tuple[list[dict], dict]:
        """What time_all() finds of these cases."""
        self.fake("findmnt", "echo ext9\n")
        return benchhost.time_all(self.timing(*cases), self.dir / "programs", self.dir, 0.5, 2)

    def test_rounds(self):
        """Each case runs once in each round, for the given time, and the median
        is kept; one that uses files says on what."""
        rows, skipped = self.measured("--quick --seconds {seconds}", "--dir {directory}")
        self.assertEqual(self.log.read_text().splitlines(),
                         ["--quick --seconds 0.5 --json", f"--dir {self.dir} --json"] * 2)
        self.assertEqual([(row["topic"], row["condition"], row["value"], row["rounds"]) for row in rows],
                         [("pid", "fake", 7.5, [7.5, 7.5]), ("pid", "fake, ext9", 7.5, [7.5, 7.5])])
        self.assertEqual(skipped, {})

    def test_skipped(self):
        """What is not supported here is left out with the benchmark's reason, and
        not tried again; a benchmark that fails is an error."""
        rows, skipped = self.measured("--root --seconds {seconds}", "--quick")
        self.assertEqual(skipped, {("pid", "fake_bench: that takes root"): 1})
        self.assertEqual((self.log.read_text().count("--root"), len(rows)), (1, 1))
        with self.fails("--broken", "status 1", "the data are damaged"):
            self.measured("--broken")

    def run_main(self, *words: str) -> None:
        """Run the command with the fake benchmark as all that there is."""
        with contextlib.ExitStack() as stack:
            for where, name, value in (
                    (benchhost, "chosen_timings", lambda _named: self.timing("--dir {directory}", "--root")),
                    (benchhost, "programs", lambda _timings: self.dir / "programs"),
                    (sys, "argv", ["benchhost.py", "--save", "base", *words])):
                stack.enter_context(mock.patch.object(where, name, value))
            benchhost.main()

    def test_main(self):
        """A boot is kept with its machine and kernel; the same name for another
        kernel is refused before anything runs; the directory may be relative."""
        self.enterContext(contextlib.chdir(self.dir))
        (self.dir / "files").mkdir()
        self.run_main("--dir", "files", "--rounds", "1")
        [found] = benchhost.boots("base")
        self.assertEqual((found["machine"], [row["value"] for row in found["rows"]]), (machine.machine(), [7.5]))
        self.assertIn("'base' has 1 boots of", self.said.getvalue())
        self.assertIn(f"--dir {self.dir}/files/hotpaths-", self.log.read_text())
        self.log.unlink()
        with mock.patch.object(benchhost.platform, "release", lambda: "9.9"), self.fails("'9.9'", "SAVE="):
            self.run_main("--dir", str(self.dir))
        self.assertFalse(self.log.exists())
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
        timings = list(self.timing("--quick").values())
        for _again in range(2):
            built = benchhost.programs(timings)
        self.assertEqual(built.parent, self.dir / "data/hotpaths/programs")
        [made] = (self.dir / "made").read_text().splitlines()
        self.assertIn("HEADERS=/usr/include", made)

    def test_every_topic(self):
        """All topics have something that is timed, by a program that there is."""
        found = benchhost.chosen_timings(None)
        self.assertEqual(sorted(found), ["fault", "pageguard", "pid", "pipe"])
        for timing in found.values():
            self.assertTrue((benchhost.REGRESS / f"{timing.program}.c").exists())


class Compared(HostCase):
    """Comparing runs that are made by hand."""

    def save(self, name: str, release: str, first: int, *values: float, step: int = 2, **more) -> None:
        """Save a boot of kernel @release for each of @values."""
        for nth, value in enumerate(values):
            benchhost.save(name, boot(first + nth * step, {"thread": value, "same": 100 + nth}, **{
                "kernel": {"release": release, "version": "#1"}, **more}))

    def test_verdicts(self):
        """A row that is clear of 1 is better or worse, the others are not; boots
        by turns need no caution."""
        self.save("base", "9.1", 1, 100, 101, 99, 100, 102)
        self.save("patched", "9.1-p", 2, 120, 121, 119, 120, 122)
        text = benchhost.compared("base", "patched")
        self.assertRegex(text, r"throughput \| thread \| op/s \| 100 \| 120 \| 1\.200 \[1\.\d+, 1\.\d+\] \| better \|")
        self.assertRegex(text, r"same \| op/s \| 102 \| 102 \| 1\.000 \[0\.\d+, 1\.\d+\] \| cannot tell \|")
        self.assertNotIn("by turns", text)
        self.assertNotIn("virtual machine", text)
        self.assertIn("| worse |", benchhost.compared("patched", "base"))

    def test_few(self):
        """With one boot there is no interval; boots in a row are told."""
        self.save("base", "9.1", 1, 100)
        self.save("patched", "9.1-p", 2, 500, virtual=True)
        text = benchhost.compared("base", "patched")
        self.assertIn("5.000, no interval | too few boots", text)
        self.assertIn("by turns", text)
        self.assertIn("virtual machine", text)

    def test_refused(self):
        """Another machine is not compared, another kernel not added; what differs is
        named.  A name is no path, and has to be there."""
        self.save("base", "9.1", 1, 100)
        self.save("other", "9.1-p", 2, 100, machine={"CPU model": "A CPU", "CPUs": 8})
        with self.fails("CPUs: '4' and '8'", "measure one of them again"):
            benchhost.compared("base", "other")
        with self.fails("release: '9.1' and '9.2'", "SAVE="):
            benchhost.save("base", boot(2, {}, kernel={"release": "9.2", "version": "#1"}))
        with self.fails("no run 'patched'", "SAVE=patched"):
            benchhost.compared("base", "patched")
        with mock.patch.object(sys, "argv", ["benchhost.py", "-a", "base", "-b", "base"]), self.fails("both sides"):
            benchhost.main()
        for name in ("", "../x", "a/b", ".a", "-a"):
            with self.fails("cannot be the name"):
                benchhost.boots(name)
        put(self.dir / "data/hotpaths/host/base/boot-9.json", "{")
        with self.fails("boot-9.json", "remove it"):
            benchhost.boots("base")

    def test_boots(self):
        """Another boot is one more, and the same boot's other topics are added."""
        benchhost.save("base", boot(2, {"a": 1}))
        benchhost.save("base", boot(1, {"a": 2}))
        again = boot(2, {"b": 3})
        again["rows"][0]["topic"] = "pipe"
        benchhost.save("base", again)
        benchhost.save("base", boot(2, {"a": 9}))
        self.assertEqual([sorted((row["topic"], row["value"]) for row in one["rows"])
                          for one in benchhost.boots("base")], [[("pid", 2)], [("pid", 9), ("pipe", 3)]])

    def test_home(self):
        """Without XDG_DATA_HOME it is in the home directory."""
        del os.environ["XDG_DATA_HOME"]
        self.assertEqual(benchhost.home(), Path(self.dir / ".local/share/hotpaths"))
        self.assertNotIn(locks.cache(), benchhost.home().parents)
