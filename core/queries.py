"""The query language of all lists: its grammar, its parser and printer, and queries over rows (decision 173).

    error:"TimeoutError" and tool:bash > 5 and not edited

`or` binds least tightly, then `and`, which may be left out, then `not` and a minus sign. A part is a word, a
quoted text, `field:text`, a comparison such as `steps>20`, a kept query `@name`, or a query in parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar, Union

from gistpoint.core.errors import UserError, did_you_mean

Row = TypeVar("Row")
T = TypeVar("T")
LONGEST = 4_000
"""The maximum length of a query in characters."""
DEEPEST = 50
"""The maximum depth of parentheses, negations and kept queries."""


class QueryError(UserError):
    """A query that can't be understood; the message begins with the character at which it fails, from 1."""


# The grammar


@dataclass(frozen=True, slots=True)
class Word:
    """A word or a quoted text that any column may contain."""

    text: str
    quoted: bool = False
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Term:
    """A condition on one field: `field:value`, `field>value`, `field:key>value` or `field.key:value`."""

    name: str
    operator: str
    value: str
    key: str = ""
    quoted: bool = False
    counted: bool = False
    """Whether the key is after a colon, and what it names is counted."""
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Kept:
    """A query that is kept under a name."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of an expression."""

    part: Expression


@dataclass(frozen=True, slots=True)
class And:
    """Expressions that must all hold; without any, everything matches."""

    parts: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Or:
    """Expressions of which one must hold."""

    parts: tuple[Expression, ...]


Expression: TypeAlias = Union[Word, Term, Kept, Not, And, Or]  # noqa: UP007 (recursive)
_COMPARE = r"<=|>=|!=|<|>|=(?!=)"
_OPERATOR = re.compile(rf"{_COMPARE}|:(?!:)")
_COMPARISON = re.compile(rf"\s*({_COMPARE})")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[\w.\-/]+(?=[<>=!:\s]))?")
_KEYWORD = re.compile(r"(and|or|not)(?=[\s()\"']|$)", re.IGNORECASE)
_KEPT_NAME = re.compile(r"@([A-Za-z][\w-]*)")
_BARE = re.compile(r"\S")
KEPT_NAME = re.compile(r"[A-Za-z][\w-]{0,59}")
"""The names under which queries can be kept."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The facts about fields that a parser needs: which names are fields, and which of these have keys."""

    is_field: Callable[[str], bool] = lambda name: False
    is_counted: Callable[[str], bool] = lambda name: False
    """Whether a field has keys after its colon: `tool:bash > 5`."""
    is_dotted: Callable[[str], bool] = lambda name: False
    """Whether a field has keys after a dot: `meta.run.id:7`."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """The kept queries by name."""


def parse(text: str, grammar: Grammar | None = None) -> Expression:
    """Return the expression that a query describes. Raises `QueryError` if it can't be understood."""
    return _Parser(text, grammar or Grammar(), 0).whole()


class _Parser:
    """Reads a query by recursive descent."""

    def __init__(self, text: str, grammar: Grammar, depth: int) -> None:
        self._text, self._grammar, self._depth, self._at = text, grammar, depth, 0
        self._open = 0
        """The number of open parentheses."""
        if len(text) > LONGEST:
            raise QueryError(f"A query has at most {LONGEST:,} characters, this one has {len(text):,}.")

    def whole(self) -> Expression:
        """Return the expression of the whole text."""
        if not self._text.strip():
            return And()
        found = self._disjunction("a condition")
        self._skip()
        if self._at < len(self._text):  # only a parenthesis ends a disjunction early
            self._refuse(self._at, "this parenthesis was not opened", 'Write ")" to search for it.')
        return found

    def _disjunction(self, expected: str) -> Expression:
        parts = [self._conjunction(expected)]
        while self._take("or"):
            parts.append(self._conjunction("a condition after 'or'"))
        return _flat(Or, parts)

    def _conjunction(self, expected: str) -> Expression:
        parts = [self._negation(expected)]
        while True:
            if self._take("and"):
                parts.append(self._negation("a condition after 'and'"))
            elif self._ends():
                return _flat(And, parts)
            else:
                parts.append(self._negation("a condition"))

    def _ends(self) -> bool:
        self._skip()
        if self._at >= len(self._text) or self._text[self._at] == ")":
            return True
        keyword = _KEYWORD.match(self._text, self._at)
        return keyword is not None and keyword[1].lower() == "or"

    def _negation(self, expected: str) -> Expression:
        self._skip()
        if self._take("not"):
            return Not(self._deeper(lambda: self._negation("a condition after 'not'")))
        # A minus sign by itself is a word, as in a diff or between two names.
        is_minus = self._text.startswith("-", self._at) and _BARE.match(self._text, self._at + 1)
        if is_minus and self._text[self._at + 1] != ")":
            self._at += 1
            return Not(self._deeper(lambda: self._negation("a condition after the minus sign")))
        return self._part(expected)

    def _part(self, expected: str) -> Expression:
        if self._at >= len(self._text):
            self._refuse(self._at, f"expected {expected}, but the query ends here", _FORMS)
        if self._text[self._at] == "(":
            return self._deeper(self._group)
        if self._text[self._at] == ")" or _KEYWORD.match(self._text, self._at):
            word = (_KEYWORD.match(self._text, self._at) or [")"])[0]
            self._refuse(self._at, f"expected {expected}, not {word!r}", f'Write "{word}" to search for it.')
        kept = _KEPT_NAME.match(self._text, self._at)
        return self._kept(kept) if kept is not None else self._term()

    def _group(self) -> Expression:
        opened = self._at
        self._at += 1
        self._open += 1
        found = self._disjunction("a condition in parentheses")
        self._skip()
        if not self._text.startswith(")", self._at):
            self._refuse(opened, "this parenthesis is not closed", "Expected ')' at the end.")
        self._at += 1
        self._open -= 1
        return found

    def _kept(self, found: re.Match[str]) -> Kept:
        name = found[1]
        text = self._grammar.kept.get(name)
        if text is None:
            meant = did_you_mean(name, self._grammar.kept).strip()
            known = ", ".join(f"@{known}" for known in sorted(self._grammar.kept)) or "none"
            self._refuse(self._at, f"no query is kept as {name!r}", meant or f"Kept are: {known}.")
        start, self._at = self._at, found.end()
        try:
            return Kept(name, _Parser(text, self._grammar, self._deeper(lambda: self._depth)).whole())
        except QueryError as error:
            if self._depth:
                raise
            raise QueryError(
                f"Character {start + 1}: in @{name}: {error.message}", hint=error.hint
            ) from error

    def _deeper(self, read: Callable[[], T]) -> T:
        self._depth += 1
        if self._depth > DEEPEST:
            self._refuse(self._at, f"the query is nested more than {DEEPEST} deep", "Make it simpler.")
        found = read()
        self._depth -= 1
        return found

    # Parts without parts

    def _term(self) -> Word | Term:
        start = self._at
        if self._text[start] in "\"'":
            return Word(self._quoted(), True, start)
        name = _NAME.match(self._text, start)
        named = self._named(name) if name is not None else None
        return named if named is not None else Word(self._bare(), False, start)

    def _named(self, found: re.Match[str]) -> Term | None:
        """Return the condition on a field that begins here; None if a word begins here."""
        name, start = found[0], found.start()
        key = ""
        if "." in name:
            first, _, key = name.partition(".")
            if not self._grammar.is_dotted(first):
                return None
            name = first
        operator = _OPERATOR.match(self._text, found.end())
        if operator is None:
            operator = self._spaced_operator(name, found.end())
        if operator is None or (operator[0] == "!=" and not self._grammar.is_field(name)):
            return None
        self._at = operator.end()
        sign = operator[0].strip()
        if sign == ":" and self._grammar.is_counted(name) and not key:
            return self._counted(name, start)
        if sign != ":":
            self._skip()
            if self._at >= len(self._text):
                self._refuse(self._at, f"expected a number after {name}{sign}, not nothing", _NUMBERS)
        value, quoted = self._value()
        return Term(name, sign, value, key, quoted, at=start)

    def _spaced_operator(self, name: str, at: int) -> re.Match[str] | None:
        """Return the comparison after blanks, if a field is named before them and a value follows."""
        found = _COMPARISON.match(self._text, at)
        if found is None or not self._grammar.is_field(name):
            return None
        return found if self._text[found.end() :].strip() else None

    def _counted(self, name: str, start: int) -> Term:
        # Without a comparison, what looks like the key is the value: the tool was called at all.
        key, quoted = self._value("<>=!")
        compared = _COMPARISON.match(self._text, self._at)
        if compared is None or not key:
            return Term(name, ":", key, "", quoted, at=start)
        self._at = compared.end()
        self._skip()
        if self._at >= len(self._text):
            self._refuse(
                self._at, f"expected a number after {compared[1]}, but the query ends here", _NUMBERS
            )
        value, _ = self._value()
        return Term(name, compared[1], value, key, quoted, counted=True, at=start)

    def _value(self, ends: str = "") -> tuple[str, bool]:
        """Return the value that begins here, and whether it is quoted; empty if a blank is here."""
        if self._at < len(self._text) and self._text[self._at] in "\"'":
            return self._quoted(), True
        return self._bare(ends), False

    def _quoted(self) -> str:
        start, sign = self._at, self._text[self._at]
        found: list[str] = []
        at = start + 1
        while at < len(self._text) and self._text[at] != sign:
            # A backslash before anything else is literal, because patterns and paths contain many.
            is_escape = self._text[at] == "\\" and self._text[at + 1 : at + 2] in (sign, "\\")
            at += is_escape and bool(self._text[at + 1 : at + 2])
            found.append(self._text[at])
            at += 1
        if at >= len(self._text):
            self._refuse(start, "this quote is not closed", f"Expected {sign} at the end of the text.")
        self._at = at + 1
        return "".join(found)

    def _bare(self, ends: str = "") -> str:
        """Return the text up to the next blank, a sign in `ends`, or a parenthesis that closes a group."""
        start, inner = self._at, 0
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign.isspace() or sign in ends:
                break
            closes_a_group = sign == ")" and inner == 0 and self._open > 0
            if closes_a_group:
                break
            inner = max(0, inner + (sign == "(") - (sign == ")"))
            self._at += 1
        return self._text[start : self._at]

    # Signs

    def _skip(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _take(self, word: str) -> bool:
        """Read a keyword if it is next; return whether it was."""
        self._skip()
        found = _KEYWORD.match(self._text, self._at)
        if found is None or found[1].lower() != word:
            return False
        self._at = found.end()
        return True

    def _refuse(self, at: int, what: str, hint: str) -> NoReturn:
        raise QueryError(f"Character {at + 1}: {what}.", hint=hint)


_FORMS = "Such as a word, model:name, steps>20, or not edited."
_NUMBERS = "Such as 20, 1.5k, $0.50 or 1:30."


def _flat(kind: type[And] | type[Or], parts: list[Expression]) -> Expression:
    """Return one expression for several; parts of the same kind are flattened."""
    if len(parts) == 1:
        return parts[0]
    flat: list[Expression] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) else (part,)
    return kind(tuple(flat))


def printed(expression: Expression) -> str:
    """Return the text of an expression, from which `parse` makes the same expression."""
    match expression:
        case Or(parts):
            return " or ".join(map(printed, parts))
        case And(parts):
            return " and ".join(_within(part, Or) for part in parts)
        case Not(part):
            return f"not {_within(part, And, Or)}"
        case Kept(name, _):
            return f"@{name}"
        case Word(text, quoted):
            return _quote(text) if quoted else text
        case Term():
            return _printed_term(expression)


def _within(part: Expression, *looser: type) -> str:
    return f"({printed(part)})" if isinstance(part, looser) else printed(part)


def _printed_term(term: Term) -> str:
    if term.counted:
        key = _quote(term.key) if term.quoted else term.key
        return f"{term.name}:{key} {term.operator} {term.value}"
    value = _quote(term.value) if term.quoted else term.value
    key = f".{term.key}" if term.key else ""
    return f"{term.name}{key}{term.operator}{value}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# Queries over rows

ContentTerm: TypeAlias = tuple[str, str]
"""A field whose text is only in the run itself, and the text that is looked for in it."""
Answer: TypeAlias = bool | None
"""Whether a condition holds; None if that is not known yet."""
_NOT_KNOWN: Callable[[Any, ContentTerm], Answer] = lambda row, term: None  # noqa: E731 (the default of a field)


@dataclass(frozen=True, slots=True, eq=False)
class QueryField(Generic[Row]):
    """A field that queries can ask for."""

    name: str
    contains: Callable[[Row, str, str], bool] = lambda row, key, word: False
    """Whether the field of a row, or its part with a key, contains a word in lower case."""
    number: Callable[[Row, str], float] | None = None
    """Returns the number; NaN, which matches no comparison, if it is unknown."""
    shown: Callable[[Row], str] = lambda row: ""
    """Returns the text that `=` also compares."""
    former_names: tuple[str, ...] = ()
    words: Mapping[str, Callable[[Row], bool]] = field(default_factory=dict)
    """Words that mean something without a field."""
    has_words: bool = True
    """Whether words without a field are also looked for in this one."""
    is_counted: bool = False
    is_dotted: bool = False
    is_content: bool = False
    """Whether the text is only in the run itself, where a separate search has to find the answer."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names in queries, in lower case; a name with a blank is written with an underscore."""
        return (self.name.lower().replace(" ", "_"), *self.former_names)


@dataclass(frozen=True, slots=True)
class RowQuery(Generic[Row]):
    """A query over rows."""

    decide: Callable[[Row, Callable[[Row, ContentTerm], Answer]], Answer] = lambda row, find: True
    """Returns whether a row matches; the second argument is a function that searches its content."""
    content: tuple[ContentTerm, ...] = ()
    """The terms that the query looks for in the content of runs, each once."""
    find: Callable[[Row, ContentTerm], Answer] = _NOT_KNOWN
    """Returns what is known of the content of a row."""

    def matches(self, row: Row) -> bool:
        """Return whether a row matches as far as its content is known."""
        return self.decide(row, self.find) is True


class QueryLanguage(Generic[Row]):
    """The fields that queries over some rows can ask for."""

    def __init__(
        self, fields: Sequence[QueryField[Row]], kept: Mapping[str, str] | None = None, *, what: str = "field"
    ) -> None:
        """`kept` are the kept queries by name, `what` is the word for a field in messages."""
        self.fields, self._what = tuple(fields), what
        self.grammar = Grammar(
            is_field=lambda name: self._find(name) is not None,
            is_counted=lambda name: self._has(name, "is_counted"),
            is_dotted=lambda name: self._has(name, "is_dotted"),
            kept=kept or {},
        )

    def query(self, text: str) -> RowQuery[Row]:
        """Return the query that a string describes. Raises `QueryError` if it can't be understood."""
        expression = parse(text, self.grammar)
        found: dict[ContentTerm, None] = {}
        decide = self._decider(expression, found)
        return RowQuery(decide, tuple(found))

    def _find(self, name: str) -> QueryField[Row] | None:
        """Return the field with a name, or else the first one whose name begins with it."""
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
            case Kept(_, inner):
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
        """Return the test for a word in any field. If fields define the word, only they are tested."""
        plain = word.text.lower()
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
            raise QueryError(
                f"Character {term.at + 1}: {asked.name} contains no numbers.",
                hint=f'Write {asked.name}:"words".',
            )
        if not term.value:
            return lambda row, find: True
        content = (asked.name, term.value)
        found[content] = None
        return lambda row, find: find(row, content)

    def _own_test(self, asked: QueryField[Row], term: Term) -> Callable[[Row], bool]:
        number, wanted, key = number_of(term.value), term.value.lower(), term.key
        means_text = asked.number is None or number is None
        if term.operator == ":":
            return lambda row: asked.contains(row, key, wanted)
        if term.operator in ("=", "!=") and means_text:
            is_wanted = term.operator == "="
            return lambda row: asked.contains(row, key, wanted) is is_wanted
        where = f"Character {term.at + 1}: "
        if asked.number is None:
            hint = f"Write {term.name}:words."
            raise QueryError(f"{where}The {self._what} {asked.name} contains no numbers.", hint=hint)
        if number is None:
            form = f"{term.name}{term.operator}"
            hint = f"Write {form}20, {form}1.5k or {term.name}:words."
            raise QueryError(f"{where}{term.value or 'nothing'} is not a number.", hint=hint)
        compare, of_row, value = _COMPARISONS[term.operator], asked.number, number
        if term.operator == "=":
            return lambda row: compare(of_row(row, key), value) or asked.shown(row) == term.value
        return lambda row: compare(of_row(row, key), value)


def _opposite(answer: Answer) -> Answer:
    return None if answer is None else not answer


def _all(answers: Iterator[Answer]) -> Answer:
    """Return whether all answers are True: False if one is False, None if that depends on unknown ones."""
    found: Answer = True
    for answer in answers:
        if answer is False:
            return False
        if answer is None:
            found = None
    return found


_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b and a == a,
}
_PRINTED = re.compile(r"\$?(-?[\d,]*\.?\d+(?:e[+-]?\d{1,3})?)\s*([kmg%]?)", re.IGNORECASE)
_TIME = re.compile(r"(?:(\d{1,9}):)?(\d{1,9}):(\d\d)")
_UNITS = {"": 1.0, "%": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


def number_of(text: str) -> float | None:
    """Parse a number as printed in tables: `1,234`, `111k`, `1.5M`, `$0.25`, `40%`, or `1:30` in seconds.

    Returns None for anything else.
    """
    if found := _TIME.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return float(hours * 3600 + minutes * 60 + seconds)
    found = _PRINTED.fullmatch(text)
    return float(found[1].replace(",", "")) * _UNITS[found[2].lower()] if found else None


def value_or_nan(value: float | None) -> float:
    """Return a number for comparisons; NaN, which matches none, for None."""
    return nan if value is None else float(value)
