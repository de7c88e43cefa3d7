# SPDX-License-Identifier: GPL-2.0
"""Read a kernel's log: what in it is a report of something wrong."""

import re
from pathlib import Path

# What must not be in the log of a guest, by the checker that says it.  The first that
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

# Data races that KCSAN may find, by the functions that it names, in the order of
# their names, and why they may stay.  Look at both stacks before you add one.
PREV_POS = "tasks that read by one struct file share f_ra.prev_pos, a hint for readahead, as on 7.3.4"
RACES = {
    ("_copy_to_iter", "copy_folio_from_iter_atomic"):
        "a file is read while somebody writes to it: user space has to cope with what it gets, as on 7.3.4",
    ("shmem_get_folio_gfp", "truncate_cleanup_folio"):
        "a folio's flag that its lock is waited for is set while its owner tests others, as on 7.3.4",
    ("filemap_read",): PREV_POS,
    ("filemap_read", "filemap_read"): PREV_POS,
    ("filemap_read", "page_cache_sync_ra"): PREV_POS,
}
# Of a race that it saw one side of, KCSAN names a place in one function.
RACE = re.compile(r"KCSAN: data-race in (?:(\S+) / (\S+)|(\S+)\+0x)")

# Reports of arch/um itself, as on 7.3.4: the pattern of the first line, of a line that
# comes before it or within the BLOCK lines behind it, and the reason.
BLOCK = 80
NO_PROCESS = r"start_userspace : (?:mmap|socketpair|clone) failed, errno = \d+"
KNOWN = (
    (r"suspicious RCU usage", "behind", r"\bflush_tlb_mm\+0x",
     "flush_tlb_mm() walks the VMAs of an mm whose lock is not held"),
    (r"KASAN: .* in (?:__list_\w+|init_new_context|destroy_context|mm_sigchld_irq)\b|list_(?:add|del) corruption",
     "before", NO_PROCESS, "an mm whose process could not be started is freed, but stays on mm_list"),
)
# What User-Mode Linux says where this machine has not what it asks for, and what that is.
SHORT_OF = {
    r"start_userspace : clone failed, errno = 11": "start one more process (ulimit -u, pids.max)",
    r"start_userspace : \w+ failed, errno = 24": "open one more file (ulimit -n)",
    r"start_userspace : \w+ failed": "give it what a process takes",
    r"UML ran out of memory on the host side": "give it more memory (vm.max_map_count)",
    r"Unexpectedly lost MM child": "keep one of its processes, which is killed where memory runs out",
}


def is_known(lines: list[str], place: int) -> bool:
    """Whether the report that begins at lines[@place] is a known one: a race of RACES,
    or one of KNOWN."""
    race = RACE.search(lines[place])
    if race and tuple(sorted(filter(None, race.groups()))) in RACES:
        return True
    return any(re.search(first, lines[place]) and any(re.search(other, line) for line in (
        lines[:place] if where == "before" else lines[place:place + BLOCK])) for first, where, other, _why in KNOWN)


def report_at(lines: list[str], place: int) -> str:
    """lines[@place] with its kind before it where it is a report of lockdep, KASAN, RCU,
    WARN, BUG, the hung-task detector or KCSAN, but for known ones; else nothing."""
    kind = next((kind for kind, pattern in REPORTS.items() if re.search(pattern, lines[place])), "")
    return f"{kind}: {lines[place].strip()}" if kind and not is_known(lines, place) else ""


def reports(console: str) -> list[str]:
    lines = console.splitlines()
    return list(filter(None, (report_at(lines, place) for place in range(len(lines)))))


def short_of(console: str) -> str:
    """What this machine could not do for the guest of User-Mode Linux that left the log
    @console, as a sentence; empty where it could do all."""
    for pattern, words in SHORT_OF.items():
        found = re.search(pattern, console)
        if found:
            return (f"this machine could not {words} for User-Mode Linux ('{found[0]}'), and what failed in the guest "
                    "may come of that: end other programs, or raise the limits, and run it again")
    return ""


def lockdep_off(run_dir: Path) -> str:
    """Why the tests of @run_dir prove nothing about locks: lockdep switches
    itself off at its first report, or where it runs out of memory.  Empty where
    it is on, or is not in the kernel."""
    path = run_dir / "lockdep_stats"
    text = path.read_text() if path.exists() else ""
    if not text or " debug_locks:" not in text or text.split("debug_locks:")[1].split()[0] == "1":
        return ""
    return "lockdep was off when the tests had ended: look for its report in the log"
