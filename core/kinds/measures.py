"""The measures that a kind adds to attempts and tasks, and its analyses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gistpoint.core.attempts.state import AttemptState


class MeasureType(StrEnum):
    """The type of a measure's value."""

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
    """A sentence that states the range of the values."""
    type: MeasureType = MeasureType.NUMBER
    unit: str = ""
    values: tuple[str, ...] = ()
    """All values of a text measure, in the order in which they are reported; empty for an open set."""
    metric: str = ""
    """For a task's measure, the name in its metrics."""


@dataclass(frozen=True, slots=True)
class MeasuredAttempt:
    """The data from which a kind computes an attempt's measures."""

    state: AttemptState
    targets: tuple[str, ...]
    """The functions to be found or repaired; empty if the kind has none."""
    touched: Collection[str]
    """The targets that were typed into or submitted."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis; `function` is loaded only when it runs, because it needs the extra `study`."""

    id: str
    title: str
    paper: str
    """The source, such as "Breakpoint, figure 2"; empty for gistpoint's own analyses."""
    function: str
    """The function, such as `gistpoint.core.analysis.rates:solve_rates`: from `StudyData` to `Findings`."""
    needs: str = ""
    """The required data in words, including the minimum numbers."""

    def run(self, data: Any) -> Any:
        """Run the analysis on a study's `StudyData`, and return its `Findings`."""
        module, _, name = self.function.partition(":")
        return getattr(import_module(module), name)(data)
