"""Text of a run as lines of HTML: escaped, with classes for the tokens of code and for the lines of diffs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from typing import Any

from gistpoint.core.diffs import FileDiff
from gistpoint.core.text import visible

COLOURED = 40_000
"""Characters of the longest text whose code is coloured."""
_SHOWN = frozenset(("k", "s", "c", "m", "nf", "nc", "nb", "nd", "ow", "nt", "na", "nv", "gh", "gi", "gd"))
"""Pygments' classes that have a colour; the others are those of the text around them."""
_FENCE = re.compile(r"\s*```+ *([\w+.#-]*)\s*$")
_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_NUMBER = re.compile(r"\s*\d{1,7}(?:→|\t|[:|] ?)")


def plain(lines: Sequence[str]) -> list[str]:
    """Return lines, escaped; their control characters are visible already."""
    return [escape(text) for text in lines]


def text_lines(text: str) -> list[str]:
    """Return the lines of a text, with colour for the diffs and the fenced code in it."""
    lines, marked, at, fences = visible(text).split("\n"), list[str](), 0, True
    while at < len(lines):
        here = lines[at]
        hunk = _HUNK.match(here)
        fence = _FENCE.match(here) if fences and "```" in here else None
        if hunk:
            after = _end_of_hunk(lines, at + 1, int(hunk[1] or 1), int(hunk[2] or 1))
            marked += [_span("gh", here), *map(_of_hunk, lines[at + 1 : after])]
            at = after
            continue
        # Without the end of a fence there is none of the ones after it either: no line is searched twice.
        end = None if fence is None else _end_of_fence(lines, at + 1)
        fences = fences and (fence is None or end is not None)
        if fence is not None and end is not None:
            code = (f"<code>{one}</code>" for one in code_lines(lines[at + 1 : end], fence[1]))
            marked += [escape(here), *code, escape(lines[end])]
            at = end + 1
            continue
        heads = here.startswith("diff --git ") or _begins_file(lines, at)
        marked.append(_span("gh", here) if heads else escape(here))
        at += 1
    return marked


def _end_of_fence(lines: Sequence[str], at: int) -> int | None:
    """Return the first line from `at` on that closes a fence: one that names no language."""
    matches = ((number, _FENCE.match(lines[number])) for number in range(at, len(lines)))
    return next((number for number, match in matches if match and not match[1]), None)


def _begins_file(lines: Sequence[str], at: int) -> bool:
    """Whether a line is one of the two that name the files of a diff."""
    pairs = ((at, at + 1), (at - 1, at))
    return any(
        0 <= old < new < len(lines) and lines[old].startswith("--- ") and lines[new].startswith("+++ ")
        for old, new in pairs
    )


def _end_of_hunk(lines: Sequence[str], at: int, old: int, new: int) -> int:
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
    """Return the lines of a diff of two pieces of a file, whose line numbers in the file are not known."""
    marked: list[str] = []
    for hunk in diff.hunks:
        if marked:
            marked.append(_span("gh", "⋯"))
        marked += [_of_hunk(f"{one.kind.value}{visible(one.text)}") for one in hunk.lines]
    return marked


def file_lines(text: str, language: str) -> list[str]:
    """Return the lines of a file that a tool printed, numbered or not."""
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
    """Return lines of code with a class for each token; `language` is a name, or the ending of a file with
    its dot.
    """
    source = "\n".join(lines)
    lexer = _lexer(language) if language and source.strip() and len(source) <= COLOURED else None
    if lexer is None:
        return plain(lines)
    marked, current = list[str](), list[str]()
    for kind, piece in _tokens(lexer, source):
        first, *others = piece.split("\n")
        current.append(_span(kind, first) if kind and first else escape(first))
        for other in others:
            marked.append("".join(current))
            current = [_span(kind, other) if kind and other else escape(other)]
    marked.append("".join(current))
    return marked if len(marked) == len(lines) else plain(lines)


def _tokens(lexer: Any, source: str) -> Iterator[tuple[str, str]]:
    """Yield texts with their class, neighbours of one class together."""
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
        of_file = language.startswith(".")
        found = (
            find_lexer_class_for_filename(f"file{language}")
            if of_file
            else find_lexer_class_by_name(language)
        )
    except ClassNotFound:
        return None
    simple = found is not None and issubclass(found, (RegexLexer, JsonLexer))
    return found(stripnl=False, ensurenl=False) if found is not None and simple else None
