"""A gist task: the command that it reproduces, and the settings of its attempts."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.tasks.fields import Positive

if TYPE_CHECKING:
    from gistpoint.core.tasks.model import Task

GIST_FILE = "test_gist.py"
"""The name of the file that holds a gist of a test."""
PROGRAM_FILE = "gist.py"
"""The name of the file that holds a gist of a program."""


class EntrypointError(UserError):
    """A command that can't be an entrypoint."""


class EntrypointKind(StrEnum):
    """The kind of thing that a command runs."""

    TEST = "test"
    MODULE = "module"
    """`python -m package`."""
    SCRIPT = "script"
    """`python path/of/file.py`."""


@dataclass(frozen=True, slots=True)
class Entrypoint:
    """A command, without the parameters of a test.

    `target` is the file of a test or a script, relative to the repository, or the dotted name of a module;
    `qualname` is `test` or `Class.test`, and empty for a program; `arguments` are those of a program.
    """

    kind: EntrypointKind
    target: str
    qualname: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def is_test(self) -> bool:
        """Whether pytest runs it."""
        return self.kind is EntrypointKind.TEST

    @property
    def text(self) -> str:
        """The command line, as a brief gives it."""
        if self.is_test:
            return shlex.join(["pytest", self.node_id])
        switch = ["-m"] if self.kind is EntrypointKind.MODULE else []
        return shlex.join(["python", *switch, self.target, *self.arguments])

    @property
    def node_id(self) -> str:
        """The node id of a test, without its parameters."""
        return f"{self.target}::{self.qualname.replace('.', '::')}"

    @property
    def gist_file(self) -> str:
        """The name of the file that holds a gist of it."""
        return GIST_FILE if self.is_test else PROGRAM_FILE


def parse_entrypoint(command: str) -> Entrypoint:
    """Read `pytest path::test`, `python -m pytest path::test`, `python -m package ...` or `python file.py ...`.

    Parameters of a test (`[...]`) are dropped: all its instances are one entrypoint. Raises `EntrypointError`.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise EntrypointError(f"The command {command!r} can't be split into words: {error}.") from error
    if words[:1] and PurePosixPath(words[0]).name in ("python", "python3"):
        if words[1:3] == ["-m", "pytest"]:
            return _test(command, words[3:])
        if words[1:2] == ["-m"] and len(words) > 2:
            return Entrypoint(EntrypointKind.MODULE, words[2], arguments=tuple(words[3:]))
        if len(words) > 1 and words[1].endswith(".py"):
            return Entrypoint(EntrypointKind.SCRIPT, _inside(command, words[1]), arguments=tuple(words[2:]))
    if words[:1] == ["pytest"]:
        return _test(command, words[1:])
    raise EntrypointError(
        f"{command!r} is not an entrypoint.",
        hint="Give `pytest path/test_file.py::test_name`, `python -m package ARGUMENTS` or `python file.py ARGUMENTS`.",
    )


def _test(command: str, words: list[str]) -> Entrypoint:
    if len(words) != 1 or "::" not in words[0]:
        raise EntrypointError(
            f"{command!r} does not name one test.", hint="Give pytest one node id and nothing else: path::test."
        )
    path, _, rest = words[0].partition("[")[0].partition("::")
    qualname = rest.replace("::", ".")
    if not path.endswith(".py") or not all(part.isidentifier() for part in qualname.split(".")):
        raise EntrypointError(
            f"{words[0]!r} is not the node id of a test.", hint="Write it as path/test_file.py::test_name."
        )
    return Entrypoint(EntrypointKind.TEST, _inside(command, path), qualname)


def _inside(command: str, path: str) -> str:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise EntrypointError(f"{command!r} names a file outside of the repository.", hint="Give a path within it.")
    return parts.as_posix()


STRATEGIES = ("", "tracing", "reading")
UNLIMITED = -1
"""How a budget without a limit is written in `task.toml`."""
ScoreBudget = Annotated[int, Meta(ge=UNLIMITED)]


@dataclass(frozen=True, slots=True)
class GistSettings:
    """The permissions of a gist's solver, and the contents of its brief (specs: gistify)."""

    owned: tuple[str, ...] = ()
    """The codebase's own top-level names, which may not be imported; the brief lists them."""
    execution: bool = False
    """Whether code may be run before the hand-in; without it no tool that runs a gist is offered."""
    strategy: str = ""
    """The strategy that the brief advises: nothing, `tracing` or `reading`."""
    give_test: bool = False
    """Whether the brief holds the original test, and the gist begins with it."""
    tools: tuple[str, ...] = ()
    """The optional tools that the task adds, by name."""
    score_budget: ScoreBudget | None = 0
    """Uses of `score_gist` in a counted attempt; None for any number."""
    output_characters: Positive = 30_000
    """Most characters of a command's output that a tool shows."""
    gist_characters: Positive = 1_000_000
    """The longest gist that is accepted."""


@dataclass(frozen=True, slots=True)
class GistTask:
    """The part of a task that only gists have."""

    entrypoint: str
    """The command, as the brief words it."""
    settings: GistSettings

    @property
    def command(self) -> Entrypoint:
        """The command, parsed."""
        return parse_entrypoint(self.entrypoint)


def is_gist(task: Task) -> bool:
    """Whether a task is a gist task."""
    return isinstance(task.of_kind, GistTask)


def gist_task(task: Task) -> GistTask:
    """Return the part of a gist task that only gists have. Raises `TaskError` for another kind."""
    if not isinstance(task.of_kind, GistTask):
        raise TaskError(f"The task {task.short_id} is not a gist.")
    return task.of_kind


def gist_settings(task: Task) -> GistSettings:
    """Return the settings of a gist task. Raises `TaskError` for another kind."""
    return gist_task(task).settings


def entrypoint_of(task: Task) -> str:
    """Return the command of a gist task. Raises `TaskError` for another kind."""
    return gist_task(task).entrypoint


def with_settings(task: Task, settings: GistSettings) -> Task:
    """Return a gist task with other settings."""
    return replace(task, of_kind=replace(gist_task(task), settings=settings))
