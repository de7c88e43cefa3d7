# SPDX-License-Identifier: GPL-2.0
"""The outline of a cover letter: what it has to have before it is sent, and how
long it may be.  `make check` asks for it, too, so that `make mail` finds nothing new.

A letter begins with the problem, one symptom of it in a generated block.  Then come
these sections, each below a line with its name alone, which a colon may end and a
line of = or - may underline.
"""

import re

from core.model import Topic
from reports import measured

DOES, USER, FIGURES, COSTS, RELATED, RUN, SINCE = (
    "What it does", "User space", "Figures", "Costs", "Related work", "How to run it", "Changes since ...")
WANTED = {DOES: "what the series does, patch by patch", USER: "what user space can rely on",
          FIGURES: "the generated block 'table'", COSTS: "what the series costs, and whom",
          RELATED: "other work on the same, an item with an address each",
          RUN: "the two commands that test and measure it"}
# What a letter has at most: in all, without git's shortlog; numbers outside of blocks and
# addresses; and lines of its changes.
LINES, WORDS, NUMBERS, CHANGED = 100, 800, 60, 10

HEADING = re.compile(rf"^(?P<title>{'|'.join(WANTED)}|Changes (?:since|in) \S[^\n]{{0,50}}?):?\n"
                     r"(?:[=-]{3,}\n)?", re.M)
PLACEHOLDER = re.compile(r"\*\*\*|\b(?:TODO|FIXME|EDITME)\b")
# A row of a table: indented, with figures in two columns or more.
ROW = re.compile(r"^[ \t]+\S.*\d.*[ \t]{2,}.*\d", re.M)
ADDRESS = re.compile(r"\S*://\S*")
NUMBER = re.compile(r"(?<![\w.\[-])\d+(?:[.,]\d+)*")
# An item of a list with the lines that go on with it, and an address that is referred to.
ITEM = re.compile(r"^ *- .*(?:\n +(?!- ).*)*", re.M)
REFERENCE = re.compile(r"^\[\d+\] \S.*(?:\n +\S*://\S+)*\n?", re.M)


def letter_sections(text: str) -> dict[str, str]:
    """The sections of a cover letter's @text in its order: title to what is below it.
    All titles of changes since something are one."""
    found = list(HEADING.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {SINCE if match["title"].startswith("Changes since") else match["title"]:
            text[match.end():end].rstrip().strip("\n") for match, end in zip(found, ends, strict=False)}


def placeholder(text: str, topic: Topic) -> list[str]:
    """The sentence about a placeholder in the @text of the cover letter of @topic,
    or none."""
    return [f"the cover letter of {topic.name} has the placeholder '{found}': write what belongs there"
            for found in PLACEHOLDER.findall(text)[:1]]


def size(text: str) -> dict[str, int]:
    """How many lines, words and numbers the @text of a cover letter has, as the
    limits count them."""
    own = ADDRESS.sub("", measured.outside(text))
    return {"lines": len(text.splitlines()), "words": len(text.split()), "numbers": len(NUMBER.findall(own))}


def form(text: str, where: str) -> list[str]:
    """What is wrong with the length and the lines of the @text of a cover letter,
    which is called @where."""
    said = [f"{where} has {have} {what}: {limit} are the limit, what is more goes into Documentation/ or a reply"
            for (what, have), limit in zip(size(text).items(), (LINES, WORDS, NUMBERS), strict=True) if have > limit]
    own = measured.outside(text)
    # An address cannot be wrapped.
    said += [f"{where} has a line of {len(line)} columns ('{line[:30]}...'): wrap it at 75"
             for line in own.splitlines() if len(line) > 75 and "://" not in line]
    said += [f"{where} has a table that nobody generates ('{row.strip()[:30]}...'): name its rows in series.toml"
             for row in ROW.findall(own)[:1]]
    return said + measured.wrong_text(text, where)


def wrong_sections(have: dict[str, str], topic: Topic, where: str) -> list[str]:
    """What is wrong with the sections @have of the cover letter of @topic, which is
    called @where, as far as they are there."""
    said = []
    if have.get(FIGURES) and not measured.blocks(have[FIGURES]).get("table", "").strip():
        said.append(f"{where} has no table in its section '{FIGURES}': add the block 'table', which 'make export "
                    f"TOPIC={topic.name}' fills")
    said += [f"{where} names other work without an address ('{item.strip()[:30]}...'): add where it can be read"
             for item in ITEM.findall(have.get(RELATED, "")) if not ADDRESS.search(item)]
    if have.get(RUN) and not (re.search(rf'TARGETS=[\w" ]*\b{topic.kselftest}\b', have[RUN])
                              and re.search(rf"make bench TOPIC={topic.name}\b", have[RUN])):
        said.append(f"{where} has no two commands in its section '{RUN}': give the kselftests with "
                    f"'TARGETS={topic.kselftest}', and 'make bench TOPIC={topic.name}'")
    changes = {title: sum(map(bool, map(str.strip, REFERENCE.sub("", body).splitlines())))
               for title, body in have.items() if title.startswith("Changes ")}
    return said + [f"{where} has {lines} lines below '{title}': {CHANGED} are the limit"
                   for title, lines in changes.items() if lines > CHANGED]


def wrong_letter(text: str, topic: Topic, version: int) -> list[str]:
    """What is wrong with the @text of the cover letter of version @version of
    the series of @topic, a sentence for each."""
    where = f"the cover letter of {topic.name}"
    wanted = WANTED | ({f"Changes in v{version}": "what differs from the version before"} if version > 1 else
                       {SINCE: "what differs from the versions on the list that it starts from"})
    have = letter_sections(text)
    said = [f"{where} has no section '{title}': add one that says {what}"
            for title, what in wanted.items() if not have.get(title)]
    if not said and list(filter(WANTED.get, have)) != list(WANTED):
        said.append(f"{where} has its sections in another order than {', '.join(WANTED)}")
    if not measured.blocks(HEADING.split(text, maxsplit=1)[0]):
        said.append(f"{where} begins without a symptom: add a block of figures to what the problem is, with a sentence "
                    "in series.toml")
    return said + placeholder(text, topic) + form(text, where) + wrong_sections(have, topic, where)
