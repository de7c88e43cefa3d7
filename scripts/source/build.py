# SPDX-License-Identifier: GPL-2.0
"""Build kernels and kselftests, incrementally, and keep what came out.

A kernel is known by its source (the git tree's id), its configuration and its
compiler; one that was built before is not built again.  All kernels of one
configuration share a build directory, so that a build compiles only what
differs from the one before.
"""

import hashlib
import json
import os
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from core.locks import cache, data_home, lock
from core.model import CONFIGS, GUESTS, KCONFIG, ROOT, Base
from core.process import Failure, logged, output, say, sha256
from source.tree import commit_of, tree_of, worktree

# What it takes to name the source line of each call in a report, where the
# configuration has no debug info of its own.
LINES = "KCFLAGS=-g1"
# Our own tests and benchmarks, by topic.
REGRESS = ROOT / "regress"
# Directories there that no program is built of.
NOT_BUILT = ("litmus", "models")
LONG_AGO = 1767225600  # 2026 began: before anything was built
# The same source must give the same kernel, on any machine at any time.
REPRODUCIBLE = {"KBUILD_BUILD_USER": "hotpaths", "KBUILD_BUILD_HOST": "hotpaths",
                "KBUILD_BUILD_TIMESTAMP": "2026-01-01", "LOCALVERSION": ""}
# Debian's ccache has compilers of the same names here.  A header that a series
# changes and the next one does not would compile all of the kernel twice.
CCACHE = "/usr/lib/ccache"


@dataclass(frozen=True)
class Arch:
    """An architecture: its name, the prefix of its compiler, and where in a
    build directory the image is that a guest boots."""

    name: str
    cross: str
    image: Path

    @property
    def gcc(self) -> str:
        return f"{self.cross}gcc"

    @property
    def words(self) -> tuple[str, ...]:
        """What every make for it is told."""
        return (f"ARCH={self.name}", f"CROSS_COMPILE={self.cross}") if self != X86 else ()

    @property
    def programs(self) -> "Arch":
        """The architecture of the programs that run on it."""
        return X86 if self == UM else self


X86 = Arch("x86_64", "", Path("arch/x86/boot/bzImage"))
ARM64 = Arch("arm64", "aarch64-linux-gnu-", Path("arch/arm64/boot/Image"))
UM = Arch("um", "", Path("linux"))
BY_CONFIG = {"arm64": ARM64, "arm64-64k": ARM64, "um": UM, "um-time": UM}
# The configurations whose fragment comes over the one of another.
OVER = {"arm64-64k": "arm64"}


def arch(config: str) -> Arch:
    return BY_CONFIG.get(config, X86)


@dataclass(frozen=True)
class Kernel:
    """A kernel that was built: its directory in the cache has the image,
    config, what decodes its reports (vmlinux and the kernel's
    decode_stacktrace.sh), and kernel.json, which holds the other members."""

    path: Path
    base: str
    commit: str
    config: str
    config_hash: str
    compiler: str

    @property
    def image(self) -> Path:
        return self.path / arch(self.config).image.name


def remembering() -> dict[str, str]:
    """The environment in which gcc is ccache's, where that is installed."""
    return {"PATH": f"{CCACHE}:{os.environ['PATH']}", "CCACHE_DIR": str(cache() / "ccache"),
            "CCACHE_MAXSIZE": "8G", "CCACHE_SLOPPINESS": "include_file_mtime,include_file_ctime"}


def make_jobs() -> str:
    return f"-j{os.cpu_count() or 2}"


def compiler(gcc: str = "gcc") -> str:
    """The first line of `gcc --version`, or of @gcc's."""
    return output(gcc, "--version").splitlines()[0]


def fragments(config: str, base: Base | None = None) -> list[Path]:
    """The configuration fragments of @config for @base (None: what all
    bases have in common), in the order they are merged.  What a base calls
    otherwise lies below bases/, in files of the same names."""
    if config not in (*CONFIGS, *GUESTS):
        raise Failure(f"unknown configuration '{config}': there are {', '.join((*CONFIGS, *GUESTS))}")
    below = [OVER[config]] if config in OVER else [] if config in GUESTS else ["common"]
    names = [f"{name}.config" for name in (*below, config)]
    return with_own(KCONFIG, names, base)


def with_own(kconfig: Path, names: list[str], base: Base | None) -> list[Path]:
    """The fragments @names below @kconfig, and then the files of the same names
    that are there for @base alone."""
    own = [kconfig / "bases" / base.name / name for name in names] if base else []
    return [*(kconfig / name for name in names), *(path for path in own if path.exists())]


def fragments_hash(config: str, base: Base | None = None) -> str:
    """What the fragments of @config for @base set, as 12 hex digits: not
    what their comments say."""
    return hashlib.sha256(json.dumps(options(fragments(config, base))).encode()).hexdigest()[:12]


def options(paths: list[Path]) -> dict[str, str]:
    """The options that the fragments @paths set: name to value, with 'n' for
    one that is not set.  A later fragment wins."""
    found = {}
    for path in paths:
        for line in path.read_text().splitlines():
            if line.startswith("CONFIG_"):
                name, _, value = line.partition("=")
                found[name] = value
            elif line.startswith("# CONFIG_") and line.endswith(" is not set"):
                found[line.split()[1]] = "n"
    return found


def requested(config: str) -> dict[str, str]:
    return options(fragments(config))


def merge_config(source: Path, out: Path, name: str, paths: list[Path], log: Path, words: tuple[str, ...] = ()) -> None:
    """Merge the fragments @paths of configuration @name into the .config that
    is in @out; make is called with @words (ARCH=), and adds to @log.  Raises
    Failure for an option that the kernel did not take, which would make a
    test skip in silence."""
    logged("merge_config.sh", [source / "scripts/kconfig/merge_config.sh", "-m", "-O", out, out / ".config", *paths],
           log, cwd=source, append=True, env={"KCONFIG_CONFIG": str(out / ".config")})
    logged("olddefconfig", ["make", "-C", source, f"O={out}", *words, "olddefconfig"], log, append=True)
    have = dict(line.split("=", 1) for line in (out / ".config").read_text().splitlines()
                if line.startswith("CONFIG_"))
    refused = [f"{option}={value}" for option, value in options(paths).items() if have.get(option, "n") != value]
    if refused:
        raise Failure(f"configuration '{name}' did not take {', '.join(refused[:5])}: fix "
                      f"scripts/kconfig (the log is {log})")


def configured(out: Path, config: str, base: Base) -> bool:
    """Whether the .config of @out was made from the fragments of @config as
    they are for @base, for the compiler that is installed."""
    stamp = out / "hotpaths.fragments"
    return stamp.exists() and stamp.read_text() == f"{fragments_hash(config, base)} {compiler(arch(config).gcc)}"


def configure(source: Path, out: Path, config: str, base: Base) -> None:
    """Make the .config of @out from tinyconfig and the fragments, unless it
    was made from the same ones.  @source is @base: on a series,
    tinyconfig would switch off what the series adds, which takes its default
    otherwise.  Raises Failure as merge_config() does."""
    if configured(out, config, base):
        return
    out.mkdir(parents=True, exist_ok=True)
    stamp = out / "hotpaths.fragments"
    stamp.unlink(missing_ok=True)
    log = cache() / "log" / f"config-{config}.log"
    logged("tinyconfig", ["make", "-C", source, f"O={out}", *arch(config).words, "tinyconfig"], log)
    merge_config(source, out, config, fragments(config, base), log, arch(config).words)
    stamp.write_text(f"{fragments_hash(config, base)} {compiler(arch(config).gcc)}")


def selected(source: Path, out: Path, objects: list[str], words: tuple[str, ...] = ()) -> list[str]:
    """The objects of @objects that the configuration of @out builds, in order; all
    are removed from @out.  make is called with @words, and prepared @out.

    An object that is asked for by name is built whether or not it is
    configured, but a directory builds what its Makefile selects.
    """
    for name in objects:
        (out / name).unlink(missing_ok=True)
    directories = sorted({name.rpartition("/")[0] + "/" for name in objects})
    # A directory that is not configured is an error, but of no other.
    would = output("make", "-C", source, f"O={out}", "-k", "-n", *words, *directories, check=False) if objects else ""
    built = set(re.findall(r" -o (\S+\.o)(?=\s)", would))
    return [name for name in objects if name in built]


def checked_out(repo: Path, out: Path, commit: str) -> Path:
    """The worktree of @repo that is built in, at @commit, with such times on
    its files that make compiles in the build directory @out what differs from
    what is there, and nothing else.  mark_built() is to be called when it is done.

    Build directories share that worktree, so the times that git leaves are of
    what was built last in any of them.  @out has a file that names the git
    trees which its objects may be of: one, or more after an interrupted build,
    or none, and then everything is compiled.
    """
    source = worktree(repo, "build", commit)
    stamp = out / "hotpaths.built"
    tree = output("git", "-C", source, "rev-parse", "HEAD^{tree}")
    before = stamp.read_text().split() if stamp.exists() else []
    files = output("git", "-C", source, "ls-files").splitlines()
    try:
        differ = {path for known in before
                  for path in output("git", "-C", source, "diff", "--name-only", known, tree).splitlines()}
    except Failure:
        # git has removed a tree that no branch needs.
        before = []
    if not before:
        differ = set(files)
    for name in files:
        path = source / name
        if name in differ:
            os.utime(path, follow_symlinks=False)
        elif path.lstat().st_mtime != LONG_AGO:
            os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    output("git", "-C", source, "update-index", "-q", "--refresh", check=False)
    out.mkdir(parents=True, exist_ok=True)
    stamp.write_text("\n".join([*before, tree]) + "\n")
    return source


def mark_built(out: Path, source: Path) -> None:
    """Say that everything in @out is of what is in the worktree @source."""
    (out / "hotpaths.built").write_text(output("git", "-C", source, "rev-parse", "HEAD^{tree}") + "\n")


def line_flags(config: str) -> list[str]:
    """The words that tell make of LINES, where configuration @config wants them."""
    return [] if any(name.startswith("CONFIG_DEBUG_INFO_DWARF") for name in requested(config)) else [LINES]


def kernel_path(repo: Path, base: Base, revision: str, config: str) -> Path:
    """Where in the cache the kernel is that kernel() of the same returns, or
    will be."""
    made_of = f"{tree_of(repo, revision)} {fragments_hash(config, base)} {compiler(arch(config).gcc)} {LINES}"
    return cache() / "kernel" / hashlib.sha256(made_of.encode()).hexdigest()[:16]


def kept(path: Path, commit: str) -> Kernel | None:
    """The kernel of @commit that was built into @path of the cache, or None."""
    record = path / "kernel.json"
    if not record.exists():
        return None
    return Kernel(path=path, **{**json.loads(record.read_text()), "commit": commit})


def cached(repo: Path, base: Base, revision: str, config: str) -> Kernel | None:
    """What kernel() of the same returns where it was built before, else None."""
    return kept(kernel_path(repo, base, revision, config), commit_of(repo, revision))


def kernel(repo: Path, base: Base, revision: str, config: str, label: str) -> Kernel:
    """The kernel of @revision in @repo with configuration @config, built
    where it is not there yet.  @label names it in the progress lines."""
    commit, target = commit_of(repo, revision), arch(config)
    path = kernel_path(repo, base, revision, config)
    have = kept(path, commit)
    if have:
        return have
    with lock(f"{repo.name}-build"):
        # Another run may have built it before this one got the lock.
        have = kept(path, commit)
        if have:
            return have
        out = cache() / "build" / f"{repo.name}-{config}"
        if not configured(out, config, base):
            configure(worktree(repo, "build", base.tag), out, config, base)
        source = checked_out(repo, out, commit)
        log = cache() / "log" / f"build-{config}-{label}.log"
        say(f"build: {base.tag} {label}, configuration {config} (log: {log})")
        logged(f"build {label} {config}",
               ["make", "-C", source, f"O={out}", *target.words, *line_flags(config), make_jobs(), target.image.name],
               log, env={**REPRODUCIBLE, **remembering()})
        mark_built(out, source)
        image = Kernel(path=path, base=base.name, commit=commit, config=config,
                       config_hash=hashlib.sha256((out / ".config").read_bytes()).hexdigest()[:12],
                       compiler=compiler(target.gcc))
        partial = path.with_name(path.name + ".part")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        shutil.copy(out / target.image, partial)
        shutil.copy(out / ".config", partial / "config")
        shutil.copy(source / "scripts/decode_stacktrace.sh", partial)
        output(f"{target.cross}objcopy", "--compress-debug-sections=zlib", out / "vmlinux", partial / "vmlinux")
        row = asdict(image)
        del row["path"]
        (partial / "kernel.json").write_text(json.dumps(row, indent=1) + "\n")
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)
    return image


def regress_hash() -> str:
    """What of regress/ is built, as hex digits: no litmus tests and models."""
    digest = hashlib.sha256()
    for path in sorted(path for path in REGRESS.rglob("*") if path.is_file() and path.parent.name not in NOT_BUILT):
        digest.update(f"{path.relative_to(REGRESS)} {sha256(path)}\n".encode())
    return digest.hexdigest()


def kselftests(repo: Path, revision: str, targets: list[str], target: Arch = X86,
               regress: tuple[str, ...] = ()) -> Path:
    """The installed, statically linked kselftests of @targets at @revision: a
    directory with run_kselftest.sh, as `make kselftest-install` leaves it, and
    with our own tests and benchmarks of the topics @regress in regress/.  Of a
    target 'mm:one,two', only these programs are built, and the runner has them.
    @target is the architecture whose kernel they run on."""
    commit = commit_of(repo, revision)
    own = [name for name in regress if (REGRESS / name).is_dir()]
    made_of = (f"{tree_of(repo, revision)} {sorted(targets)} {own} {regress_hash() if own else ''} "
               f"{compiler(target.gcc)}")
    key = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    path = cache() / "kselftest" / key
    if (path / "run_kselftest.sh").exists():
        return path
    with lock(f"{repo.name}-build"):
        if (path / "run_kselftest.sh").exists():
            return path
        out = cache() / "build" / f"{repo.name}-kselftest-{target.name}"
        source = checked_out(repo, out, commit)
        # A build of another revision must not leave its programs behind.
        shutil.rmtree(out / "kselftest", ignore_errors=True)
        log = cache() / "log" / "kselftest.log"
        say(f"build: kselftests {' '.join(targets)} for {target.name} (log: {log})")
        if not (out / ".config").exists():
            logged("tinyconfig", ["make", "-C", source, f"O={out}", *target.words, "tinyconfig"], log)
        logged("headers", ["make", "-C", source, f"O={out}", *target.words, make_jobs(), "headers"], log, append=True)
        partial = path.with_name(key + ".part")
        shutil.rmtree(partial, ignore_errors=True)
        install = ["make", "-C", source / "tools/testing/selftests", f"O={out}", *target.words, make_jobs(),
                   "FORCE_TARGETS=1", "install", f"INSTALL_PATH={partial}"]
        parts = {name: programs.split(",") for name, _, programs in (one.partition(":") for one in targets) if programs}
        # Each of these writes the runner's list anew, so that all whole targets come last.
        calls = [[f"TARGETS={name}", "TEST_PROGS=", "TEST_GEN_FILES=" + " ".join(
            f"{out}/kselftest/{name}/{program}" for program in programs)] for name, programs in parts.items()]
        whole = [name for name in targets if ":" not in name]
        for words in [*calls, *([[f"TARGETS={' '.join(whole)}"]] if whole else [])]:
            logged("kselftests", [*install, *words], log, append=True, env={"LDFLAGS": "-static"})
        with open(partial / "kselftest-list.txt", "a") as tests:
            tests.writelines(f"{name}:{program}\n" for name, programs in parts.items() for program in programs
                             if not program.endswith("_bench"))
        if own:
            words = ["make", "-s", "-C", REGRESS, f"TOPICS={' '.join(own)}"]
            logged("our own tests", [*words, make_jobs(), f"TREE={source}", f"HEADERS={out}/usr/include",
                                     f"CC={target.gcc}", f"OUT={partial}/regress"], log, append=True)
            with open(partial / "kselftest-list.txt", "a") as tests:
                tests.writelines(f"{name}\n" for name in output(*words, "list").split())
        mark_built(out, source)
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)
    return path


def host_programs(names: list[str]) -> Path:
    """The directory with the programs @names of regress/ ('pid/pid_alloc_bench'), built
    with this machine's own headers where they are not there."""
    out = data_home() / "programs" / regress_hash()[:16]
    wanted = [out / name for name in sorted(names) if not (out / name).exists()]
    if wanted:
        log = cache() / "log" / "build-host.log"
        say(f"build: {', '.join(path.name for path in wanted)} (log: {log})")
        logged("building programs", ["make", "-s", "-C", REGRESS, "TREE=/", "HEADERS=/usr/include", f"OUT={out}",
                                     *wanted], log)
    return out
