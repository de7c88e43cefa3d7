# SPDX-License-Identifier: GPL-2.0
"""What machine this is, what its kernel was configured with, and the programs of
regress/ that are built for it."""

import gzip
import os
from pathlib import Path
from unittest import mock

from support import Case, put

# isort: split
from core import locks
from core import machine
from source import build

CPU = "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu hypervisor avx\n"


class Machine(Case):
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
        self.assertTrue(machine.is_virtual())
        put(self.dir / "PROC/cpuinfo", CPU.replace("hypervisor", ""))
        self.assertFalse(machine.is_virtual())

    def test_config(self):
        """The configuration comes from /proc if it is there, or from /boot."""
        self.assertEqual(machine.config(), "")
        put(self.dir / f"ROOT/boot/config-{machine.platform.release()}", "CONFIG_A=y\n")
        self.assertEqual(machine.config(), "CONFIG_A=y")
        (self.dir / "PROC/config.gz").write_bytes(gzip.compress(b"CONFIG_B=y\n"))
        self.assertEqual(machine.config(), "CONFIG_B=y\n")


class Programs(Case):
    """build.host_programs(), with a make that is a shell script."""

    def test_once(self):
        """They are built once, without the kernel's headers, in a directory that make clean
        leaves alone."""
        self.fake("make", f'echo "$@" >> {self.dir}/made\nfor word; do :; done\nmkdir -p "$(dirname "$word")"\n'
                  'touch "$word"\n')
        for _again in range(2):
            built = build.host_programs(["pid/pid_alloc_bench"])
        self.assertEqual(built.parent, Path(self.dir / ".local/share/hotpaths/programs"))
        self.assertNotIn(locks.cache(), built.parents)
        [made] = (self.dir / "made").read_text().splitlines()
        self.assertIn("HEADERS=/usr/include", made)
        self.assertTrue(made.endswith("/pid/pid_alloc_bench"))
