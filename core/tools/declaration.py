"""How a tool is declared: once, for the form, the command line, the JSON schema, the answer and the replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from gistpoint.core.attempts.state import Replacement
from gistpoint.core.tasks.model import Limits, Mode
from gistpoint.core.trees import SourceTree

if TYPE_CHECKING:
    from gistpoint.core.kinds.gist.model import GistSettings
    from gistpoint.core.kinds.gist.reference.trace import Trace
    from gistpoint.core.kinds.gist.runs import CommandOutput


_ECHO = 80
"""Characters of an unknown name, as a refusal repeats it."""


class Group(StrEnum):
    """What a tool is for in the figures of the Breakpoint paper."""

    INFO = "info"
    SUBMIT = "submit"


class Activity(StrEnum):
    """What a tool is for in table 7 of the Gistify paper."""

    VIEW = "view"
    SEARCH = "search"
    EXECUTE = "execute"
    OTHER = "other"


class Kind(StrEnum):
    """What an argument holds; it decides how it is completed and edited, not how it is sent."""

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
    """One argument of a tool; all are strings."""

    name: str
    kind: Kind
    description: str
    default: str | None = None
    """None where it is required."""


@dataclass(frozen=True, slots=True)
class Revealed:
    """What a result shows of the repository."""

    entries: tuple[tuple[str, str], ...] = ()
    """(path, `dir` or `file`)."""
    listed: tuple[str, ...] = ()
    """Folders whose entries were listed."""
    files: tuple[str, ...] = ()
    """Files shown whole."""
    functions: tuple[tuple[str, int, int], ...] = ()
    """(`path::qualname`, first line, last line)."""
    sources: tuple[str, ...] = ()
    """Functions whose source was shown, as `path::qualname`."""

    def as_json(self) -> dict[str, Any]:
        """Return what is not empty, as it is journalled."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool answers: one text, the same bytes for whoever called."""

    text: str
    refused: bool = False
    revealed: Revealed = field(default_factory=Revealed)
    replacement: Replacement | None = None
    """Set by the submission tools of a repair: the accepted replacement whose tests are to be run."""
    judged: str | None = None
    """Set by the tools that score a gist: the text to be scored."""


class GistDesk(Protocol):
    """What the tools of a gist work with; what runs, runs in the sandbox."""

    @property
    def settings(self) -> GistSettings:
        """What the task allows."""
        ...

    @property
    def text(self) -> str:
        """The gist as it was last saved."""
        ...

    def trace(self, command: str) -> Trace:
        """Return what a command touches on the codebase; empty means the task's own. Raises `RefusalError`."""
        ...

    def shell(self, command: str) -> CommandOutput:
        """Run a shell command beside the codebase and the gist."""
        ...

    def trial(self, text: str) -> str:
        """Run the task's command on a gist and return what it showed."""
        ...


class RefusalError(Exception):
    """Raised inside a tool: the call is answered with this reason, and nothing else happens."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may look at."""

    tree: SourceTree
    limits: Limits
    mode: Mode
    target: str = ""
    """`path::qualname` of the function to repair, in remove mode."""
    test_files: frozenset[str] = frozenset()
    gist: GistDesk | None = None
    """In gist mode, and only there."""

    @property
    def desk(self) -> GistDesk:
        """What the tools of a gist work with; they are called with nothing else."""
        if self.gist is None:
            raise RefusalError("There is no gist here.")
        return self.gist


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. Names and arguments are those of the paper's appendix A and never change."""

    name: str
    description: str
    arguments: tuple[Argument, ...]
    group: Group
    activity: Activity
    run: Callable[[ToolContext, Mapping[str, str]], ToolOutput]
    runs_code: bool = False
    """Whether a call may run code in the sandbox: it can take long then, and can be cancelled."""

    @property
    def submits(self) -> bool:
        """Whether a call costs a submission besides its tool use."""
        return self.group is Group.SUBMIT

    def json_schema(self) -> dict[str, Any]:
        """Return the declaration as a function of a chat model's tool list and of MCP."""
        properties = {a.name: {"type": "string", "description": a.description} for a in self.arguments}
        required = [a.name for a in self.arguments if a.default is None]
        parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        return {"name": self.name, "description": self.description, "parameters": parameters}

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        """Return the arguments with defaults filled in; raises `RefusalError` if they do not fit the declaration.

        A JSON boolean is taken for a flag, and null for an optional argument; nothing else is coerced.
        """
        known = {argument.name for argument in self.arguments}
        if extra := sorted(str(name) for name in set(arguments) - known):
            raise RefusalError(f"{self.name} has no argument {extra[0][:_ECHO]!r}; it takes {self.usage()}.")
        bound: dict[str, str] = {}
        for argument in self.arguments:
            value = arguments.get(argument.name)
            if value is None:
                value = argument.default
            if value is None:
                raise RefusalError(f"{self.name} needs the argument {argument.name!r}; it takes {self.usage()}.")
            if isinstance(value, bool) and argument.kind is Kind.FLAG:
                value = "true" if value else "false"
            if not isinstance(value, str):
                raise RefusalError(f"{self.name}: the argument {argument.name!r} must be a string.")
            bound[argument.name] = value
        return bound

    def usage(self) -> str:
        """Return the call as people type it, optional arguments in brackets."""
        shown = [a.name if a.default is None else f"[{a.name}]" for a in self.arguments]
        return " ".join([self.name, *shown])
