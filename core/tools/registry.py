"""The tools of each mode, and the one place in which a tool is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.declaration import RefusalError, Tool, ToolContext, ToolOutput
from gistpoint.core.tools.list_directory import LIST_DIRECTORY
from gistpoint.core.tools.list_file_functions import LIST_FILE_FUNCTIONS
from gistpoint.core.tools.read_file import READ_FILE
from gistpoint.core.tools.read_function import READ_FUNCTION
from gistpoint.core.tools.replacement import REPLACE_FUNCTION, SUBMIT_ATTEMPT
from gistpoint.core.tools.search_code import SEARCH_CODE

BROWSING = (LIST_DIRECTORY, SEARCH_CODE, READ_FILE, LIST_FILE_FUNCTIONS, READ_FUNCTION)
SUBMITTING = (SUBMIT_ATTEMPT, REPLACE_FUNCTION)

TOOLS: Mapping[Mode, tuple[Tool, ...]] = {
    Mode.REMOVE: (*BROWSING, SUBMIT_ATTEMPT),
    Mode.DISCOVERY: (*BROWSING, REPLACE_FUNCTION),
}


def tools_of(mode: Mode) -> tuple[Tool, ...]:
    """Return the tools of a mode, browsing ones first."""
    return TOOLS[mode]


def tool_named(mode: Mode, name: str) -> Tool:
    """Return the tool of that name; raises `RefusalError` that names the others."""
    for tool in TOOLS[mode]:
        if tool.name == name:
            return tool
    raise RefusalError(f"There is no tool {name!r} here; there are {', '.join(t.name for t in TOOLS[mode])}.")


def call(tool: Tool, context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Call a tool; what it refuses is an answer, never an exception."""
    try:
        return tool.run(context, tool.bind(arguments))
    except RefusalError as refusal:
        return ToolOutput(f"Refused: {refusal}", refused=True)


def declarations_sha256(mode: Mode) -> str:
    """Return the hash of a mode's tool declarations, as an attempt records it."""
    return sha256_of_json([tool.json_schema() for tool in TOOLS[mode]])
