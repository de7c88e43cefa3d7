# SPDX-License-Identifier: GPL-2.0
"""What is measured of the filemap series."""

from __future__ import annotations

from pathlib import Path

from core.process import Failure
from measure import counters

from measure import Measurement, insns, json_lines, lines, native, row, size_name

BENCH = "kselftest/regress/filemap/small_read_bench"
# The benchmark's workers have a name of their own, so that what it does beside
# them is not counted.
MINE = 'comm == "small_read"'
REFERENCES = {f"page_ref/page_ref_{event}": MINE
              for event in ("mod", "mod_and_return", "mod_and_test", "mod_unless", "set", "freeze", "unfreeze")}

TRACED = 300            # reads that are traced
COUNTED = 2000          # reads that are counted by instructions
DELETED = 200           # files whose pages are deleted, or that are read once
TINY, SMALL, LARGE, MANY = 60, 4096, 1 << 20, 16 << 20

MOUNT = """
set -e
for fs in ext4 xfs; do
	mkdir -p /tmp/$fs
	truncate -s 400M /tmp/$fs.img
	mkfs.$fs -q /tmp/$fs.img
	mount -o loop /tmp/$fs.img /tmp/$fs
done
for fs in tmpfs ramfs; do
	mkdir -p /tmp/$fs
	mount -t $fs $fs /tmp/$fs
done
"""
COUNTED_SYSTEMS = ("ext4", "xfs", "tmpfs", "ramfs")
COUNTERS = MOUNT + counters.setup(REFERENCES) + f"""
for fs in {' '.join(COUNTED_SYSTEMS)}; do
	trace_start
	{{
		{BENCH} --dir /tmp/$fs --sizes 1,64,65,4096 --file-size {SMALL},{LARGE} --count {TRACED} --marker --json
		{BENCH} --dir /tmp/$fs --sizes 4096 --file-size {TINY} --count {TRACED} --marker --json
		{BENCH} --dir /tmp/$fs --sizes 64 --file-size {TINY} --offsets end --count {TRACED} --marker --json
		{BENCH} --dir /tmp/$fs --sizes 64 --file-size {LARGE} --offsets random --count {TRACED} --marker --json
		{BENCH} --dir /tmp/$fs --sizes 64 --file-size {LARGE} --offsets sequential --op read --count {TRACED} \
			--marker --json
		{BENCH} --dir /tmp/$fs --sizes 64 --file-size {MANY} --offsets random --write-size {SMALL} --heat 0 \
			--warmup 1 --count {TRACED} --marker --json
	}} > $fs.json
	trace_stop $fs.trace
done
"""
INSTRUCTION_SYSTEMS = ("ext4", "xfs", "tmpfs")
# In the order in which they are written.
DELETED_FILES = ("ext4-deleted.json", "tmpfs-deleted.json")
COUNTED_FILES = (*(f"{fs}.json" for fs in INSTRUCTION_SYSTEMS), *DELETED_FILES)
# Those that let go of cached pages, so that a read can miss.
DROPPING_SYSTEMS = ("ext4", "xfs")


def deletions(*read: str, sizes: tuple[int, ...] = (SMALL, LARGE)) -> str:
    """The script that deletes pages of files of @sizes, in bytes, that were @read
    before as these options of the benchmark say, which may name other sizes."""
    ways = " ".join(f"'--file-size {','.join(map(str, sizes))} {how}'" for how in read)
    return f"""
for how in 'ext4 --delete=truncate' 'ext4 --delete=dontneed' 'tmpfs --delete=truncate'; do
	for read in {ways}; do
		{BENCH} --dir /tmp/$how $read --count {DELETED} --json \\
			>> ${{how%% *}}-deleted.json
	done
done
"""


# Pages are deleted of files that nobody has read from the cache, of others, and of
# some that were only read in large pieces.
INSTRUCTIONS = MOUNT + f"""
for fs in {' '.join(INSTRUCTION_SYSTEMS)}; do
	{BENCH} --dir /tmp/$fs --sizes 1,32,64,65,256,1024,4096,65536 --file-size {SMALL},{LARGE} \\
		--count {COUNTED} --json >> $fs.json
	{BENCH} --dir /tmp/$fs --sizes 64 --file-size {LARGE} --offsets random --count {COUNTED} --json >> $fs.json
	{BENCH} --dir /tmp/$fs --sizes 64 --file-size {MANY} --offsets random --write-size {SMALL} --heat 0 \\
		--warmup 1 --count {COUNTED // 4} --json >> $fs.json
	{BENCH} --dir /tmp/$fs --sizes 64 --file-size {LARGE} --offsets sequential --op read \\
		--count {COUNTED} --json >> $fs.json
	{BENCH} --dir /tmp/$fs --sizes 4096 --file-size {TINY} --count {COUNTED} --json >> $fs.json
	{BENCH} --dir /tmp/$fs --sizes 64,4096 --file-size {TINY} --offsets end --count {COUNTED} --json >> $fs.json
	{BENCH} --dir /tmp/$fs --sizes 64 --file-size {SMALL} --offsets first --warmup 10 --count {DELETED} \
		--json >> $fs.json
	case " {' '.join(DROPPING_SYSTEMS)} " in
	*" $fs "*)
		{BENCH} --dir /tmp/$fs --sizes 64 --file-size {LARGE} --offsets miss --count {COUNTED // 4} --json >> $fs.json
	esac
done
""" + deletions("--heat 0", "--heat 1", f"--large --file-size {LARGE}")


def condition(fs: str, result: dict) -> str:
    """How a row calls a result of the benchmark on file system @fs: the size
    of the reads, the file's size where the small one would have done or has
    less than that, the pattern where it is not one page, 'cold' where pages were
    not read before, 'miss' where they are not cached."""
    words = [fs, size_name(result["size"])]
    if result["size"] <= SMALL < result["file_size"] or result["file_size"] < result["size"] <= SMALL:
        words.append(f"of {size_name(result['file_size'])}")
    if result.get("offsets", "hot") != "hot":
        words.append(result["offsets"])
    if result.get("buffer", "there") != "there":
        words.append(f"memory {result['buffer']}")
    if not result.get("heat", 1):
        words.append("cold")
    return " ".join(words)


def beyond(result: dict) -> bool:
    """Whether @result is of reads of more than a small file has: a row of that
    name is of the large one."""
    return result["size"] > max(result["file_size"], SMALL)


def counter_rows(run: Path) -> list[dict]:
    """How often a pread changes the reference count of a folio."""
    rows = []
    for fs in COUNTED_SYSTEMS:
        parts, results = counters.marked(run / f"{fs}.trace"), json_lines(run / f"{fs}.json")
        if len(parts) != len(results):
            raise Failure(f"{run} has {len(parts)} marks of {len(results)} runs on {fs}: look at the guest's output "
                          "there")
        for (_mark, part), result in zip(parts, results, strict=True):
            if beyond(result):
                continue
            writes = sum(event.name.startswith("page_ref_") for event in part)
            rows.append(row("refcount_writes", "per pread", condition(fs, result), "counter", writes / TRACED))
    if not any(one["value"] for one in rows):
        raise Failure(f"no read changed a reference count in {run}: look at the guest's output there")
    return rows


def instruction_rows(run: Path, names: tuple[str, ...] = COUNTED_FILES) -> list[dict]:
    """insn_per_pread, of the system call, and insn_per_delete, of a page, of what
    ran into the files @names of @run."""
    rows = []
    for name, result, window in insns.windows(run, *names):
        if name in DELETED_FILES:
            pages = result["file_size"] / SMALL
            rows.append(insns.sampled("insn_per_delete", "instructions per page",
                                      ("tmpfs " if name.startswith("tmpfs") else "")
                                      + f"{result['op']}, file of {size_name(result['file_size'])}"
                                      + (", read before" if result["heat"] else "")
                                      + (" by all" if result.get("everywhere") else "")
                                      + (", read by 64KiB" if result.get("large") else "")
                                      + (", others read" if result.get("busy") else ""),
                                      [count / pages for count in window["ops"]]))
        elif not beyond(result):
            # ext4 is what is meant where no file system is named.
            rows.append(insns.sampled("insn_per_pread", "instructions",
                                      condition(Path(name).stem, result).removeprefix("ext4 "), window["ops"]))
    return rows


def native_time(*sizes: int) -> Measurement:
    """The time of preads of @sizes bytes of cached files, of one file and of a file each;
    on XFS and of one open file, of two sizes."""
    few = (64, 4096)
    return native.measurement(
        {f"{fs}, {size} B, {readers}": f"{op} {size} {cpus} {path}"
         for fs, path, wanted in (("tmpfs", "/tmp/file", sizes), ("ext4", "/tmp/ext4/file", sizes),
                                  ("xfs", "/tmp/xfs/file", few))
         for readers, op, cpus in (("1 CPU", "pread", 1), ("2 CPUs, one page", "pread", 2),
                                   ("2 CPUs, a file each", "pread-own", 2),
                                   ("2 CPUs, one open file", "pread-shared", 2))
         for size in (few if op == "pread-shared" else wanted)},
        setup="mount_new ext4 64M\nmount_new xfs 400M\nfiles /tmp/file\nfiles /tmp/ext4/file\nfiles /tmp/xfs/file\n")


NATIVE = native_time(1, 32, 64, 65, 4096)

# One file that each reader has opened, the same one of threads that have opened
# it together, and as what must share nothing, a file for each.
SHARED = MOUNT + """
for fs in tmpfs ext4 xfs; do
	lines --dir /tmp/$fs --op read-one,read-own,read-shared --size 64
	lines --dir /tmp/$fs --op read-one --size 4096
done
"""

MEASUREMENTS = [
    Measurement("writes to the reference count", "trace", COUNTERS, counter_rows),
    insns.measurement(INSTRUCTIONS, instruction_rows),
    lines.measurement(SHARED),
]
