# SPDX-License-Identifier: GPL-2.0
"""Boot an arm64 kernel in a guest that QEMU emulates, run one script there.

Programs of this machine do not run there, so the guest's root is an initramfs
with busybox.  As in the other guests the run's directory is on /mnt, and all
that goes in or comes out lies there.
"""

import gzip
import hashlib
import os
import shutil
from pathlib import Path

from core.locks import cache, lock
from core.model import ROOT
from core.process import output, say
from guests.watch import Ran, watch
from source import fetch
from source.build import Kernel

# Debian's busybox: the file below the root of a mirror (apt names the mirror),
# and its checksum.
BUSYBOX = ("pool/main/b/busybox/busybox-static_1.35.0-4+deb12u1+b1_arm64.deb",
           "732c9135564fc71337e0e05fb4da4d11e6c28c1834bce3e405e575afef2a52f5")
# The scripts in the initramfs, and where each is there.
SOURCES = ROOT / "scripts/guests/initramfs"
SCRIPTS = {"init.sh": "init", "mkfs.ext4.sh": "bin/mkfs.ext4", "timeout.sh": "usr/bin/timeout"}
MOUNT_POINTS = ("dev", "mnt", "proc", "sys", "tmp")
# The file system that mkfs.ext4 there makes: its size in MiB, and the options
# that this machine's mkfs.ext4 makes it with.  Debian has no statically linked
# one, and a dynamic one takes six packages that have to be of one release: far
# more than tests need, which make small and empty file systems.  All that is in
# use has to be at the beginning, since no more than that is written.
EXT4_SIZE = 96
EXT4 = ("-b", "4096", "-E", "packed_meta_blocks=1,lazy_itable_init=0,lazy_journal_init=0")


def fill_initramfs(root: Path) -> None:
    """Put what the initramfs has into the empty directory @root.  Raises
    Failure where busybox cannot be had or mkfs.ext4 does not run."""
    fetch.unpack(fetch.debian_file(*BUSYBOX), ("bin/busybox",), root)
    for directory in (*MOUNT_POINTS, "lib", "usr/bin"):
        (root / directory).mkdir(parents=True)
    for name, path in SCRIPTS.items():
        shutil.copy(SOURCES / name, root / path)
        (root / path).chmod(0o755)
    image = root / "lib/ext4"
    with open(image, "wb") as stream:
        stream.truncate(EXT4_SIZE << 20)
    # Debian keeps it where only root's PATH leads.
    output("mkfs.ext4", "-q", "-F", *EXT4, image, env={"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
    # The zeroes at the end are free space, and the rest of an empty journal.
    (root / "lib/ext4.gz").write_bytes(gzip.compress(image.read_bytes().rstrip(b"\0"), mtime=0))
    image.unlink()


def made_of() -> str:
    parts = [BUSYBOX[1], str(EXT4_SIZE), *EXT4, *((SOURCES / name).read_text() for name in SCRIPTS)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def initramfs() -> Path:
    """The initramfs of the guest, made where it is not in the cache; raises
    Failure as fill_initramfs() does."""
    path = cache() / "build" / f"initramfs-{made_of()}.gz"
    with lock("initramfs"):
        if path.exists():
            return path
        say("arm64: making the initramfs")
        scratch = path.with_suffix(".part")
        shutil.rmtree(scratch, ignore_errors=True)
        root = scratch / "root"
        root.mkdir(parents=True)
        fill_initramfs(root)
        names = sorted(str(one.relative_to(root)) for one in root.rglob("*"))
        output("cpio", "-o", "--quiet", "-H", "newc", "-R", "0:0", "-F", scratch / "cpio", cwd=root,
               text="\n".join(names))
        output("gzip", "-n", scratch / "cpio")
        (scratch / "cpio.gz").rename(path)
        shutil.rmtree(scratch)
    return path


def qemu(image: Path, initrd: Path, run_dir: Path, cpus: int, memory: str) -> list[str]:
    """The command line that boots the kernel @image with @initrd and shares
    @run_dir with it."""
    # Real pointer authentication takes most of the time where it is emulated.
    return ["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on", "-accel", "tcg,thread=multi",
            "-smp", str(cpus), "-m", memory, "-nodefaults", "-no-user-config", "-no-reboot",
            "-display", "none", "-serial", "stdio", "-kernel", str(image), "-initrd", str(initrd),
            # A panic is the end: with -no-reboot, QEMU leaves.
            "-append", "console=ttyAMA0 ignore_loglevel panic=-1",
            "-fsdev", f"local,id=run,path={run_dir},security_model=none,multidevs=remap",
            "-device", "virtio-9p-device,fsdev=run,mount_tag=run"]


def boot(image: Kernel, run_dir: Path, script: str, cpus: int = 2, memory: str = "2G", timeout: float = 900,
         label: str = "guest") -> Ran:
    """Boot the arm64 kernel @image and run @script, of busybox's sh, as
    qemu.boot() does; raises Failure as that and initramfs() do."""
    return watch(qemu(image.image, initramfs(), run_dir, cpus, memory), run_dir, script, timeout, label,
                 console="stdout")
