"""A tool's declaration in the formats of the protocols that models and their clients use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gistpoint.core.tools.declaration import Activity, Tool


def openai_tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a declaration (`Tool.json_schema`) as a chat completion takes it."""
    return {"type": "function", "function": dict(schema)}


def mcp_tool(tool: Tool) -> dict[str, Any]:
    """Return the declaration as MCP lists it (revision 2025-06-18, `Tool`).

    The hints are facts: tools that look or search change nothing, and no tool reaches beyond the task's
    workspace or destroys what can't be written again.
    """
    schema = tool.json_schema()
    return {
        "name": schema["name"],
        "description": schema["description"],
        "inputSchema": schema["parameters"],
        "annotations": {
            "readOnlyHint": tool.activity in (Activity.VIEW, Activity.SEARCH),
            "openWorldHint": False,
            "destructiveHint": False,
        },
    }
