"""Writes the text of the configuration with which a client connects to a task."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NAME = "gistpoint"
_MARGIN_S = 120
"""Seconds added to the time limit of the tests, for setting up isolation and environment."""
_TO_START_S = 60


@dataclass(frozen=True, slots=True)
class Server:
    """The command with which a client starts the server, or the URL at which it connects."""

    command: Sequence[str]
    environment: Mapping[str, str]
    url: str
    call_s: int
    """Seconds that a call may take."""


def configuration(client: str, words: Sequence[str], url: str, tests_s: float) -> str:
    """Return the configuration of a client as text.

    `words` are the words of the command after `gistpoint`. `url` is the address of the server; empty for the
    standard streams. `tests_s` is the time limit of the tests, in seconds.
    """
    program = shutil.which("gistpoint")
    # A client starts the command in its project's folder: `-P` keeps Python from importing modules there.
    command = [program] if program else [sys.executable, "-P", "-m", "gistpoint"]
    environment = {name: os.environ[name] for name in ("GISTPOINT_HOME",) if os.environ.get(name)}
    return _FORMS[client](Server([*command, *words], environment, url, round(tests_s) + _MARGIN_S))


def _claude(server: Server) -> str:
    entry = _entry(server, "${GISTPOINT_MCP_TOKEN}")
    text = _json({"mcpServers": {NAME: {**entry, "timeout": server.call_s * 1000}}})
    return (
        "# Claude Code: save what follows this line as gistpoint.mcp.json, without the lines that begin with"
        f" #, then\n# MCP_TIMEOUT={_TO_START_S * 1000} MCP_TOOL_TIMEOUT={server.call_s * 1000} \\\n#   claude"
        f" --mcp-config gistpoint.mcp.json --strict-mcp-config --allowedTools mcp__{NAME}\n{text}"
    )


def _codex(server: Server) -> str:
    lines = [
        "# Codex: add this to ~/.codex/config.toml",
        f"[mcp_servers.{NAME}]",
        *(
            [f"url = {json.dumps(server.url)}", 'bearer_token_env_var = "GISTPOINT_MCP_TOKEN"']
            if server.url
            else [
                f"command = {json.dumps(server.command[0])}",
                f"args = {json.dumps(list(server.command[1:]))}",
            ]
        ),
        "required = true",
        f"startup_timeout_sec = {_TO_START_S}",
        f"tool_timeout_sec = {server.call_s}",
    ]
    if server.environment and not server.url:
        lines += [
            f"[mcp_servers.{NAME}.env]",
            *(f"{name} = {json.dumps(value)}" for name, value in server.environment.items()),
        ]
    return "\n".join(lines) + "\n"


def _vscode(server: Server) -> str:
    entry = _entry(server, "${input:gistpoint-token}")
    entry["type"] = "http" if server.url else "stdio"
    asked = {
        "type": "promptString",
        "id": "gistpoint-token",
        "description": "The server's token",
        "password": True,
    }
    inputs = {"inputs": [asked]} if server.url else {}
    return _json({**inputs, "servers": {NAME: entry}})


def _plain(server: Server) -> str:
    return _json({"mcpServers": {NAME: _entry(server, "${GISTPOINT_MCP_TOKEN}")}})


def _entry(server: Server, token: str) -> dict[str, Any]:
    if server.url:
        return {"type": "http", "url": server.url, "headers": {"Authorization": f"Bearer {token}"}}
    environment = {"env": dict(server.environment)} if server.environment else {}
    return {"command": server.command[0], "args": list(server.command[1:]), **environment}


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


_FORMS: Mapping[str, Callable[[Server], str]] = {
    "claude": _claude,
    "codex": _codex,
    "vscode": _vscode,
    "json": _plain,
}
"""The function that writes the configuration, by the value of `--print`."""
