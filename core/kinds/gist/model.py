"""A gist task: the settings of its attempts, and the answer that gists are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.kinds.gist.fakes import Habits
from gistpoint.core.kinds.gist.reference.trace import Difficulty
from gistpoint.core.kinds.gist.runs import CommandRun, TestsRun
from gistpoint.core.kinds.gist.score import GistTest


@dataclass(frozen=True, slots=True)
class ReferenceGist:
    """A gist made by program, with its figures; `faithful` says whether it reaches fidelity 1."""

    text: str
    faithful: bool
    line_execution: float | None = None
    line_existence: float | None = None
    how: str = ""
    reason: str = ""
    """Why there is no faithful one."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class GistAnswer:
    """What a gist is compared with."""

    originals: tuple[TestsRun | CommandRun, ...]
    """Three or more runs of the original, their outputs normalised."""
    owned: tuple[str, ...]
    """Top-level names of the codebase's modules: what a gist may not import."""
    modules: tuple[str, ...]
    """Dotted names of the modules that the command touches: a gist has them all under its own name."""
    trace: Mapping[str, Any]
    difficulty: Difficulty
    test: GistTest | None = None
    """None for a command that is no test."""
    compared_files: tuple[str, ...] = ()
    seconds: float = 0.0
    """The slowest run of the original."""
    habits: Habits = field(default_factory=Habits)
    """What the original does that would be strange in a gist."""
    reference: ReferenceGist | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def timeout_s(self) -> float:
        """Seconds after which the run of a gist is stopped."""
        return max(30.0, round(5 * self.seconds, 1))


OPTIONAL_TOOLS = ("trace", "repo_graph", "bash", "edit_and_execute")
"""The tools that a task may add to browsing, writing and handing in."""
STRATEGIES = ("", "tracing", "reading")
UNLIMITED = -1
"""How a budget without a limit is written in `task.toml`."""


@dataclass(frozen=True, slots=True)
class GistSettings:
    """What the solver of a gist may do and is told (specs: gistify)."""

    owned: tuple[str, ...] = ()
    """The codebase's own top-level names, which may not be imported; the brief tells them."""
    execution: bool = False
    """Whether code may be run before the hand-in; without it `edit_and_execute` is not offered."""
    strategy: str = ""
    """What the brief advises: nothing, `tracing` or `reading`."""
    give_test: bool = False
    """Whether the brief holds the original test, and the gist begins with it."""
    tools: tuple[str, ...] = ()
    """Those of `OPTIONAL_TOOLS` that the task adds."""
    score_budget: int | None = 0
    """Uses of `score_gist` in a counted attempt; None for any number."""
    output_characters: int = 30_000
    """Of the output of a command, as the tools that run one show it."""
    gist_characters: int = 1_000_000
    """The longest gist that is taken."""


class ContradictionError(UserError):
    """Settings of a gist contradict each other, or the command; the hint says what to add or to leave out."""


def require_consistent(settings: GistSettings, *, is_test: bool) -> None:
    """Raise `ContradictionError` for settings that no task can be made with; `is_test` tells what the command is."""
    if "edit_and_execute" in settings.tools and not settings.execution:
        raise ContradictionError(
            "edit_and_execute runs code, and execution is off.", hint="Add --execution, or leave the tool out."
        )
    if settings.give_test and not is_test:
        raise ContradictionError("The command is no test, so there is none to give.", hint="Leave --give-test out.")
