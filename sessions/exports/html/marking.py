"""Converts text to lines of HTML: escaped, with classes for the tokens of code and the lines of diffs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from typing import Any

from gistpoint.core.diffs import FileDiff
from gistpoint.core.text import visible

COLOURED = 40_000
"""The maximum number of characters in text whose code is coloured."""
_SHOWN = frozenset(("k", "s", "c", "m", "nf", "nc", "nb", "nd", "ow", "nt", "na", "nv", "gh", "gi", "gd"))
"""The Pygments classes that have a colour; tokens of other classes look like the text around them."""
_FENCE = re.compile(r"\s*```+ *([\w+.#-]*)\s*$")
_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_NUMBER = re.compile(r"\s*\d{1,7}(?:→|\t|[:|] ?)")


def plain(lines: Sequence[str]) -> list[str]:
    """Return escaped lines; control characters must already have been made visible."""
    return [escape(text) for text in lines]


def text_lines(text: str) -> list[str]:
    """Return the lines of text, with colour for the diffs and the fenced code in it."""
    lines = visible(text).split("\n")
    marked = list[str]()
    at, may_have_fences = 0, True
    while at < len(lines):
        here = lines[at]
        hunk = _HUNK.match(here)
        if hunk:
            after = _end_of_hunk(lines, at + 1, int(hunk[1] or 1), int(hunk[2] or 1))
            marked += [_span("gh", here), *map(_of_hunk, lines[at + 1 : after])]
            at = after
            continue
        fence = None
        if may_have_fences and "```" in here:
            fence = _FENCE.match(here)
        if fence:
            end = _end_of_fence(lines, at + 1)
            if end is not None:
                code = (f"<code>{one}</code>" for one in code_lines(lines[at + 1 : end], fence[1]))
                marked += [escape(here), *code, escape(lines[end])]
                at = end + 1
                continue
            # If one fence has no end, no later fence has one, so searching again would only reread the lines.
            may_have_fences = False
        is_heading = here.startswith("diff --git ") or _begins_file(lines, at)
        marked.append(_span("gh", here) if is_heading else escape(here))
        at += 1
    return marked


def _end_of_fence(lines: Sequence[str], at: int) -> int | None:
    """Return the number of the first line from `at` on that closes a fence; None if there is none."""
    for number in range(at, len(lines)):
        match = _FENCE.match(lines[number])
        # A line with a language opens another fence.
        if match and not match[1]:
            return number
    return None


def _begins_file(lines: Sequence[str], at: int) -> bool:
    """Return whether a line is one of the two that name the files of a diff."""
    for old in (at, at - 1):
        new = old + 1
        is_in_text = old >= 0 and new < len(lines)
        if is_in_text and lines[old].startswith("--- ") and lines[new].startswith("+++ "):
            return True
    return False


def _end_of_hunk(lines: Sequence[str], at: int, old: int, new: int) -> int:
    """Return the number of the line after a hunk that has `old` and `new` lines and begins at line `at`."""
    while at < len(lines) and (old > 0 or new > 0 or lines[at].startswith("\\")):
        sign = lines[at][:1]
        if sign not in ("", " ", "+", "-", "\\"):
            break
        old -= sign in ("", " ", "-")
        new -= sign in ("", " ", "+")
        at += 1
    return at


def _of_hunk(text: str) -> str:
    kind = {"+": "gi", "-": "gd"}.get(text[:1])
    return f"<code>{_span(kind, text) if kind else escape(text)}</code>"


def _span(kind: str, text: str) -> str:
    return f'<span class="{kind}">{escape(text)}</span>'


def diff_lines(diff: FileDiff) -> list[str]:
    """Return the lines of a diff without line numbers, because the line numbers in the file are unknown."""
    marked: list[str] = []
    for hunk in diff.hunks:
        if marked:
            marked.append(_span("gh", "⋯"))
        marked += [_of_hunk(f"{one.kind.value}{visible(one.text)}") for one in hunk.lines]
    return marked


def file_lines(text: str, language: str) -> list[str]:
    """Return the lines of a file that a tool printed, with or without line numbers."""
    lines = visible(text).split("\n")
    numbers = [_NUMBER.match(one) for one in lines]
    known = [number for number in numbers if number is not None]
    if len(known) * 2 < len(lines):
        return code_lines(lines, language)
    code = iter(code_lines([number.string[number.end() :] for number in known], language))
    return [
        escape(text) if number is None else f"{_span('ln', number[0])}{next(code)}"
        for number, text in zip(numbers, lines, strict=True)
    ]


def code_lines(lines: Sequence[str], language: str) -> list[str]:
    """Return lines of code with a class for each token.

    `language` is a name, or the suffix of a file with its dot. Code in an unknown language, and code of
    more than `COLOURED` characters, is only escaped.
    """
    source = "\n".join(lines)
    is_coloured = bool(source.strip()) and len(source) <= COLOURED
    if not language or not is_coloured:
        return plain(lines)
    lexer = _lexer(language)
    if lexer is None:
        return plain(lines)
    marked, current = list[str](), list[str]()
    for kind, piece in _tokens(lexer, source):
        first, *others = piece.split("\n")
        current.append(_token(kind, first))
        for other in others:
            marked.append("".join(current))
            current = [_token(kind, other)]
    marked.append("".join(current))
    # Some lexers drop or add lines.
    return marked if len(marked) == len(lines) else plain(lines)


def _token(kind: str, text: str) -> str:
    if not kind or not text:
        return escape(text)
    return _span(kind, text)


def _tokens(lexer: Any, source: str) -> Iterator[tuple[str, str]]:
    """Yield the class and text of each token; adjacent tokens of one class are joined."""
    kind, pieces = "", list[str]()
    for token_type, piece in lexer.get_tokens(source):
        found = _class_of(token_type)
        if found != kind:
            yield kind, "".join(pieces)
            kind, pieces = found, []
        pieces.append(piece)
    yield kind, "".join(pieces)


@cache
def _class_of(token_type: Any) -> str:
    from pygments.token import STANDARD_TYPES

    while token_type is not None:
        found = STANDARD_TYPES.get(token_type, "")
        if found in _SHOWN:
            return found
        token_type = token_type.parent
    return ""


@cache
def _lexer(language: str) -> Any:
    from pygments.lexer import RegexLexer
    from pygments.lexers import JsonLexer, find_lexer_class_by_name, find_lexer_class_for_filename
    from pygments.util import ClassNotFound

    try:
        if language.startswith("."):
            found = find_lexer_class_for_filename(f"file{language}")
        else:
            found = find_lexer_class_by_name(language)
    except ClassNotFound:
        return None
    if found is None or not issubclass(found, (RegexLexer, JsonLexer)):
        return None
    return found(stripnl=False, ensurenl=False)
