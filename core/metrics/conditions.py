"""Conditions on functions, such as `code_lines >= 12 and harmonic_out > p90`, parsed without `eval`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from gistpoint.core.metrics.table import COLUMNS, ColumnError, FunctionMetrics, percentile

TEXTS = ("function", "kind")
"""The columns that hold text; all others hold numbers."""
_DEEPEST = 50
_LONGEST = 4000

_COMPARISONS: Mapping[str, Callable[[Any, Any], object]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "=": operator.eq,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<sign><=|>=|!=|==|=|<(?!locals>)|>)|(?P<bracket>[()])"
    r"|(?P<quoted>\"[^\"]*\"|'[^']*')|(?P<word>(?:<locals>|[^\s()<>=!\"'])+))"
)
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")

Test = Callable[[FunctionMetrics], bool]
Maker = Callable[["_Population"], Test]


class ConditionError(ColumnError):
    """A condition can't be parsed; if one place in it is wrong, the message names it, counted from 1."""


@dataclass(frozen=True, slots=True)
class FunctionCondition:
    """A condition on functions.

    Comparisons `COLUMN <= VALUE` (or `<`, `>`, `>=`, `=`, `!=`) are joined by `and`, `or`, `not` and
    parentheses. A value is a number, `pNN` for a percentile of the column among all functions, another
    column, or text where the column holds text. A single word is a part of the function's name; text with
    spaces, or equal to a keyword, is quoted. A function without a value in a column meets no comparison on
    it.
    """

    text: str
    _make: Maker

    def over(self, population: Sequence[FunctionMetrics]) -> Test:
        """Return the condition as a test of a function; percentiles are interpolated over `population`."""
        return self._make(_Population(population))


def read_condition(text: str) -> FunctionCondition:
    """Return the condition in a string.

    Raises `ConditionError` if it can't be parsed, and `ColumnError` for an unknown column.
    """
    return FunctionCondition(text, _Reader(text).all())


def filter_rows(
    rows: Iterable[FunctionMetrics],
    conditions: Iterable[str],
    population: Sequence[FunctionMetrics] | None = None,
) -> list[FunctionMetrics]:
    """Return the rows that meet every condition; percentiles are over `population`, by default the rows.

    Raises `ConditionError` if a condition can't be parsed, and `ColumnError` for an unknown column.
    """
    rows = list(rows)
    reference = rows if population is None else population
    tests = [read_condition(text).over(reference) for text in conditions]
    return [row for row in rows if all(test(row) for test in tests)]


class _Population:
    """The percentiles of columns, each of which is sorted once."""

    def __init__(self, rows: Sequence[FunctionMetrics]) -> None:
        self._rows = rows
        self._values: dict[str, list[float]] = {}

    def percentile(self, column: str, percent: float) -> float | None:
        """Return a percentile of a column; None if no function has a value."""
        if column not in self._values:
            cells = (row.cell(column) for row in self._rows)
            self._values[column] = sorted(float(cell) for cell in cells if isinstance(cell, int | float))
        values = self._values[column]
        return percentile(values, percent) if values else None


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: int


class _Reader:
    """Parses a condition by recursive descent; `or` binds least tightly, then `and`, then `not`."""

    def __init__(self, text: str) -> None:
        self._text = text
        if len(text) > _LONGEST:
            raise ConditionError(
                f"A condition has at most {_LONGEST} characters, but this one has {len(text)}."
            )
        self._tokens = self._split()
        self._next = 0
        self._depth = 0

    def all(self) -> Maker:
        """Return the function that makes the whole condition's test from a population.

        Raises `ConditionError` if the condition is empty or invalid.
        """
        if not self._tokens:
            raise ConditionError("The condition is empty.", hint=_FORM)
        maker = self._disjunction()
        if (token := self._peek()) is not None:
            self._refuse(token, "'and' or 'or' is missing before it")
        return maker

    def _split(self) -> list[_Token]:
        tokens: list[_Token] = []
        place, end = 0, len(self._text.rstrip())
        while place < end:
            found = _TOKEN.match(self._text, place)
            if found is None:
                start = place + len(self._text[place:]) - len(self._text[place:].lstrip())
                self._refuse(_Token("", self._text[start], start + 1), "it has no meaning here")
            kind = found.lastgroup or ""
            tokens.append(_Token(kind, found[kind], found.start(kind) + 1))
            place = found.end()
        return tokens

    def _disjunction(self) -> Maker:
        parts = [self._conjunction()]
        while self._take_word("or"):
            parts.append(self._conjunction())
        return _joined(parts, any)

    def _conjunction(self) -> Maker:
        parts = [self._operand()]
        while self._take_word("and"):
            parts.append(self._operand())
        return _joined(parts, all)

    def _operand(self) -> Maker:
        # Conditions are typed by people: a deeply nested one must not hit Python's recursion limit.
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ConditionError(f"The condition is nested more than {_DEEPEST} deep.")
        try:
            return self._negated() if self._take_word("not") else self._atom()
        finally:
            self._depth -= 1

    def _negated(self) -> Maker:
        maker = self._operand()

        def negated(population: _Population) -> Test:
            test = maker(population)
            return lambda row: not test(row)

        return negated

    def _atom(self) -> Maker:
        token = self._take_token()
        if token.text == "(" and token.kind == "bracket":
            maker = self._disjunction()
            if (closing := self._peek()) is None or closing.text != ")":
                self._refuse(token, "it is never closed")
            self._next += 1
            return maker
        if token.kind not in ("word", "quoted") or self._is_keyword(token):
            self._refuse(token, "a column or a word of a name is missing before it")
        following = self._peek()
        if following is None or following.kind != "sign":
            part = _unquoted(token)
            return lambda population: lambda row: part in row.function
        if token.text not in COLUMNS:
            raise ColumnError(
                f"There is no column {token.text!r} (at {token.place} in {self._text!r}).",
                hint=f"Columns: {', '.join(COLUMNS)}.",
            )
        self._next += 1
        return self._comparison(token.text, following, self._take_token())

    def _comparison(self, column: str, sign: _Token, value: _Token) -> Maker:
        compare = _COMPARISONS[sign.text]
        if value.kind not in ("word", "quoted"):
            self._refuse(value, f"a value is missing before it, to compare {column} with")
        text = _unquoted(value)
        if column in TEXTS:
            if compare not in (operator.eq, operator.ne):
                self._refuse(sign, f"{column} contains text, which is compared with = or !=")
            return lambda population: lambda row: bool(compare(row.cell(column), text))
        is_column = text in COLUMNS and text not in TEXTS
        if value.kind == "word" and is_column:
            return lambda population: lambda row: _compared(compare, row.cell(column), row.cell(text))
        if (found := _PERCENTILE.fullmatch(text)) is not None:
            percent = float(found[1])
            if percent > 100:
                self._refuse(value, "a percentile must be from p0 to p100")

            def by_percentile(population: _Population) -> Test:
                bar = population.percentile(column, percent)
                return lambda row: _compared(compare, row.cell(column), bar)

            return by_percentile
        try:
            wanted = float(text)
        except ValueError:
            wanted = math.nan
        # `float` accepts `nan` and `inf`, but comparisons with them are meaningless.
        if not math.isfinite(wanted):
            self._refuse(value, f"{column} is compared with a number, with pNN or with another column")
        return lambda population: lambda row: _compared(compare, row.cell(column), wanted)

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take_token(self) -> _Token:
        token = self._peek()
        if token is None:
            raise ConditionError(f"The condition {self._text!r} ends too early.", hint=_FORM)
        self._next += 1
        return token

    def _take_word(self, word: str) -> bool:
        match self._peek():
            case _Token(kind="word", text=text) if text == word:
                self._next += 1
                return True
        return False

    def _is_keyword(self, token: _Token) -> bool:
        return token.kind == "word" and token.text in ("and", "or", "not")

    def _refuse(self, token: _Token, why: str) -> NoReturn:
        raise ConditionError(f"{token.text!r} at {token.place} in {self._text!r}: {why}.", hint=_FORM)


_FORM = (
    "For example 'code_lines >= 12 and (harmonic_out > p90 or not kind = method)', or a part of a"
    f" name. Columns: {', '.join(COLUMNS)}."
)


def _joined(parts: Sequence[Maker], join: Callable[[Iterable[bool]], bool]) -> Maker:
    if len(parts) == 1:
        return parts[0]

    def joined(population: _Population) -> Test:
        tests = [part(population) for part in parts]
        return lambda row: join(test(row) for test in tests)

    return joined


def _compared(compare: Callable[[Any, Any], object], one: object, other: object) -> bool:
    if one is None or other is None:
        return False
    return bool(compare(one, other))


def _unquoted(token: _Token) -> str:
    return token.text[1:-1] if token.kind == "quoted" else token.text
