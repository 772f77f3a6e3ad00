"""Lets scaffolds work on the attempts of a run, and serves the tools to those that speak MCP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gistpoint.core.agents.loop import ModelWork, WorkEnd
from gistpoint.core.agents.scaffolds import Scaffold, ScaffoldError, Seat, occupied
from gistpoint.core.attempts.events import Pane
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import Tool
from gistpoint.sessions.served import Answered, Served, budgets_left

LOGS = "scaffold"
"""The name of the folder, next to an attempt's journal, with the scaffold's own logs."""
ToolServer = Callable[[Served, Path], AbstractContextManager[None]]
"""Serves an attempt over MCP to each connection to the Unix socket at a path, while the context lasts."""


def serves_nothing(served: Served, path: Path) -> AbstractContextManager[None]:
    """Raise `ScaffoldError`, since nothing here can serve tools."""
    raise ScaffoldError("Tools can't be served over MCP here.", hint="Use the command `gistpoint agent run`.")


def seated(scaffold: Scaffold, work: ModelWork, folder: Path, model: str, serve: ToolServer) -> WorkEnd:
    """Let a scaffold work on an attempt, and return how the work ended; `folder` is the attempt's."""
    logs = folder / LOGS
    logs.mkdir(mode=0o700, exist_ok=True)
    seat = Seat(work, logs, model)
    seat.serve_tools = lambda path: serve(SeatServed(seat), path)
    return occupied(scaffold, seat)


@dataclass
class SeatServed:
    """Adapts a scaffold's seat at an attempt to `Served`, so that its tools can be served over MCP."""

    seat: Seat
    lease: None = None

    @property
    def task(self) -> Task:
        """The task."""
        return self.seat.work.attempt.task

    def prepare(self) -> None:
        """Do nothing, since the attempt has begun."""

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that can be called now; after the end, all tools of the attempt."""
        return self.seat.tools() or self.seat.work.attempt.tools

    def read_brief(self, client: Mapping[str, Any]) -> Answered:
        """Return the brief, at no cost."""
        if self.seat.over:
            return self._answered("The attempt has ended.", refused=True)
        self.seat.work.attempt.view(Pane.BRIEF)
        return self._answered(self.seat.brief)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        raw: str,
        client: Mapping[str, Any],
        run: RunContext,
    ) -> Answered:
        """Make a call and return its answer; the run's own context replaces the connection's."""
        self.seat.work.attempt.view(Pane.MODEL)
        answer = self.seat.call(name, arguments, raw=raw)
        return self._answered(answer.text, refused=answer.refused)

    def _answered(self, text: str, *, refused: bool = False) -> Answered:
        return Answered(text, refused, budgets_left(self.seat.work.attempt.state))

    def beat(self) -> None:
        """Record a heartbeat of the attempt; if its time is up, end it or begin the hand-in."""
        self.seat.beat()

    def hand_in(self) -> None:
        """Judge the hand-in that was begun when a time limit was reached, if there is one."""
        if not self.seat.over:
            self.seat.work.attempt.finish_pending(run=self.seat.work.run)

    def close(self, *, at_once: bool = False) -> None:
        """Do nothing: the run closes the attempt."""
