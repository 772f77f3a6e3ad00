"""`bash` and `edit_and_execute`: what a solver may run, in the sandbox alone."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.text import bounded
from gistpoint.core.tools.declaration import (
    Activity,
    Argument,
    Group,
    Kind,
    RefusalError,
    Tool,
    ToolContext,
    ToolOutput,
)
from gistpoint.core.tools.edit_gist import accepted, counted

MAX_COMMAND_CHARACTERS = 10_000


def _bash(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    command = arguments["command"]
    if not command.strip():
        raise RefusalError("The command is empty.")
    if len(command) > MAX_COMMAND_CHARACTERS or "\0" in command:
        raise RefusalError(f"A command has at most {MAX_COMMAND_CHARACTERS} characters, and no NUL among them.")
    output = context.desk.shell(command)
    if output.refused:
        raise RefusalError(output.refused)
    text = bounded(output.text, context.desk.settings.output_characters, what="output").rstrip("\n")
    ended = (
        f"The command ended as {output.status}." if output.exit_status is None else f"Exit status {output.exit_status}."
    )
    return ToolOutput(f"{ended}\n{text}".rstrip("\n"))


def _edit_and_execute(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    text = accepted(context, "edit_and_execute", arguments)
    if arguments["execute"] not in ("true", "false"):
        raise RefusalError("execute is 'true' or 'false'.")
    head = counted(text)
    if arguments["execute"] == "false":
        return ToolOutput(head)
    shown = bounded(context.desk.trial(text), context.desk.settings.output_characters, what="output")
    return ToolOutput(f"{head}\n\n{shown}".rstrip("\n"))


BASH = Tool(
    name="bash",
    description="Run a shell command in a copy of the repository. The gist lies in it too: as test_gist.py where the "
    "task's command is a test, else as gist.py. What the command changes is not kept.",
    arguments=(Argument("command", Kind.COMMAND, "The command, as a shell takes it."),),
    group=Group.INFO,
    activity=Activity.EXECUTE,
    run=_bash,
    runs_code=True,
)

EDIT_AND_EXECUTE = Tool(
    name="edit_and_execute",
    description="Write the whole gist, run the task's command on it alone, and see what that run shows.",
    arguments=(
        Argument("content", Kind.CODE, "The text of the gist."),
        Argument("execute", Kind.FLAG, "'true' to run it, 'false' to write it only.", default="true"),
    ),
    group=Group.INFO,
    activity=Activity.EXECUTE,
    run=_edit_and_execute,
    runs_code=True,
)
