"""Declares tools in one place for forms, the command line, JSON schemas, answers and replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import msgspec

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.code.splice import with_definition
from gistpoint.core.tasks.model import ToolLimits
from gistpoint.core.trees import SourceTree

_ECHO = 80
"""The maximum number of characters in an unknown name that a refusal repeats."""


class Group(StrEnum):
    """The group of a tool in the figures of the Breakpoint paper."""

    INFO = "info"
    SUBMIT = "submit"


class Activity(StrEnum):
    """The activity of a tool in table 7 of the Gistify paper."""

    VIEW = "view"
    SEARCH = "search"
    EXECUTE = "execute"
    OTHER = "other"


Step = Literal["view", "search", "edit", "execute", "test", "submit"]
"""The kind of a run's step, the same for all formats of recorded runs."""
Rewrite = Callable[[str, Mapping[str, Any]], str]
"""Returns the text of a gist after a call, from the previous text and the arguments.

May raise `RefusalError`.
"""


class ArgumentKind(StrEnum):
    """The kind of an argument's content, which decides its completion and editor but not its transport."""

    FOLDER = "folder"
    FILE = "file"
    FUNCTION = "function"
    PATTERN = "pattern"
    CODE = "code"
    COMMAND = "command"
    NAME = "name"
    FLAG = "flag"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool."""

    name: str
    kind: ArgumentKind
    description: str
    default: str | None = None
    """The default value; None if the argument is required."""


class Revealed(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parts of the repository that a result shows."""

    entries: tuple[tuple[str, str], ...] = ()
    """Entries as (path, `dir` or `file`)."""
    listed: tuple[str, ...] = ()
    """The folders whose entries were listed."""
    files: tuple[str, ...] = ()
    """The files shown completely."""
    functions: tuple[tuple[str, int, int], ...] = ()
    """Functions as (`path::qualname`, first line, last line)."""
    sources: tuple[str, ...] = ()
    """The functions whose source was shown, as `path::qualname`."""
    span: tuple[int, int] | None = None
    """The offset and length of the file's or function's source within the text; None if it has none.

    Readers need not search the answer for the source by its wording, which may change (decision 64).
    """
    traced: tuple[tuple[str, int, str], ...] = ()
    """The functions that a command ran, as (path, line, qualified name), in the order of first call."""


NOTHING_REVEALED = Revealed()


@dataclass(frozen=True, slots=True)
class Replacement:
    """An accepted replacement of one definition or, with an empty `qualname`, of a whole file."""

    path: str
    qualname: str
    """The qualified name; empty if the code replaces the whole file."""
    code: str

    @property
    def name(self) -> str:
        """`path::qualname`, or the path alone for a whole file."""
        return f"{self.path}::{self.qualname}" if self.qualname else self.path

    def on(self, tree: SourceTree) -> SourceTree:
        """Return the tree with the definition replaced. Raises `CodeError` if the code can't replace it."""
        return with_definition(tree, self.path, self.qualname, self.code)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The answer of a tool: one string, equal byte for byte for every caller."""

    text: str
    refused: bool = False
    revealed: Revealed = NOTHING_REVEALED
    replacement: Replacement | None = None
    """The accepted replacement to test; set by the submission tools of a repair."""


class RefusalError(Exception):
    """Raised inside a tool: the call is answered with the reason and has no other effect."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The data and services that a tool may use."""

    tree: SourceTree
    limits: ToolLimits
    target: str = ""
    """The function to repair as `path::qualname`, in remove mode."""
    test_files: frozenset[str] = frozenset()
    of_kind: object = None
    """Further data for the tools of one kind of task, such as a `core.kinds.gist.tools.GistAccess`."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. Its name and arguments never change: journals, recorded runs and papers refer to them.

    Its traits are declared here, because lists of tools by name disagreed with each other (decision 63).
    """

    name: str
    description: str
    arguments: tuple[Argument, ...]
    group: Group
    activity: Activity
    step: Step
    run: Callable[[ToolContext, Mapping[str, str]], ToolOutput] | None
    """Answers a call; None if the harness answers it, for example with text that it already has."""
    runs_code: bool = False
    """Whether a call may run code in the sandbox, so it can take long and be cancelled."""
    runs_gist: bool = False
    """Whether a call may run an unsubmitted gist; offered only by tasks that allow execution."""
    rewrite: Rewrite | None = None
    """Returns the new text of the gist; None for a tool that does not write the gist."""
    replaces_text: bool = False
    """Whether a call writes the whole gist, so unsaved edits are discarded."""

    @property
    def submits(self) -> bool:
        """Whether a call costs a submission in addition to its tool use."""
        return self.group is Group.SUBMIT

    @property
    def writes_gist(self) -> bool:
        """Whether a call changes the gist."""
        return self.rewrite is not None

    def takes(self, kind: ArgumentKind) -> bool:
        """Return whether the tool declares an argument of this kind."""
        return any(argument.kind is kind for argument in self.arguments)

    def value(self, kind: ArgumentKind, arguments: Mapping[str, Any]) -> str | None:
        """Return a call's first string argument of a kind; None if there is none."""
        names = [argument.name for argument in self.arguments if argument.kind is kind]
        return next((value for name in names if isinstance(value := arguments.get(name), str)), None)

    def json_schema(self) -> dict[str, Any]:
        """Return the declaration as a function for a chat model's tool list and for MCP."""
        properties = {a.name: {"type": "string", "description": a.description} for a in self.arguments}
        required = [a.name for a in self.arguments if a.default is None]
        parameters = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
        return {"name": self.name, "description": self.description, "parameters": parameters}

    def bind(self, arguments: Mapping[str, Any]) -> BoundCall:
        """Return a call with defaults filled in. Raises `RefusalError` if the arguments do not fit.

        A JSON boolean is accepted for a flag, and null for an optional argument; nothing else is coerced.
        """
        names = {argument.name for argument in self.arguments}
        if extra := sorted(str(name) for name in set(arguments) - names):
            raise RefusalError(f"{self.name} has no argument {extra[0][:_ECHO]!r}; it takes {self.usage()}.")
        bound: dict[str, str] = {}
        for argument in self.arguments:
            value = arguments.get(argument.name)
            if value is None:
                value = argument.default
            if value is None:
                raise RefusalError(
                    f"{self.name} needs the argument {argument.name!r}; it takes {self.usage()}."
                )
            if isinstance(value, bool) and argument.kind is ArgumentKind.FLAG:
                value = "true" if value else "false"
            if not isinstance(value, str):
                raise RefusalError(f"{self.name}: the argument {argument.name!r} must be a string.")
            bound[argument.name] = value
        return BoundCall(self, bound)

    def usage(self) -> str:
        """Return the form in which a call is typed, with optional arguments in brackets."""
        shown = [a.name if a.default is None else f"[{a.name}]" for a in self.arguments]
        return " ".join([self.name, *shown])


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A tool with valid arguments for one call."""

    tool: Tool
    arguments: Mapping[str, str]

    def answer(self, context: ToolContext) -> ToolOutput:
        """Run the tool; a refusal is returned as an answer."""
        assert self.tool.run is not None, f"the harness carries out {self.tool.name}"
        try:
            return self.tool.run(context, self.arguments)
        except RefusalError as refusal:
            return ToolOutput(f"Refused: {refusal}", refused=True)


def find_tool(tools: Iterable[Tool], name: str) -> Tool | None:
    """Return the tool with this name; None if there is none."""
    return next((tool for tool in tools if tool.name == name), None)


def named(tools: tuple[Tool, ...], name: str) -> Tool:
    """Return the tool with this name. Raises `RefusalError`, which lists the tools, if there is none."""
    tool = find_tool(tools, name)
    if tool is None:
        raise RefusalError(
            f"There is no tool {name[:_ECHO]!r} here; there are {', '.join(t.name for t in tools)}."
        )
    return tool


def declarations_sha256(tools: Iterable[Tool]) -> str:
    """Return the hash of tools' declarations, which attempts record."""
    return sha256_of_json([tool.json_schema() for tool in tools])
