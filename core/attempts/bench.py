"""What an attempt works with, by the kind of its task: the tools, what they see, and what a call comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gistpoint.core.attempts.budgets import Budgets, Remaining
from gistpoint.core.attempts.events import EndReason, EventType
from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.state import AttemptState, Call
from gistpoint.core.cancel import CancelToken
from gistpoint.core.kinds.gist.verdict import GistVerdict
from gistpoint.core.kinds.repair.judge import Judgement
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.ports import RunProgress
from gistpoint.core.tools.declaration import Tool, ToolOutput
from gistpoint.core.trees import SourceTree

OnProgress = Callable[[RunProgress], None]


@dataclass(frozen=True, slots=True)
class Price:
    """What a call of a tool would spend."""

    tool_uses: int
    submissions: int
    last_tool_use: bool
    last_submission: bool
    scores: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: its answer, what it cost, and the run behind a submission's answer."""

    output: ToolOutput
    charged: Remaining
    judgement: Judgement | None = None
    verdict: GistVerdict | None = None


class Log(Protocol):
    """The attempt, as a bench sees it."""

    @property
    def state(self) -> AttemptState:
        """The state after all events so far."""
        ...

    def append(self, type: EventType, data: Mapping[str, Any]) -> None:
        """Write an event; it is on the disk on return."""
        ...


class Bench(Protocol):
    """One kind of task. It keeps nothing that is not in the events."""

    @property
    def backend(self) -> BackendRecord:
        """The isolation that code runs in."""
        ...

    @property
    def tree(self) -> SourceTree:
        """The repository as it is now."""
        ...

    def restore(self, state: AttemptState) -> None:
        """Bring the repository to what the events of an attempt say."""
        ...

    def budgets(self, role: Role) -> Budgets:
        """Return what a new attempt starts with."""
        ...

    def start_data(self, budgets: Budgets) -> Mapping[str, Any]:
        """Return what `attempt_started` tells of the kind: tools, and what the solver begins with."""
        ...

    def tools(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return the tools that the attempt was started with."""
        ...

    def offered(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return those that can be called now."""
        ...

    def price(self, tool: Tool, state: AttemptState) -> Price:
        """Return what a call would spend."""
        ...

    def to_save(self, tool: str, arguments: Mapping[str, Any], state: AttemptState) -> str | None:
        """Return what was typed and has to be saved, by a step of its own, before a call; None where nothing is."""
        ...

    def handle(
        self, call: Call, tool: Tool, log: Log, on_progress: OnProgress | None, cancel: CancelToken | None
    ) -> Outcome:
        """Carry out a call that fits its declaration, and write the events between it and its result."""
        ...

    def remark(self, charged: Remaining, left: Remaining, state: AttemptState) -> list[str]:
        """Return the lines that end every answer."""
        ...

    def refusal(self, tool: Tool) -> str:
        """Return why a tool that the attempt has is not offered now."""
        ...

    def refuse(self, reason: str, state: AttemptState) -> Outcome:
        """Answer a call that can't be carried out: an unknown tool, one not offered, arguments that do not fit."""
        ...

    def ending(self, state: AttemptState) -> EndReason | None:
        """Return the reason for which the attempt is over; None while it goes on."""
        ...

    def last_call(self, state: AttemptState) -> str:
        """Return the tool that is called by itself when a limit is reached; empty where the attempt just ends."""
        ...
