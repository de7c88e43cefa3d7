#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Build what a guest needs, boot it, keep what it says.

On the command line: the guest of some topics with their series applied, one on
the other, for a shell or for one command.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from core.command import arguments, run
from core.install import need
from core.model import CONFIGS, GUESTS, ROOT, Base, Topic, chosen_topics
from core.process import Failure, bash, say
from guests import arm64
from guests import qemu
from guests import um
from guests.watch import Ran, run_directory
from source.build import ARM64, UM, Kernel, arch, kernel, kselftests
from source.fetch import repository
from source.tree import apply

# Shell that gives a guest swap to reclaim tmpfs to.
SWAP = bash(ROOT / "scripts/guests/swap.sh")


def build_guest(repo: Path, base: Base, revision: str, config: str, topics: list[Topic], label: str,
            neighbours: bool = False) -> tuple[Kernel, Path]:
    """The kernel of @revision in configuration @config, and the tests of @topics
    for the same architecture, built where they are not there yet: the
    kselftests of the series, ours, and if @neighbours, the kernel's own of the
    same code.  @label names the series in progress lines."""
    image = kernel(repo, base, revision, config, label)
    targets = [topic.target for topic in topics if topic.target]
    if neighbours:
        targets += [name for topic in topics for name in topic.neighbours]
    # Topics may share a directory of tests.
    return image, kselftests(repo, revision, list(dict.fromkeys(targets)), arch(config).programs,
                             tuple(name for topic in topics for name in topic.programs))


def decode(image: Kernel, ran: Ran) -> Path:
    """The kernel's log of @ran with source lines in its backtraces, as
    console-decoded.log beside it."""
    path = ran.path / "console-decoded.log"
    with open(ran.console, "rb") as log, open(path, "wb") as out:
        subprocess.run([image.path / "decode_stacktrace.sh", image.path / "vmlinux"], stdin=log, stdout=out,
                       stderr=subprocess.DEVNULL, cwd=image.path,
                       env={**os.environ, "CROSS_COMPILE": arch(image.config).cross})
    return path


def boot(image: Kernel, tests: Path, name: str, script: str, label: str, cpus: int = 2, memory: str = "",
         timeout: float = 900, accel: str = "tcg", icount: bool = False, round_robin: bool = False,
         plugin: Callable[[Kernel, Path], str] | None = None) -> Ran:
    """Boot @image in the guest of its architecture, in a new run directory
    called @name that has the installed kselftests @tests in kselftest/, the
    checks of the tracing tools in trace/, and scripts/, and run @script there:
    bash, but on arm64 busybox's sh.  @memory: as the guest's kind has it, or
    nothing for its default; @accel, @icount and @round_robin are qemu.boot()'s;
    @plugin: what gives QEMU's -plugin, of the kernel and the run directory (x86-64
    under TCG; see plugin.py); @timeout: seconds.  Where the log has reports, it is there with
    source lines, too.  Raises Failure as watch() does."""
    run_dir = run_directory(name)
    shutil.copytree(tests, run_dir / "kselftest")
    shutil.copytree(ROOT / "scripts" / "trace", run_dir / "trace")
    # Guests that have this machine's root have its checkout, too.
    (run_dir / "scripts").symlink_to(ROOT / "scripts")
    options = {"cpus": cpus, "timeout": timeout, "label": label} | ({"memory": memory} if memory else {})
    target = arch(image.config)
    if target == ARM64:
        ran = arm64.boot(image, run_dir, script, **options)
    elif target == UM:
        ran = um.boot(image, run_dir, script, **options)
    else:
        ran = qemu.boot(image, run_dir, script, accel=accel, icount=icount, round_robin=round_robin,
                        plugin=plugin(image, run_dir) if plugin else "", **options)
    if ran.reports():
        say(f"guest: {label}: {decode(image, ran)} has its report with source lines")
    return ran


def main() -> int:
    parser = arguments(__doc__, topics="some")
    parser.add_argument("--config", default="trace", choices=(*CONFIGS, *GUESTS), help="default: %(default)s")
    parser.add_argument("--exec", help="run this and leave, with the kselftests in ./kselftest (default: a shell)")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds (default: %(default)s)")
    args = parser.parse_args()
    topics = chosen_topics(args.topic, args.base)
    if args.exec is None and (args.config in GUESTS or not sys.stdin.isatty()):
        raise Failure("a shell takes a terminal, and a kernel for QEMU on x86-64: give --exec")
    need("source", "build", "guest", "tests", *(["ports"] if arch(args.config) == ARM64 else []))
    repo = repository(args.base, args.kdir)
    label = "+".join(topic.name for topic in topics)
    image, tests = build_guest(repo, args.base, apply(repo, args.base, topics), args.config, topics, label)
    if args.exec is None:
        return qemu.shell(image, tests)
    ran = boot(image, tests, f"exec-{args.config}", args.exec, f"{label} {args.config}", timeout=args.timeout)
    print(ran.output.read_text(errors="replace"), end="")
    return 1 if ran.status is None else ran.status


if __name__ == "__main__":
    run(main)
