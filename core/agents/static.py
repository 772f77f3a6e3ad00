"""The static setting of gists: one request with all files of the command, and one hand-in (Gistify, 4.3)."""

from __future__ import annotations

import re

from gistpoint.core.agents.settings import AgentSettings, filled
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.chat import ChatMessage
from gistpoint.core.code.parsing import fault_in
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.estimates import tokens_in
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task

BUDGETS = Budgets.of_steps(2)
"""The budgets of an attempt: a step that writes the gist, and the hand-in."""
AUTOMATIC = "static"
"""The reason recorded for the two calls that the program makes on behalf of the model."""
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")


class StaticRefusedError(UserError):
    """A task can't be sent in a single request."""


def static_prompt(task: Task) -> str:
    """Return the request in the wording of the task's kind: for a gist, its rules and the traced files.

    Raises `StaticRefusedError` for a task of another kind.
    """
    request = kind_of(task).one_request(task, read_answer(task))
    if request is None:
        raise StaticRefusedError(
            f"The task {task.short_id} is not a gist: the static setting is for gists.",
            hint="Use --setting tools.",
        )
    return filled(request.prompt, request.values) + "\n"


def static_tokens(task: Task) -> int:
    """Return an upper estimate of the request's tokens.

    Raises `StaticRefusedError` for a task that is not a gist.
    """
    return tokens_in(len(static_prompt(task)))


def require_fitting(task: Task, settings: AgentSettings) -> None:
    """Raise `StaticRefusedError` if a task is not a gist, or if its request exceeds the context."""
    tokens = static_tokens(task)
    if tokens > settings.context_tokens:
        raise StaticRefusedError(
            f"The task {task.short_id} is too long for the static setting: its files are about {tokens}"
            f" tokens, and the context is {settings.context_tokens}.",
            hint="Leave the task out, or use --setting tools.",
        )


def static_messages(attempt: Attempt, settings: AgentSettings) -> list[ChatMessage]:
    """Return the messages of the single request.

    Raises `StaticRefusedError` if the task is not a gist or exceeds the context.
    """
    require_fitting(attempt.task, settings)
    return [ChatMessage("user", static_prompt(attempt.task))]


def file_in(reply: str) -> str:
    """Return the file in a reply: its last fenced block, or the whole text if it is Python.

    The result is empty if the block is blank, or if there is neither.
    """
    blocks = _fenced(reply)
    if blocks:
        return blocks[-1] if blocks[-1].strip() else ""
    if reply.strip() and not fault_in(reply):
        return reply
    return ""


def _fenced(reply: str) -> list[str]:
    """Return the closed fenced blocks of a reply in Markdown."""
    found: list[str] = []
    block: list[str] | None = None
    fence = ""
    for line in physical_lines(reply):
        mark = _FENCE.match(line)
        if block is None:
            if mark:
                block = []
                fence = mark[1]
            continue
        # A closing fence is at least as long as the opening one, and alone on its line.
        closes = mark is not None and mark[1].startswith(fence) and not line.strip().strip(fence[0])
        if closes:
            found.append("\n".join([*block, ""]))
            block = None
        else:
            block.append(line)
    return found


def hand_in(attempt: Attempt, turn: ModelTurn, *, run: RunContext = UNATTENDED) -> None:
    """Make the next call that hands in a model's reply, skipping those already made."""
    calls = kind_of(attempt.task).handed_in(file_in(turn.content))
    done = {call.tool for call in attempt.state.calls if call.automatic == AUTOMATIC}
    tool, arguments = next((call for call in calls if call[0].name not in done), calls[-1])
    try:
        attempt.call(tool.name, arguments, turn=turn.turn, automatic=AUTOMATIC, run=run)
    except AttemptError:
        if not attempt.state.ended:  # otherwise the attempt's time was up
            raise
