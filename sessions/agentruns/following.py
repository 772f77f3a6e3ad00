"""Follows runs and attempts that another process carries out, by reading the new lines of their journals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.attempts.state import AttemptState, Standing, advance
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.registry import blank_state
from gistpoint.sessions.agentruns.store import AgentRun, JobState
from gistpoint.sessions.journal import JOURNAL, decoded, is_open


class JournalFollower:
    """Follows one attempt by reading its journal, which it never changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / JOURNAL
        self._read = 0
        self.state = AttemptState()
        self.problem = ""
        """Why the attempt can't be followed any further, as a sentence; empty if it can."""

    @property
    def live(self) -> bool:
        """Whether a process has the journal open for writing."""
        return is_open(self.folder)

    def poll(self) -> bool:
        """Read the new complete lines; return whether there were any.

        If the journal can't be read, `problem` is set, and nothing is read from then on.
        """
        if self.problem:
            return False
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                data = file.read()
        except OSError as error:
            self.problem = f"{self._path.parent.name}/{JOURNAL} can't be read: {error.strerror}."
            return False
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            self._take(line)
        return bool(whole)

    def _take(self, line: bytes) -> None:
        event = decoded(line)
        if event is None:
            self.problem = f"Event {self.state.events + 1} can't be read."
            return
        try:
            if isinstance(event.data, AttemptStarted) and not self.state.events:
                self.state = AttemptState(of_kind=blank_state(event.data.mode))
            self.state = advance(self.state, event)
        except AttemptError as error:
            self.problem = str(error)


@dataclass(frozen=True, slots=True)
class FollowedJob:
    """A job and the state of its attempt; an empty state if there is none."""

    job: JobState
    state: AttemptState


class RunFollower:
    """Follows a run and all of its attempts."""

    def __init__(self, run: AgentRun, attempts: Path) -> None:
        """`attempts` is the folder of the attempts."""
        self.run = run
        self._attempts = attempts
        self._followers: dict[str, JournalFollower] = {}

    def poll(self) -> Sequence[FollowedJob]:
        """Return the jobs with the current states of their attempts.

        Raises `AgentRunError` if the run can't be read.
        """
        self.run.reload()
        return [FollowedJob(job, self._state(job.attempt)) for job in self.run.jobs.values()]

    def _state(self, attempt: str) -> AttemptState:
        if not attempt:
            return AttemptState()
        follower = self._followers.setdefault(attempt, JournalFollower(self._attempts / attempt))
        if not follower.state.ended or follower.state.standing is Standing.NOT_ASKED:
            follower.poll()
        return follower.state
