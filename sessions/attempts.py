"""The store of attempts: each has a folder that is named by its id and contains its journal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from msgspec import structs

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import AttemptStarted, EventData, JournalEvent
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import PERSON, Enrolment, new_attempt_id
from gistpoint.core.attempts.state import AttemptState, advance
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.kinds.registry import blank_state
from gistpoint.core.logs import is_held, replace_file, sync_folder, wait_for
from gistpoint.core.ports import TimeSource
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempt_copies import AttemptCopies
from gistpoint.sessions.attempt_summary import AttemptSummary, ListedAttempt, listed_attempt, withheld
from gistpoint.sessions.blinding import Blinding
from gistpoint.sessions.heads import ELSEWHERE, from_elsewhere
from gistpoint.sessions.journal import (
    JOURNAL,
    LOCK,
    JournalListener,
    JournalWriter,
    first_event,
    is_open,
    journal_in,
    read_journal,
)
from gistpoint.sessions.outlines import Outline, Outlines, StatesOnDisk, growing_parts, state_on_disk

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.reviews import ReviewBook

ATTEMPTS_INDEX = "attempts.sqlite"
"""The name of the index of attempts, in `Locations.lists`."""
_STARTING = "starting.lock"


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt that this process has open for writing, with its journal."""

    attempt: Attempt
    journal: JournalWriter

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()


class _OfJournal(Protocol):
    """An item of a list that contains the id in its attempt's journal."""

    @property
    def own_id(self) -> str:
        """The id in the journal."""
        ...


Listed = TypeVar("Listed", bound=_OfJournal)


class _Outlined(NamedTuple):
    """The outline of an attempt, with facts about it from other files."""

    name: str
    outline: Outline
    opened: bool
    ruled: bool | None
    """Whether reviewers accept its pass; None without a ruling."""


class AttemptStore:
    """The attempts below one folder."""

    def __init__(
        self,
        root: Path,
        clock: TimeSource,
        version: str,
        reviews: Path | None = None,
        listener: JournalListener | None = None,
        index: Path | None = None,
        blinding: Blinding | None = None,
    ) -> None:
        """`reviews` is the folder of the reviews, in which reviewers rule on suspicious passes.

        `index` is the file that stores the rows of lists; without one, each process reads all journals.
        `listener` is notified of attempts that are not part of a study. `blinding` decides which attempts are
        shown without their outcome.
        """
        self.root = root
        self._folder_name = os.fspath(root)
        self._listener = listener
        self._index = index
        self._blinding = blinding
        self._reviews = reviews
        self._clock = clock
        self._version = version
        self._known: dict[str, tuple[object, AttemptSummary]] = {}
        """The summary of each attempt that was read, with the versions of its files."""
        self._outlines: Outlines | None = None
        self._shown: dict[str, tuple[Outline, AttemptSummary]] = {}
        """The last results of `outlines`, by attempt id."""
        self.copies: dict[str, str] = {}
        """The original folder of each copy that the last list left out, by the name of the copy."""

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

        `attempt_id` is an id that was reserved earlier; its folder may exist, but must not contain a complete
        event. Raises `AttemptError` if the same person has another attempt at this task open, because two
        clocks must not run at once.
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
        """Raise `AttemptError` if the person `who` already has an open attempt at the task."""
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
            journal.set_listener(self._listener)
        return OpenAttempt(attempt, journal)

    def adopt(self, attempt_id: str, data: bytes) -> None:
        """Store the journal of an attempt made or continued on another machine; it is on disk on return.

        Raises `AttemptError` if the journal is damaged or incomplete, if it does not continue the journal
        already stored, or if the attempt is open, here or on another machine.
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
                journal.set_listener(self._listener)
            return advance(state, journal.append(data))
        finally:
            journal.close()

    def folder(self, attempt_id: str) -> Path:
        """Return the folder of an attempt, given its id or a prefix.

        Raises `AttemptError` unless exactly one matches.
        """
        # Looking up a whole id requires a single system call, however many attempts there are.
        whole = self.root / attempt_id
        if attempt_id and whole.name == attempt_id and (whole / JOURNAL).exists():
            return whole
        found = list(self._folders(attempt_id)) if attempt_id else []
        if len(found) == 1:
            return found[0]
        if found:
            raise AttemptError(
                f"{len(found)} attempts have ids that begin with {attempt_id}.",
                hint="Give more characters of the id.",
            )
        raise AttemptError(
            f"There is no attempt {attempt_id!r}.", hint="`gistpoint attempt list` shows them."
        )

    def summary(self, attempt_id: str) -> AttemptSummary:
        """Return one attempt, given its id or a prefix.

        Raises `AttemptError` unless exactly one matches, and if its journal can't be read.
        """
        folder = self.folder(attempt_id)
        summary = self._read(folder, None)
        # Reviewers don't rule on unfinished attempts, which open sooner without reading reviews (decision
        # 216).
        return self._read(folder, self._book()) if summary.state.ended else summary

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
        return self._as_shown(replace(summary, accepted=ruled, open=opened, elsewhere=elsewhere))

    def _read_or_named(self, folder: Path, book: ReviewBook | None) -> AttemptSummary:
        """Return the summary of an attempt; only its problem if its journal can't be read."""
        try:
            return self._read(folder, book)
        except UserError as error:
            return _unreadable(folder.name, error)

    def _as_shown(self, summary: AttemptSummary) -> AttemptSummary:
        """Return an attempt in the form in which it may be shown, possibly without its outcome."""
        header = summary.state.header
        return withheld(summary) if self._hides(summary.attempt_id, header.actor, header.study) else summary

    def _hides(self, name: str, actor: str, study: object) -> bool:
        return self._blinding is not None and self._blinding.hides(actor, study, self.root / name)

    def summaries(self) -> Iterator[AttemptSummary]:
        """Yield all attempts, newest first; `problem` is set for those whose journal can't be read.

        A copy of an attempt is left out.
        """
        book, copies = self._book(), AttemptCopies(self.root)
        self.copies = copies.found
        for folder in self._folders():
            summary = self._read_or_named(folder, book)
            if not copies.is_copy(folder.name, summary.own_id):
                yield summary

    def summaries_of(self, names: Iterable[str]) -> Iterator[AttemptSummary]:
        """Yield the attempts in the folders with these names, in the form of `summaries`."""
        book = self._book()
        for name in names:
            if (self.root / name / JOURNAL).exists():
                yield self._read_or_named(self.root / name, book)

    def outlines(self) -> Iterator[AttemptSummary]:
        """Yield all attempts except copies, newest first, without heads, and with the state that lists show.

        Results are kept in the index, so an unchanged journal is read only once. An attempt that has not
        changed since the last call is yielded as the same object.
        """
        elsewhere = from_elsewhere(self.root)

        def remembered(
            name: str, state: bytes, kept: Outlines, book: ReviewBook | None
        ) -> AttemptSummary | None:
            found = self._outlined(name, state, kept, book, remember=True)
            return None if found is None else self._summary_of(found, elsewhere)

        yield from self._each_attempt(remembered, outlines=True)

    def listed(self) -> Iterator[ListedAttempt]:
        """Yield the rows of all attempts except copies, newest first, from the index where it is up to date.

        Rows are not kept in memory, so a hundred thousand are no problem, and the caller may stop at any row.
        """
        yield from self._each_attempt(partial(self._listed, from_elsewhere(self.root)), outlines=False)

    def listed_of(self, attempt_ids: Iterable[str]) -> list[ListedAttempt]:
        """Return the attempts with these ids that still exist, in the form of `listed`."""
        book, kept, elsewhere = self._book(), self._outlines_kept(), from_elsewhere(self.root)
        names = list(attempt_ids)
        kept.prepare(names)
        states = ((name, state_on_disk(self._folder_name, name)) for name in names)
        found = [self._listed(elsewhere, name, state, kept, book) for name, state in states if state]
        kept.save()
        return [row for row in found if row is not None]

    def _listed(
        self, elsewhere: frozenset[str], name: str, state: bytes, kept: Outlines, book: ReviewBook | None
    ) -> ListedAttempt | None:
        """Return the row of an attempt, from the index unless other files may change it.

        None if the folder has no journal.
        """
        row = kept.listed(name, state)
        if row is not None and self._stays_as_listed(name, row, book):
            return structs.replace(row, elsewhere=True) if name in elsewhere else row
        found = self._outlined(name, state, kept, book, remember=False)
        if found is None:
            return None
        if isinstance(found, AttemptSummary):
            return listed_attempt(found)
        return listed_attempt(self._made_summary(found, elsewhere))

    def _stays_as_listed(self, name: str, row: ListedAttempt, book: ReviewBook | None) -> bool:
        """Return whether no other file affects the index's row: it is shown, without a ruling, not open."""
        if row.study and self._hides(name, PERSON, row.study):
            return False
        if book is not None and row.standing is not None and _has_reviews(book, name):
            return False
        return row.ended or not is_held(f"{self._folder_name}/{name}/{LOCK}")

    def details_of(self, attempt_ids: Iterable[str]) -> dict[str, AttemptSummary]:
        """Return the attempts with these ids that still exist, in the form of `outlines`, by id.

        It may be called while another thread reads a list.
        """
        kept, book, elsewhere = Outlines(self._index, self._version), self._book(), from_elsewhere(self.root)
        names, shown = list(attempt_ids), dict[str, AttemptSummary]()
        kept.prepare(names)
        for name in names:
            state = state_on_disk(self._folder_name, name)
            found = self._outlined(name, state, kept, book, remember=False) if state else None
            if isinstance(found, AttemptSummary):
                shown[name] = found
            elif found is not None:
                shown[name] = self._made_summary(found, elsewhere)
        kept.save()
        return shown

    def outlines_of(self, attempt_ids: Iterable[str]) -> list[AttemptSummary]:
        """Return the attempts with these ids that still exist, in the form of `outlines`."""
        book, kept, elsewhere = self._book(), self._outlines_kept(), from_elsewhere(self.root)
        names = list(attempt_ids)
        kept.prepare(names)
        states = ((name, state_on_disk(self._folder_name, name)) for name in names)
        found = [self._outlined(name, state, kept, book, remember=True) for name, state in states if state]
        kept.save()
        return [self._summary_of(one, elsewhere) for one in found if one is not None]

    def _each_attempt(
        self, one: Callable[[str, bytes, Outlines, ReviewBook | None], Listed | None], *, outlines: bool
    ) -> Iterator[Listed]:
        """Yield what `one` returns for all attempts, newest first, except None. Copies are left out.

        `one` gets the name of the folder, the state of its files, the outlines, and the reviews. With
        `outlines`, it requires the outlines instead of the rows of long lists.
        """
        if not self.root.is_dir():
            return
        book, kept, copies = self._book(), self._outlines_kept(), AttemptCopies(self.root)
        self.copies = copies.found
        present, states = [], StatesOnDisk(self._folder_name)
        try:
            names = os.listdir(self._folder_name)  # noqa: PTH208 - up to 100,000 strings
            for part in growing_parts(sorted(names, reverse=True)):
                kept.prepare_range(part, outlines=outlines)
                for name in part:
                    # Taken before the journal is read: if that grows meanwhile, the row is out of date.
                    state = states.of(name)
                    found = one(name, state, kept, book) if state else None
                    if found is not None:
                        present.append(name)
                        if found.own_id == name or not copies.is_copy(name, found.own_id):
                            yield found
            kept.forget_all_but(present)
        finally:
            states.close()
            kept.save()

    def _outlines_kept(self) -> Outlines:
        if self._outlines is None:
            self._outlines = Outlines(self._index, self._version)
        return self._outlines

    def _outlined(
        self, name: str, state: bytes, kept: Outlines, book: ReviewBook | None, *, remember: bool
    ) -> _Outlined | AttemptSummary | None:
        """Return an attempt's outline with facts from other files; None if the folder has no journal.

        If its journal can't be read, a summary that contains only the problem is returned.
        """
        outline = kept.get(name, state, remember=remember)
        if outline is None:
            folder = self.root / name
            if not (folder / JOURNAL).exists():
                return None
            try:
                summary = _summary(folder)
                outline = Outline.of(summary)
            except UserError as error:
                return _unreadable(name, error)
            kept.put(summary, state, outline, keep=not is_open(folder), remember=remember)
        opened = outline.ending is None and is_open(self.root / name)
        passes = any(submission.solved for submission in outline.submissions)
        return _Outlined(name, outline, opened, _ruling(book, name) if passes else None)

    def _summary_of(self, found: _Outlined | AttemptSummary, elsewhere: frozenset[str]) -> AttemptSummary:
        """Return the summary of an outline; the same object as before unless something has changed."""
        if isinstance(found, AttemptSummary):
            return found
        name = found.name
        shown = self._shown.get(name)
        state = (found.opened, found.ruled, name in elsewhere)
        if (
            shown is not None
            and shown[0] is found.outline
            and (shown[1].open, shown[1].accepted, shown[1].elsewhere) == state
        ):
            return shown[1]
        summary = self._made_summary(found, elsewhere)
        self._shown[name] = (found.outline, summary)
        return summary

    def _made_summary(self, found: _Outlined, elsewhere: frozenset[str]) -> AttemptSummary:
        outline = found.outline
        summary = AttemptSummary(
            found.name,
            outline.header.task_id,
            outline.header.mode,
            outline.header.role,
            outline.started_utc_ms,
            outline.state,
            outline.problem,
            found.ruled,
            calls=outline.calls,
            open=found.opened,
            elsewhere=found.name in elsewhere,
        )
        return self._as_shown(summary)

    def unfinished(self, task_id: str, enrolment: Enrolment) -> list[AttemptSummary]:
        """Return a person's unfinished attempts at a task, newest first, including damaged ones."""
        of_task = [folder for folder in self._folders() if _task_of(folder) == task_id]
        # Reviewers don't rule on unfinished attempts, so the reviews need not be read.
        found = (self._read_or_named(folder, None) for folder in of_task)
        return [s for s in found if not s.state.ended and s.is_of(enrolment.participant or "")]

    def _book(self) -> ReviewBook | None:
        """Return all reviews; None if there are none."""
        if self._reviews is None or not self._reviews.is_dir():
            return None
        from gistpoint.sessions.annotations.reviewer import ReviewStore  # see `_ruling`

        return ReviewStore(self._reviews, self._clock).book

    def _folders(self, prefix: str = "") -> Iterator[Path]:
        """Yield the folders of attempts whose ids begin with `prefix`, newest first."""
        names = os.listdir(self._folder_name) if self.root.is_dir() else []  # noqa: PTH208 - plain strings
        for name in sorted((name for name in names if name.startswith(prefix)), reverse=True):
            if (self.root / name / JOURNAL).exists():
                yield self.root / name


def _same_person(header: AttemptStarted, who: Enrolment | AttemptStarted) -> bool:
    return header.actor == PERSON and (header.participant or "") == (who.participant or "")


def _task_of(folder: Path) -> str:
    """Return the id of an attempt's task from the first line of its journal; empty if the line has none."""
    first = first_event(folder / JOURNAL)
    return first.data.task_id if first is not None and isinstance(first.data, AttemptStarted) else ""


def _has_reviews(book: ReviewBook, attempt_id: str) -> bool:
    """Return whether somebody has reviewed an attempt."""
    from gistpoint.sessions.annotations.keys import attempt_key  # see `_ruling`

    return bool(book.reviewers_of(attempt_key(attempt_id)))


def _ruling(book: ReviewBook | None, attempt_id: str) -> bool | None:
    """Return whether reviewers accept an attempt's pass; None without a ruling."""
    if book is None:
        return None
    # Imported only if there are reviews: most attempts have none, and open sooner without (decision 37).
    from gistpoint.sessions.annotations.keys import attempt_key
    from gistpoint.sessions.annotations.settling import ruling_on

    return ruling_on(book, attempt_key(attempt_id))


def _summary(folder: Path) -> AttemptSummary:
    """Return the summary of an attempt.

    Facts that the attempt's own files don't contain keep their defaults.
    """
    content = read_journal(folder / JOURNAL)
    state, problem = folded_state(content.events)
    header = state.header
    missing = "" if state.started else f"Its {JOURNAL} does not contain the start of an attempt."
    problem = content.fault or problem or missing
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


def _unreadable(name: str, error: UserError) -> AttemptSummary:
    """Return the summary of an attempt whose journal can't be read."""
    return AttemptSummary(name, "", "", "", 0, AttemptState(), str(error))


def _versions(folder: Path) -> bytes:
    """Return the state of an attempt's journal and head on disk, which changes when either changes."""
    return state_on_disk(os.fspath(folder.parent), folder.name)


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
