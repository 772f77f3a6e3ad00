"""The interface between the engine and a kind of task: the judge, and the harness that the judge makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from gistpoint.core.attempts.events import CallMade, EventData
from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.parts import AttemptCall
from gistpoint.core.attempts.reasons import EndReason
from gistpoint.core.attempts.state import AttemptState, KindState
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import BoundCall, Tool, ToolOutput
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of a call to a tool."""

    tool_uses: int
    submissions: int
    last_tool_use: bool
    last_submission: bool
    scores: int = 0
    then_submit: bool = False
    """Whether only a submission can follow the call."""


class Judged(Protocol):
    """A judgement of a submission, as used by the engine and by replays."""

    @property
    def counts(self) -> bool:
        """Whether the judgement costs a submission; false if the harness failed."""
        ...

    @property
    def reason(self) -> str:
        """The reason why the run did not finish, in a sentence; empty if the run finished."""
        ...


@runtime_checkable
class JudgedBySuite(Judged, Protocol):
    """A judgement by the run of a suite."""

    @property
    def report(self) -> SuiteReport:
        """The report of the run."""
        ...


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The answer to a call, its cost, and the judgement behind the answer to a submission."""

    output: ToolOutput
    charged: Remaining
    found: Judged | None = None


class Log(Protocol):
    """The part of an attempt that a harness uses."""

    @property
    def state(self) -> AttemptState:
        """The state after all events so far."""
        ...

    def append(self, data: EventData) -> None:
        """Write an event; a durable one is synced to disk on return."""
        ...


class TaskHarness(ABC):
    """The tools of one kind of task, the tree they see, and the results of calls.

    All of its state is derived from the events.
    """

    def __init__(self, task: Task, backend: BackendRecord) -> None:
        """Initialise the harness of an attempt at a task; `backend` is the isolation of its runs."""
        self.task, self.backend = task, backend

    @property
    @abstractmethod
    def tree(self) -> SourceTree:
        """The current repository."""

    @abstractmethod
    def restore(self, state: AttemptState) -> None:
        """Restore the repository to the state described by an attempt's events."""

    @abstractmethod
    def files(self, state: AttemptState) -> Mapping[str, bytes | None]:
        """Return the files changed so far by path, including the last submission's; None if removed."""

    def budgets(self, role: Role) -> Budgets:
        """Return the budgets of a new attempt; by default, the task's."""
        return self.task.budgets

    def with_budgets(self, budgets: Budgets) -> Task:
        """Return the task with the budgets of an attempt."""
        return replace(self.task, budgets=budgets)

    @abstractmethod
    def brief(self, task: Task) -> str:
        """Return the brief of a task as shown to people and sent to models."""

    @abstractmethod
    def start_data(self, budgets: Budgets) -> Mapping[str, Any]:
        """Return the kind's data for `attempt_started`: its tools' hash, and the solver's initial state."""

    @abstractmethod
    def tools(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return the tools of an attempt; the engine drops tools with which the attempt did not begin."""

    def offered(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return the tools that can be called now; by default, all of them."""
        return self.tools(state)

    def price(self, tool: Tool, state: AttemptState) -> Price:
        """Return the cost of a call: a tool use, and a submission if the tool submits."""
        left, submissions = state.remaining, int(tool.submits)
        return Price(1, submissions, left.tool_uses == 1, tool.submits and left.submissions == 1)

    def to_save(
        self, tool: Tool | None, arguments: Mapping[str, Any], state: AttemptState
    ) -> CallMade | None:
        """Return the call, without an id, that must save unsaved typing before a call to `tool`.

        None if there is nothing to save, as in kinds whose submissions contain their text. Raises
        `AttemptError` if the call to `tool` would then be impossible.
        """
        return None

    @abstractmethod
    def handle(self, call: AttemptCall, bound: BoundCall, log: Log, run: RunContext) -> CallOutcome:
        """Carry out a bound call, write the events between the call and its result, and return its outcome.

        A submission left unfinished by a process that died is judged with the submitted code.
        """

    @abstractmethod
    def remark(self, charged: Remaining, left: Remaining, state: AttemptState) -> list[str]:
        """Return the lines to append to an answer."""

    def refusal(self, tool: Tool) -> str:
        """Return why a tool of the attempt is not offered now."""
        return f"No {tool.name} is left."

    def refuse(self, reason: str, state: AttemptState) -> CallOutcome:
        """Return the answer to a call that can't be carried out, which costs a tool use."""
        return CallOutcome(ToolOutput(f"Refused: {reason}", refused=True), Remaining(1, 0))

    def ending(self, state: AttemptState) -> EndReason | None:
        """Return why the attempt is over: solved, or a budget used up; None if it is not over."""
        if state.solved:
            return EndReason.SOLVED
        if state.remaining.submissions == 0:
            return EndReason.SUBMISSIONS_EXHAUSTED
        return EndReason.CALLS_EXHAUSTED if state.remaining.tool_uses == 0 else None

    def last_call(self, state: AttemptState) -> Tool | None:
        """Return the tool to call automatically at a limit; None if the attempt ends without a call."""
        return None


@dataclass
class ForcedOutcome:
    """The recorded outcome that replaces a judge's next run in a replay; a real run if `status` is None."""

    status: RunStatus | None = None
    reason: str = ""


class TaskJudge(Protocol):
    """A judge of submissions to one task, which also makes the harness of its attempts."""

    @property
    def task(self) -> Task:
        """The task whose submissions are judged; an attempt's task may have other settings."""
        ...

    @property
    def backend(self) -> BackendRecord:
        """The isolation that code runs in."""
        ...

    @property
    def blank(self) -> KindState:
        """The kind's part of an attempt's state before the first event."""
        ...

    def as_recorded(self, task: Task, of_kind: Mapping[str, Any], budgets: Budgets) -> Task:
        """Return the task as recorded by an attempt; `of_kind` is the kind's part of the header."""
        ...

    def harness(self, task: Task) -> TaskHarness:
        """Return the harness of an attempt at `task`, whose settings may differ from the judge's."""
        ...

    def ending_as(self, instead: ForcedOutcome) -> TaskJudge:
        """Return a copy of this judge that consults `instead` before every run."""
        ...
