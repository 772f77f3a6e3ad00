"""A repository that is about to become a task, and how its suite runs on the original."""

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
    """A repository that is about to become a task."""

    source: Source
    tree: SourceTree
    environment: EnvironmentPins
    installed: Mapping[str, str] = field(default_factory=dict)
    """Top-level names that can be imported from the environment itself, with their paths; empty for one that
    is made from a lock, which never holds the repository."""
