#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Boot a User-Mode Linux kernel, run one script there, keep its log.

The kernel is a process of this machine: it runs natively, on as many CPUs as
it is given, and boots in less than a second.  As in guest.py's guests the root
is this machine's, read-only, and the run's directory is on /mnt.
"""

import shutil
from pathlib import Path

from build import UM, Kernel, kernel, kselftests
from fetch import repository
from guest import Ran, run_directory, watch
from install import need
from project import ROOT, arguments, base, chosen_topics, run
from tree import apply

INIT = ROOT / "scripts" / "um" / "init.sh"


def command(image: Path, run_dir: Path, cpus: int, memory: str) -> list[str]:
    """The command line that boots the kernel @image with @run_dir on /mnt;
    several CPUs need seccomp=on."""
    return [str(image), f"mem={memory}", f"ncpus={cpus}", "seccomp=on",
            "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={INIT}",
            "con=null", "con0=fd:0,fd:1", "ignore_loglevel", "panic=-1", "--", str(run_dir)]


def boot(image: Kernel, run_dir: Path, script: str, cpus: int = 2, memory: str = "1G", timeout: float = 900,
         label: str = "guest") -> Ran:
    """Boot the kernel @image and run the bash @script as root in /mnt, which
    is @run_dir.  @cpus: host threads that run the guest at once; @memory: as
    UML's mem=; @timeout: seconds.  Raises Failure as guest.boot() does."""
    return watch(command(image.image, run_dir, cpus, memory), run_dir, script, timeout, label, console="both")


def main() -> int:
    """Run the kselftests of topics, or another command, under User-Mode Linux
    with the series of all topics."""
    parser = arguments(__doc__)
    parser.add_argument("--topic", action="append", help="default: every topic that has patches for the base")
    parser.add_argument("--exec", default="cd kselftest && ./run_kselftest.sh 2>&1 | cat",
                        help="run this, with the kselftests in ./kselftest (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds (default: %(default)s)")
    args = parser.parse_args()
    on = base(args.base)
    chosen = chosen_topics(args.topic, on)
    need("source", "build", "tests")
    repo = repository(on, args.kdir)
    revision = apply(repo, on, chosen)
    label = "+".join(one.name for one in chosen)
    image = kernel(repo, on, revision, UM.name, label)
    run_dir = run_directory(UM.name)
    shutil.copytree(kselftests(repo, revision, sorted({one.kselftest for one in chosen})), run_dir / "kselftest")
    ran = boot(image, run_dir, args.exec, timeout=args.timeout, label=f"{label} {UM.name}")
    print(ran.output.read_text(errors="replace"), end="")
    return ran.status


if __name__ == "__main__":
    run(main)
