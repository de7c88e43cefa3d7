#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compile what a series touches in configurations other than the guests':
32-bit, one CPU, other architectures, PREEMPT_RT, memory hotplug, options off.

Each configuration builds the touched objects on the base and with the whole series.
The series must add no warning with W=1, and the functions that the topic names
as `frames` may not need more stack than on the base (but for one more register
on the ports), or than FRAME_WARN allows by default.  An object that a configuration
does not build is left out of it.  No kernel is linked, nothing
boots.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core import memo
from core.command import arguments, run
from core.install import need
from core.ktap import FAILED, PASSED, SKIPPED, Result, count, shown
from core.locks import cache, lock
from core.model import KCONFIG, Base, Topic, chosen_topics
from core.process import Failure, logged, output, say
from prove.lint import build_objects, diagnostics, kernel_files
from source.build import compiler, make_jobs, merge_config, options, selected, with_own
from source.fetch import repository
from source.tree import apply, tree_of, worktree

# Raise this when what is found wrong changes: the results are remembered.
RULES = 1
# A line of what -fstack-usage writes: gcc has a column, clang has not; a clone
# has a suffix to its name.
STACK = re.compile(r"^\S+:(?P<function>\w+)(?:\.\S+)?\t(?P<bytes>\d+)\t\S+$", re.M)


@dataclass(frozen=True)
class Config:
    """A configuration: what make is told of the architecture and the compiler,
    which is gcc where there is no @llvm, clang's suffix; the bytes that a stack
    frame may have, which is FRAME_WARN's default, and that it may have more than
    on the base; the directories that it looks at, or none for all; and whether
    sparse reads them, too."""

    name: str
    arch: str = "x86_64"
    cross: str = ""
    llvm: str = ""
    limit: int = 2048
    slack: int = 0
    below: tuple[str, ...] = ()
    sparse: bool = False

    @property
    def compiler(self) -> str:
        return f"clang{self.llvm}" if self.llvm else f"{self.cross}gcc"

    def fragments(self, base: Base | None = None) -> list[Path]:
        """The configuration fragments for @base, as build.fragments()
        has them of the other configurations."""
        return with_own(KCONFIG, ["configs/common.config", f"configs/{self.name}.config"], base)

    @property
    def words(self) -> tuple[str, ...]:
        """What every make of this configuration is told."""
        return (f"ARCH={self.arch}", f"CROSS_COMPILE={self.cross}", f"LLVM={self.llvm}", "KCFLAGS=-fstack-usage",
                *(["C=1"] if self.sparse else []))

    def wants(self, name: str) -> bool:
        """Whether the object @name is below a directory that it looks at."""
        return not self.below or name.startswith(self.below)


def port(arch: str, limit: int = 2048) -> Config:
    """The configuration that is there for the files of @arch, and for what memory
    management makes of its page tables and faults.  The rest of the kernel is
    much the same to every architecture, and the other configurations compile it;
    here each object would take 6 s of a CPU, over the 45 s to configure and
    prepare.  One clang has all ports, where gcc would be a package for each,
    and Debian 12 has none for LoongArch.  Frames are multiples of 16 bytes, so
    one register more to save, which it has for some, may add as much."""
    return Config(arch, arch=arch, llvm="-19", limit=limit, slack=16, below=(f"arch/{arch}/", "mm/"))


CONFIGS = {config.name: config for config in (
    Config("x86", sparse=True),
    Config("i386", arch="i386", limit=1024),
    Config("rt"),
    Config("hotplug"),
    Config("nosmallread", arch="i386", limit=1024),
    Config("nosmp"),
    Config("arm64", arch="arm64", cross="aarch64-linux-gnu-"),
    port("arm", limit=1024),
    port("riscv"),
    port("s390"),
    port("powerpc"),
    port("loongarch"),
)}


@dataclass(frozen=True)
class Built:
    """One revision in one configuration: the objects that were asked for and are
    configured; the compiler's diagnostics; the stack frame of each function in
    bytes, by source file; why it was not built to the end, or nothing."""

    objects: list[str]
    diagnostics: set[str] = field(default_factory=set)
    stacks: dict[str, dict[str, int]] = field(default_factory=dict)
    broken: str = ""


def stacks(text: str) -> dict[str, int]:
    """The bytes of stack of each function in a .su file's @text.  Of clones
    the largest counts, since any may be called."""
    found: dict[str, int] = {}
    for match in STACK.finditer(text):
        found[match["function"]] = max(found.get(match["function"], 0), int(match["bytes"]))
    return found


def build_config(config: Config, source: Path, label: str, out: Path, objects: list[str]) -> Built:
    """Build in @out the objects of @objects that @config configures, out of @source
    with the .config that is in @out.  @label names the log.  Raises Failure
    where make cannot prepare; an object that does not compile is said in what
    is returned."""
    log = cache() / "log" / f"configs-{config.name}-{label}.log"
    logged(f"{config.name}: prepare", ["make", "-C", source, f"O={out}", make_jobs(), *config.words, "prepare"], log)
    there = [name for name in objects if config.wants(name) and (source / name).with_suffix(".c").exists()]
    mine = selected(source, out, there, config.words)
    usage = {name: (out / name).with_suffix(".su") for name in mine}
    for path in usage.values():
        path.unlink(missing_ok=True)
    broken = ""
    try:
        said = build_objects(source, out, mine, log, config.words) if mine else set()
    except Failure as err:
        said, broken = diagnostics(log.read_text(errors="replace")), str(err)
    frames = {name[:-1] + "c": stacks(path.read_text()) for name, path in usage.items() if path.exists()}
    return Built(mine, said, frames, broken)


def build_both(config: Config, repo: Path, base: Base, head: str, objects: list[str]) -> tuple[Built, Built]:
    """@config built of @base and of the revision @head of @repo.  Raises
    Failure where it cannot be configured, naming the options that were not
    taken, or where its compiler is missing."""
    if not shutil.which(config.compiler):
        raise Failure(f"cannot run {config.compiler}: 'make install' installs what is missing")
    out = cache() / "build" / f"{repo.name}-configs-{config.name}"
    out.mkdir(parents=True, exist_ok=True)
    log = cache() / "log" / f"config-configs-{config.name}.log"
    name = f"configs/{config.name}"
    with lock(f"{repo.name}-lint"):
        source = worktree(repo, "lint", base.tag)
        logged("tinyconfig", ["make", "-C", source, f"O={out}", *config.words, "tinyconfig"], log)
        merge_config(source, out, name, config.fragments(base), log, config.words)
        before = build_config(config, source, "base", out, objects)
        source = worktree(repo, "lint", head)
        # On top of the base's: an option that the series adds takes its
        # default, where tinyconfig would switch it off.
        merge_config(source, out, name, config.fragments(base), log, config.words)
        return before, build_config(config, source, "series", out, objects)


def frame(function: str, before: int | None, after: int | None, limit: int, slack: int = 0) -> tuple[str, str]:
    """The verdict on one function's stack frame, and why: @before and @after
    are its bytes, or None where it is not there or inlined everywhere; @limit
    and @slack are a Config's."""
    if after is None:
        return SKIPPED, f"{function}() is inlined with the series" if before is not None else \
            f"there is no {function}() of its own"
    if after > limit:
        return FAILED, f"{after} bytes, more than {limit}"
    if before is not None and after > before + slack:
        return FAILED, f"{after} bytes, {before} on the base"
    return PASSED, f"{after} bytes" + ("" if before is None else f", {before} on the base")


def judge_config(config: Config, before: Built, after: Built, frames: tuple[str, ...] = ()) -> Iterator[Result]:
    """The results of @config: its warnings, and the stack frames of @frames,
    each 'file.c:function'."""
    name = f"{config.name}: {len(after.objects)} objects build with W=1"
    if before.broken:
        yield Result(name, FAILED, f"on the base: {before.broken}")
        return
    new = "; ".join(sorted(after.diagnostics - before.diagnostics))
    lost = ", ".join(sorted(set(before.objects) - set(after.objects)))
    if lost and not new:
        new = f"not configured with the series: {lost}"
    if after.broken:
        new = new or after.broken
    yield Result(name, FAILED if new else PASSED if after.objects else SKIPPED, new)
    if after.broken:
        return
    for path, function in (wanted.split(":") for wanted in frames):
        if path in after.stacks:
            verdict, why = frame(function, before.stacks.get(path, {}).get(function),
                                 after.stacks[path].get(function), config.limit, config.slack)
            yield Result(f"{config.name}: stack frame of {path}:{function}", verdict, why)


def unseen(objects: list[str], frames: tuple[str, ...], everything: list[Built]) -> Iterator[Result]:
    """Failures for what no configuration looked at: an object that none of them
    configures, a function that none of them has."""
    known = {name for built in everything for name in built.objects}
    for name in objects:
        if name not in known:
            yield Result(f"{name} is built", FAILED, "no configuration configures it: fix scripts/kconfig/configs")
    for wanted in frames:
        path, function = wanted.split(":")
        if not any(function in built.stacks.get(path, {}) for built in everything):
            yield Result(f"stack frame of {wanted}", FAILED,
                         "no configuration has that function: fix the topic's 'frames'")


def compare_configs(repo: Path, base: Base, head: str, objects: list[str], frames: tuple[str, ...] = (),
            chosen: tuple[Config, ...] = tuple(CONFIGS.values())) -> Iterator[Result]:
    """The results for @objects of @repo in the configurations @chosen, between the
    base @base and the revision @head.  What no configuration looked at fails where all are
    chosen."""
    everything: list[Built] = []
    broken = False
    for config in chosen:
        say(f"configs: {config.name}: {compiler(config.compiler) if shutil.which(config.compiler) else config.arch}")
        try:
            before, after = build_both(config, repo, base, head, objects)
        except Failure as err:
            broken = True
            yield Result(f"{config.name}: builds", FAILED, str(err))
            continue
        everything += [before, after]
        yield from judge_config(config, before, after, frames)
    if len(chosen) == len(CONFIGS) and not broken:
        yield from unseen(objects, frames, everything)


def touched(repo: Path, start: str, head: str) -> list[str]:
    """The objects of the kernel's own .c files that differ between @start and
    @head and are still there, in any configuration."""
    paths = output("git", "--git-dir", repo, "diff", "--name-only", "--diff-filter=d", start, head).splitlines()
    return [path[:-1] + "o" for path in kernel_files(paths, ".c")]


def config_inputs(base: Base, start: str, revision: str, objects: list[str], frames: tuple[str, ...],
                 chosen: tuple[Config, ...]) -> list[str]:
    """What the results of compare_configs() follow from; @start and @revision are git
    trees, so that other words in a message cost no builds."""
    compilers = sorted({config.compiler for config in chosen})
    return [start, revision, *objects, *frames, *(config.name for config in chosen),
            *(compiler(name) for name in compilers if shutil.which(name)),
            *(json.dumps(options(config.fragments(base))) for config in chosen), str(RULES)]


def compare_series(stack: list[Topic], base: Base, repo: Path,
                   chosen: tuple[Config, ...] = tuple(CONFIGS.values()), fresh: bool = False,
                   refusal: str = "") -> Iterator[Result]:
    """The results for the series of @stack on @base, one on the other; a series that does
    not apply is one failure.  @fresh: build also what was seen to pass.  @refusal: build
    nothing, for that reason."""
    names = "+".join(topic.name for topic in stack)
    try:
        revision = apply(repo, base, stack)
    except Failure as err:
        yield Result(f"{names}: git am", FAILED, str(err))
        return
    start = tree_of(repo, base.tag)
    # What a header does to a frame shows in files that are not touched.
    frames = tuple(wanted for topic in stack for wanted in topic.frames)
    objects = sorted({wanted.split(":")[0][:-1] + "o" for wanted in frames} | set(touched(repo, start, revision)))
    for result in memo.results(f"configs: {names} on {base.name}",
                               config_inputs(base, start, tree_of(repo, revision), objects, frames, chosen),
                               lambda: compare_configs(repo, base, revision, objects, frames, chosen), fresh, refusal):
        yield Result(f"{names}: {result.name}", result.verdict, result.why)


def main() -> int:
    """Compare the configurations of some topics, or of all, one series on the other,
    and print the count."""
    parser = arguments(__doc__, topics="some", fresh=True)
    parser.add_argument("--config", action="append", choices=CONFIGS, help="default: all")
    args = parser.parse_args()
    base, topics = args.base, chosen_topics(args.topic, args.base)
    need("source", "build", "lint", "ports")
    repo = repository(base, args.kdir)
    chosen = tuple(CONFIGS[name] for name in dict.fromkeys(args.config or CONFIGS))
    results = shown(compare_series(topics, base, repo, chosen, args.fresh))
    print(f"configs: {count(results)}")
    return any(result.verdict == FAILED for result in results)


if __name__ == "__main__":
    run(main)
