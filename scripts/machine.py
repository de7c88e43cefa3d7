# SPDX-License-Identifier: GPL-2.0
"""What machine this is, and what kernel it has booted: what decides whether two
timed runs may be compared."""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import re
from pathlib import Path

PROC, SYS, ROOT = Path("/proc"), Path("/sys"), Path("/")

# What says of a value that the kernel does not tell it.
UNKNOWN = "not known"


def text(path: Path) -> str:
    """The content of a file of one value, or UNKNOWN."""
    try:
        return path.read_text().strip()
    except OSError:
        return UNKNOWN


def cpu_values(name: str) -> str:
    """What cpufreq/@name of all CPUs has, each value once, or UNKNOWN."""
    paths = (SYS / "devices/system/cpu").glob(f"cpu[0-9]*/cpufreq/{name}")
    return ", ".join(sorted({text(path) for path in paths})) or UNKNOWN


def turbo() -> str:
    """'on' or 'off', or UNKNOWN, as one of the two drivers that know it says."""
    boost = text(SYS / "devices/system/cpu/cpufreq/boost")
    none = text(SYS / "devices/system/cpu/intel_pstate/no_turbo")
    return {("1", UNKNOWN): "on", ("0", UNKNOWN): "off", (UNKNOWN, "0"): "on", (UNKNOWN, "1"): "off"}.get(
        (boost, none), UNKNOWN)


def machine_id() -> str:
    """What tells this machine from others of its model, or UNKNOWN: a hash, as the
    id itself is not to leave the machine (machine-id(5))."""
    own = text(ROOT / "etc/machine-id")
    return own if own == UNKNOWN else hashlib.sha256(f"hotpaths {own}".encode()).hexdigest()[:12]


def machine() -> dict:
    """What has to be the same on both sides of a comparison: names and values,
    'mitigations' a table of its own."""
    info = text(PROC / "cpuinfo")
    model = re.search(r"^model name\s*: (.*)", info, re.MULTILINE)
    kinds = SYS / "devices/system/cpu/vulnerabilities"
    return {"machine": machine_id(),
            "CPU model": model[1] if model else platform.machine(), "CPUs": os.cpu_count(),
            "SMT": text(SYS / "devices/system/cpu/smt/control"), "governor": cpu_values("scaling_governor"),
            "turbo": turbo(),
            "mitigations": {path.name: text(path) for path in sorted(kinds.glob("*"))}}


def virtual() -> bool:
    """Whether this is a virtual machine, as its CPU says."""
    return re.search(r"^flags\s*:.*\bhypervisor\b", text(PROC / "cpuinfo"), re.MULTILINE) is not None


def config() -> str:
    """The configuration of the kernel that is booted; empty where no file that
    has it can be read."""
    release = platform.release()
    packed = PROC / "config.gz"
    try:
        return gzip.decompress(packed.read_bytes()).decode()
    except OSError:
        pass
    for path in (ROOT / "boot" / f"config-{release}", ROOT / "lib/modules" / release / "config",
                 ROOT / "lib/modules" / release / "build/.config"):
        try:
            return path.read_text()
        except OSError:
            pass
    return ""


def kernel() -> dict:
    """The kernel that is booted, as it names itself, and its command line."""
    return {"uname": " ".join(platform.uname()[:5]), "release": platform.release(), "version": platform.version(),
            "proc version": text(PROC / "version"), "command line": text(PROC / "cmdline")}


def boot_id() -> str:
    """What this boot of the machine is known by."""
    return text(PROC / "sys/kernel/random/boot_id")


def differences(one: dict, other: dict) -> list[str]:
    """What differs between two tables as machine() makes them, as phrases that
    name both values."""
    found = []
    for key in dict.fromkeys([*one, *other]):
        here, there = one.get(key, UNKNOWN), other.get(key, UNKNOWN)
        if isinstance(here, dict) and isinstance(there, dict):
            found += [f"{key}, {line}" for line in differences(here, there)]
        elif here != there:
            found.append(f"{key}: '{here}' and '{there}'")
    return found


def config_differences(one: str, other: str) -> list[str]:
    """The options that two kernel configurations set differently, without those
    that only name the build."""
    def options(config: str) -> dict[str, str]:
        """The options of @config that are set."""
        return dict(line.split("=", 1) for line in config.splitlines() if line.startswith("CONFIG_") and "=" in line)

    here, there = options(one), options(other)
    named = ("CONFIG_LOCALVERSION", "CONFIG_BUILD_SALT", "CONFIG_VERSION_SIGNATURE")
    return sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key) and key not in named)
