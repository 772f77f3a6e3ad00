"""Reads a run in a thread: the step that is looked at first, then rows in sight, the index, and facts of every step."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from gistpoint.core.errors import UserError
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import Run, Step, StepKind
from gistpoint.sessions.runs.rendering import summary

if TYPE_CHECKING:
    from gistpoint.sessions.runs.facts import Goal
    from gistpoint.tui.screens.review.survey import Survey

_QUIET_S = 0.8
"""Nothing is surveyed until the keyboard has been quiet for so long."""
_FRAME_S = 0.05
"""What the screen has to itself to draw the last step, before all others are counted."""
_TELL_S = 0.5
_ROWS = 2_000
_WORDS = 160
_SLICE = 48
_SMALL = 2_000_000
"""Bytes of a run whose index is made at once."""


@dataclass(frozen=True, slots=True)
class RowFact:
    """What a row of the step list shows."""

    kind: StepKind
    words: str
    error: bool = False
    starts: bool = False
    """Whether the step started another run."""


class RunOpened(Message):
    """The run is open and its first step was read."""

    def __init__(self, document: RunDocument, header: Run) -> None:
        super().__init__()
        self.document = document
        self.header = header


class StepRead(Message):
    """The step that was looked at."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step


class LastStepRead(Message):
    """The last step, whose number is not known yet."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step


def has_error(step: Step) -> bool:
    """Whether a step or a result of it says that something failed."""
    return step.kind in (StepKind.ERROR, StepKind.DAMAGED) or any(
        result.is_error or (result.returncode or 0) != 0 for result in step.results
    )


def row_words(step: Step) -> str:
    """Return a step in one line: what its first call does to what, else what was said."""
    call = step.calls[0] if step.calls else None
    parsed = (call.parsed or {}) if call is not None else {}
    path = next((parsed[key] for key in ("path", "file_path") if isinstance(parsed.get(key), str)), None)
    if call is None or path is None:
        return summary(step, _WORDS)
    doing = parsed.get("command")
    more = f"  (+{len(step.calls) - 1} more)" if len(step.calls) > 1 else ""
    return f"{doing if isinstance(doing, str) else call.tool} {path}{more}"[:_WORDS]


class RunRewritten(Message):
    """The file is another one by now, and has to be opened again."""


class RowsRead(Message):
    """Rows of the list can be drawn."""


class IndexGrew(Message):
    """More steps are known, or more of them were surveyed."""

    def can_replace(self, message: Message) -> bool:
        """Only the latest count matters."""
        return isinstance(message, IndexGrew)


class ReadingFailed(Message):
    """The run can't be read; anything but a `UserError` is a bug."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class RunReaderThread:
    """One thread per open run; every method may be called from the screen and never waits."""

    def __init__(
        self,
        owner: MessagePump,
        opening: Callable[[], RunDocument],
        goals: Callable[[RunDocument], tuple[Goal, ...]] = lambda _: (),
    ) -> None:
        """`goals` tells the functions that are broken, where that is known; called in the thread, as `opening` is."""
        self._owner, self._opening, self.goals = owner, opening, goals
        self.document: RunDocument | None = None
        self.survey: Survey | None = None
        """Facts of every step; None until the index is complete."""
        self.rows: OrderedDict[int, RowFact] = OrderedDict()
        self._wanted: int | None = 0
        self._wanted_rows: list[int] = []
        self._jobs: list[Callable[[], None]] = []
        self._later: list[Callable[[], None]] = []
        self._wake = threading.Condition()
        self._stopped = False
        self._busy_until = 0.0
        self._hurried = self._ends = False
        self._outdated = False
        self._looked_at = self._grown_from = 0
        self._next_survey: Survey | None = None
        self._told = 0.0
        self._thread = threading.Thread(target=self._work, name="run reader", daemon=True)

    def start(self, first: int = 0) -> None:
        """Open the run and read the step `first`."""
        self._wanted = self._looked_at = first
        self._thread.start()

    def stop(self) -> None:
        """End the thread after what it is at."""
        with self._wake:
            self._stopped = True
            self._wake.notify()

    def want(self, index: int) -> None:
        """Read a step next; only the latest wish counts."""
        with self._wake:
            self._wanted = self._looked_at = index
            self._busy_until = time.monotonic() + _QUIET_S
            self._wake.notify()

    def want_rows(self, rows: Iterable[int]) -> None:
        """Read what rows of the list show."""
        with self._wake:
            self._wanted_rows = [row for row in rows if row not in self.rows]
            if self._wanted_rows:
                self._wake.notify()

    def do(self, job: Callable[[], None]) -> None:
        """Run something else in the thread, before it goes on reading."""
        with self._wake:
            self._jobs.append(job)
            self._wake.notify()

    def look_for_growth(self) -> None:
        """Go on reading where the file grew; called once the index was complete."""
        self.do(self._grow)

    def _grow(self) -> None:
        document = self.document
        if document is None or not document.finished or not document.changed:
            return
        last = document.step_count - 1
        if not document.grow():
            self._owner.post_message(RunRewritten())
            return
        for row in (last - 1, last):
            self.rows.pop(row, None)
        self._outdated, self._grown_from = True, last - 1

    def do_later(self, job: Callable[[], None]) -> None:
        """Run something once the first rows were read."""
        with self._wake:
            self._later.append(job)
            self._wake.notify()

    def _work(self) -> None:
        try:
            self.document = document = self._opening()
            first = self._wanted or 0
            small = document.progress.total <= _SMALL
            known = document.ensure(first)
            document.ensure(1 << 40 if small else first + _SLICE)
            self._owner.post_message(RunOpened(document, document.header))
            self._busy_until = time.monotonic() + _QUIET_S
            if not known and first:
                self.want(max(0, document.step_count - 1))
            while not self._stopped:
                if not self._work_once(document):
                    with self._wake:
                        if self._idle():
                            self._wake.wait()
        except UserError as error:
            self._owner.post_message(ReadingFailed(error))
        except Exception as error:
            self._owner.post_message(ReadingFailed(error))

    def _idle(self) -> bool:
        return self._wanted is None and not (self._wanted_rows or self._jobs or self._later) and not self._stopped

    def _work_once(self, document: RunDocument) -> bool:
        """Do the most urgent thing; False where there is nothing to do."""
        with self._wake:
            wanted, self._wanted = self._wanted, None
            rows, self._wanted_rows = self._wanted_rows, []
            job = self._jobs.pop(0) if self._jobs else None
        if wanted is not None:
            self._read(document, wanted)
            self._requeue(rows, job)
        elif self._ends:
            self._ends = False
            self._read_last(document)
            self._requeue(rows, job)
        elif job is not None:
            job()
            self._requeue(rows, None)
        elif rows:
            self._read_rows(document, rows)
        elif self._later:
            self._later.pop(0)()
        elif not document.finished:
            self._index(document)
        elif self.survey is None or not self.survey.finished or self._outdated:
            self._survey(document)
        else:
            return False
        return True

    def _requeue(self, rows: list[int], job: Callable[[], None] | None) -> None:
        with self._wake:
            if rows and not self._wanted_rows:
                self._wanted_rows = rows
            if job is not None:
                self._jobs.insert(0, job)

    def _read(self, document: RunDocument, index: int) -> None:
        try:
            step = document.step(index)
        except IndexError:
            return
        self._remember(step)
        self._owner.post_message(StepRead(step))

    def _read_rows(self, document: RunDocument, rows: list[int]) -> None:
        for row in rows:
            if self._wanted is not None:
                return
            try:
                self._remember(document.step(row))
            except IndexError:
                break
        self._owner.post_message(RowsRead())

    def _remember(self, step: Step) -> None:
        self.rows[step.index] = RowFact(step.kind, row_words(step), has_error(step), bool(step.links))
        while len(self.rows) > _ROWS:
            self.rows.popitem(last=False)

    def _read_last(self, document: RunDocument) -> None:
        step = document.last_step() if not document.finished else None
        if step is not None:
            self._owner.post_message(LastStepRead(step))
            time.sleep(_FRAME_S)

    def hurry(self) -> None:
        """Read the last step, and all before it at once: somebody waits for it."""
        with self._wake:
            self._hurried = self._ends = True
            self._wake.notify()

    def _quiet(self) -> bool:
        """Whether the keyboard rests; waits a while where it does not."""
        with self._wake:
            rest = self._busy_until - time.monotonic()
            if rest > 0 and not self._hurried:
                self._wake.wait(rest)
                return False
        return True

    def _index(self, document: RunDocument) -> None:
        if self._quiet():
            document.ensure(document.step_count + _SLICE)
            self._tell(document.finished)
            if document.finished:
                self._hurried = False
                if self._outdated and self._looked_at >= self._grown_from:
                    self._wanted = self._looked_at
            elif not self._hurried:
                time.sleep(0.002)

    def _survey(self, document: RunDocument) -> None:
        if not self._quiet():
            return
        if self._outdated or self._next_survey is None:
            from gistpoint.tui.screens.review.survey import Survey

            self._next_survey, self._outdated = Survey(document.header, self.goals(document)), False
        survey, count = self._next_survey, document.step_count
        if self.survey is None or not self.survey.finished:
            self.survey = survey
        until = time.monotonic() + 0.008
        while len(survey) < count and time.monotonic() < until:
            survey.add(document.step(len(survey)))
        survey.finished = len(survey) >= count
        if survey.finished:
            self.survey, self._next_survey = survey, None
        self._tell(survey.finished)
        time.sleep(0.004)

    def _tell(self, at_once: bool) -> None:
        now = time.monotonic()
        if at_once or now - self._told > _TELL_S:
            self._told = now
            self._owner.post_message(IndexGrew())
