"""Tool calls as shell commands such as `read_file src/a.py`, with code in heredocs, for shell-only agents.

A command is parsed strictly: where a person would be asked what is meant, the call is refused, at the usual
cost of a refused call.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gistpoint.core.tools.declaration import Argument, ArgumentKind, Tool, find_tool

_HEREDOC = re.compile(r"<<(-?)\s*(['\"]?)([A-Za-z_]\w*)\2")
_ECHO = 80
"""The maximum number of characters in a misplaced word that a refusal repeats."""


@dataclass(frozen=True, slots=True)
class ShellCall:
    """The call that a command expresses; the engine refuses it if the tool or arguments are wrong."""

    tool: str
    arguments: dict[str, str] = field(default_factory=dict)


def call_in(command: str, tools: Sequence[Tool]) -> ShellCall:
    """Return the call that a command expresses.

    Words are the arguments in their declared order, quoted as in a shell, or `name=value`. Each heredoc
    (`<<'EOF'`) is the text of the next argument that takes code. An argument that is a command consists of
    the rest of the line. A misplaced word becomes an argument that no tool has, and the refusal then names
    it.
    """
    line, _, rest = command.strip().partition("\n")
    name, _, words = line.strip().partition(" ")
    tool = find_tool(tools, name)
    if tool is None:
        return ShellCall(name)
    code = [argument for argument in tool.arguments if argument.kind is ArgumentKind.CODE]
    documents = [found[3] for found in _HEREDOC.finditer(words)] if code else []
    texts = list(_documents(documents, rest))
    given = {argument.name: text for argument, text in zip(code, texts, strict=False)}
    others = [argument for argument in tool.arguments if argument.name not in given]
    left = _first_line_after(documents, rest)
    arguments = given | _placed(_HEREDOC.sub("", words).strip() if code else words.strip(), others)
    return ShellCall(name, arguments | ({left[:_ECHO]: ""} if left else {}))


def _documents(ends: Sequence[str], rest: str) -> Iterator[str]:
    """Yield the bodies of heredocs that end with these words; the last one may be unterminated."""
    lines = rest.split("\n")
    for end in ends:
        text: list[str] = []
        while lines and (line := lines.pop(0)).strip() != end:
            text.append(line)
        yield "".join(f"{line}\n" for line in text)


def _first_line_after(ends: Sequence[str], rest: str) -> str:
    """Return the first line after the heredocs that is not empty; an empty string if there is none."""
    lines = rest.split("\n")
    for end in ends:
        while lines and lines.pop(0).strip() != end:
            pass
    return next((line.strip() for line in lines if line.strip()), "")


def _placed(words: str, places: Sequence[Argument]) -> dict[str, str]:
    """Return the arguments that the words of a command express, by name."""
    is_command = len(places) == 1 and places[0].kind is ArgumentKind.COMMAND
    try:
        split = shlex.split(words)
    except ValueError:
        split = []  # a quote is not closed
        if not is_command:
            return {words[:_ECHO]: ""}
    if is_command and words:
        return {places[0].name: split[0] if len(split) == 1 else words}
    names = {argument.name for argument in places}
    found: dict[str, str] = {}
    unnamed: list[str] = []
    for word in split:
        name, is_named, value = word.partition("=")
        if is_named and name in names and name not in found:
            found[name] = value
        else:
            unnamed.append(word)
    free = [argument.name for argument in places if argument.name not in found]
    found |= dict(zip(free, unnamed, strict=False))
    return found | {word[:_ECHO]: "" for word in unnamed[len(free) :]}


def usage_lines(tools: Sequence[Tool]) -> str:
    """Return a line for each tool, with the form of its command and its purpose."""
    return "\n".join(f"- `{_form(tool)}`: {tool.description}" for tool in tools)


def _form(tool: Tool) -> str:
    words = [tool.name]
    for argument in tool.arguments:
        if argument.kind is not ArgumentKind.CODE:
            words.append(argument.name if argument.default is None else f"[{argument.name}]")
    code = [argument.name for argument in tool.arguments if argument.kind is ArgumentKind.CODE]
    return " ".join([*words, *(f"<<'{name.upper()}'" for name in code)])


def example_of(tools: Sequence[Tool]) -> str:
    """Return a command with a heredoc for the first tool that takes code; an empty string if none does."""
    taking = [tool for tool in tools if tool.takes(ArgumentKind.CODE)]
    if not taking:
        return ""
    tool = taking[0]
    ends = [argument.name.upper() for argument in tool.arguments if argument.kind is ArgumentKind.CODE]
    return "\n".join([_form(tool), *(line for end in ends for line in ("...", end))])
