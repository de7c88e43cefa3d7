# SPDX-License-Identifier: GPL-2.0
"""The mirrors: the files of the reference base that the series change or add, so that
they can be read without a kernel tree; and the page that names the functions changed.

A file is as all series leave it that go in together.  What only a series changes that
one of them replaces is as that one leaves it."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from core.model import ROOT, Base, chosen_topics, replaced
from core.process import output, say
from source.tree import apply, below

# What the series change or add below the former, and what they add below the
# latter, is mirrored.
CHANGED = ("fs/", "mm/", "kernel/", "lib/", "include/")
ADDED = ("tools/testing/selftests/", "Documentation/", "tools/memory-model/litmus-tests/")
# Pages below these that are ours, and no mirrors.
OWN = re.compile(r"Documentation/[^/]+")
PAGE = Path("Documentation/mirrors.rst")
HEAD = """.. SPDX-License-Identifier: GPL-2.0

=======================
What the series change
=======================

Written by ``make export``. The kernel's files in this repository are those of Linux
{version} with all series, or with {alone} where no other series changes a file. The base without
the series is not in this repository, so that ``git diff`` cannot show what is changed:
below are the functions, macros and types that each series changes or adds.

"""
# Where the function, macro, type or variable begins that a line of C belongs to; of
# prototypes and variables without a value, the line itself is all there is.
CALL = (r"(?:static )?(?:[A-Z][A-Z_]*DEFINE\d?|DEFINE_(?!PER_CPU)\w+|(?:DEFINE|DECLARE)_PER_CPU\w*\([^,]+,"
        r"|\w*_ATTR)[( ](\w+)")
BEGINS = re.compile(rf"{CALL}|#\s*define (\w+)[ (\t]|(?:struct|union|enum) (\w+) \{{"
                    r"|(?:\w[\w *]*[ *])?(\w+)\((?!.*;$)|\w[\w *]*[ *](?!__)(\w+)(?: __\w+)?(?:\[\w*\])? = ")
ALONE = re.compile(r"(?:\w[\w *]*[ *])?(\w+)\(.*;$|\w[\w *]*[ *](\w+?)(?: __\w+)?(?:\[\w*\])?;$")
# Lines outside of all of them: comments, other words of the preprocessor, ends.
BETWEEN = re.compile(r"(?:$|/\*| \*|\}|#(?!\s*define)|EXPORT_SYMBOL|\w+_initcall\(|struct \w+;$)")


def files(repo: Path, start: str, head: str) -> dict[str, str]:
    """The mirrored files of start..head in the git repository or tree @repo:
    path in the kernel (and here) to the mode and blob id, as 'mode blob'."""
    found = {}
    for line in output("git", "-C", repo, "diff", "--raw", "--full-index", "--no-renames", "--diff-filter=AM",
                       start, head).splitlines():
        meta, path = line.split("\t", 1)
        words = meta.split()
        if path.startswith(CHANGED) or (path.startswith(ADDED) and words[4] == "A"):
            found[path] = f"{words[1]} {words[3]}"
    return found


def wanted(repo: Path, base: Base) -> dict[str, str]:
    """All mirrors of @base, as files() has them.  Raises Failure where the series do
    not apply one on the other."""
    found: dict[str, str] = {}
    for topic in replaced(base):
        changed = files(repo, base.tag, apply(repo, base, [topic]))
        found |= {path: entry for path, entry in changed.items() if path.startswith(CHANGED)}
    return found | files(repo, base.tag, apply(repo, base, chosen_topics(None, base)))


def content_of(tree: Path, blob: str) -> bytes:
    return subprocess.run(["git", "-C", str(tree), "cat-file", "blob", blob], check=True,
                          capture_output=True).stdout


def changed_names(lines: list[str], diff: str) -> Iterator[str]:
    """What of the file with @lines the hunks of @diff (git diff -U0) change, by name,
    in order."""
    for first, length in re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", diff, re.M):
        begin, count = max(int(first) - 1, 0), int(length or 1)
        for number in range(begin, begin + max(count, 1)):
            if count and BETWEEN.match(lines[number]):
                continue
            above = (BEGINS.match(line) for line in reversed(lines[:number + 1]))
            found = BEGINS.match(lines[number]) or ALONE.match(lines[number]) or next(filter(None, above), None)
            if found:
                yield next(filter(None, found.groups()))


def page(repo: Path, base: Base) -> str:
    """The text of PAGE: by file and series, the names of what is changed."""
    changes: dict[str, list[str]] = {}
    apart = replaced(base)
    for topic in (*chosen_topics(None, base), *apart):
        start, head = below(repo, base, topic), apply(repo, base, [topic])
        for path, entry in files(repo, start, head).items():
            if not path.startswith(CHANGED) or not path.endswith((".c", ".h")):
                continue
            lines = content_of(repo, entry.split()[1]).decode().splitlines()
            diff = output("git", "-C", repo, "diff", "-U0", start, head, "--", path)
            names = dict.fromkeys(changed_names(lines, diff))
            changes.setdefault(path, []).append(f"  {topic.name}: {', '.join(names) or 'all of it'}")
    alone = " or ".join(topic.name for topic in apart) or "none"
    return HEAD.format(version=base.version, alone=alone) + "".join(
        f"{path}::\n\n" + "\n".join(changes[path]) + "\n\n" for path in sorted(changes)).rstrip("\n") + "\n"


def surplus(found: dict[str, str]) -> list[str]:
    """The files of the checkout, below the mirrored directories, that are no
    mirrors of @found."""
    there = [str(path.relative_to(ROOT)) for top in (*CHANGED, *ADDED) for path in sorted((ROOT / top).rglob("*"))
             if path.is_file()]
    return [path for path in there if path not in found and not OWN.fullmatch(path)]


def stale(repo: Path, base: Base) -> list[str]:
    """The paths of the mirrors and the page that are missing or differ, and of surplus
    files.  Raises Failure as wanted() does."""
    mirrors, differ = wanted(repo, base), []
    for path, entry in mirrors.items():
        mode, blob = entry.split()
        target = ROOT / path
        if (not target.exists() or target.read_bytes() != content_of(repo, blob)
                or bool(target.stat().st_mode & 0o100) != (mode == "100755")):
            differ.append(path)
    if not (ROOT / PAGE).exists() or (ROOT / PAGE).read_text() != page(repo, base):
        differ.append(str(PAGE))
    return differ + surplus(mirrors)


def write(repo: Path, base: Base) -> None:
    """Write the mirrors of all series for @base, the reference base, and the page, and
    remove what is none of them.  Raises Failure as wanted() does."""
    mirrors = wanted(repo, base)
    for path in surplus(mirrors):
        (ROOT / path).unlink()
    for path, entry in mirrors.items():
        mode, blob = entry.split()
        target = ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content_of(repo, blob))
        target.chmod(0o755 if mode == "100755" else 0o644)
    (ROOT / PAGE).parent.mkdir(exist_ok=True)
    (ROOT / PAGE).write_text(page(repo, base))
    say(f"export: {len(mirrors)} mirrored files")
