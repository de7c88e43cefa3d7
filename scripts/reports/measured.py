# SPDX-License-Identifier: GPL-2.0
"""Measured numbers in texts, which belong into the blocks that are generated from
summary.json.  Outside of them a text has none: a new run would make it wrong.

A number is taken for a measurement by what stands beside it (MEASURED).  Limits of
the code, sizes, versions, dates, and what a command takes in minutes are none.
"""

import re

from reports.figures import BLOCK, MARKER

NUMBER = r"(?<![\w.,:/\[-])\d(?:[\d.,]*\d)?"
# What is counted or timed, in the singular or not.
COUNTED = ("instructions?|ns|us|µs|ms|(?:nano|micro|milli)seconds?|[kM]?ops?/s|M/s|[kMG]i?B/s|acquisitions?|atomics?|"
           "(?:context )?switches|(?:shared |cache )+lines?|boots|gains?|losses|pass(?:ed)?|fail(?:ed)?")
MEASURED = re.compile("|".join((
    rf"{NUMBER}\s?(?:%|per\s?cent\b)",                                    # 22 %
    rf"{NUMBER}x(?!\w)",                                                  # 1.4x
    rf"{NUMBER}\s(?:times?|or more times)\b",                             # 2 to 3 times
    rf"{NUMBER}\s(?:(?:more|fewer|less)\s)?(?:{COUNTED})(?![\w/])",       # 155 instructions, 155 more instructions
    rf"{NUMBER}\s?(?:->|→|=>)\s?\d[\d.,]*",                               # 2 -> 0
    r"(?<![\w./])\d\.\d+-\d\.\d+(?!\w|\.\d)",                              # 0.71-0.88
    rf"{NUMBER}(?:\s\w+)?(?:,\snot|\sinstead\sof|\sin\splace\sof)\s{NUMBER}",    # 47, not 34
    r"(?<![\w./])[01]\.\d+(?!\w|\.\d)")))                                 # 0.78

# Numbers that look measured and are not: the text around them, as it is written,
# and why.
EXCEPT = {
    "95 % interval": "the level of an interval",
    "95 % bootstrap interval": "the level of an interval",
    "5 ms for each request": "the latency that a device is set to",
    "window of 40 ms": "how long an operation is repeated in a boot",
    "8 microseconds and more": "the shortest wait that survey counts",
    '"patched": 0.0': "an example of a row",
}
EXCEPTED = re.compile("|".join(re.escape(words).replace(r"\ ", r"\s+") for words in EXCEPT))


# The numbers that a complaint names.
NAMED = 5


def outside(text: str) -> str:
    """@text with its blocks blanked, line by line, so that line numbers stay."""
    return BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)


def blocks(text: str) -> dict[str, str]:
    """The blocks of @text: name to what is between its markers."""
    return {found["name"]: found["content"] for found in BLOCK.finditer(text)}


def numbers(text: str) -> list[tuple[int, str]]:
    """The measured numbers of @text that are outside of blocks: line, from 1, and
    the words that tell."""
    left = EXCEPTED.sub(lambda words: re.sub(r"\S", "_", words[0]), outside(text))
    return [(left.count("\n", 0, found.start()) + 1, " ".join(found[0].split())) for found in MEASURED.finditer(left)]


def wrong_message(message: str, where: str, known: int) -> list[str]:
    """A sentence where the @message of the patch @where has other than @known
    measured numbers, or nothing: series.toml says how many it argues with."""
    found = [words for _, words in numbers(message)]
    return [] if len(found) == known else [
        f"{where} has {len(found)} measured numbers in its message, not {known} ({', '.join(found) or 'none'}): see "
        "that they are in summary.json, then put their number into 'measured' of series.toml"]


def wrong_text(text: str, where: str) -> list[str]:
    """A sentence about the measured numbers that @text, which is called @where, has
    outside of blocks, and one for each marker without its other half."""
    found = [f"'{words}' in line {line}" for line, words in numbers(text)]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return [f"{where} has {', '.join(found[:NAMED])}{more}: put it into a block of figures, which is made from "
            "summary.json, or say it in words"] * bool(found) + [
            f"{where} has '{marker.strip()}' without its other half: a block is between the lines '<!-- figures: "
            "a-name -->' and '<!-- end of figures -->' (.rst: '.. figures: a-name' and '.. end of figures')"
            for marker in MARKER.findall(outside(text))]
