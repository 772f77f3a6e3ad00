"""Keeps text that was typed into a dialog or line but not sent; the same question offers it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class DraftPlace(Protocol):
    """The place where the unsent text for one question is kept."""

    def read(self) -> Mapping[str, str]:
        """Return the text of each field by its name; empty if there is none."""
        ...

    def write(self, texts: Mapping[str, str]) -> None:
        """Replace the text of all fields, given by name. If every field is empty, nothing is kept."""
        ...


class UnsentTexts:
    """The text typed but not sent since the program began; it outlives dialogs and screens (decision 126).

    It is not written to disk, where the erasure of a participant would have to look for it.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Mapping[str, str]] = {}

    def place(self, about: str, asked: str) -> DraftPlace:
        """Return the place for the question `asked`. `about` names an attempt, a run or a screen."""
        return _InMemory(self._kept, (about, asked))


class _InMemory:
    def __init__(self, kept: dict[tuple[str, str], Mapping[str, str]], key: tuple[str, str]) -> None:
        self._kept, self._key = kept, key

    def read(self) -> Mapping[str, str]:
        return self._kept.get(self._key, {})

    def write(self, texts: Mapping[str, str]) -> None:
        self._kept.pop(self._key, None)
        if any(texts.values()):
            self._kept[self._key] = dict(texts)
