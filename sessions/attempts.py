"""The store of attempts: a folder each, named by its id, with its journal and the id of its task."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import Event
from gistpoint.core.attempts.identity import PERSON, Enrolment, new_attempt_id
from gistpoint.core.attempts.state import AttemptResult, AttemptState, advance, attempt_result
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.kinds.gist.verdict import ScoresGists
from gistpoint.core.kinds.repair.judge import Judge
from gistpoint.core.ports import TimeSource
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.heads import Head
from gistpoint.sessions.journal import JOURNAL, JournalWriter, first_event, is_open, read_journal
from gistpoint.sessions.reviews.keys import attempt_key
from gistpoint.sessions.reviews.reviewing import ReviewStore
from gistpoint.sessions.reviews.settling import accepted
from gistpoint.sessions.reviews.state import ReviewBook

_STARTING = "starting.lock"


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
    accepted: bool | None = None
    """What reviewers have said of its pass, see `reviews.settling`."""
    head: str = ""
    """The hash of the journal's last line."""
    kept: Head | None = None
    """The head that was kept outside of the journal; None for one that came from elsewhere."""
    open: bool = False
    """Whether a process has it open for writing."""

    @property
    def actor(self) -> str:
        """Who made it: `person`, `model`, `replay` or `simulated`."""
        return str(self.state.header.get("actor", ""))

    @property
    def participant(self) -> str:
        """The pseudonym of the person; empty if none was given."""
        return str(self.state.header.get("participant") or "")

    @property
    def witnessed(self) -> bool:
        """Whether a head was kept from the first event on: nothing can have been taken away unseen."""
        return self.kept is not None and self.kept.since == 1

    @property
    def result(self) -> AttemptResult:
        """What it came to so far; a damaged journal proves nothing."""
        return AttemptResult.NOT_SOLVED if self.problem else attempt_result(self.state, self.accepted)


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

    def __init__(self, root: Path, clock: TimeSource, version: str, reviews: Path | None = None) -> None:
        """`reviews` is the folder in which reviewers settle what is to be read."""
        self.root = root
        self._reviews = reviews
        self._clock = clock
        self._version = version

    def start(
        self, task: Task, judge: Judge | ScoresGists, enrolment: Enrolment, *, budgets: Budgets | None = None
    ) -> OpenAttempt:
        """Begin a new attempt, with the task's budgets unless others are given.

        Raises `AttemptError` while the same person has another one of the same task open: one clock, not two.
        """
        with self._starting():
            self._refuse_second(task.id, asdict(enrolment))
            identity = new_attempt_id(self._clock.utc_ms())
            journal = JournalWriter(self.root / identity, self._clock)
            try:
                attempt = Attempt(task, judge, journal, self._clock, version=self._version)
                attempt.start(enrolment, attempt_id=identity, budgets=budgets)
            except BaseException:
                journal.discard()
                raise
        return OpenAttempt(attempt, journal)

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Let one process at a time look for open attempts and begin one."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / _STARTING).open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _refuse_second(self, task_id: str, who: Mapping[str, Any], attempt_id: str = "") -> None:
        """Refuse a clock beside that of another open attempt by the same person; `who` says whose this is."""
        for folder in self._folders() if who.get("actor") == PERSON else []:
            if folder.name == attempt_id or not is_open(folder):
                continue
            begun = first_event(folder / JOURNAL)
            if begun is not None and begun.data.get("task_id") == task_id and _same_person(begun.data, who):
                raise AttemptError(
                    f"This task is being attempted already: attempt {folder.name} is open in another window.",
                    hint="Go on there. Once it is left there, it can be resumed here.",
                )

    def resume(self, attempt_id: str, task: Task, judge: Judge | ScoresGists) -> OpenAttempt:
        """Go on with an attempt; raises `AttemptError` where it can't be had for writing, or as `start` does."""
        with self._starting():
            journal = JournalWriter(self.folder(attempt_id), self._clock)
            try:
                attempt = Attempt(task, judge, journal, self._clock, events=journal.events, version=self._version)
                self._refuse_second(task.id, attempt.state.header, journal.path.parent.name)
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
        return _summary(self.folder(attempt_id), self._book())

    def summaries(self) -> Iterator[AttemptSummary]:
        """Yield all attempts, the newest first; a damaged one tells its problem instead of raising."""
        book = self._book()
        for folder in sorted(self._folders(), reverse=True):
            try:
                yield _summary(folder, book)
            except UserError as error:
                yield AttemptSummary(folder.name, "", "", "", 0, AttemptState(), str(error))

    def unfinished(self, task_id: str, enrolment: Enrolment) -> list[AttemptSummary]:
        """Return a person's attempts of a task that have not ended, the newest first; damaged ones are among them."""
        return [
            s
            for s in self.summaries()
            if s.task_id == task_id and not s.state.ended and _same_person(s.state.header, asdict(enrolment))
        ]

    def _book(self) -> ReviewBook:
        return ReviewStore(self._reviews, self._clock).book if self._reviews is not None else ReviewBook()

    def _folders(self) -> list[Path]:
        if not self.root.is_dir():
            return []
        return [path for path in self.root.iterdir() if (path / JOURNAL).is_file()]


def _same_person(header: Mapping[str, Any], who: Mapping[str, Any]) -> bool:
    return header.get("actor") == PERSON and (header.get("participant") or "") == (who.get("participant") or "")


def _summary(folder: Path, book: ReviewBook) -> AttemptSummary:
    content = read_journal(folder / JOURNAL)
    state, problem = _folded(content.events)
    header = state.header
    problem = content.fault or problem or ("" if header else f"Its {JOURNAL} holds no start of an attempt.")
    return AttemptSummary(
        attempt_id=folder.name,
        task_id=str(header.get("task_id", "")),
        mode=str(header.get("mode", "")),
        role=str(header.get("role", "")),
        started_utc_ms=content.events[0].utc_ms if content.events else 0,
        state=state,
        problem=problem,
        accepted=accepted(book, attempt_key(folder.name)),
        head=content.head,
        kept=content.kept,
        open=not state.ended and is_open(folder),
    )


def _folded(events: Iterable[Event]) -> tuple[AttemptState, str]:
    """Return the state up to the first event that has not the data that its type needs, and which that is."""
    state = AttemptState()
    for event in events:
        try:
            state = advance(state, event)
        except (KeyError, TypeError, ValueError, AttributeError):
            return state, f"Event {event.seq} has not the data that its type needs."
    return state, ""
