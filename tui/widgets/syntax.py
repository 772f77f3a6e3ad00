"""Syntax highlighting: the tokens of each line from Pygments, and their styles in true and 16 colours."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from gistpoint.tui.widgets.text_lines import LONGEST_ROW, TextLines

CHUNK = 2_000
"""The number of lines that are yielded together."""

LARGEST = 300_000
"""The number of lines above which text is not highlighted."""

KINDS = (
    "plain",
    "comment",
    "keyword",
    "constant",
    "string",
    "docstring",
    "number",
    "builtin",
    "class",
    "function",
    "decorator",
    "operator",
    "error",
)
"""The kinds of tokens, by number."""

STYLES = {
    "comment": "$foreground 60% italic",
    "keyword": "$text-accent",
    "constant": "$text-accent",
    "string": "$text-success",
    "docstring": "$text-success italic",
    "number": "$text-warning",
    "builtin": "$text-secondary",
    "class": "$text-primary bold",
    "function": "$text-primary bold",
    "decorator": "$text-warning",
    "error": "$text-error underline",
}
ANSI_STYLES = {
    "comment": "italic ansi_bright_black",
    "keyword": "ansi_magenta",
    "constant": "ansi_magenta",
    "string": "ansi_green",
    "docstring": "italic ansi_green",
    "number": "ansi_cyan",
    "builtin": "ansi_cyan",
    "class": "bold ansi_blue",
    "function": "bold ansi_blue",
    "decorator": "ansi_cyan",
    "error": "underline ansi_red",
}

LineTokens: TypeAlias = "array[int]"
"""The start, end and kind of each token in a line, one after another, in characters of the raw line."""

_QUICK: set[str] = set()

_YIELD_S = 0.002
"""Seconds of lexing after which the thread gives the event loop a chance to run."""


def tokens_by_line(
    lines: TextLines, language: str, stopped: Callable[[], bool] = lambda: False
) -> Iterator[list[LineTokens]]:
    """Yield the tokens of all lines in order, `CHUNK` lines at a time.

    Nothing is yielded without a lexer for the language, or for text of more than `LARGEST` lines. This is
    meant to run in a thread: it pauses often, and stops early if `stopped` returns True.
    """
    lexer = _lexer(language)
    _QUICK.add(language)
    if lexer is None or len(lines) > LARGEST:
        return
    starts, last = lines.starts, len(lines) - 1
    line, current, chunk = 0, array("L"), []
    breath = time.monotonic() + _YIELD_S
    for start, token_type, value in lexer.get_tokens_unprocessed(lines.text):
        end = start + len(value)
        kind = _kind(token_type)
        while line < last and end > starts[line + 1]:
            _add(current, start - starts[line], starts[line + 1] - 1 - starts[line], kind)
            chunk.append(_bounded(current))
            line, current = line + 1, array("L")
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
        _add(current, start - starts[line], end - starts[line], kind)
        if time.monotonic() > breath:
            if stopped():
                return
            time.sleep(0.0005)
            breath = time.monotonic() + _YIELD_S
    chunk.append(_bounded(current))
    yield chunk


def is_quick(language: str) -> bool:
    """Return whether the lexer of a language is loaded.

    Loading it can take longer than lexing a page of text.
    """
    return language in _QUICK


def _add(tokens: LineTokens, start: int, end: int, kind: int) -> None:
    if kind and end > max(0, start):
        tokens.extend((max(0, start), end, kind))


def _bounded(tokens: LineTokens) -> LineTokens:
    return tokens if len(tokens) <= LONGEST_ROW else tokens[: LONGEST_ROW - LONGEST_ROW % 3]


def _lexer(language: str) -> Any:
    from pygments.lexer import Lexer, RegexLexer
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer: Lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return None
    return lexer if isinstance(lexer, RegexLexer) else None


_KIND_OF: dict[Any, int] = {}


def _kind(token_type: Any) -> int:
    kind = _KIND_OF.get(token_type)
    if kind is None:
        names = _kinds_by_token()
        ancestor = token_type
        while ancestor is not None and ancestor not in names:
            ancestor = ancestor.parent
        kind = _KIND_OF[token_type] = KINDS.index(names[ancestor]) if ancestor is not None else 0
    return kind


def _kinds_by_token() -> dict[Any, str]:
    from pygments.token import Token

    return {
        Token.Comment: "comment",
        Token.Error: "plain",
        Token.Keyword: "keyword",
        Token.Keyword.Constant: "constant",
        Token.Literal.Number: "number",
        Token.Literal.String: "string",
        Token.Literal.String.Doc: "docstring",
        Token.Name.Builtin: "builtin",
        Token.Name.Builtin.Pseudo: "builtin",
        Token.Name.Class: "class",
        Token.Name.Decorator: "decorator",
        Token.Name.Exception: "builtin",
        Token.Name.Function: "function",
        Token.Name.Tag: "keyword",
        Token.Operator.Word: "keyword",
        Token.Generic.Error: "error",
        Token.Generic.Heading: "keyword",
    }
