# SPDX-License-Identifier: GPL-2.0
"""fsx of xfstests: random reads, writes, maps, truncates and holes in one file,
each of which is compared with what should be there."""

from __future__ import annotations

from pathlib import Path

from core.locks import cache
from core.process import logged, output
from prove.suite import Had, Program, Suite, Where, checkout, shell_of
from source.programs import built_suite, fingerprint

# What xfstests' configure would find on every Linux of today.
HEADERS = ("ASSERT", "DIRENT", "ERR", "ERRNO", "LIBGEN", "LINUX_FALLOC", "MALLOC", "STDLIB", "STRING", "STRINGS",
           "SYS_FCNTL", "SYS_IOCTL", "SYS_MMAN", "SYS_PARAM", "SYS_STAT", "SYS_STATVFS", "SYS_TIME", "SYS_TYPES",
           "SYS_WAIT", "TIME", "UNISTD", "WAIT")
DEFINES = (*(f"HAVE_{name}_H" for name in HEADERS), "STDC_HEADERS", "FALLOCATE", "HAVE_COPY_FILE_RANGE",
           "_GNU_SOURCE", "_FILE_OFFSET_BITS=64")
# Half of a million operations of any length, and half of them short, with many
# small reads in a small file: what filemap's series copies without a reference.
OPERATIONS = 500_000
MIXES = {"any": "-l 262144 -o 65536", "small": "-l 20000 -o 300"}
SHORT_OPERATIONS = 20_000
SEED = 29
SYSTEMS = ("tmpfs", "ext4", "xfs")
# The page cache is dropped all the while: reads race with that.
DROPPED = ("ext4", "xfs")
# User-Mode Linux flushes the TLB of another CPU only when that enters the kernel.  What a
# task writes to its map after the page was cleaned for writeback is then lost, which
# fsx found on the base (zeroes after 109,020 operations on ext4).  So there nothing
# writes to maps of files that are written back.  In QEMU it does, in fewer operations,
# which take ten times as long; its guests have no XFS.
NO_MAPPED_WRITES, MAPPED = " -W", "mapped-"
# What the names of programs begin with; their operations, file systems and seconds, and
# what fsx is told where the cache is dropped.
RUNS = (("", OPERATIONS, SYSTEMS, 1800, NO_MAPPED_WRITES),
        ("short-", SHORT_OPERATIONS, SYSTEMS, 60, NO_MAPPED_WRITES),
        (MAPPED, 20_000, ("ext4",), 300, ""))

def compile_fsx(source: Path, to: Path) -> None:
    (to / "config.h").write_text("")
    logged("fsx", ["gcc", "-O2", "-w", "-include", "getopt.h", *(f"-D{name}" for name in DEFINES), f"-I{to}",
                   f"-I{source / 'src'}", "-o", to / "fsx", source / "ltp/fsx.c"], cache() / "log" / "suite-fsx.log")


def programs() -> tuple[Program, ...]:
    """fsx on each file system, with each mix, and a short run of each; and in QEMU, with
    writes to maps, on one that has none natively."""
    found = []
    for before, count, systems, seconds, dropped in RUNS:
        for system in systems:
            drop, more = ("dropping && ", dropped) if system in DROPPED else ("", "")
            for mix, options in MIXES.items():
                found.append(Program(f"{before}{system}-{mix}",
                                     f"mountpoint -q /tmp/{system} && {drop}$SUITE/fsx -q -N {count} -S {SEED} "
                                     f"{options}{more} -P . /tmp/{system}/{before}{mix}", seconds))
    return tuple(found)


def get(where: Where) -> Had:
    source = checkout(where, "XFSTESTS", "xfstests", "ltp/fsx.c")
    blob = output("git", "hash-object", "--no-filters", source / "ltp/fsx.c")
    files = built_suite("fsx", [blob, *DEFINES, fingerprint(source / "src")], lambda to: compile_fsx(source, to))
    return Had(f"xfstests, fsx.c of blob {blob[:12]}", programs(), files)


SUITE = Suite("fsx", "fsx of xfstests, a million operations on each file system", get, short=("short-*",),
              setup=shell_of("fsx"), native=(*(f"{system}-*" for system in SYSTEMS), "short-*"),
              emulated=(f"{MAPPED}*",))
