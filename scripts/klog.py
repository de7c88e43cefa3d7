# SPDX-License-Identifier: GPL-2.0
"""Read a kernel's log: what in it is a report of something wrong."""

import re
from pathlib import Path

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

# Data races that KCSAN may find, by the functions that it names, in the order of
# their names, and why they may stay.  Whoever adds one has looked at both stacks.
PREV_POS = "tasks that read by one struct file share f_ra.prev_pos, a hint for readahead, as on 7.3.4"
RACES = {
    ("_copy_to_iter", "copy_folio_from_iter_atomic"):
        "a file is read while somebody writes to it: user space has to cope with what it gets, as on 7.3.4",
    ("filemap_read",): PREV_POS,
    ("filemap_read", "filemap_read"): PREV_POS,
    ("filemap_read", "page_cache_sync_ra"): PREV_POS,
}
# Of a race that it saw one side of, KCSAN names a place in one function.
RACE = re.compile(r"KCSAN: data-race in (?:(\S+) / (\S+)|(\S+)\+0x)")


def known_race(line: str) -> bool:
    """Whether @line of a kernel log is KCSAN's report of one of RACES."""
    found = RACE.search(line)
    return found is not None and tuple(sorted(filter(None, found.groups()))) in RACES



def reports(console: str) -> list[str]:
    """The lines of a kernel log that are reports of lockdep, KASAN, RCU, WARN,
    BUG, the hung-task detector or KCSAN, but for known races, each with its kind
    before it."""
    found = []
    for line in console.splitlines():
        kind = next((kind for kind, pattern in REPORTS.items() if re.search(pattern, line)), None)
        if kind and not known_race(line):
            found.append(f"{kind}: {line.strip()}")
    return found


def lockdep_off(run_dir: Path) -> str:
    """Why the tests of @run_dir prove nothing about locks: lockdep switches
    itself off at its first report, or where it runs out of memory.  Empty where
    it is on, or is not in the kernel."""
    path = run_dir / "lockdep_stats"
    text = path.read_text() if path.exists() else ""
    if not text or " debug_locks:" not in text or text.split("debug_locks:")[1].split()[0] == "1":
        return ""
    return "lockdep was off when the tests had ended: look for its report in the log"
