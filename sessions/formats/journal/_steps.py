"""The steps of gistpoint's own journals: the events of a person's or a model's attempt.

Actions are steps: the brief, calls, submissions, notes and pauses. Events that accompany an action
(heartbeats, views, affordances, drafts) belong to the preceding step, which counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec import UNSET

from gistpoint.core.attempts.clock import IdleStage
from gistpoint.core.attempts.events import (
    EVENTS,
    AffordanceUsed,
    AttemptEnded,
    AttemptStarted,
    BufferEdited,
    CallAnswered,
    CallMade,
    Crashed,
    EndWithdrawn,
    EventData,
    FocusMoved,
    HandedOver,
    Heartbeat,
    IdlePrompted,
    ModelTurn,
    NotesWritten,
    PassConfirmed,
    Paused,
    ProcessStarted,
    QuestionnaireAnswered,
    Resumed,
    SubmissionMade,
    SubmissionRun,
    SubmissionScored,
    SuspectMarked,
    event_data,
)
from gistpoint.core.attempts.identity import MODEL, PERSON, SIMULATED
from gistpoint.core.attempts.state import AttemptState, Submission, result_of
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.confirming import confirmation_lines, confirmation_words
from gistpoint.core.kinds.registry import declared
from gistpoint.core.readable import whole_seconds
from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.records.archives import Blob, FileBlob
from gistpoint.sessions.records.building import StepBuilder, Tally, duration
from gistpoint.sessions.records.format import Raw, RunReader, unknown_step
from gistpoint.sessions.records.model import (
    UNSOLVED,
    Actor,
    FileEdit,
    Json,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    Tokens,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_int,
    as_str,
    as_text,
    compact,
    dumped,
    in_seconds,
    joined,
    when,
)

_KINDS = {
    "attempt_started": StepKind.TASK,
    "process_started": StepKind.STATE,
    "view": StepKind.STATE,
    "test_run": StepKind.TEST,
    "score": StepKind.SCORE,
    "pause": StepKind.PAUSE,
    "resume": StepKind.PAUSE,
    "idle_prompt": StepKind.PAUSE,
    "note": StepKind.NOTE,
    "edit_buffer": StepKind.STATE,
    AffordanceUsed.type: StepKind.STATE,
    "suspect": StepKind.NOTE,
    "heartbeat": StepKind.STATE,
    "questionnaire": StepKind.NOTE,
    "correction": StepKind.NOTE,
    "crash": StepKind.ERROR,
    "attempt_ended": StepKind.END,
    "end_withdrawn": StepKind.STATE,
    "model_turn": StepKind.MESSAGE,
    "handover": StepKind.PAUSE,
    "assist_asked": StepKind.MESSAGE,
    "assist_answered": StepKind.MESSAGE,
    "assist_inserted": StepKind.STATE,
    "confirmation": StepKind.SCORE,
}
_GIST = "gist.py"
"""The path under which a gist is shown, because it is not in a repository."""
_OF_CALL = (CallMade, CallAnswered, SubmissionMade, SubmissionRun, SubmissionScored)
_IN_HEADER = ("mode", "budgets", "role", "study", "condition")
_OF_PERSON = (
    NotesWritten,
    SuspectMarked,
    QuestionnaireAnswered,
    Paused,
    Resumed,
    IdlePrompted,
    AffordanceUsed,
)
_OF_REPLY = (
    *("turn", "finish", "latency_ms", "retried", "tools", "fingerprint", "request_id"),
    *("extra", "host", "left_out", "echoed"),
)
"""The members of a model's reply that its step shows separately from its text and its cost."""
_NO_BRIEF = "The journal does not contain the brief: it was made by an earlier version."
_FOLDED = (Heartbeat, FocusMoved, AffordanceUsed, BufferEdited)
_GROUPS = {NotesWritten: "note", Paused: "pause", Resumed: "pause", IdlePrompted: "idle"}
"""Consecutive events of one group form one step."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a journal: the event as it is stored, and its data as a record of its type."""

    fields: dict[str, Json]
    type: str
    stored: dict[str, Json]
    data: EventData

    @property
    def at(self) -> float | None:
        return when(self.fields.get("utc_ms"))

    @property
    def folded(self) -> bool:
        """Whether the event accompanies an action; a paste does not, because it is an action."""
        paste = isinstance(self.data, AffordanceUsed) and self.data.kind == "paste"
        return isinstance(self.data, _FOLDED) and not paste

    @property
    def group(self) -> str:
        return _GROUPS.get(type(self.data), "")


def _line(fields: Json) -> _Line:
    event = as_dict(fields)
    type, stored = as_str(event.get("type")), as_dict(event.get("data"))
    return _Line(event, type, stored, event_data(type, stored))


def _fault_of(blob: Blob) -> str:
    """Return the fault of an attempt's journal, as a sentence; empty if there is none."""
    if isinstance(blob, FileBlob) and blob.path.name == JOURNAL:
        try:
            return read_journal(blob.path).fault
        except AttemptError as error:
            return error.message
    return ""


class JournalReader(RunReader):
    """The reader of an attempt's journal."""

    format = "gistpoint"
    in_lines = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._calls: dict[str, int] = {}
        self._start: _Line | None = None
        self._ending: AttemptEnded | None = None
        self._suspicious: dict[str, tuple[str, ...]] = {}
        self._passed: dict[str, Submission] = {}
        """The submissions that passed, by the id of their call."""
        self._score: float | None = None
        self._submissions = 0
        self._code = ""
        self._times: tuple[float, float] | None = None
        self._processes = 0
        self._tally = Tally()
        self._drivers: list[str] = []
        """The kinds of solvers that took over, in order."""
        self._of_driver: dict[str, str] = {}
        """The solver of each call that was made after a handover, by the call's id."""
        self._group = ""
        """The group that the last step belongs to; empty if nothing can join it."""
        self._fault = ""

    def check(self) -> None:
        """Compare the journal with its stored head; in a damaged journal, a pass does not count.

        This reads the whole journal, which a list of runs does not need.
        """
        self._fault = _fault_of(self.probe.blob)
        if self._fault:
            self.warnings.append(f"This journal is damaged, so its result does not count: {self._fault}")

    def place(self, fields: Json, step_count: int) -> int:
        line = _line(fields)
        self._learn(line)
        if isinstance(line.data, PassConfirmed):
            self._confirm(line.data)
        at = line.at
        # A confirmation is recorded after the end, perhaps much later, and does not prolong the attempt.
        if at is not None and not isinstance(line.data, PassConfirmed):
            self._times = (self._times[0] if self._times else at, at)
        if isinstance(line.data, _OF_CALL) and line.data.call_id:
            # A call's events join its step even if other events are recorded between them.
            self._group = ""
            return self._calls.setdefault(line.data.call_id, step_count)
        self._processes += isinstance(line.data, ProcessStarted)
        if step_count and self._accompanies(line):
            return step_count - 1
        self._group = line.group
        return step_count

    def had_a_step(self, fields: Json) -> bool:
        """Return True for events outside of calls, which used to be separate steps."""
        data = _line(fields).data
        return not (isinstance(data, _OF_CALL) and data.call_id)

    def _accompanies(self, line: _Line) -> bool:
        """Return whether an event belongs to the preceding step."""
        if line.folded:
            return True
        match line.data:
            case ProcessStarted():
                # The first one belongs to the beginning of the attempt; any other marks a restart of the
                # program.
                return self._processes == 1
            case Paused() | IdlePrompted(stage=IdleStage.ASKED):
                return False
        return bool(self._group) and line.group == self._group

    def _confirm(self, data: PassConfirmed) -> None:
        passed = self._passed.get(data.call_id)
        if passed is not None:
            self._passed[data.call_id] = replace(passed, confirmation=data.confirmation)

    def _learn(self, line: _Line) -> None:
        match line.data:
            case AttemptStarted():
                self._start = line
            case AttemptEnded() as data:
                self._ending = data
            case EndWithdrawn():
                self._ending = None
            case ModelTurn() as data:
                self._tally.add_usage(*_cost(data))
            case HandedOver() as data:
                self._drivers.append(data.to)
            case CallMade() as data if self._drivers:
                self._of_driver[data.call_id] = self._drivers[-1]
            case SubmissionMade() as data:
                self._submissions += 1
                self._code = data.gist or (data.replacement.code if data.replacement else "")
            case SubmissionRun() as data:
                self._suspicious[data.call_id] = data.suspicious or ()
            case SubmissionScored() as data if not data.trial:
                self._score = as_float(data.score)
                if data.solved:
                    marks = self._suspicious.get(data.call_id, ())
                    number = len(self._passed) + 1
                    self._passed[data.call_id] = Submission(
                        number, data.call_id, solved=True, suspicious=marks
                    )

    def header(self) -> Run:
        opening = self.probe.lines[0] if self.probe.lines else self.probe.object
        start = self._start or _line(opening)
        data = start.data if isinstance(start.data, AttemptStarted) else AttemptStarted()
        outcome = AttemptState(header=data, submissions=tuple(self._passed.values()))
        begun, ended = self._times or (None, None)
        passed = bool(self._passed) and not self._fault
        verdict = UNSOLVED if self._ending else ""
        if passed:
            verdict = result_of(True, outcome.suspicious).value
        return Run(
            self.format,
            as_str(data.schema or ""),
            id=data.attempt_id,
            task=data.task_id,
            model=data.model or "",
            agent=data.participant or _client(data),
            actor=_actor(data.actor),
            verdict=verdict,
            suspicious=outcome.suspicious,
            confirmation=confirmation_words(outcome) if passed else "",
            score=self._score,
            exit_status=self._ending.reason if self._ending else "",
            submissions=self._submissions if self._times else None,
            started=begun,
            duration_s=duration(begun, ended),
            submission=self._code,
            tokens=self._tally.tokens,
            cost=self._tally.cost,
            extra=self._extra(start, data, outcome),
            derived=frozenset({"duration_s"}),
        )

    def _extra(self, start: _Line, data: AttemptStarted, outcome: AttemptState) -> dict[str, Json]:
        is_mixed = {PERSON, MODEL} <= {data.actor, *self._drivers}
        known = Record({"simulated": data.actor == SIMULATED, "mixed": is_mixed})
        found = {**Record(start.stored).kept(*_IN_HEADER), **known.kept("simulated")}
        return {**found, **_confirmed(outcome), **known.kept("mixed")}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        events = [_line(raw.value) for raw in raws]
        actor = self.header().actor
        made = next((event.data for event in events if isinstance(event.data, CallMade)), None)
        if made is not None:
            driver = self._of_driver.get(made.call_id)
            return _turn(index, raws, events, made, _actor(driver) if driver else actor)
        unfolded = [event for event in events if not event.folded]
        main = (unfolded or events)[0]
        if isinstance(main.data, ModelTurn):
            return _reply(index, raws, main, main.data, actor)
        if main.type not in EVENTS:
            return unknown_step(index, raws, main.type or "event", dumped(raws[0].value))
        return (
            StepBuilder(
                index,
                raws,
                actor if isinstance(main.data, _OF_PERSON) else Actor.SYSTEM,
                _KINDS.get(main.type, StepKind.TOOL),
                main.type,
            )
            .text(_words(unfolded or [main], events))
            .span(main.at)
            .state(_state(events, main))
            .flag_if(main.type == Crashed.type, "error")
            .id(as_str(events[0].fields.get("seq")))
            .build()
        )


def _confirmed(outcome: AttemptState) -> dict[str, Json]:
    """Return the `confirmation` of a pass, and the `marks` that no longer make it suspicious, if any."""
    confirmation = outcome.confirmation
    found: dict[str, Json] = (
        {} if confirmation is None else {"confirmation": msgspec.to_builtins(confirmation)}
    )
    notes = [mark for mark in outcome.marks if mark not in outcome.suspicious]
    if notes:
        found["marks"] = [*notes]
    return found


def _client(data: AttemptStarted) -> str:
    """Return the name and version that a client of the task's server reported; empty for other solvers."""
    client = Record((data.solver or {}).get("client"))
    return joined([client.word("name"), client.word("version")], " ")


def _actor(kind: str) -> Actor:
    return Actor.PERSON if kind == PERSON else Actor.AGENT


def _state(events: list[_Line], main: _Line) -> dict[str, Json]:
    """Return `attempt`, the facts in a header, and `folded`, the numbers of folded events by type, if any."""
    others = [event.type for event in events if event is not main and isinstance(event.data, _FOLDED)]
    header = Record(main.stored if isinstance(main.data, AttemptStarted) else {})
    known: dict[str, Json] = {"attempt": header.without("brief"), "folded": dict(Counter(others))}
    return Record(known).kept("attempt", "folded")


def _words(unfolded: list[_Line], events: list[_Line]) -> str:
    """Return the text of a step in words; `unfolded` are the step's own events."""
    match unfolded[0].data:
        case AttemptStarted(brief=brief):
            return brief or _NO_BRIEF
        case ProcessStarted():
            return "the program was started again"
        case NotesWritten():
            return _last_note(unfolded)
        case Paused(reason=reason, text=text):
            return _joined(reason.replace("_", " "), text, _until_resumed(events))
        case Resumed():
            return _until_resumed(events)
        case IdlePrompted():
            return _idle_words(unfolded, events[-1])
        case PassConfirmed() as data:
            return "\n".join(confirmation_lines(data.confirmation))
        case AttemptEnded() as data:
            return _joined(
                data.reason.replace("_", " "), (data.code or "").replace("_", " "), data.text or ""
            )
    return _text_of_event(unfolded[0])


def _text_of_event(event: _Line) -> str:
    """Return the text of one event of a kind that does not form groups."""
    match event.data:
        case EndWithdrawn(by=by, text=text):
            return _joined("the end was withdrawn", by, text or "")
        case HandedOver(to=to, by=by, note=note):
            return _joined(f"to the {to}", by, note)
        case SuspectMarked(function=function, marked=marked):
            return f"{'' if marked else 'no longer: '}{function}"
        case AffordanceUsed(kind="paste") as paste:
            return _text_of_paste(paste)
    stored = event.stored
    if set(stored) == {"text"}:
        return as_text(stored.get("text"))
    return dumped(stored) if stored else ""


def _text_of_paste(paste: AffordanceUsed) -> str:
    """Return how much was pasted, and whether gistpoint had shown the text or it came from outside."""
    shown = "shown before" if paste.shown else "never shown"
    place = "from outside" if paste.outside else "copied here"
    return f"{paste.characters or 0} characters pasted, {shown}, {place}\nsha256 {paste.sha256 or ''}"


def _until_resumed(events: list[_Line]) -> str:
    return _span(events[0], next((event for event in events if isinstance(event.data, Resumed)), None))


def _joined(*words: str) -> str:
    return "\n".join(word for word in words if word)


def _last_note(unfolded: list[_Line]) -> str:
    # Each event contains the whole note: the last event of a group has the final text.
    notes = [event.data.text for event in unfolded if isinstance(event.data, NotesWritten)]
    return notes[-1] if notes else ""


def _idle_words(unfolded: list[_Line], last: _Line) -> str:
    prompts = [event.data for event in unfolded if isinstance(event.data, IdlePrompted)]
    answer = next((prompt.answer for prompt in prompts if prompt.answer), "")
    ms = next((as_float(prompt.idle_ms) for prompt in prompts if prompt.idle_ms is not UNSET), None)
    asked = prompts[0].since_mono_ms
    if ms is None and asked is not UNSET:
        since, until = as_float(asked), as_float(last.fields.get("mono_ms"))
        ms = duration(since, until)
    phrase = {"worked": "answered: I was working", "away": "answered: I was away"}.get(
        answer, "not answered: idle"
    )
    return _joined(f"for {whole_seconds(ms):,} s" if ms is not None else "", phrase)


def _span(first: _Line, last: _Line | None) -> str:
    start, end = first.at, last.at if last is not None else None
    if start is None or end is None:
        return "not ended"
    return f"for {whole_seconds(1000 * (end - start)):,} s"


def _reply(index: int, raws: Sequence[Raw], main: _Line, turn: ModelTurn, actor: Actor) -> Step:
    """Return the step of a model's reply; the calls that it asks for are separate steps, which follow."""
    tokens, cost = _cost(turn)
    state = Record(main.stored).kept(*_OF_REPLY)
    if turn.tool_calls:
        state["calls"] = [call.name for call in turn.tool_calls]
    if any(call.extra for call in turn.tool_calls):
        state["extra_of_calls"] = [call.extra or {} for call in turn.tool_calls]
    if turn.unmade:
        state["not_made"] = [call.name for call in turn.unmade]
    return (
        StepBuilder(index, raws, actor, StepKind.MESSAGE, main.type)
        .thought(turn.reasoning or "")
        .text(_joined(turn.content, turn.refusal or ""))
        .span(main.at)
        .replied([main.at], asked=_asked(main, state))
        .spent(tokens, cost)
        .model(turn.model)
        .state(state)
        .id(as_str(main.fields.get("seq")))
        .build()
    )


def _asked(main: _Line, state: dict[str, Json]) -> float | None:
    latency = in_seconds(as_float(state.get("latency_ms")))
    return None if latency is None or main.at is None else main.at - latency


def _cost(turn: ModelTurn) -> tuple[Tokens, float | None]:
    """Return the tokens of a turn and its cost in US dollars or None, including those of lost requests."""
    tokens, cost = Tokens(), None
    for part in (turn.usage, turn.lost or None):
        if part is not None:
            tokens += Tokens(
                part.prompt_tokens, part.completion_tokens, part.cached_tokens, part.reasoning_tokens
            )
            cost = part.cost_usd if cost is None else cost + (part.cost_usd or 0.0)
    return tokens, cost


def _turn(index: int, raws: Sequence[Raw], events: list[_Line], made: CallMade, actor: Actor) -> Step:
    stored = {event.type: Record(event.stored) for event in events}
    calls = (_call(made),)
    answers = [event for event in events if isinstance(event.data, CallAnswered)]
    results = [_answer(made, event.data) for event in answers if isinstance(event.data, CallAnswered)]
    refused = bool(results) and bool(results[-1].is_error)
    submitted = SubmissionMade.type in stored
    replacement = stored.get(SubmissionMade.type, Record()).inner("replacement")
    # A repair submits the code of a function in a file of the repository, not a gist.
    edits = (FileEdit(replacement.word("path"), None, None),) if replacement else _edits(calls)
    tokens = Record(made.extra.get("tokens"))
    counts = (as_int(tokens.first(key, f"{key}_tokens")) for key in ("prompt", "completion", "cached"))
    return (
        StepBuilder(index, raws, actor, StepKind.SUBMIT if submitted else kind_of(calls), made.tool)
        .thought(made.thought or "")
        .calls(calls)
        .results(results[-1:])
        .edits(edits)
        .span(events[0].at, answers[-1].at if answers else None)
        .spent(Tokens(*counts), as_float(made.extra.get("cost")))
        .state(_state_of_call(stored, replacement))
        .flag_if(refused, "refused")
        .flag_if(refused, "error")
        .id(as_str(events[0].fields.get("seq")))
        .build()
    )


def _call(made: CallMade) -> RunCall:
    if made.arguments is UNSET or made.arguments is None:
        return RunCall(made.call_id, made.tool, made.raw or "")
    return RunCall(made.call_id, made.tool, compact(made.arguments), made.arguments)


def _answer(made: CallMade, data: CallAnswered) -> Result:
    return Result(made.call_id, data.text, data.refused, None, in_seconds(as_float(data.duration_ms)))


def _state_of_call(stored: dict[str, Record], replacement: Record) -> dict[str, Json]:
    answer = stored.get(CallAnswered.type, Record())
    state: dict[str, Json] = {"budget": answer.get("budget")} if answer.has("budget") else {}
    state |= stored[CallMade.type].kept("automatic", "typed", "malformed")
    for kind in (SubmissionRun.type, SubmissionScored.type):
        if kind in stored:
            state[kind] = stored[kind].without("call_id")
    return {**state, "replacement": replacement.members} if replacement else state


def _edits(calls: tuple[RunCall, ...]) -> tuple[FileEdit, ...]:
    """Return the change that a call to a gist's tools makes to the gist; otherwise those in its arguments."""
    arguments = calls[0].parsed or {}
    tool = declared(calls[0].tool)
    if tool is None or not tool.writes_gist:
        return edits_of(calls)
    if tool.replaces_text:
        return (FileEdit(_GIST, None, as_str(arguments.get("content"))),)
    return (FileEdit(_GIST, as_str(arguments.get("old")), as_str(arguments.get("new"))),)
