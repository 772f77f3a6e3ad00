"""What can be completed in the console: names of tools, and what results of this attempt have shown. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from gistpoint.core.attempts.knowledge import Knowledge
from gistpoint.core.tools.declaration import Argument, Kind, Tool


def candidates(line: str, tools: Iterable[Tool], knowledge: Knowledge) -> list[str]:
    """Return whole lines that `line` can be completed to, the shortest first; nothing that was not shown."""
    name, space, rest = line.partition(" ")
    if not space:
        return [f"{tool.name} " for tool in tools if tool.name.startswith(name) and tool.name != name]
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        return []
    done, _, last = rest.rpartition(" ")
    words = done.split()
    if len(words) >= len(tool.arguments):
        return []
    values = _values(tool.arguments[len(words)], words, tool, knowledge)
    head = f"{name} {done} " if done else f"{name} "
    found = sorted({value for value in values if value.startswith(last) and value != last}, key=lambda v: (len(v), v))
    return [head + shlex.quote(value) for value in found]


def _values(argument: Argument, words: list[str], tool: Tool, knowledge: Knowledge) -> list[str]:
    if argument.kind is Kind.FOLDER:
        return [path for path, kind in knowledge.entries.items() if kind == "dir"]
    if argument.kind is Kind.FILE:
        return _files(words, tool, knowledge)
    if argument.kind is Kind.FUNCTION:
        return [name.partition("::")[2] for name in knowledge.functions]
    return []


def _files(words: list[str], tool: Tool, knowledge: Knowledge) -> list[str]:
    """Files that were shown; behind a function's name, those first that define it."""
    files = [path for path, kind in knowledge.entries.items() if kind == "file"]
    at = next((n for n, argument in enumerate(tool.arguments) if argument.kind is Kind.FUNCTION), None)
    if at is None or at >= len(words):
        return files
    defining = [name.partition("::")[0] for name in knowledge.functions if name.partition("::")[2] == words[at]]
    return defining or files
