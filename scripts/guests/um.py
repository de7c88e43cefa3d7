# SPDX-License-Identifier: GPL-2.0
"""Boot a User-Mode Linux kernel, run one script there.

The kernel is a process of this machine: it runs natively, on as many CPUs as
it is given, and boots in less than a second.  As in QEMU's guests the root
is this machine's, read-only, and the run's directory is on /mnt.
"""

from pathlib import Path

from core.model import ROOT
from guests.watch import Ran, watch
from source.build import Kernel

INIT = ROOT / "scripts" / "um" / "init.sh"


def um_command(image: Path, run_dir: Path, cpus: int, memory: str) -> list[str]:
    """The command line that boots the kernel @image with @run_dir on /mnt;
    several CPUs need seccomp=on.  What it would leave in ~/.uml goes there, too."""
    return [str(image), f"mem={memory}", f"ncpus={cpus}", "seccomp=on", f"uml_dir={run_dir}/",
            "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={INIT}",
            "con=null", "con0=fd:0,fd:1", "ignore_loglevel", "panic=-1", "--", str(run_dir)]


def boot(image: Kernel, run_dir: Path, script: str, cpus: int = 2, memory: str = "1G", timeout: float = 900,
         label: str = "guest") -> Ran:
    """Boot the kernel @image and run the bash @script as root in /mnt, which
    is @run_dir.  @cpus: host threads that run the guest at once; @memory: as
    UML's mem=; @timeout: seconds.  Raises Failure as qemu.boot() does."""
    return watch(um_command(image.image, run_dir, cpus, memory), run_dir, script, timeout, label, console="both")
