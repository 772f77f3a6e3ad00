"""Repositories from which tasks are made, and defaults for the runs of their suites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import Source
from gistpoint.core.trees import SourceTree

RUNS = 3
MAX_SUITE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository from which a task is made, with its environment."""

    source: Source
    tree: SourceTree
    environment: EnvironmentPins
    installed: Mapping[str, str] = field(default_factory=dict)
    """The paths of top-level names importable from the environment itself; empty for a locked environment.

    An environment made from a lock never contains the repository.
    """
