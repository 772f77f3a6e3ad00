"""The engine of an attempt: takes what a solver does, appends events, and keeps the state that they fold to.

Every method may be called from any thread. One tool call runs at a time; while it runs, the others stay responsive.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import Any

from gistpoint.core.attempts.answers import LAST_USE, budget_line, submission_text
from gistpoint.core.attempts.budgets import Budgets, Remaining
from gistpoint.core.attempts.clock import Clock
from gistpoint.core.attempts.events import EndReason, Event, EventType, GiveUpCode, Pane, PauseReason
from gistpoint.core.attempts.identity import Enrolment, new_attempt_id, start_data
from gistpoint.core.attempts.judging import Judge, Judgement, test_run_data
from gistpoint.core.attempts.state import AttemptState, Call, Submission, advance, fold
from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import AttemptError
from gistpoint.core.ports import Recorder, RunProgress, TimeSource
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tools.declaration import RefusalError, Tool, ToolContext, ToolOutput
from gistpoint.core.tools.registry import call as call_tool
from gistpoint.core.tools.registry import tool_named, tools_of
from gistpoint.core.tools.replacement import with_replacement
from gistpoint.core.trees import SourceTree

OnProgress = Callable[[RunProgress], None]
Listener = Callable[[Event, AttemptState], None]


@dataclass(frozen=True, slots=True)
class Price:
    """What a call of a tool would spend."""

    tool_uses: int
    submissions: int
    last_tool_use: bool
    last_submission: bool


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call was answered with."""

    call_id: str
    text: str
    refused: bool = False
    judgement: Judgement | None = None
    """The whole run behind a submission's answer; for screens that may show more than the answer."""


class Attempt:
    """An attempt under way, or one that is read again."""

    def __init__(
        self,
        task: Task,
        judge: Judge,
        recorder: Recorder,
        clock: TimeSource,
        *,
        events: Iterable[Event] = (),
        version: str = "",
    ) -> None:
        self.task = task
        self.judge = judge
        self._recorder = recorder
        self._time = clock
        self._version = version
        self._lock = RLock()
        self._calling = False
        self._listeners: list[Listener] = []
        self._base = SourceTree.open(task.tree_path)
        self._tree = self._base
        self.state = fold(events)
        for replacement in self.state.replacements:
            self._tree = with_replacement(self._tree, replacement)
        self.judgements: dict[str, Judgement] = {}
        """Runs of this process by call id."""

    def start(self, enrolment: Enrolment, *, attempt_id: str = "", budgets: Budgets | None = None) -> None:
        """Write the events that begin a new attempt."""
        identity = attempt_id or new_attempt_id(self._time.utc_ms())
        backend = self.judge.runner.backend
        data = start_data(self.task, identity, enrolment, budgets or self.task.budgets, backend, self._version)
        self._append(EventType.ATTEMPT_STARTED, data)
        self._process_started()

    def resume_process(self) -> None:
        """Write that another process goes on with the attempt; `finish_pending` completes what the last one left."""
        if not self.state.header:
            raise AttemptError("The journal holds no start of an attempt.", hint="Start the task again.")
        if self.state.header.get("task_id") != self.task.id:
            raise AttemptError("The attempt belongs to another task, or the task was changed since.")
        self._process_started()
        self._end_where_over()

    @property
    def tree(self) -> SourceTree:
        """The repository as it is now, accepted replacements included."""
        return self._tree

    def subscribe(self, listener: Listener) -> None:
        """Have `listener` called after every event, on the thread that wrote it."""
        self._listeners.append(listener)

    def clock(self) -> Clock:
        """Return the clock as it stands now."""
        with self._lock:
            return self.state.clock.at(self._time.mono_ms(), self._time.utc_ms())

    def offered(self) -> tuple[Tool, ...]:
        """Return the tools that can be called now: at the last use without a submission, only those that submit."""
        if self.state.ended:
            return ()
        tools = tools_of(self.task.mode)
        if self.state.remaining.tool_uses == 1 and not self.state.submitted:
            return tuple(tool for tool in tools if tool.submits)
        return tools

    def price(self, tool: Tool) -> Price:
        """Return what a call of `tool` would spend."""
        remaining, submissions = self.state.remaining, int(tool.submits)
        return Price(1, submissions, remaining.tool_uses == 1, bool(submissions) and remaining.submissions == 1)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        on_progress: OnProgress | None = None,
        cancel: CancelToken | None = None,
        thought: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool; blocks until it has answered. Raises `AttemptError` where no call can be made now.

        `extra` is journalled beside the call: a model's tokens and cost. A submission whose run is cancelled counts.
        """
        with self._lock:
            self._require_running()
            if self._calling or self.state.pending is not None:
                raise AttemptError("A tool call is running.", hint="Wait for it, or cancel it.")
            number = len(self.state.calls) + 1
            data = {"call_id": f"call-{number}", "turn": number, "tool": name, "arguments": dict(arguments)}
            if thought:
                data["thought"] = thought
            self._append(EventType.TOOL_CALL, {**(extra or {}), **data})
            call = self.state.calls[-1]
            self._calling = True
        try:
            return self._answer(call, on_progress, cancel)
        finally:
            self._calling = False

    def finish_pending(
        self, *, on_progress: OnProgress | None = None, cancel: CancelToken | None = None
    ) -> ToolResult | None:
        """Complete the call that a process which died had begun; None where there is none."""
        with self._lock:
            call = self.state.pending
            if call is None or self._calling:
                return None
            self._calling = True
        try:
            return self._answer(call, on_progress, cancel)
        finally:
            self._calling = False

    def view(self, pane: Pane) -> None:
        """Say what has the focus."""
        with self._lock:
            if not self.state.ended and self.state.pane is not pane:
                self._append(EventType.VIEW, {"pane": pane.value}, durable=False)

    def pause(self, reason: PauseReason, text: str = "") -> None:
        """Stop the clock."""
        with self._lock:
            self._require_running()
            if self.state.pending is not None:
                raise AttemptError("A tool call is running.", hint="Pause when it has answered.")
            self._append(EventType.PAUSE, {"reason": reason.value, "text": text})

    def resume(self) -> None:
        """Let the clock run again."""
        with self._lock:
            if self.state.pause is not None:
                self._append(EventType.RESUME, {})

    def answer_idle(self, idle_ms: int, *, away: bool) -> None:
        """Record what the solver says of a time without any input."""
        with self._lock:
            if not self.state.ended:
                self._append(EventType.IDLE_PROMPT, {"idle_ms": idle_ms, "answer": "away" if away else "worked"})

    def note(self, text: str) -> None:
        """Keep the notes as they are now."""
        if text != self.state.notes:
            self._append(EventType.NOTE, {"text": text})

    def edit(self, buffer: str, text: str) -> None:
        """Keep half-written code, by the name of what it will replace."""
        if self.state.buffers.get(buffer) != text and not self.state.ended:
            self._append(EventType.EDIT_BUFFER, {"buffer": buffer, "text": text}, durable=False)

    def suspect(self, function: str, *, marked: bool = True) -> None:
        """Mark a function as suspect, at no cost, or take the mark back."""
        with self._lock:
            if not self.state.ended:
                self._append(EventType.SUSPECT, {"function": function, "marked": marked})

    def comfort(self, kind: str, times: int = 1, **details: Any) -> None:
        """Count the use of something that costs no budget and that a model does not have."""
        if not self.state.ended:
            self._append(EventType.COMFORT, {"kind": kind, "times": times, **details}, durable=False)

    def heartbeat(self) -> None:
        """Write that the attempt is alive; ends it when its time is up."""
        with self._lock:
            if not self.state.ended:
                self._append(EventType.HEARTBEAT, {}, durable=False)
                self.check_time()

    def check_time(self) -> None:
        """End the attempt where its working time is up."""
        limit = self.state.budgets.time_limit_s
        if limit is None or self.state.ended or self.state.pending is not None:
            return
        if self.clock().active >= limit * 1000:
            self._append(EventType.ATTEMPT_ENDED, {"reason": EndReason.TIME_CAP.value})

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
                self._append(EventType.ATTEMPT_ENDED, {"reason": reason.value, "text": text})

    def _end_by_solver(self, reason: EndReason, code: GiveUpCode, text: str) -> None:
        with self._lock:
            if self.state.pending is not None:
                raise AttemptError("A tool call is running.", hint="Wait for it, or cancel it.")
            if not self.state.ended:
                self._append(EventType.ATTEMPT_ENDED, {"reason": reason.value, "code": code.value, "text": text})

    def _require_running(self) -> None:
        self.check_time()
        if self.state.ending is not None:
            raise AttemptError(f"The attempt has ended: {self.state.ending.reason}.")
        if self.state.pause is not None:
            raise AttemptError("The attempt is paused.", hint="Resume it first.")

    def _process_started(self) -> None:
        self._append(EventType.PROCESS_STARTED, {"boot_id": self._time.boot_id(), "gistpoint": self._version})

    def _append(self, type: EventType, data: Mapping[str, Any], *, durable: bool = True) -> None:
        with self._lock:
            event = self._recorder.append(type.value, data, durable=durable)
            self.state = advance(self.state, event)
            state = self.state
        for listener in self._listeners:
            listener(event, state)

    def _context(self) -> ToolContext:
        return ToolContext(
            tree=self._base if self.task.mode is Mode.REMOVE else self._tree,
            limits=self.task.limits,
            mode=self.task.mode,
            target=self.task.brief.target,
            test_files=frozenset(self.task.suite.test_files),
        )

    def _answer(self, call: Call, on_progress: OnProgress | None, cancel: CancelToken | None) -> ToolResult:
        started = time.perf_counter()
        try:
            tool = tool_named(self.task.mode, call.tool)
            if tool not in self.offered():
                raise RefusalError(LAST_USE)
            tool.bind(call.arguments)
        except RefusalError as refusal:
            output = ToolOutput(f"Refused: {refusal}", refused=True)
            return self._finish(call, output, started, Remaining(0, 0))
        done = next((s for s in self.state.submissions if s.call_id == call.call_id), None)
        if done is None:
            output = call_tool(tool, self._context(), call.arguments)
            if output.replacement is None:
                charged = int(output.refused and tool.submits and self.task.rules.refused_costs_attempt)
                return self._finish(call, output, started, Remaining(1, charged))
            self._submit(call, output)
            done = self.state.submissions[-1]
        return self._judge(call, done, started, on_progress, cancel)

    def _submit(self, call: Call, output: ToolOutput) -> None:
        assert output.replacement is not None
        replacement = output.replacement
        persistent = self.task.mode is Mode.DISCOVERY
        data = {
            "call_id": call.call_id,
            "number": len(self.state.submissions) + 1,
            "replacement": {"path": replacement.path, "qualname": replacement.qualname, "code": replacement.code},
            "persistent": persistent,
        }
        with self._lock:
            if persistent:
                self._tree = with_replacement(self._tree, replacement)
            self._append(EventType.SUBMIT, data)

    def _judge(
        self,
        call: Call,
        submission: Submission,
        started: float,
        on_progress: OnProgress | None,
        cancel: CancelToken | None,
    ) -> ToolResult:
        persistent = self.task.mode is Mode.DISCOVERY
        tree = self._tree if persistent else with_replacement(self._base, submission.replacement)
        before = [known for known in self.state.submissions if known.call_id != call.call_id]
        failed = before[-1].failing if before else ()
        replaced = (submission, *reversed(before)) if persistent else (submission,)
        names = tuple(f"{known.replacement.path}::{known.replacement.qualname}" for known in replaced)
        judgement = self.judge.judge(
            tree, on_progress=on_progress, cancel=cancel, first=failed, replaced=tuple(dict.fromkeys(names))
        )
        self.judgements[call.call_id] = judgement
        self._append(EventType.TEST_RUN, test_run_data(call.call_id, judgement, self.task))
        score = {
            "call_id": call.call_id,
            "score": judgement.score.value,
            "solved": judgement.solved,
            "changed": list(judgement.changed),
        }
        self._append(EventType.SCORE, score)
        charged = Remaining(1, 1) if judgement.counts else Remaining(0, 0)
        output = ToolOutput(submission_text(self.task, judgement))
        return self._finish(call, output, started, charged, judgement)

    def _finish(
        self, call: Call, output: ToolOutput, started: float, charged: Remaining, judgement: Judgement | None = None
    ) -> ToolResult:
        with self._lock:
            left = self.state.remaining.spend(tool_uses=charged.tool_uses, submissions=charged.submissions)
            lines = [output.text, budget_line(left)]
            if left.tool_uses == 1 and charged.tool_uses and not self.state.submitted:
                lines.append(LAST_USE)
            text = "\n".join(lines)
            data: dict[str, Any] = {
                "call_id": call.call_id,
                "text": text,
                "refused": output.refused,
                "duration_ms": round((time.perf_counter() - started) * 1000),
                "budget": {"tool_uses": left.tool_uses, "submissions": left.submissions},
            }
            if revealed := output.revealed.as_json():
                data["revealed"] = revealed
            self._append(EventType.TOOL_RESULT, data)
            self._end_where_over()
        return ToolResult(call.call_id, text, output.refused, judgement)

    def _end_where_over(self) -> None:
        """End the attempt where it is solved or a budget is spent."""
        state = self.state
        if state.ended or state.pending is not None:
            return
        if state.solved:
            reason = EndReason.SOLVED
        elif state.remaining.submissions == 0:
            reason = EndReason.SUBMISSIONS_EXHAUSTED
        elif state.remaining.tool_uses == 0:
            reason = EndReason.CALLS_EXHAUSTED
        else:
            return
        self._append(EventType.ATTEMPT_ENDED, {"reason": reason.value})
