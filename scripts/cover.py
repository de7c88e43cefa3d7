# SPDX-License-Identifier: GPL-2.0
"""What the cover letter of a series has to have before it is sent.  `make check`
asks for it, too, so that `make mail` finds nothing new."""

import re

from model import Topic

# The sections that every cover letter has, each below a line with its name
# alone, which a colon may end and a line of = or - may underline.
RESULTS, COSTS, REPRODUCE, SINCE = "Results", "Costs", "How to reproduce", "Changes since ..."
HEADING = re.compile(rf"^(?P<title>{RESULTS}|{COSTS}|{REPRODUCE}|Changes (?:since|in) \S[^\n]{{0,50}}?):?\n"
                     r"(?:[=-]{3,}\n)?", re.M)
PLACEHOLDER = re.compile(r"\*\*\*|\b(?:TODO|FIXME|EDITME)\b")
# A row of a table: indented, with figures in two columns or more.
ROW = re.compile(r"^[ \t]+\S.*\d.*[ \t]{2,}.*\d", re.M)


def sections(text: str) -> dict[str, str]:
    """The sections of a cover letter's @text: title to what is below it.  All
    titles of changes since something are one."""
    found = list(HEADING.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {SINCE if match["title"].startswith("Changes since") else match["title"]:
            text[match.end():end].rstrip().strip("\n") for match, end in zip(found, ends, strict=False)}


def placeholder(text: str, topic: Topic) -> list[str]:
    """The sentence about a placeholder in the @text of the cover letter of @topic,
    or none."""
    return [f"the cover letter of {topic.name} has the placeholder '{found}': write what belongs there"
            for found in PLACEHOLDER.findall(text)[:1]]


def wrong(text: str, topic: Topic, version: int) -> list[str]:
    """What is wrong with the @text of the cover letter of version @version of
    the series of @topic, a sentence for each."""
    where = f"the cover letter of {topic.name}"
    wanted = {RESULTS: "what was measured, as a table", COSTS: "what the series costs, and whom",
              REPRODUCE: "the commands that measure and test it"}
    if version > 1:
        wanted[f"Changes in v{version}"] = "what differs from the version before"
    else:
        wanted[SINCE] = "what differs from the versions on the list that it starts from"
    have = sections(text)
    said = [f"{where} has no section '{title}': add one that says {what}"
            for title, what in wanted.items() if not have.get(title)]
    # Tables are indented, and an address cannot be wrapped.
    said += [f"{where} has a line of {len(line)} columns ('{line[:30]}...'): wrap it at 75"
             for line in text.splitlines() if len(line) > 75 and not line.startswith(" ") and "://" not in line]
    said += placeholder(text, topic)
    if have.get(RESULTS) and len(ROW.findall(have[RESULTS])) < 2:
        said.append(f"{where} has no table in its section '{RESULTS}': add rows with what was measured")
    if have.get(REPRODUCE) and not re.search(rf'make bench TOPIC={topic.name}\b|TARGETS=[\w" ]*\b{topic.kselftest}\b',
                                             have[REPRODUCE]):
        said.append(f"{where} has no command in its section '{REPRODUCE}': give 'make bench TOPIC={topic.name}', or "
                    f"the kselftests with 'TARGETS={topic.kselftest}'")
    return said
