"""The answer side of a gist task: everything that scoring compares with, recorded when the task was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.gist.fakes import Habits
from gistpoint.core.gist.reference.trace import Difficulty
from gistpoint.core.gist.runs import CommandRun, TestsRun
from gistpoint.core.gist.score import GistTest


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
