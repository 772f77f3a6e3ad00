"""The grammar of the query language of all lists: its expressions and its parser (decision 173).

    error:"TimeoutError" and tool:bash > 5 and not edited

`or` binds least, then `and`, which may be left out, then `not` and a minus sign. A part is a word, quoted
text, `field:text`, a comparison such as `steps>20`, a kept query `@name`, or a query in parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias, TypeVar, Union

from gistpoint.core.errors import UserError, did_you_mean
from gistpoint.core.query_mistakes import Mistake, mistake_in_value, mistake_in_word

T = TypeVar("T")
LONGEST = 4_000
"""The maximum length of a query in characters."""
DEEPEST = 50
"""The maximum depth of parentheses, negations and kept queries."""


class QueryError(UserError):
    """A query that can't be understood.

    If a place in it is wrong, the message begins with the number of the character there, counted from 1.
    """


# The grammar


@dataclass(frozen=True, slots=True)
class Word:
    """A word or quoted text to be found in any field."""

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
    counted: bool = False
    """Whether the key is after a colon, so that the number of entries with the key is compared."""
    quoted: bool = False
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Kept:
    """A query that is kept under a name."""

    name: str
    expression: Expression
    at: int = field(default=0, compare=False)


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
    """Expressions of which at least one must hold."""

    parts: tuple[Expression, ...]


Expression: TypeAlias = Union[Word, Term, Kept, Not, And, Or]  # noqa: UP007 (recursive)
_COMPARE = "<=|>=|!=|<|>|=(?!=)|\u2264|\u2265|\u2260"
_WRITTEN: Mapping[str, str] = {"\u2264": "<=", "\u2265": ">=", "\u2260": "!="}
_QUOTES: Mapping[str, str] = {
    '"': '"',
    "'": "'",
    "\u201c": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u2018": "\u2019",
    "\u00ab": "\u00bb",
}
"""The signs that open quoted text, each with its closing signs; editors and chats insert curved quotes."""
_OPERATOR = re.compile(rf"{_COMPARE}|:(?!:)")
_COMPARISON = re.compile(rf"\s*({_COMPARE})")
_NAME = re.compile("[A-Za-z_]\\w*(?:\\.[\\w.\\-/]+(?=[<>=!:\\s\u2264\u2265\u2260]))?")
_KEYWORD = re.compile(r"(and|or|not)(?=[\s()\"']|$)", re.IGNORECASE)
_KEPT_NAME = re.compile(r"@([A-Za-z][\w-]*)")
_BARE = re.compile(r"\S")
KEPT_NAME = re.compile(r"[A-Za-z][\w-]{0,59}")
"""The names under which queries can be kept."""


@dataclass(frozen=True, slots=True)
class KeptQueries:
    """The queries that are kept under names."""

    texts: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    """The reasons why queries can't be used, as sentences, by name."""
    unreadable: str = ""
    """The reason why no query could be read, as a sentence; empty if queries could be read."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The information that a parser needs: the fields, the fields with keys, and the kept queries."""

    is_field: Callable[[str], bool] = lambda name: False
    is_counted: Callable[[str], bool] = lambda name: False
    """Whether a field has keys after its colon: `tool:bash > 5`."""
    is_dotted: Callable[[str], bool] = lambda name: False
    """Whether a field has keys after a dot: `meta.run.id:7`."""
    kept: KeptQueries = field(default_factory=KeptQueries)


def parse(text: str, grammar: Grammar | None = None) -> Expression:
    """Return the expression that a query describes. Raises `QueryError` if it can't be understood."""
    return _Parser(text, grammar or Grammar(), 0).whole()


class _Parser:
    """Reads a query by recursive descent."""

    def __init__(self, text: str, grammar: Grammar, depth: int, within: tuple[str, ...] = ()) -> None:
        """`within` are the names of the kept queries around the text, outermost first."""
        self._text, self._grammar, self._depth, self._at = text, grammar, depth, 0
        self._within = within
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
            self._refuse(self._at, "this parenthesis was not opened", _NOT_OPENED)
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
        name, start, known = found[1], self._at, self._grammar.kept
        if name in self._within:
            path = [*self._within[self._within.index(name) :], name]
            names = ", which names ".join(f"@{one}" for one in path[1:])
            self._refuse(start, f"@{name} names {names}", "Write one of them without the other.")
        if name not in known.texts:
            if fault := known.faults.get(name) or known.unreadable:
                self._refuse(start, f"@{name} can't be used: {fault.rstrip('.')}", "Correct the file.")
            meant = did_you_mean(name, known.texts).strip()
            names = ", ".join(f"@{one}" for one in sorted(known.texts)) or "none"
            self._refuse(start, f"no query is kept as {name!r}", meant or f"Kept are: {names}.")
        self._at = found.end()
        depth = self._deeper(lambda: self._depth)
        with within_kept(name, start):
            inner = _Parser(known.texts[name], self._grammar, depth, (*self._within, name)).whole()
        return Kept(name, inner, start)

    def _deeper(self, read: Callable[[], T]) -> T:
        self._depth += 1
        if self._depth > DEEPEST:
            self._refuse(self._at, f"the query is nested more than {DEEPEST} deep", "Make it simpler.")
        found = read()
        self._depth -= 1
        return found

    # Parts that contain no other parts

    def _term(self) -> Word | Term:
        start = self._at
        if self._text[start] in _QUOTES:
            return Word(self._quoted(), True, start)
        name = _NAME.match(self._text, start)
        named = self._named(name) if name is not None else None
        if named is not None:
            return named
        word = self._bare()
        self._refuse_mistake(start, mistake_in_word(word, self._text[:start], self._grammar.is_field))
        return Word(word, False, start)

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
        sign = _WRITTEN.get(operator[0].strip(), operator[0].strip())
        if sign == ":" and self._grammar.is_counted(name) and not key:
            return self._counted(name, start)
        return self._searched(found, name, key) if sign == ":" else self._compared(found, name, key, sign)

    def _searched(self, found: re.Match[str], name: str, key: str) -> Term:
        value, quoted = self._value()
        if not value and not quoted:
            self._refuse_blank(found[0], found.start())
        return Term(name, ":", value, key, quoted=quoted, at=found.start())

    def _compared(self, found: re.Match[str], name: str, key: str, sign: str) -> Term:
        self._skip()
        if self._at >= len(self._text):
            self._refuse(self._at, f"expected a number after {name}{sign}, not nothing", _NUMBERS)
        value, quoted = self._value()
        if not quoted:
            self._refuse_mistake(found.start(), mistake_in_value(found[0], sign, value))
        return Term(name, sign, value, key, quoted=quoted, at=found.start())

    def _refuse_blank(self, name: str, start: int) -> None:
        """Raise `QueryError` for `field: value`, which would search for the value in all fields."""
        rest = self._text[self._at :]
        follows = rest.lstrip()
        if follows and follows[0] not in "()" and not _KEYWORD.match(follows):
            first, compares = follows.split()[0], follows[0] in "<>="
            shown = f"{name}{''.join(follows.split()[:2])}" if compares else f"{name}:{first}"
            self._refuse(start, f"there is a space after {name}:", f"Write {shown}.")

    def _spaced_operator(self, name: str, at: int) -> re.Match[str] | None:
        """Return the comparison after spaces; None if there is none, or no field is named before them."""
        found = _COMPARISON.match(self._text, at)
        return found if found is not None and self._grammar.is_field(name) else None

    def _counted(self, name: str, start: int) -> Term:
        # Without a comparison, the apparent key is the value: `tool:bash` finds any call of bash.
        key, quoted = self._value("<>=!\u2264\u2265\u2260")
        compared = _COMPARISON.match(self._text, self._at)
        if compared is None or not key:
            if not key and not quoted:
                self._refuse_blank(name, start)
            return Term(name, ":", key, quoted=quoted, at=start)
        self._at = compared.end()
        sign = _WRITTEN.get(compared[1], compared[1])
        if not quoted and key.endswith(":"):
            shown = f"{name}:{key.rstrip(':')}{sign}"
            self._refuse(start, f"there is a colon before {sign}", f"Write {shown}5.")
        self._skip()
        if self._at >= len(self._text):
            self._refuse(self._at, f"expected a number after {sign}, but the query ends here", _NUMBERS)
        value, _ = self._value()
        self._refuse_mistake(start, mistake_in_value(f"{name}:{key}", sign, value))
        return Term(name, sign, value, key, counted=True, at=start)

    def _value(self, ends: str = "") -> tuple[str, bool]:
        """Return the value that begins here, and whether it is quoted; empty if a space is here."""
        if self._at < len(self._text) and self._text[self._at] in _QUOTES:
            return self._quoted(), True
        return self._bare(ends), False

    def _quoted(self) -> str:
        start, closing = self._at, _QUOTES[self._text[self._at]]
        found: list[str] = []
        at = start + 1
        while at < len(self._text) and self._text[at] not in closing:
            # A backslash before anything else is literal, because patterns and paths contain many.
            is_escape = self._text[at] == "\\" and self._text[at + 1 : at + 2] in (*closing, "\\")
            at += is_escape and bool(self._text[at + 1 : at + 2])
            found.append(self._text[at])
            at += 1
        if at >= len(self._text):
            self._refuse(start, "this quote is not closed", f"Expected {closing[-1]} at the end of the text.")
        self._at = at + 1
        return "".join(found)

    def _bare(self, ends: str = "") -> str:
        """Return the text up to the next space, a sign in `ends`, or a parenthesis that closes a group."""
        start, inner = self._at, 0
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign.isspace() or sign in ends:
                break
            closes_nothing_here = sign == ")" and inner == 0
            if closes_nothing_here:
                if self._open == 0:
                    self._refuse(self._at, "this parenthesis was not opened", _NOT_OPENED)
                break
            inner = max(0, inner + (sign == "(") - (sign == ")"))
            self._at += 1
        return self._text[start : self._at]

    # Reading characters and reporting errors

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

    def _refuse_mistake(self, at: int, mistake: Mistake | None) -> None:
        if mistake is not None:
            self._refuse(at, mistake.what, mistake.hint)

    def _refuse(self, at: int, what: str, hint: str) -> NoReturn:
        raise QueryError(f"Character {at + 1}: {what}.", hint=hint)


@contextmanager
def within_kept(name: str, at: int) -> Iterator[None]:
    """Turn a `QueryError` about the kept query `name` into an error about the query that refers to it.

    The message contains the name and the position of the reference; `at` is that position, counted from 0.
    """
    try:
        yield
    except QueryError as error:
        raise QueryError(f"Character {at + 1}: in @{name}: {error.message}", hint=error.hint) from error


_NOT_OPENED = 'Open it with "(", or put the text in quotes to search for it.'
_FORMS = "Such as a word, model:name, steps>20, or not edited."
_NUMBERS = "Such as 20, 1.5k, $0.50 or 1:30."


def _flat(kind: type[And] | type[Or], parts: list[Expression]) -> Expression:
    """Return parts as one expression of a kind, merging nested ones; a single part is returned as is."""
    if len(parts) == 1:
        return parts[0]
    flat: list[Expression] = []
    for part in parts:
        flat += part.parts if isinstance(part, kind) else (part,)
    return kind(tuple(flat))
