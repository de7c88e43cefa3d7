# SPDX-License-Identifier: GPL-2.0
"""The tables that say what there is: the bases of bases.toml, the topics of
patches/<topic>/series.toml, and a topic's series for a base."""

from __future__ import annotations

import re
import tomllib
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from pathlib import Path

from core.process import Failure

ROOT = Path(__file__).resolve().parents[2]

KCONFIG = ROOT / "scripts" / "kconfig"

CONFIGS = ("bench", "trace", "debug", "check", "kcsan", "rt", "up", "virtual")

# The configurations of guests of other architectures.  A topic may ask for those of
# arm64.
GUESTS = ("arm64", "arm64-64k", "um", "um-time")

# The keys of series.toml beside what texts show.  It says @tests, @compare and @lint of a
# topic as a whole, and may say them otherwise of a base.
KEYS_OF_TOPIC = {"summary", "see", "row", "text", "panel", "tests", "compare", "lint", "needs", "replaces", "base"}
PER_BASE = {"tests", "compare", "lint"}
# The keys of the table `tests`, and what a Topic calls them; `target` is divided.
TESTS = {"um": "native", "qemu": "emulated", "kernel": "neighbours", "guests": "guests"}
# What a kernel in `compare` may be made of, and what a Topic calls these.
ON = {"base": "instead", "series": "compared"}

# The rows of the table that a cover letter shows.
MOST_ROWS = 12


@dataclass(frozen=True)
class Base:
    name: str
    tag: str
    version: str
    status: str
    pool: str = ""
    sha256: str = ""
    member: str = ""
    url: str = ""
    reference: bool = False
    uml: bool = False

    @property
    def fetched(self) -> bool:
        """Whether its source can be had without KDIR=."""
        return bool(self.pool or self.url)


# The keys that a row of bases.toml has to have, and the ones that it may have.
KEYS = [{key.name for key in fields(Base) if key.name != "name" and (key.default is MISSING) == needed}
        for needed in (True, False)]


@dataclass(frozen=True)
class Merged:
    """A part of a topic that a base has from upstream: what it is, the release
    that it came with, the commit's id or nothing."""

    what: str
    release: str
    commit: str

    def __str__(self) -> str:
        return f"{self.what} since {self.release}" + (f" ({self.commit[:12]})" if self.commit else "")


@dataclass(frozen=True)
class State:
    """What one series.toml says of one base: what the base has of the topic from
    upstream, those members of a Topic that differ there, the patches of the
    reference base that its series does not have as they are: subject to reason, and
    earlier states of the series whose figures still count: source.tree.code_of() them to
    a sentence that says why."""

    merged: tuple[Merged, ...]
    own: dict
    lacks: dict[str, str] = field(default_factory=dict)
    earlier: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A row of the figures that texts show of a topic: @id names it in templates;
    @metric and @condition are those of summary.json; @label says what it is in a
    reader's words; @cost: this is the price that a user pays."""

    id: str
    metric: str
    condition: str
    label: str
    cost: bool = False


@dataclass(frozen=True)
class Curve:
    """A curve of a topic's panel in the figure: @points are pairs of a place on the
    x axis and a condition of @metric; @cost: it is drawn as what a user pays."""

    label: str
    points: tuple[tuple[float, str], ...]
    metric: str = "throughput"
    cost: bool = False


@dataclass(frozen=True)
class Panel:
    """A topic's panel in the figure: its title, what the x axis is, its curves."""

    title: str
    x: str
    curve: tuple[Curve, ...]


@dataclass(frozen=True)
class Topic:
    """One patches/<topic>/series.toml.  @see: what a user of the topic sees; @row, @text,
    @panel: which figures texts show, as figures.py has it; @replaces: another topic that
    does the same in another way, to the same lines; where this one has a series, that is
    no part of what goes in together; @needs: topics that are applied before this one.

    Of tests: @kselftest is TARGETS= of the tests that the series adds, @selftests the
    programs there that are its own, where the kernel has others; @native, @emulated:
    what make check runs under User-Mode Linux, and in QEMU; @neighbours: the kernel's
    own tests of the same code; @guests: architectures beside x86-64 that boot with them.

    Of kernels that are measured, too: @instead and @compared are patches of variants/ on
    the base alone, and on the series, @steps the series up to a patch; @timed: those whose
    time is taken.

    Of lint: @frames are functions whose stack frames must not grow; @measured, by patch,
    how many measured numbers the message for the reference base has."""

    name: str
    summary: str
    kselftest: str = ""
    see: str = ""
    row: tuple[Row, ...] = ()
    text: dict[str, str] = field(default_factory=dict)
    panel: Panel | None = None
    replaces: str = ""
    needs: tuple[str, ...] = ()
    selftests: tuple[str, ...] = ()
    measured: dict[str, int] = field(default_factory=dict)
    neighbours: tuple[str, ...] = ()
    native: tuple[str, ...] = ()
    emulated: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    guests: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    steps: dict[str, int] = field(default_factory=dict)
    timed: tuple[str, ...] = ()
    base: dict[str, State] = field(default_factory=dict)

    def patches(self, base: Base) -> list[Path]:
        """The series for @base in order, without its cover letter."""
        return [p for p in sorted((ROOT / "patches" / self.name / base.name).glob("[0-9]*.patch"))
                if not p.name.startswith("0000-")]

    def cover(self, base: Base) -> Path | None:
        """The cover letter of the series for @base; fixes have none."""
        return None if self.fixes else ROOT / "patches" / self.name / base.name / "0000-cover-letter.patch"

    @property
    def fixes(self) -> bool:
        """Whether it is no series, but fixes that several series need: each is sent
        alone, without a cover letter, and there is nothing to measure."""
        return not self.kselftest

    def below(self, base: Base) -> list[Topic]:
        """The topics whose patches for @base are applied before its own."""
        known = topics() if self.needs else {}
        return [known[name].for_base(base) for name in self.needs if known[name].patches(base)]

    @property
    def target(self) -> str:
        """The tests that the series adds, as build.kselftests() has them."""
        return ":".join(filter(None, (self.kselftest, ",".join(self.selftests))))

    @property
    def programs(self) -> tuple[str, ...]:
        """The directories of regress/ with our tests and benchmarks of it: those
        of what it replaces, too."""
        if self.fixes:
            return ()
        return (self.name, self.replaces) if self.replaces else (self.name,)

    def state(self, base: Base) -> State:
        """What its series.toml says of @base."""
        return self.base.get(base.name, State((), {}))

    def for_base(self, base: Base) -> Topic:
        """The topic with what its series.toml says of @base alone."""
        return replace(self, **self.state(base).own)

    def merged(self, base: Base) -> tuple[Merged, ...]:
        """What @base has of the topic from upstream."""
        return self.state(base).merged

    def lacks(self, base: Base) -> dict[str, str]:
        """The patches of the reference base that the series for @base does not have as
        they are there: subject to reason."""
        return self.state(base).lacks

    def earlier(self, base: Base) -> dict[str, str]:
        """The earlier states of the series for @base whose figures still count:
        source.tree.code_of() them to a sentence that says why."""
        return self.state(base).earlier

    def absent(self, base: Base) -> str:
        """Why there is no series for @base, in words that follow a colon, or
        nothing where there is one."""
        if self.patches(base):
            return ""
        if self.merged(base):
            return f"{base.tag} has it from upstream, {listed(self.merged(base))}, so use that release as it is"
        kept = [f"BASE={other.name}" for other in bases().values() if self.patches(other)]
        return f"patches/{self.name}/{base.name} has no patches, " + (
            f"give {' or '.join(kept)}" if kept else f"begin with 'make tree TOPIC={self.name} BASE={base.name}'")


# All series together, which UnixBench is timed with; no topic of patches/.
ALL = Topic("unixbench", "UnixBench on the base and on that with all series")


def listed(merged: tuple[Merged, ...]) -> str:
    return ", ".join(map(str, merged))


def read_toml(path: Path) -> dict:
    try:
        return parsed(path, path.stat().st_mtime_ns, path.stat().st_size)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise Failure(f"cannot read {path} ({err}): fix it") from err


@cache
def parsed(path: Path, _time: int, _size: int) -> dict:
    """What the TOML file @path said when it was last changed: it is asked often."""
    return tomllib.loads(path.read_text())


def bases() -> dict[str, Base]:
    """All bases of bases.toml by name; Failure where not exactly one is the
    reference."""
    table = read_toml(ROOT / "bases.toml").get("base")
    if not isinstance(table, dict) or not all(isinstance(row, dict) for row in table.values()):
        raise Failure("bases.toml has no tables of bases: each begins with a line like [base.\"v1.2\"]")
    for name, row in table.items():
        where = f"bases.toml, base {name},"
        expect(where, row, *KEYS)
        for key, value in row.items():
            kind = bool if key in ("reference", "uml") else str
            if not isinstance(value, kind):
                raise Failure(f"{where} has a '{key}' that is no {'true or false' if kind is bool else 'string'}: "
                              "see the other bases")
    found = {name: Base(name=name, **row) for name, row in table.items()}
    if sum(base.reference for base in found.values()) != 1:
        raise Failure("bases.toml has not one base with 'reference = true': mark the one that the mirrors are of")
    return found


def reference() -> Base:
    """The base that commands are about where none is named, and whose series'
    files are mirrored here."""
    return next(base for base in bases().values() if base.reference)


def find_base(name: str) -> Base:
    """The base called @name; Failure names the known ones."""
    known = bases()
    if name not in known:
        raise Failure(f"unknown base '{name}': bases.toml has {', '.join(known)}")
    return known[name]


def expect(where: str, row: dict, required: set[str], optional: set[str] = frozenset()) -> None:
    """Failure where the table @row, which is called @where, lacks a key of
    @required, or has one that is neither there nor in @optional."""
    for key in sorted(required - row.keys()):
        raise Failure(f"{where} has no '{key}': add it, as in the others")
    for key in sorted(row.keys() - required - optional):
        raise Failure(f"{where} has '{key}', which means nothing there: known are "
                      f"{', '.join(sorted(required | optional))}")


def with_tuples(row: dict) -> dict:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def state(where: str, row: dict) -> State:
    expect(where, row, set(), {"merged", "lacks", "earlier", *PER_BASE})
    merged = row.get("merged", [])
    if not isinstance(merged, list) or not all(isinstance(part, dict) for part in merged):
        raise Failure(f"{where} has a 'merged' that is no list of tables: see the other topics")
    for part in merged:
        expect(f"{where}, merged,", part, {"what", "release", "commit"})
        if not re.fullmatch(r"|[0-9a-f]{12,40}", part["commit"]):
            raise Failure(f"{where} has the commit '{part['commit']}': give 12 hex digits or more, or '' if unknown")
    return State(tuple(Merged(**part) for part in merged), members(where, row), row.get("lacks", {}),
                 row.get("earlier", {}))


def members(where: str, row: dict) -> dict:
    """What the tables of PER_BASE in the table @row, which is called @where, give a Topic."""
    found = {}
    if "tests" in row:
        expect(f"{where}, tests,", row["tests"], set(), {"target", *TESTS})
        found |= {TESTS[key]: value for key, value in row["tests"].items() if key in TESTS}
        if "target" in row["tests"]:
            found["kselftest"], _, own = row["tests"]["target"].partition(":")
            found["selftests"] = list(filter(None, own.split(",")))
    if "compare" in row:
        found |= {"instead": [], "compared": [], "steps": {}, "timed": []}
        for one in row["compare"]:
            expect(f"{where}, compare,", one, {"name"}, {"on", "patches", "timed"})
            if one.get("on", "base") not in ON:
                raise Failure(f"{where} compares with '{one['name']}' on '{one['on']}': there is {', '.join(ON)}")
            if "on" in one:
                found[ON[one["on"]]].append(one["name"])
            if "patches" in one:
                found["steps"][one["name"]] = one["patches"]
            if one.get("timed"):
                found["timed"].append(one["name"])
    if "lint" in row:
        expect(f"{where}, lint,", row["lint"], set(), {"frames", "measured"})
        found |= row["lint"]
    return with_tuples(found)


def shown_rows(where: str, rows: list[dict]) -> tuple[Row, ...]:
    """The [[row]] tables @rows of a series.toml, which is called @where; Failure
    where they are not what a table can be made of."""
    found = []
    for number, row in enumerate(rows, 1):
        expect(f"{where}, row {number},", row, {"id", "metric", "condition", "label"}, {"cost"})
        found.append(Row(**row))
    if len(found) > MOST_ROWS:
        raise Failure(f"{where} has {len(found)} rows: a table of {MOST_ROWS} is as much as a letter shows")
    if len({row.id for row in found}) != len(found):
        raise Failure(f"{where} has two rows of one id: give each its own")
    if found and sum(row.cost for row in found) != 1:
        raise Failure(f"{where} has not one row with 'cost = true': mark the one that a user pays with")
    return tuple(found)


def figure_panel(where: str, row: dict) -> Panel:
    """The [panel] table @row of a series.toml, which is called @where."""
    expect(f"{where}, panel,", row, {"title", "x", "curve"})
    curves = []
    for curve in row["curve"]:
        expect(f"{where}, curve,", curve, {"label", "points"}, {"metric", "cost"})
        points = tuple((float(place), name) for place, name in curve["points"])
        curves.append(Curve(**{**curve, "points": points}))
    return Panel(row["title"], row["x"], tuple(curves))


def read_topic(path: Path) -> Topic:
    """The topic of the series.toml at @path; Failure for what is missing or
    unknown in it."""
    row = read_toml(path)
    expect(str(path), row, {"summary"}, KEYS_OF_TOPIC)
    shown = {"row": shown_rows(str(path), row.get("row", []))}
    if "panel" in row:
        shown["panel"] = figure_panel(str(path), row["panel"])
    states = {name: state(f"{path}, base {name},", table) for name, table in row.get("base", {}).items()}
    said = with_tuples({key: value for key, value in row.items() if key not in PER_BASE})
    found = Topic(name=path.parent.name, **{**said, **members(str(path), row), **shown, "base": states})
    known = bases()
    forms = [found, *(replace(found, **state.own) for state in found.base.values())]
    for name in found.base:
        if name not in known:
            raise Failure(f"{path} names the base '{name}': bases.toml has {', '.join(known)}")
    for name in (name for form in forms for name in form.guests):
        if name not in GUESTS:
            raise Failure(f"{path} asks for the guest '{name}': there is {', '.join(GUESTS)}")
    for form in forms:
        columns = (*form.steps, *form.instead, *([form.replaces] if form.replaces else []), *form.compared)
        for name in set(form.timed) - set(columns):
            raise Failure(f"{path} wants '{name}' timed, which is no column: there is {', '.join(columns) or 'none'}")
    return found


def topics() -> dict[str, Topic]:
    """All topics that have a patches/<topic>/series.toml, by name; Failure as
    read_topic() says, or where one replaces or needs none of the others."""
    found = {path.parent.name: read_topic(path) for path in sorted((ROOT / "patches").glob("*/series.toml"))}
    for topic in found.values():
        for name in topic.needs:
            if name not in found.keys() - {topic.name} or found[name].needs:
                raise Failure(f"topic '{topic.name}' needs '{name}': that is to be another topic, which needs none")
        if topic.replaces and topic.replaces not in found.keys() - {topic.name}:
            others = ", ".join(name for name in found if name != topic.name) or "no other"
            raise Failure(f"topic '{topic.name}' replaces '{topic.replaces}': patches/ has {others}")
    return found


def find_topic(name: str) -> Topic:
    """The topic called @name; Failure names the known ones."""
    known = topics()
    if name not in known:
        raise Failure(f"unknown topic '{name}': patches/ has {', '.join(known)}")
    return known[name]


def need_series(topic: Topic, base: Base, new: bool = False) -> Topic:
    """@topic as it is on @base; Failure, saying why, where there is no series of
    it for @base, which is none if a @new one is to be begun."""
    why = topic.absent(base)
    if why and not new:
        raise Failure(f"topic '{topic.name}' has no series for {base.name}: {why}")
    return topic.for_base(base)


def with_series(base: Base) -> list[Topic]:
    """Every topic that has a series for @base, as it is on @base."""
    return [topic.for_base(base) for topic in topics().values() if not topic.absent(base)]


def measurable(chosen: list[Topic]) -> list[Topic]:
    """The topics of @chosen that have something to measure."""
    return [topic for topic in chosen if not topic.fixes]


def replaced(base: Base) -> list[Topic]:
    """The topics that have a series for @base, as they are on @base, and that
    another with one replaces: what is applied, built and booted by itself."""
    found = with_series(base)
    return [topic for topic in found if topic.name in {other.replaces for other in found}]


def chosen_topics(named: list[Topic] | None, base: Base) -> list[Topic]:
    """The topics @named, or where there are none, every topic that has a series
    for @base but for those replaced(), as they are on @base; Failure where there
    is no series, or where of the topics @named one replaces another."""
    if named:
        for topic in named:
            if topic.replaces in {other.name for other in named}:
                raise Failure(f"'{topic.name}' replaces '{topic.replaces}', so that the two do not go in together: "
                              "name one of them")
        return [need_series(topic, base) for topic in named]
    apart = {topic.name for topic in replaced(base)}
    found = [topic for topic in with_series(base) if topic.name not in apart]
    if not found:
        raise Failure(f"no topic has a series for {base.name}: give another base with BASE= ({', '.join(bases())})")
    return found
