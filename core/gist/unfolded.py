"""A gist with one statement a line, so that a tracer of lines tells of each statement whether it ran."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

from gistpoint.core.code.parsing import parse
from gistpoint.core.gist.lines import is_placeholder, is_text_only
from gistpoint.core.gist.source_text import physical_lines

_Place = tuple[int, int]


def unfolded(source: str) -> str:
    """Return `source` with each statement on a line of its own; the text itself where that is so already.

    The syntax tree stays the same, and so does every line on which one statement stands. A body that holds nothing
    (`pass`, `...`, a string) stays beside its header. Raises SyntaxError for a text that does not parse.
    """
    tree, lines = parse(source), physical_lines(source)
    bodies = [body for body in _bodies(tree) if any(_is_beside(one, lines) and not _holds_nothing(one) for one in body)]
    if not bodies:
        return source
    starts = _logical_starts(lines)
    for row, column, margin in sorted(_splits(bodies, lines, starts), reverse=True):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}\n{margin}{line[column:]}"
    text = "\n".join(lines) + "\n"
    return text if _is_same(tree, text) else source


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body:
                yield body


def _is_beside(statement: ast.stmt, lines: list[str]) -> bool:
    """Whether something stands before a statement on its line."""
    row, column = _place(statement, lines)
    return bool(lines[row - 1][:column].strip())


def _holds_nothing(statement: ast.stmt) -> bool:
    return is_text_only(statement) or is_placeholder(statement)


def _place(statement: ast.stmt, lines: list[str]) -> _Place:
    """Return line and column of a statement; a syntax tree counts columns in bytes."""
    encoded = lines[statement.lineno - 1].encode("utf-8", "surrogatepass")
    return statement.lineno, len(encoded[: statement.col_offset].decode("utf-8", "surrogatepass"))


def _logical_starts(lines: list[str]) -> dict[_Place, _Place]:
    """Return for the place of each token that of the first token of its logical line."""
    starts: dict[_Place, _Place] = {}
    first: _Place | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            if token.type == tokenize.NEWLINE:
                first = None
            elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                first = first or token.start
                starts[token.start] = first
    except (tokenize.TokenError, SyntaxError):
        return {}
    return starts


def _splits(
    bodies: list[list[ast.stmt]], lines: list[str], starts: dict[_Place, _Place]
) -> Iterator[tuple[int, int, str]]:
    """Yield line, column and margin of each statement that does not begin its logical line."""
    for body in bodies:
        places = [_place(statement, lines) for statement in body]
        for place in places:
            row, column = starts.get(place, place)
            if (row, column) != place:
                below_header = starts.get(places[0], places[0]) != places[0]
                yield *place, lines[row - 1][:column] + " " * below_header


def _is_same(tree: ast.Module, text: str) -> bool:
    try:
        return ast.dump(parse(text)) == ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError):
        return False
