# SPDX-License-Identifier: GPL-2.0
"""Boot a kernel of x86-64 in QEMU under virtme-ng, run one script there.

The guest's root is this machine's, read-only; the run's directory is mounted
on /mnt, and all that goes in or comes out lies there.
"""

import json
import os
import shlex
import subprocess
from pathlib import Path

from core.install import search_path, tool
from core.locks import cache, write_json
from core.process import Failure, output, say
from guests.klog import reports
from guests.watch import BootFailed, Ran, run_directory, watch
from source.build import Kernel

# The signature of TCG's stale-breakpoint crash: 2 of 41 boots of 7.3.4 ended in it,
# or without a word, while the kernel patched its code.  And what KASAN reports of the
# first interrupt that a CPU takes, where TCG is so slow that its own memory has no shadow yet.  BOOTS is how
# often a guest is booted that dies of the first before it comes to its script, or
# that reports the second before it has an init.
STALE_INT3 = "Oops: int3"
EARLY = "KASAN: wild-memory-access in rcu_is_watching"
INIT = " as init process"
BOOTS = 3


def version(system: str = "x86_64") -> str:
    return output(f"qemu-system-{system}", "--version").splitlines()[0]


def vng(kernel: Path, run_dir: Path, command: str, cpus: int, memory: str, accel: str,
        icount: bool, round_robin: bool, plugin: str = "") -> list[str]:
    """The command line that boots @kernel and runs @command in it; the rest is
    as boot() has it."""
    argv = [str(tool("vng")), "-v", "--run", str(kernel), "--force-9p", "--disable-monitor",
            "--cpus", str(cpus), "--memory", memory, "--rwdir", f"/mnt={run_dir}", "--cwd", "/",
            "--user", "root", "--append", "ignore_loglevel", "--exec", command]
    if accel == "tcg":
        argv.append("--disable-kvm")
    options = []
    if icount or plugin:
        # One instruction is one nanosecond of the guest's clocks, and idle
        # time passes at once.
        options.append("-icount shift=0,sleep=off")
    elif round_robin and accel == "tcg":
        options.append("-accel tcg,thread=single")
    if plugin:
        # vng gives its words to a shell.
        options.append("-plugin " + shlex.quote(plugin))
    if options:
        argv.append(f"--qemu-opts={' '.join(options)}")
    return argv


def boot(kernel: Kernel, run_dir: Path, script: str, cpus: int = 2, memory: str = "1G",
         accel: str = "tcg", icount: bool = False, round_robin: bool = False, timeout: float = 900,
         label: str = "guest", plugin: str = "") -> Ran:
    """Boot @kernel and run the bash @script as root in /mnt, which is @run_dir.

    @cpus: virtual CPUs (icount takes one); @memory: QEMU's -m; @timeout:
    seconds of wall time for boot and script together; @round_robin: under TCG,
    the virtual CPUs run by turns, not at once.  Tools that trace patch the
    kernel's code, and a virtual CPU that translates that code meanwhile may
    keep what it was; @plugin: the value of QEMU's -plugin, for which all @cpus
    run by turns under TCG, with instructions for a clock as icount has it: few
    timer ticks come between then, and a run repeats.

    Under TCG, one that dies as it boots, of STALE_INT3 or without a report in its
    log, is booted again, and so is one with the report EARLY, BOOTS times in
    all; that is said, and the logs are kept as console-died-<n>.log.  Raises
    Failure with the kept log's path and last lines if the guest hangs, panics
    or never gets to the script; a script that fails is told by Ran.status.
    """
    # virtme-ng makes /dev/stdout a port of its own; to programs that open it,
    # it has to be their standard output.
    links = "ln -sf /proc/self/fd/1 /dev/stdout; ln -sf /proc/self/fd/2 /dev/stderr"
    command = links + "; cd /mnt && { bash script.sh > output.log 2>&1 < /dev/null; echo $? > status; sync; }"
    argv = vng(kernel.image, run_dir, command, 1 if icount else cpus, memory, accel, icount, round_robin, plugin)
    env = {**os.environ, "PATH": search_path(), "TERM": "dumb"}
    for number in range(1, BOOTS + 1):
        last = number == BOOTS or accel != "tcg"
        try:
            ran = watch(argv, run_dir, script, timeout, label, env=env)
            if last or not reported_early(ran):
                return ran
        except BootFailed as err:
            ran = Ran(None, run_dir)
            found = ran.reports()
            if last or (found and STALE_INT3 not in found[0] and not reported_early(ran)):
                raise
            say(f"guest: {err}")
        kept = ran.console.rename(run_dir / f"console-died-{number}.log")
        say(f"guest: {label} is booted again, because TCG spoils some boots; the log is {kept} now")


def reported_early(ran: Ran) -> bool:
    """Whether the first report in the log of @ran is EARLY and comes before the
    kernel has started an init."""
    before = ran.console.read_text(errors="replace").split(INIT)[0]
    return any(EARLY in line for line in reports(before)[:1])


def kvm_works(kernel: Kernel) -> bool:
    """Whether a guest really boots under KVM, by booting one with a timeout: a
    /dev/kvm that opens is no proof.  The answer is kept for this boot of the
    machine and release of QEMU."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    key = (Path("/proc/sys/kernel/random/boot_id").read_text().strip() + " "
           + version())
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
