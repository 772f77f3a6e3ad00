"""The rows of the list of runs: cells, sorting, grouping, and the query that narrows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from gistpoint.core.attempts.state import AttemptResult, solved_words
from gistpoint.core.errors import UserError
from gistpoint.sessions.runs.model import Run
from gistpoint.sessions.runs.opening import Listed
from gistpoint.tui.view_models import TO_BE_READ


class QueryError(UserError):
    """A query can't be understood."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of the list; `labels` are what the reviewer has said of it."""

    listed: Listed
    labels: tuple[str, ...] = ()
    said: str = ""
    """The reviewer's verdict."""
    hides: bool = False
    """Whether model and outcome are hidden."""

    @property
    def name(self) -> str:
        """What opens it."""
        return self.listed.name

    @property
    def header(self) -> Run:
        """What is known of it."""
        return self.listed.header or Run("")


Value = float | str


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its width in cells, the value that it is sorted by, and how that is shown."""

    name: str
    width: int
    value: Callable[[RunRow], Value]
    shown: Callable[[RunRow], str]
    right: bool = False


def _tokens(row: RunRow) -> float:
    tokens = row.header.tokens
    return float((tokens.prompt or 0) + (tokens.completion or 0))


def _verdict(row: RunRow) -> str:
    if row.listed.problem:
        return "! " + row.listed.problem
    if row.hides:
        return "hidden"
    header = row.header
    words = {"solved": "✔ solved", AttemptResult.TO_BE_READ: TO_BE_READ, "unsolved": "✘ unsolved"}
    return words.get(header.verdict, header.verdict) or header.exit_status


def _model(row: RunRow) -> str:
    return "hidden" if row.hides else row.header.model or ("a person" if row.header.actor.value == "person" else "")


def _number(value: float | None, text: str = "{:,.0f}") -> str:
    return "" if not value else text.format(value)


def _duration(row: RunRow) -> str:
    seconds = row.header.duration_s
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


COLUMNS: tuple[Column, ...] = (
    Column("task", 30, lambda r: (r.header.task or r.name).lower(), lambda r: r.header.task or PurePath(r.name).name),
    Column("model", 24, lambda r: _model(r).lower(), _model),
    Column("verdict", 14, lambda r: _verdict(r).lower(), _verdict),
    Column("steps", 6, lambda r: r.header.step_count or -1, lambda r: _number(r.header.step_count), True),
    Column("subm", 4, lambda r: r.header.submissions or -1, lambda r: _number(r.header.submissions), True),
    Column("tokens", 9, _tokens, lambda r: _number(_tokens(r) / 1000, "{:,.0f}k"), True),
    Column(
        "cost", 7, lambda r: r.header.cost or -1, lambda r: "" if r.hides else _number(r.header.cost, "${:,.2f}"), True
    ),
    Column("time", 8, lambda r: r.header.duration_s or -1, _duration, True),
    Column("labels", 12, lambda r: len(r.labels), lambda r: " ".join(filter(None, [r.said, *r.labels]))),
    Column("format", 14, lambda r: r.header.format, lambda r: r.header.format),
    Column("file", 40, lambda r: r.name, lambda r: PurePath(r.name).name),
)
NARROW = ("task", "verdict", "steps", "cost", "labels", "model")
"""Columns of a small terminal, in the order of their weight."""
GROUPS = ("", "task", "model", "verdict")


def columns_for(width: int) -> list[Column]:
    """Return the columns that there is room for."""
    if width >= 120:
        return list(COLUMNS)
    return [column for name in NARROW for column in COLUMNS if column.name == name]


_COMPARISON = re.compile(r"(-?)(\w+)(<=|>=|<|>|=|:)(.*)")
_WAYS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
}


@dataclass(frozen=True, slots=True)
class RunQuery:
    """What runs must fit: words anywhere, `column:words`, `steps>20`; a minus in front turns it round."""

    tests: tuple[Callable[[RunRow], bool], ...] = field(default_factory=tuple)

    def fits(self, row: RunRow) -> bool:
        """Whether a run is to be shown."""
        return all(test(row) for test in self.tests)


def parse_query(text: str) -> RunQuery:
    """Read a query. Raises `QueryError` for an unknown column, or a number that is none."""
    return RunQuery(tuple(_test(word) for word in text.split()))


def _test(word: str) -> Callable[[RunRow], bool]:
    match = _COMPARISON.fullmatch(word)
    if match is None:
        negated, plain = word.startswith("-") and len(word) > 1, word.lower()
        plain = plain[1:] if negated else plain
        return lambda row: _holds(row, plain) is not negated
    sign, name, way, wanted = match.groups()
    column = next((c for c in COLUMNS if c.name.startswith(name.lower())), None)
    if column is None:
        raise QueryError(f"There is no column {name}.", hint=f"Columns: {', '.join(c.name for c in COLUMNS)}.")
    if way == ":" or (way == "=" and not _is_number(wanted)):
        low = wanted.lower()
        return lambda row: (low in column.shown(row).lower()) is not bool(sign)
    if not _is_number(wanted):
        raise QueryError(f"{wanted or 'nothing'} is no number.", hint=f"Write {name}{way}20, or {name}:words.")
    number, compare = float(wanted), _WAYS[way]
    return lambda row: compare(_as_number(column.value(row)), number) is not bool(sign)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_number(value: Value) -> float:
    return value if isinstance(value, int | float) else 0.0


def _holds(row: RunRow, word: str) -> bool:
    if word in ("solved", "unsolved"):
        return not row.hides and row.header.verdict == word
    return any(word in column.shown(row).lower() for column in COLUMNS) or (not row.hides and word in row.name.lower())


def arranged(
    rows: Iterable[RunRow], query: RunQuery, column: Column | None, *, reverse: bool = False, group: str = ""
) -> list[RunRow | str]:
    """Return the rows that fit, in order; with a group, a heading stands before each."""
    kept = [row for row in rows if query.fits(row)]
    if column is not None:
        kept.sort(key=lambda row: _key(column.value(row)), reverse=reverse)
    elif reverse:
        kept.reverse()
    if not group:
        return list(kept)
    by = next(c for c in COLUMNS if c.name == group)
    groups: dict[str, list[RunRow]] = {}
    for row in kept:
        groups.setdefault(by.shown(row) or "not known", []).append(row)
    found: list[RunRow | str] = []
    for name in sorted(groups):
        found += [heading(name, groups[name]), *groups[name]]
    return found


def heading(name: str, rows: Sequence[RunRow]) -> str:
    """Return the line above a group: how many runs it has, and how many were solved."""
    verdicts = [row.header.verdict for row in rows if row.header.verdict and not row.hides]
    known = {str(result): result for result in AttemptResult}
    share = f", {solved_words(known.get(v, AttemptResult.NOT_SOLVED) for v in verdicts)}" if verdicts else ""
    return f"{name}: {len(rows)} runs{share}"


def _key(value: Value) -> tuple[float, str]:
    return (0.0, value) if isinstance(value, str) else (float(value), "")
