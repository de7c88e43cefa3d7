# SPDX-License-Identifier: GPL-2.0
"""What machine this is, and the configuration of the kernel that it has booted."""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import re
from pathlib import Path

PROC, SYS, ROOT = Path("/proc"), Path("/sys"), Path("/")

# What stands for a value that the kernel does not tell.
UNKNOWN = "not known"


def text(path: Path) -> str:
    """The content of a file of one value, or UNKNOWN."""
    try:
        return path.read_text().strip()
    except OSError:
        return UNKNOWN


def machine() -> dict[str, object]:
    """What has to be the same on both sides of a comparison.  The machine's id is
    hashed, as it must not leave the machine (machine-id(5))."""
    cpu = SYS / "devices/system/cpu"
    model = re.search(r"^model name\s*: (.*)", text(PROC / "cpuinfo"), re.MULTILINE)
    own = text(ROOT / "etc/machine-id")
    governors = sorted({text(path) for path in cpu.glob("cpu[0-9]*/cpufreq/scaling_governor")})
    return {"machine": own if own == UNKNOWN else hashlib.sha256(f"hotpaths {own}".encode()).hexdigest()[:12],
            "CPU model": model[1] if model else platform.machine(), "CPUs": os.cpu_count(),
            "SMT": text(cpu / "smt/control"), "governor": ", ".join(governors) or UNKNOWN,
            "boost": text(cpu / "cpufreq/boost"), "no turbo": text(cpu / "intel_pstate/no_turbo"),
            **{path.name: text(path) for path in sorted((cpu / "vulnerabilities").glob("*"))}}


def is_virtual() -> bool:
    """Whether this is a virtual machine, as its CPU says."""
    return re.search(r"^flags\s*:.*\bhypervisor\b", text(PROC / "cpuinfo"), re.MULTILINE) is not None


def config() -> str:
    """The configuration of the kernel that is booted; empty where it cannot be read."""
    release = platform.release()
    try:
        return gzip.decompress((PROC / "config.gz").read_bytes()).decode()
    except OSError:
        found = (text(ROOT / path) for path in (f"boot/config-{release}", f"lib/modules/{release}/config",
                                                f"lib/modules/{release}/build/.config"))
        return next((one for one in found if one != UNKNOWN), "")
