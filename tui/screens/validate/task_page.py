"""A page about the task under the cursor, and its content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from gistpoint.core.generation.dossier import Dossier

if TYPE_CHECKING:
    from gistpoint.tui.screens.validate.session import ValidationSession


@dataclass(frozen=True, slots=True)
class Showing:
    """The content of a page: a task with the known facts about it."""

    session: ValidationSession
    dossier: Dossier
    first: bool
    """Whether the page showed another task or none before."""
    link: str
    """The link followed to the page, in the form of `Line.link`; empty if there was none."""
    width: int
    """Cells for a line of text."""


class AboutChanged(Message):
    """The frame's text about a page has changed."""


class TaskPage:
    """A mixin that makes a widget a page about a task."""

    changes = True
    """Whether runs, verdicts and comments change the page; if not, it is filled once per task."""
    about = ""
    """The text about the page in the frame."""

    def fill(self, showing: Showing) -> None:
        """Show a task."""
        raise NotImplementedError

    @property
    def unsaved(self) -> tuple[str, str] | None:
        """The edited buffer and its text, if not saved yet."""
        return None

    def note(self, buffer: str, code: str) -> None:
        """Note that a buffer's current text is saved."""
