"""The settings of review screens: the reviewer, the mode of the review, and hits to continue from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gistpoint.core.locations import Locations
from gistpoint.sessions.records.model import TextScope

if TYPE_CHECKING:
    from textual.screen import Screen

    from gistpoint.core.attempts.harness import TaskJudge
    from gistpoint.core.tasks.model import Task
    from gistpoint.sessions.replay.replaying import Replay
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.sessions.runs.searching import Hit
    from gistpoint.sessions.team.live import LiveAnnotations

_BLIND = b'"blind":true'
"""Part of a stored operation that a reviewer who works blind makes."""
Replaying = Callable[["RunDocument"], "Replay"]
"""A function that returns a replay of a run. Called in a thread.

Raises `UserError` if its task or isolation is missing.
"""
Judging = Callable[["Task"], "TaskJudge"]
"""A function that returns the judge for a task's gists. Called in a thread.

Raises `UserError` if their code can't be isolated.
"""


class SearchRequest(NamedTuple):
    """A query, and the parts to search. `runs` are names of runs; empty for the open run."""

    pattern: str
    regex: bool = False
    scopes: tuple[TextScope, ...] = tuple(TextScope)
    runs: tuple[str, ...] = ()


class FoundHits(NamedTuple):
    """The hits of a search, and the index of the hit to show in the run that is opened."""

    wanted: SearchRequest
    hits: list[Hit]
    at: int


class ReviewScreens(Protocol):
    """A factory of a review's screens, which saves screens from importing each other."""

    def run(
        self,
        name: str,
        settings: ReviewSettings,
        *,
        runs: tuple[str, ...] = (),
        found: FoundHits | None = None,
        title: str = "",
    ) -> Screen[None]:
        """Return the screen for a run. `runs` are the names in its list.

        `found` contains hits to continue from. `title` is shown until the run is open.
        """
        ...

    def runs(self, paths: list[str], settings: ReviewSettings) -> Screen[None]:
        """Return the screen for a list of runs."""
        ...

    def comparison(self, left: str, right: str, settings: ReviewSettings) -> Screen[None]:
        """Return the screen for two runs side by side."""
        ...


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """The reviewer, and the settings of the review."""

    locations: Locations
    reviewer: str
    screens: ReviewScreens
    blind: bool = False
    replaying: Replaying | None = None
    judging: Judging | None = None
    study: Path | None = None
    """The folder of the study under review, which also stores the annotations; None outside of a study."""
    live: LiveAnnotations | None = None
    """Shares annotations through a team's store as they are made; None if no store is chosen."""

    @property
    def reviews(self) -> Path:
        """The folder with the reviews."""
        return self.locations.reviews if self.study is None else self.study / "reviews"

    @property
    def may_hide(self) -> bool:
        """Whether a run may hide its model and outcome, as far as is known without its annotations.

        It may in a blind review, and if the reviewer has reviewed any run blind.
        """
        if self.blind:
            return True
        from gistpoint.sessions.annotations.side_files import file_name_of

        try:
            own = (self.reviews / f"{file_name_of(self.reviewer)}.jsonl").read_bytes()
        except OSError:
            return False
        return _BLIND in own
