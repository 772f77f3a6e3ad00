"""The store of attempts: each has a folder that is named by its id and contains its journal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import AttemptStarted, EventData, JournalEvent
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import PERSON, Enrolment, new_attempt_id
from gistpoint.core.attempts.state import AttemptResult, AttemptState, advance, attempt_result
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.kinds.registry import blank_state
from gistpoint.core.logs import replace_file, sync_folder, wait_for
from gistpoint.core.ports import TimeSource
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.heads import ELSEWHERE, Head, HeadOrigin, from_elsewhere, head_path
from gistpoint.sessions.journal import (
    JOURNAL,
    JournalListener,
    JournalWriter,
    first_event,
    is_open,
    journal_in,
    read_journal,
)
from gistpoint.sessions.outlines import Outline, Outlines, Versions

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.reviews import ReviewBook

_STARTING = "starting.lock"
_SAVED_EVERY_S = 5.0
"""The seconds between saves of the results while many journals are read."""


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """An attempt as tables show it."""

    attempt_id: str
    task_id: str
    mode: str
    role: str
    started_utc_ms: int
    state: AttemptState
    problem: str = ""
    """The fault of the journal, as a sentence; empty if there is none."""
    accepted: bool | None = None
    """Whether reviewers accept its pass, see `annotations.settling`; None without a ruling."""
    head: str = ""
    """The hash of the journal's last line."""
    calls: int = 0
    kept: Head | None = None
    """The head that is stored outside the journal; None for a journal from another machine or folder."""
    open: bool = False
    """Whether a process has the attempt open for writing."""
    elsewhere: bool = False
    """Whether the attempt comes from another machine and has not been continued on this one."""

    @property
    def actor(self) -> str:
        """The kind of solver: `person`, `model`, `replay` or `simulated`."""
        return self.state.header.actor

    @property
    def participant(self) -> str:
        """The pseudonym of the person; empty if there is none."""
        return self.state.header.participant or ""

    def is_of(self, participant: str) -> bool:
        """Whether the person with this pseudonym made the attempt.

        An empty pseudonym means anybody who works on this machine without a pseudonym.
        """
        if self.actor != PERSON or self.participant != participant:
            return False
        return bool(participant or not self.elsewhere)

    @property
    def branch(self) -> str:
        """The machine that wrote this branch, if several machines continued the attempt; otherwise empty."""
        return self.attempt_id.rpartition("~")[2] if "~" in self.attempt_id else ""

    @property
    def witnessed(self) -> bool:
        """Whether this machine has kept a head since the first event, so that no removal goes unnoticed."""
        if self.kept is None:
            return False
        return self.kept.origin is HeadOrigin.HERE and self.kept.since == 1

    @property
    def result(self) -> AttemptResult:
        """The result so far; `NOT_SOLVED` if the journal is damaged."""
        return AttemptResult.NOT_SOLVED if self.problem else attempt_result(self.state, self.accepted)


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt that this process has open for writing, with its journal."""

    attempt: Attempt
    journal: JournalWriter

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()


class AttemptStore:
    """The attempts below one folder."""

    def __init__(
        self,
        root: Path,
        clock: TimeSource,
        version: str,
        reviews: Path | None = None,
        listener: JournalListener | None = None,
    ) -> None:
        """`reviews` is the folder of the reviews, in which reviewers rule on suspicious passes.

        `listener` is notified of attempts that are not part of a study.
        """
        self.root = root
        self._listener = listener
        self._reviews = reviews
        self._clock = clock
        self._version = version
        self._known: dict[str, tuple[object, AttemptSummary]] = {}
        """The summary of each attempt that was read, and the versions of its files."""
        self._outlines: Outlines | None = None
        self._shown: dict[str, tuple[Outline, AttemptSummary]] = {}
        """The last results of `outlines`, by attempt id."""

    def start(
        self,
        task: Task,
        judge: TaskJudge,
        enrolment: Enrolment,
        *,
        budgets: Budgets | None = None,
        attempt_id: str = "",
    ) -> OpenAttempt:
        """Begin an attempt and return it; the task's budgets apply unless others are given.

        `attempt_id` is an id that was reserved earlier; its folder may exist, but has no complete event.
        Raises `AttemptError` if the same person has another attempt at this task open, because two clocks
        must not run at once.
        """
        with self._starting():
            self._refuse_second(task.id, enrolment)
            identity = attempt_id or new_attempt_id(self._clock.utc_ms())
            journal = JournalWriter(self.root / identity, self._clock)
            try:
                attempt = Attempt(task, judge, journal, self._clock, version=self._version)
                attempt.start(enrolment, attempt_id=identity, budgets=budgets)
            except BaseException:
                journal.discard()
                raise
        return self._opened(attempt, journal)

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Let only one process at a time check for open attempts and begin one."""
        self.root.mkdir(parents=True, exist_ok=True)
        with wait_for(self.root / _STARTING):
            yield

    def _refuse_second(self, task_id: str, who: Enrolment | AttemptStarted, attempt_id: str = "") -> None:
        """Raise `AttemptError` if the person `who` has another attempt at the task open."""
        for folder in self._folders() if who.actor == PERSON else []:
            if folder.name == attempt_id or not is_open(folder):
                continue
            first = first_event(folder / JOURNAL)
            begun = first.data if first is not None else None
            if isinstance(begun, AttemptStarted) and begun.task_id == task_id and _same_person(begun, who):
                raise AttemptError(
                    f"You have already begun this task: attempt {folder.name} is open in another window.",
                    hint="Continue there, or leave it there and resume it here.",
                )

    def resume(self, attempt_id: str, task: Task, judge: TaskJudge) -> OpenAttempt:
        """Resume an attempt and return it; `attempt_id` may be a prefix.

        Raises `AttemptError` unless exactly one attempt matches, if it can't be opened for writing, can't be
        continued with this task or by this version, or is being continued by another machine, and if the
        person has another attempt at the task open.
        """
        if self._listener is not None:
            self._listener.resuming(self.folder(attempt_id))
        with self._starting():
            journal = JournalWriter(self.folder(attempt_id), self._clock)
            try:
                attempt = Attempt(
                    task, judge, journal, self._clock, events=journal.events, version=self._version
                )
                self._refuse_second(task.id, attempt.state.header, journal.path.parent.name)
                attempt.resume_process()
            except BaseException:
                journal.close()
                raise
            (self.root / ELSEWHERE / journal.path.parent.name).unlink(missing_ok=True)
        return self._opened(attempt, journal)

    def _opened(self, attempt: Attempt, journal: JournalWriter) -> OpenAttempt:
        if self._listener is not None and attempt.state.header.study is None:
            journal.notify(self._listener)
        return OpenAttempt(attempt, journal)

    def adopt(self, attempt_id: str, data: bytes) -> None:
        """Store the journal of an attempt made or continued on another machine; it is on disk on return.

        Raises `AttemptError` if the journal is damaged or incomplete, if it does not continue the journal
        that is stored already, or if the attempt is open, here or on another machine.
        """
        content = journal_in(data)
        if content.fault or content.torn or not content.events:
            raise AttemptError(f"The journal of {attempt_id} is not complete. {content.fault}".strip())
        folder = self.root / attempt_id
        if self._listener is not None and folder.exists():
            self._listener.resuming(folder)
        with self._starting():
            before = (folder / JOURNAL).read_bytes() if (folder / JOURNAL).is_file() else b""
            if before == data:
                return
            if not data.startswith(before):
                raise AttemptError(f"The journal of {attempt_id} does not continue the one on this machine.")
            if is_open(folder):
                raise AttemptError(f"The attempt {attempt_id} is open in another window or process.")
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(folder / JOURNAL, data, mode=0o600)
            sync_folder(self.root)
        if self._listener is not None:
            self._listener.opened(folder)
            self._listener.closed(folder)

    def add_after_end(self, attempt_id: str, data: EventData) -> AttemptState:
        """Append an event to the journal of an attempt that has ended, and return the state after it.

        The event is on disk on return. Raises `AttemptError` unless exactly one attempt matches, and if that
        one has not ended, belongs to another machine, or can't be opened for writing.
        """
        folder = self.folder(attempt_id)
        if (self.root / ELSEWHERE / folder.name).exists():
            raise AttemptError(
                f"The attempt {folder.name} was made on another machine, and only that machine can add"
                " to it.",
                hint="Run the command there.",
            )
        if self._listener is not None:
            self._listener.resuming(folder)
        journal = JournalWriter(folder, self._clock)
        try:
            state, problem = folded_state(journal.events)
            if problem or not state.ended:
                raise AttemptError(problem or f"The attempt {folder.name} has not ended.")
            if self._listener is not None and state.header.study is None:
                journal.notify(self._listener)
            return advance(state, journal.append(data))
        finally:
            journal.close()

    def folder(self, attempt_id: str) -> Path:
        """Return the folder of an attempt, given its id or a prefix.

        Raises `AttemptError` unless exactly one matches.
        """
        found = [path for path in self._folders() if path.name.startswith(attempt_id)] if attempt_id else []
        exact = [path for path in found if path.name == attempt_id]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if found:
            raise AttemptError(
                f"{len(found)} attempts have ids that begin with {attempt_id}.",
                hint="Give more characters of the id.",
            )
        raise AttemptError(
            f"There is no attempt {attempt_id!r}.", hint="`gistpoint attempt list` shows them."
        )

    def summary(self, attempt_id: str) -> AttemptSummary:
        """Return one attempt, given its id or a prefix. Raises `AttemptError` unless exactly one matches."""
        return self._read(self.folder(attempt_id), self._book())

    def _read(self, folder: Path, book: ReviewBook | None) -> AttemptSummary:
        """Return the summary of an attempt; an unchanged journal is not read again."""
        versions = _versions(folder)
        known = self._known.get(folder.name)
        if known is None or known[0] != versions:
            known = self._known[folder.name] = (versions, _summary(folder))
        summary = known[1]
        ruled = _ruling(book, folder.name)
        opened = not summary.state.ended and is_open(folder)
        elsewhere = (self.root / ELSEWHERE / folder.name).exists()
        return replace(summary, accepted=ruled, open=opened, elsewhere=elsewhere)

    def summaries(self) -> Iterator[AttemptSummary]:
        """Yield all attempts, newest first; `problem` is set for those whose journal can't be read."""
        book = self._book()
        for folder in sorted(self._folders(), reverse=True):
            try:
                yield self._read(folder, book)
            except UserError as error:
                yield AttemptSummary(folder.name, "", "", "", 0, AttemptState(), str(error))

    def outlines(self) -> Iterator[AttemptSummary]:
        """Yield all attempts, newest first, with no head and only the part of the state that lists show.

        Results are kept on disk, so that an unchanged journal is read only once. An attempt that has not
        changed since the last call is yielded as the same object.
        """
        if not self.root.is_dir():
            return
        book, kept = self._book(), self._outlines_kept()
        elsewhere = from_elsewhere(self.root)
        saved = monotonic()
        present = []
        try:
            for name in sorted((entry.name for entry in os.scandir(self.root)), reverse=True):
                summary = self._outline(name, kept, book, elsewhere)
                if summary is not None:
                    present.append(name)
                    yield summary
                if monotonic() - saved > _SAVED_EVERY_S:
                    kept.save()
                    saved = monotonic()
            kept.forget_all_but(present)
        finally:
            kept.save()

    def outlines_of(self, attempt_ids: Iterable[str]) -> list[AttemptSummary]:
        """Return the attempts with these ids that still exist, in the form of `outlines`."""
        book, kept, elsewhere = self._book(), self._outlines_kept(), from_elsewhere(self.root)
        found = (self._outline(name, kept, book, elsewhere) for name in attempt_ids)
        return [summary for summary in found if summary is not None]

    def _outlines_kept(self) -> Outlines:
        if self._outlines is None:
            self._outlines = Outlines(self.root, self._version)
        return self._outlines

    def _outline(
        self, name: str, kept: Outlines, book: ReviewBook | None, elsewhere: frozenset[str]
    ) -> AttemptSummary | None:
        """Return an attempt in the form of `outlines`; None if the folder contains none.

        If its journal can't be read, the summary contains only the problem.
        """
        folder = self.root / name
        versions = _versions(folder)
        outline = kept.get(name, versions)
        if outline is None:
            if not (folder / JOURNAL).is_file():
                return None
            try:
                read = _summary(folder)
            except UserError as error:
                return AttemptSummary(name, "", "", "", 0, AttemptState(), str(error))
            outline = Outline.of(read.state, versions, read.started_utc_ms, read.problem)
            kept.put(name, outline, keep=not is_open(folder))
        opened = outline.ending is None and is_open(folder)
        passes = any(submission.solved for submission in outline.submissions)
        ruled = _ruling(book, name) if passes else None
        shown = self._shown.get(name)
        state = (opened, ruled, name in elsewhere)
        if (
            shown is not None
            and shown[0] is outline
            and (shown[1].open, shown[1].accepted, shown[1].elsewhere) == state
        ):
            return shown[1]
        header = outline.header
        summary = AttemptSummary(
            name,
            header.task_id,
            header.mode,
            header.role,
            outline.started_utc_ms,
            outline.state,
            outline.problem,
            ruled,
            calls=outline.calls,
            open=opened,
            elsewhere=name in elsewhere,
        )
        self._shown[name] = (outline, summary)
        return summary

    def unfinished(self, task_id: str, enrolment: Enrolment) -> list[AttemptSummary]:
        """Return a person's unfinished attempts at a task, newest first, including damaged ones."""
        of_task = [folder for folder in sorted(self._folders(), reverse=True) if _task_of(folder) == task_id]
        # None of them has been ruled on, so the reviews need not be read.
        found = (self._read(folder, None) for folder in of_task)
        return [s for s in found if not s.state.ended and s.is_of(enrolment.participant or "")]

    def _book(self) -> ReviewBook | None:
        """Return all reviews; None if there are none."""
        if self._reviews is None or not self._reviews.is_dir():
            return None
        from gistpoint.sessions.annotations.reviewer import ReviewStore  # see `_ruling`

        return ReviewStore(self._reviews, self._clock).book

    def _folders(self) -> list[Path]:
        if not self.root.is_dir():
            return []
        return [path for path in self.root.iterdir() if (path / JOURNAL).is_file()]


def _same_person(header: AttemptStarted, who: Enrolment | AttemptStarted) -> bool:
    return header.actor == PERSON and (header.participant or "") == (who.participant or "")


def _task_of(folder: Path) -> str:
    """Return the id of an attempt's task from the first line of its journal; empty if it is not there."""
    first = first_event(folder / JOURNAL)
    return first.data.task_id if first is not None and isinstance(first.data, AttemptStarted) else ""


def _ruling(book: ReviewBook | None, attempt_id: str) -> bool | None:
    """Return whether reviewers accept an attempt's pass; None without a ruling."""
    if book is None:
        return None
    # Reviews are read where there are any: most attempts are opened without, and sooner (decision 37).
    from gistpoint.sessions.annotations.keys import attempt_key
    from gistpoint.sessions.annotations.settling import ruling_on

    return ruling_on(book, attempt_key(attempt_id))


def _summary(folder: Path) -> AttemptSummary:
    """Read a journal; facts that the attempt's own files don't contain keep their defaults."""
    content = read_journal(folder / JOURNAL)
    state, problem = folded_state(content.events)
    header = state.header
    problem = (
        content.fault
        or problem
        or ("" if state.started else f"Its {JOURNAL} does not contain the start of an attempt.")
    )
    return AttemptSummary(
        attempt_id=folder.name,
        task_id=header.task_id,
        mode=header.mode,
        role=header.role,
        started_utc_ms=content.events[0].utc_ms if content.events else 0,
        state=state,
        problem=problem,
        head=content.head,
        calls=len(state.calls),
        kept=content.kept,
    )


def _versions(folder: Path) -> Versions:
    """Return the versions of an attempt's journal and head on disk."""
    found = []
    for path in (folder / JOURNAL, head_path(folder)):
        with suppress(OSError):
            stat = path.stat()
            found.append((stat.st_ino, stat.st_size, stat.st_ctime_ns))
    return tuple(found)


def folded_state(events: Iterable[JournalEvent]) -> tuple[AttemptState, str]:
    """Return the state after some events, and an empty string.

    If an event is invalid, return the state before it, and a sentence about it.
    """
    state = AttemptState()
    for event in events:
        try:
            if isinstance(event.data, AttemptStarted) and not state.events:
                state = AttemptState(of_kind=blank_state(event.data.mode))
            state = advance(state, event)
        except AttemptError as error:
            return state, error.message
    return state, ""
