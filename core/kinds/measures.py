"""What a kind of task measures of an attempt and of a task, and the analyses that it brings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gistpoint.core.attempts.state import AttemptState


class MeasureType(StrEnum):
    """What the value of a measure is."""

    NUMBER = "number"
    TEXT = "text"
    YES_NO = "yes_no"
    NAMES = "names"


NOT_MEASURED: dict[MeasureType, Any] = {
    MeasureType.NUMBER: None,
    MeasureType.TEXT: "",
    MeasureType.YES_NO: False,
    MeasureType.NAMES: (),
}
"""The value of a measure in the rows of other kinds."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One column that a kind adds to the rows of attempts or of tasks."""

    name: str
    meaning: str
    """A sentence, with the range of the values."""
    type: MeasureType = MeasureType.NUMBER
    unit: str = ""
    values: tuple[str, ...] = ()
    """All that a text can be, in the order in which it is reported; empty for an open set."""
    metric: str = ""
    """Of a task's measure, the name in its metrics."""


@dataclass(frozen=True, slots=True)
class MeasuredAttempt:
    """What a kind measures an attempt by."""

    state: AttemptState
    targets: tuple[str, ...]
    """The functions to be found or repaired; empty if the kind has none."""
    touched: Collection[str]
    """Those of them that were typed into or submitted."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis. `function` is loaded only when it runs, because it needs the extra `study`."""

    id: str
    title: str
    paper: str
    """As "Breakpoint, figure 2"; empty for our own."""
    function: str
    """As `gistpoint.core.analysis.rates:solve_rates`: it takes the `StudyData` and returns `Findings`."""
    needs: str = ""
    """What it needs in words, with its least numbers."""

    def run(self, data: Any) -> Any:
        """Run it on a study and return its findings."""
        module, _, name = self.function.partition(":")
        return getattr(import_module(module), name)(data)
