"""A repository that is about to become a task, and how its suite runs on the original."""

from __future__ import annotations

from dataclasses import dataclass

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
