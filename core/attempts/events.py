"""The events of an attempt. An attempt is a list of events; nothing about it is stored elsewhere.

Every event has its number, two clocks, the hash of the line before it, and data: one record per type, whose
fields are written in the order of their declaration. A default is the meaning of a member that an earlier
version did not write; members added by a newer version are ignored. Events of unknown types are kept and
shown (decision 71).
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
from gistpoint.core.decoding import decodable
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tools.declaration import Replacement, Revealed

SCHEMA_VERSION = 1
_SHORT = 1_000
"""Unsubmitted text of at most this many code points is stored whole, which is cheap and readable."""


class Pane(StrEnum):
    """The panes that can have the focus, which decides the clock that runs."""

    BRIEF = "brief"
    TREE = "tree"
    CODE = "code"
    CONSOLE = "console"
    RESULT = "result"
    EDITOR = "editor"
    NOTES = "notes"
    ASSIST = "assist"
    """The chat with the assistant that a study's condition offers."""
    GIST_HELP = "gist_help"
    """The gist that a study's condition shows with a repair."""
    MODEL = "model"
    """No pane: a model drives the attempt and thinks."""


class EventData(msgspec.Struct, frozen=True):
    """The data of an event; unset fields are not stored."""

    type: ClassVar[str]
    """The stored name of the type."""
    durable: ClassVar[bool] = True
    """Whether the event is synced to disk before the program continues; others are synced in groups.

    The event type declares this, so callers have no choice (decision 71).
    """
    spreads: ClassVar[bool] = True
    """Whether `extra` holds the members that the type does not declare, and is stored in their place."""

    def written(self) -> dict[str, Any]:
        """Return the data as stored: without unset members, and with those of `extra` if `spreads`."""
        data: dict[str, Any] = {}
        for name, value in msgspec.to_builtins(self).items():
            data.update(value if name == "extra" and self.spreads else {name: value})
        return data


class AttemptStarted(EventData, frozen=True):
    """The header of an attempt; `state.NOT_STARTED` before there is one."""

    type: ClassVar[str] = "attempt_started"
    schema: int = 0
    gistpoint: str = ""
    """The version of gistpoint that began the attempt."""
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
    """The affordances that are switched off."""
    extra: dict[str, Any] = {}
    """The data of the task's kind: the hash of its tools, and what the solver begins with."""
    brief: str = ""
    brief_sha256: str = ""
    budgets: Budgets = Budgets()
    backend: BackendRecord = BackendRecord("")
    tool_semantics: int = 1
    """The rule for calls that can't be carried out: free under 1; for 2, see `TaskHarness.refuse`."""
    tool_names: tuple[str, ...] | UnsetType = UNSET
    """The names of the attempt's tools, whatever later versions offer; unset in earlier journals."""
    model: str | UnsetType = UNSET
    """The requested name of the model."""
    solver: dict[str, Any] | UnsetType = UNSET
    """The settings of a program as solver: the endpoint's host, options, prompts."""
    protocol_sha256: str | UnsetType = UNSET
    """The hash of the study's protocol in force."""
    assistance: str | UnsetType = UNSET
    """The help offered by the study's condition."""
    gist_help_sha256: str | UnsetType = UNSET
    """The hash of the gist that the condition shows with a repair."""
    conditions_sha256: str | UnsetType = UNSET
    """The digest of the conditions (`core/tasks/conditions.py`); unset in earlier journals."""


class ProcessStarted(EventData, frozen=True):
    """Records that a process began or resumed the attempt."""

    type: ClassVar[str] = "process_started"
    boot_id: str = ""
    gistpoint: str = ""


class FocusMoved(EventData, frozen=True):
    """Records that a pane of `Pane` got the focus; a pane that this version does not know changes nothing."""

    type: ClassVar[str] = "view"
    durable: ClassVar[bool] = False
    pane: str = ""


class CallMade(EventData, frozen=True, kw_only=True):
    """Records a call to a tool; `thought`, `raw` and `turn` are as in `engine.Attempt.call`."""

    type: ClassVar[str] = "tool_call"
    extra: dict[str, Any] = {}
    """Further data of the caller, such as a model's tokens and cost."""
    thought: str | UnsetType = UNSET
    tool: str
    malformed: str | UnsetType = UNSET
    """The reason why the call can't be carried out (`malformed.Malformed`)."""
    arguments: dict[str, Any] | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    typed: bool | UnsetType = UNSET
    """Set for a step added by the program to save typing."""
    automatic: str | UnsetType = UNSET
    """The limit or `EndReason` that made the program call the tool."""
    code: str | UnsetType = UNSET
    """The `GiveUpCode` of a hand-in by which a solver gives up."""
    call_id: str
    turn: int | UnsetType = UNSET


class BudgetLeft(msgspec.Struct, frozen=True):
    """The budgets left after a call; an unset one did not change."""

    tool_uses: int | UnsetType = UNSET
    submissions: int | UnsetType = UNSET
    scores: int | UnsetType | None = UNSET


class CallAnswered(EventData, frozen=True):
    """Records the answer to a call."""

    type: ClassVar[str] = "tool_result"
    call_id: str
    text: str = ""
    refused: bool = False
    duration_ms: int = 0
    budget: BudgetLeft = BudgetLeft()
    revealed: Revealed | UnsetType = UNSET


class SubmissionMade(EventData, frozen=True):
    """Records that a replacement or a gist was submitted."""

    type: ClassVar[str] = "submit"
    call_id: str
    number: int | UnsetType = UNSET
    replacement: Replacement | UnsetType = UNSET
    persistent: bool | UnsetType = UNSET
    """Whether the replacement persists when others follow."""
    gist: str | UnsetType = UNSET


class SubmissionRun(EventData, frozen=True):
    """Records the run of a submission's tests, or of a gist's command."""

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
    """Records the score of a submission or, with `trial`, of code that was not submitted."""

    type: ClassVar[str] = "score"
    call_id: str
    score: float
    solved: bool = False
    changed: tuple[str, ...] | UnsetType = UNSET
    gist: dict[str, Any] | UnsetType = UNSET
    """The score in the form of `core.kinds.gist.score`, with evidence by line under `lines`."""
    trial: bool | UnsetType = UNSET
    text: str | UnsetType = UNSET
    """The text scored in a trial."""


class PassConfirmed(EventData, frozen=True):
    """The confirmation of a submission that passed; it follows the end of the attempt.

    The fields are those of `Confirmation`. If a submission has several confirmations, the last one counts.
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
        return msgspec.convert({"call_id": call_id, **msgspec.to_builtins(confirmation)}, decodable(cls))

    @property
    def confirmation(self) -> Confirmation:
        """The confirmation; values of a newer version count as unconfirmed, and its detail quotes them."""
        values = msgspec.to_builtins(self)
        try:
            return msgspec.convert(values, decodable(Confirmation))
        except msgspec.ValidationError:
            newer = f"A newer version of gistpoint reports: {self.result} {self.reason or ''}".rstrip()
            known = {**values, "result": Confirmed.UNCONFIRMED, "reason": None, "detail": newer}
            return msgspec.convert(known, decodable(Confirmation))


class RequestedCall(msgspec.Struct, frozen=True):
    """A call as a model requested it; `arguments` is the text as received."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: dict[str, Any] | UnsetType = UNSET
    """The call's other members, such as a signature of the thought behind it, as received."""


class ModelTurn(EventData, frozen=True, kw_only=True):
    """Records a model's reply. Its calls follow as separate events, with the same `turn`."""

    type: ClassVar[str] = "model_turn"
    # A host chooses the names of these members, which must not be confused with the event's own members.
    spreads: ClassVar[bool] = False
    turn: int
    """The number of the turn in the attempt, counted from 1."""
    content: str = ""
    reasoning: str | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    """The model's own words if it declines to answer."""
    tool_calls: tuple[RequestedCall, ...] = ()
    unmade: tuple[RequestedCall, ...] | UnsetType = UNSET
    """The calls after the first in a reply whose calls are text; they are not carried out (decision 151)."""
    finish: str = ""
    """The endpoint's word for the reason why the reply ended."""
    model: str = ""
    """The model's name according to the endpoint."""
    fingerprint: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    usage: Usage = Usage()
    lost: Usage | UnsetType = UNSET
    """The usage of earlier, failed attempts at the request."""
    latency_ms: int = 0
    """The time from request to reply, without waits for the endpoint."""
    retried: tuple[str, ...] = ()
    """The failures of earlier attempts at the request (`chat.ChatProblem`)."""
    tools: tuple[str, ...] | UnsetType = UNSET
    """The names of the tools offered, if they differ from those offered before."""
    extra: dict[str, Any] | UnsetType = UNSET
    """The message's other members, such as signed reasoning, as received."""
    host: str | UnsetType = UNSET
    """The host and port that sent `extra` and the calls' `extra`, which are sent back to no other host."""
    left_out: tuple[str, ...] | UnsetType = UNSET
    """The names of other members that were too large to be kept."""
    echoed: bool | UnsetType = UNSET
    """Set if the reasoning is sent back with the conversation."""
    streamed: bool | UnsetType = UNSET
    """Whether the reply was received in pieces."""


class HandedOver(EventData, frozen=True, kw_only=True):
    """Records a change of driver; `to` is `model` or `person`.

    An attempt that both have driven measures neither (decision 79).
    """

    type: ClassVar[str] = "handover"
    to: str
    by: str = ""
    """The pseudonym of the person who takes over or hands over."""
    note: str = ""
    """The person's message to the model."""


class Paused(EventData, frozen=True):
    """Records that the clock was stopped for a `PauseReason`."""

    type: ClassVar[str] = "pause"
    reason: str = ""
    text: str = ""
    thinking_ms: int | UnsetType = UNSET
    """The milliseconds of thinking before the pause that count as part of it (decision 167)."""


class Resumed(EventData, frozen=True):
    """Records that the clock was started again."""

    type: ClassVar[str] = "resume"


class IdlePrompted(EventData, frozen=True):
    """Records a stage of time without input (`stage`, an `IdleStage`), or the solver's answer about it."""

    type: ClassVar[str] = "idle_prompt"
    stage: str | UnsetType = UNSET
    since_mono_ms: int | UnsetType = UNSET
    idle_ms: int | UnsetType = UNSET
    answer: str | UnsetType = UNSET
    """`worked` or `away`."""


class NotesWritten(EventData, frozen=True):
    """Records that the notes were changed to this text."""

    type: ClassVar[str] = "note"
    durable: ClassVar[bool] = False
    text: str = ""


class BufferEdited(EventData, frozen=True, kw_only=True):
    """Unsubmitted text: whole, or a part that replaces `removed` code points at `at`."""

    type: ClassVar[str] = "edit_buffer"
    durable: ClassVar[bool] = False
    buffer: str
    at: int | UnsetType = UNSET
    removed: int | UnsetType = UNSET
    text: str = ""

    @classmethod
    def between(cls, buffer: str, before: str | None, now: str) -> BufferEdited:
        """Return the event for a change of text: with the whole text, or with the changed part only.

        Typed text is saved many times a minute, and full copies would fill the disk.
        """
        complete = cls(buffer=buffer, text=now)
        if before is None or len(now) <= _SHORT:
            return complete
        head = _common(before, now)
        tail = _common(before[head:][::-1], now[head:][::-1])
        part = now[head : len(now) - tail]
        if len(part) * 2 > len(now):
            return complete
        return cls(buffer=buffer, at=head, removed=len(before) - head - tail, text=part)

    def after(self, before: str | None) -> str:
        """Return the text after the event, given the text before it, which is None if there is none."""
        if self.at is UNSET:
            return self.text
        old = before or ""
        return f"{old[: self.at]}{self.text}{old[self.at + (self.removed or 0) :]}"


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two strings, found by bisection."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class AffordanceUsed(EventData, frozen=True):
    """The use of an affordance, which costs no budget and is not offered to models."""

    type: ClassVar[str] = "comfort"
    durable: ClassVar[bool] = False
    kind: str = ""
    times: int = 1
    characters: int | UnsetType = UNSET
    """Set for a paste, like the following fields; the text is not recorded."""
    sha256: str | UnsetType = UNSET
    shown: bool | UnsetType = UNSET
    """Whether the solver had been shown the text, ignoring indentation and empty lines."""
    outside: bool | UnsetType = UNSET
    """Whether the text came through the terminal rather than from the program's own clipboard."""

    @classmethod
    def paste(cls, text: str, shown_texts: Iterable[str], *, outside: bool) -> AffordanceUsed:
        """Return the event of a paste; `shown_texts` are all texts shown to the solver.

        `outside` is true if the text came through the terminal rather than from the program's own clipboard.
        """
        wanted = _without_layout(text)
        shown = any(wanted in _without_layout(known) for known in shown_texts)
        return cls("paste", characters=len(text), sha256=sha256_of_text(text), shown=shown, outside=outside)


def _without_layout(text: str) -> str:
    return "\n".join(stripped for line in text.splitlines() if (stripped := line.strip()))


class SuspectMarked(EventData, frozen=True):
    """Records that a function was marked as suspect or, if not `marked`, that the mark was removed."""

    type: ClassVar[str] = "suspect"
    function: str
    marked: bool = True


class Heartbeat(EventData, frozen=True):
    """A regular sign that the attempt is alive."""

    type: ClassVar[str] = "heartbeat"
    durable: ClassVar[bool] = False


class QuestionnaireAnswered(EventData, frozen=True):
    """The solver's answers to questions about the attempt, by item in `values`; None if declined."""

    type: ClassVar[str] = "questionnaire"
    extra: dict[str, Any] = {}
    questionnaire: str = ""
    """The questionnaire's id in the study."""
    sha256: str = ""
    """The hash of its wording."""
    values: dict[str, Any] = {}
    seconds: float = 0.0


class AssistAsked(EventData, frozen=True, kw_only=True):
    """A person's question to the assistant; the context sent can be rebuilt from the earlier events."""

    type: ClassVar[str] = "assist_asked"
    exchange: int
    """The number of the exchange in the attempt, counted from 1."""
    text: str
    buffer: str | UnsetType = UNSET
    """The name of the buffer in the editor, if any."""
    template: str = ""
    context_sha256: str = ""
    calls: int = 0
    """The number of answers to calls that the request contained."""
    left_out: tuple[str, ...] = ()
    """The ids of the calls whose answers did not fit into the context."""


class AssistAnswered(EventData, frozen=True, kw_only=True):
    """The assistant's answer, or the `problem` that prevented one."""

    type: ClassVar[str] = "assist_answered"
    exchange: int
    text: str = ""
    model: str = ""
    """The model's name according to the endpoint."""
    usage: Usage = Usage()
    duration_ms: int = 0
    problem: str | UnsetType = UNSET


class AssistInserted(EventData, frozen=True, kw_only=True):
    """Records that code from an answer was inserted into the editor."""

    type: ClassVar[str] = "assist_inserted"
    exchange: int
    buffer: str = ""
    characters: int = 0


class Corrected(EventData, frozen=True):
    """A correction by an organiser."""

    type: ClassVar[str] = "correction"
    extra: dict[str, Any] = {}


class Crashed(EventData, frozen=True):
    """A failure of the program; `log` is the name of the log file with details."""

    type: ClassVar[str] = "crash"
    error: str = ""
    message: str = ""
    log: str = ""


class AttemptEnded(EventData, frozen=True):
    """The end of the attempt for an `EndReason`.

    `code` is the `GiveUpCode` of a solver who gave up, the problem of an attempt that was settled, or
    `SCAFFOLD_INTERRUPTED`.
    """

    type: ClassVar[str] = "attempt_ended"
    reason: str
    code: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    settled_by: str | UnsetType = UNSET
    """The person who settled the halted attempt, possibly empty; unset for any other end (decision 150)."""


class EndWithdrawn(EventData, frozen=True):
    """The withdrawal of an end that was settled: the attempt can be continued (decision 150)."""

    type: ClassVar[str] = "end_withdrawn"
    by: str = ""
    text: str | UnsetType = UNSET


class OtherEvent(EventData, frozen=True):
    """Data of an unknown type of event, or data that do not fit their type."""

    data: Mapping[str, Any]

    def written(self) -> dict[str, Any]:
        """Return the data unchanged."""
        return dict(self.data)


EVENTS: Mapping[str, type[EventData]] = {
    kind.type: kind for kind in EventData.__subclasses__() if kind is not OtherEvent
}
"""The record of each type of event."""


def event_data(type: str, data: Mapping[str, Any]) -> EventData:
    """Return the data of a stored event as the record of its type.

    An event of an unknown type, or with data that do not fit its type, becomes an `OtherEvent`.
    """
    kind = EVENTS.get(type)
    if kind is None:
        return OtherEvent(data)
    fields = kind.__struct_fields__
    if "extra" in fields and kind.spreads:
        declared = {name: value for name, value in data.items() if name in fields and name != "extra"}
        data = {**declared, "extra": {name: value for name, value in data.items() if name not in declared}}
    try:
        return msgspec.convert(data, decodable(kind))
    except (ValueError, RecursionError):
        return OtherEvent(data)


@dataclass(frozen=True, slots=True)
class JournalEvent:
    """One line of a journal; times are in milliseconds.

    `prev` is the sha256 of the previous line, without its newline.
    """

    seq: int
    type: str
    utc_ms: int
    mono_ms: int
    data: EventData
    prev: str = ""

    @property
    def fits(self) -> bool:
        """Whether the data fit the type, as data of an unknown type always do."""
        return self.type not in EVENTS or not isinstance(self.data, OtherEvent)


class Recorder(Protocol):
    """Records the events of an attempt."""

    def append(self, data: EventData) -> JournalEvent:
        """Append one event and return it as written; a durable one is synced to disk on return."""
        ...
