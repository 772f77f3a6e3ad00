"""The timeline of an attempt: its time in labelled spans, and the first time of certain events.

Positions are milliseconds of the monotonic clock since the attempt began, without the time between two
processes. The labels of the spans are those of the clock in the attempt's state, including its later
revisions of idle time: summed by activity, the spans equal that clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from gistpoint.core.attempts.clock import ACTIVE, ACTIVITY_OF_PANE, Clock, ClockActivity
from gistpoint.core.attempts.events import (
    AttemptEnded,
    AttemptStarted,
    BufferEdited,
    CallAnswered,
    CallMade,
    EndWithdrawn,
    FocusMoved,
    JournalEvent,
    Pane,
    PassConfirmed,
    Paused,
    ProcessStarted,
    SubmissionMade,
    SubmissionScored,
    SuspectMarked,
)
from gistpoint.core.attempts.state import AttemptState, advance
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.registry import blank_state
from gistpoint.core.study.operations import TimesCorrected
from gistpoint.core.tools.declaration import Revealed


@dataclass(frozen=True, slots=True)
class TimelineSpan:
    """A span of the timeline with its activity; `at_pane` is the activity of work in the focused pane."""

    from_ms: int
    to_ms: int
    activity: ClockActivity
    at_pane: ClockActivity

    @property
    def ms(self) -> int:
        """The length in milliseconds."""
        return self.to_ms - self.from_ms


class FirstTime(StrEnum):
    """An event whose first time is recorded."""

    LEFT_BRIEF = "left_brief"
    VIEW = "view"
    """A corrupted function was shown completely."""
    MARK = "mark"
    """A corrupted function was marked as suspect."""
    TOUCH = "touch"
    """A corrupted function was edited or submitted."""
    SOLVED = "solved"
    END = "end"


@dataclass(frozen=True, slots=True)
class TimelineMoment:
    """The moment of an event: its number, its position, and the active milliseconds until then."""

    seq: int
    at_ms: int
    active_ms: int


@dataclass(frozen=True)
class AttemptTimeline:
    """An attempt's state after all events, with its time in spans and the first moments of some events."""

    state: AttemptState = field(default_factory=AttemptState)
    spans: tuple[TimelineSpan, ...] = ()
    firsts: Mapping[FirstTime, TimelineMoment] = field(default_factory=dict)
    touched: frozenset[str] = frozenset()
    """The corrupted functions that were edited or submitted."""
    problem: str = ""
    """The reason, in a sentence, why later events were not folded; empty if all were."""

    @property
    def end_ms(self) -> int:
        """The position of the last event, in milliseconds; 0 if there is no event."""
        return self.spans[-1].to_ms if self.spans else 0

    def corrected(self, corrections: Iterable[TimesCorrected]) -> tuple[TimelineSpan, ...]:
        """Return the spans as re-labelled by corrections; if two overlap, the later one holds.

        `work` turns idle and paused time into work in the pane that had the focus, and leaves other time
        unchanged.
        """
        spans = self.spans
        for correction in sorted(corrections, key=lambda made: (made.utc_ms, made.op)):
            for asked in correction.spans:
                spans = tuple(_relabelled(spans, asked.from_ms, asked.to_ms, asked.counts_as))
        return spans


def milliseconds(
    spans: Iterable[TimelineSpan], activities: Iterable[ClockActivity], until_ms: int | None = None
) -> int:
    """Return the total milliseconds of the given activities, up to a position if one is given."""
    wanted = frozenset(activities)
    return sum(
        max(0, (span.to_ms if until_ms is None else min(span.to_ms, until_ms)) - span.from_ms)
        for span in spans
        if span.activity in wanted
    )


def timeline_of(events: Iterable[JournalEvent], targets: Iterable[str] = ()) -> AttemptTimeline:
    """Return the timeline of the events up to the first with invalid data; `targets` are `path::qualname`."""
    walk = _Walk(tuple(targets))
    for event in events:
        try:
            walk.step(event)
        except AttemptError as error:
            walk.problem = error.message
            break
    return AttemptTimeline(walk.state, tuple(walk.spans), walk.firsts, frozenset(walk.touched), walk.problem)


class _Walk:
    """Builds a timeline, one event at a time."""

    def __init__(self, targets: tuple[str, ...]) -> None:
        self.targets = targets
        self.state = AttemptState()
        self.spans: list[TimelineSpan] = []
        self.firsts: dict[FirstTime, TimelineMoment] = {}
        self.touched: set[str] = set()
        self.problem = ""
        self._at_ms = 0

    def step(self, event: JournalEvent) -> None:
        if isinstance(event.data, AttemptStarted) and not self.state.events:
            self.state = AttemptState(of_kind=blank_state(event.data.mode))
        before = self.state
        self.state = advance(before, event)
        if isinstance(event.data, PassConfirmed):  # the attempt is over, so no time passes
            return
        passed = 0
        if before.clock.mono_ms is not None and not isinstance(event.data, ProcessStarted):
            passed = max(0, event.mono_ms - before.clock.mono_ms)
        self._pass(before, passed)
        counted_idle = passed if before.clock.running is ClockActivity.IDLE else 0
        if self.state.clock.idle != before.clock.idle + counted_idle:
            self._apply_idle_revisions(before.clock.add(before.clock.running, passed), self.state.clock)
        self._notice(event)

    def _pass(self, before: AttemptState, passed: int) -> None:
        if not passed:
            return
        start = self._at_ms
        self._at_ms = self._at_ms + passed
        span = TimelineSpan(start, self._at_ms, before.clock.running, ACTIVITY_OF_PANE[before.pane])
        last = self.spans[-1] if self.spans else None
        if last is not None and (last.activity, last.at_pane) == (span.activity, span.at_pane):
            self.spans[-1] = replace(last, to_ms=span.to_ms)
        else:
            self.spans.append(span)

    def _apply_idle_revisions(self, before: Clock, after: Clock) -> None:
        """Apply the clock's later revisions of idle time to the spans, the latest span first."""
        moves = {activity: after.of(activity) - before.of(activity) for activity in ClockActivity}
        idle = moves.pop(ClockActivity.IDLE)
        for activity, ms in moves.items():
            if ms < 0 < idle:
                self._move(activity, ClockActivity.IDLE, -ms)
            elif idle < 0 < ms:
                self._move(ClockActivity.IDLE, activity, ms)

    def _move(self, source: ClockActivity, to: ClockActivity, ms: int) -> None:
        done: list[TimelineSpan] = []
        while ms > 0 and self.spans:
            span = self.spans.pop()
            if span.activity is source:
                cut = max(span.from_ms, span.to_ms - ms)
                ms -= span.to_ms - cut
                done.append(replace(span, from_ms=cut, activity=to))
                if cut > span.from_ms:
                    done.append(replace(span, to_ms=cut))
            else:
                done.append(span)
        self.spans += reversed(done)

    def _notice(self, event: JournalEvent) -> None:
        """Record the functions that an event touches, and its moment if it is the first of its kind."""
        match event.data:
            case FocusMoved(pane=pane) if pane != Pane.BRIEF:
                self._first(FirstTime.LEFT_BRIEF, event)
            case Paused(reason="questionnaire") | CallMade():
                self._first(FirstTime.LEFT_BRIEF, event)
            case CallAnswered(revealed=Revealed() as revealed) if any(
                _shows(revealed, name) for name in self.targets
            ):
                self._first(FirstTime.VIEW, event)
            case SuspectMarked(function=function, marked=True) if function in self.targets:
                self._first(FirstTime.MARK, event)
            case BufferEdited(buffer=buffer):
                self._touch(buffer, event)
            case SubmissionMade(replacement=replacement) if replacement:
                self._touch(replacement.name, event)
            case SubmissionScored(solved=True) as data if not data.trial:
                self._first(FirstTime.SOLVED, event)
            case AttemptEnded():
                self._first(FirstTime.END, event)
            case EndWithdrawn():
                self.firsts.pop(FirstTime.END, None)

    def _first(self, what: FirstTime, event: JournalEvent) -> None:
        self.firsts.setdefault(what, TimelineMoment(event.seq, self._at_ms, self.state.clock.active))

    def _touch(self, name: str, event: JournalEvent) -> None:
        found = {target for target in self.targets if _lies_within(target, name)}
        if found:
            self.touched |= found
            self._first(FirstTime.TOUCH, event)


def _lies_within(target: str, name: str) -> bool:
    """Return whether a function is the named definition, or lies in the named definition or file."""
    return target == name or target.startswith((f"{name}.", f"{name}::"))


def _shows(revealed: Revealed, target: str) -> bool:
    return target.partition("::")[0] in revealed.files or any(
        _lies_within(target, name) for name in revealed.sources
    )


_WORK = "work"
_ACTIVITY = {"idle": ClockActivity.IDLE, "paused": ClockActivity.PAUSED}
COUNTS_AS = (*_ACTIVITY, _WORK)
"""The labels that a correction can give to a span."""


def _relabelled(
    spans: Iterable[TimelineSpan], from_ms: int, to_ms: int, counts_as: str
) -> Iterable[TimelineSpan]:
    for span in spans:
        start = max(span.from_ms, from_ms)
        end = min(span.to_ms, to_ms)
        label = _ACTIVITY.get(counts_as, span.activity)
        if counts_as == _WORK and span.activity in _ACTIVITY.values():
            label = span.at_pane
        if start >= end or label is span.activity:
            yield span
            continue
        if span.from_ms < start:
            yield replace(span, to_ms=start)
        yield replace(span, from_ms=start, to_ms=end, activity=label)
        if end < span.to_ms:
            yield replace(span, from_ms=end)


ON_THE_CLOCK = {"active": ACTIVE, "active_and_waiting": (*ACTIVE, ClockActivity.WAITING)}
"""The activities that count under each value of `protocol.primary_time`."""
