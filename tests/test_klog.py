# SPDX-License-Identifier: GPL-2.0
"""Finding reports in a kernel's log."""


from support import Case

# isort: split
from guests import klog

BAD = {
    "lockdep": "[    5.1] WARNING: possible circular locking dependency detected",
    "recursion": "[    5.1] WARNING: possible recursive locking detected",
    "lock state": "[    5.1] WARNING: inconsistent lock state",
    "RCU use": "[    5.1] WARNING: suspicious RCU usage",
    "unlock": "[    5.1] WARNING: bad unlock balance detected!",
    "kasan": "[    6.2] BUG: KASAN: slab-use-after-free in anon_pipe_write+0x1f/0x5c0",
    "kcsan": "[    6.3] BUG: KCSAN: data-race in filemap_read_guarded / folio_ref_freeze",
    "kcsan one": "[    6.3] BUG: KCSAN: data-race in filemap_read / filemap_read_guarded",
    "kcsan unknown": "[    6.3] BUG: KCSAN: data-race in filemap_read_guarded+0x10/0x20",
    "stall": "[   26.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "self stall": "[   26.0] rcu: INFO: rcu_sched self-detected stall on CPU",
    "hung task": "[  245.3] INFO: task pipe_load:123 blocked for more than 120 seconds.",
    "soft lockup": "[   48.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [pipe_load:99]",
    "warn": "[    7.3] WARNING: CPU: 1 PID: 77 at fs/pipe.c:123 pipe_release+0x10/0x20",
    "bug": "[    8.4] kernel BUG at mm/filemap.c:2345!",
    "oops": "[    8.4] Oops: 0000 [#1] SMP KASAN NOPTI",
    "null": "[    8.4] BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "sleep": "[    8.4] BUG: sleeping function called from invalid context at mm/page_alloc.c:12",
    "panic": "[    9.5] Kernel panic - not syncing: Fatal exception",
    "page": "[    9.6] Bad page state in process pipe_test  pfn:01234",
    "list": "[    9.7] list_del corruption. prev->next should be ffff8880, but was dead",
    "ubsan": "[    9.8] UBSAN: array-index-out-of-bounds in fs/pipe.c:1:2",
    "static key": "[    5.2] INFO: trying to register non-static key.",
    "slub": "[    9.7] BUG kmalloc-64 (Not tainted): Poison overwritten",
    "ext4": "[    9.8] EXT4-fs error (device loop0): ext4_find_entry:1463: inode #2: comm test",
    "xfs": "[    9.8] XFS (loop1): Corruption detected. Unmount and run xfs_repair",
    "xfs assert": "[    9.8] XFS: Assertion failed: ip->i_nblocks == 0, file: fs/xfs/xfs_inode.c, line: 1",
    "vfs": "[    9.8] VFS: Busy inodes after unmount of loop0. Self-destruct in 5 seconds.",
    "oom": "[    9.9] Out of memory: Killed process 88 (stress-ng)",
}

INNOCENT = """\
[    0.000000] Linux version 6.18.15 (hotpaths@hotpaths) (gcc (Debian 12.2.0-14) 12.2.0) #1 SMP
[    0.000000] Command line: virtme_hostname=virtme-ng panic=-1 ignore_loglevel hung_task_panic=0
[    0.100000] kasan: KernelAddressSanitizer initialized (generic)
[    0.100000] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
[    0.100000]  memory used by lock dependency info: 11921 kB
[    0.100000] rcu: Hierarchical RCU implementation.
[    0.100000] rcu: \tRCU lockdep checking is enabled.
[    0.100000] rcu: \tRCU CPU stall warnings timeout set to 21 (rcu_cpu_stall_timeout).
[    0.200000] Spectre V1 : Mitigation: usercopy/swapgs barriers and __user pointer sanitization
[    0.300000] Debug: sleeping function check, bug table and oops=panic are set up
[    1.000000] Memory cgroup out of memory: Killed process 70 (pipe_test) total-vm:2048kB
[    1.050000] EXT4-fs (loop0): mounted filesystem 1 r/w with ordered data mode. Quota mode: disabled.
[    1.060000] XFS (loop1): Unmounting Filesystem 2
[    1.070000] BUG: KCSAN: data-race in copy_folio_from_iter_atomic / _copy_to_iter
[    1.080000] BUG: KCSAN: data-race in filemap_read+0xfe/0x800
[    1.100000] FAULT_INJECTION: forcing a failure.
[    1.200000] x86/mm: Checked W+X mappings: passed, no W+X pages found.
[    1.300000] reboot: Power down
"""


FLUSH = """\
[    6.1] =============================
[    6.1] WARNING: suspicious RCU usage
[    6.1] -----------------------------
[    6.1] lib/maple_tree.c:810 suspicious rcu_dereference_check() usage!
[    6.1] Call Trace:
[    6.1]  flush_tlb_mm+0x5b/0xc0
"""
CLONE_FAILED = "[    6.0] start_userspace : clone failed, errno = 11\n"
MM_LIST = "[    6.2] BUG: KASAN: slab-use-after-free in __list_add_valid_or_report+0x1f/0x5c\n"


class Reports(Case):
    """klog.reports()."""

    def test_each_kind(self):
        """Every kind of report is found, alone and between innocent lines."""
        for name, line in BAD.items():
            found = klog.reports(INNOCENT + line + "\n" + INNOCENT)
            self.assertEqual(len(found), 1, name)
            self.assertTrue(found[0].endswith(line), name)

    def test_innocent_lines(self):
        """A healthy boot has no report, though it speaks of KASAN, RCU and locks."""
        self.assertEqual(klog.reports(INNOCENT), [])

    def test_races(self):
        """The functions of known races are in the order that they are looked up in."""
        self.assertEqual([tuple(sorted(pair)) for pair in klog.RACES], list(klog.RACES))

    def test_arch_um(self):
        """A known report of arch/um is none, and only with what tells it from others;
        what the machine was short of is told."""
        self.assertEqual(klog.reports(INNOCENT + FLUSH + CLONE_FAILED + MM_LIST), [])
        for text in (FLUSH.replace("flush_tlb_mm", "unmap_vmas"), MM_LIST,
                     FLUSH.replace("suspicious RCU usage", "bad unlock balance")):
            self.assertTrue(klog.reports(text)[0].startswith(("lockdep", "kasan")), text)
        for text, words in ((CLONE_FAILED, "start one more process"),
                            (CLONE_FAILED.replace("11", "12"), "a process takes"),
                            ("[ 1.0] UML ran out of memory on the host side! This can happen", "more memory"),
                            ("[ 1.0] Unexpectedly lost MM child! Affected tasks will segfault.", "is killed")):
            self.assertIn(words, klog.short_of(INNOCENT + text))
        self.assertEqual(klog.short_of(INNOCENT), "")

    def test_exact_kinds(self):
        """Whoever made a report names it, also where the line says BUG or
        WARNING as well."""
        kinds = {"kcsan": "kcsan", "kcsan one": "kcsan", "kcsan unknown": "kcsan"}
        kinds |= {"kasan": "kasan", "ubsan": "ubsan", "panic": "panic", "warn": "warning"}
        for kind, names in (("lockdep", ("lockdep", "recursion", "lock state", "RCU use", "unlock", "static key")),
                            ("rcu", ("stall", "self stall")), ("hung task", ("hung task", "soft lockup")),
                            ("bug", ("bug", "oops", "null", "sleep")), ("memory", ("page", "list", "oom", "slub")),
                            ("file system", ("ext4", "xfs", "xfs assert", "vfs"))):
            kinds |= dict.fromkeys(names, kind)
        self.assertEqual({name: klog.reports(line)[0].partition(": ")[0] for name, line in BAD.items()}, kinds)
