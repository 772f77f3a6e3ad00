"""The engine of an attempt: turns a solver's actions into events, and keeps the folded state.

Every method may be called from any thread. One tool call runs at a time; the other methods stay responsive
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from threading import RLock
from typing import Any

from msgspec import UNSET, UnsetType, structs

from gistpoint.core.attempts.clock import Clock, IdleStage
from gistpoint.core.attempts.events import (
    SCHEMA_VERSION,
    AffordanceUsed,
    AttemptEnded,
    AttemptStarted,
    BudgetLeft,
    BufferEdited,
    CallAnswered,
    CallMade,
    EventData,
    FocusMoved,
    HandedOver,
    Heartbeat,
    IdlePrompted,
    JournalEvent,
    ModelTurn,
    NotesWritten,
    Pane,
    Paused,
    ProcessStarted,
    QuestionnaireAnswered,
    Recorder,
    Resumed,
    SuspectMarked,
)
from gistpoint.core.attempts.harness import CallOutcome, Judged, Price, TaskJudge
from gistpoint.core.attempts.identity import Enrolment, new_attempt_id, participant_code
from gistpoint.core.attempts.malformed import Malformed, arguments_in, bound_again, malformed_call
from gistpoint.core.attempts.parts import AttemptCall
from gistpoint.core.attempts.reasons import EndReason, GiveUpCode, PauseReason
from gistpoint.core.attempts.state import AttemptState, advance, fold
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.errors import AttemptError
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.ports import TimeSource
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.core.tasks.conditions import conditions_sha256
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import (
    NOTHING_REVEALED,
    BoundCall,
    RefusalError,
    Tool,
    ToolOutput,
    find_tool,
    named,
)
from gistpoint.core.trees import SourceTree

TOOL_SEMANTICS = 2
"""The tool semantics of new attempts: a call that can't be carried out costs a use (free under 1)."""
Listener = Callable[[JournalEvent, AttemptState], None]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a tool call."""

    call_id: str
    text: str
    refused: bool = False
    found: Judged | None = None
    """The judgement behind the answer, for screens that may show details; None if nothing was judged."""


class Attempt:
    """An attempt in progress, or one read from its journal.

    Raises `AttemptError` if the data of an event in `events` do not fit its type. After the end of the
    attempt, nothing more is recorded of the solver's focus, input and answers; notes can still be saved.
    After `leave`, every method that records anything raises `AttemptError`.
    """

    def __init__(
        self,
        task: Task,
        judge: TaskJudge,
        recorder: Recorder,
        clock: TimeSource,
        *,
        events: Iterable[JournalEvent] = (),
        version: str = "",
    ) -> None:
        self.state = fold(events, AttemptState(of_kind=judge.blank))
        state = self.state
        self.task = judge.as_recorded(task, state.header.extra, state.budgets) if state.started else task
        """The task with this attempt's own budgets and settings."""
        self._harness = judge.harness(self.task)
        self.judge = judge
        self._recorder = recorder
        self._time = clock
        self._version = version
        self._lock = RLock()
        self._calling = self._left = False
        self._listeners: list[Listener] = []
        self._harness.restore(self.state)
        self.found: dict[str, Judged] = {}
        """The judgements made by this process, by call id."""

    def start(
        self,
        enrolment: Enrolment,
        *,
        attempt_id: str = "",
        budgets: Budgets | None = None,
        tool_semantics: int = TOOL_SEMANTICS,
    ) -> None:
        """Write the events that begin a new attempt, with the given budgets or the task's.

        A replay passes the tool semantics of the run that it repeats. Raises `AttemptError` for budgets
        without a tool use or a submission, and for an invalid participant code.
        """
        participant_code(enrolment.participant)
        harness, identity = self._harness, attempt_id or new_attempt_id(self._time.utc_ms())
        allowed = budgets or harness.budgets(enrolment.role)
        if allowed.tool_uses < 1 or allowed.submissions < 1:
            raise AttemptError("An attempt needs at least one tool use and one submission.")
        self.task = harness.with_budgets(allowed)
        brief, of_kind = harness.brief(self.task), dict(harness.start_data(allowed))
        self.append(
            AttemptStarted(
                schema=SCHEMA_VERSION,
                gistpoint=self._version,
                attempt_id=identity,
                task_id=self.task.id,
                mode=str(self.task.mode),
                tree_sha256=self.task.tree_sha256,
                **_enrolled(enrolment),
                extra=of_kind,
                brief=brief,
                brief_sha256=sha256_of_text(brief),
                budgets=self.task.budgets,
                backend=harness.backend,
                tool_semantics=tool_semantics,
                tool_names=tuple(
                    tool.name
                    for tool in harness.tools(structs.replace(self.state, budgets=self.task.budgets))
                ),
                conditions_sha256=conditions_sha256(self.task, of_kind, brief, tool_semantics),
            )
        )
        self._process_started()

    def resume_process(self) -> None:
        """Record that a new process resumes the attempt, and end it if nothing is left to do.

        `finish_pending` completes an interrupted call. Raises `AttemptError` if the journal has no start, if
        it belongs to another task or to another version of this one, or if a newer gistpoint began it.
        """
        if not self.state.started:
            raise AttemptError(
                "The journal does not contain the start of an attempt.", hint="Start the task again."
            )
        if self.state.header.task_id != self.task.id:
            raise AttemptError("The attempt belongs to another task, or the task has changed since.")
        if self.state.header.tool_semantics > TOOL_SEMANTICS:
            raise AttemptError(
                "The attempt was begun by a newer version of gistpoint.", hint="Resume it with that version."
            )
        self._process_started()
        self._end_if_over()

    @property
    def brief(self) -> str:
        """The brief with which the attempt was started, even if the task's brief has changed since then.

        If the journal does not contain it, this is the task's current brief.
        """
        return self.state.header.brief or self._harness.brief(self.task)

    @property
    def tree(self) -> SourceTree:
        """The current repository, with accepted replacements."""
        return self._harness.tree

    def files(self) -> Mapping[str, bytes | None]:
        """Return the files changed so far by path, including the last submission's; None if removed."""
        return self._harness.files(self.state)

    @property
    def backend(self) -> BackendRecord:
        """The isolation in which code runs."""
        return self._harness.backend

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools with which the attempt was started, without any that this version does not have."""
        names, tools = self.state.header.tool_names, self._harness.tools(self.state)
        return tools if names is UNSET else tuple(tool for tool in tools if tool.name in names)

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` after every event, on the thread that wrote it."""
        self._listeners.append(listener)

    def clock(self) -> Clock:
        """Return the clock at the current moment."""
        with self._lock:
            return self.state.clock.at(self._time.mono_ms(), self._time.utc_ms())

    def offered(self) -> tuple[Tool, ...]:
        """Return the tools that can be called now; none after the end of the attempt."""
        if self.state.ended:
            return ()
        # With a later version's tool, the rest of an attempt would have more tools than its beginning
        # (decision 72).
        began_with = self.tools
        return tuple(tool for tool in self._harness.offered(self.state) if tool in began_with)

    def callable_tool(self, name: str) -> Tool:
        """Return the tool with this name. Raises `RefusalError` with the reason if it can't be called now."""
        return self._offered(named(self.tools, name))

    def _offered(self, tool: Tool) -> Tool:
        if tool not in self.offered():
            raise RefusalError(self._harness.refusal(tool))
        return tool

    def price(self, tool: Tool) -> Price:
        """Return the cost of a call to `tool`."""
        return self._harness.price(tool, self.state)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        *,
        turn: int | None = None,
        raw: str = "",
        run: RunContext = UNATTENDED,
        thought: str = "",
        automatic: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool, and return its answer. Raises `AttemptError` if no call can be made now.

        Every call is journalled, even one that can't be carried out. `raw` is the text of a model's arguments
        as received, which is parsed if `arguments` is None. `turn` is the turn of the reply that requests the
        call; the default is the call's number. `automatic` is the reason if the program calls for the solver.
        `extra` is journalled with the call, such as its id in a model's reply.

        A submission whose run is cancelled counts. If the kind of task requires it, unsaved typing is saved
        first, in a separate step. A call that uses up the last step also hands in the current text.
        """
        self._complete_automatic(run)
        with self._lock:
            self.check_time()
        self._complete_automatic(run)
        with self._lock:
            self._require_running()
            if self._calling or self.state.pending is not None:
                raise AttemptError("A tool call is running.", hint="Wait for it, or cancel it.")
            tool = find_tool(self.tools, name)
            made, bound = _call_event(name, tool, arguments_in(raw) if arguments is None else arguments, raw)
            self._save_typed(tool, made.arguments or {})
            made = structs.replace(made, thought=thought or UNSET, automatic=automatic or UNSET)
            call = self._begin(structs.replace(made, extra=dict(extra or {})), turn)
            self._calling = True
        try:
            result = self._answer(call, run, bound)
        finally:
            self._calling = False
        self._complete_automatic(run)
        return result

    def finish_pending(self, *, run: RunContext = UNATTENDED) -> ToolResult | None:
        """Complete calls begun by a limit or by a process that died; return the last answer, if any."""
        result = None
        while True:
            with self._lock:
                call = self.state.pending
                if call is None or self._calling:
                    return result
                self._calling = True
            try:
                result = self._answer(call, run)
            finally:
                self._calling = False

    def leave(self) -> None:
        """Stop recording; the next process will finish the call in progress."""
        with self._lock:
            self._left = True

    def hand_in(self, reason: EndReason, code: GiveUpCode | None = None) -> None:
        """Hand in the last saved text, because of a limit or, with `code`, because the solver gives up.

        `finish_pending` judges it, in this process or in the next one: a limit can be noticed where the
        program must not wait for a judgement (decision 28). In kinds of task without automatic hand-ins, the
        attempt ends at once. Nothing is done while a call runs or after the end.
        """
        with self._lock:
            if self.state.ended or self.state.pending is not None:
                return
            tool = self._harness.last_call(self.state)
            if tool is None:
                self.append(AttemptEnded(reason.value, _value(code)))
                return
            self._save_typed(tool, {})
            made = CallMade(
                call_id="", tool=tool.name, arguments={}, automatic=reason.value, code=_value(code)
            )
            self._begin(made)

    def model_turn(self, turn: ModelTurn) -> None:
        """Record a model's reply before its calls. Raises `AttemptError` if the attempt is paused or over."""
        with self._lock:
            self._require_running()
            self.append(turn)

    def hand_over(self, to: str, *, by: str = "", note: str = "") -> None:
        """Record a change of driver: `to` is `model` or `person`, `by` the person's pseudonym.

        Raises `AttemptError` if the attempt is paused or over.
        """
        with self._lock:
            self._require_running()
            self.append(HandedOver(to=to, by=by, note=note))

    def view(self, pane: Pane) -> None:
        """Record that a pane got the focus, unless it had the focus already or the attempt has ended."""
        with self._lock:
            if not self.state.ended and self.state.pane is not pane:
                self.append(FocusMoved(pane.value))

    def pause(self, reason: PauseReason, text: str = "") -> None:
        """Stop the clock. Raises `AttemptError` while a call runs, and if the attempt is paused or over."""
        with self._lock:
            self._require_running()
            if self.state.pending is not None:
                raise AttemptError("A tool call is running.", hint="Wait for the answer, then pause.")
            self.append(Paused(reason.value, text))

    def resume(self) -> None:
        """Restart the clock, if it is paused."""
        with self._lock:
            if self.state.pause is not None:
                self.append(Resumed())

    def answer(self, answered: QuestionnaireAnswered) -> None:
        """Record answers to a questionnaire, given in a pause or during work; ignored after the end."""
        with self._lock:
            if not self.state.ended:
                self.append(answered)

    def ask_idle(self, since_mono_ms: int) -> None:
        """Record a question about the time since the last input, which counts as idle from now on.

        Ignored after the end, and while another question is open.
        """
        with self._lock:
            if not self.state.ended and not self.state.doubt.idle:
                self.append(IdlePrompted(IdleStage.ASKED.value, since_mono_ms))

    def cover_idle(self) -> None:
        """Record that everything is hidden until the solver answers an open question of `ask_idle`."""
        self._idle_stage(IdleStage.COVERED)

    def input_again(self) -> None:
        """Record renewed input after a question; earlier time stays idle until the solver answers."""
        self._idle_stage(IdleStage.INPUT)

    def answer_idle(self, *, away: bool) -> None:
        """Record the solver's answer for all unanswered time without input: either `away` or at work."""
        with self._lock:
            if self.state.doubt:
                idle_ms = self.state.doubt.total_ms(self.clock())
                self.append(IdlePrompted(idle_ms=idle_ms, answer="away" if away else "worked"))

    def _idle_stage(self, stage: IdleStage) -> None:
        with self._lock:
            if self.state.doubt.idle:
                self.append(IdlePrompted(stage.value))

    def note(self, text: str) -> None:
        """Save the notes if they changed; they are not synced to disk at once."""
        with self._lock:
            if text != self.state.notes:
                self.append(NotesWritten(text))

    def edit(self, buffer: str, text: str) -> None:
        """Save unsubmitted code under the name of the function or file that the code replaces.

        It is not synced to disk at once.
        """
        with self._lock:
            saved = self.state.buffered(buffer)
            if saved != text and not self.state.ended:
                self.append(BufferEdited.between(buffer, saved, text))

    def suspect(self, function: str, *, marked: bool = True) -> None:
        """Mark a function as suspect or, if not `marked`, remove the mark, at no cost."""
        with self._lock:
            if not self.state.ended:
                self.append(SuspectMarked(function, marked))

    def pasted(self, text: str, *, outside: bool) -> None:
        """Record a paste, and whether the brief or a result had shown the text; ignored after the end.

        `outside` is true if the text came through the terminal rather than from the program's own clipboard.
        """
        if not self.state.ended:
            answers = (call.text for call in self.state.calls if call.text)
            self.append(
                AffordanceUsed.paste(text, (self._harness.brief(self.task), *answers), outside=outside)
            )

    def use_affordance(self, kind: str, times: int = 1) -> None:
        """Count a use of an affordance, which costs no budget and is not offered to models.

        Ignored after the end.
        """
        if not self.state.ended:
            self.append(AffordanceUsed(kind, times))

    def heartbeat(self) -> None:
        """Record that the attempt is alive, and end it or begin the hand-in if its time is up."""
        with self._lock:
            if not self.state.ended:
                self.append(Heartbeat())
                self.check_time()

    def check_time(self) -> None:
        """End the attempt, or begin the hand-in for `finish_pending`, if the working time is up."""
        limit = self.state.budgets.time_limit_s
        if limit is None or self.state.ended or self.state.pending is not None:
            return
        if self.clock().active >= limit * 1000:
            self.hand_in(EndReason.TIME_CAP)

    def give_up(self, code: GiveUpCode, text: str = "") -> None:
        """End the attempt at the solver's request. Raises `AttemptError` while a call runs."""
        self._end_by_solver(EndReason.GAVE_UP, code, text)

    def skip(self, code: GiveUpCode, text: str = "") -> None:
        """End the attempt as skipped. Raises `AttemptError` while a call runs."""
        self._end_by_solver(EndReason.SKIPPED, code, text)

    def end(self, reason: EndReason, text: str = "", *, code: str = "") -> None:
        """End the attempt for a reason set by the system or an organiser; ignored if it has ended already."""
        with self._lock:
            if not self.state.ended:
                self.append(AttemptEnded(reason.value, code or UNSET, text))

    def _end_by_solver(self, reason: EndReason, code: GiveUpCode, text: str) -> None:
        with self._lock:
            if self.state.pending is not None:
                raise AttemptError("A tool call is running.", hint="Wait for it, or cancel it.")
            if not self.state.ended:
                self.append(AttemptEnded(reason.value, code.value, text))

    def _require_running(self) -> None:
        self.check_time()
        if self.state.ending is not None:
            raise AttemptError(f"The attempt has ended: {self.state.ending.reason}.")
        if self.state.pause is not None:
            raise AttemptError("The attempt is paused.", hint="Resume it first.")

    def _process_started(self) -> None:
        self.append(ProcessStarted(self._time.boot_id(), self._version))

    def append_made(self, make: Callable[[AttemptState], EventData]) -> AttemptState:
        """Write an event made from the current state, atomically; return the state after it."""
        with self._lock:
            self.append(make(self.state))
            return self.state

    def append(self, data: EventData) -> None:
        """Write an event; a solver's actions go through the other methods.

        Raises `AttemptError` after `leave`.
        """
        with self._lock:
            if self._left:
                raise AttemptError("This process has left the attempt, which continues in another process.")
            event = self._recorder.append(data)
            self.state = advance(self.state, event)
            state = self.state
        for listener in self._listeners:
            listener(event, state)

    def _begin(self, made: CallMade, turn: int | None = None) -> AttemptCall:
        number = len(self.state.calls) + 1
        self.append(structs.replace(made, call_id=f"call-{number}", turn=number if turn is None else turn))
        return self.state.calls[-1]

    def _save_typed(self, tool: Tool | None, arguments: Mapping[str, Any]) -> None:
        """Save unsaved typing. Raises `AttemptError` if that fails, unless `tool` hands it in."""
        saving = self._harness.to_save(tool, arguments, self.state)
        if saving is None or self.state.remaining.tool_uses == 0:
            return
        last = tool is not None and tool == self._harness.last_call(self.state)
        saved = self._begin(saving)
        if self._answer(saved, UNATTENDED, ends=False).refused and not last:
            raise AttemptError(
                "The typed text can't be saved.", hint="The answer to the call gives the reason."
            )

    def _complete_automatic(self, run: RunContext) -> None:
        pending = self.state.pending
        if pending is not None and pending.automatic:
            self.finish_pending(run=run)

    def _answer(
        self, call: AttemptCall, run: RunContext, bound: BoundCall | None = None, *, ends: bool = True
    ) -> ToolResult:
        """Answer a call, and return the result; an unbound call, such as a dead process's, is bound again.

        With `ends`, the attempt ends if nothing is left to do afterwards.
        """
        started = self._time.mono_ms()
        try:
            if bound is None:
                bound = bound_again(call, self.callable_tool(call.tool))
            else:
                self._offered(bound.tool)
        except RefusalError as refusal:
            outcome = self._refused(str(refusal))
        else:
            outcome = self._harness.handle(call, bound, self, run)
        return self._finish(call, outcome, started, ends=ends)

    def _refused(self, reason: str) -> CallOutcome:
        if self.state.header.tool_semantics < 2:
            return CallOutcome(ToolOutput(f"Refused: {reason}", refused=True), Remaining(0, 0))
        return self._harness.refuse(reason, self.state)

    def _finish(self, call: AttemptCall, outcome: CallOutcome, started: int, *, ends: bool) -> ToolResult:
        charged, output, old = outcome.charged, outcome.output, self.state.remaining
        if outcome.found is not None:
            self.found[call.call_id] = outcome.found
        with self._lock:
            left = old.spend(
                tool_uses=charged.tool_uses, submissions=charged.submissions, scores=charged.scores or 0
            )
            text = "\n".join([output.text, *self._harness.remark(charged, left, self.state)])
            scores = left.scores if self.state.budgets.scores else UNSET
            self.append(
                CallAnswered(
                    call.call_id,
                    text,
                    output.refused,
                    duration_ms=self._time.mono_ms() - started,
                    budget=BudgetLeft(left.tool_uses, left.submissions, scores),
                    revealed=UNSET if output.revealed == NOTHING_REVEALED else output.revealed,
                )
            )
            if ends:
                self._end_if_over()
        return ToolResult(call.call_id, text, output.refused, outcome.found)

    def _end_if_over(self) -> None:
        """End the attempt if nothing is left to do, after any hand-in forced by a limit."""
        state = self.state
        if state.ended or state.pending is not None:
            return
        reason = self._harness.ending(state)
        if reason is not None:
            self.append(AttemptEnded(reason.value, state.calls[-1].code or UNSET if state.calls else UNSET))
        elif state.remaining.tool_uses == 0:
            self.hand_in(EndReason.STEPS_EXHAUSTED)


def _value(code: GiveUpCode | None) -> str | UnsetType:
    return UNSET if code is None else code.value


def _enrolled(enrolment: Enrolment) -> dict[str, Any]:
    """Return an enrolment in the header's form; empty members of solvers and studies are unset."""
    data, solver = asdict(enrolment), dict(enrolment.solver)
    for name in ("solver", "protocol_sha256", "assistance", "gist_help_sha256"):
        data[name] = data[name] or UNSET
    return {**data, "model": str(solver["model"])} if "model" in solver else data


def _call_event(
    name: str, tool: Tool | None, given: Mapping[str, Any] | Malformed, raw: str
) -> tuple[CallMade, BoundCall | None]:
    """Return the event of a call, and the bound call; None if it can't be carried out."""
    if tool is not None and not isinstance(given, Malformed):
        with suppress(RefusalError):
            return CallMade(call_id="", tool=name, arguments=dict(given)), tool.bind(given)
    return malformed_call(name, tool, given, raw), None
