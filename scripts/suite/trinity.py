# SPDX-License-Identifier: GPL-2.0
"""trinity, a fuzzer: system calls with arguments that it makes up, by a seed.

What its calls return proves nothing; a report in the kernel's log, or a guest
that ends, does.
"""

import re

from ktap import FAILED, PASSED
from suite import Had, Program, Suite, Where, debian_version

GROUPS = {
    "pipes": "pipe pipe2 splice tee vmsplice read write readv writev preadv2 pwritev2 poll ppoll select pselect6 "
             "fcntl dup dup2 dup3 sendfile ioctl epoll_ctl epoll_wait close",
    "files": "read pread64 readv preadv preadv2 write pwrite64 pwritev2 copy_file_range mmap munmap msync fsync "
             "readahead fadvise64 lseek sendfile splice sync_file_range",
    "memory": "mmap munmap mremap mprotect mincore mlock mlock2 munlock msync userfaultfd memfd_create read pread64 "
              "process_vm_readv process_vm_writev migrate_pages move_pages mbind",
    # Those that take pages from others' maps: flush_tlb_mm() of User-Mode Linux
    # then walks the VMAs of an mm whose lock is not held, which lockdep reports.
    "holes": "fallocate truncate ftruncate madvise process_madvise remap_file_pages mmap munmap read pread64 write "
             "pwrite64 readahead fadvise64 mincore",
    "tasks": "wait4 waitid pidfd_open pidfd_getfd pidfd_send_signal kill tgkill setns unshare getpgid setpgid getsid "
             "setsid prctl ptrace get_robust_list execve exit_group",
}
SEEDS = (29, 30, 31)
SECONDS = 45
CHILDREN = 8
# It does not run as root, and dies of sockets that the kernel does not have.
RUN = (f"chmod 777 . && exec timeout -s INT -k 10 {SECONDS} setpriv --reuid=65534 --regid=65534 --clear-groups "
       f"trinity -q -l off -C {CHILDREN} --disable-fds=sockets --disable-fds=perf ")
CALLS = re.compile(r"^\[main\] Ran [1-9]\d* syscalls", re.M)


def get(_where: Where) -> Had:
    """Debian's."""
    return Had(debian_version("trinity"), tuple(
        Program(f"{name}-{seed}", RUN + f"-s {seed} -N 1000000000 " + " ".join(f"-c {call}" for call in calls.split()),
                SECONDS + 60)
        for name, calls in GROUPS.items() for seed in SEEDS))


def judge(_status: int, said: str) -> tuple[str, str]:
    """It has to have made calls: how it ended says no more, since it may well kill
    itself."""
    return (PASSED, "") if CALLS.search(said) else (FAILED, "made no calls")


SUITE = Suite("trinity", "a fuzzer, with the system calls that the series change", get, judge,
              native=("pipes-*", "files-*", "memory-*", "tasks-*"), emulated=("holes-29",), fuzzer=True)
