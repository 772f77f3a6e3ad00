"""Loads the rows of the home screen, and the details of one of them."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import is_
from time import monotonic
from typing import NamedTuple, TypeVar

from gistpoint.core.attempts.results import AttemptResult, Standing, by_tests_words, solved_words
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import task_of
from gistpoint.core.tasks.documents import TASK_FILE, read_document
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempt_summary import AttemptSummary, ListedAttempt
from gistpoint.sessions.services import Services
from gistpoint.sessions.task_documents import ListedTask
from gistpoint.sessions.tasks import BrokenTask
from gistpoint.tui.home_rows import (
    SOLVED,
    AttemptEntry,
    HomeRows,
    TaskRow,
    rank_of,
    tour_marker,
)

_SCREENFUL = 100
"""The number of tasks that are shown first: as many as fit on a large screen."""
_OFTEN_S = 2.0
"""Seconds between later updates."""
_COST = 5
"""The least ratio of the time between two updates to the time that an update takes."""
_MANY = 500
"""The number of new attempts from which garbage collection would noticeably delay the keyboard."""
_HOUR_MS = 60 * 60 * 1000


def load_rows(services: Services) -> HomeRows:
    """Return all tasks and attempts, read from disk."""
    return HomeReader(services).read()


def _solved(attempts: Iterable[ListedAttempt]) -> str:
    """Return how many attempts count as solved; empty if this does not differ from the tests' verdicts."""
    known = [attempt for attempt in attempts if attempt.ended]
    results = [attempt.result for attempt in known]
    standings = [attempt.standing for attempt in known]
    only_tests = {None, Standing.NOT_ASKED, Standing.EXEMPT}
    if AttemptResult.TO_BE_READ not in results and only_tests.issuperset(standings):
        return ""
    return "; ".join(filter(None, [solved_words(results), by_tests_words(standings)]))


def _words(count: int, rows: Sequence[TaskRow]) -> str:
    if not count:
        return ""
    solved = sum(row.sign == SOLVED for row in rows)
    return f"{count} task{'' if count == 1 else 's'}{f', {solved} solved' if solved else ''}"


class HomeReader:
    """A loader of tasks and attempts, used in one thread at a time. Unchanged rows stay the same objects.

    It loads what lists show, from the indexes where they are up to date (decision 218).
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._me = services.enrolment.participant or ""
        self._problems: list[str] = []
        self._tasks: dict[str, ListedTask] = {}
        self._titles: dict[str, str] = {}
        """The title of each task; for one that the user has attempted to the end, it names the functions."""
        self._attempts: dict[str, ListedAttempt] = {}
        """The attempts by their ids, newest first."""
        self._mine: set[str] = set()
        """The ids of the user's own attempts."""
        self._rows: dict[str, tuple[list[ListedAttempt], TaskRow]] = {}
        """The row of each task, with the attempts from which it was made."""
        self._entries: dict[str, AttemptEntry] = {}
        self._frozen = 0
        """The number of attempts that garbage collection skips."""
        self._hour = 0
        """The hour in which rows were made: labels such as "today" expire."""

    def read(
        self, given: Callable[[HomeRows], object] | None = None, check: Callable[[], object] = lambda: None
    ) -> HomeRows:
        """Load and return all rows. With thousands of attempts that were never loaded, this takes a while.

        `given` is called with the first tasks, then every few seconds with the rows loaded so far. `check` is
        called now and then, and may end the loading with an error.
        """
        tasks, attempts = self._tasks, self._attempts
        self._problems, self._tasks, self._attempts = [], {}, {}
        self._mine = set()
        due = monotonic() + _OFTEN_S

        def give(*, at_once: bool = False) -> None:
            nonlocal due
            if given is not None and (at_once or monotonic() > due):
                begun = monotonic()
                given(self._shown(complete=False))
                due = monotonic() + max(_OFTEN_S, _COST * (monotonic() - begun))

        for item in self._services.tasks.listed():
            if isinstance(item, BrokenTask):
                self._problems.append(f"{item.folder.name}: {item.problem}")
                continue
            self._tasks[item.id] = _unchanged(item, tasks)
            self._titles.setdefault(item.id, item.title)
            give(at_once=len(self._tasks) == _SCREENFUL)
        give(at_once=True)
        for row in self._services.attempts.listed():
            self._add(_unchanged(row, attempts) if attempts else row)
            give()
            if len(self._attempts) > self._frozen + _MANY:
                check()
                self._frozen = len(self._attempts)
                # Otherwise, the collector would scan all attempts repeatedly, and delay the keyboard
                # (decision 101).
                gc.freeze()
        self._name_functions(self._attempts.values())
        return self._shown(complete=True)

    def read_again(self, attempt_ids: Sequence[str]) -> HomeRows | None:
        """Load some attempts again, and return all rows; None if nothing has changed."""
        found = self._services.attempts.listed_of(attempt_ids)
        changed = [row for row in found if self._attempts.get(row.attempt_id) != row]
        for row in changed:
            self._add(row)
        self._name_functions(changed)
        return self._shown(complete=True) if changed else None

    def _add(self, attempt: ListedAttempt) -> None:
        self._attempts[attempt.attempt_id] = attempt
        if attempt.is_of(self._me):
            self._mine.add(attempt.attempt_id)

    def _name_functions(self, attempts: Iterable[ListedAttempt]) -> None:
        """Name the functions in the titles of tasks that the user attempted to the end."""
        tried = {one.task_id for one in attempts if one.end and one.attempt_id in self._mine}
        self._titles |= self._services.tasks.answer_titles(tried & self._tasks.keys())

    def _shown(self, *, complete: bool) -> HomeRows:
        """Return the rows as far as they are loaded."""
        now_ms = self._services.clock.utc_ms()
        if now_ms // _HOUR_MS != self._hour:
            self._hour = now_ms // _HOUR_MS
            self._entries.clear()
        found, tried = self._attempts.values(), defaultdict[str, list[ListedAttempt]](list)
        for attempt in found:
            tried[attempt.task_id].append(attempt)
        tasks = tuple(self._row(task, tried.get(id, [])) for id, task in self._tasks.items())
        attempts = self._entries_of(found, now_ms)
        damaged = [f"Attempt {one.attempt_id}: {one.problem}" for one in found if one.problem]
        return HomeRows(
            tasks,
            attempts,
            (*self._problems, *damaged),
            _words(len(tasks), tasks),
            _solved(found) if complete else "",
            complete=complete,
            toured=tour_marker(self._services.locations).exists(),
        )

    def _row(self, task: ListedTask, tried: list[ListedAttempt]) -> TaskRow:
        """Return the row of a task with the attempts at it, made again only if it has changed."""
        title = self._titles[task.id]
        known, row = self._rows.get(task.id, ([], None))
        same = len(known) == len(tried) and all(map(is_, known, tried))
        if row is not None and row.task is task and row.title == title and same:
            return row
        mine = tuple(attempt for attempt in tried if attempt.attempt_id in self._mine)
        best = max((attempt for attempt in mine if attempt.best_score is not None), key=rank_of, default=None)
        row = TaskRow(task, title, mine, len(tried) - len(mine), self._is_shipped(task), best)
        self._rows[task.id] = (tried, row)
        return row

    def _is_shipped(self, task: ListedTask) -> bool:
        """Whether a task is a demo task shipped with gistpoint, as in `is_our_demo`."""
        folder = self._services.tasks.folder_of(task.id) if task.demo else None
        return folder is not None and folder.parent == self._services.locations.demo

    def _entries_of(self, attempts: Iterable[ListedAttempt], now_ms: int) -> tuple[AttemptEntry, ...]:
        """Return the rows of attempts, each made again only if it has changed."""
        # One loop with local names, since there may be 100,000 attempts.
        tasks, titles, mine, entries = self._tasks, self._titles, self._mine, self._entries
        found = []
        for attempt in attempts:
            key, task_id = attempt.attempt_id, attempt.task_id
            task = tasks.get(task_id)
            title = task_id[:12] if task is None else titles[task_id]
            entry = entries.get(key)
            is_same = entry is not None and entry.attempt is attempt and entry.task is task
            if entry is None or not is_same or entry.title != title:
                entry = entries[key] = AttemptEntry(attempt, now_ms, title, task, key in mine)
            found.append(entry)
        return tuple(found)


Listed = TypeVar("Listed", ListedTask, ListedAttempt)


def _unchanged(new: Listed, known: Mapping[str, Listed]) -> Listed:
    """Return the known object for what was loaded again, or the new one if it has changed."""
    old = known.get(new.id if isinstance(new, ListedTask) else new.attempt_id)
    return old if old is not None and old == new else new


# Details


class Details(NamedTuple):
    """What the details of a row show besides the row itself."""

    task: Task | None = None
    """The whole task; None if it can't be read."""
    attempts: Mapping[str, AttemptSummary] = {}
    """The attempts whose submissions or times are drawn, by their ids."""


def details_of(services: Services, row: TaskRow | AttemptEntry) -> Details:
    """Load what the details of a row show. It may be called while another thread loads the rows."""
    if isinstance(row, AttemptEntry):
        return Details(attempts=services.attempts.details_of([row.key]))
    task, folder = None, services.tasks.folder_of(row.key)
    with suppress(UserError, OSError):
        task = None if folder is None else task_of(read_document(folder / TASK_FILE), folder)
    drawn = filter(None, (row.last, row.charted))
    return Details(task, services.attempts.details_of(attempt.attempt_id for attempt in drawn))
