"""Edits of text: replacements at offsets, and the number of lines that they change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TextEdit:
    """A replacement of the code points from `start` up to `end` of a string with `text`."""

    start: int
    end: int
    text: str


def apply(edits: Iterable[TextEdit], text: str) -> str:
    """Return `text` with the edits applied.

    Raises `ValueError` if edits overlap or are outside of the text.
    """
    pieces: list[str] = []
    place = 0
    for edit in sorted(edits):
        if not place <= edit.start <= edit.end <= len(text):
            raise ValueError(f"the edit of {edit.start} to {edit.end} overlaps another or leaves the text")
        pieces += text[place : edit.start], edit.text
        place = edit.end
    return "".join([*pieces, text[place:]])


def edits_between(before: str, after: str) -> tuple[TextEdit, ...]:
    """Return the edits of whole lines that turn one string into another."""
    old, new = ([f"{line}\n" for line in text.split("\n")] for text in (before, after))
    old[-1], new[-1] = old[-1][:-1], new[-1][:-1]  # a string has no line ending after its last line
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return tuple(
        TextEdit(starts[i1], starts[i2], "".join(new[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    )


def changed_lines(before: str, after: str) -> int:
    """Return the number of changed lines in a diff: per hunk, the larger count of removed or added lines.

    A line that moved counts twice, once at its old place and once at its new one.
    """
    return sum(max(i2 - i1, j2 - j1) for i1, i2, j1, j2 in hunks(before, after))


def hunks(before: str, after: str) -> list[tuple[int, int, int, int]]:
    """Return the hunks of a diff as ranges of lines in `before` and in `after`.

    Each has the start and the end of both ranges, counted from 0; the end is not included.
    """
    matcher = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    return [(i1, i2, j1, j2) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]
