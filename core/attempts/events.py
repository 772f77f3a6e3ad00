"""The events of an attempt. An attempt is the list of its events; no part of it is stored elsewhere.

Every event has its place, two clocks, the hash of the line before it, and data: one record per type, whose
fields are written in the order of their declaration. A default is the meaning of a member that an earlier
version did not write; members that a newer version adds are ignored. Types that a reader does not know are
kept and shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from gistpoint.core.attempts.reasons import EndReason as EndReason
from gistpoint.core.attempts.reasons import GiveUpCode as GiveUpCode
from gistpoint.core.attempts.reasons import PauseReason as PauseReason
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import Usage
from gistpoint.core.confirmation.model import AnsweredCall, Confirmation, Confirmed
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tools.declaration import Replacement, Revealed

SCHEMA_VERSION = 1
_SHORT = 1_000
"""A half-written text with fewer code points is stored whole, which costs little and is easy to read."""


class Pane(StrEnum):
    """The panes that can have the focus; the pane decides which clock runs."""

    BRIEF = "brief"
    TREE = "tree"
    CODE = "code"
    CONSOLE = "console"
    RESULT = "result"
    EDITOR = "editor"
    NOTES = "notes"
    ASSIST = "assist"
    """The chat with the assistant of a study's condition."""
    GIST_HELP = "gist_help"
    """A gist that a study's condition shows with a repair."""
    MODEL = "model"
    """No pane: a model has the attempt, and thinks."""


class EventData(msgspec.Struct, frozen=True):
    """The data of an event; an event leaves out the fields that are unset."""

    type: ClassVar[str]
    """As it is stored."""
    durable: ClassVar[bool] = True
    """Whether it is on the disk before the program goes on; others are synced in groups."""

    def written(self) -> dict[str, Any]:
        """Return the data as a journal holds them: the members of `extra` in its place, and nothing unset."""
        data: dict[str, Any] = {}
        for name, value in msgspec.to_builtins(self).items():
            data.update(value if name == "extra" else {name: value})
        return data


class AttemptStarted(EventData, frozen=True):
    """The header of an attempt; `state.NOT_STARTED` before there is one."""

    type: ClassVar[str] = "attempt_started"
    schema: int = 0
    gistpoint: str = ""
    """The version that began it."""
    attempt_id: str = ""
    task_id: str = ""
    mode: str = ""
    tree_sha256: str = ""
    actor: str = ""
    role: str = ""
    participant: str | None = ""
    study: str | None = None
    condition: str | None = None
    assignment: str | None = None
    comforts_off: tuple[str, ...] = ()
    """Affordances that are switched off."""
    extra: dict[str, Any] = {}
    """What the kind of the task adds: the hash of its tools, and what the solver begins with."""
    brief: str = ""
    brief_sha256: str = ""
    budgets: Budgets = Budgets()
    backend: BackendRecord = BackendRecord("")
    tool_semantics: int = 1
    """The rule for calls that can't be carried out: under 1 they cost nothing, under 2 see
    `TaskHarness.refuse`.
    """
    tool_names: tuple[str, ...] | UnsetType = UNSET
    """The tools that the attempt has, whatever later versions offer; unset in journals of earlier ones."""
    model: str | UnsetType = UNSET
    """The requested name of the model."""
    solver: dict[str, Any] | UnsetType = UNSET
    """The settings of a solver that is a program: its endpoint's host, its options, its prompts."""
    protocol_sha256: str | UnsetType = UNSET
    """The protocol of the study that was in force."""
    assistance: str | UnsetType = UNSET
    """The help that the study's condition gives."""
    gist_help_sha256: str | UnsetType = UNSET
    """The gist that the condition shows with a repair."""
    conditions_sha256: str | UnsetType = UNSET
    """The digest of the conditions (`core/tasks/conditions.py`); unset in journals of earlier versions."""


class ProcessStarted(EventData, frozen=True):
    """A process began the attempt, or resumed it."""

    type: ClassVar[str] = "process_started"
    boot_id: str = ""
    gistpoint: str = ""


class FocusMoved(EventData, frozen=True):
    """A pane has the focus: one of `Pane`; a pane of another version changes nothing."""

    type: ClassVar[str] = "view"
    durable: ClassVar[bool] = False
    pane: str = ""


class CallMade(EventData, frozen=True, kw_only=True):
    """A tool was called. `thought`, `raw` and `turn` are the caller's, as `engine.Attempt.call` takes them."""

    type: ClassVar[str] = "tool_call"
    extra: dict[str, Any] = {}
    """Further data of the caller: a model's tokens and cost."""
    thought: str | UnsetType = UNSET
    tool: str
    malformed: str | UnsetType = UNSET
    """Why it can't be carried out (`malformed.Malformed`)."""
    arguments: dict[str, Any] | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    typed: bool | UnsetType = UNSET
    """Set for a step that the program adds to save what was typed."""
    automatic: str | UnsetType = UNSET
    """The limit, or the `EndReason`, that made the program call by itself."""
    code: str | UnsetType = UNSET
    """The `GiveUpCode` of a hand-in by which a solver gives up."""
    call_id: str
    turn: int | UnsetType = UNSET


class BudgetLeft(msgspec.Struct, frozen=True):
    """What is left after a call; what is unset did not change."""

    tool_uses: int | UnsetType = UNSET
    submissions: int | UnsetType = UNSET
    scores: int | UnsetType | None = UNSET


class CallAnswered(EventData, frozen=True):
    """A call was answered."""

    type: ClassVar[str] = "tool_result"
    call_id: str
    text: str = ""
    refused: bool = False
    duration_ms: int = 0
    budget: BudgetLeft = BudgetLeft()
    revealed: Revealed | UnsetType = UNSET


class SubmissionMade(EventData, frozen=True):
    """Something was submitted: a replacement, or a gist."""

    type: ClassVar[str] = "submit"
    call_id: str
    number: int | UnsetType = UNSET
    replacement: Replacement | UnsetType = UNSET
    persistent: bool | UnsetType = UNSET
    """Whether the replacement stays when others follow."""
    gist: str | UnsetType = UNSET


class SubmissionRun(EventData, frozen=True):
    """The tests of a submission, or the command of a gist, were run."""

    type: ClassVar[str] = "test_run"
    call_id: str
    status: str
    """One of `outcomes.RunStatus`."""
    reason: str = ""
    counts: bool = True
    passed: int = 0
    failing: tuple[str, ...] = ()
    failures: tuple[tuple[str, str], ...] | UnsetType = UNSET
    seconds: float = 0.0
    suspicious: tuple[str, ...] | UnsetType = UNSET
    backend: BackendRecord | UnsetType = UNSET


class SubmissionScored(EventData, frozen=True):
    """A submission has its score; with `trial`, a text that was not submitted."""

    type: ClassVar[str] = "score"
    call_id: str
    score: float
    solved: bool = False
    changed: tuple[str, ...] | UnsetType = UNSET
    gist: dict[str, Any] | UnsetType = UNSET
    """As `core.kinds.gist.score` spells it, with the evidence by line under `lines`."""
    trial: bool | UnsetType = UNSET
    text: str | UnsetType = UNSET
    """What was scored in a trial."""


class PassConfirmed(EventData, frozen=True):
    """The outcome of confirming a submission that passed; it follows the end of the attempt.

    The fields are those of `Confirmation`. Of several for one submission the last counts.
    """

    type: ClassVar[str] = "confirmation"
    call_id: str
    result: str
    """One of `Confirmed`."""
    reason: str | UnsetType = UNSET
    """One of `Unconfirmable`."""
    detail: str | UnsetType = UNSET
    calls: int = 0
    tests: int = 0
    uncovered: int | UnsetType = UNSET
    contradiction: AnsweredCall | UnsetType = UNSET
    beyond: AnsweredCall | UnsetType = UNSET
    varied: int = 0
    marks: tuple[str, ...] | UnsetType = UNSET
    seconds: float = 0.0

    @classmethod
    def of(cls, call_id: str, confirmation: Confirmation) -> PassConfirmed:
        """Return the event that records a confirmation."""
        return msgspec.convert({"call_id": call_id, **msgspec.to_builtins(confirmation)}, cls)

    @property
    def confirmation(self) -> Confirmation:
        """The confirmation; words of a newer version count as unconfirmed, and its detail quotes them."""
        values = msgspec.to_builtins(self)
        try:
            return msgspec.convert(values, Confirmation)
        except msgspec.ValidationError:
            newer = f"A newer gistpoint says: {self.result} {self.reason or ''}".rstrip()
            return msgspec.convert(
                {**values, "result": Confirmed.UNCONFIRMED, "reason": None, "detail": newer}, Confirmation
            )


class RequestedCall(msgspec.Struct, frozen=True):
    """A call as a model requested it; `arguments` is the text as received."""

    id: str = ""
    name: str = ""
    arguments: str = ""


class ModelTurn(EventData, frozen=True, kw_only=True):
    """A model replied. Its calls follow as events of their own, with the same `turn`."""

    type: ClassVar[str] = "model_turn"
    turn: int
    """From 1."""
    content: str = ""
    reasoning: str | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    """The model's own words if it declines."""
    tool_calls: tuple[RequestedCall, ...] = ()
    finish: str = ""
    """Why the reply ended, in the endpoint's word."""
    model: str = ""
    """The model's name as the endpoint gives it."""
    fingerprint: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    usage: Usage = Usage()
    lost: Usage | UnsetType = UNSET
    """The cost of earlier tries of the request."""
    latency_ms: int = 0
    """From the request to the reply, without the waits for the endpoint."""
    retried: tuple[str, ...] = ()
    """The failures of earlier tries (`chat.ChatProblem`)."""
    tools: tuple[str, ...] | UnsetType = UNSET
    """The tools that were offered, if they differ from those of the turn before."""


class HandedOver(EventData, frozen=True, kw_only=True):
    """The attempt went to another driver: `to` is `model` or `person`."""

    type: ClassVar[str] = "handover"
    to: str
    by: str = ""
    """The pseudonym of the person who takes over or hands over."""
    note: str = ""
    """The person's message to the model."""


class Paused(EventData, frozen=True):
    """The clock was stopped for a `PauseReason`."""

    type: ClassVar[str] = "pause"
    reason: str = ""
    text: str = ""


class Resumed(EventData, frozen=True):
    """The clock runs again."""

    type: ClassVar[str] = "resume"


class IdlePrompted(EventData, frozen=True):
    """The solver was asked about time without input (`stage`, a `clock.IdleStage`), or answered."""

    type: ClassVar[str] = "idle_prompt"
    stage: str | UnsetType = UNSET
    since_mono_ms: int | UnsetType = UNSET
    idle_ms: int | UnsetType = UNSET
    answer: str | UnsetType = UNSET
    """`worked` or `away`."""


class NotesWritten(EventData, frozen=True):
    """The notes are now this text."""

    type: ClassVar[str] = "note"
    durable: ClassVar[bool] = False
    text: str = ""


class BufferEdited(EventData, frozen=True, kw_only=True):
    """Half-written text: the whole, or a part that replaces `removed` code points at `at`."""

    type: ClassVar[str] = "edit_buffer"
    durable: ClassVar[bool] = False
    buffer: str
    at: int | UnsetType = UNSET
    removed: int | UnsetType = UNSET
    text: str = ""

    @classmethod
    def between(cls, buffer: str, before: str | None, now: str) -> BufferEdited:
        """Return the event for a change of text: with the whole text, or only with the new part.

        Texts are written many times a minute, and whole ones would fill the disk with copies.
        """
        whole = cls(buffer=buffer, text=now)
        if before is None or len(now) <= _SHORT:
            return whole
        head = _common(before, now)
        tail = _common(before[head:][::-1], now[head:][::-1])
        part = now[head : len(now) - tail]
        if len(part) * 2 > len(now):
            return whole
        return cls(buffer=buffer, at=head, removed=len(before) - head - tail, text=part)

    def after(self, before: str | None) -> str:
        """Return the text after the event; `before` is the text before it, None if there was none."""
        if self.at is UNSET:
            return self.text
        old = before or ""
        return f"{old[: self.at]}{self.text}{old[self.at + (self.removed or 0) :]}"


def _common(one: str, other: str) -> int:
    """Return how many code points two texts have in common at their start, by bisection."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class AffordanceUsed(EventData, frozen=True):
    """An affordance was used: it costs no budget, and models don't have it."""

    type: ClassVar[str] = "comfort"
    durable: ClassVar[bool] = False
    kind: str = ""
    times: int = 1
    characters: int | UnsetType = UNSET
    """Set for a paste, as are the following fields; the text is not recorded."""
    sha256: str | UnsetType = UNSET
    shown: bool | UnsetType = UNSET
    """Whether the solver had seen the text before; indentation and empty lines make no difference."""
    outside: bool | UnsetType = UNSET
    """Whether it came through the terminal, rather than from the program's own clipboard."""

    @classmethod
    def paste(cls, text: str, shown_texts: Iterable[str], *, outside: bool) -> AffordanceUsed:
        """Return the event of a paste; `shown_texts` are all that the solver has been shown."""
        wanted = _without_layout(text)
        shown = any(wanted in _without_layout(known) for known in shown_texts)
        return cls("paste", characters=len(text), sha256=sha256_of_text(text), shown=shown, outside=outside)


def _without_layout(text: str) -> str:
    return "\n".join(stripped for line in text.splitlines() if (stripped := line.strip()))


class SuspectMarked(EventData, frozen=True):
    """A function was marked as suspect, or the mark was removed."""

    type: ClassVar[str] = "suspect"
    function: str
    marked: bool = True


class Heartbeat(EventData, frozen=True):
    """The attempt is alive."""

    type: ClassVar[str] = "heartbeat"
    durable: ClassVar[bool] = False


class QuestionnaireAnswered(EventData, frozen=True):
    """The solver answered questions about the attempt; `values` is by item, None for a declined one."""

    type: ClassVar[str] = "questionnaire"
    extra: dict[str, Any] = {}
    questionnaire: str = ""
    """Its id in the study."""
    sha256: str = ""
    """Of its wording."""
    values: dict[str, Any] = {}
    seconds: float = 0.0


class AssistAsked(EventData, frozen=True, kw_only=True):
    """The person asked the assistant. The context sent can be rebuilt from the events before this one."""

    type: ClassVar[str] = "assist_asked"
    exchange: int
    """From 1."""
    text: str
    buffer: str | UnsetType = UNSET
    """The name of what was in the editor, if anything was."""
    template: str = ""
    context_sha256: str = ""
    calls: int = 0
    """How many answers to calls were sent."""
    left_out: tuple[str, ...] = ()
    """Ids of the calls whose answers did not fit."""


class AssistAnswered(EventData, frozen=True, kw_only=True):
    """The assistant answered, or did not, for a `problem`."""

    type: ClassVar[str] = "assist_answered"
    exchange: int
    text: str = ""
    model: str = ""
    """The model's name as the endpoint gives it."""
    usage: Usage = Usage()
    duration_ms: int = 0
    problem: str | UnsetType = UNSET


class AssistInserted(EventData, frozen=True, kw_only=True):
    """Code of an answer was put into the editor."""

    type: ClassVar[str] = "assist_inserted"
    exchange: int
    buffer: str = ""
    characters: int = 0


class Corrected(EventData, frozen=True):
    """An organiser corrected something."""

    type: ClassVar[str] = "correction"
    extra: dict[str, Any] = {}


class Crashed(EventData, frozen=True):
    """The program failed; `log` is the name of the file that says more."""

    type: ClassVar[str] = "crash"
    error: str = ""
    message: str = ""
    log: str = ""


class AttemptEnded(EventData, frozen=True):
    """The attempt is over for an `EndReason`; `code` is the `GiveUpCode` of a solver who gave up."""

    type: ClassVar[str] = "attempt_ended"
    reason: str
    code: str | UnsetType = UNSET
    text: str | UnsetType = UNSET


class OtherEvent(EventData, frozen=True):
    """Data of an unknown type of event, or data that do not fit their type."""

    data: Mapping[str, Any]

    def written(self) -> dict[str, Any]:
        """Return them as they are."""
        return dict(self.data)


EVENTS: Mapping[str, type[EventData]] = {
    kind.type: kind for kind in EventData.__subclasses__() if kind is not OtherEvent
}
"""By type."""


def event_data(type: str, data: Mapping[str, Any]) -> EventData:
    """Return the data of a stored event as the record of its type."""
    kind = EVENTS.get(type)
    if kind is None:
        return OtherEvent(data)
    fields = kind.__struct_fields__
    if "extra" in fields:
        known = {name: value for name, value in data.items() if name in fields and name != "extra"}
        data = {**known, "extra": {name: value for name, value in data.items() if name not in known}}
    try:
        return msgspec.convert(data, kind)
    except (ValueError, RecursionError):
        return OtherEvent(data)


@dataclass(frozen=True, slots=True)
class JournalEvent:
    """One line of a journal. Times are milliseconds; `prev` is the sha256 of the line before, without its
    newline.
    """

    seq: int
    type: str
    utc_ms: int
    mono_ms: int
    data: EventData
    prev: str = ""

    @property
    def fits(self) -> bool:
        """Whether the data fit the type; data of an unknown type always do."""
        return self.type not in EVENTS or not isinstance(self.data, OtherEvent)


class Recorder(Protocol):
    """Records the events of an attempt."""

    def append(self, data: EventData) -> JournalEvent:
        """Write one event after the last and return it as written; if it is durable, once it is on the disk."""
        ...
