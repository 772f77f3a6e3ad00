"""Looks up in a thread what others in a team are reading, and how far their verdicts match the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gistpoint.sessions.annotations.agreement import agreement_with_others
from gistpoint.tui.jobs import Jobs

if TYPE_CHECKING:
    from gistpoint.sessions.team.live import LiveAnnotations, LiveState

Verdicts = Iterable[tuple[str, str, str]]
"""Verdicts, each as the subject, the person and the verdict itself."""
_POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class Others:
    """The current work of the others in a team."""

    readers: Mapping[str, tuple[str, ...]]
    """The other readers, by the run or task they read."""
    words: str
    """The agreement of the verdicts, and whether sharing is interrupted.

    Empty if there is nothing to report.
    """


class OthersWatch:
    """A periodic check of the work of others, every two seconds.

    The verdicts are reloaded only if some have arrived from others, or if `changed` was called.
    """

    def __init__(self, live: LiveAnnotations, read: Callable[[], Verdicts], person: str) -> None:
        """`read` loads the verdicts of all people from the files; it runs in a job."""
        self._live, self._read, self._person = live, read, person
        self._state: LiveState | None = None
        self._agreement = ""
        self._stale = True

    def begin(self, jobs: Jobs, take: Callable[[Others], object]) -> None:
        """Start checking. `take` is called with the result on the UI thread whenever it changes."""
        jobs.repeat(_POLL_S, lambda _job: self._poll(), lambda others: others is not None and take(others))

    def changed(self) -> None:
        """Compare the verdicts again, after the user added or removed one."""
        self._stale = True

    def _poll(self) -> Others | None:
        state, before = self._live.state, self._state
        if state == before and not self._stale:
            return None
        self._state = state
        if self._stale or before is None or state.fetched != before.fetched:
            self._stale = False
            self._agreement = str(agreement_with_others(self._read(), self._person))
        away = "team's store away" if state.problem else ""
        return Others(state.readers, "  ".join(filter(None, [self._agreement, away])))
