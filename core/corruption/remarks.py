"""Comments that tell what was meant: those above a change in the same paragraph or block that mention it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gistpoint.core.corruption.naming import of_one_stem, words

_FAR = 8
"""Most lines from a comment to the code that it can be about."""
_LEAST = 4
_NAME = re.compile(r"[^\W\d]\w*")
_COMMON = frozenset(
    {"self", "return", "none", "true", "false", "else", "elif", "with", "from", "import", "this", "that"}
)


def told(
    lines: Sequence[str], remarks: Iterable[tuple[int, str]], hunks: Iterable[tuple[int, int]], fresh: Sequence[str]
) -> bool:
    """Return whether a comment tells what the changed lines did.

    `remarks` are the comments with their lines, `hunks` the changed lines of the original, from one to before
    another, all counted from 0; `fresh` are the new lines. A comment tells if it stands right below a changed header
    of its block, or above the change without a dedent or a new paragraph between, and has a word in common with it.
    """
    noted = list(remarks)
    if not noted:
        return False
    for start, end in hunks:
        changed = [*lines[start:end], *fresh]
        if any(row == end and lines[end - 1].rstrip().endswith(":") for row, _ in noted if end > start):
            return True
        own = [word for line in changed for name in _NAME.findall(_code(line)) for word in words(name)]
        own = [word for word in own if len(word) >= _LEAST and word not in _COMMON]
        for row, comment in noted:
            if start - _FAR <= row < max(end, start + 1) and _reaches(lines, row, max(start, row + 1)):
                said = [word for name in _NAME.findall(comment) for word in words(name)]
                if of_one_stem((word for word in said if len(word) >= _LEAST and word not in _COMMON), own):
                    return True
    return False


def _code(line: str) -> str:
    return line.partition("#")[0]


def _reaches(lines: Sequence[str], row: int, place: int) -> bool:
    """Whether code at a line is in the paragraph or in a block that a comment heads."""
    column = _margin(lines[row])
    if lines[row].lstrip()[:1] != "#":
        return False
    between = lines[row + 1 : place + 1]
    if any(line.strip() and _margin(line) < column for line in between):
        return False
    blank = [number for number, line in enumerate(between) if not line.strip()]
    return not any(_margin(line) <= column for number in blank for line in between[number + 1 :] if line.strip())


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())
