"""Tool calls as people type them: `read_function Parser.parse src/parser.py`."""

from __future__ import annotations

import shlex

from gistpoint.core.tools.declaration import RefusalError, Tool


def parse(line: str, tools: tuple[Tool, ...]) -> tuple[Tool, dict[str, str]]:
    """Return the tool and its arguments; raises `RefusalError` with the usage where the line does not fit.

    Words are split as a shell splits them. The last argument of a tool takes the rest of the line as it stands when
    no quotes are used, so that a pattern needs none.
    """
    name, _, rest = line.strip().partition(" ")
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


def spelled(tool: str, arguments: dict[str, str]) -> str:
    """Return a call as one line that `parse` reads back; code is left out."""
    words = [shlex.quote(value) if value != "" else "''" for name, value in arguments.items() if name != "func_code"]
    return " ".join([tool, *words])
