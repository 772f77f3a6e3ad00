"""Who reviews, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gistpoint.core.locations import Locations

if TYPE_CHECKING:
    from gistpoint.sessions.replay.replaying import Replay
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.tui.screens.review.gist_scoring import Judging


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """Who reviews, and how."""

    locations: Locations
    reviewer: str
    blind: bool = False
    replaying: Callable[[RunDocument], Replay] | None = None
    """Makes a replay of a run on its task; called in a thread. Raises `UserError` where that can't be done here."""
    judging: Judging | None = None
    """Makes what scores gists of a task; called in a thread, raises as `replaying` does."""
