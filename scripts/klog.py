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


def reports(console: str) -> list[str]:
    """The lines of a kernel log that are reports of lockdep, KASAN, RCU, WARN,
    BUG or the hung-task detector, each with its kind before it."""
    found = []
    for line in console.splitlines():
        kind = next((kind for kind, pattern in REPORTS.items() if re.search(pattern, line)), None)
        if kind:
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
