"""The lines of a definition, told apart: code, which moves with its indentation, and the inside of strings."""

from __future__ import annotations

import io
import token
import tokenize
from dataclasses import dataclass

from gistpoint.core.code.document import SourceText
from gistpoint.core.code.errors import CodeError

_STARTS = {getattr(token, name, -1) for name in ("FSTRING_START", "TSTRING_START")} - {-1}
_ENDS = {getattr(token, name, -1) for name in ("FSTRING_END", "TSTRING_END")} - {-1}
_WRAP = "if 1:\n"


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One line: as it stands in its file, and as it is shown at the left margin."""

    raw: str
    end: str
    """The characters that end it in its file; empty for the last line of a file that ends without any."""
    shown: str
    in_string: bool
    """Whether it starts inside of a string, so that its white space is text."""
    level: int | None
    """How deep it is indented, in blocks below the definition, where it starts a statement; else None."""


def code_lines(document: SourceText, first: int, last: int) -> list[CodeLine]:
    """Return the lines of the definition that reaches from `first` to `last`, both counted from 1 and included.

    Raises `CodeError` where they can't be told apart.
    """
    numbers = range(first, last + 1)
    raws = [document.line(number) for number in numbers]
    prefix = leading_space(raws[0])
    in_string, levels = _scan("\n".join(raws), bool(prefix), document.path, first)
    lines = []
    for position, (number, raw) in enumerate(zip(numbers, raws, strict=True), start=1):
        inside = position in in_string
        code = raw[len(_space(raw)) - len(prefix) :] if position == 1 else raw
        shown = raw if inside else code.removeprefix(prefix)
        lines.append(CodeLine(raw, document.line_end(number), shown, inside, levels.get(position)))
    return lines


def leading_space(line: str) -> str:
    """Return the white space that Python counts as the indentation of `line`: what follows the last form feed."""
    return _space(line).rpartition("\f")[2]


def _space(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t\f"))]


def _scan(text: str, indented: bool, path: str, first: int) -> tuple[set[int], dict[int, int]]:
    """Return the lines that start in a string, and the block level of each line that starts a statement."""
    wrap = 1 if indented else 0
    source = io.StringIO((_WRAP if indented else "") + text + "\n", newline="\n")
    in_string: set[int] = set()
    levels: dict[int, int] = {}
    level, opened, fresh = -wrap, [0], True
    try:
        for kind, _, (row, _), (end_row, _), _ in tokenize.generate_tokens(source.readline):
            if kind == token.INDENT:
                level += 1
            elif kind == token.DEDENT:
                level -= 1
            elif kind == token.NEWLINE:
                fresh = True
            elif kind not in (token.COMMENT, token.NL, token.ENDMARKER):
                if fresh:
                    levels[row - wrap] = level
                    fresh = False
                if kind in _STARTS:
                    opened.append(row)
                elif kind in _ENDS:
                    in_string.update(range(opened.pop() + 1 - wrap, end_row + 1 - wrap))
                elif kind == token.STRING:
                    in_string.update(range(row + 1 - wrap, end_row + 1 - wrap))
    except (tokenize.TokenError, SyntaxError) as error:
        message = f"The lines of {path} from line {first} on can't be told apart: {error}."
        raise CodeError(message, line=first) from error
    return in_string, levels
