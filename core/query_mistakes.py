"""Finds conditions in the notation of other query languages, and suggests the correct notation.

The grammar reads every unknown part as a word, so that names of tests and paths need no quotes. Operators of
programming languages and spreadsheets would also be words and match nothing, so they are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_NAME_BEFORE = re.compile(r"([A-Za-z_]\w*)\s*$")
_NUMBER_FIRST = re.compile(r"\$?[\d.,]+[kmg%]?(<=|>=|<|>|=|\u2264|\u2265)([A-Za-z_]\w*)?", re.IGNORECASE)
_SIGNS_ONLY = re.compile("[<>=!&|~\u2264\u2265\u2260]+")
_JOINING = {"&": "and", "&&": "and", "|": "or", "||": "or"}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "\u2264": ">=", "\u2265": "<="}
_OF_SQL = {"between", "like", "contains"}
_WITH_UNIT = re.compile(r"[\d.,]+(s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)", re.IGNORECASE)
_MILLIONS = re.compile(r"[\d.,]+m", re.IGNORECASE)
_TIMES = re.compile(r"ti(me?)?|sec(o(n(ds?)?)?)?", re.IGNORECASE)
"""The names of time fields, and abbreviations of these names."""
_UNITS = re.compile(r"(ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)", re.IGNORECASE)
_COMPARED = re.compile(r"[<>=]\s*[\d.,:]+\s+$")
_EQUALS = re.compile(r"([A-Za-z_]\w*)==(.+)")
_DASHES = "\u2013\u2014\u2212"


class Mistake(NamedTuple):
    """A mistake in a part of a query, and the correction."""

    what: str
    hint: str


_NO_UNIT = Mistake("numbers have no unit", "Write a time as 1:30 or in seconds.")


def mistake_in_word(word: str, before: str, is_field: Callable[[str], bool]) -> Mistake | None:
    """Return the mistake in a word without quotes; None if there is none.

    `before` is the query up to the word.
    """
    found = (
        _joining(word)
        or _comparing(word, before)
        or _negating(word)
        or _double(word, is_field)
        or _spaced(word, before, is_field)
    )
    return None if found is None else Mistake(found.what, f"{found.hint} To search for it, put it in quotes.")


def _joining(word: str) -> Mistake | None:
    if word == "@":
        return Mistake("'@' has no name", "Write @name without a space.")
    if word == "!":
        return Mistake("'!' does not negate", "Write not instead.")
    if word not in _JOINING:
        return None
    return Mistake(f"{word!r} joins nothing", f"Write {_JOINING[word]} instead.")


def _comparing(word: str, before: str) -> Mistake | None:
    """Return the mistake for a comparison sign that does not follow a field; None if there is none."""
    if turned := _NUMBER_FIRST.match(word):
        name = turned[2] or "steps"
        return Mistake(
            "a comparison begins with a field", f"Write {name}{_TURNED[turned[1]]}5, and each by itself."
        )
    if not _SIGNS_ONLY.fullmatch(word):
        return None
    if _COMPARED.search(before):
        return Mistake(f"{word!r} follows a comparison", "Write steps>5 and steps<10.")
    if word == "==":
        return Mistake("'==' is not an operator", "Write = instead.")
    name = _NAME_BEFORE.search(before)
    what = "needs a field before it" if name is None else f"needs a field before it, which {name[1]} is not"
    return Mistake(f"{word!r} {what}", "Such as steps>20 or model=name.")


def _negating(word: str) -> Mistake | None:
    sign, rest = word[0], word[1:]
    if sign == "!" and (rest[:1].isalnum() or rest[:1] in "(@\"'"):
        return Mistake("'!' does not negate", f"Write not {rest}.")
    if sign in _DASHES and rest[:1].isalnum():
        return Mistake(f"{sign!r} is a dash, not a minus sign", f"Write -{rest} or not {rest}.")
    return None


def _double(word: str, is_field: Callable[[str], bool]) -> Mistake | None:
    found = _EQUALS.fullmatch(word)
    if found is None or not is_field(found[1]):
        return None
    return Mistake("'==' is not an operator", f"Write {found[1]}={found[2]}.")


def _spaced(word: str, before: str, is_field: Callable[[str], bool]) -> Mistake | None:
    """Return the mistake in a word after a field or a number; None if there is none."""
    name = _NAME_BEFORE.search(before)
    if name is not None and is_field(name[1]):
        if word.startswith(":") and not word.startswith("::"):
            return Mistake("there is a space before the colon", f"Write {name[1]}{word}.")
        if word.lower() in _OF_SQL:
            hint = f"Write {name[1]}>=5 and {name[1]}<=10." if word.lower() == "between" else ""
            return Mistake(f"{word!r} is not a comparison", hint or f"Write {name[1]}:text.")
    return _NO_UNIT if _UNITS.fullmatch(word) and _COMPARED.search(before) else None


def mistake_in_value(name: str, sign: str, value: str) -> Mistake | None:
    """Return the mistake in an unquoted value after a comparison sign; None if there is none."""
    if sign == "=" and value[:1] in ("<", ">"):
        return Mistake(f"'={value[0]}' is no comparison", f"Write {name}{value[0]}={value[1:] or '5'}.")
    is_time = _TIMES.fullmatch(name) is not None
    may_be_text = sign == "=" and not is_time
    # `10m` is ten million, which is not what somebody means in a comparison with a time.
    if (is_time and _MILLIONS.fullmatch(value)) or (not may_be_text and _WITH_UNIT.fullmatch(value)):
        return _NO_UNIT
    twice = re.match(r"([\d.,:]+)(<=|>=|<|>|=)(.+)", value)
    if twice is not None:
        return Mistake(
            "two comparisons share a number", f"Write {name}{sign}{twice[1]} and {name}{twice[2]}{twice[3]}."
        )
    return None
