"""A gist task: the command that it reproduces, and the settings of its attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from gistpoint.core.entrypoints.command import Entrypoint, parse_entrypoint, with_input
from gistpoint.core.errors import TaskError
from gistpoint.core.tasks.fields import Positive

if TYPE_CHECKING:
    from gistpoint.core.pins import ImagePins
    from gistpoint.core.tasks.model import Task

STRATEGIES = ("", "tracing", "reading")
UNLIMITED = -1
"""The value in `task.toml` of a budget without a limit."""
ScoreBudget = Annotated[int, Meta(ge=UNLIMITED)]


@dataclass(frozen=True, slots=True)
class GistSettings:
    """The permissions of a gist's solver, and the contents of its brief (Gistify)."""

    owned: tuple[str, ...] = ()
    """The codebase's own top-level names, which must not be imported; the brief lists them."""
    execution: bool = False
    """Whether code may be run before the hand-in; otherwise no tool that runs a gist is offered."""
    strategy: str = ""
    """The strategy that the brief advises: none, `tracing` or `reading`."""
    give_test: bool = False
    """Whether the brief contains the original test, and the gist begins with it."""
    tools: tuple[str, ...] = ()
    """The names of the optional tools that the task adds."""
    score_budget: ScoreBudget | None = 0
    """The number of uses of `score_gist` in a counted attempt; None for any."""
    output_characters: Positive = 30_000
    """The maximum number of characters in a command's output that a tool shows."""
    gist_characters: Positive = 1_000_000
    """The maximum number of characters in a gist that is accepted."""
    parameter: str = ""
    """The only parameter of the test that the brief names; all are scored (Gistify A.5, decision 143)."""


@dataclass(frozen=True, slots=True)
class GistTask:
    """The part of a task that only gists have."""

    entrypoint: str
    """The command as the brief words it."""
    settings: GistSettings
    stdin: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> Entrypoint:
        """The parsed command, with its input."""
        return with_input(parse_entrypoint(self.entrypoint), self.stdin, self.variables)


def is_gist(task: Task) -> bool:
    """Return whether a task is a gist task."""
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
    """Return a gist task with these settings. Raises `TaskError` for another kind."""
    return replace(task, of_kind=replace(gist_task(task), settings=settings))


def command_identity(part: GistTask) -> dict[str, Any]:
    """Return the part of a gist's command that its id covers.

    Standard input and variables are included only if there are any.
    """
    identity: dict[str, Any] = {}
    if part.entrypoint:
        identity["entrypoint"] = part.entrypoint
    if part.stdin:
        identity["stdin"] = part.stdin
    if part.variables:
        identity["variables"] = dict(part.variables)
    return identity


def command_version(part: GistTask, image: ImagePins | None) -> int:
    """Return the version of a task: 2 if its command has an input or if it is in an image, otherwise 1."""
    from gistpoint.core.tasks.model import version_of

    has_input = bool(part.stdin or part.variables)
    return max(version_of(image), 2 if has_input else 1)
