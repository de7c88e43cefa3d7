#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Boot a kernel in a guest under virtme-ng, run one script there, keep its log.

The guest's root is this machine's, read-only; the run's directory is mounted
on /mnt, and all that goes in or comes out lies there.
"""

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from build import Kernel
from install import need, search_path, tool
from project import CONFIGS, Failure, arguments, cache, output, run, say, tail, write_json

# What must not be in the log of a guest, by who says it.  The first that
# matches a line names it, so the general ones come last.
REPORTS = {
    "kasan": r"KASAN: ",
    "kcsan": r"KCSAN: ",
    "ubsan": r"UBSAN: ",
    "lockdep": r"possible circular locking|possible recursive locking|inconsistent lock state"
               r"|INFO: possible|suspicious RCU usage|bad unlock balance|held lock freed"
               r"|trying to register non-static key",
    "rcu": r"rcu: INFO: |rcu_\w+ detected stalls|self-detected stall",
    "hung task": r"INFO: task .* blocked for more than|soft lockup|hung_task:",
    "memory": r"Bad page state|page allocation failure|list_(add|del) corruption|Out of memory"
              r"|BUG [\w-]+ \((?:Not tainted|Tainted)|Poison overwritten|Redzone overwritten|Object already free",
    "file system": r"EXT4-fs error|EXT4-fs \(\S+\): error|XFS \(\S+\): (?:Corruption|Metadata|Assertion|Internal error)"
                   r"|XFS: Assertion failed|VFS: Busy inodes|Buffer I/O error|I/O error, dev ",
    "panic": r"Kernel panic",
    "bug": r"\bBUG: |kernel BUG at|Oops:|general protection fault",
    "warning": r"WARNING: ",
}


# What a kernel reports that ran into a breakpoint that it had taken back: under
# TCG, one boot of 7.3.4 in ten did, or ended without a word, while the kernel
# patched its code.  BOOTS is how often a guest is booted that dies of it before
# it comes to its script.
STALE = "Oops: int3"
BOOTS = 3

# Shell that gives a guest swap to reclaim tmpfs to: a block device in memory.
SWAP = """
[ -d /sys/kernel/config/nullb ] || mount -t configfs configfs /sys/kernel/config
mkdir /sys/kernel/config/nullb/nullb_swap
( cd /sys/kernel/config/nullb/nullb_swap && echo 1 > memory_backed && echo 256 > size && echo 1 > power &&
	mkswap /dev/nullb_swap && swapon /dev/nullb_swap ) > swap.log 2>&1 || exit 1
"""


class NeverBegan(Failure):
    """A guest that ended before it ran a line of its script."""


@dataclass(frozen=True)
class Ran:
    """What came out of a guest: the script's exit status, the run's directory
    and in it console.log (the kernel's) and output.log (the script's)."""

    status: int
    path: Path

    @property
    def console(self) -> Path:
        """The kernel's log."""
        return self.path / "console.log"

    @property
    def output(self) -> Path:
        """What the script printed, both streams."""
        return self.path / "output.log"


def reports(console: str, allowed: tuple[str, ...] = ()) -> list[str]:
    """The lines of a kernel log that are reports of lockdep, KASAN, RCU, WARN,
    BUG or the hung-task detector, each with its kind before it; @allowed are
    kinds that the run provokes on purpose."""
    found = []
    for line in console.splitlines():
        for kind, pattern in REPORTS.items():
            if re.search(pattern, line):
                if kind not in allowed:
                    found.append(f"{kind}: {line.strip()}")
                break
    return found


def vng(kernel: Path, run_dir: Path, command: str, cpus: int, memory: str, accel: str,
        icount: bool, by_turns: bool) -> list[str]:
    """The command line that boots @kernel and runs @command in it."""
    argv = [str(tool("vng")), "-v", "--run", str(kernel), "--force-9p", "--disable-monitor",
            "--cpus", str(cpus), "--memory", memory, "--rwdir", f"/mnt={run_dir}", "--cwd", "/",
            "--user", "root", "--append", "ignore_loglevel", "--exec", command]
    if accel == "tcg":
        argv.append("--disable-kvm")
    if icount:
        # One instruction is one nanosecond of the guest's clocks, and idle
        # time passes at once.
        argv.append("--qemu-opts=-icount shift=0,sleep=off")
    elif by_turns and accel == "tcg":
        argv.append("--qemu-opts=-accel tcg,thread=single")
    return argv


def watch(argv: list[str], run_dir: Path, script: str, timeout: float, label: str, console: str = "stderr",
          env: dict | None = None) -> Ran:
    """Run @argv, which boots a guest that runs @run_dir's script.sh with its
    output in output.log and then writes its exit status to status, until it
    ends.  The kernel's log is what @argv prints on the stream @console, or on
    "both"; @timeout is in seconds.  Raises Failure as boot() says."""
    run_dir.mkdir(parents=True, exist_ok=True)
    for name in ("output.log", "status"):
        (run_dir / name).unlink(missing_ok=True)
    (run_dir / "script.sh").write_text(script)
    done = Ran(0, run_dir)
    said = run_dir / "machine.log"
    say(f"guest: {label} (log: {done.console})")
    begin = time.monotonic()
    with open(done.console, "wb") as log, open(said, "wb") as out:
        streams = {name: log if console in (name, "both") else out for name in ("stdout", "stderr")}
        try:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=env, cwd="/", start_new_session=True,
                                     **streams)
        except OSError as err:
            raise Failure(f"cannot run {argv[0]} ({err.strerror}): 'make install' installs what is "
                          "missing") from err
        try:
            while child.poll() is None:
                left = timeout - (time.monotonic() - begin)
                if left <= 0:
                    raise Failure(f"{label} did not finish in {timeout:.0f} s and was stopped; its log is "
                                  f"{done.console}, its output {done.output}, and they end:\n"
                                  f"{tail(done.console)}\n{tail(done.output)}")
                try:
                    child.wait(min(left, 30))
                except subprocess.TimeoutExpired:
                    last = tail(done.output, 1).strip()
                    say(f"  {label}: {time.monotonic() - begin:.0f} s{': ' if last else ''}{last[:90]}")
        finally:
            # QEMU may be a child of the child: take the whole session down.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
    try:
        status = int((run_dir / "status").read_text())
    except (OSError, ValueError):
        how = f"was killed by signal {-child.returncode}" if child.returncode < 0 else f"exited with {child.returncode}"
        kind, when = (Failure, "ended") if done.output.exists() else (NeverBegan, "began")
        raise kind(f"{label} died before its script {when} ({Path(argv[0]).name} {how}); its log is {done.console} "
                   f"and ends:\n{tail(done.console)}\n{tail(said, 5)}") from None
    return Ran(status, run_dir)


def boot(kernel: Kernel, run_dir: Path, script: str, cpus: int = 2, memory: str = "1G",
         accel: str = "tcg", icount: bool = False, by_turns: bool = False, timeout: float = 900,
         label: str = "guest") -> Ran:
    """Boot @kernel and run the bash @script as root in /mnt, which is @run_dir.

    @cpus: virtual CPUs (icount takes one); @memory: QEMU's -m; @timeout:
    seconds of wall time for boot and script together; @by_turns: under TCG,
    the virtual CPUs run by turns, not at once.  Tools that trace patch the
    kernel's code, and a virtual CPU that translates that code meanwhile may
    keep what it was.  One that dies as it boots, of that or without a report in
    its log, is booted again, BOOTS times in all; that is said, and the logs are
    kept as console-died-<n>.log.  Raises Failure with the kept log's path and
    last lines if the guest hangs, panics or never gets to the script; a script
    that fails is told by Ran.status.
    """
    # virtme-ng makes /dev/stdout a port of its own; to programs that open it,
    # it has to be their standard output.
    links = "ln -sf /proc/self/fd/1 /dev/stdout; ln -sf /proc/self/fd/2 /dev/stderr"
    command = links + "; cd /mnt && { bash script.sh > output.log 2>&1 < /dev/null; echo $? > status; sync; }"
    argv = vng(kernel.image, run_dir, command, 1 if icount else cpus, memory, accel, icount, by_turns)
    env = {**os.environ, "PATH": search_path(), "TERM": "dumb"}
    for number in range(1, BOOTS + 1):
        try:
            return watch(argv, run_dir, script, timeout, label, env=env)
        except NeverBegan as err:
            console = Ran(0, run_dir).console
            found = reports(console.read_text(errors="replace"))
            if number == BOOTS or accel != "tcg" or (found and STALE not in found[0]):
                raise
            say(f"guest: {err}")
            died = console.rename(run_dir / f"console-died-{number}.log")
            say(f"guest: {label} is booted again, because TCG ends some as they boot; the log is {died} now")


def kvm_works(kernel: Kernel) -> bool:
    """Whether a guest really boots under KVM, by booting one with a timeout: a
    /dev/kvm that opens is no proof.  The answer is kept for this boot of the
    machine and release of QEMU."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    key = (Path("/proc/sys/kernel/random/boot_id").read_text().strip() + " "
           + output("qemu-system-x86_64", "--version").splitlines()[0])
    known = cache() / "kvm.json"
    if known.exists():
        row = json.loads(known.read_text())
        if row.get("key") == key:
            return row["works"]
    try:
        works = boot(kernel, run_directory("probe-kvm"), "true", cpus=1, accel="kvm", timeout=40,
                     label="probe of KVM").status == 0
    except Failure:
        works = False
        say(f"guest: KVM does not work here; the log is in {cache() / 'run' / 'probe-kvm'}, and 'make clean' lets it "
            "be tried again")
    write_json(known, {"key": key, "works": works})
    return works


def accelerator(wanted: str, kernel: Kernel) -> str:
    """'kvm' or 'tcg' for what the user asked for: auto, kvm or tcg."""
    if wanted == "tcg":
        return "tcg"
    if kvm_works(kernel):
        return "kvm"
    if wanted == "kvm":
        raise Failure("ACCEL=kvm was asked for, but a probe boot under KVM does not work here: use ACCEL=tcg")
    return "tcg"


# The run directories that this process has, and their locks, which end with it.
HELD = {}


def run_directory(name: str) -> Path:
    """A new, empty directory in the cache for a guest run called @name, or
    name.2 and so on while other processes have those; what is left of a former
    run is removed."""
    for number in count(1):
        path = cache() / "run" / (name if number == 1 else f"{name}.{number}")
        path.parent.mkdir(exist_ok=True)
        if path not in HELD:
            lock = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_WRONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            HELD[path] = lock
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path


def shell(kernel: Kernel, kselftest: Path | None) -> int:
    """An interactive guest on this terminal; the installed @kselftest
    directory is on /mnt.  Returns vng's exit status."""
    argv = [str(tool("vng")), "--run", str(kernel.image), "--force-9p", "--cpus", "2", "--memory", "2G",
            "--user", "root"]
    if kselftest:
        argv += ["--rodir", f"/mnt={kselftest}"]
    if not kvm_works(kernel):
        argv.append("--disable-kvm")
    env = {**os.environ, "PATH": search_path()}
    say(f"guest: {shlex.join(argv)}")
    return subprocess.call(argv, env=env)


def main() -> int:
    """Boot the patched guest of a topic: interactively, or for one command."""
    # The build steps are only needed by this program, not by boot()'s users.
    from build import kernel, kselftests
    from fetch import repository
    from project import base, need_series, topic
    from tree import apply

    parser = arguments(__doc__)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--config", default="trace", choices=CONFIGS, help="default: %(default)s")
    parser.add_argument("--exec", help="run this and leave (default: a shell)")
    args = parser.parse_args()
    on = base(args.base)
    one = need_series(topic(args.topic), on)
    need("source", "build", "guest", "tests")
    repo = repository(on, args.kdir)
    revision = apply(repo, on, [one])
    patched = kernel(repo, on, revision, args.config, one.name)
    tests = kselftests(repo, revision, [one.kselftest])
    if args.exec is None:
        if not sys.stdin.isatty():
            raise Failure("make shell needs a terminal: run it from one, or give --exec")
        return shell(patched, tests)
    run_dir = run_directory("exec")
    shutil.copytree(tests, run_dir / "kselftest")
    ran = boot(patched, run_dir, args.exec, label=f"{one.name} {args.config}")
    print(ran.output.read_text(errors="replace"), end="")
    return ran.status


if __name__ == "__main__":
    run(main)
