"""`write_gist` and `edit_gist`: the gist as a whole, or a part of it."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.attempts.gist_text import EditError, written
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


def accepted(context: ToolContext, tool: str, arguments: Mapping[str, str]) -> str:
    """Return the gist as a call makes it; raises `RefusalError` for one that can't be kept."""
    try:
        text = written(context.desk.text, tool, arguments) or ""
    except EditError as error:
        raise RefusalError(str(error)) from error
    longest = context.desk.settings.gist_characters
    if len(text) > longest:
        raise RefusalError(f"The gist would have {len(text)} characters; at most {longest} are taken.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RefusalError(f"The gist would hold half a character at {error.start}, which is no text.") from error
    return text


def counted(text: str) -> str:
    """Return the size of a gist in words."""
    lines = len(text.splitlines())
    return f"The gist has {lines} {'line' if lines == 1 else 'lines'} and {len(text)} characters."


def _write(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    return ToolOutput(counted(accepted(context, "write_gist", arguments)))


def _edit(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    return ToolOutput(counted(accepted(context, "edit_gist", arguments)))


WRITE_GIST = Tool(
    name="write_gist",
    description="Write the whole gist; what it held before is gone.",
    arguments=(Argument("content", Kind.CODE, "The text of the gist."),),
    group=Group.INFO,
    activity=Activity.OTHER,
    run=_write,
)

EDIT_GIST = Tool(
    name="edit_gist",
    description="Replace a text that stands in the gist exactly once.",
    arguments=(
        Argument("old", Kind.CODE, "The text to replace, with its spaces and line ends."),
        Argument("new", Kind.CODE, "What takes its place; empty to take it out."),
    ),
    group=Group.INFO,
    activity=Activity.OTHER,
    run=_edit,
)
