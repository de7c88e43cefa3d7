# SPDX-License-Identifier: GPL-2.0
"""Build our plugins of QEMU, which are loaded as it runs, and say what each is to
be told: see tcg/*.c."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from core.locks import cache
from core.model import ROOT
from core.process import Failure, output, sha256
from source.build import REGRESS, Kernel, compiler

SOURCE = ROOT / "scripts" / "tcg"
# What the programs in the guest have in common with them.
MARKS = REGRESS
# Where the kernel handles the timer of a virtual CPU.
TICK = "sysvec_apic_timer_interrupt"
# What takes and what releases a mutex, and a spinlock.
MUTEX = ("mutex_lock", "mutex_trylock"), ("mutex_unlock",)
SPINLOCK = ("_raw_spin_lock",), ("_raw_spin_unlock",)
# A line of objdump: the address, and what is called there, if anything is.
INSTRUCTION = re.compile(r"^\s*(?P<address>[0-9a-f]+):\s.*?(?:(?P<how>call|jmp)q?\s+[0-9a-f]+ <(?P<called>[\w.]+)>)?$")


def compile_command(name: str, gcc_output: Path) -> list[str | Path]:
    """What compiles the plugin called @name into @gcc_output."""
    return ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-I", MARKS, "-o", gcc_output,
            SOURCE / f"{name}.c"]


def plugin_path(name: str) -> Path:
    """The plugin called @name in the cache, compiled where it is not there yet for
    these sources and this compiler.  Raises Failure where it does not compile."""
    sources = [SOURCE / f"{name}.c", SOURCE / "common.h", SOURCE / "qemu_plugin.h", MARKS / "marks.h"]
    key = hashlib.sha256(" ".join([*map(sha256, sources), compiler()]).encode()).hexdigest()[:16]
    path = cache() / "plugin" / key / f"{name}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{name}.{os.getpid()}.part")
        output(*compile_command(name, partial))
        partial.rename(path)
    return path


def quoted(path: Path) -> str:
    """@path within an option of QEMU, where a comma ends a value."""
    return str(path).replace(",", ",,")


def option(name: str, run_dir: Path, *words: str) -> str:
    """What QEMU's -plugin takes to have the plugin called @name write
    @name.json into @run_dir; @words: its other options."""
    return ",".join([quoted(plugin_path(name)), f"out={quoted(run_dir / f'{name}.json')}", *words])


def symbols(kernel: Kernel) -> dict[str, str]:
    return {line.split()[2]: line.split()[0] for line in output("nm", kernel.path / "vmlinux").splitlines()
            if len(line.split()) == 3}


def symbol(kernel: Kernel, name: str) -> str:
    """The address of one of @kernel's symbols; Failure where it lacks that."""
    found = symbols(kernel).get(name)
    if not found:
        raise Failure(f"{kernel.path / 'vmlinux'} has no {name}: the plugin is for x86-64 and the functions of today; "
                      "what has moved is to be changed in scripts/measure/")
    return found


def lines_option(kernel: Kernel, run_dir: Path) -> str:
    """What QEMU's -plugin takes to record memory accesses of @kernel's guest in
    lines.json of @run_dir.  Raises Failure where the kernel lacks TICK."""
    return option("lines", run_dir, f"tick={symbol(kernel, TICK)}")


def transfers(kernel: Kernel, function: str) -> list[tuple[str, str, str, str]]:
    """The calls and tail calls in @function of @kernel: (address, 'call' or 'jmp',
    name of what is called, address of the next instruction), addresses in hex."""
    found = []
    for line in output("objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}",
                       kernel.path / "vmlinux").splitlines():
        match = INSTRUCTION.match(line)
        if match and found and not found[-1][3]:
            found[-1] = (*found[-1][:3], match["address"])
        if match and match["called"]:
            found.append((match["address"], match["how"], match["called"], ""))
    return found


def lock_places(kernel: Kernel, functions: list[str], kind: tuple[tuple[str, ...], tuple[str, ...]] = MUTEX,
             ) -> tuple[list[str], list[str]]:
    """Where @functions of @kernel come back with a lock of @kind, and where they
    release one: addresses in hex.  One that ends in a jump to mutex_lock() has it
    when its caller goes on."""
    take, release = kind
    found = [one for name in functions for one in transfers(kernel, name)]
    takers = {*take, *(name for name in functions if any(
        how == "jmp" and called in take for _, how, called, _ in transfers(kernel, name)))}
    return ([behind for _, how, called, behind in found if how == "call" and called in takers and behind],
            [address for address, _, called, _ in found if called in release])


def insns_option(kernel: Kernel, run_dir: Path, spinlock: str = "", functions: tuple[str, ...] = (),
          spinning: tuple[str, ...] = ()) -> str:
    """What QEMU's -plugin takes to count instructions in insns.json of @run_dir:
    of operations, and of those while @spinlock, a variable of @kernel, is held, or
    a mutex that functions whose names begin with one of @functions take and release, or a
    spinlock that those called @spinning do.  Raises Failure where the kernel has
    none of these."""
    words = [f"lock={symbol(kernel, spinlock)}"] if spinlock else []
    if functions or spinning:
        begins, ends = (lock_places(kernel, list(spinning), SPINLOCK) if spinning else
                        lock_places(kernel, [name for name in symbols(kernel) if name.startswith(functions)]))
        if not (begins and ends):
            names = ", ".join([f"{name}()" for name in spinning] or [f"{name}*()" for name in functions])
            raise Failure(f"{names} of {kernel.path / 'vmlinux'} take or release no "
                          f"{'spinlock' if spinning else 'mutex'}: what has moved is to be changed in scripts/measure/")
        words += [f"begin={':'.join(begins)}", f"end={':'.join(ends)}"]
    return option("insns", run_dir, *words)
