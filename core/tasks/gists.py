"""What a gist task has besides what every task has: its settings, which are public, and its own part of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.gist.reference.trace import Difficulty
from gistpoint.core.gist.runs import CommandRun, TestsRun
from gistpoint.core.gist.score import GistTest

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


@dataclass(frozen=True, slots=True)
class ReferenceGist:
    """A gist made by program, with its score as `gist.record` spells it: the known bound of a task."""

    text: str
    faithful: bool
    how: str = ""
    reason: str = ""
    """Why it is not faithful; empty where it is."""
    score: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class GistAnswer:
    """What a gist is compared with, recorded when the task was made."""

    test: GistTest | None
    """The original test and the file that has it; None for a command that is no test."""
    originals: tuple[TestsRun | CommandRun, ...]
    """Runs of the entrypoint on the original, outputs normalised: two or more, so that what varies is known."""
    difficulty: Difficulty
    trace: Mapping[str, Any] = field(default_factory=dict)
    """The trace as `gist.reference.trace.read_trace` reads it."""
    test_path: str = ""
    places: tuple[Mapping[str, str], ...] = ()
    """Paths of each run that its output may hold, as `gist.outputs` replaces them."""
    compared_files: tuple[str, ...] = ()
    """Files that a command writes and that are compared."""
    seconds: float = 0.0
    """Median of the runs of the original."""
    reference: ReferenceGist | None = None
