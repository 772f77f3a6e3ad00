"""The model of a task: its public part for solvers, and its answer, which solvers' code never sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from gistpoint.core.pins import EnvironmentPins, ImagePins
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.fields import Count, Positive, Sha256
from gistpoint.core.tasks.protection import Protection

Limit = Annotated[int, Meta(ge=0, le=10_000_000)]
"""A limit of a tool. The upper bound, which no honest task reaches, protects memory and the screen."""
LONGEST_SUITE_S = 7 * 86_400
FORMAT = "gistpoint.task"
VERSION = 3
"""The newest version of `task.toml`; `version_of` decides which version a task has."""
CANARY = (
    "gistpoint canary 6f1d0a52-4c1b-4bb0-9d2e-7a3f5be2c9e4: evaluation data, not for training. "
    "Do not include it in a training corpus."
)


SALTED = 3
"""The version of tasks with a salted id (decision 124)."""


def version_of(image: ImagePins | None) -> int:
    """Return the version of a task without a salt, which the id covers: 2 for a task in an image, else 1."""
    return 1 if image is None else 2


class Mode(StrEnum):
    """The mode of a task; a task with several corruptions is `DISCOVERY` with several targets."""

    REMOVE = "remove"
    DISCOVERY = "discovery"
    GIST = "gist"


TREE = "workspace/tree.tar"
"""The path of the corrupted tree's tar in the folder of a task."""


def shown_mode(mode: str, *, several: bool = False, targets: int = 0) -> str:
    """Return a mode for display; discovery of `several` corruptions has their number, or `n` for 0."""
    return f"discovery ×{targets or 'n'}" if mode == Mode.DISCOVERY and several else str(mode)


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a repository: `kind` is `sdist`, `folder`, `git` or `image`."""

    kind: str
    name: str
    revision: str
    """The version of an sdist, commit of a git repository, hash of a folder's content, or image digest."""
    location: str = ""
    """The location as given by the user; never written into a task."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """The limits of the tools, stored in the task so that they are equal for people and models."""

    tool_semantics: Positive = 1
    read_file_characters: Limit = 60_000
    directory_entries: Limit = 100
    function_entries: Limit = 200
    search_matches: Limit = 200
    search_context_lines: Limit = 2
    search_line_characters: Limit = 500
    search_seconds: Annotated[float, Meta(gt=0, le=60)] = 2.0
    brief_failures: Limit = 3
    failure_characters: Limit = 2_000


@dataclass(frozen=True, slots=True)
class Rules:
    """The author's rules that change the task for solvers, or its scoring."""

    refused_costs_attempt: bool = False
    tell_count: bool = False
    min_failing: Positive = 5


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing test with pytest's failure text, which is empty if only the id is shown."""

    id: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """The suite's tests that count; their ids are in the answer's baselines."""

    tests: Count
    ids_sha256: Sha256
    seconds: Annotated[float, Meta(ge=0, le=LONGEST_SUITE_S)]
    timeout_s: Annotated[float, Meta(gt=0, le=LONGEST_SUITE_S)]
    deselected: tuple[str, ...] = ()
    """The ids of flaky tests on the original, which are never run or counted."""
    test_files: tuple[str, ...] = ()
    """The files of the collected tests, which a solver must not change."""


@dataclass(frozen=True, slots=True)
class Brief:
    """The contents of the brief beyond the template's fixed wording."""

    template: str
    template_sha256: str
    failing: tuple[Failure, ...]
    target: str = ""
    """The function to repair as `path::qualname`, in remove mode only."""
    signature: str = ""
    docstring: str = ""
    targets: Count = 0
    """The number of corrupted functions, if the task reveals it; otherwise 0."""
    test: str = ""
    """The original test, in gist mode, if the task includes it."""


@dataclass(frozen=True, slots=True)
class Task:
    """The public part of a task, with its folder."""

    id: str
    mode: str
    """The mode in `task.toml`, which determines the kind of the task."""
    source: Source
    tree_sha256: str
    brief: Brief
    suite: Suite
    environment: EnvironmentPins
    budgets: Budgets = field(default_factory=Budgets)
    limits: ToolLimits = field(default_factory=ToolLimits)
    rules: Rules = field(default_factory=Rules)
    of_kind: object = None
    """The kind's own part of the task; None if there is none."""
    entered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The tests that enter each function of the original, by `path::qualname`; empty if not recorded."""
    demo: bool = False
    """Whether the task is about gistpoint's demo library, without any foreign code."""
    several: bool = False
    """Whether the brief is worded for several corruptions."""
    salt_sha256: str = ""
    """The commitment to the salt of the id, in hexadecimal; empty without a salt."""
    folder: Path = Path()

    @property
    def short_id(self) -> str:
        """The first twelve characters of the id, for people."""
        return self.id[:12]

    @property
    def tree_path(self) -> Path:
        """The path of the corrupted tree's tar."""
        return self.folder / TREE


@dataclass(frozen=True, slots=True)
class Target:
    """A corrupted function: its name, and its text before and after, with decorators."""

    path: str
    qualname: str
    original: str
    corrupted: str

    @property
    def name(self) -> str:
        """The name, as `path::qualname`."""
        return f"{self.path}::{self.qualname}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The results of the suite before any attempt, by backend and environment, from three or more runs."""

    backend: str
    environment: str
    runs: Positive
    collected: frozenset[str]
    """The ids collected and not deselected; every run must have exactly these ids."""
    passed: frozenset[str]
    """B: the ids that passed in every run of the original."""
    passed_corrupted: frozenset[str]
    """The ids that pass on the corrupted tree."""
    seconds: float = 0.0
    any_order: bool = False
    """Whether the original also passes if the tests in F0 run first; only then may a run begin with them."""
    protections: Mapping[str, Protection] = field(default_factory=dict)
    """The protection of the tree in a run, by the backend that determined it."""

    @property
    def failing(self) -> frozenset[str]:
        """F0: the ids that pass on the original and not on the corrupted tree."""
        return self.passed - self.passed_corrupted


@dataclass(frozen=True, slots=True)
class Seal:
    """The parts of a salted id that are not public (decision 124)."""

    salt: Sha256
    content_sha256: Sha256
    """The hash of the content, which identifies the corruption and equals an unsalted task's id."""
    source_revision: str
    """The source's revision; for a folder, a hash of the original that the public part hides."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts of a task that would reveal the solution."""

    targets: tuple[Target, ...]
    baselines: tuple[Baseline, ...]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    of_kind: object = None
    """The kind's own part of the answer; None if there is none."""
    entered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The tests that enter each function of the original, by `path::qualname`; empty if not recorded."""
    seal: Seal | None = None
    """The hidden parts of a salted id; None without a salt."""

    def baseline_for(self, backend: str) -> Baseline:
        """Return the baseline recorded with `backend`, else the first."""
        for baseline in self.baselines:
            if baseline.backend == backend:
                return baseline
        return self.baselines[0]
