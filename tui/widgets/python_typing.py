"""What keys do to the layout of Python code: a new line and its indent, a level less, comments; all on plain lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

LEVEL = 4
"""Blanks of a level where the text itself shows no other, and cells of a tab."""

_LOOKED_AT = 1_000
"""Lines from which the indent of a text is guessed."""
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
    """What Enter puts in place of the blanks around the cursor."""

    before: int
    """Characters that it takes away before the cursor."""
    after: int
    """Characters that it takes away behind the cursor."""
    text: str
    back: int = 0
    """Characters of the text that come behind the cursor."""


def level_of(lines: Sequence[str]) -> str:
    """Return one level of indent as the text uses it: a tab, or some blanks."""
    above = ""
    for line in lines[:_LOOKED_AT]:
        here, outer = _indent(line), _indent(above)
        if above.rstrip().endswith(":") and line.strip() and here.startswith(outer) and here != outer:
            return "\t" if here[len(outer)] == "\t" else here[len(outer) :]
        if line.startswith("\t"):
            return "\t"
        above = line if line.strip() else above
    return " " * LEVEL


def new_line(lines: Sequence[str], row: int, column: int) -> NewLine:
    """Return what Enter does at a place.

    It keeps the indent of the statement, adds a level after a colon, and takes one away after a statement that leaves
    its block. Behind a bracket that was opened on the line, the next line hangs by a level, as Black writes it.
    """
    head, tail = lines[row][:column], lines[row][column:]
    indent, rest = _indent(head), tail.lstrip(" \t")
    if not head.strip():
        return NewLine(column, 0 if rest else len(tail), f"\n{head}")
    first = next((above for above in range(row, 0, -1) if _DEFINES.match(lines[above])), 0)
    at = _read("\n".join([*lines[first:row], head]))
    if at.in_string:
        return NewLine(0, 0, f"\n{indent}")
    before, after = len(head) - len(head.rstrip(" \t")), len(tail) - len(rest)
    if at.bracket:
        level = level_of(lines)
        outer = _indent(at.opened_by)
        closes = rest.startswith(_CLOSES[at.bracket])
        if closes and at.opened_by == head and head.rstrip().endswith(at.bracket):
            return NewLine(before, after, f"\n{outer}{level}\n{outer}", len(outer) + 1)
        if closes:
            return NewLine(before, after, f"\n{outer}")
        return NewLine(before, after, f"\n{outer}{level}" if at.opened_by == head else f"\n{indent}")
    outer = _indent(at.statement) if at.statement.strip() else indent
    said = at.statement.strip()
    if head.endswith("\\"):
        return NewLine(0, after, f"\n{outer}{level_of(lines)}")
    if said.endswith(":"):
        outer += level_of(lines)
    elif _LEAVES.match(said) and not rest:
        outer = outer.removesuffix(level_of(lines))
    return NewLine(before, after, f"\n{outer}")


def blanks_back(head: str, level: str) -> int:
    """Return how many characters Backspace takes from `head`: down to the level before if there are blanks alone."""
    return (len(head) - 1) % len(level) + 1 if head and not head.strip(" ") else 1


def moved(lines: Sequence[str], level: str) -> list[str]:
    """Return lines a level further in; blank ones stay as they are."""
    return [f"{level}{line}" if line.strip() else line for line in lines]


def moved_back(lines: Sequence[str], level: str) -> list[str]:
    """Return lines a level further out, as far as they have blanks."""
    most = LEVEL if level == "\t" else len(level)
    return [
        line[1:] if line.startswith("\t") else line[min(most, len(line) - len(line.lstrip(" "))) :] for line in lines
    ]


def commented(lines: Sequence[str]) -> list[str]:
    """Return lines as comments, at the smallest indent among them; as code again if all are comments."""
    written = [line for line in lines if line.strip()]
    if all(line.lstrip().startswith("#") for line in written):
        return [re.sub(r"^(\s*)# ?", r"\1", line) for line in lines]
    margin = min(len(_indent(line)) for line in written)
    return [f"{line[:margin]}# {line[margin:]}" if line.strip() else line for line in lines]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


@dataclass(slots=True)
class _Read:
    """What a text leaves open at its end."""

    in_string: bool = False
    bracket: str = ""
    """The innermost open bracket."""
    opened_by: str = ""
    """The line with that bracket."""
    statement: str = ""
    """The statement at the end from its first line on, without a comment at its end."""


def _read(text: str) -> _Read:
    brackets: list[re.Match[str]] = []
    folded: list[tuple[int, int]] = []
    found, end = _Read(), len(text)
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


def _line(text: str, offset: int) -> str:
    """Return the line around an offset."""
    end = text.find("\n", offset)
    return text[text.rfind("\n", 0, offset) + 1 : end if end >= 0 else len(text)]
