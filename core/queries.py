"""Queries over rows: the fields that a query can name, and the rows that it finds (decision 173)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from gistpoint.core.errors import did_you_mean
from gistpoint.core.folding import contains_folded, folded
from gistpoint.core.query_grammar import (
    And,
    Expression,
    Grammar,
    Kept,
    KeptQueries,
    Not,
    Or,
    QueryError,
    Term,
    Word,
    parse,
    within_kept,
)

Row = TypeVar("Row")
ContentTerm: TypeAlias = tuple[str, str]
"""A field whose text is only in the run itself, and the text to look for in it."""
Answer: TypeAlias = bool | None
"""Whether a condition holds; None if that is not known yet."""
_NOT_KNOWN: Callable[[Any, ContentTerm], Answer] = lambda row, term: None  # noqa: E731 (the default of a field)


@dataclass(frozen=True, slots=True, eq=False)
class QueryField(Generic[Row]):
    """A field that queries can ask for."""

    name: str
    texts: Callable[[Row, str], Iterable[str]] = lambda row, key: ()
    """Returns a row's strings in the field, or in the part of it with a key, in which to look for words."""
    numbers: Callable[[Row, str], Sequence[float]] | None = None
    """Returns the numbers: one must match, or all for `!=`. NaN and an empty sequence match nothing."""
    shown: Callable[[Row], str] = lambda row: ""
    """Returns the text that `=` also compares."""
    former_names: tuple[str, ...] = ()
    words: Mapping[str, Callable[[Row], bool]] = field(default_factory=dict)
    """Words with their own meaning, alone or after the field: `outcome:solved` does not find `unsolved`."""
    own_words: Mapping[str, Callable[[Row], bool]] = field(default_factory=dict)
    """Further words that have their own meaning only after the field."""
    has_words: bool = True
    """Whether to look in this field for words without a field."""
    is_counted: bool = False
    is_dotted: bool = False
    is_content: bool = False
    """Whether the text is only in the run itself, where a separate search has to find the answer."""

    def contains(self, row: Row, key: str, word: str) -> bool:
        """Return whether a string of the field contains a case-folded word."""
        return any(contains_folded(text, word) for text in self.texts(row, key))

    @property
    def names(self) -> tuple[str, ...]:
        """The names in queries, in lower case; a name with a space is written with an underscore."""
        return (self.name.lower().replace(" ", "_"), *self.former_names)


@dataclass(frozen=True, slots=True)
class RowQuery(Generic[Row]):
    """A query over rows."""

    decide: Callable[[Row, Callable[[Row, ContentTerm], Answer]], Answer] = lambda row, find: True
    """Returns whether a row matches; the second argument is a function that searches its content."""
    content: tuple[ContentTerm, ...] = ()
    """The terms that the query looks for in the content of runs, each once."""
    find: Callable[[Row, ContentTerm], Answer] = _NOT_KNOWN
    """Returns whether a row's content contains a term, or None if that is unknown."""

    def matches(self, row: Row) -> bool:
        """Return whether a row matches as far as its content is known."""
        return self.decide(row, self.find) is True


class QueryLanguage(Generic[Row]):
    """The query language of a list or a command, defined by the fields of its rows."""

    def __init__(
        self, fields: Sequence[QueryField[Row]], kept: KeptQueries | None = None, *, what: str = "field"
    ) -> None:
        """`kept` are the kept queries, `what` is the word for a field in messages."""
        self.fields, self._what = tuple(fields), what
        self.grammar = Grammar(
            is_field=lambda name: self._find(name) is not None,
            is_counted=lambda name: self._has(name, "is_counted"),
            is_dotted=lambda name: self._has(name, "is_dotted"),
            kept=kept or KeptQueries(),
        )

    def query(self, text: str) -> RowQuery[Row]:
        """Return the query that a string describes. Raises `QueryError` if it can't be understood."""
        expression = parse(text, self.grammar)
        found: dict[ContentTerm, None] = {}
        decide = self._decider(expression, found)
        return RowQuery(decide, tuple(found))

    def _find(self, name: str) -> QueryField[Row] | None:
        """Return the field with a name, or else the first whose name begins with it; None without any."""
        wanted = name.lower()
        exact = (one for one in self.fields if wanted in one.names)
        begun = (one for one in self.fields if any(known.startswith(wanted) for known in one.names))
        return next(exact, None) or next(begun, None)

    def _has(self, name: str, trait: str) -> bool:
        found = self._find(name)
        return found is not None and bool(getattr(found, trait))

    def _named(self, term: Term) -> QueryField[Row]:
        found = self._find(term.name)
        if found is not None:
            return found
        if any(term.name.lower() in one.words for one in self.fields):
            raise QueryError(
                f"Character {term.at + 1}: {term.name} is true of a row or not, and has no value.",
                hint=f"Write {term.name}, or not {term.name}.",
            )
        names = [one.name.replace(" ", "_") for one in self.fields if one.name]
        meant = did_you_mean(term.name.lower(), names).strip()
        raise QueryError(
            f"Character {term.at + 1}: There is no {self._what} {term.name}.",
            hint=f"{meant} {self._what.capitalize()}s: {', '.join(names)}.".strip(),
        )

    def _decider(
        self, expression: Expression, found: dict[ContentTerm, None]
    ) -> Callable[[Row, Callable[[Row, ContentTerm], Answer]], Answer]:
        match expression:
            case Kept(name, inner, at):
                with within_kept(name, at):
                    return self._decider(inner, found)
            case Not(part):
                decide = self._decider(part, found)
                return lambda row, find: _opposite(decide(row, find))
            case And(parts):
                every = [self._decider(part, found) for part in parts]
                return lambda row, find: _all(one(row, find) for one in every)
            case Or(parts):
                some = [self._decider(part, found) for part in parts]
                return lambda row, find: _opposite(_all(_opposite(one(row, find)) for one in some))
            case Word():
                test = self._word_test(expression)
                return lambda row, find: test(row)
            case Term():
                return self._term_test(expression, found)

    def _word_test(self, word: Word) -> Callable[[Row], bool]:
        """Return the test for a word in any field; fields that define an unquoted word decide on it alone."""
        plain = folded(word.text)
        own = [one.words[plain] for one in self.fields if plain in one.words]
        if own and not word.quoted:
            return lambda row: any(test(row) for test in own)
        searched = [one for one in self.fields if one.has_words]
        return lambda row: any(one.contains(row, "", plain) for one in searched)

    def _term_test(
        self, term: Term, found: dict[ContentTerm, None]
    ) -> Callable[[Row, Callable[[Row, ContentTerm], Answer]], Answer]:
        asked = self._named(term)
        if asked.is_content:
            return self._content_test(asked, term, found)
        test = self._own_test(asked, term)
        return lambda row, find: test(row)

    def _content_test(
        self, asked: QueryField[Row], term: Term, found: dict[ContentTerm, None]
    ) -> Callable[[Row, Callable[[Row, ContentTerm], Answer]], Answer]:
        if term.operator != ":":
            counted = self._find(f"{asked.name}s")
            count = "" if counted is None else f", or {counted.name}{term.operator}5 for their number"
            raise QueryError(
                f"Character {term.at + 1}: The {self._what} {asked.name} is searched, not compared.",
                hint=f'Write {asked.name}:"{term.value}"{count}.',
            )
        if not term.value:
            return lambda row, find: True
        content = (asked.name, term.value)
        found[content] = None
        return lambda row, find: find(row, content)

    def _own_test(self, asked: QueryField[Row], term: Term) -> Callable[[Row], bool]:
        wanted, key = folded(term.value), term.key
        means_text = asked.numbers is None or number_of(term.value) is None
        is_text = term.quoted and term.operator == ":"
        meant = None if is_text or key else asked.words.get(wanted) or asked.own_words.get(wanted)
        if meant is not None and term.operator in (":", "=", "!="):
            holds, is_asked = meant, term.operator != "!="
            return lambda row: holds(row) is is_asked
        if term.operator == ":":
            _refuse_comparison(asked, term)
            return lambda row: asked.contains(row, key, wanted)
        if term.operator in ("=", "!=") and means_text:
            is_wanted = term.operator == "="
            return lambda row: asked.contains(row, key, wanted) is is_wanted
        return self._number_test(asked, term)

    def _number_test(self, asked: QueryField[Row], term: Term) -> Callable[[Row], bool]:
        number, key = number_of(term.value), term.key
        if asked.numbers is None or number is None:
            raise self._not_a_number(asked, term)
        of_row, value = asked.numbers, number
        if term.operator == "!=":
            return lambda row: _differs(of_row(row, key), value)
        compare = _COMPARISONS[term.operator]

        def fits(row: Row) -> bool:
            return any(compare(one, value) for one in of_row(row, key))

        return (lambda row: fits(row) or asked.shown(row) == term.value) if term.operator == "=" else fits

    def _not_a_number(self, asked: QueryField[Row], term: Term) -> QueryError:
        """Return the error for a term whose value can't be compared as a number."""
        where = f"Character {term.at + 1}: "
        if asked.numbers is None:
            return QueryError(
                f"{where}The {self._what} {asked.name} contains no numbers.",
                hint=f"Write {term.name}:words.",
            )
        form = f"{term.name}{f':{term.key} ' if term.counted else ''}{term.operator}"
        if _DECIMAL_COMMA.fullmatch(term.value):
            point = term.value.replace(",", ".")
            return QueryError(
                f"{where}{term.value} has a comma instead of a decimal point.", hint=f"Write {form}{point}."
            )
        hint = f"Write {form}20{f', {form}1.5k or {term.name}:words' if not term.counted else ''}."
        return QueryError(f"{where}{term.value or 'nothing'} is not a number.", hint=hint)


def _refuse_comparison(asked: QueryField[Row], term: Term) -> None:
    """Raise `QueryError` for `steps:>20`, which would search for the text `>20`."""
    compared = _COMPARED.match(term.value)
    if asked.numbers is None or term.quoted or compared is None:
        return
    number = term.value[compared.end() :]
    if not number or number_of(number) is not None:
        name = f"{term.name}.{term.key}" if term.key else term.name
        raise QueryError(
            f"Character {term.at + 1}: there is a colon before {compared[0]}.",
            hint=f"Write {name}{compared[0]}{number or 20}.",
        )


def _opposite(answer: Answer) -> Answer:
    return None if answer is None else not answer


def _all(answers: Iterator[Answer]) -> Answer:
    """Return whether all answers are True: False if one is False, None if unknown answers decide."""
    found: Answer = True
    for answer in answers:
        if answer is False:
            return False
        if answer is None:
            found = None
    return found


def _differs(numbers: Sequence[float], value: float) -> bool:
    """Return whether numbers are known and none of them equals the value."""
    return value not in numbers and any(number == number for number in numbers)


_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
}
_COMPARED = re.compile("(?:<=|>=|!=|<|>|=|\u2264|\u2265|\u2260)")
_DECIMAL_COMMA = re.compile(r"\$?-?\d*,\d+[kmg%]?", re.IGNORECASE)
_PRINTED = re.compile(
    r"\$?(-?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:e[+-]?\d{1,3})?)\s*([kmg%]?)", re.IGNORECASE
)
_TIME = re.compile(r"(?:(\d{1,9}):)?(\d{1,9}):(\d\d)")
_UNITS = {"": 1.0, "%": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def number_of(text: str) -> float | None:
    """Return the value of a number in a form that tables print: `1,234`, `1.5M`, `$0.25`, `40%` or `1:30`.

    `40%` is 40, and `1:30` is 90 (seconds). None for anything else.
    """
    if found := _TIME.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return float(hours * 3600 + minutes * 60 + seconds)
    found = _PRINTED.fullmatch(text)
    return float(found[1].replace(",", "")) * _UNITS[found[2].lower()] if found else None


def known_numbers(*values: float | None) -> list[float]:
    """Return the values that are not None."""
    return [float(value) for value in values if value is not None]
