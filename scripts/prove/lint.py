#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Check every patch and every script without booting anything.

Patches: git am, round trip with the committed files and mirrors, checkpatch
--strict, codespell, whitespace, tags, get_maintainer, kernel-doc, and a build
of the touched objects after each patch with W=1 and sparse.  Scripts: ruff and
shellcheck.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from core import memo
from core.command import arguments, run
from core.install import LOCK, need, search_path, tool
from core.ktap import FAILED, PASSED, Result, count, shown
from core.locks import cache, lock
from core.model import ROOT, Base, Topic, bases, chosen_topics
from core.process import Failure, cannot_run, logged, output, say, sha256
from reports import machines
from reports import measured
from send import cover
from send import export
from send import mirrors
from send import kernelscripts
from source import ports
from source.build import compiler, configure, fragments_hash, make_jobs, selected
from source.fetch import repository
from source.tree import apply, below, tree_of, worktree

# Raise these when what patch_texts(), or what builds(), finds wrong changes: their
# results are remembered.
TEXT_RULES = 3
BUILD_RULES = 1
TAGS = re.compile(r"^(Signed-off-by|Reviewed-by|Acked-by|Tested-by|Suggested-by|Reported-by|"
                  r"Co-developed-by|Cc): ", re.M)
# The submitter signs off, and a base made from a release's archive has none of
# the commits that messages refer to.
IGNORED = ("MISSING_SIGN_OFF,NO_AUTHOR_SIGN_OFF,BAD_SIGN_OFF,FROM_SIGN_OFF_MISMATCH,UNKNOWN_COMMIT_ID,"
           + kernelscripts.IGNORED)
# The kernel's words that codespell takes for others.
WORDS = "filp,uptodate"
# The bytes of a report that somebody reads.
LONGEST_REPORT = 30 << 10
# Where checkpatch takes the label of an asm goto that a macro is given,
# _ASM_EXTABLE_UA(1b, %l[fault]), for an operator without spaces.
LABEL = re.compile(r"CHECK:SPACING: .*'%'.*\n.*\n\+.*\b_ASM_EXTABLE\w*\(\w+, %l")
# What is mainline's, as the stable kernels say it.
BACKPORT = re.compile(r"^commit [0-9a-f]{12,40} upstream\.$", re.M)
DIAGNOSTIC = re.compile(r"^(?:\S*?/)?(?P<file>[\w./-]+\.[ch]):\d+(?::\d+)?: (?P<text>(?:warning|error): .*)$", re.M)
# sparse does not know that guard() unlocks where a function returns.  Where a lock is
# really left, lockdep reports it in the guests.
GUARDED = re.compile(r"warning: context imbalance in '\w+' - wrong count at exit")


def outcome(name: str, problem: str) -> Result:
    """Passed where there is no @problem, failed with it otherwise."""
    return Result(name, FAILED if problem else PASSED, problem)


def complaint(*argv, cwd: Path | None = None, env: dict | None = None) -> str:
    """What a checker prints where it exits non-zero; empty where it is
    content.  Raises Failure where it cannot be run."""
    try:
        done = subprocess.run([str(word) for word in argv], cwd=cwd, capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    except OSError as err:
        raise cannot_run(argv[0], err) from err
    if done.returncode == 0:
        return ""
    return (done.stdout + done.stderr).strip() or f"exit status {done.returncode}"


def checkpatch(tree: Path, patch: Path) -> str:
    """What checkpatch --strict of @tree says of @patch, without what it cannot
    know, and of a patch of mainline's without matters of taste; empty where nothing
    is left."""
    said = complaint(tree / "scripts/checkpatch.pl", "--strict", "-q", "--show-types", "--ignore", IGNORED, patch,
                     cwd=tree, env={"PATH": search_path()})
    reports = said.split("\n\n")
    left = [report for report in reports if not LABEL.match(report)]
    if BACKPORT.search(patch.read_text()):
        left = [report for report in left if not re.match("(WARNING|CHECK):", report)]
    if len(left) < len(reports) and not any(re.match("(ERROR|WARNING|CHECK):", report) for report in left):
        return ""
    return "\n\n".join(left)


def pages() -> Iterator[Result]:
    """README and our own pages have measured numbers in generated blocks alone."""
    for path in [ROOT / "README.md", *sorted((ROOT / "Documentation").glob("*.rst"))]:
        name = str(path.relative_to(ROOT))
        yield outcome(f"{name}: measured numbers", "; ".join(measured.wrong_text(path.read_text(), name)))


def scripts() -> Iterator[Result]:
    """ruff over the Python, shellcheck over the shell of the repository, and what
    its pages say."""
    yield outcome("ruff", complaint(tool("ruff"), "check", "-q", "--no-cache", "scripts", "tests", cwd=ROOT))
    shells = [path for path in output("git", "-C", ROOT, "ls-files", "--cached", "--others",
                                      "--exclude-standard").splitlines()
              if (ROOT / path).is_file() and (path.endswith(".sh") or path == ".ci/run")]
    yield outcome("shellcheck", complaint("shellcheck", *shells, cwd=ROOT) if shells else "")
    for path in sorted((ROOT / "results").glob("*/report.md")):
        size = path.stat().st_size
        yield outcome(f"{path.relative_to(ROOT)}: can be read", "" if size <= LONGEST_REPORT else
                      f"it has {size} bytes: {LONGEST_REPORT} are the limit, all rows are in rows.csv")
    for base in bases().values():
        if machines.files(base):
            yield outcome(f"{machines.directory(base).relative_to(ROOT)}: can be read", machines.wrong_file(base))
    yield from pages()
    yield from ports.results()


def committed(topic: Topic, base: Base, tree: Path, start: str, head: str) -> Iterator[Result]:
    """The round trip: exporting what the patches give, from @start to @head, makes the
    committed patches again, to the byte."""
    directory = ROOT / "patches" / topic.name / base.name
    files = export.render(tree, start, head, topic.cover(base))
    have = {path.name: path.read_bytes().decode() for path in directory.glob("*.patch")}
    wrong = sorted(name for name in files.keys() | have.keys() if files.get(name) != have.get(name))
    yield outcome(f"{topic.name}: patches are as exported",
                  f"{wrong[0]} differs: run 'make export TOPIC={topic.name} BASE={base.name}'" if wrong else "")


def mirrored(base: Base, repo: Path) -> Result:
    """Whether the mirrors of @base are what the series make."""
    try:
        wrong = mirrors.stale(repo, base)
    except Failure as err:
        return Result("mirrors are in sync", FAILED, str(err))
    return outcome("mirrors are in sync", f"{wrong[0]} differs: run 'make export' for any topic" if wrong else "")


def patch_files(topic: Topic, base: Base) -> list[Path]:
    """The cover letter of @topic for @base, where there is one, and its patches."""
    return [*filter(None, [topic.cover(base)]), *topic.patches(base)]


def patch_texts(topic: Topic, base: Base, tree: Path) -> Iterator[Result]:
    """What is said of each patch without building it."""
    people: set[str] = set()
    with tempfile.TemporaryDirectory() as scratch:
        for patch in patch_files(topic, base):
            name = f"{topic.name}/{patch.name}"
            content = patch.read_text()
            tag = TAGS.search(content)
            yield outcome(f"{name}: no person's tag", tag[0] if tag else "")
            message, _, diff = content.partition("\n---\n")
            own = Path(scratch) / patch.name
            own.write_text(message + "\n" + "\n".join(line[1:] for line in diff.splitlines()
                                                      if line.startswith("+") and not line.startswith("+++")))
            yield outcome(f"{name}: codespell", complaint("codespell", "-L", WORDS, own))
            if patch == topic.cover(base):
                # The subject may have one, too.
                wrong = cover.placeholder(content, topic)
                # Other bases are not what is sent.
                if base.reference and not wrong:
                    wrong = cover.wrong_letter(export.blurb(patch)[1], topic, 1)
                yield outcome(f"{name}: written", "; ".join(wrong))
                continue
            if base.reference:
                # git's head and the message's Date are none of it.
                yield outcome(f"{name}: measured numbers", "; ".join(measured.wrong_message(
                    message.partition("\n\n")[2], name, topic.measured.get(str(int(patch.name[:4])), 0))))
            yield outcome(f"{name}: checkpatch --strict", checkpatch(tree, patch))
            people |= set(kernelscripts.maintainers(tree, patch))
    # One patch may touch nothing but files without an entry; its series may not.
    yield outcome(f"{topic.name}: get_maintainer",
                  "" if people - {kernelscripts.EVERYBODY} else "nobody maintains what the series touches")


def diagnostics(log: str) -> set[str]:
    """Warnings and errors in a build's log, without line numbers: a patch must
    add none."""
    return {f"{match['file']}: {match['text']}" for match in DIAGNOSTIC.finditer(log)
            if not GUARDED.fullmatch(match["text"])}


def kernel_files(paths: list[str], ends: str | tuple) -> list[str]:
    """The paths of @paths that belong to the kernel itself and end so, sorted."""
    return sorted({path for path in paths if path.endswith(ends)
                   and not path.startswith(("tools/", "Documentation/", "samples/"))})


def build_objects(source: Path, out: Path, objects: list[str], log: Path,
                  words: tuple[str, ...] = ("C=1",)) -> set[str]:
    """Build the objects of @objects that are missing, or are of another source, with
    W=1 and sparse, or with the @words for make; their diagnostics."""
    logged("touched objects", ["make", "-C", source, f"O={out}", make_jobs(), "W=1", *words, *objects], log)
    return diagnostics(log.read_text(errors="replace"))


def kernel_doc(source: Path, files: list[str]) -> set[str]:
    """What kernel-doc says of @files, without line numbers."""
    if not files:
        return set()
    done = subprocess.run([str(source / "scripts/kernel-doc"), "-none", *files], cwd=source,
                          capture_output=True, text=True, errors="replace")
    return {re.sub(r":\d+", "", line.strip()) for line in (done.stdout + done.stderr).splitlines() if line.strip()}


def whitespace(source: Path, commit: str) -> str:
    """What git says of whitespace errors that @commit brings to @source.  The line below a
    heading of seven letters is no conflict marker."""
    said = complaint("git", "-C", source, "diff", "--check", f"{commit}~", commit).splitlines()
    return "\n".join(line for line in said if not re.match(r"\S+\.rst:\d+: leftover conflict marker", line))


def builds(topic: Topic, base: Base, repo: Path, head: str) -> Iterator[Result]:
    """Each patch builds the objects that it touches, with W=1, sparse and
    kernel-doc as silent as on the base, and has no whitespace errors."""
    with lock(f"{repo.name}-lint"):
        source = worktree(repo, "lint", base.tag)
        out = cache() / "build" / f"{repo.name}-lint"
        log = cache() / "log" / f"lint-{topic.name}.log"
        configure(source, out, "bench", base)
        start = below(repo, base, topic)
        worktree(repo, "lint", start)
        commits = output("git", "-C", source, "rev-list", "--reverse", f"{start}..{head}").splitlines()
        touched = {commit: output("git", "-C", source, "diff", "--name-only", f"{commit}~", commit).splitlines()
                   for commit in commits}
        everything = [path for paths in touched.values() for path in paths]
        objects = [path[:-2] + ".o" for path in kernel_files(everything, ".c")
                   if (source / path).exists()]
        documented = [path for path in kernel_files(everything, (".c", ".h")) if (source / path).exists()]
        logged("prepare", ["make", "-C", source, f"O={out}", make_jobs(), "prepare"], log)
        objects = selected(source, out, objects)
        say(f"lint: {topic.name}: building {len(objects)} touched objects for each patch (log: {log})")
        known = build_objects(source, out, objects, log) if objects else set()
        documentation = kernel_doc(source, documented)
        for commit in commits:
            subject = output("git", "-C", source, "log", "-1", "--format=%s", commit)
            worktree(repo, "lint", commit)
            yield outcome(f"{topic.name}: '{subject}': whitespace", whitespace(source, commit))
            if kernel_files(touched[commit], (".c", ".h")):
                try:
                    # What this patch does not change, make does not compile again.
                    new = build_objects(source, out, objects, log) - known
                    known |= new
                    problem = "; ".join(sorted(new))
                except Failure as err:
                    problem = str(err)
                yield outcome(f"{topic.name}: '{subject}': builds with W=1 and sparse", problem)
                yield outcome(f"{topic.name}: '{subject}': kernel-doc",
                              "; ".join(sorted(kernel_doc(source, documented) - documentation)))


def build_inputs(topic: Topic, base: Base, repo: Path, head: str) -> list[str]:
    """What the results of builds() follow from: of a commit, its source and
    its subject, so that other words in a message cost no builds."""
    commits = output("git", "--git-dir", repo, "log", "--reverse", "--format=%T %s",
                     f"{below(repo, base, topic)}..{head}").splitlines()
    return [topic.name, base.name, tree_of(repo, base.tag), *commits, fragments_hash("bench", base), compiler(),
            output("sparse", "--version"), str(BUILD_RULES)]


def text_inputs(topic: Topic, base: Base, repo: Path) -> list[str]:
    """What the results of patch_texts() follow from: the patches, and the scripts of
    the base and the tools that read them."""
    return [str(TEXT_RULES), topic.name, topic.kselftest, str(topic.measured), tree_of(repo, base.tag),
            output("codespell", "--version"), sha256(LOCK),
            *(path.read_text() for path in patch_files(topic, base))]


def written(topic: Topic, base: Base, repo: Path, head: str, fresh: bool) -> Iterator[Result]:
    """What is checked of the series of @topic without building it; @head is the
    series applied, @fresh: look also at what was seen to pass."""
    start = below(repo, base, topic)    # may apply patches, with the same lock
    with lock(f"{repo.name}-apply"):
        tree = worktree(repo, "apply", head)
        yield from committed(topic, base, tree, start, head)
        yield from memo.results(f"lint: text of {topic.name} on {base.name}", text_inputs(topic, base, repo),
                                lambda: patch_texts(topic, base, tree), fresh)


def quick(base: Base, chosen: list[Topic], repo: Path, fresh: bool) -> Iterator[Result]:
    """All checks of the series of @chosen, which apply, that build nothing; and
    of the mirrors, if @base is the reference base."""
    for topic in chosen:
        yield from written(topic, base, repo, apply(repo, base, [topic]), fresh)
    if base.reference:
        yield mirrored(base, repo)


def lint_series(topic: Topic, base: Base, repo: Path, fresh: bool) -> Iterator[Result]:
    try:
        head = apply(repo, base, [topic])
    except Failure as err:
        yield Result(f"{topic.name}: git am", FAILED, str(err))
        return
    yield Result(f"{topic.name}: git am", PASSED)
    yield from written(topic, base, repo, head, fresh)
    yield from memo.results(f"lint: building {topic.name} on {base.name}", build_inputs(topic, base, repo, head),
                            lambda: builds(topic, base, repo, head), fresh)


def lint(base: Base, chosen: list[Topic], repo: Path, fresh: bool) -> Iterator[Result]:
    for topic in chosen:
        yield from lint_series(topic, base, repo, fresh)
    if base.reference:
        yield mirrored(base, repo)


def main() -> int:
    parser = arguments(__doc__, topics="some", fresh=True)
    args = parser.parse_args()
    topics = chosen_topics(args.topic, args.base)
    need("source", "build", "lint")
    results = shown(scripts())
    results += shown(lint(args.base, topics, repository(args.base, args.kdir), args.fresh))
    print(count(results))
    return any(result.verdict == FAILED for result in results)


if __name__ == "__main__":
    run(main)
