"""What a task is: its public part, which a solver may see, and its answer, which never reaches a solver's code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.model import GistAnswer, GistSettings
from gistpoint.core.ports import EnvironmentPins, Source
from gistpoint.core.tasks.protection import Protection

FORMAT = "gistpoint.task"
VERSION = 1
CANARY = (
    "gistpoint canary 6f1d0a52-4c1b-4bb0-9d2e-7a3f5be2c9e4: evaluation data, not for training. "
    "Do not include it in a training corpus."
)


class Mode(StrEnum):
    """What was done to the repository; several corruptions are `DISCOVERY` with more than one target."""

    REMOVE = "remove"
    DISCOVERY = "discovery"
    GIST = "gist"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the tools, stored in the task so that a person and a model meet the same ones."""

    tool_semantics: int = 1
    read_file_characters: int = 60_000
    directory_entries: int = 100
    function_entries: int = 200
    search_matches: int = 200
    search_context_lines: int = 2
    search_line_characters: int = 500
    search_seconds: float = 2.0
    brief_failures: int = 3
    failure_characters: int = 2_000


@dataclass(frozen=True, slots=True)
class Rules:
    """Decisions of the task's author that change what is asked or how it is counted."""

    refused_costs_attempt: bool = False
    tell_count: bool = False
    min_failing: int = 5


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing test with its failure as pytest words it; `text` is empty where only the id is told."""

    id: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests that count. The ids themselves lie in the answer's baselines."""

    tests: int
    ids_sha256: str
    seconds: float
    timeout_s: float
    deselected: tuple[str, ...] = ()
    """Ids that flipped between runs of the original: never run, never counted."""
    test_files: tuple[str, ...] = ()
    """Files from which tests were collected: a solver may not change them."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What the solver is told, besides the fixed wording of the template."""

    template: str
    template_sha256: str
    failing: tuple[Failure, ...]
    target: str = ""
    """`path::qualname`, in remove mode only."""
    signature: str = ""
    docstring: str = ""
    targets: int = 0
    """How many functions are corrupted, where the task tells it; else 0."""
    test: str = ""
    """The original test, in gist mode, where the task gives it."""


@dataclass(frozen=True, slots=True)
class Task:
    """The public part of a task, with the folder that it was read from."""

    id: str
    mode: Mode
    source: Source
    tree_sha256: str
    brief: Brief
    suite: Suite
    environment: EnvironmentPins
    budgets: Budgets = field(default_factory=Budgets)
    limits: Limits = field(default_factory=Limits)
    rules: Rules = field(default_factory=Rules)
    entrypoint: str = ""
    """The command of a gist task, as the brief tells it."""
    gist: GistSettings | None = None
    """In gist mode, and only there."""
    entered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The tests that enter each function of the original, by `path::qualname`; empty where it was not recorded."""
    demo: bool = False
    """A task on the library that ships with gistpoint: nothing in it is foreign code."""
    several: bool = False
    """Whether the wording of the brief is the plural one."""
    folder: Path = Path()

    @property
    def gist_settings(self) -> GistSettings:
        """The settings of a gist task. Raises `TaskError` for a repair."""
        if self.gist is None:
            raise TaskError(f"The task {self.short_id} is no gist.")
        return self.gist

    @property
    def short_id(self) -> str:
        """The id as people see and type it: its first twelve characters."""
        return self.id[:12]

    @property
    def tree_path(self) -> Path:
        """The tar of the corrupted tree."""
        return self.folder / "workspace" / "tree.tar"


@dataclass(frozen=True, slots=True)
class Target:
    """A corrupted function: its name, its text before and after, decorators included."""

    path: str
    qualname: str
    original: str
    corrupted: str

    @property
    def name(self) -> str:
        """`path::qualname`."""
        return f"{self.path}::{self.qualname}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the suite showed before anybody solved: per backend and environment, three runs or more."""

    backend: str
    environment: str
    runs: int
    collected: frozenset[str]
    """Every id that was collected and not deselected; the ids that a run must have, no more."""
    passed: frozenset[str]
    """B: the ids that passed in every run of the original."""
    passed_corrupted: frozenset[str]
    """The ids that pass on the corrupted tree."""
    seconds: float = 0.0
    any_order: bool = False
    """Whether the original also passes with F0 before all other tests: only then may a run begin with them."""
    protections: Mapping[str, Protection] = field(default_factory=dict)
    """What of the tree a run may change, by the name of the backend that it was found out on."""

    @property
    def failing(self) -> frozenset[str]:
        """F0: the ids that passed on the original and do not pass on the corrupted tree."""
        return self.passed - self.passed_corrupted


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that would give the solution away."""

    targets: tuple[Target, ...]
    baselines: tuple[Baseline, ...]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    gist: GistAnswer | None = None
    """In gist mode, and only there."""
    entered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The tests that enter each function of the original, by `path::qualname`; empty where it was not recorded."""

    @property
    def gist_answer(self) -> GistAnswer:
        """The answer of a gist task. Raises `TaskError` for a repair's."""
        if self.gist is None:
            raise TaskError("The answer is that of a repair, not of a gist.")
        return self.gist

    def baseline_for(self, backend: str) -> Baseline:
        """Return the baseline recorded with `backend`, else the first."""
        for baseline in self.baselines:
            if baseline.backend == backend:
                return baseline
        return self.baselines[0]
