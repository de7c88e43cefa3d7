#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Install what the other steps need: Debian packages, in groups, and the pinned
Python tools in a private environment in the cache.  Does nothing where all is
there.  A step needs its groups once its arguments are known to be right, and then
asks before it installs any.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache as cache_result
from pathlib import Path

from core.command import arguments, run
from core.locks import cache, lock
from core.model import ROOT
from core.process import Failure, logged, output, say, sha256

PACKAGES = {
    "source": ["git", "curl", "xz-utils", "python3-venv"],
    "build": ["gcc", "make", "ccache", "flex", "bison", "bc", "libelf-dev", "libssl-dev", "pahole", "kmod",
              "cpio", "rsync", "perl", "libc6-dev", "linux-libc-dev"],
    "guest": ["qemu-system-x86", "stress-ng", "bpftrace", "linux-perf", "iproute2", "util-linux", "e2fsprogs",
              "xfsprogs"],
    # What the kernel's own kselftests link with, and tools/testing/radix-tree.
    "tests": ["libcap-dev", "liburcu-dev"],
    # What make bindeb-pkg takes besides.
    "deb": ["debhelper", "dpkg-dev", "libdw-dev"],
    # Suites that Debian has, and what it takes to build others.
    "suites": ["rt-tests", "procps", "autoconf", "automake", "pkgconf", "libnuma-dev", "libtool-bin",
               "gettext", "uuid-dev", "libattr1-dev", "libacl1-dev", "libaio-dev", "xfslibs-dev", "fio", "acl", "attr",
               "gawk", "dmsetup"],
    # A model checker, which makes a C program of a model.
    "models": ["spin", "gcc", "libc6-dev"],
    # The tooling's own tests make an initramfs.
    "lint": ["sparse", "codespell", "shellcheck", "cpio"],
    # A clang compiles for every architecture that has no gcc here; llvm has what make
    # runs besides.  arm64 boots, too.
    "ports": ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-system-arm", "clang-19", "lld-19", "llvm-19"],
}
# What the environment has where the user agreed to installing packages.
AGREED = "HOTPATHS_INSTALL"
# The Python tools and what they need, pinned with their hashes: see
# pyproject.toml.
LOCK = ROOT / "requirements.lock"


@cache_result
def not_debian() -> None:
    """Say once that packages are the user's business here."""
    say("install: this is not Debian, so packages are not looked for: install what scripts/core/install.py lists")


def missing(packages: list[str]) -> list[str]:
    """The Debian packages of @packages that are not installed; on other systems none,
    which is said."""
    if not shutil.which("dpkg-query"):
        not_debian()
        return []
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *packages],
                          capture_output=True, text=True)
    have = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("installed ")}
    return [name for name in packages if name not in have]


def ask(*groups: str) -> list[str]:
    """The missing Debian packages of @groups, which the user agrees to install, with
    INSTALL=1 or when asked; Failure where they do not."""
    want = missing(sorted({name for group in groups for name in PACKAGES[group]}))
    if want and not os.environ.get(AGREED):
        text = f"{len(want)} Debian packages are missing"
        answer = ""
        if sys.stdin.isatty():
            answer = input(f"{text}: {' '.join(want)}\nInstall them with apt-get? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            raise Failure(f"{text}: give INSTALL=1 to make, which then installs them, or run 'apt-get install "
                          f"{' '.join(want)}' as root")
        os.environ[AGREED] = "1"
    return want


def need(*groups: str) -> None:
    """Install the missing Debian packages of @groups, which the user agrees to; Failure
    where that takes a root that we are not, naming the command that does it."""
    want = ask(*groups)
    if not want:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *want]
    if os.geteuid():
        if not shutil.which("sudo"):
            raise Failure(f"packages are missing and there is no sudo: run 'apt-get install {' '.join(want)}' as root")
        # Like the steps: without a terminal, on which it could ask.
        if subprocess.run(["sudo", "-n", "true"], stdin=subprocess.DEVNULL, capture_output=True,
                          start_new_session=True).returncode:
            raise Failure(f"packages are missing and sudo asks for a password: run 'sudo apt-get install "
                          f"{' '.join(want)}'")
        sudo = ["sudo"]
    else:
        sudo = []
    log = cache() / "log" / "install.log"
    say(f"install: {len(want)} Debian packages: {' '.join(want)} (log: {log})")
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive"]
    logged("apt-get update", [*sudo, "apt-get", "update"], log, finish=True)
    logged("apt-get install", [*sudo, *quiet, *command], log, append=True, finish=True)


def tool(name: str) -> Path:
    """The path of a pinned Python tool, installing all of them first where
    they are missing.  Tools of another lock or Python are left alone, since a
    guest may be running with them."""
    key = hashlib.sha256(f"{sha256(LOCK)} {sys.version} {sys.prefix}".encode()).hexdigest()[:12]
    venv = cache() / "venv" / key
    stamp = venv / "complete"
    # A program of the environment itself asks for its own.
    if Path(sys.prefix).parent == venv.parent:
        return Path(sys.prefix) / "bin" / name
    if not stamp.exists():
        with lock("venv"):
            if not stamp.exists():
                log = cache() / "log" / "venv.log"
                say(f"install: the Python tools of {LOCK.name} into {venv} (log: {log})")
                shutil.rmtree(venv, ignore_errors=True)
                logged("python3 -m venv", [sys.executable, "-m", "venv", venv], log)
                logged("pip install", [venv / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check",
                                       "--require-hashes", "-r", LOCK], log, append=True)
                stamp.touch()
    return venv / "bin" / name


def search_path() -> str:
    """A PATH on which the pinned Python tools, and the Python that has their
    modules, come first."""
    return f"{tool('python').parent}:{os.environ['PATH']}"


def main() -> None:
    arguments(__doc__, base=False).parse_args()
    os.environ[AGREED] = "1"
    need(*PACKAGES)
    output(tool("vng"), "--version")
    say("install: everything is there")


if __name__ == "__main__":
    run(main)
