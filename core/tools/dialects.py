"""Tools' declarations in the formats of protocols for models and clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gistpoint.core.tools.declaration import Activity, Tool


def openai_tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a declaration (`Tool.json_schema`) in the format of the Chat Completions API."""
    return {"type": "function", "function": dict(schema)}


def anthropic_tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a declaration (`Tool.json_schema`) in the format of Anthropic's Messages API."""
    return {
        "name": schema["name"],
        "description": schema["description"],
        "input_schema": schema["parameters"],
    }


def gemini_tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a declaration (`Tool.json_schema`) as a Gemini function declaration."""
    return {
        "name": schema["name"],
        "description": schema["description"],
        "parametersJsonSchema": schema["parameters"],
    }


def mcp_tool(tool: Tool) -> dict[str, Any]:
    """Return the declaration in MCP's format (revision 2025-06-18, `Tool`).

    The hints are facts: tools that view or search change nothing, and no tool reaches beyond the task's
    workspace or destroys data irrecoverably.
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


def text_tool(tool: Tool) -> str:
    """Return the declaration as text, for a model that writes its calls as text."""
    schema = tool.json_schema()
    parameters = schema["parameters"]
    lines = [f"- {schema['name']}: {schema['description']}"]
    for name, declared in parameters["properties"].items():
        optional = "" if name in parameters["required"] else " (optional)"
        lines.append(f"  - {name}{optional}: {declared['description']}")
    return "\n".join(lines)
