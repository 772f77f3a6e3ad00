"""A page about the task under the cursor, and its material."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from gistpoint.core.generation.dossier import Dossier

if TYPE_CHECKING:
    from gistpoint.tui.screens.validate.session import ValidationSession


@dataclass(frozen=True, slots=True)
class Showing:
    """The material of a page: a task with the known facts about it."""

    session: ValidationSession
    dossier: Dossier
    first: bool
    """Whether the page showed another task before, or none."""
    link: str
    """The link that was followed to the page, in the form of `Line.link`; empty if none was."""
    width: int
    """Cells for a line of text."""


class PageTold(Message):
    """A page has something else to say in the frame."""


class TaskPage:
    """Mixed into a widget, makes it a page about a task."""

    changes = True
    """Whether runs, verdicts and comments change it; if not, it is filled once for each task."""
    about = ""
    """What the frame says about it."""

    def fill(self, showing: Showing) -> None:
        """Show a task."""
        raise NotImplementedError

    @property
    def unsaved(self) -> tuple[str, str] | None:
        """The edited buffer and its text, if that was not kept yet."""
        return None

    def note(self, buffer: str, code: str) -> None:
        """Note that a buffer's current text is kept."""
