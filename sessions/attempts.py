"""The store of attempts: a folder each, named by its id, with its journal and the id of its task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.gist_judging import ScoresGists
from gistpoint.core.attempts.identity import Enrolment, new_attempt_id
from gistpoint.core.attempts.judging import Judge
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.ports import TimeSource
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.journal import JOURNAL, JournalWriter, read_journal


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """One attempt as a table shows it."""

    attempt_id: str
    task_id: str
    mode: str
    role: str
    started_utc_ms: int
    state: AttemptState
    problem: str = ""
    """What is wrong with its journal, in a sentence; empty where all of it holds."""


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt that this process holds, with its journal."""

    attempt: Attempt
    journal: JournalWriter

    def close(self) -> None:
        """Let go of the journal."""
        self.journal.close()


class AttemptStore:
    """The attempts below one folder."""

    def __init__(self, root: Path, clock: TimeSource, version: str) -> None:
        self.root = root
        self._clock = clock
        self._version = version

    def start(
        self, task: Task, judge: Judge | ScoresGists, enrolment: Enrolment, *, budgets: Budgets | None = None
    ) -> OpenAttempt:
        """Begin a new attempt, with the task's budgets unless others are given."""
        identity = new_attempt_id(self._clock.utc_ms())
        journal = JournalWriter(self.root / identity, self._clock)
        try:
            attempt = Attempt(task, judge, journal, self._clock, version=self._version)
            attempt.start(enrolment, attempt_id=identity, budgets=budgets)
        except BaseException:
            journal.close()
            raise
        return OpenAttempt(attempt, journal)

    def resume(self, attempt_id: str, task: Task, judge: Judge | ScoresGists) -> OpenAttempt:
        """Go on with an attempt; raises `AttemptError` where it can't be had for writing."""
        journal = JournalWriter(self.folder(attempt_id), self._clock)
        try:
            attempt = Attempt(task, judge, journal, self._clock, events=journal.events, version=self._version)
            attempt.resume_process()
        except BaseException:
            journal.close()
            raise
        return OpenAttempt(attempt, journal)

    def folder(self, attempt_id: str) -> Path:
        """Return the folder of an attempt, by its id or an unambiguous beginning of it."""
        found = [path for path in self._folders() if path.name.startswith(attempt_id)] if attempt_id else []
        exact = [path for path in found if path.name == attempt_id]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if found:
            raise AttemptError(f"{attempt_id} is the beginning of {len(found)} attempts.", hint="Give more of it.")
        raise AttemptError(f"There is no attempt {attempt_id!r}.", hint="`gistpoint attempt list` shows them.")

    def summary(self, attempt_id: str) -> AttemptSummary:
        """Read one attempt."""
        return _summary(self.folder(attempt_id))

    def summaries(self) -> Iterator[AttemptSummary]:
        """Yield all attempts, the newest first; a damaged one tells its problem instead of raising."""
        for folder in sorted(self._folders(), reverse=True):
            try:
                yield _summary(folder)
            except UserError as error:
                yield AttemptSummary(folder.name, "", "", "", 0, AttemptState(), str(error))

    def unfinished(self, task_id: str) -> list[AttemptSummary]:
        """Return the attempts of a task that have not ended, the newest first."""
        return [s for s in self.summaries() if s.task_id == task_id and not s.state.ended and not s.problem]

    def _folders(self) -> list[Path]:
        if not self.root.is_dir():
            return []
        return [path for path in self.root.iterdir() if (path / JOURNAL).is_file()]


def _summary(folder: Path) -> AttemptSummary:
    content = read_journal(folder / JOURNAL)
    try:
        state = fold(content.events)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AttemptError(f"{folder.name}: an event of {JOURNAL} has not the data that its type needs.") from error
    header = state.header
    problem = "" if header else f"Its {JOURNAL} holds no start of an attempt."
    if content.broken_at is not None:
        problem = f"Its chain of hashes breaks at line {content.broken_at}."
    return AttemptSummary(
        attempt_id=folder.name,
        task_id=str(header.get("task_id", "")),
        mode=str(header.get("mode", "")),
        role=str(header.get("role", "")),
        started_utc_ms=content.events[0].utc_ms if content.events else 0,
        state=state,
        problem=problem,
    )
