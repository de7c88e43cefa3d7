#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Get the source of a base and import it into a git repository in the cache.

The source is, in this order: the user's own tree (KDIR=), the cache, the
Debian mirror that apt is set up with, kernel.org.  An interrupted download
goes on where it stopped; an interrupted import starts again.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

from core.command import arguments, run
from core.install import need
from core.locks import cache, lock
from core.model import Base
from core.process import GIT_IDENTITY, Failure, logged, output, say, sha256
from source.base_check import touched_blobs, verify


def debian_mirrors(pool: str) -> list[str]:
    """The mirrors that apt uses for Debian itself and that have the file @pool, as
    URLs: those of the security suite for what is below pool/updates, or else the
    others; none without apt."""
    try:
        sites = output("apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN)", check=False)
    except Failure:
        return []
    found = []
    for line in sites.splitlines():
        site, _, origin = line.partition(" ")
        if origin == "Debian" and site not in found and ("security" in site) == pool.startswith("pool/updates/"):
            found.append(site)
    return found


def first(name: str, sources: list[tuple[str, Path, str]]) -> Path:
    """The path of the first of @sources (URL, path in the cache, SHA-256 or
    '') that can be downloaded.  Raises Failure, about @name, with what each
    answered."""
    answers = []
    for url, path, checksum in sources:
        path.parent.mkdir(exist_ok=True)
        part = path.with_suffix(path.suffix + ".part")
        log = cache() / "log" / "download.log"
        say(f"fetch: {path.name} (log: {log})")
        try:
            logged("download", ["curl", "-fSL", "--retry", "3", "-C", "-", "-o", part, url], log)
        except Failure as err:
            answers.append(str(err).splitlines()[-1].strip())
            continue
        if checksum and sha256(part) != checksum:
            part.unlink()
            answers.append(f"checksum mismatch of {path.name}, which was removed")
            continue
        part.rename(path)
        return path
    raise Failure(f"cannot get {name}: {'; '.join(answers) or 'no source is known'}. Run it again")


def debian_file(pool: str, checksum: str) -> Path:
    """The file @pool (its path below the root of a Debian mirror) in the
    cache, downloaded where it is not there or not the one with SHA-256
    @checksum; raises Failure where no mirror has it."""
    path = cache() / "download" / Path(pool).name
    if path.exists() and sha256(path) == checksum:
        return path
    return first(path.name, [(f"{site}/{pool}", path, checksum) for site in debian_mirrors(pool)])


def unpack(archive: Path, members: tuple[str, ...], root: Path) -> None:
    """Unpack @members of the Debian package @archive into @root; Failure where
    one of them is not in it."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as stream:
        done = subprocess.run(["tar", "-x", "-C", root, "--no-same-owner", *(f"./{name}" for name in members)],
                              stdin=stream.stdout, capture_output=True, text=True)
        stream.stdout.close()
    if done.returncode or stream.returncode:
        why = done.stderr.strip().splitlines()[0] if done.stderr.strip() else "dpkg-deb failed"
        raise Failure(f"cannot unpack {archive} ({why}): remove it and run it again")


def download(base: Base) -> Path:
    """The source archive of @base in the cache, downloaded where it is not
    there; raises Failure with what each source answered."""
    archive = cache() / "download" / Path(base.pool or base.url).name
    # kernel.org's archive of the same release is packed differently: its
    # checksum is not ours, and verify() checks the files that matter.
    plain = cache() / "download" / Path(base.url or base.pool).name
    for have in (archive, plain):
        if have.exists():
            return have
    sources = [(f"{site}/{base.pool}", archive, base.sha256) for site in debian_mirrors(base.pool) if base.pool]
    if base.url:
        sources.append((base.url, plain, ""))
    try:
        return first(f"the source of {base.name}", sources)
    except Failure as err:
        raise Failure(f"{err}, or give your own tree with KDIR=") from err


def store(directory: Path, base: Base, repository: Path, built: bool = False) -> None:
    """Commit the files of @directory as @base into the new bare @repository.
    If it may have been @built in, what the kernel's .gitignore names stays
    out."""
    partial = repository.with_name(repository.name + ".part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.parent.mkdir(parents=True, exist_ok=True)
    output("git", "init", "-q", "--bare", "-b", "base", partial)
    log = cache() / "log" / "import.log"
    say(f"fetch: importing {base.tag} into {repository} (1 to 2 minutes)")
    git = ["git", "--git-dir", partial, "--work-tree", directory, "-c", "core.compression=1", "-c", "gc.auto=0"]
    # -f: the kernel's .gitignore must not hide a file of the release.
    logged("git add", [*git, "add", "-A", *([] if built else ["-f"]), "."], log, env=GIT_IDENTITY)
    logged("git commit", [*git, "commit", "-q", "-m", f"Linux {base.version}"], log, env=GIT_IDENTITY)
    output("git", "--git-dir", partial, "tag", base.tag, env=GIT_IDENTITY)
    verify(base, partial, base.tag, "the source")
    partial.rename(repository)


def from_kdir(base: Base, kdir: Path) -> Path:
    """The cached import of the user's own tree, refused where it is another
    release or has local changes; the tree itself is only read."""
    kdir = kdir.resolve()
    if not (kdir / "MAINTAINERS").exists():
        raise Failure(f"KDIR={kdir} is not a kernel tree: give the directory that has MAINTAINERS in it")
    top = output("git", "-C", kdir, "rev-parse", "--show-toplevel", check=False)
    if not top and (kdir / ".git").exists():
        raise Failure(f"git does not read KDIR={kdir}: if it belongs to another user, allow it with 'git config "
                      f"--global --add safe.directory {kdir}'")
    if top and Path(top) == kdir:
        dirty = output("git", "-C", kdir, "status", "--porcelain", "--untracked-files=no")
        if dirty:
            raise Failure(f"KDIR={kdir} has local changes ({dirty.splitlines()[0].split()[-1]}): commit them "
                          "elsewhere or stash them, and check out the release")
        git_dir = Path(output("git", "-C", kdir, "rev-parse", "--absolute-git-dir"))
        verify(base, git_dir, "HEAD", f"KDIR={kdir}")
        key = output("git", "-C", kdir, "rev-parse", "HEAD^{tree}")
    else:
        git_dir = None
        # Without git, what verify() looks at tells whether it is as it was.
        looked = [(name, kdir / name) for name in ("Makefile", *touched_blobs(base))]
        key = repr([kdir, *((name, path.stat().st_mtime_ns, path.stat().st_ino) for name, path in looked
                            if path.exists())])
    repository = cache() / "git" / f"{base.name}-kdir-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    if repository.exists():
        return repository
    with lock("fetch"):
        if repository.exists():
            return repository
        if git_dir:
            scratch = cache() / "kdir.part"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            with subprocess.Popen(["git", "-C", str(kdir), "archive", "HEAD"], stdout=subprocess.PIPE) as archive:
                subprocess.run(["tar", "-x", "-C", str(scratch)], stdin=archive.stdout, check=True)
            if archive.returncode:
                raise Failure(f"git archive of KDIR={kdir} failed: run 'git fsck' there")
            store(scratch, base, repository)
            shutil.rmtree(scratch)
        else:
            store(kdir, base, repository, built=True)
    return repository


def repository(base: Base, kdir: str | None = None) -> Path:
    """The bare git repository in the cache that has @base as the tag base.tag,
    made where it is not there yet.  @kdir is the user's own tree, or None."""
    if kdir:
        return from_kdir(base, Path(kdir))
    repository = cache() / "git" / base.name
    if repository.exists():
        return repository
    with lock("fetch"):
        if repository.exists():
            return repository
        archive = download(base)
        scratch = cache() / "unpack.part"
        shutil.rmtree(scratch, ignore_errors=True)
        source = scratch / "source"
        source.mkdir(parents=True)
        say(f"fetch: unpacking {archive.name}")
        if archive.suffix == ".deb":
            unpack(archive, (base.member,), scratch)
            archive = scratch / base.member
        logged("tar", ["tar", "-xf", archive, "-C", source, "--strip-components=1"],
               cache() / "log" / "unpack.log")
        store(source, base, repository)
        shutil.rmtree(scratch)
    return repository


def main() -> None:
    args = arguments(__doc__).parse_args()
    need("source")
    say(f"fetch: {repository(args.base, args.kdir)}")


if __name__ == "__main__":
    run(main)
