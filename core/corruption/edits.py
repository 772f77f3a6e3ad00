"""Edits of a text: what is replaced where, and how many lines that changes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replaces the code points from `start` up to `end` of a text by `text`."""

    start: int
    end: int
    text: str


def apply(edits: Iterable[Edit], text: str) -> str:
    """Return `text` with the edits made. Raises `ValueError` where two overlap or one lies outside of the text."""
    pieces: list[str] = []
    place = 0
    for edit in sorted(edits):
        if not place <= edit.start <= edit.end <= len(text):
            raise ValueError(f"the edit of {edit.start} to {edit.end} overlaps another or leaves the text")
        pieces += text[place : edit.start], edit.text
        place = edit.end
    return "".join([*pieces, text[place:]])


def changed_lines(before: str, after: str) -> int:
    """Return how many lines a reader of the diff sees changed: of each hunk, the larger of lines removed and added.

    A line that moved counts twice, once where it left and once where it arrived.
    """
    matcher = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal")
