"""The answer of a gist task: the record with which gists are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gistpoint.core.entrypoints.command import Entrypoint, EntrypointKind
from gistpoint.core.entrypoints.runs import CommandRun, TestsRun
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.flags import Habits
from gistpoint.core.kinds.gist.original_test import GistTest
from gistpoint.core.kinds.gist.trace import Difficulty, counted, read_trace
from gistpoint.core.tasks.model import Answer


@dataclass(frozen=True, slots=True)
class ReferenceGist:
    """A gist made by a program, with its figures. It is `faithful` if it reaches fidelity 1."""

    text: str
    faithful: bool
    line_execution: float | None = None
    line_existence: float | None = None
    how: str = ""
    reason: str = ""
    """The reason why there is no faithful reference gist; empty if there is one."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class GistAnswer:
    """The record that gists of a task are compared with."""

    originals: tuple[TestsRun | CommandRun, ...]
    """Two or more runs of the original, with normalised outputs."""
    owned: tuple[str, ...]
    """Top-level names of the codebase's modules, which a gist must not import."""
    modules: tuple[str, ...]
    """Dotted names of the modules that the command touches; a gist has their contents in one module."""
    trace: Mapping[str, Any]
    difficulty: Difficulty
    """The difficulty as it was stored: earlier versions left out the functions and files of tests."""
    test: GistTest | None = None
    """The test; None for a command that is not a test."""
    compared_files: tuple[str, ...] = ()
    seconds: float = 0.0
    """The duration of the slowest run of the original, in seconds."""
    habits: Habits = field(default_factory=Habits)
    """Behaviour of the original that would be suspicious in a gist."""
    reference: ReferenceGist | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def measured(self) -> Difficulty:
        """The difficulty with functions and files counted from the trace, as lists and screens show it."""
        trace = read_trace(self.trace)
        functions, files = counted(trace.functions, trace.files)
        return replace(self.difficulty, functions=functions, files=files)

    def parameters(self, entrypoint: Entrypoint) -> tuple[str, ...]:
        """Return the parameters of the command's test, in the order of the run.

        Empty if the test has none, or if the command is not a single test.
        """
        first = self.originals[0]
        if entrypoint.kind is not EntrypointKind.TEST or not isinstance(first, TestsRun):
            return ()
        head = f"{entrypoint.node_id}["
        return tuple(id.removeprefix(head)[:-1] for id in first.tests if id.startswith(head))

    @property
    def timeout_s(self) -> float:
        """Seconds after which the run of a gist is stopped."""
        return max(30.0, round(5 * self.seconds, 1))


def gist_answer(answer: Answer) -> GistAnswer:
    """Return the part of an answer that gists are compared with.

    Raises `TaskError` for the answer of another kind.
    """
    if not isinstance(answer.of_kind, GistAnswer):
        raise TaskError("The answer belongs to a repair, not to a gist.")
    return answer.of_kind
