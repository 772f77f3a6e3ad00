"""The effect of keys on the layout of Python code: new lines, indents, and comments.

The functions take and return plain lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

LEVEL = 4
"""The number of spaces in a level of indentation, unless the text shows another, and the cells of a tab."""

_LOOKED_AT = 1_000
"""The maximum number of lines that are read to find the indentation of text."""
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_TOKENS = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<triple>\"{3}|'{3})(?:[^\\]|\\.)*?(?:(?P=triple)(?P<whole>)|\Z)
    |(?P<quote>["'])(?:[^\\\n]|\\.)*?(?:(?P=quote)(?P<closed>)|(?=\n)|\Z)
    |(?P<opens>[(\[{])
    |(?P<closes>[)\]}])
    |(?P<joins>\\\n)""",
    re.VERBOSE | re.DOTALL,
)
_LEAVES = re.compile(r"(?:return|pass|raise|break|continue)\b")
_DEFINES = re.compile(r"\s*(?:(?:async\s+)?def|class)\b")


class NewLine(NamedTuple):
    """The text that Enter inserts, in place of the spaces around the cursor."""

    before: int
    """The number of characters removed before the cursor."""
    after: int
    """The number of characters removed after the cursor."""
    text: str
    back: int = 0
    """The number of inserted characters that end up after the cursor."""


def level_of(lines: Sequence[str]) -> str:
    """Return a level of indentation in the style of the text: a tab or some spaces."""
    above = ""
    for line in lines[:_LOOKED_AT]:
        here, outer = _indent(line), _indent(above)
        begins_block = above.rstrip().endswith(":") and bool(line.strip())
        is_deeper = here.startswith(outer) and here != outer
        if begins_block and is_deeper:
            return "\t" if here[len(outer)] == "\t" else here[len(outer) :]
        if line.startswith("\t"):
            return "\t"
        above = line if line.strip() else above
    return " " * LEVEL


def new_line(lines: Sequence[str], row: int, column: int) -> NewLine:
    """Return the effect of Enter at a position.

    The new line has the indent of the statement, one level more after a colon, and one level less after a
    statement that leaves its block. After a bracket that the line opens, it has one level more, as in Black's
    style.
    """
    head, tail = lines[row][:column], lines[row][column:]
    indent, rest = _indent(head), tail.lstrip(" \t")
    if not head.strip():
        return NewLine(column, 0 if rest else len(tail), f"\n{head}")
    first = next((above for above in range(row, 0, -1) if _DEFINES.match(lines[above])), 0)
    at = _tokenize("\n".join([*lines[first:row], head]))
    if at.in_string:
        return NewLine(0, 0, f"\n{indent}")
    before, after = len(head) - len(head.rstrip(" \t")), len(tail) - len(rest)
    if at.bracket:
        text, back = _in_bracket(at, head, rest, level_of(lines))
        return NewLine(before, after, text, back)
    outer = _indent(at.statement) if at.statement.strip() else indent
    statement = at.statement.strip()
    if head.endswith("\\"):
        return NewLine(0, after, f"\n{outer}{level_of(lines)}")
    if statement.endswith(":"):
        outer += level_of(lines)
    elif _LEAVES.match(statement) and not rest:
        outer = outer.removesuffix(level_of(lines))
    return NewLine(before, after, f"\n{outer}")


def backspace_length(head: str, level: str) -> int:
    """Return how many characters Backspace removes from `head`: in an indent, up to the previous level."""
    return (len(head) - 1) % len(level) + 1 if head and not head.strip(" ") else 1


def indented(lines: Sequence[str], level: str) -> list[str]:
    """Return lines indented by one more level. Blank lines are unchanged."""
    return [f"{level}{line}" if line.strip() else line for line in lines]


def outdented(lines: Sequence[str], level: str) -> list[str]:
    """Return lines indented by one level less, as far as possible."""
    most = LEVEL if level == "\t" else len(level)
    a_level = re.compile(rf"\t| {{0,{most}}}")
    return [a_level.sub("", line, count=1) for line in lines]


def commented(lines: Sequence[str]) -> list[str]:
    """Return lines commented out at their smallest indent; if all are comments, return them uncommented."""
    written = [line for line in lines if line.strip()]
    if all(line.lstrip().startswith("#") for line in written):
        return [re.sub(r"^(\s*)# ?", r"\1", line) for line in lines]
    margin = min(len(_indent(line)) for line in written)
    return [f"{line[:margin]}# {line[margin:]}" if line.strip() else line for line in lines]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


@dataclass(slots=True)
class _TokenizerState:
    """The state of the tokenizer at the end of some Python code."""

    in_string: bool = False
    bracket: str = ""
    """The innermost open bracket; empty if there is none."""
    opened_by: str = ""
    """The line that opened the bracket."""
    statement: str = ""
    """The last statement, from its first line, without a comment at the end."""


def _tokenize(text: str) -> _TokenizerState:
    brackets: list[re.Match[str]] = []
    folded: list[tuple[int, int]] = []
    found, end = _TokenizerState(), len(text)
    for match in _TOKENS.finditer(text):
        kind, start = match.lastgroup, match.start()
        if match["comment"] is not None:
            end = start if match.end() == len(text) else end
        elif match["opens"]:
            brackets.append(match)
        elif match["closes"]:
            start = brackets.pop().start() if brackets else start
        elif kind in ("triple", "quote"):
            found.in_string = match.end() == len(text)
        if "\n" in text[start : match.end()] or match["joins"]:
            folded.append((start, match.end()))
    if brackets:
        found.bracket, found.opened_by = brackets[-1][0], _line(text, brackets[-1].start())
    first = text.rfind("\n") + 1
    for start, stop in reversed(folded):
        if stop >= first:
            first = min(first, text.rfind("\n", 0, start) + 1)
    found.statement = text[first:end].rstrip()
    return found


def _in_bracket(at: _TokenizerState, head: str, rest: str, level: str) -> tuple[str, int]:
    """Return the text that Enter inserts in brackets, and how many of its characters follow the cursor."""
    outer, opened_here = _indent(at.opened_by), at.opened_by == head
    if not rest.startswith(_CLOSES[at.bracket]):
        return (f"\n{outer}{level}" if opened_here else f"\n{_indent(head)}"), 0
    if opened_here and head.rstrip().endswith(at.bracket):
        return f"\n{outer}{level}\n{outer}", len(outer) + 1
    return f"\n{outer}", 0


def _line(text: str, offset: int) -> str:
    """Return the line at an offset."""
    end = text.find("\n", offset)
    return text[text.rfind("\n", 0, offset) + 1 : end if end >= 0 else len(text)]
