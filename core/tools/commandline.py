"""Tool calls as people type them: `read_function Parser.parse src/parser.py`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from gistpoint.core.tools.declaration import Kind, RefusalError, Tool
from gistpoint.core.tools.registry import ALL

CODE = frozenset(a.name for tool in ALL for a in tool.arguments if a.kind is Kind.CODE)


def parse(line: str, tools: tuple[Tool, ...]) -> tuple[Tool, dict[str, str]]:
    """Return the tool and its arguments; raises `RefusalError` with the usage where the line does not fit.

    Words are split as a shell splits them. The last argument of a tool takes the rest of the line as it stands when
    no quotes are used, so that a pattern needs none.
    """
    name, rest = [*line.split(maxsplit=1), "", ""][:2]
    tool = next((t for t in tools if t.name == name), None)
    if tool is None:
        raise RefusalError(f"There is no tool {name!r} here; there are {', '.join(t.name for t in tools)}.")
    rest = rest.strip()
    if len(tool.arguments) == 1 and rest and rest[0] not in "'\"":
        return tool, {tool.arguments[0].name: rest}
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise RefusalError(f"A quote is not closed ({error}). Usage: {tool.usage()}") from error
    if len(words) > len(tool.arguments):
        raise RefusalError(f"Too many words. Usage: {tool.usage()}")
    arguments = {argument.name: word for argument, word in zip(tool.arguments, words, strict=False)}
    for argument in tool.arguments:
        if argument.name not in arguments and argument.default is None:
            raise RefusalError(f"{argument.name} is missing. Usage: {tool.usage()}")
    return tool, arguments


def spelled(tool: str, arguments: Mapping[str, object]) -> str:
    """Return a call as one line that `parse` reads back, arguments in their declared order; code is left out."""
    order = [argument.name for known in ALL if known.name == tool for argument in known.arguments]
    names = sorted(arguments, key=lambda name: order.index(name) if name in order else len(order))
    return " ".join([tool, *(shlex.quote(str(arguments[name])) for name in names if name not in CODE)])
