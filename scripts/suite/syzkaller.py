# SPDX-License-Identifier: GPL-2.0
"""syzkaller's syz-execprog: programs of system calls, which it makes up and makes
from those of the directory beside this file, run by several tasks at once, with
calls of one program side by side.

What its calls return proves nothing; a report in the kernel's log, or a guest
that ends, does.  Each program is printed before it runs, so that one that breaks
the kernel is at the end of its output, and syz-execprog runs it again.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ktap import FAILED, PASSED
from locks import cache
from process import logged, output, say
from suite import Absent, Had, Program, Suite, Where, built, checkout, fingerprint

# The programs to begin with, by group.
PROGRAMS = Path(__file__).with_suffix("")
GROUPS = {
    "pipes": "pipe pipe2 splice tee vmsplice read write readv writev preadv2 pwritev2 poll ppoll select pselect6 "
             "fcntl$setpipe fcntl$setstatus fcntl$getflags fcntl$setsig fcntl$setown fcntl$dupfd dup dup2 dup3 "
             "sendfile epoll_create1 epoll_ctl$EPOLL_CTL_ADD epoll_wait close pipe2$watch_queue "
             "ioctl$IOC_WATCH_QUEUE_SET_SIZE syz_io_uring_setup syz_io_uring_submit io_uring_enter",
    # User-Mode Linux walks the VMAs of a task without its lock where pages are taken
    # from its maps, which lockdep reports: files are not mapped here, and maps have no
    # holes punched below.
    "files": "open creat memfd_create read pread64 readv preadv preadv2 write pwrite64 pwritev2 copy_file_range "
             "fallocate ftruncate truncate fsync readahead fadvise64 lseek sendfile splice sync_file_range "
             "fcntl$addseals pipe2 close",
    "memory": "mmap munmap mremap mprotect mincore mlock mlock2 munlock msync userfaultfd ioctl$UFFDIO_API "
              "ioctl$UFFDIO_REGISTER ioctl$UFFDIO_UNREGISTER ioctl$UFFDIO_WAKE ioctl$UFFDIO_COPY "
              "ioctl$UFFDIO_ZEROPAGE memfd_create read pread64 write pwrite64 pipe2 vmsplice process_vm_readv "
              "process_vm_writev",
    "tasks": "syz_clone syz_clone3 wait4 waitid waitid$P_PIDFD syz_pidfd_open pidfd_getfd pidfd_send_signal kill "
             "tkill tgkill unshare setns syz_open_procfs$namespace getpid gettid getpgid setpgid getpgrp getsid "
             "prctl$PR_SET_CHILD_SUBREAPER ptrace exit exit_group",
}
# With half a minute to begin, in which it checks which calls the kernel has.
SECONDS = 600
PROCS = 4
# It looks for symbols of the type that they have on x86, and talks to itself through
# the loopback device.
SETUP = """
sed 's/ t _stext/ T _stext/' /proc/kallsyms > /tmp/kallsyms
mount --bind /tmp/kallsyms /proc/kallsyms
ip link set lo up
"""
RAN = re.compile(r"executing program:$", re.M)


def build(source: Path, to: Path) -> None:
    """Build syz-execprog and syz-executor of the syzkaller in @source into the
    directory @to, beside our programs.  The checkout is left as it is."""
    tree, log = to / "tree", cache() / "log" / "suite-syzkaller.log"
    say(f"build: syzkaller (log: {log})")
    shutil.copytree(source, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    log.unlink(missing_ok=True)
    for command in (["go", "build", "-o", to / "syz-sysgen", "./sys/syz-sysgen"],
                    [to / "syz-sysgen"],
                    ["go", "build", "-o", to / "syz-execprog", "./tools/syz-execprog"],
                    # Both say which revision they are of, which has to be the same: a
                    # build without git has "unknown".
                    ["g++", "-O2", "-std=c++17", "-pthread", "-static-pie", "-I.", "-Iexecutor/_include",
                     "-DGOOS_linux=1", "-DGOARCH_amd64=1", "-DHOSTGOOS_linux=1", '-DGIT_REVISION="unknown"',
                     "-o", to / "syz-executor", "executor/executor.cc"]):
        logged(f"syzkaller {Path(command[-1]).name}", command, log, cwd=tree, append=True)
    shutil.rmtree(tree)
    (to / "syz-sysgen").unlink()
    shutil.copytree(PROGRAMS, to / "programs")


def get(where: Where) -> Had:
    """Built from the user's checkout of syzkaller, with Go."""
    source = checkout(where, "SYZKALLER", "syzkaller", "tools/syz-execprog/execprog.go")
    if not shutil.which("go"):
        raise Absent("install Go, which builds syzkaller")
    commit = output("git", "-C", source, "rev-parse", "--short=12", "HEAD").strip()
    ours = [f"{path.name}\n{path.read_text()}" for path in sorted(PROGRAMS.iterdir())]
    files = built("syzkaller", [fingerprint(source), *ours], lambda to: build(source, to))
    return Had(f"syzkaller, commit {commit}", tuple(
        Program(group, f"timeout -s KILL {SECONDS} $SUITE/syz-execprog -executor $SUITE/syz-executor -stress "
                       f"-output -cover=false -procs {PROCS} -syscalls '{','.join(calls.split())}' "
                       f"$SUITE/programs/{group}", SECONDS + 30)
        for group, calls in GROUPS.items()), files)


def judge(_status: int, said: str) -> tuple[str, str]:
    """It has to have run programs; it is ended by force."""
    return (PASSED, "") if len(RAN.findall(said)) > PROCS else (FAILED, "ran no programs")


SUITE = Suite("syzkaller", "programs that syz-execprog makes up of the system calls that the series change", get,
              judge, setup=SETUP, fuzzer=True)
