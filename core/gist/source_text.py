"""The lines of a source text as Python counts them, moved to another depth without touching what strings hold."""

from __future__ import annotations

import io
import re
import textwrap
import tokenize
from collections.abc import Sequence

_LINE_END = re.compile(r"\r\n?|\n")


def physical_lines(text: str) -> list[str]:
    """Return the lines of `text`, numbered as in a syntax tree.

    `str.splitlines` also ends a line at a form feed, U+2028 and others: text in a comment would shift every line below.
    """
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def lines_in_strings(lines: Sequence[str]) -> set[int]:
    """Return the 0-based numbers of the lines that begin inside a string.

    `lines` may be a fragment at any depth; one that can't be tokenised to its end is read as far as it goes.
    """
    inside: set[int] = set()
    text = "\n".join(lines) + "\n"
    margin = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    prefix = "if 1:\n" if margin else ""
    shift = 2 if prefix else 1
    starts: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(prefix + text).readline):
            name = tokenize.tok_name[token.type]
            if name == "FSTRING_START":
                starts.append(token.start[0])
            elif name == "FSTRING_END" and starts:
                inside.update(range(starts.pop() + 1 - shift, token.end[0] - shift + 1))
            elif name == "STRING":
                inside.update(range(token.start[0] + 1 - shift, token.end[0] - shift + 1))
    except (tokenize.TokenError, IndentationError):
        pass
    return inside


def dedented(lines: Sequence[str]) -> list[str]:
    """Return `lines` moved left so that the first stands at the margin; text inside strings stays as it is."""
    if not lines:
        return []
    margin = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    if not margin:
        return list(lines)
    inside = lines_in_strings(lines)
    return [
        line if number in inside else line.removeprefix(margin) if line.startswith(margin) else line.lstrip()
        for number, line in enumerate(lines)
    ]


def indented(lines: Sequence[str], margin: str) -> list[str]:
    """Return `lines` moved right by `margin`; text inside strings stays as it is."""
    if not margin:
        return list(lines)
    inside = lines_in_strings(lines)
    return [
        line if number in inside or not line.strip() else textwrap.indent(line, margin)
        for number, line in enumerate(lines)
    ]
