"""A gist: a text that is written in steps, handed in once, and judged by running the task's command on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gistpoint.core.attempts.bench import Log, OnProgress, Outcome, Price
from gistpoint.core.attempts.budgets import Budgets, Remaining
from gistpoint.core.attempts.events import EndReason, EventType
from gistpoint.core.attempts.identity import SHOWS_EVIDENCE, Role
from gistpoint.core.attempts.state import AttemptState, Call
from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import CancelledError, InfrastructureError
from gistpoint.core.kinds.gist.answers import score_text, steps_line
from gistpoint.core.kinds.gist.desk import Desk
from gistpoint.core.kinds.gist.overrides import settings_data
from gistpoint.core.kinds.gist.tools import SCORE_GIST, SUBMIT_GIST
from gistpoint.core.kinds.gist.verdict import GistVerdict, ScoresGists, gist_run_data, gist_score_data, judged
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import Tool, ToolContext, ToolOutput
from gistpoint.core.tools.registry import call as call_tool
from gistpoint.core.tools.registry import declarations_sha256, tools_of
from gistpoint.core.trees import SourceTree

REPLACING = frozenset({"write_gist", "edit_and_execute"})
"""Tools that give the gist a new text whole: what was typed before does not outlive them."""


@dataclass(frozen=True, slots=True)
class GistBench:
    """One call is one step; `score_gist` alone is paid from a budget of its own."""

    task: Task
    judge: ScoresGists
    tree: SourceTree

    @classmethod
    def of(cls, task: Task, judge: ScoresGists) -> GistBench:
        """Open the codebase of a task."""
        return cls(task, judge, SourceTree.open(task.tree_path))

    @property
    def backend(self) -> BackendRecord:
        """The isolation that gists run in."""
        return self.judge.runner.backend

    def restore(self, state: AttemptState) -> None:
        """Do nothing: the codebase never changes, and the gist is in the state."""

    def budgets(self, role: Role) -> Budgets:
        """Return the task's steps; scores without a limit unless the attempt counts."""
        scores = None if role in SHOWS_EVIDENCE else self.task.gist_settings.score_budget
        return replace(self.task.budgets, submissions=1, scores=scores)

    def start_data(self, budgets: Budgets) -> Mapping[str, Any]:
        """Return the hash of the tools, the settings, and the text that the gist begins with."""
        settings = self.task.gist_settings
        tools = declarations_sha256(self.task.mode, settings, scoring=budgets.scores != 0)
        begins_with = self.task.brief.test if settings.give_test else ""
        return {"tools_sha256": tools, "gist": begins_with, "gist_settings": settings_data(self.task)}

    def tools(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return the tools that the settings allow, and `score_gist` where the attempt has scores."""
        return tools_of(self.task.mode, self.task.gist_settings, scoring=state.budgets.scores != 0)

    def offered(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return all tools while their budget lasts."""
        return tuple(tool for tool in self.tools(state) if tool is not SCORE_GIST or state.remaining.scores != 0)

    def price(self, tool: Tool, state: AttemptState) -> Price:
        """Return what a call would spend, the step that saves what was typed included."""
        if tool is SCORE_GIST:
            return Price(0, 0, False, False, 1)
        steps = 1 + (state.gist.typed is not None and tool.name not in REPLACING)
        return Price(steps, int(tool.submits), state.remaining.tool_uses <= steps, tool.submits)

    def to_save(self, tool: str, arguments: Mapping[str, Any], state: AttemptState) -> str | None:
        """Return what was typed, unless the call brings a text of its own."""
        own = tool in REPLACING or (tool == SCORE_GIST.name and arguments.get("content"))
        return None if own else state.gist.typed

    def handle(
        self, call: Call, tool: Tool, log: Log, on_progress: OnProgress | None, cancel: CancelToken | None
    ) -> Outcome:
        """Answer a call; a hand-in that was begun before is judged as it was handed in."""
        begun = next((s for s in log.state.submissions if s.call_id == call.call_id), None)
        if begun is not None:
            return self._hand_in(call, begun.gist, log, on_progress, cancel)
        desk = Desk(self.task, self.judge, self.tree, log.state.gist.text, cancel)
        context = ToolContext(self.tree, self.task.limits, self.task.mode, gist=desk)
        step = Remaining(1, 0)
        if tool is SCORE_GIST:
            step = Remaining(0, 0, int(log.state.tool_semantics > 1))
        try:
            output = call_tool(tool, context, call.arguments)
        except InfrastructureError as error:
            return Outcome(ToolOutput(f"The harness failed: {error} It costs nothing.", refused=True), Remaining(0, 0))
        except CancelledError:
            return Outcome(ToolOutput("The call was cancelled.", refused=True), step)
        if output.judged is None:
            return Outcome(output, step)
        if tool is SUBMIT_GIST:
            number = len(log.state.submissions) + 1
            log.append(EventType.SUBMIT, {"call_id": call.call_id, "number": number, "gist": output.judged})
            return self._hand_in(call, output.judged, log, on_progress, cancel)
        verdict = judged(self.judge, output.judged, thorough=False, on_progress=on_progress, cancel=cancel)
        return self._scored(call, verdict, log, Remaining(0, 0, 1), trial=True)

    def remark(self, charged: Remaining, left: Remaining, state: AttemptState) -> list[str]:
        """Return what is left."""
        return [steps_line(left)]

    def refusal(self, tool: Tool) -> str:
        """Return that its budget is spent."""
        return f"No {tool.name} is left."

    def refuse(self, reason: str, state: AttemptState) -> Outcome:
        """Charge a step."""
        return Outcome(ToolOutput(f"Refused: {reason}", refused=True), Remaining(1, 0))

    def ending(self, state: AttemptState) -> EndReason | None:
        """Return the reason after the hand-in: the limit that called for it, else what came of it."""
        if not state.submissions:
            return None
        call = state.calls[-1]
        last = state.submissions[-1]
        if call.automatic:
            return EndReason(call.automatic) if last.counts else EndReason.INFRASTRUCTURE
        if not last.counts:
            return None
        return EndReason.SOLVED if last.solved else EndReason.FINAL_WRONG

    def last_call(self, state: AttemptState) -> str:
        """Return the hand-in: a limit hands in the gist as it was last saved."""
        return SUBMIT_GIST.name

    def _hand_in(
        self, call: Call, text: str, log: Log, on_progress: OnProgress | None, cancel: CancelToken | None
    ) -> Outcome:
        verdict = judged(self.judge, text, thorough=True, on_progress=on_progress, cancel=cancel)
        log.append(EventType.TEST_RUN, gist_run_data(call.call_id, verdict, self.backend))
        if not verdict.counts:
            return Outcome(ToolOutput(score_text(verdict)), Remaining(0, 0), verdict=verdict)
        return self._scored(call, verdict, log, Remaining(0 if call.automatic else 1, 1))

    def _scored(
        self, call: Call, verdict: GistVerdict, log: Log, charged: Remaining, *, trial: bool = False
    ) -> Outcome:
        if verdict.counts:
            log.append(EventType.SCORE, gist_score_data(call.call_id, verdict, trial=trial))
        spent = charged if verdict.counts else Remaining(0, 0)
        return Outcome(ToolOutput(score_text(verdict)), spent, verdict=verdict)
