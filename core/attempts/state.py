"""The pure fold from events to the state that the screens draw; live work, resuming and replay all go through it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from gistpoint.core.attempts.budgets import NOTHING_LEFT, Budgets, Remaining
from gistpoint.core.attempts.clock import ACTIVITY_OF_PANE, NO_DOUBT, Activity, Clock, Doubt, IdleStage, answered, asked
from gistpoint.core.attempts.drafts import drafted
from gistpoint.core.attempts.events import Event, EventType, Pane
from gistpoint.core.attempts.knowledge import Knowledge
from gistpoint.core.kinds.gist.text import GIST_BUFFER, EditError, written


class AttemptResult(StrEnum):
    """The three things that an attempt can come to; the outcome in its journal stays what it is."""

    SOLVED = "solved"
    TO_BE_READ = "solved, to be read"
    """The tests pass, the submission is suspicious, and nobody has settled it: it does not count as solved."""
    NOT_SOLVED = "not solved"

    @property
    def passes(self) -> bool:
        """Whether the tests passed and nobody has said that this was not earned."""
        return self is not AttemptResult.NOT_SOLVED


def result_of(solved: bool, suspicious: Collection[str], accepted: bool | None = None) -> AttemptResult:
    """Return what a run came to whose tests passed or did not.

    `suspicious` says why the pass is to be read, `accepted` what reviewers have made of it: None while they have not,
    or do not agree.
    """
    if not solved or accepted is False:
        return AttemptResult.NOT_SOLVED
    return AttemptResult.TO_BE_READ if suspicious and accepted is None else AttemptResult.SOLVED


def suspicions(passes: Sequence[Collection[str]]) -> tuple[str, ...]:
    """Return why an attempt's pass is to be read, from each submission that passed: not at all if one is clean."""
    return tuple(sorted({reason for reasons in passes for reason in reasons})) if all(passes) else ()


def solved_words(results: Iterable[AttemptResult]) -> str:
    """Return how many of some runs count as solved, and how many more would if they were read, in a few words."""
    counts = Counter(results)
    more = counts[AttemptResult.TO_BE_READ]
    words = f"{counts[AttemptResult.SOLVED]} of {counts.total()} solved"
    return f"{words}, {more} more to be read" if more else words


def attempt_result(state: AttemptState, accepted: bool | None = None) -> AttemptResult:
    """Return what an attempt came to so far."""
    return result_of(state.solved, state.suspicious, accepted)


@dataclass(frozen=True, slots=True)
class Trial:
    """A score that was asked for before the hand-in."""

    call_id: str
    text: str
    """What was scored."""
    score: Mapping[str, Any] = field(default_factory=dict)
    """As `core.kinds.gist.score` spells it, with the evidence by line under `lines`."""


@dataclass(frozen=True, slots=True)
class GistProgress:
    """The gist as it was last saved by a step, and what was typed since."""

    text: str = ""
    typed: str | None = None
    """What a person has typed and no step has saved yet; None where it is the text."""
    typed_since_call: bool = False
    trials: tuple[Trial, ...] = ()

    @property
    def now(self) -> str:
        """What an editor shows."""
        return self.text if self.typed is None else self.typed

    def typing(self, text: str) -> GistProgress:
        """Return it after something was typed."""
        return replace(self, typed=None if text == self.text else text, typed_since_call=True)

    def called(self) -> GistProgress:
        """Return it at the beginning of a call."""
        return replace(self, typed_since_call=False)

    def answered(self, tool: str, arguments: Mapping[str, Any], *, refused: bool) -> GistProgress:
        """Return it after a call was answered; what was typed while a call ran is kept."""
        try:
            text = None if refused else written(self.text, tool, arguments)
        except EditError:
            text = None
        if text is None:
            return self
        typed = self.typed if self.typed_since_call and self.typed != text else None
        return replace(self, text=text, typed=typed)

    def tried(self, data: Mapping[str, Any]) -> GistProgress:
        """Return it after a `score` event of a trial."""
        trial = Trial(str(data.get("call_id", "")), str(data.get("text", "")), data.get("gist", {}))
        return replace(self, trials=(*self.trials, trial))


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call, and its result once there is one."""

    call_id: str
    turn: int
    tool: str
    arguments: Mapping[str, Any]
    text: str | None = None
    """What was sent back; None while the call runs."""
    refused: bool = False
    at_ms: int = 0
    """Active milliseconds when the call was made."""
    duration_ms: int = 0
    remaining: Remaining = NOTHING_LEFT
    """What was left after it."""
    revealed: Mapping[str, Any] = field(default_factory=dict)
    thought: str = ""
    automatic: str = ""
    """The limit that made the program call by itself; empty for a call of the solver's."""
    number: int = 0
    """Its place among the calls of the attempt, from 1; the calls of one reply share their turn."""
    malformed: str = ""
    """What keeps it from being carried out (`malformed.Malformed`); empty for a sound call."""
    raw: str = ""
    """Of a malformed call: the text of its arguments as it came, if there was one."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """An accepted replacement of one definition."""

    path: str
    qualname: str
    code: str


NOTHING_REPLACED = Replacement("", "", "")


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission, with the result of its tests once there is one."""

    number: int
    call_id: str
    replacement: Replacement = NOTHING_REPLACED
    """What a repair submits."""
    gist: str = ""
    """What a gist's hand-in holds."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """A gist's score as `core.kinds.gist.score` spells it, with the evidence by line under `lines`."""
    counts: bool = True
    """False where the infrastructure failed: it cost nothing."""
    status: str = ""
    """The run's status; empty while it runs."""
    reason: str = ""
    score: float | None = None
    solved: bool = False
    passed: int = 0
    failing: tuple[str, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()
    changed: tuple[str, ...] = ()
    """Corrupted functions whose text differs from the corrupted one, as `path::qualname`."""
    suspicious: tuple[str, ...] = ()
    """Why a pass is to be read before it counts."""
    at_ms: int = 0
    seconds: float = 0.0

    @property
    def flags(self) -> tuple[str, ...]:
        """What the score of a gist is flagged with."""
        given = self.metrics.get("flags")
        return tuple(str(name) for name, value in given.items() if value) if isinstance(given, Mapping) else ()


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause that is going on."""

    reason: str
    text: str
    since_mono_ms: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """A function that the solver marked as suspect, and when."""

    name: str
    at_ms: int
    calls: int


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the attempt ended, with the solver's own words where there are some."""

    reason: str
    code: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class AttemptState:
    """Everything that is known of an attempt after some number of its events."""

    header: Mapping[str, Any] = field(default_factory=dict)
    """The data of `attempt_started`."""
    budgets: Budgets = field(default_factory=Budgets)
    remaining: Remaining = NOTHING_LEFT
    calls: tuple[Call, ...] = ()
    refused_free: int = 0
    """Calls in a row, up to the last, that were refused at no cost."""
    submissions: tuple[Submission, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    knowledge: Knowledge = field(default_factory=Knowledge)
    suspects: tuple[Suspect, ...] = ()
    buffers: Mapping[str, str] = field(default_factory=dict)
    """Half-written code by buffer name (`path::qualname`)."""
    gist: GistProgress = field(default_factory=GistProgress)
    notes: str = ""
    pane: Pane = Pane.BRIEF
    pause: Pause | None = None
    ending: Ending | None = None
    doubt: Doubt = NO_DOUBT
    """Time without input that the solver was asked about and has not answered for."""
    clock: Clock = field(default_factory=Clock)
    comforts: Mapping[str, int] = field(default_factory=dict)
    """How often each comfort that costs no budget was used."""
    processes: int = 0
    events: int = 0
    unknown: int = 0
    """Events of types that this version does not know."""

    @property
    def attempt_id(self) -> str:
        """The attempt's id."""
        return str(self.header.get("attempt_id", ""))

    @property
    def tool_semantics(self) -> int:
        """What calls that can't be carried out cost: under 1 nothing, under 2 as `Bench.refuse` says."""
        given = self.header.get("tool_semantics")
        return given if isinstance(given, int) else 1

    @property
    def pending(self) -> Call | None:
        """The call that has no result yet."""
        return self.calls[-1] if self.calls and self.calls[-1].text is None else None

    def buffered(self, name: str) -> str | None:
        """Return what was last typed into a buffer; None where nothing was."""
        return self.gist.now if name == GIST_BUFFER else self.buffers.get(name)

    @property
    def ended(self) -> bool:
        """Whether the attempt is over."""
        return self.ending is not None

    @property
    def counted_submissions(self) -> tuple[Submission, ...]:
        """The submissions that count: the infrastructure did not fail, and the run is over."""
        return tuple(s for s in self.submissions if s.counts and s.status)

    @property
    def submitted(self) -> bool:
        """Whether anything was submitted that counts, its tests over or not."""
        return any(submission.counts for submission in self.submissions)

    @property
    def last(self) -> Submission | None:
        """The last submission: the primary result."""
        return self.counted_submissions[-1] if self.counted_submissions else None

    @property
    def best(self) -> Submission | None:
        """The best submission, the first of equals: the secondary result."""
        scored = self.counted_submissions
        return max(scored, key=lambda s: (s.solved, s.score or 0.0)) if scored else None

    @property
    def solved(self) -> bool:
        """Whether a submission solved the task."""
        return any(s.solved for s in self.submissions)

    @property
    def suspicious(self) -> tuple[str, ...]:
        """Why the pass is to be read before it counts."""
        return suspicions([s.suspicious for s in self.submissions if s.solved])


def fold(events: Iterable[Event], state: AttemptState | None = None) -> AttemptState:
    """Return the state after `events`."""
    current = state or AttemptState()
    for event in events:
        current = advance(current, event)
    return current


def advance(state: AttemptState, event: Event) -> AttemptState:
    """Return the state after one more event."""
    if event.type == EventType.PROCESS_STARTED:
        state = replace(state, clock=state.clock.restarted(event.mono_ms, event.utc_ms), processes=state.processes + 1)
    else:
        state = replace(state, clock=state.clock.at(event.mono_ms, event.utc_ms))
    handler = _HANDLERS.get(event.type)
    if handler is None:
        state = replace(state, unknown=state.unknown + (event.type not in _KNOWN))
    else:
        state = handler(state, event)
    running = _running(state)
    clock = state.clock if state.clock.running is running else replace(state.clock, running=running)
    return replace(state, events=state.events + 1, clock=clock)


def _running(state: AttemptState) -> Activity:
    if state.pause is not None or state.ending is not None:
        return Activity.PAUSED
    if state.pending is not None:
        return Activity.WAITING
    if state.doubt.idle:
        return Activity.IDLE
    return ACTIVITY_OF_PANE[state.pane]


def _attempt_started(state: AttemptState, event: Event) -> AttemptState:
    given = event.data.get("budgets", {})
    budgets = Budgets(
        given.get("tool_uses", 16), given.get("submissions", 4), given.get("time_limit_s"), given.get("scores", 0)
    )
    return replace(
        state,
        header=event.data,
        budgets=budgets,
        remaining=Remaining(budgets.tool_uses, budgets.submissions, budgets.scores),
        gist=GistProgress(str(event.data.get("gist") or "")),
    )


def _process_started(state: AttemptState, event: Event) -> AttemptState:
    """Nobody can answer any more for the time in which the last process asked."""
    return replace(state, doubt=NO_DOUBT)


def _view(state: AttemptState, event: Event) -> AttemptState:
    pane = event.data.get("pane")
    return replace(state, pane=Pane(pane)) if pane in set(Pane) else state


def _tool_call(state: AttemptState, event: Event) -> AttemptState:
    number = len(state.calls) + 1
    call = Call(
        call_id=event.data["call_id"],
        turn=event.data.get("turn", number),
        tool=event.data["tool"],
        arguments=event.data.get("arguments", {}),
        at_ms=state.clock.active,
        thought=event.data.get("thought") or "",
        remaining=state.remaining,
        automatic=event.data.get("automatic") or "",
        number=number,
        malformed=event.data.get("malformed") or "",
        raw=event.data.get("raw") or "",
    )
    return replace(state, calls=(*state.calls, call), gist=state.gist.called())


def _tool_result(state: AttemptState, event: Event) -> AttemptState:
    data = event.data
    left = data.get("budget", {})
    old = state.remaining
    remaining = Remaining(
        left.get("tool_uses", old.tool_uses), left.get("submissions", old.submissions), left.get("scores", old.scores)
    )
    free = bool(data.get("refused")) and remaining == old
    gist = state.gist
    for call in state.calls:
        if call.call_id == data["call_id"]:
            gist = gist.answered(call.tool, call.arguments, refused=bool(data.get("refused")))
    calls = tuple(
        replace(
            call,
            text=data.get("text", ""),
            refused=bool(data.get("refused")),
            duration_ms=data.get("duration_ms", 0),
            remaining=remaining,
            revealed=data.get("revealed", {}),
        )
        if call.call_id == data["call_id"]
        else call
        for call in state.calls
    )
    knowledge = state.knowledge.with_revealed(data.get("revealed", {}), data["call_id"])
    return replace(
        state,
        calls=calls,
        remaining=remaining,
        refused_free=state.refused_free + 1 if free else 0,
        knowledge=knowledge,
        gist=gist,
    )


def _submit(state: AttemptState, event: Event) -> AttemptState:
    given = event.data.get("replacement")
    replacement = Replacement(given["path"], given["qualname"], given["code"]) if given else NOTHING_REPLACED
    submission = Submission(
        number=event.data.get("number", len(state.submissions) + 1),
        call_id=event.data["call_id"],
        replacement=replacement,
        gist=event.data.get("gist") or "",
        at_ms=state.clock.active,
    )
    kept = (*state.replacements, replacement) if event.data.get("persistent") else state.replacements
    return replace(state, submissions=(*state.submissions, submission), replacements=kept)


def _on_submission(state: AttemptState, call_id: str, **changes: Any) -> AttemptState:
    submissions = tuple(replace(s, **changes) if s.call_id == call_id else s for s in state.submissions)
    return replace(state, submissions=submissions)


def _test_run(state: AttemptState, event: Event) -> AttemptState:
    data = event.data
    return _on_submission(
        state,
        data["call_id"],
        status=data["status"],
        reason=data.get("reason", ""),
        counts=data.get("counts", True),
        passed=data.get("passed", 0),
        failing=tuple(data.get("failing", ())),
        failures=tuple((id, text) for id, text in data.get("failures", ())),
        suspicious=tuple(str(mark) for mark in data.get("suspicious", ())),
        seconds=data.get("seconds", 0.0),
    )


def _score(state: AttemptState, event: Event) -> AttemptState:
    data = event.data
    if data.get("trial"):
        return replace(state, gist=state.gist.tried(data))
    return _on_submission(
        state,
        data["call_id"],
        metrics=data.get("gist", {}),
        score=data["score"],
        solved=bool(data.get("solved")),
        changed=tuple(data.get("changed", ())),
    )


def _pause(state: AttemptState, event: Event) -> AttemptState:
    return replace(state, pause=Pause(event.data.get("reason", ""), event.data.get("text", ""), event.mono_ms))


def _resume(state: AttemptState, event: Event) -> AttemptState:
    return replace(state, pause=None)


def _idle_prompt(state: AttemptState, event: Event) -> AttemptState:
    activity, data, now = ACTIVITY_OF_PANE[state.pane], event.data, event.mono_ms
    match data.get("stage"):
        case IdleStage.ASKED:
            doubt, clock = asked(state.doubt, state.clock, activity, int(data.get("since_mono_ms", now)), now)
            return replace(state, doubt=doubt, clock=clock)
        case IdleStage.COVERED | IdleStage.INPUT as stage:
            idle = state.doubt.idle and stage == IdleStage.COVERED
            return replace(state, doubt=state.doubt.stopped(state.clock, idle=idle))
    return replace(state, doubt=NO_DOUBT, clock=answered(state.doubt, state.clock, data, activity))


def _note(state: AttemptState, event: Event) -> AttemptState:
    return replace(state, notes=event.data.get("text", ""))


def _edit_buffer(state: AttemptState, event: Event) -> AttemptState:
    name = event.data["buffer"]
    text = drafted(state.buffered(name), event.data)
    if name == GIST_BUFFER:
        return replace(state, gist=state.gist.typing(text))
    return replace(state, buffers={**state.buffers, name: text})


def _comfort(state: AttemptState, event: Event) -> AttemptState:
    kind = str(event.data.get("kind", ""))
    return replace(state, comforts={**state.comforts, kind: state.comforts.get(kind, 0) + event.data.get("times", 1)})


def _suspect(state: AttemptState, event: Event) -> AttemptState:
    name = event.data["function"]
    others = tuple(s for s in state.suspects if s.name != name)
    if not event.data.get("marked", True):
        return replace(state, suspects=others)
    return replace(state, suspects=(*others, Suspect(name, state.clock.active, len(state.calls))))


def _attempt_ended(state: AttemptState, event: Event) -> AttemptState:
    ending = Ending(event.data["reason"], event.data.get("code", ""), event.data.get("text", ""))
    return replace(state, ending=ending, pause=None, doubt=NO_DOUBT)


_HANDLERS: Mapping[str, Callable[[AttemptState, Event], AttemptState]] = {
    EventType.ATTEMPT_STARTED: _attempt_started,
    EventType.PROCESS_STARTED: _process_started,
    EventType.VIEW: _view,
    EventType.TOOL_CALL: _tool_call,
    EventType.TOOL_RESULT: _tool_result,
    EventType.SUBMIT: _submit,
    EventType.TEST_RUN: _test_run,
    EventType.SCORE: _score,
    EventType.PAUSE: _pause,
    EventType.RESUME: _resume,
    EventType.IDLE_PROMPT: _idle_prompt,
    EventType.NOTE: _note,
    EventType.EDIT_BUFFER: _edit_buffer,
    EventType.COMFORT: _comfort,
    EventType.SUSPECT: _suspect,
    EventType.ATTEMPT_ENDED: _attempt_ended,
}
_KNOWN = frozenset(EventType)
