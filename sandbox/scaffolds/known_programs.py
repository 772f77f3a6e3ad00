"""The known programs that speak MCP, with the options that leave them only the task's tools.

Tested with the versions in the guide; another version may have other options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gistpoint.core.agents.scaffolds import NO_TOOLS
from gistpoint.sandbox.scaffolds.confinement import WORK, python
from gistpoint.sandbox.scaffolds.proxy import PLACEHOLDER

PROMPT: Final = "Call read_brief of the server gistpoint, and do what it says."
HOME: Final = f"{WORK}/home"
_TO_START_S: Final = 60
_CALL_S: Final = 3600
"""The time limit of one call in seconds; the tests have their own limits."""
_SESSION: Final = re.compile(r'"sessionID":"(ses_\w{1,100})"')
_SERVER: Final = (f"{WORK}/inside.py", "relay", f"{WORK}/tools.sock")
"""The arguments with which the interpreter connects a program to the task's tools."""


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """A program that speaks MCP, with its options."""

    name: str
    command: str
    """The name of its command, which is searched for in PATH."""
    install: str
    """The command that installs it."""
    key_names: tuple[str, ...]
    """The environment variables that may contain the vendor's key; gistpoint's own come first."""
    url_name: str
    base_url: str
    """The vendor's own address, which is used if no other is given."""
    words: Callable[[str], Sequence[str]]
    """A function that returns the words after the command, for a model's name."""
    environment: Callable[[str, str], Mapping[str, str]]
    """A function that returns the environment variables, for a model's name and the address of the proxy."""
    files: Callable[[str, str], Mapping[str, str]]
    """A function that returns its settings by path below its home, for a model's name and the proxy's URL."""
    logs: tuple[str, ...]
    """The patterns of its log files below its home."""
    client_tools: str = NO_TOOLS
    export: Callable[[str], Sequence[str]] | None = None
    """A function that returns, from its output, a command to print its log; None if it writes log files."""


def _claude_words(model: str) -> list[str]:
    own = ["--tools", "WaitForMcpServers", "--strict-mcp-config", "--allowedTools", "mcp__gistpoint"]
    return ["-p", PROMPT, "--model", model, *own, "--mcp-config", f"{HOME}/mcp.json"]


def _claude_environment(model: str, url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": PLACEHOLDER,
        "ANTHROPIC_SMALL_FAST_MODEL": model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
        "CLAUDE_CONFIG_DIR": f"{HOME}/claude",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "MCP_TIMEOUT": str(_TO_START_S * 1000),
        "MCP_TOOL_TIMEOUT": str(_CALL_S * 1000),
    }


def _claude_files(model: str, url: str) -> dict[str, str]:
    server = {"type": "stdio", "command": python(), "args": [*_SERVER]}
    return {"mcp.json": json.dumps({"mcpServers": {"gistpoint": server}})}


def _codex_words(model: str) -> list[str]:
    # The sandbox around it is gistpoint's; its own would be a second one inside.
    return ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT]


def _codex_environment(model: str, url: str) -> dict[str, str]:
    return {"CODEX_HOME": f"{HOME}/codex", "GISTPOINT_PROXY_KEY": PLACEHOLDER}


_CODEX_OFF: Final = (
    "shell_tool",
    "multi_agent",
    "goals",
    "apps",
    "browser_use",
    "computer_use",
    "image_generation",
    "plugins",
    "sleep_tool",
)
"""The features of Codex that would add tools."""


def _codex_files(model: str, url: str) -> dict[str, str]:
    lines = [
        f"model = {json.dumps(model)}",
        'model_provider = "gistpoint"',
        'approval_policy = "never"',
        'web_search = "disabled"',
        "[features]",
        *(f"{name} = false" for name in _CODEX_OFF),
        "[model_providers.gistpoint]",
        'name = "gistpoint"',
        f"base_url = {json.dumps(url)}",
        'wire_api = "responses"',
        'env_key = "GISTPOINT_PROXY_KEY"',
        "[mcp_servers.gistpoint]",
        f"command = {json.dumps(python())}",
        f"args = {json.dumps([*_SERVER])}",
        "required = true",
        f"startup_timeout_sec = {_TO_START_S}",
        f"tool_timeout_sec = {_CALL_S}",
    ]
    return {"codex/config.toml": "\n".join(lines) + "\n"}


def _gemini_words(model: str) -> list[str]:
    return ["--prompt", PROMPT, "--model", model, "--approval-mode", "yolo", "--skip-trust"]


def _gemini_environment(model: str, url: str) -> dict[str, str]:
    return {
        "GEMINI_API_KEY": PLACEHOLDER,
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _gemini_files(model: str, url: str) -> dict[str, str]:
    server = {"command": python(), "args": [*_SERVER], "trust": True, "timeout": _CALL_S * 1000}
    settings: dict[str, Any] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "mcpServers": {"gistpoint": server},
        # `exclude` would also hide tools of servers with the same names.
        "tools": {"core": ["mcp_gistpoint_*"]},
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    return {".gemini/settings.json": json.dumps(settings)}


def _opencode_words(model: str) -> list[str]:
    return ["run", "--pure", "--auto", "--format", "json", "--model", f"gistpoint/{model}", PROMPT]


def _opencode_environment(model: str, url: str) -> dict[str, str]:
    return {
        "OPENCODE_CONFIG": f"{HOME}/opencode.json",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


def _opencode_files(model: str, url: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": PLACEHOLDER},
        "models": {model: {"tool_call": True}},
    }
    server = {
        "type": "local",
        "command": [python(), *_SERVER],
        "enabled": True,
        "timeout": _CALL_S * 1000,
    }
    settings: dict[str, Any] = {
        "provider": {"gistpoint": provider},
        "model": f"gistpoint/{model}",
        "small_model": f"gistpoint/{model}",
        "mcp": {"gistpoint": server},
        "tools": {"*": False, "gistpoint_*": True},
        "autoupdate": False,
        "share": "disabled",
    }
    return {"opencode.json": json.dumps(settings)}


def _opencode_export(printed: str) -> list[str]:
    session = _SESSION.search(printed)
    return ["export", session[1]] if session is not None else []


CLAUDE: Final = AgentProgram(
    name="claude-code",
    command="claude",
    install="npm install -g @anthropic-ai/claude-code",
    key_names=("ANTHROPIC_API_KEY",),
    url_name="ANTHROPIC_BASE_URL",
    base_url="https://api.anthropic.com",
    words=_claude_words,
    environment=_claude_environment,
    files=_claude_files,
    logs=("claude/projects/**/*.jsonl",),
)
CODEX: Final = AgentProgram(
    name="codex",
    command="codex",
    install="npm install -g @openai/codex",
    key_names=(),
    url_name="OPENAI_BASE_URL",
    base_url="https://api.openai.com/v1",
    words=_codex_words,
    environment=_codex_environment,
    files=_codex_files,
    logs=("codex/sessions/**/*.jsonl",),
    client_tools="images, questions",
)
GEMINI: Final = AgentProgram(
    name="gemini-cli",
    command="gemini",
    install="npm install -g @google/gemini-cli",
    key_names=("GEMINI_API_KEY",),
    url_name="GOOGLE_GEMINI_BASE_URL",
    base_url="https://generativelanguage.googleapis.com",
    words=_gemini_words,
    environment=_gemini_environment,
    files=_gemini_files,
    logs=(".gemini/tmp/**/chats/*.json*",),
)
OPENCODE: Final = AgentProgram(
    name="opencode",
    command="opencode",
    install="npm install -g opencode-ai",
    key_names=(),
    url_name="OPENAI_BASE_URL",
    base_url="https://api.openai.com/v1",
    words=_opencode_words,
    environment=_opencode_environment,
    files=_opencode_files,
    logs=(),
    export=_opencode_export,
)
PROGRAMS: Final[Mapping[str, AgentProgram]] = {
    program.name: program for program in (CLAUDE, CODEX, GEMINI, OPENCODE)
}
"""The known programs by name."""
