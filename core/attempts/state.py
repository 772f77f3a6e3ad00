"""The state of an attempt, and the pure fold from events to it.

Screens draw this state; live work, resuming and replay all use the fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, Protocol

from msgspec import UNSET, Struct, structs
from msgspec import field as struct_field

from gistpoint.core.attempts.clock import (
    ACTIVITY_OF_PANE,
    NO_DOUBT,
    Clock,
    ClockActivity,
    Doubt,
    IdleStage,
    answered,
    asked,
)
from gistpoint.core.attempts.events import (
    AffordanceUsed,
    AssistAnswered,
    AssistAsked,
    AttemptEnded,
    AttemptStarted,
    BufferEdited,
    CallAnswered,
    CallMade,
    EndWithdrawn,
    EventData,
    FocusMoved,
    HandedOver,
    IdlePrompted,
    JournalEvent,
    ModelTurn,
    NotesWritten,
    OtherEvent,
    Pane,
    PassConfirmed,
    Paused,
    PauseReason,
    ProcessStarted,
    QuestionnaireAnswered,
    Resumed,
    SubmissionMade,
    SubmissionRun,
    SubmissionScored,
    SuspectMarked,
)
from gistpoint.core.attempts.exchanges import Exchanges, exchanges_after
from gistpoint.core.attempts.identity import MODEL, PERSON
from gistpoint.core.attempts.parts import NOTHING_REPLACED as NOTHING_REPLACED
from gistpoint.core.attempts.parts import REQUEST_ID, Ending, ModelSpending, Suspect, spending_of
from gistpoint.core.attempts.parts import AttemptCall as AttemptCall
from gistpoint.core.attempts.parts import Handover as Handover
from gistpoint.core.attempts.parts import Pause as Pause
from gistpoint.core.attempts.parts import Submission as Submission
from gistpoint.core.attempts.results import AttemptResult as AttemptResult
from gistpoint.core.attempts.results import Standing as Standing
from gistpoint.core.attempts.results import result_of as result_of
from gistpoint.core.attempts.results import solved_words as solved_words
from gistpoint.core.attempts.results import standing_of
from gistpoint.core.attempts.results import suspicions as suspicions
from gistpoint.core.attempts.revealed import Knowledge
from gistpoint.core.confirmation.model import Confirmation
from gistpoint.core.errors import AttemptError
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.budgets import NOTHING_LEFT, Budgets, Remaining
from gistpoint.core.tools.declaration import NOTHING_REVEALED, Replacement


def attempt_result(state: AttemptState, accepted: bool | None = None) -> AttemptResult:
    """Return the current result of an attempt; `accepted` is the reviewers' decision, if any."""
    return result_of(state.solved, state.suspicious, accepted)


class KindState(Protocol):
    """The part of an attempt's state that belongs to the kind of its task, folded from the same events."""

    unit: ClassVar[str]
    """The unit of the budget of calls, such as "tool use"."""
    hands_in_once: ClassVar[bool]
    """Whether the single submission ends the attempt, so that submissions are not a separate budget."""

    @property
    def scores_made(self) -> int:
        """The number of scores requested before the hand-in."""
        ...

    def score_words(self, score: float) -> str:
        """Return a submission's score in words."""
        ...

    def buffered(self, name: str) -> str | None:
        """Return the text of a buffer of this part; None for any other buffer."""
        ...

    def advance(self, state: AttemptState, event: JournalEvent) -> KindState:
        """Return this part after one more event; `state` is the attempt's before the event."""
        ...


@dataclass(frozen=True, slots=True)
class NoKindState:
    """The state of a kind that adds nothing."""

    unit: ClassVar[str] = "tool use"
    hands_in_once: ClassVar[bool] = False

    @property
    def scores_made(self) -> int:
        """Always 0, because there are no scores."""
        return 0

    def score_words(self, score: float) -> str:
        """Return the score with three decimals."""
        return f"score {score:.3f}"

    def buffered(self, name: str) -> str | None:
        """Return None: every buffer belongs to the attempt."""
        return None

    def advance(self, state: AttemptState, event: JournalEvent) -> NoKindState:
        """Return this state unchanged."""
        return self


NOT_STARTED = AttemptStarted()


class AttemptState(Struct, frozen=True):
    """The state of an attempt after some of its events.

    It is a struct because the fold replaces it several times per event, and a dataclass takes ten times as
    long (decision 101).
    """

    header: AttemptStarted = NOT_STARTED
    budgets: Budgets = struct_field(default_factory=Budgets)
    remaining: Remaining = NOTHING_LEFT
    calls: tuple[AttemptCall, ...] = ()
    refused_free: int = 0
    """The number of consecutive calls, up to the last, that were refused at no cost."""
    submissions: tuple[Submission, ...] = ()
    replacements: tuple[Replacement, ...] = ()
    knowledge: Knowledge = struct_field(default_factory=Knowledge)
    suspects: tuple[Suspect, ...] = ()
    buffers: Mapping[str, str] = struct_field(default_factory=dict)
    """Unsubmitted code by buffer name (`path::qualname`)."""
    of_kind: KindState = NoKindState()
    """The state of the task's kind; kept up to date if the fold begins with `TaskJudge.blank`."""
    notes: str = ""
    pane: Pane = Pane.BRIEF
    pause: Pause | None = None
    ending: Ending | None = None
    doubt: Doubt = NO_DOUBT
    """Time without input about which the solver has been asked and has not answered."""
    clock: Clock = struct_field(default_factory=Clock)
    affordances: Mapping[str, int] = struct_field(default_factory=dict)
    """The number of uses of each affordance."""
    turns: tuple[ModelTurn, ...] = ()
    """The model's replies."""
    handovers: tuple[Handover, ...] = ()
    questionnaires: tuple[QuestionnaireAnswered, ...] = ()
    """The solver's answers to questionnaires during the attempt."""
    exchanges: Exchanges = ()
    """Exchanges with the assistant of a study's condition."""
    left_brief: bool = False
    """Whether the solver has left the brief, for another pane or for questions about it."""
    processes: int = 0
    events: int = 0
    unknown: int = 0
    """The number of events whose type this version does not know."""

    @property
    def attempt_id(self) -> str:
        """The attempt's id."""
        return self.header.attempt_id

    @property
    def started(self) -> bool:
        """Whether the attempt has a header."""
        return self.header is not NOT_STARTED

    @property
    def spent(self) -> ModelSpending:
        """The cost of the model so far."""
        return spending_of(self.turns, sum(bool(call.malformed) for call in self.calls))

    @property
    def drivers(self) -> tuple[str, ...]:
        """The kinds of actors that drove the attempt, in the order of their first turn."""
        return tuple(dict.fromkeys([self.header.actor, *(handover.to for handover in self.handovers)]))

    @property
    def driver(self) -> str:
        """The kind of actor that drives the attempt now."""
        return self.handovers[-1].to if self.handovers else self.header.actor

    @property
    def mixed(self) -> bool:
        """Whether both a person and a model drove the attempt, which then counts for neither."""
        return {PERSON, MODEL} <= set(self.drivers)

    @property
    def pending(self) -> AttemptCall | None:
        """The call without a result; None if there is none."""
        return self.calls[-1] if self.calls and self.calls[-1].text is None else None

    def buffered(self, name: str) -> str | None:
        """Return the text last typed into a buffer; None if there is none."""
        own = self.of_kind.buffered(name)
        return self.buffers.get(name) if own is None else own

    @property
    def ended(self) -> bool:
        """Whether the attempt is over."""
        return self.ending is not None

    @property
    def settled(self) -> bool:
        """Whether the attempt halted and was settled, so its end can be withdrawn (decision 150)."""
        return self.ending is not None and self.ending.settled_by is not None

    @property
    def counted_submissions(self) -> tuple[Submission, ...]:
        """The finished submissions that count, because the harness did not fail."""
        return tuple(s for s in self.submissions if s.counts and s.status)

    @property
    def given_back(self) -> int:
        """The number of submissions restored because the harness failed (`RunStatus.HARNESS_FAILED`)."""
        return sum(not s.counts and s.status == RunStatus.HARNESS_FAILED for s in self.submissions)

    @property
    def submitted(self) -> bool:
        """Whether a submission counts, even one whose tests still run."""
        return any(submission.counts for submission in self.submissions)

    @property
    def last(self) -> Submission | None:
        """The last counted submission, which is the primary result; None if no submission counts."""
        return self.counted_submissions[-1] if self.counted_submissions else None

    @property
    def best(self) -> Submission | None:
        """The best counted submission, the first of equals: the secondary result; None if none counts."""
        scored = self.counted_submissions
        return max(scored, key=lambda s: (s.solved, s.score or 0.0)) if scored else None

    @property
    def solved(self) -> bool:
        """Whether a submission solved the task."""
        return any(s.solved for s in self.submissions)

    @property
    def suspicious(self) -> tuple[str, ...]:
        """The reasons why the pass needs review before it counts."""
        return suspicions([s.doubts for s in self.submissions if s.solved])

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks found in the text of the pass, whether or not they matter."""
        return suspicions([s.suspicious for s in self.submissions if s.solved])

    @property
    def passing(self) -> Submission | None:
        """The pass that counts: the first one without doubts, or else the first; None without a pass."""
        passes = [s for s in self.submissions if s.solved]
        return next((s for s in passes if not s.doubts), passes[0] if passes else None)

    @property
    def confirmation(self) -> Confirmation | None:
        """The confirmation of the pass; None if there is no pass, or none was requested."""
        return self.passing.confirmation if self.passing is not None else None

    @property
    def standing(self) -> Standing | None:
        """The standing of the pass; None without a pass."""
        return None if self.passing is None else standing_of(self.confirmation)


def fold(events: Iterable[JournalEvent], state: AttemptState | None = None) -> AttemptState:
    """Return the state after `events`, from `state` or a blank one.

    Raises `AttemptError` if the data of an event do not fit its type.
    """
    return reduce(advance, events, state or AttemptState())


def advance(state: AttemptState, event: JournalEvent) -> AttemptState:
    """Return the state after one more event. Raises `AttemptError` if its data do not fit its type."""
    if not event.fits:
        raise AttemptError(
            f"The data of event {event.seq} do not fit its type, {event.type}.",
            hint="`gistpoint attempt show` shows the events before it.",
        )
    # A confirmation follows the end of the attempt, when none of the solver's time passes.
    if isinstance(event.data, PassConfirmed):
        confirmed = _on_submission(state, event.data.call_id, confirmation=event.data.confirmation)
        return structs.replace(confirmed, events=state.events + 1)
    restarted = isinstance(event.data, ProcessStarted)
    clock = (state.clock.restarted if restarted else state.clock.at)(event.mono_ms, event.utc_ms)
    state = structs.replace(state, clock=clock, processes=state.processes + restarted)
    of_kind = state.of_kind.advance(state, event)
    state = _state_after(state, event)
    running = _running(state)
    clock = state.clock if state.clock.running is running else structs.replace(state.clock, running=running)
    unknown = state.unknown + isinstance(event.data, OtherEvent)
    return structs.replace(state, events=state.events + 1, unknown=unknown, clock=clock, of_kind=of_kind)


def _running(state: AttemptState) -> ClockActivity:
    if state.pause is not None or state.ending is not None:
        return ClockActivity.PAUSED
    if state.pending is not None:
        return ClockActivity.WAITING
    if state.doubt.idle:
        return ClockActivity.IDLE
    return ACTIVITY_OF_PANE[state.pane]


def _state_after(state: AttemptState, event: JournalEvent) -> AttemptState:
    """Return the state after an event, apart from clocks and counts."""
    match event.data:
        case AttemptStarted() as data:
            return _attempt_started(state, data)
        case ProcessStarted():
            # A question that an earlier process asked about idle time can no longer be answered.
            return structs.replace(state, doubt=NO_DOUBT)
        case FocusMoved(pane=pane):
            return _focus_moved(state, pane)
        case Paused(reason=reason, text=text):
            left = state.left_brief or reason == PauseReason.QUESTIONNAIRE
            clock = state.clock.unanswered(event.data.thinking_ms or 0)
            pause = Pause(reason, text, event.mono_ms)
            return structs.replace(state, pause=pause, left_brief=left, clock=clock)
        case Resumed():
            return structs.replace(state, pause=None)
        case IdlePrompted() as data:
            return _idle_prompted(state, data, event.mono_ms)
        case NotesWritten(text=text):
            return structs.replace(state, notes=text)
        case BufferEdited() as data:
            return _buffer_edited(state, data)
        case AffordanceUsed(kind=kind, times=times):
            used = {**state.affordances, kind: state.affordances.get(kind, 0) + times}
            return structs.replace(state, affordances=used)
        case SuspectMarked() as data:
            return _suspect_marked(state, data)
        case AttemptEnded() | EndWithdrawn() as data:
            return _after_end(state, data)
    return _after_turn(state, event.data)


def _after_end(state: AttemptState, data: AttemptEnded | EndWithdrawn) -> AttemptState:
    """Return the state after an end, or after the withdrawal of one that was settled."""
    if isinstance(data, EndWithdrawn):
        return structs.replace(state, ending=None) if state.settled else state
    settled_by = None if data.settled_by is UNSET else data.settled_by
    ending = Ending(data.reason, data.code or "", data.text or "", settled_by)
    return structs.replace(state, ending=ending, pause=None, doubt=NO_DOUBT)


def _after_turn(state: AttemptState, data: EventData) -> AttemptState:
    """Return the state after an event of a model, of the assistant, or of a questionnaire."""
    match data:
        case QuestionnaireAnswered():
            return structs.replace(state, questionnaires=(*state.questionnaires, data))
        case AssistAsked() | AssistAnswered():
            return structs.replace(
                state, exchanges=exchanges_after(state.exchanges, data, state.clock.active)
            )
        case ModelTurn():
            return structs.replace(state, turns=(*state.turns, data))
        case HandedOver():
            handover = Handover(data.to, data.by, data.note, len(state.turns), len(state.calls))
            return structs.replace(state, handovers=(*state.handovers, handover))
    return _after_call(state, data)


def _after_call(state: AttemptState, data: EventData) -> AttemptState:
    """Return the state after an event of a call; other events change nothing."""
    match data:
        case CallMade():
            return _call_made(state, data)
        case CallAnswered():
            return _call_answered(state, data)
        case SubmissionMade():
            return _submission_made(state, data)
        case SubmissionRun():
            return _submission_run(state, data)
        case SubmissionScored():
            return _submission_scored(state, data)
    return state


def _focus_moved(state: AttemptState, pane: str) -> AttemptState:
    known = _PANES.get(pane)
    if known is None:  # a pane that this version does not know
        return state
    return structs.replace(state, pane=known, left_brief=state.left_brief or known is not Pane.BRIEF)


_PANES = {str(pane): pane for pane in Pane}


def _attempt_started(state: AttemptState, data: AttemptStarted) -> AttemptState:
    budgets = data.budgets
    remaining = Remaining(budgets.tool_uses, budgets.submissions, budgets.scores)
    return structs.replace(state, header=data, budgets=budgets, remaining=remaining)


def _call_made(state: AttemptState, data: CallMade) -> AttemptState:
    number = len(state.calls) + 1
    call = AttemptCall(
        call_id=data.call_id,
        turn=number if data.turn is UNSET else data.turn,
        tool=data.tool,
        arguments=data.arguments or {},
        at_ms=state.clock.active,
        thought=data.thought or "",
        remaining=state.remaining,
        automatic=data.automatic or "",
        number=number,
        malformed=data.malformed or "",
        raw=data.raw or "",
        code=data.code or "",
        requested=REQUEST_ID in data.extra,
        typed=data.typed is True,
    )
    return structs.replace(state, calls=(*state.calls, call))


def _call_answered(state: AttemptState, data: CallAnswered) -> AttemptState:
    left, old = data.budget, state.remaining
    remaining = Remaining(
        old.tool_uses if left.tool_uses is UNSET else left.tool_uses,
        old.submissions if left.submissions is UNSET else left.submissions,
        old.scores if left.scores is UNSET else left.scores,
    )
    free = data.refused and remaining == old
    revealed = data.revealed or NOTHING_REVEALED
    calls = tuple(
        replace(
            call,
            text=data.text,
            refused=data.refused,
            duration_ms=data.duration_ms,
            remaining=remaining,
            revealed=revealed,
        )
        if call.call_id == data.call_id
        else call
        for call in state.calls
    )
    return structs.replace(
        state,
        calls=calls,
        remaining=remaining,
        refused_free=state.refused_free + 1 if free else 0,
        knowledge=state.knowledge.with_revealed(revealed, data.call_id),
    )


def _submission_made(state: AttemptState, data: SubmissionMade) -> AttemptState:
    replacement = data.replacement or NOTHING_REPLACED
    submission = Submission(
        number=len(state.submissions) + 1 if data.number is UNSET else data.number,
        call_id=data.call_id,
        replacement=replacement,
        gist=data.gist or "",
        at_ms=state.clock.active,
    )
    kept = (*state.replacements, replacement) if data.persistent else state.replacements
    return structs.replace(state, submissions=(*state.submissions, submission), replacements=kept)


def _on_submission(state: AttemptState, call_id: str, **changes: Any) -> AttemptState:
    submissions = tuple(replace(s, **changes) if s.call_id == call_id else s for s in state.submissions)
    return structs.replace(state, submissions=submissions)


def _submission_run(state: AttemptState, data: SubmissionRun) -> AttemptState:
    return _on_submission(
        state,
        data.call_id,
        status=data.status,
        reason=data.reason,
        counts=data.counts,
        passed=data.passed,
        failing=data.failing,
        failures=data.failures or (),
        suspicious=data.suspicious or (),
        seconds=data.seconds,
    )


def _submission_scored(state: AttemptState, data: SubmissionScored) -> AttemptState:
    if data.trial:
        return state
    changes = {"metrics": data.gist or {}, "changed": data.changed or ()}
    return _on_submission(state, data.call_id, score=data.score, solved=data.solved, **changes)


def _idle_prompted(state: AttemptState, data: IdlePrompted, now: int) -> AttemptState:
    activity = ACTIVITY_OF_PANE[state.pane]
    match data.stage:
        case IdleStage.ASKED:
            since = now if data.since_mono_ms is UNSET else data.since_mono_ms
            doubt, clock = asked(state.doubt, state.clock, activity, since, now)
            return structs.replace(state, doubt=doubt, clock=clock)
        case IdleStage.COVERED | IdleStage.INPUT as stage:
            idle = state.doubt.idle and stage == IdleStage.COVERED
            return structs.replace(state, doubt=state.doubt.stopped(state.clock, idle=idle))
    clock = answered(state.doubt, state.clock, data.answer or "", data.idle_ms or 0, activity)
    return structs.replace(state, doubt=NO_DOUBT, clock=clock)


def _buffer_edited(state: AttemptState, data: BufferEdited) -> AttemptState:
    if state.of_kind.buffered(data.buffer) is not None:
        return state
    return structs.replace(
        state, buffers={**state.buffers, data.buffer: data.after(state.buffers.get(data.buffer))}
    )


def _suspect_marked(state: AttemptState, data: SuspectMarked) -> AttemptState:
    others = tuple(s for s in state.suspects if s.name != data.function)
    marked = (Suspect(data.function, state.clock.active, len(state.calls)),) if data.marked else ()
    return structs.replace(state, suspects=(*others, *marked))
