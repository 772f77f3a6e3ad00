"""One declaration in the spelling of each protocol."""

from __future__ import annotations

import pytest

from gistpoint.core.kinds.gist.tools import SUBMIT_GIST, TRACE, WRITE_GIST
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.declaration import Tool
from gistpoint.core.tools.dialects import mcp_tool, openai_tool
from gistpoint.core.tools.replacing import REPAIR_TOOLS

ALL = [*REPAIR_TOOLS[Mode.REMOVE], *REPAIR_TOOLS[Mode.DISCOVERY], WRITE_GIST, SUBMIT_GIST, TRACE]
LOOKS = {"list_directory", "search_code", "read_file", "list_file_functions", "read_function", TRACE.name}


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_every_dialect_carries_the_declaration_unchanged(tool: Tool) -> None:
    schema = tool.json_schema()
    assert openai_tool(schema) == {"type": "function", "function": schema}
    listed = mcp_tool(tool)
    assert (listed["name"], listed["description"]) == (schema["name"], schema["description"])
    assert listed["inputSchema"] == schema["parameters"]


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_mcp_says_which_tools_only_look(tool: Tool) -> None:
    hints = mcp_tool(tool)["annotations"]
    assert hints == {"readOnlyHint": tool.name in LOOKS, "openWorldHint": False, "destructiveHint": False}
