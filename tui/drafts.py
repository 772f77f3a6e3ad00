"""Keeps text that was typed into a dialog or line but not sent; the same question offers it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gistpoint.core.errors import cause

if TYPE_CHECKING:
    from gistpoint.sessions.unsent_texts import UnsentTextFiles

WRITE_S = 0.2
"""The maximum time, in seconds, from a key until the text is on disk."""


class DraftPlace(Protocol):
    """The place where the unsent text for one question is kept."""

    def read(self) -> Mapping[str, str]:
        """Return the text of each field by its name; empty if there is none."""
        ...

    def write(self, texts: Mapping[str, str]) -> None:
        """Replace the text of all fields, given by name. If every field is empty, nothing is kept."""
        ...


Subject = tuple[str, str]
"""The pseudonym of the person who types, which may be empty, and the subject, such as an attempt's id."""


class UnsentTexts:
    """The text typed but not sent; it outlives dialogs, screens and the program (decision 215)."""

    def __init__(self, folder: Path, warn: Callable[[str], object]) -> None:
        """`folder` contains the files. `warn` is called with a message if they can't be written."""
        self._folder, self._warn = folder, warn
        self._kept: dict[Subject, dict[str, Mapping[str, str]]] = {}
        self._passing: dict[tuple[Subject, str], Mapping[str, str]] = {}
        """The text of questions that is not written to disk."""
        self._unwritten: dict[Subject, set[str]] = {}
        """The questions whose text has changed since it was written."""
        self._files: UnsentTextFiles | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._has_failed = False

    def place(self, subject: Subject, asked: str, *, lasting: bool = True) -> DraftPlace:
        """Return the place for the question `asked`. Unless `lasting`, its text is kept in memory only."""
        return _Lasting(self, subject, asked) if lasting else _InMemory(self._passing, (subject, asked))

    def texts(self, subject: Subject) -> dict[str, Mapping[str, str]]:
        """Return the text about a subject, by the question."""
        if subject not in self._kept:
            self._kept[subject] = dict(self._on_disk().read(*subject))
        return self._kept[subject]

    def keep(self, subject: Subject, asked: str, texts: Mapping[str, str]) -> None:
        """Replace the text of a question, now in memory and soon on disk."""
        before = self.texts(subject)
        new = dict(texts) if any(texts.values()) else {}
        if before.get(asked, {}) == new:
            return
        before[asked] = new
        self._unwritten.setdefault(subject, set()).add(asked)
        if self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(WRITE_S, self.flush)
            except RuntimeError:  # outside of the event loop
                self.flush()

    def forget(self, subject: Subject) -> None:
        """Delete the text about a subject, about which nothing can be sent any more."""
        self._unwritten.pop(subject, None)
        self._kept[subject] = {}
        self._try(lambda: self._on_disk().delete(*subject))

    def flush(self) -> None:
        """Write to disk what has changed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        unwritten, self._unwritten = self._unwritten, {}
        for subject, questions in unwritten.items():
            changed = {asked: self._kept[subject][asked] for asked in questions}
            self._try(partial(self._write, subject, changed))

    def _write(self, subject: Subject, changed: Mapping[str, Mapping[str, str]]) -> None:
        self._on_disk().write(*subject, changed)

    def _try(self, do: Callable[[], object]) -> None:
        try:
            do()
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                self._warn(f"Text that is not sent yet can't be saved: {cause(error)}")

    def _on_disk(self) -> UnsentTextFiles:
        if self._files is None:
            from gistpoint.sessions.unsent_texts import UnsentTextFiles

            self._files = UnsentTextFiles(self._folder)
        return self._files


class _Lasting:
    def __init__(self, unsent: UnsentTexts, subject: Subject, asked: str) -> None:
        self._unsent, self._subject, self._asked = unsent, subject, asked

    def read(self) -> Mapping[str, str]:
        return self._unsent.texts(self._subject).get(self._asked, {})

    def write(self, texts: Mapping[str, str]) -> None:
        self._unsent.keep(self._subject, self._asked, texts)


class _InMemory:
    def __init__(self, kept: dict[tuple[Subject, str], Mapping[str, str]], key: tuple[Subject, str]) -> None:
        self._kept, self._key = kept, key

    def read(self) -> Mapping[str, str]:
        return self._kept.get(self._key, {})

    def write(self, texts: Mapping[str, str]) -> None:
        self._kept.pop(self._key, None)
        if any(texts.values()):
            self._kept[self._key] = dict(texts)
