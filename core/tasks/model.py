"""The model of a task: its public part, which a solver may see, and its answer, which never reaches a
solver's code.
"""

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
"""A limit of a tool. No honest task comes near the bound, which protects memory and the screen."""
LONGEST_SUITE_S = 7 * 86_400
FORMAT = "gistpoint.task"
VERSION = 3
"""The newest version of a `task.toml`; `version_of` says which tasks have which."""
CANARY = (
    "gistpoint canary 6f1d0a52-4c1b-4bb0-9d2e-7a3f5be2c9e4: evaluation data, not for training. "
    "Do not include it in a training corpus."
)


SALTED = 3
"""The version of a task whose id is salted (decision 124)."""


def version_of(image: ImagePins | None) -> int:
    """Return the version of a task without a salt, which is part of its content: 2 in an image, 1 otherwise."""
    return 1 if image is None else 2


class Mode(StrEnum):
    """The modes that come with gistpoint; several corruptions are `DISCOVERY` with several targets."""

    REMOVE = "remove"
    DISCOVERY = "discovery"
    GIST = "gist"


def shown_mode(mode: str, *, several: bool = False, targets: int = 0) -> str:
    """Return a mode for display, with the number of functions; `n` replaces a number that the task hides."""
    return f"discovery ×{targets or 'n'}" if mode == Mode.DISCOVERY and several else str(mode)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a repository comes from: `kind` is `sdist`, `folder`, `git` or `image`."""

    kind: str
    name: str
    revision: str
    """Version of an sdist, commit of a git repository, hash of a folder's content, digest of an image."""
    location: str = ""
    """The location as the user gave it; never written into a task."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Limits of the tools, stored in the task so that they are the same for a person and a model."""

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
    """Decisions of the task's author that change the question or how it is scored."""

    refused_costs_attempt: bool = False
    tell_count: bool = False
    min_failing: Positive = 5


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing test with its failure in pytest's words; `text` is empty if only the id is shown."""

    id: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests that count. The ids themselves are in the answer's baselines."""

    tests: Count
    ids_sha256: Sha256
    seconds: Annotated[float, Meta(ge=0, le=LONGEST_SUITE_S)]
    timeout_s: Annotated[float, Meta(gt=0, le=LONGEST_SUITE_S)]
    deselected: tuple[str, ...] = ()
    """Ids that flipped between runs of the original: never run, never counted."""
    test_files: tuple[str, ...] = ()
    """Files that tests were collected from: a solver may not change them."""


@dataclass(frozen=True, slots=True)
class Brief:
    """The contents of the brief, besides the fixed wording of the template."""

    template: str
    template_sha256: str
    failing: tuple[Failure, ...]
    target: str = ""
    """`path::qualname`, in remove mode only."""
    signature: str = ""
    docstring: str = ""
    targets: Count = 0
    """How many functions are corrupted, if the task reveals it; otherwise 0."""
    test: str = ""
    """The original test, in gist mode, if the task gives it."""


@dataclass(frozen=True, slots=True)
class Task:
    """The public part of a task, with the folder that it was read from."""

    id: str
    mode: str
    """The mode as `task.toml` names it; it determines the kind of the task."""
    source: Source
    tree_sha256: str
    brief: Brief
    suite: Suite
    environment: EnvironmentPins
    budgets: Budgets = field(default_factory=Budgets)
    limits: ToolLimits = field(default_factory=ToolLimits)
    rules: Rules = field(default_factory=Rules)
    of_kind: object = None
    """The kind's own part of the task, as read by the kind; None if there is none."""
    entered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The tests that enter each function of the original, by `path::qualname`; empty if it was not recorded.
    """
    demo: bool = False
    """A task on the library that ships with gistpoint: nothing in it is foreign code."""
    several: bool = False
    """Whether the wording of the brief is the plural."""
    salt_sha256: str = ""
    """The commitment to the salt of the id, in hexadecimal; empty if the id has no salt."""
    folder: Path = Path()

    @property
    def short_id(self) -> str:
        """The first twelve characters of the id, which people see and type."""
        return self.id[:12]

    @property
    def tree_path(self) -> Path:
        """The tar of the corrupted tree."""
        return self.folder / "workspace" / "tree.tar"


@dataclass(frozen=True, slots=True)
class Target:
    """A corrupted function: its name, its text before and after, with decorators."""

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
    """The results of the suite before any attempt: per backend and environment, from three runs or more."""

    backend: str
    environment: str
    runs: Positive
    collected: frozenset[str]
    """Every id that was collected and not deselected; a run must have exactly these ids."""
    passed: frozenset[str]
    """B: the ids that passed in every run of the original."""
    passed_corrupted: frozenset[str]
    """The ids that pass on the corrupted tree."""
    seconds: float = 0.0
    any_order: bool = False
    """Whether the original also passes with F0 before all other tests: only then may a run begin with them.
    """
    protections: Mapping[str, Protection] = field(default_factory=dict)
    """Which parts of the tree a run may change, by the backend on which that was determined."""

    @property
    def failing(self) -> frozenset[str]:
        """F0: the ids that passed on the original and do not pass on the corrupted tree."""
        return self.passed - self.passed_corrupted


@dataclass(frozen=True, slots=True)
class Seal:
    """The parts of a salted id that the public part leaves out (decision 124)."""

    salt: Sha256
    content_sha256: Sha256
    """The hash of the content, which identifies the corruption; for a task without a salt it is the id."""
    source_revision: str
    """The revision of the source. The public part hides that of a folder, which is a hash of the original."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that would give the solution away."""

    targets: tuple[Target, ...]
    baselines: tuple[Baseline, ...]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    of_kind: object = None
    """The kind's own part of the answer, as read by the kind; None if there is none."""
    entered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The tests that enter each function of the original, by `path::qualname`; empty if it was not recorded.
    """
    seal: Seal | None = None
    """The hidden parts of a salted id; None if the id has no salt."""

    def baseline_for(self, backend: str) -> Baseline:
        """Return the baseline recorded with `backend`, or the first."""
        for baseline in self.baselines:
            if baseline.backend == backend:
                return baseline
        return self.baselines[0]
