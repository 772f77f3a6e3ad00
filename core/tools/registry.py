"""The tools of each mode, and the one place in which a tool is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.gist.tools import (
    BASH,
    EDIT_AND_EXECUTE,
    EDIT_GIST,
    REPO_GRAPH,
    SCORE_GIST,
    SUBMIT_GIST,
    TRACE,
    WRITE_GIST,
)
from gistpoint.core.kinds.repair.tools import REPLACE_FUNCTION, SUBMIT_ATTEMPT
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.browsing import LIST_DIRECTORY, LIST_FILE_FUNCTIONS, READ_FILE, READ_FUNCTION
from gistpoint.core.tools.declaration import RefusalError, Tool, ToolContext, ToolOutput
from gistpoint.core.tools.search_code import SEARCH_CODE

BROWSING = (LIST_DIRECTORY, SEARCH_CODE, READ_FILE, LIST_FILE_FUNCTIONS, READ_FUNCTION)
SUBMITTING = (SUBMIT_ATTEMPT, REPLACE_FUNCTION, SUBMIT_GIST)
WRITING = (WRITE_GIST, EDIT_GIST)
OPTIONAL = (TRACE, REPO_GRAPH, BASH, EDIT_AND_EXECUTE)
ALL = (*BROWSING, *WRITING, *OPTIONAL, SCORE_GIST, *SUBMITTING)

TOOLS: Mapping[Mode, tuple[Tool, ...]] = {
    Mode.REMOVE: (*BROWSING, SUBMIT_ATTEMPT),
    Mode.DISCOVERY: (*BROWSING, REPLACE_FUNCTION),
}


def tools_of(mode: Mode, gist: GistSettings | None = None, *, scoring: bool = False) -> tuple[Tool, ...]:
    """Return the tools of a mode, browsing ones first and the hand-in last.

    `gist` are the settings of a gist task, and `scoring` tells whether its attempt has scores left to ask for.
    """
    if mode is not Mode.GIST:
        return TOOLS[mode]
    settings = gist or GistSettings()
    added = {name for name in settings.tools if settings.execution or name != EDIT_AND_EXECUTE.name}
    optional = tuple(tool for tool in OPTIONAL if tool.name in added)
    return (*BROWSING, *optional[:2], *WRITING, *optional[2:], *((SCORE_GIST,) if scoring else ()), SUBMIT_GIST)


def tool_named(mode: Mode, name: str) -> Tool:
    """Return the tool of that name; raises `RefusalError` that names the others."""
    return named(tools_of(mode), name)


def named(tools: tuple[Tool, ...], name: str) -> Tool:
    """Return the tool of that name; raises `RefusalError` that names the others."""
    for tool in tools:
        if tool.name == name:
            return tool
    raise RefusalError(f"There is no tool {name[:80]!r} here; there are {', '.join(t.name for t in tools)}.")


def call(tool: Tool, context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Call a tool; what it refuses is an answer, never an exception."""
    try:
        return tool.run(context, tool.bind(arguments))
    except RefusalError as refusal:
        return ToolOutput(f"Refused: {refusal}", refused=True)


def declarations_sha256(mode: Mode, gist: GistSettings | None = None, *, scoring: bool = False) -> str:
    """Return the hash of the tool declarations (see `tools_of`), as an attempt records it."""
    return sha256_of_json([tool.json_schema() for tool in tools_of(mode, gist, scoring=scoring)])
