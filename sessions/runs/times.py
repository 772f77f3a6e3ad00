"""Measures how long the model and the tools of a run took, in each step and in total.

The steps are read once, in order, and only a few numbers are kept of each. The time of the whole run is
divided into parts: each moment belongs to exactly one part (decision 183).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import NamedTuple

from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records.building import latest
from gistpoint.sessions.records.model import Actor, Run, RunCall, Step, StepKind
from gistpoint.sessions.records.values import first_known
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.facts import is_of_solver
from gistpoint.sessions.runs.time_parts import TimeDivision, TimeParts, seconds_between, sound_seconds
from gistpoint.sessions.runs.work import WORKS, Work, work_of

MOST_TOOLS = 500
"""The maximum number of tools with separate sums; the calls of all others are added up together."""
OTHER_TOOLS = "other tools"
_NAMED = 3
"""The maximum number of tools named for calls whose time can't be divided among tools."""
_BREAKS = frozenset({StepKind.PAUSE, StepKind.DAMAGED, StepKind.END})
_INFERRED = "results.duration_s"
_RESUMED = "process_started"
"""The label of a step in gistpoint's own attempts that follows a time without a running program."""


class StepTime(NamedTuple):
    """The seconds of a step: of the wait for its reply, and of its calls; None if they are unknown.

    `user` is the wait for a user's message, and `unknown` is any other time before or within the step.
    """

    model: float | None = None
    tools: float | None = None
    user: float = 0.0
    unknown: float = 0.0
    tool: str = ""
    """The tools that are called, joined with `+`; empty without a call."""

    @property
    def busy(self) -> float:
        """The known seconds of the model and the tools."""
        return (self.model or 0.0) + (self.tools or 0.0)

    @property
    def whole(self) -> float:
        """All known seconds: those of the model, the tools and the user, and the rest in `unknown`."""
        return self.busy + self.user + self.unknown


@dataclass(slots=True)
class TimeSum:
    """The number of calls to a tool, or of replies, and the seconds of those with a known time."""

    count: int = 0
    timed: int = 0
    total: float = 0.0
    longest: float = 0.0
    longest_step: int | None = None
    _each: array[float] = field(default_factory=lambda: array("f"))

    def add(self, step: int, seconds: float | None) -> None:
        """Add one call or reply."""
        self.count += 1
        if seconds is None:
            return
        self.timed += 1
        self._each.append(seconds)
        self._add(step, seconds)

    def add_together(self, step: int, count: int, seconds: float | None) -> None:
        """Add the calls of a step, of which only the total time is known."""
        self.count += count
        if seconds is not None:
            self.timed += count
            self._add(step, seconds)

    def _add(self, step: int, seconds: float) -> None:
        self.total += seconds
        if self.longest_step is None or seconds > self.longest:
            self.longest, self.longest_step = seconds, step

    @property
    def median(self) -> float | None:
        """The median of the calls or replies that were timed one by one; None if there is none."""
        if not self._each:
            return None
        from statistics import median  # needed only when sums are shown

        return float(median(self._each))


@dataclass(slots=True)
class PhaseTime:
    """The number of the solver's steps with one kind of work, and the seconds of model and tools."""

    steps: int = 0
    model: float = 0.0
    tools: float = 0.0


class StepTimes:
    """The times of the steps of a run, in a few bytes each; may be read while steps are added."""

    def __init__(self) -> None:
        self._model, self._tools, self._user, self._unknown = (array("f") for _ in range(4))
        self._tool = array("L")
        self.timed = array("L")
        """The steps with a known, non-zero time."""
        self._names = [""]
        self._numbers = {"": 0}

    def add(self, time: StepTime) -> None:
        """Add the next step."""
        if any((time.model, time.tools, time.user, time.unknown)):
            self.timed.append(len(self._tool))
        self._model.append(math.nan if time.model is None else time.model)
        self._tools.append(math.nan if time.tools is None else time.tools)
        self._user.append(time.user)
        self._unknown.append(time.unknown)
        number = self._numbers.setdefault(time.tool, len(self._names))
        if number == len(self._names):
            self._names.append(time.tool)
        self._tool.append(number)

    def __len__(self) -> int:
        return len(self._tool)

    def __getitem__(self, step: int) -> StepTime:
        model, tools = self._model[step], self._tools[step]
        return StepTime(
            None if math.isnan(model) else model,
            None if math.isnan(tools) else tools,
            self._user[step],
            self._unknown[step],
            self._names[self._tool[step]],
        )

    def longest(self, most: int) -> list[int]:
        """Return the steps in which model and tools took longest, at most `most`, by descending time."""
        return nlargest(most, self.timed, key=lambda step: self[step].busy)


@dataclass(frozen=True, slots=True)
class RunTimes:
    """The times of a run, in seconds."""

    steps: StepTimes
    replies: TimeSum
    tools: Mapping[str, TimeSum]
    """Sums by tool, longest total first; calls whose time can't be divided are under all their names."""
    phases: Mapping[Work | None, PhaseTime]
    """Sums by kind of work, in the order of `WORKS`; None denotes steps of the solver without a call."""
    parts: TimeParts
    longest: float
    """The longest time that model and tools took in one step."""

    @property
    def is_known(self) -> bool:
        """Whether any time is known."""
        return bool(self.steps.timed) or self.parts.total > 0

    @property
    def calls(self) -> int:
        """The number of calls."""
        return sum(found.count for found in self.tools.values())

    @property
    def timed_calls(self) -> int:
        """The number of calls with a known time."""
        return sum(found.timed for found in self.tools.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """The times that can't be measured because the file does not record them, each in a few words."""
        found = (
            (not self.replies.timed, "how long replies took"),
            (bool(self.calls) and not self.timed_calls, "how long calls took"),
            _partly(self.replies.timed, self.replies.count, "replies"),
            _partly(self.timed_calls, self.calls, "calls"),
            (self.is_known and not self.parts.is_whole, "when the run began and ended"),
        )
        return tuple(words for applies, words in found if applies)


def _partly(timed: int, count: int, what: str) -> tuple[bool, str]:
    """Return whether only some of several replies or calls were timed, and words about the others."""
    return 0 < timed < count, f"how long {count - timed:,} of {count:,} {what} took"


class Timekeeper:
    """Measures the times of a run; the steps are fed in order."""

    def __init__(self) -> None:
        self.fed = 0
        """The number of steps fed so far."""
        self._steps = StepTimes()
        self._replies = TimeSum()
        self._tools: dict[str, TimeSum] = {}
        self._phases: dict[Work | None, PhaseTime] = {}
        self._longest = 0.0
        self._division = TimeDivision()
        self._ready: float | None = None
        """The time when the model had all the input it was waiting for; None if unknown."""
        self._last: float | None = None
        """The end of all time measured so far."""

    def feed(self, step: Step) -> StepTime:
        """Add the next step, and return its times."""
        self.fed += 1
        found = self._of_solver(step) if is_of_solver(step) else self._of_other(step)
        self._longest = max(self._longest, found.busy)
        self._division.reach(step.started, step.ended, step.asked, step.replied)
        self._steps.add(found)
        return found

    def times(self, run: Run | None = None) -> RunTimes:
        """Return the times of the steps fed so far; `run` is the header, which may record the duration."""
        tools = sorted(self._tools.items(), key=lambda item: (-item[1].total, -item[1].count, item[0]))
        order = (*WORKS, None)
        return RunTimes(
            self._steps,
            self._replies,
            dict(tools),
            {work: self._phases[work] for work in order if work in self._phases},
            self._parts(run),
            self._longest,
        )

    def _parts(self, run: Run | None) -> TimeParts:
        calls = self._tools.values()
        # A run without calls is known to have spent no time in tools.
        knows_calls = not calls or any(found.timed for found in calls)
        return self._division.parts(run, replies=self._replies.timed > 0, calls=knows_calls)

    # Steps of others, of which a model waits only for user messages and results

    def _of_other(self, step: Step) -> StepTime:
        at = step.started
        if step.kind in _BREAKS or step.label == _RESUMED:
            unknown = self._until(at)
            self._ready, self._last = None, first_known((at, self._last))
            return StepTime(unknown=unknown)
        # Bookkeeping may be written while the model is at work, so it neither ends nor begins a wait.
        is_input = step.actor is Actor.USER or step.kind is StepKind.TASK
        if at is None or not (is_input or step.results):
            return StepTime()
        before = self._until(at)
        if is_input and before:
            self._division.add_user(at - before, at)
        # A message may be written while the model is still at work.
        self._ready = self._last = latest((at, step.ended, self._last))
        return StepTime(user=before) if is_input else StepTime(unknown=before)

    def _until(self, at: float | None) -> float:
        """Return the seconds from the end of all measured time to a given time; 0 if unknown."""
        return seconds_between(self._last, at) or 0.0

    # Steps of the solver

    def _of_solver(self, step: Step) -> StepTime:
        replied = step.replied
        if replied is None and step.asked is None:
            replied = step.started
        # Calls that a trace has without a reply begin at the moment of the request, with no wait.
        had_reply = step.asked is None or step.asked != replied
        asked = first_known((step.asked, self._ready))
        model = seconds_between(asked, replied) if had_reply else None
        # No model replies instantly, so records with the same time were written together some time later.
        written_later = not model and step.asked is None
        model = None if written_later else model
        before = self._until(first_known((step.asked, replied if self._ready is None else None)))
        tools, within = _of_calls(step, replied)
        tools = None if written_later and not tools and not _recorded_durations(step) else tools
        self._divide(step, replied, model, tools)
        self._go_on(step, replied, tools)
        if had_reply:
            self._replies.add(step.index, model)
        self._add_calls(step, tools)
        phase = self._phases.setdefault(work_of(step), PhaseTime())
        phase.steps += 1
        phase.model += model or 0.0
        phase.tools += tools or 0.0
        return StepTime(model, tools, unknown=before + within, tool=self._bounded(_names(step)))

    def _divide(self, step: Step, replied: float | None, model: float | None, tools: float | None) -> None:
        if model and replied is not None:
            self._division.add_reply(replied - model, replied)
        if tools:
            self._division.add_calls(first_known((replied, step.started)), tools)

    def _go_on(self, step: Step, replied: float | None, tools: float | None) -> None:
        """Record the time from which the model can reply again, and the end of all measured time."""
        end = step.ended
        if end is None and replied is not None and (tools is not None or not step.calls):
            end = replied + (tools or 0.0)
        self._ready = end
        self._last = latest((self._last, end, replied, step.started))

    def _add_calls(self, step: Step, tools: float | None) -> None:
        if len(step.calls) == 1:
            self._sum(step.calls[0].tool).add(step.index, tools)
            return
        each = [_recorded(step, call) for call in step.calls]
        if step.calls and None not in each:
            for call, seconds in zip(step.calls, each, strict=True):
                self._sum(call.tool).add(step.index, seconds)
        elif step.calls:
            self._sum(_names(step)).add_together(step.index, len(step.calls), tools)

    def _sum(self, tool: str) -> TimeSum:
        return self._tools.setdefault(self._bounded(tool), TimeSum())

    def _bounded(self, tool: str) -> str:
        """Return the name under which a tool's times are added up: every step may call a new tool."""
        return tool if tool in self._tools or len(self._tools) < MOST_TOOLS else OTHER_TOOLS


def times_of(document: RunDocument, *, cancel: CancelToken = NEVER) -> RunTimes:
    """Read a run to its end and return its times. Raises `CancelledError` when cancelled."""
    document.build(cancel=cancel)
    keeper = Timekeeper()
    for step in document.steps():
        cancel.check()
        keeper.feed(step)
    return keeper.times(document.header)


def _names(step: Step) -> str:
    """Return the tools that a step calls, each once; if there are many, only some."""
    names = sorted({call.tool or "?" for call in step.calls})
    more = ["…"] if len(names) > _NAMED else []
    return "+".join([*names[:_NAMED], *more])


def _of_calls(step: Step, replied: float | None) -> tuple[float | None, float]:
    """Return the duration of a step's calls, and the rest of the time until its end, in seconds.

    The duration is None if it is unknown.

    Recorded durations take precedence over the time until the last result, during which a user may have been
    asked for permission. Together, simultaneous calls can't take longer than the time until the last result.
    """
    if not step.calls:
        return None, 0.0
    until_end = seconds_between(first_known((replied, step.started)), step.ended)
    each = _recorded_durations(step)
    if len(each) < len(step.calls):
        return first_known((until_end, sum(each) if each else None)), 0.0
    if until_end is None:
        return sum(each), 0.0
    tools = min(sum(each), max(until_end, *each))
    return tools, max(0.0, until_end - tools)


def _recorded_durations(step: Step) -> list[float]:
    """Return the known durations of results; empty if durations were inferred from other times."""
    found = [sound_seconds(result.duration_s) for result in step.results]
    return [] if _INFERRED in step.derived else [seconds for seconds in found if seconds is not None]


def _recorded(step: Step, call: RunCall) -> float | None:
    """Return the recorded seconds of a call; None if there are none."""
    result = step.result_of(call)
    if result is None or _INFERRED in step.derived:
        return None
    return sound_seconds(result.duration_s)
