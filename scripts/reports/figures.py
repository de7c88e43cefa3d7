# SPDX-License-Identifier: GPL-2.0
"""The figures in our texts: README, Documentation and cover letters have blocks
between markers that are written here, from the runs of results/ and what the
series.toml of a topic says of them:

  [[row]]   the rows of its table: id, metric, condition, label, cost
  [text]    sentences with figures in them, by name: {id.baseline}, {id.patched} or
            another kernel's column, {id.change}, {id.ratio}, {id.times}

A block is called 'table', 'costs', 'fits', 'knockouts', or by the name of a text, which
outside of a cover letter has its topic before it: 'pid.symptom'.  'fits' is what make fit
has written to results/fit/, 'knockouts' what knockout.toml of each topic says.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from core.model import ROOT, Base, Row, Topic, measurable, read_toml, replaced, with_series
from core.process import Failure
from reports import stats
from reports.stats import BETTER, WORSE, interval, number, times

from reports.runs import (
    Figures, base_again, change, change_error, read_json, row_verdict, topic_figures, twice_error)
from source.tree import variants

# The markers, in Markdown and letters, and in reStructuredText.
BLOCK = re.compile(r"^(?P<begin>(?P<kind><!--|\.\.) figures: (?P<name>[\w.]+)(?: -->)?\n)"
                   r"(?P<content>(?:(?!(?:<!--|\.\.) ).*\n)*?)(?P<end>(?P=kind) end of figures(?: -->)?)$", re.M)
MARKER = re.compile(r"^(?:<!--|\.\.) (?:figures: .*|end of figures.*)\n?", re.M)
WIDTH = 72
# A ratio of the base to itself that is further from 1 is named with its row.
NOISE = 0.1
# What a block begins with that has no figures of the series as it is.
NONE = "No figures: "
HEADS = ("series", "you see", "what goes away", "gain", "you pay", "kernel lines, by patch")


def percent(moved: float) -> str:
    return f"{100 * moved:+.1f} %" if round(1000 * moved) else "0 %"


def moved(row: dict) -> str:
    """What became of @row with the series: the ratio with its interval where there
    is one, else the change, with what it may be by chance."""
    if "statistics" in row:
        return interval(row["statistics"])
    found = change(row)
    if found is not None:
        error = 100 * change_error(row)
        return percent(found) + (f" ± {error:.1f}" if error >= 0.05 else "")
    return "" if len({"baseline", "patched"} & row["values"].keys()) < 2 else (
        "n/a" if row["values"]["patched"] else "0 %")


def mean(row: dict, side: str) -> str:
    """The value of @side in @row, '' where there is none; a mean that has a spread
    with twice its standard error."""
    if side not in row["values"]:
        return ""
    spread = row.get("spreads", {}).get(side)
    error = twice_error(spread) if spread else 0
    return number(row["values"][side]) + (f" ± {number(error)}" if error >= row["values"][side] / 1000 > 0 else "")


def find(topic: Topic, wanted: Row, rows: list[dict]) -> dict:
    """The one of @rows that @wanted of @topic is about; Failure where there is none."""
    for row in rows:
        if (row["metric"], row["condition"]) == (wanted.metric, wanted.condition):
            return row
    raise Failure(f"no run has the row '{wanted.metric}', '{wanted.condition}' of {topic.name}: correct "
                  f"patches/{topic.name}/series.toml, or run 'make bench TOPIC={topic.name}'")


def steady(row: dict) -> bool:
    """Whether the base, timed against itself, is within NOISE of itself in @row."""
    again = base_again(row)
    return not again or abs(again["ratio"] - 1) <= NOISE


def noise(found: list[tuple[Row, dict]], base: Base) -> list[str]:
    """What to know of the ratios of time in the rows @found, each with what series.toml
    says of it: of how many boots they are, and the ratios of the base to itself."""
    timed = [(wanted, row, again) for wanted, row in found if (again := base_again(row))]
    if not timed:
        return []
    ratios = sorted(again["ratio"] for _wanted, row, again in timed if steady(row))
    said = [f"{ratios[0]:.2f} to {ratios[-1]:.2f}"] if ratios else []
    said += [f"{again['ratio']:.2f} in '{wanted.label}'" for wanted, row, again in timed if not steady(row)]
    return [f"Ratios are series / {base.version} under User-Mode Linux on two CPUs, with 95 % intervals, averaged "
            f"over {min(again['rounds'] for *_, again in timed)} boots or more; {base.version} against itself: "
            f"{', '.join(said)}."]


def letter_table(topic: Topic, own: Figures, base: Base) -> str:
    """The rows of @topic as a cover letter shows them: the price is marked."""
    lines = []
    found = [(wanted, find(topic, wanted, own.rows)) for wanted in topic.row]
    cells = [(("* " if wanted.cost else "") + wanted.label,
              *(number(row["values"][side]) if side in row["values"] else "" for side in ("baseline", "patched")),
              moved(row)) for wanted, row in found]
    heads = ("", base.version, "series", "")
    widths = [max(len(line[column]) for line in [*cells, heads]) for column in range(4)]
    for line in [heads, *cells]:
        lines.append(f"  {line[0]:{widths[0]}} {line[1]:>{widths[1]}} {line[2]:>{widths[2]}}  {line[3]}".rstrip())
    notes = ["* the price", *noise(found, base)]
    notes += own.notes
    return "\n".join([*lines, "", *(textwrap.fill(one, WIDTH, initial_indent="  ", subsequent_indent="  ")
                                    for one in notes)])


def values_of(row: dict) -> SimpleNamespace:
    """What a template may say of @row."""
    found = change(row)
    ratio = row["statistics"]["ratio"] if "statistics" in row else (
        row["values"]["patched"] / row["values"]["baseline"] if row["values"].get("baseline") else 0)
    return SimpleNamespace(**{side: number(value) for side, value in row["values"].items()},
                           change="" if found is None else percent(found), ratio=times(ratio),
                           times=f"{ratio:.1f} times", interval=moved(row))


def sentence(topic: Topic, name: str, own: Figures) -> str:
    if name not in topic.text:
        raise Failure(f"patches/{topic.name}/series.toml has no text '{name}': add it below [text]")
    known = {wanted.id: values_of(find(topic, wanted, own.rows)) for wanted in topic.row}
    try:
        return " ".join(topic.text[name].format(**known).split())
    except (KeyError, AttributeError) as err:
        raise Failure(f"the text '{name}' of patches/{topic.name}/series.toml names {err}: it is no row there, or no "
                      "column of it") from err


def missing_rows(topic: Topic, own: Figures) -> list[str]:
    """The rows of @topic that no run of the series as it is has, by their labels."""
    known = {(row["metric"], row["condition"]) for row in own.rows}
    return [wanted.label for wanted in topic.row if (wanted.metric, wanted.condition) not in known]


def gap(topic: Topic, own: Figures) -> str:
    """What stands where figures of @topic are not of the series as it is, or not all
    there; nothing where they are."""
    again = f"Run 'make bench TOPIC={topic.name}'."
    if not own.fresh:
        return f"{NONE}those of {topic.name} are of an earlier state. {again}"
    left = missing_rows(topic, own)
    return f"{NONE}of {topic.name}, {len(left)} rows are not measured, '{left[0]}' first. {again}" if left else ""


def kernel_lines(topic: Topic, base: Base) -> str:
    """How many lines of kernel code the series of @topic adds and removes: without
    tests, tools and documentation."""
    added = removed = 0
    for patch in topic.patches(base):
        path = ""
        for line in patch.read_text(errors="replace").splitlines():
            if line.startswith("diff --git "):
                path = line.rpartition(" b/")[2]
            elif path.endswith((".c", ".h", ".S")) and not path.startswith(("tools/", "Documentation/", "samples/")):
                added += line.startswith("+") and not line.startswith("+++ ")
                removed += line.startswith("-") and not line.startswith("--- ")
    return f"+{added} -{removed}"


def marked(topic: Topic, own: Figures, which) -> str:
    """'label: base → series, ratio' of the first row of @topic for which @which of
    its Row and its figures holds, or nothing."""
    for wanted in topic.row:
        row = find(topic, wanted, own.rows)
        if which(wanted, row):
            if "statistics" in row:
                return f"{wanted.label}: {moved(row).replace(' [', ' times [')}"
            sides = " → ".join(number(row["values"].get(side, 0)) for side in ("baseline", "patched"))
            return f"{wanted.label}: {sides}" + (f" ({moved(row)})" if row["values"].get("patched") else "")
    return ""


def wrong_price(topic: Topic, own: Figures) -> str:
    """Why the row that @topic names as its price is none, or nothing: with the series
    it did not get worse, or the base against itself is not the same in it."""
    for wanted in topic.row:
        row = find(topic, wanted, own.rows)
        if not wanted.cost:
            continue
        noise = base_again(row)
        if row_verdict(row) != WORSE:
            return f"'{wanted.label}' of {topic.name} did not get worse: name another row as its price in series.toml"
        if noise and stats.interval_verdict(noise["interval"], True) != stats.CANNOT_TELL:
            return (f"'{wanted.label}' of {topic.name} differs between two boots of the base: take its time again, or "
                    "name another row as its price in series.toml")
    return ""


def readme_table(base: Base, known: dict[str, tuple[Topic, Figures]]) -> str:
    """The one table of the series that go in together."""
    apart = {topic.name for topic in replaced(base)}
    lines = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    for name, (topic, own) in known.items():
        if name in apart:
            continue
        link = f"[{name}](patches/{name}/{base.name}/0000-cover-letter.patch)"
        if topic.row and not gap(topic, own):
            first = marked(topic, own, lambda wanted, row: not wanted.cost)
            gain = marked(topic, own, lambda wanted, row: wanted.id == "gain" or (
                "statistics" in row and row_verdict(row) == BETTER and steady(row)))
            words = [first, gain or "none in time", marked(topic, own, lambda wanted, row: wanted.cost)]
        else:
            words = [("not all measured" if own.fresh else "figures of an earlier state") if own.rows else
                     "not measured yet", "", ""]
        lines.append("| " + " | ".join([link, topic.see, *words, kernel_lines(topic, base)]) + " |")
    late = [name for name, (_, own) in known.items() if name not in apart and own.notes]
    if late:
        lines += ["", f"Figures of before the last changes, see the letters: {', '.join(late)}."]
    return "\n".join(lines)


def costs(_base: Base, known: dict[str, tuple[Topic, Figures]]) -> str:
    lines = []
    for name, (topic, own) in known.items():
        lines.append(f"{name}: " + (marked(topic, own, lambda wanted, row: wanted.cost)
                                    if topic.row and not gap(topic, own) else "no figures of the series as it is"))
    return "\n".join(lines)


def fits(*_unused: object) -> str:
    """Of each release that make fit was run with for results/fit/, which series it takes."""
    lines = []
    releases = (ROOT / "results/fit").glob("*.json")
    for path in sorted(releases, key=lambda path: [int(part) for part in path.stem[1:].split(".")]):
        found = read_json(path)
        ways = {"apply": [one["name"] for one in found if not one["why"] and not one["merged"]],
                "apply with git am -3": [one["name"] for one in found if not one["why"] and one["merged"]],
                "do not": [f"{one['name']} ({one['why']})" for one in found if one["why"]]}
        lines.append(f"{path.stem}, series for {found[0]['base']}")
        for way, names in ways.items():
            if names:
                lines += textwrap.wrap(f"{way}: {', '.join(names)}", WIDTH, initial_indent="  ",
                                       subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def knockouts(base: Base, known: dict[str, tuple[Topic, Figures]]) -> str:
    """By topic and test program, the cases that it has to notice; and the programs
    that have none."""
    noticed: dict[str, dict[str, list[str]]] = {}
    for name, (topic, _) in known.items():
        path = variants(topic, base) / "knockout.toml"
        programs = [test.rpartition(":")[2] for test in (*topic.native, *topic.emulated)]
        mine = noticed.setdefault(name, {program: [] for program in programs if not program.endswith("_smoke.sh")})
        for case in read_toml(path)["case"] if path.exists() else []:
            if case["fails"]:
                mine.setdefault(Path(case["command"].split()[0]).name, []).append(case["name"])
    lines = []
    for name, programs in noticed.items():
        for program, cases in programs.items():
            lines += [f"{name}: {program}", *(f"  - {case}" for case in cases or ["none"])]
    return "\n".join(lines)


# The blocks of our pages that are of all topics, by name.
OF_ALL = {"table": readme_table, "costs": costs, "fits": fits, "knockouts": knockouts}


def block(name: str, base: Base, known: dict[str, tuple[Topic, Figures]], letter: str) -> str:
    """What the block @name has; @letter: the topic in whose cover letter it
    stands, or nothing."""
    if not letter and name in OF_ALL:
        return OF_ALL[name](base, known)
    owner, _, which = (letter, "", name) if letter else name.partition(".")
    if owner not in known:
        raise Failure(f"a block is called '{name}', and there is no such topic: {', '.join(known)}")
    topic, own = known[owner]
    without = gap(topic, own)
    if without:
        return textwrap.fill(without, WIDTH)
    if which == "table":
        return letter_table(topic, own, base)
    return textwrap.fill(sentence(topic, which, own), WIDTH)


def fill(text: str, base: Base, known: dict[str, tuple[Topic, Figures]], letter: str = "") -> str:
    """@text with its blocks as they are to be; @letter: the topic whose cover
    letter it is, or nothing."""
    def written(match: re.Match) -> str:
        content = block(match["name"], base, known, letter)
        if match["kind"] == "..":
            # A comment of reStructuredText ends with an empty line.
            plain = match["name"] in OF_ALL or match["name"].endswith(".table")
            content = f"\n::\n\n{textwrap.indent(content, '  ')}\n" if plain else f"\n{content}\n"
        return f"{match['begin']}{content}\n{match['end']}"

    return BLOCK.sub(written, text)


def without_markers(text: str) -> str:
    """@text as a reader of mails gets it: the blocks without their markers."""
    return MARKER.sub("", text)


def load(base: Base, repo: Path) -> dict[str, tuple[Topic, Figures]]:
    """Each topic that has a series for @base, and what the runs say of it."""
    return {topic.name: (topic, topic_figures(base, repo, topic)) for topic in measurable(with_series(base))}


def texts(base: Base) -> Iterator[tuple[Path, str]]:
    """The files that may have blocks, with the topic whose cover letter each is, or
    nothing: for the reference base our pages, too."""
    if base.reference:
        for path in [ROOT / "README.md", *sorted((ROOT / "Documentation").glob("*.rst"))]:
            yield path, ""
    for topic in measurable(with_series(base)):
        yield topic.cover(base), topic.name


def out_of_date(base: Base, known: dict[str, tuple[Topic, Figures]]) -> list[tuple[Path, str]]:
    """The files whose blocks are not as they are to be, with their text as it is to
    be."""
    found = []
    for path, letter in texts(base):
        text = path.read_text()
        filled = fill(text, base, known, letter)
        if filled != text:
            found.append((path, filled))
    return found
