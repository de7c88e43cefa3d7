#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Make an archive with which any x86-64 Linux times the series: kernels of the base and
the series, or of one topic and what it is compared with, as User-Mode Linux, and what
runs them.

It takes neither root, KVM, a reboot nor a compiler there.  What comes back is a
file that `make report ADD=` takes in.  UNIXBENCH= of the environment names a checkout of
UnixBench, whose programs then run on the base and on that with all series.
"""

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from core.command import arguments, run
from core.install import need
from core.locks import data_home
from core.model import ALL, ROOT, Base, Topic, chosen_topics, measurable
from core.process import Failure, output, say, sha256
from measure import unixbench
from measure.bench import record, revisions, timing
from reports.laps import BASE
from source.build import Kernel, host_programs, kernel
from source.fetch import repository
from source.programs import valid_checkout
from source.tree import code_of

# The archive's own programs, and those modules of scripts/ that ./run takes.
OWN = ROOT / "scripts/measure/bundle"
MODULES = ("core/machine", "reports/laps", "reports/stats")
# The claims that need no kernel, in regress/portable/.
PORTABLE = ("guard", "numbers", "pages")
BENCHMARK = "pid/pid_alloc_bench"        # which one job runs
MOST_BYTES = 80 << 20
IMAGE = "16M"           # of an ext4 file system, with room for a file of each CPU
LONG_AGO = 1767225600   # 2026 began: the archive does not say when it was made
MINUTES, LONGER = 10, 10    # that ./run takes by default, and so much more with UnixBench

# What is timed: by job, its lines as init.c has them; a line that is a row has a name.
# {cpus} is the number of the guest's CPUs, {half} half of it.
JOBS = {
    "pid": (
        ("alloc_pid() and free_pid()", "bench pid 1 {cpus}"),
        ("alloc_pid() and free_pid() of 32", "bench pid 32 {cpus}"),
        ("thread, created and joined", "run /bin/pid_alloc_bench --op thread --procs {cpus} --seconds 0.3 --json"),
    ),
    "read": (
        ("", "ext4"),
        ("", "files /tmp/file 0"),
        ("", "files /tmp/ext4/file {cpus}"),
        ("ext4, 64 B, one page", "bench pread 64 {cpus} /tmp/ext4/file"),
        ("ext4, 64 B, a file each", "bench pread-own 64 {cpus} /tmp/ext4/file"),
        ("ext4, 4096 B, one page", "bench pread 4096 {cpus} /tmp/ext4/file"),
        ("tmpfs, 64 B, one page", "bench pread 64 {cpus} /tmp/file"),
    ),
    "pipe": (
        ("pipe, 64 B, half of the tasks write", "bench pipe 64 {half} {half}"),
        ("pipe, 64 KiB, half of the tasks write", "bench pipe 65536 {half} {half}"),
        ("pipe, 64 KiB, the same, bound to CPUs", "bench pipe-bound 65536 {half} {half}"),
    ),
    "unixbench": (
        ("pipe throughput, a copy a CPU", "copies {cpus} pipe 1"),
        ("context switching, a copy a CPU", "copies {cpus} context1 1"),
        ("process creation, a copy a CPU", "copies {cpus} spawn 1"),
        ("execl, a copy a CPU", "copies {cpus} execl 1"),
        # KB a second are as many blocks.
        ("file copy 1 KiB, a copy a CPU", "copies {cpus} fstime -c -t 1 -b 1024 -m 2000"),
    ),
}
JOB_OF = {"pid": "pid", "pageguard": "read", "filemap": "read", "pipe": "pipe", ALL.name: ALL.name}
ALL_SERIES = "all-series"

README = """hotpaths for {tag}: what patch series do on this machine

    ./run

takes {minutes} minutes and prints a table: throughput with 1, 2, 4, ... CPUs, of each
kernel in relation to Linux {version}. Send back the JSON file that it writes.
'./run --help' has --cpus and --minutes; Ctrl-C keeps what was measured. It takes no
root, and changes nothing. A gigabyte of memory has to be free.

The kernels run natively as User-Mode Linux, with the benchmark within the kernel:
system calls and page faults are far dearer there than on a machine, and are not what
is timed. kernels/config is their configuration.
{unixbench}
portable/ has the mechanisms without a kernel: './portable/guard', './portable/numbers',
'./portable/pages', and their sources.

Made from commit {commit} of hotpaths, whose patches/ and scripts/um/ have all that is
not in Linux {version}. GPL-2.0.
"""
UNIXBENCH = """
The programs of {version} do go through system calls. They run
on the base and on all series together; unixbench/ has their sources.
"""


def job_rows(job: str) -> list[dict]:
    """The rows of @job: "row", its name, and the "line" of the job that it is; "bytes"
    where these are what is counted."""
    found = []
    for line, (name, words) in enumerate(JOBS[job]):
        if name:
            counts = words.split()[1].startswith("pipe")
            found.append({"row": name, "line": line, **({"bytes": int(words.split()[2])} if counts else {})})
    return found


def kernels(base: Base, repo: Path, topics: list[Topic]) -> list[tuple[dict, Kernel]]:
    """The kernels of @topics, which may have ALL, for @base, the base first: what the
    archive says of each, and its image.  What a topic is compared with is there if it is
    the only one: the time of ./run is for all kernels."""
    found: dict[str, tuple[dict, Kernel]] = {}
    for topic in topics:
        compared = unixbench.sides(base, repo) if topic == ALL else revisions(repo, base, topic)
        if len([one for one in topics if one != ALL]) > 1:
            compared = {side: compared[side] for side in ("baseline", "patched")}
        for side, timed in timing(topic, compared).items():
            series = ALL_SERIES if topic == ALL else topic.name
            name = {"baseline": BASE, "patched": series, topic.replaces: topic.replaces}.get(
                side, f"{topic.name}-{side}")
            image = kernel(timed.repo, timed.base, timed.revision, "um-time", f"{topic.name}-{side}")
            known = record(side, compared[side], image) | {"timed code": code_of(timed.repo, timed.revision)}
            own, _ = found.setdefault(name, ({"name": name, "topic": topic.name, **known, "jobs": []}, image))
            if own["timed code"] != known["timed code"]:
                raise Failure(f"two kernels would be called {name}: give one of the variants another name")
            own["jobs"] = sorted({*own["jobs"], JOB_OF[topic.name]})
    return sorted(found.values(), key=lambda one: one[0]["name"] != BASE)


def unixbench_sources(checkout: Path, to: Path) -> None:
    """Copy what the programs of the @checkout of UnixBench are compiled from to @to."""
    to.mkdir()
    for name in (*unixbench.NAMES, *unixbench.INCLUDED):
        shutil.copy((checkout / unixbench.SOURCE).with_name(f"{name}.c"), to)


def guest_root(root: Path, jobs: list[str], programs: list[Path]) -> None:
    """Make @root what guests have as their root, which they only read; @programs are
    copied to /bin."""
    for name in ("bin", "dev", "jobs", "proc", "tmp"):
        (root / name).mkdir(parents=True)
    output("gcc", "-O2", "-Wall", "-static", "-o", root / "init", OWN / "init.c")
    for path in programs:
        shutil.copy(path, root / "bin")
    for job in jobs:
        (root / "jobs" / job).write_text("".join(f"{words}\n" for _, words in JOBS[job]))
    output("/usr/sbin/mke2fs", "-q", "-F", "-t", "ext4", "-U", "00000000-0000-0000-0000-000000000001",
           root / "ext4.img", IMAGE, env={"E2FSPROGS_FAKE_TIME": str(LONG_AGO)})


def write_contents(top: Path, base: Base, chosen: list[tuple[dict, Kernel]], programs: Path,
                   checkout: Path | None) -> None:
    """Write all that the archive has into the directory @top, but its README; @checkout:
    of UnixBench."""
    jobs = sorted({job for known, _ in chosen for job in known["jobs"]})
    others = unixbench.programs(checkout) if checkout else None
    guest_root(top / "root", jobs, [programs / BENCHMARK, *(others / name for name in unixbench.NAMES if others)])
    if checkout:
        unixbench_sources(checkout, top / "unixbench")
    (top / "kernels").mkdir()
    shutil.copy(chosen[0][1].path / "config", top / "kernels")
    for known, image in chosen:
        known["file"] = f"kernels/{known['name']}"
        output("strip", "-o", top / known["file"], image.image)
    shutil.copy(OWN / "run.py", top / "run")
    (top / "run").chmod(0o755)
    for name in MODULES:
        to = top / "lib" / f"{name}.py"
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "scripts" / f"{name}.py", to)
    (top / "portable").mkdir()
    for name in PORTABLE:
        shutil.copy(programs / "portable" / name, top / "portable")
        shutil.copy(ROOT / "regress" / "portable" / f"{name}.c", top / "portable")
    shutil.copy(ROOT / "regress" / "portable" / "portable.h", top / "portable")
    files = sorted(path for path in top.rglob("*") if path.is_file())
    identity = hashlib.sha256("".join(f"{path.relative_to(top)} {sha256(path)}\n" for path in files).encode())
    (top / "bundle.json").write_text(json.dumps(
        {"bundle": identity.hexdigest()[:12], "base": base.name, "tag": base.tag, "minutes": minutes(checkout),
         "jobs": {job: job_rows(job) for job in jobs}, "kernels": [known for known, _ in chosen]}, indent=1) + "\n")


def minutes(checkout: Path | None) -> int:
    """What ./run takes by default."""
    return MINUTES + (LONGER if checkout else 0)


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """@member without what differs from machine to machine."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mtime = LONG_AGO
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


def pack(top: Path, archive: Path) -> None:
    """Pack the directory @top into @archive, all or nothing; Failure where it is too
    large to be passed around."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_name(archive.name + ".part")
    try:
        # The window has all kernels, which are much the same.
        with tarfile.open(partial, "w:xz", preset=9) as out:
            out.add(top, top.name, filter=anonymous)
        if partial.stat().st_size > MOST_BYTES:
            raise Failure(f"the archive has {partial.stat().st_size >> 20} MB, and {MOST_BYTES >> 20} are the limit: "
                          "name fewer topics with TOPIC=")
        partial.rename(archive)
    finally:
        partial.unlink(missing_ok=True)


def main() -> None:
    parser = arguments(__doc__, topics="some")
    parser.add_argument("--out", type=Path, help="the directory of the archive (default: beside packages of make deb)")
    args = parser.parse_args()
    base = args.base
    checkout = Path(os.environ["UNIXBENCH"]) if os.environ.get("UNIXBENCH") else None
    if checkout:
        valid_checkout(checkout, "UNIXBENCH", "UnixBench", unixbench.SOURCE)
    topics = [topic for topic in measurable(chosen_topics(args.topic, base)) if topic.name in JOB_OF]
    if not base.uml or not topics:
        raise Failure(f"nothing is timed of these on {base.name}: name some of {', '.join(JOB_OF)} with TOPIC=")
    need("source", "build", "guest")
    chosen = kernels(base, repository(base, args.kdir), [*topics, *([ALL] if checkout else [])])
    programs = host_programs([BENCHMARK, *(f"portable/{name}" for name in PORTABLE)])
    archive = (args.out or data_home() / "bundle") / f"hotpaths-{base.name}.tar.xz"
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch) / f"hotpaths-{base.name}"
        top.mkdir()
        write_contents(top, base, chosen, programs, checkout)
        (top / "README").write_text(README.format(
            tag=base.tag, version=base.version, commit=output("git", "-C", ROOT, "rev-parse", "HEAD"),
            minutes=minutes(checkout),
            unixbench=UNIXBENCH.format(version=unixbench.version(checkout)) if checkout else ""))
        say(f"bundle: packing {len(chosen)} kernels: {', '.join(one['name'] for one, _ in chosen)}")
        pack(top, archive)
    say(f"bundle: {archive}, {archive.stat().st_size / 1e6:.1f} MB: 'tar xf' it anywhere, and './run' there")


if __name__ == "__main__":
    run(main)
