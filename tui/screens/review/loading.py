"""Loads a run in one thread: the current step first, then pages, rows, the index, and the survey."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from textual.message import Message
from textual.message_pump import MessagePump

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.sessions.records.model import Actor, Run, Step, StepKind
from gistpoint.sessions.runs.blind_view import blind_step
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.rendering import row_words, unanswered
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.screens.review.families import Family, family_of, hidden_at_first
from gistpoint.tui.screens.review.run_task import KnownTask, RunHistory, known_task

if TYPE_CHECKING:
    from gistpoint.tui.screens.review.survey import Survey

Result = TypeVar("Result")

_QUIET_S = 0.8
"""Seconds without input before steps are surveyed."""
_DRAWN_S = 0.15
"""Seconds without input before steps are counted, because the last step must be drawn first."""
_SLICE_PAUSE_S = 0.001
"""The pause between two slices of counting, in seconds, in which the screen can draw."""
_FRAME_S = 0.05
"""The pause, in seconds, in which the screen can draw the last step before all others are counted."""
_REPORT_S = 0.5
_AHEAD_S = 0.02
"""The seconds for which a run is read ahead; a step that was begun is completed."""
_ROWS = 2_000
_SLICE = 48
_SMALL = 2_000_000
"""The size, in bytes, up to which a run is indexed as a whole when it is opened."""
_QUICKLY_COUNTED = 16_000_000
"""The size, in bytes, up to which counting is faster than reading the last step separately."""


class Rank(IntEnum):
    """Priorities of the thread's jobs, most urgent first."""

    OPEN = 0
    STEP = 1
    LAST = 2
    PAGE = 3
    ROWS = 4
    LATER = 5
    REST = 6


class SeveralRunsError(UserError):
    """A name that matches several runs, of which the user has to choose one."""


def opener(name: str) -> Callable[[], RunDocument]:
    """Return a function that opens a run by name. It imports its modules when it is called.

    The function raises `SeveralRunsError` if the name matches several runs, and `RunFileError` if it can't be
    opened.
    """

    def opening() -> RunDocument:
        from gistpoint.sessions.records.archives import RunFileError
        from gistpoint.sessions.runs.opening import list_runs, open_run

        try:
            return open_run(name)
        except RunFileError as error:
            runs = (listed for listed in list_runs([name]) if listed.header is not None)
            if len(list(islice(runs, 2))) > 1:
                raise SeveralRunsError(error.message, hint=error.hint) from error
            raise

    return opening


class ReadAhead(NamedTuple):
    """A run that was opened ahead of its screen, with its first steps."""

    document: RunDocument
    steps: Sequence[Step]


def read_ahead(name: str) -> ReadAhead | None:
    """Open a run ahead of its screen and read its first steps.

    Return None if it can't be opened; its screen will report the reason.
    """
    with suppress(UserError):
        document = opener(name)()
        return ReadAhead(document, _first_steps(document))
    return None


def _first_steps(document: RunDocument) -> list[Step]:
    """Return the steps that a screen shows first, as many as can be read within a short time."""
    steps: list[Step] = []
    until = time.monotonic() + _AHEAD_S
    while len(steps) < _SLICE and document.ensure(len(steps)):
        steps.append(document.step(len(steps)))
        if time.monotonic() > until:
            return steps
    _index(document, 0)
    return steps


def _first_listed(steps: Sequence[Step], format: str) -> int:
    """Return the index of the first step that is not hidden initially, judging by the first steps alone."""
    families = [family_of(step, format) for step in steps]
    hidden = hidden_at_first(format, len(steps), families.count(Family.HARNESS))
    return next((number for number, family in enumerate(families) if family not in hidden), 0)


def _index(document: RunDocument, first: int) -> bool:
    """Index a run up to a step and a little further, or a small run completely.

    Return whether the step exists.
    """
    known = document.ensure(first)
    if document.progress.total <= _SMALL:
        document.build()
    else:
        document.ensure(first + _SLICE)
    return known


class RowFact(NamedTuple):
    """The data for a row in the list of steps."""

    kind: StepKind
    words: str
    error: bool = False
    starts: bool = False
    """Whether the step started another run."""
    ended_well: bool = False
    """Whether a command of the step exited with 0."""
    unanswered: bool = False
    """Whether a call of the step has no recorded result."""


class OfRun(Message):
    """A message from the loader of a run, which may no longer be the visible run."""

    def __init__(self, loader: RunLoader) -> None:
        super().__init__()
        self.loader = loader


class RunOpened(OfRun):
    """A message that the run is open."""


class StepRead(OfRun):
    """A message that the requested step has been read."""

    def __init__(self, loader: RunLoader, step: Step) -> None:
        super().__init__(loader)
        self.step = step


class LastStepRead(StepRead):
    """A message that the last step has been read before the number of steps is known."""


def has_error(step: Step) -> bool:
    """Return whether a step is an error, can't be read, or has a result that failed."""
    return step.kind in (StepKind.ERROR, StepKind.DAMAGED) or any(
        result.is_error or (result.returncode or 0) != 0 for result in step.results
    )


def solver_words(header: Run) -> str:
    """Return the solver of a run: the model, a person, or the program; empty if none is recorded."""
    return header.model or ("a person" if header.actor is Actor.PERSON else header.agent)


class RunRewritten(OfRun):
    """A message that the file was replaced, so that the run has to be opened again."""


def check_format(document: RunDocument) -> None:
    """Raise `NoRunError` if it is doubtful that a file is a run in the format in which it was read."""
    from gistpoint.sessions.records.archives import NoRunError
    from gistpoint.sessions.runs.opening import doubt_of

    if doubt := doubt_of(document):
        raise NoRunError(doubt)


class RowsRead(Message):
    """A message that more rows of the list can be drawn."""


class IndexGrew(Message):
    """A message that more steps have been indexed or surveyed."""

    def can_replace(self, message: Message) -> bool:
        """Return whether `message` makes this one superfluous: only the latest counts matter."""
        return isinstance(message, IndexGrew)


class RunLoader:
    """A loader that reads a run in one thread, the only thread that parses it.

    The methods for the screen return at once.
    """

    def __init__(
        self,
        owner: MessagePump,
        opening: Callable[[], RunDocument],
        locations: Locations,
        failed: Callable[[Exception], object],
        *,
        hides: bool = False,
    ) -> None:
        """`opening` is called in the thread. `locations` contains the paths of the stored tasks.

        `failed` is called on the UI thread with each error. `hides` is as in `hide`.
        """
        self._hides = hides
        self._opening, self._locations = opening, locations
        self._report_failure = failed
        self._jobs = Jobs(owner, "run loader", failed=self._fail)
        self.opened = self.failed = False
        """Whether the run is open, and whether reading failed."""
        self.first = 0
        """The step at which the run opens; valid only after it is open."""
        self.document: RunDocument | None = None
        self._survey: Survey | None = None
        self.rows: OrderedDict[int, RowFact] = OrderedDict()
        self._history: RunHistory | None = None
        self._looked_at = self._grown_from = 0
        self._used_at = self._reported = 0.0
        self._indexes_fully = self._outdated = False
        self._next_survey: Survey | None = None

    # Called by the screen

    @property
    def survey(self) -> Survey | None:
        """The facts about the steps surveyed so far; None before the first ones are surveyed.

        Facts about steps that showed what is hidden now don't count.
        """
        survey = self._survey
        return None if survey is not None and self._hides and not survey.hides else survey

    @property
    def must_load_first(self) -> bool:
        """Whether the run is being opened, counted or stepped through, in which case other runs must wait."""
        if self.failed:
            return False
        counting = self.document is None or not self.document.finished
        return counting or time.monotonic() < self._used_at + _QUIET_S

    def start(self, first: int = 0) -> None:
        """Open the run, and read the step with the index `first`."""
        self._jobs.do(lambda job: self._open(job, first), priority=Rank.OPEN)
        self.request_step(first)

    def take_over(self, ahead: ReadAhead) -> Step | None:
        """Take over an open run, instead of `start`. Return the step to show; None if there is none."""
        self.document, self.opened = ahead.document, True
        self._take_first(ahead.steps)
        self._jobs.do(lambda job: self._index_first(job, ahead.document), priority=Rank.ROWS)
        return ahead.steps[self.first] if ahead.steps else None

    def stop(self) -> None:
        """End the thread after the current slice of work."""
        self._jobs.stop()

    def _fail(self, error: Exception) -> object:
        self.failed = True
        return self._report_failure(error)

    def wait(self) -> None:
        """Delay further reading, because the screen is in use."""
        self._used_at = time.monotonic()

    def request_step(self, index: int) -> None:
        """Read a step next. A new request replaces the previous one."""
        self._looked_at = index
        self.wait()
        self._jobs.do(lambda job: self._read(job, index), key="step", priority=Rank.STEP)

    def request_rows(self, rows: Iterable[int]) -> None:
        """Read rows of the list. A new request replaces the previous one."""
        missing = [row for row in rows if row not in self.rows]
        if missing:
            self._jobs.do(lambda job: self._read_rows(job, missing), key="rows", priority=Rank.ROWS)

    def request_page(self, load: Callable[[Job], Result], show: Callable[[Result], object]) -> None:
        """Load the content of a page, and show it. A new request replaces the previous one."""
        self._jobs.do(load, show, key="page", priority=Rank.PAGE)

    def do(
        self,
        body: Callable[[], Result],
        then: Callable[[Result], object] | None = None,
        *,
        later: bool = False,
        keeps: bool = False,
    ) -> None:
        """Run a function in the thread, with the priority of a page or, with `later`, after the visible rows.

        `then` is called on the UI thread with the result. With `keeps`, the function is run even if the
        screen is left before it begins.
        """
        self._jobs.do(lambda _: body(), then, priority=Rank.LATER if later else Rank.PAGE, keeps=keeps)

    def index_fully(self) -> None:
        """Read the last step, then index all steps before it without pauses."""
        self._indexes_fully = True
        self._jobs.do(self._read_last, key="last", priority=Rank.LAST)
        self._read_on()

    def hide(self, hides: bool) -> None:
        """Hide what reveals the outcome in the rows and the survey, or show it; both are made again.

        The rows, and a survey that shows what is hidden now, are dropped at once.
        """
        if hides is self._hides:
            return
        self._hides, self._outdated = hides, True
        self.rows.clear()
        self._jobs.do(self._forget_rows, key="hiding", priority=Rank.ROWS)
        self._read_on()

    def check_growth(self) -> None:
        """Read on if the file has grown since it was indexed."""
        self._jobs.do(self._grow, key="growth", priority=Rank.PAGE)

    def open_again(self) -> None:
        """Request that the run be opened again, because another file now has its name."""
        self._jobs.do(lambda job: job.post(RunRewritten(self)), key="growth", priority=Rank.PAGE)

    # Called by jobs in the thread

    @cached_property
    def task(self) -> KnownTask:
        """The stored facts about the run's task. Use it only in the thread, once the run is open."""
        assert self.document is not None
        return known_task(self.document.header.task, self._locations)

    @property
    def history(self) -> RunHistory:
        """The repository during the run. Use it only in the thread, once the run is open."""
        if self._history is None:
            assert self.document is not None
            self._history = RunHistory(self.document, self.task)
        return self._history

    def forget_history(self) -> None:
        """Discard the repository's states, because the end of the run has changed."""
        self._history = None

    # Jobs of the thread

    def _open(self, job: Job, first: int) -> None:
        self.document = document = self._opening()
        if not first:
            self._take_first(_first_steps(document))
        known = _index(document, first)
        self.opened = True
        job.post(RunOpened(self))
        self._used_at = time.monotonic()
        if not known and first and self._looked_at == first:
            self.request_step(max(0, document.step_count - 1))
        self._read_on()

    def _take_first(self, steps: Sequence[Step]) -> None:
        assert self.document is not None
        self.first = _first_listed(steps, self.document.header.format)
        for step in steps:
            self._remember(step)

    def _index_first(self, job: Job, document: RunDocument) -> None:
        _index(document, 0)
        self._report(job, at_once=True)
        self.wait()
        self._read_on()

    def _read(self, job: Job, index: int) -> None:
        if self.document is None:
            return
        try:
            step = self.document.step(index)
        except IndexError:
            return
        self._remember(step)
        job.post(StepRead(self, step))

    def _read_rows(self, job: Job, rows: list[int]) -> None:
        for row in rows:
            if row in self.rows or self.document is None:
                continue
            try:
                self._remember(self.document.step(row))
            except IndexError:
                break
            job.give_way()
        job.post(RowsRead())

    def _forget_rows(self, job: Job) -> None:
        """Drop all rows, including any read since the reviewer's view changed, and have them read again."""
        self.rows.clear()
        job.post(RowsRead())

    def _remember(self, step: Step) -> None:
        step = blind_step(step) if self._hides else step
        self.rows[step.index] = RowFact(
            step.kind,
            row_words(step),
            has_error(step),
            bool(step.links),
            any(result.returncode == 0 for result in step.results),
            bool(unanswered(step)),
        )
        while len(self.rows) > _ROWS:
            self.rows.popitem(last=False)

    def _read_last(self, job: Job) -> None:
        document = self.document
        if document is None or document.finished:
            return
        left = document.progress.total - document.progress.done
        step = document.last_step() if left > _QUICKLY_COUNTED else None
        if step is not None:
            job.post(LastStepRead(self, step))
            time.sleep(_FRAME_S)

    def _grow(self, job: Job) -> None:
        document = self.document
        if document is None or not document.finished or not document.changed:
            return
        last = document.step_count - 1
        if not document.grow():
            job.post(RunRewritten(self))
            return
        for row in (last - 1, last):
            self.rows.pop(row, None)
        self._outdated, self._grown_from = True, last - 1
        self._read_on()

    def _read_on(self) -> None:
        """Schedule further reading, after all other jobs, unless the end was requested at once."""
        self._jobs.do(self._read_rest, key="rest", priority=Rank.LAST if self._indexes_fully else Rank.REST)

    def _read_rest(self, job: Job) -> None:
        """Index the steps, add up the totals, then survey the steps, in slices while no key is pressed."""
        document = self.document
        while document is not None:
            if self._indexes_fully and document.finished:
                self._indexes_fully = False
                self._read_on()
            quiet_in = self._used_at + (_QUIET_S if document.summed_up else _DRAWN_S) - time.monotonic()
            if quiet_in > 0 and not self._indexes_fully:
                job.give_way(quiet_in)
            if not document.summed_up:
                self._index(job, document)
            elif self.survey is None or not self.survey.finished or self._outdated:
                self._add_to_survey(job, document)
            else:
                return
            job.give_way()

    def _index(self, job: Job, document: RunDocument) -> None:
        counted = document.finished
        document.advance()
        self._report(job, at_once=document.summed_up or document.finished is not counted)
        if document.finished and not counted:
            self._reported = 0.0
            if self._outdated and self._looked_at >= self._grown_from:
                self.request_step(self._looked_at)
            # The screen may now request the last step, and one slice of the totals can take a second: pause.
            self._used_at = time.monotonic()
        elif not self._indexes_fully:
            time.sleep(_SLICE_PAUSE_S)

    def _add_to_survey(self, job: Job, document: RunDocument) -> None:
        if self._outdated or self._next_survey is None:
            from gistpoint.tui.screens.review.survey import Survey

            self._outdated = False  # reset first, since the screen may set it again at any time
            self._next_survey = Survey(document.header, self.task.goals, hides=self._hides)
        survey, count, shown = self._next_survey, document.step_count, self.survey
        if shown is None or not shown.finished:
            self._survey = survey
        until = time.monotonic() + 0.008
        while len(survey) < count and time.monotonic() < until:
            step = document.step(len(survey))
            survey.add(blind_step(step) if survey.hides else step)
        survey.finished = len(survey) >= count
        if survey.finished:
            self._survey, self._next_survey = survey, None
        self._report(job, at_once=survey.finished)
        time.sleep(0.004)

    def _report(self, job: Job, *, at_once: bool) -> None:
        now = time.monotonic()
        if at_once or now - self._reported > _REPORT_S:
            self._reported = now
            job.post(IndexGrew())
