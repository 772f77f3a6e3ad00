"""The interface of a page about the task under the cursor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from gistpoint.core.generation.dossier import Dossier

if TYPE_CHECKING:
    from gistpoint.tui.screens.validate.session import ValidationSession


@dataclass(frozen=True, slots=True)
class PageContent:
    """The content of a page: a task, and the session with the facts about it."""

    session: ValidationSession
    dossier: Dossier
    first: bool
    """Whether the page last showed another task, or none yet."""
    link: str
    """The link that was followed to the page, in the form of `Line.link`; empty if there was none."""
    width: int
    """The number of cells in a line of the page."""


class AboutChanged(Message):
    """A message that the page's note for the frame has changed."""


class TaskPage:
    """A mixin that makes a widget a page about a task."""

    changes = True
    """Whether runs, verdicts and comments change the page; if not, it is filled once for each task."""
    about = ""
    """The page's note for the frame."""

    def fill(self, content: PageContent) -> None:
        """Show the task."""
        raise NotImplementedError

    @property
    def unsaved(self) -> tuple[str, str] | None:
        """The edited buffer and its text; None if the text is saved or the page has no editor."""
        return None

    def note(self, buffer: str, code: str) -> None:
        """Do nothing. Pages with an editor override this to remember a buffer's text as saved."""
