"""The engine of an attempt: takes what a solver does, appends events, and keeps the state that they fold to.

Every method may be called from any thread. One tool call runs at a time; while it runs, the others stay responsive.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import Any

from gistpoint.core.attempts.bench import Bench, OnProgress, Outcome, Price
from gistpoint.core.attempts.budgets import Budgets, Remaining
from gistpoint.core.attempts.clock import Clock, IdleStage
from gistpoint.core.attempts.drafts import draft_data, paste_data
from gistpoint.core.attempts.events import EndReason, Event, EventType, GiveUpCode, Pane, PauseReason
from gistpoint.core.attempts.identity import TOOL_SEMANTICS, Enrolment, new_attempt_id, start_data
from gistpoint.core.attempts.malformed import call_data, fitting
from gistpoint.core.attempts.state import AttemptState, Call, advance, fold
from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.gist.bench import GistBench
from gistpoint.core.kinds.gist.overrides import as_attempted, with_budgets
from gistpoint.core.kinds.gist.verdict import GistVerdict, ScoresGists
from gistpoint.core.kinds.repair.bench import RepairBench
from gistpoint.core.kinds.repair.judge import Judge, Judgement
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.ports import Recorder, TimeSource
from gistpoint.core.tasks.brief import render_brief
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import RefusalError, Tool, ToolOutput
from gistpoint.core.tools.registry import named
from gistpoint.core.trees import SourceTree

Listener = Callable[[Event, AttemptState], None]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call was answered with."""

    call_id: str
    text: str
    refused: bool = False
    judgement: Judgement | None = None
    """The whole run behind a submission's answer; for screens that may show more than the answer."""
    verdict: GistVerdict | None = None
    """The score behind the answer of a gist's tool, line by line."""


class Attempt:
    """An attempt under way, or one that is read again."""

    def __init__(
        self,
        task: Task,
        judge: Judge | ScoresGists,
        recorder: Recorder,
        clock: TimeSource,
        *,
        events: Iterable[Event] = (),
        version: str = "",
    ) -> None:
        self.state = fold(events)
        header, budgets = self.state.header, self.state.budgets
        self.task = as_attempted(task, header, budgets) if header else task
        """The task as this attempt meets it: with its budgets, and the settings of its gist."""
        self.judge = judge
        self._recorder = recorder
        self._time = clock
        self._version = version
        self._lock = RLock()
        self._calling = False
        self._listeners: list[Listener] = []
        self._bench: Bench = (
            RepairBench(self.task, judge) if isinstance(judge, Judge) else GistBench.of(self.task, judge)
        )
        self._bench.restore(self.state)
        self.judgements: dict[str, Judgement] = {}
        """Runs of this process by call id."""
        self.verdicts: dict[str, GistVerdict] = {}
        """Scores of gists of this process by call id."""

    def start(
        self,
        enrolment: Enrolment,
        *,
        attempt_id: str = "",
        budgets: Budgets | None = None,
        tool_semantics: int = TOOL_SEMANTICS,
    ) -> None:
        """Write the events that begin a new attempt, with the task's budgets unless others are given.

        A replay takes the tool semantics of the run that it repeats. Raises `AttemptError` for budgets of nothing.
        """
        bench, identity = self._bench, attempt_id or new_attempt_id(self._time.utc_ms())
        given = budgets or bench.budgets(enrolment.role)
        if given.tool_uses < 1 or given.submissions < 1:
            raise AttemptError("An attempt begins with one tool use and one submission or more.")
        self.task = with_budgets(self.task, given)
        of_kind = bench.start_data(given)
        data = start_data(self.task, identity, enrolment, given, bench.backend, self._version, of_kind)
        self.append(EventType.ATTEMPT_STARTED, {**data, "tool_semantics": tool_semantics})
        self._process_started()

    def resume_process(self) -> None:
        """Write that another process goes on with the attempt; `finish_pending` completes what the last one left."""
        if not self.state.header:
            raise AttemptError("The journal holds no start of an attempt.", hint="Start the task again.")
        if self.state.header.get("task_id") != self.task.id:
            raise AttemptError("The attempt belongs to another task, or the task was changed since.")
        if self.state.tool_semantics > TOOL_SEMANTICS:
            raise AttemptError("A newer gistpoint began the attempt.", hint="Go on with that version.")
        self._process_started()
        self._end_where_over()

    @property
    def tree(self) -> SourceTree:
        """The repository as it is now, accepted replacements included."""
        return self._bench.tree

    @property
    def backend(self) -> BackendRecord:
        """The isolation that code runs in."""
        return self._bench.backend

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the attempt was started with."""
        return self._bench.tools(self.state)

    def subscribe(self, listener: Listener) -> None:
        """Have `listener` called after every event, on the thread that wrote it."""
        self._listeners.append(listener)

    def clock(self) -> Clock:
        """Return the clock as it stands now."""
        with self._lock:
            return self.state.clock.at(self._time.mono_ms(), self._time.utc_ms())

    def offered(self) -> tuple[Tool, ...]:
        """Return the tools that can be called now."""
        return () if self.state.ended else self._bench.offered(self.state)

    def callable_tool(self, name: str) -> Tool:
        """Return a tool that can be called now; raises `RefusalError` with the reason if it can't."""
        tool = named(self.tools, name)
        if tool not in self.offered():
            raise RefusalError(self._bench.refusal(tool))
        return tool

    def price(self, tool: Tool) -> Price:
        """Return what a call of `tool` would spend."""
        return self._bench.price(tool, self.state)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        *,
        turn: int | None = None,
        raw: str = "",
        on_progress: OnProgress | None = None,
        cancel: CancelToken | None = None,
        thought: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool; blocks until it has answered. Raises `AttemptError` if no call can be made now.

        Every call is journalled, also one that can't be carried out. `raw` is the text of a model's arguments as it
        came; it is read if `arguments` is None. `turn` is that of the reply that asks for the call, by default the
        call's number. `extra` is journalled beside the call: a model's tokens and cost. A submission whose run is
        cancelled counts. What was typed of a gist is saved by a step of its own before. A call that takes the last
        step of a gist hands it in, too.
        """
        self._complete_automatic(on_progress, cancel)
        with self._lock:
            self.check_time()
        self._complete_automatic(on_progress, cancel)
        with self._lock:
            self._require_running()
            if self._calling or self.state.pending is not None:
                raise AttemptError("A tool call is running.", hint="Wait for it, or cancel it.")
            data = call_data(name, arguments, raw, self.tools)
            self._save_typed(name, data.get("arguments", {}))
            more = {**(extra or {}), **({"thought": thought} if thought else {})}
            call = self._begin({**more, **data}, turn)
            self._calling = True
        try:
            result = self._answer(call, on_progress, cancel)
        finally:
            self._calling = False
        self._complete_automatic(on_progress, cancel)
        return result

    def finish_pending(
        self, *, on_progress: OnProgress | None = None, cancel: CancelToken | None = None
    ) -> ToolResult | None:
        """Complete the call that a process which died, or a limit, had begun; None where there is none."""
        result = None
        while True:
            with self._lock:
                call = self.state.pending
                if call is None or self._calling:
                    return result
                self._calling = True
            try:
                result = self._answer(call, on_progress, cancel)
            finally:
                self._calling = False

    def hand_in(self, reason: EndReason) -> None:
        """Hand in the gist as it was last saved, because a limit was reached; `finish_pending` has it judged."""
        with self._lock:
            if self.state.ended or self.state.pending is not None:
                return
            tool = self._bench.last_call(self.state)
            if not tool:
                self.append(EventType.ATTEMPT_ENDED, {"reason": reason.value})
                return
            self._save_typed(tool, {})
            self._begin({"tool": tool, "arguments": {}, "automatic": reason.value})

    def view(self, pane: Pane) -> None:
        """Say what has the focus."""
        with self._lock:
            if not self.state.ended and self.state.pane is not pane:
                self.append(EventType.VIEW, {"pane": pane.value}, durable=False)

    def pause(self, reason: PauseReason, text: str = "") -> None:
        """Stop the clock."""
        with self._lock:
            self._require_running()
            if self.state.pending is not None:
                raise AttemptError("A tool call is running.", hint="Pause when it has answered.")
            self.append(EventType.PAUSE, {"reason": reason.value, "text": text})

    def resume(self) -> None:
        """Let the clock run again."""
        with self._lock:
            if self.state.pause is not None:
                self.append(EventType.RESUME, {})

    def ask_idle(self, since_mono_ms: int) -> None:
        """Record that the solver is asked about the time since the last input: it counts as idle from now on."""
        with self._lock:
            if not self.state.ended and not self.state.doubt.idle:
                data = {"stage": IdleStage.ASKED.value, "since_mono_ms": since_mono_ms}
                self.append(EventType.IDLE_PROMPT, data)

    def cover_idle(self) -> None:
        """Record that nothing is in sight any more until the solver answers."""
        self._idle_stage(IdleStage.COVERED)

    def input_again(self) -> None:
        """Record that the solver is there again; the time before stays idle until it is answered for."""
        self._idle_stage(IdleStage.INPUT)

    def answer_idle(self, *, away: bool) -> None:
        """Record what the solver says of all the time without input that nobody has answered for."""
        with self._lock:
            if self.state.doubt:
                idle_ms = self.state.doubt.total_ms(self.clock())
                self.append(EventType.IDLE_PROMPT, {"idle_ms": idle_ms, "answer": "away" if away else "worked"})

    def _idle_stage(self, stage: IdleStage) -> None:
        with self._lock:
            if self.state.doubt.idle:
                self.append(EventType.IDLE_PROMPT, {"stage": stage.value})

    def note(self, text: str) -> None:
        """Keep the notes as they are now; synced in groups."""
        with self._lock:
            if text != self.state.notes:
                self.append(EventType.NOTE, {"text": text}, durable=False)

    def edit(self, buffer: str, text: str) -> None:
        """Keep half-written code, by the name of what it will replace; synced in groups."""
        with self._lock:
            known = self.state.buffered(buffer)
            if known != text and not self.state.ended:
                self.append(EventType.EDIT_BUFFER, {"buffer": buffer, **draft_data(known, text)}, durable=False)

    def suspect(self, function: str, *, marked: bool = True) -> None:
        """Mark a function as suspect, at no cost, or take the mark back."""
        with self._lock:
            if not self.state.ended:
                self.append(EventType.SUSPECT, {"function": function, "marked": marked})

    def pasted(self, text: str, *, outside: bool) -> None:
        """Record that text was pasted, and whether the brief or a result had shown it; see `drafts.paste_data`."""
        answers = (call.text for call in self.state.calls if call.text)
        self.comfort("paste", **paste_data(text, (render_brief(self.task), *answers), outside=outside))

    def comfort(self, kind: str, times: int = 1, **details: Any) -> None:
        """Count the use of something that costs no budget and that a model does not have."""
        if not self.state.ended:
            self.append(EventType.COMFORT, {"kind": kind, "times": times, **details}, durable=False)

    def heartbeat(self) -> None:
        """Write that the attempt is alive; ends it, or begins the hand-in of a gist, when its time is up."""
        with self._lock:
            if not self.state.ended:
                self.append(EventType.HEARTBEAT, {}, durable=False)
                self.check_time()

    def check_time(self) -> None:
        """End the attempt where its working time is up; a gist's hand-in is begun, for `finish_pending` to judge."""
        limit = self.state.budgets.time_limit_s
        if limit is None or self.state.ended or self.state.pending is not None:
            return
        if self.clock().active >= limit * 1000:
            self.hand_in(EndReason.TIME_CAP)

    def give_up(self, code: GiveUpCode, text: str = "") -> None:
        """End the attempt at the solver's wish."""
        self._end_by_solver(EndReason.GAVE_UP, code, text)

    def skip(self, code: GiveUpCode, text: str = "") -> None:
        """End the attempt without having tried."""
        self._end_by_solver(EndReason.SKIPPED, code, text)

    def end(self, reason: EndReason, text: str = "") -> None:
        """End the attempt for a reason that the system or an organiser sets."""
        with self._lock:
            if not self.state.ended:
                self.append(EventType.ATTEMPT_ENDED, {"reason": reason.value, "text": text})

    def _end_by_solver(self, reason: EndReason, code: GiveUpCode, text: str) -> None:
        with self._lock:
            if self.state.pending is not None:
                raise AttemptError("A tool call is running.", hint="Wait for it, or cancel it.")
            if not self.state.ended:
                self.append(EventType.ATTEMPT_ENDED, {"reason": reason.value, "code": code.value, "text": text})

    def _require_running(self) -> None:
        self.check_time()
        if self.state.ending is not None:
            raise AttemptError(f"The attempt has ended: {self.state.ending.reason}.")
        if self.state.pause is not None:
            raise AttemptError("The attempt is paused.", hint="Resume it first.")

    def _process_started(self) -> None:
        self.append(EventType.PROCESS_STARTED, {"boot_id": self._time.boot_id(), "gistpoint": self._version})

    def append(self, type: EventType, data: Mapping[str, Any], *, durable: bool = True) -> None:
        """Write an event of the engine's; what a solver does goes through the other methods."""
        with self._lock:
            event = self._recorder.append(type.value, data, durable=durable)
            self.state = advance(self.state, event)
            state = self.state
        for listener in self._listeners:
            listener(event, state)

    def _begin(self, data: Mapping[str, Any], turn: int | None = None) -> Call:
        number = len(self.state.calls) + 1
        identity = {"call_id": f"call-{number}", "turn": number if turn is None else turn}
        self.append(EventType.TOOL_CALL, {**data, **identity})
        return self.state.calls[-1]

    def _save_typed(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Save what was typed by a step of its own; raises `AttemptError` where the call could not follow it."""
        text = self._bench.to_save(tool, arguments, self.state)
        if text is None or (steps := self.state.remaining.tool_uses) == 0:
            return
        last = tool == self._bench.last_call(self.state)
        if steps == 1 and not last:
            raise AttemptError(
                "One step is left, and saving what was typed since the last call takes it.",
                hint="Hand the gist in, or take the typing back.",
            )
        saved = self._begin({"tool": "write_gist", "arguments": {"content": text}, "typed": True})
        if self._answer(saved, None, None, ends=False).refused and not last:
            raise AttemptError("What was typed can't be saved.", hint="The answer to the call says why.")

    def _complete_automatic(self, on_progress: OnProgress | None, cancel: CancelToken | None) -> None:
        pending = self.state.pending
        if pending is not None and pending.automatic:
            self.finish_pending(on_progress=on_progress, cancel=cancel)

    def _answer(
        self, call: Call, on_progress: OnProgress | None, cancel: CancelToken | None, *, ends: bool = True
    ) -> ToolResult:
        started = time.perf_counter()
        try:
            tool = self.callable_tool(call.tool)
            fitting(call, tool)
        except RefusalError as refusal:
            outcome = self._refused(str(refusal))
        else:
            outcome = self._bench.handle(call, tool, self, on_progress, cancel)
        return self._finish(call, outcome, started, ends=ends)

    def _refused(self, reason: str) -> Outcome:
        if self.state.tool_semantics < 2:
            return Outcome(ToolOutput(f"Refused: {reason}", refused=True), Remaining(0, 0))
        return self._bench.refuse(reason, self.state)

    def _finish(self, call: Call, outcome: Outcome, started: float, *, ends: bool) -> ToolResult:
        charged, output, old = outcome.charged, outcome.output, self.state.remaining
        if outcome.judgement is not None:
            self.judgements[call.call_id] = outcome.judgement
        if outcome.verdict is not None:
            self.verdicts[call.call_id] = outcome.verdict
        with self._lock:
            left = old.spend(tool_uses=charged.tool_uses, submissions=charged.submissions, scores=charged.scores or 0)
            text = "\n".join([output.text, *self._bench.remark(charged, left, self.state)])
            data: dict[str, Any] = {
                "call_id": call.call_id,
                "text": text,
                "refused": output.refused,
                "duration_ms": round((time.perf_counter() - started) * 1000),
                "budget": {
                    "tool_uses": left.tool_uses,
                    "submissions": left.submissions,
                    **({"scores": left.scores} if self.state.budgets.scores else {}),
                },
            }
            if revealed := output.revealed.as_json():
                data["revealed"] = revealed
            self.append(EventType.TOOL_RESULT, data)
            if ends:
                self._end_where_over()
        return ToolResult(call.call_id, text, output.refused, outcome.judgement, outcome.verdict)

    def _end_where_over(self) -> None:
        """End the attempt where nothing is left to do; a gist whose steps are used up is handed in before."""
        state = self.state
        if state.ended or state.pending is not None:
            return
        reason = self._bench.ending(state)
        if reason is not None:
            self.append(EventType.ATTEMPT_ENDED, {"reason": reason.value})
        elif state.remaining.tool_uses == 0:
            self.hand_in(EndReason.STEPS_EXHAUSTED)
