"""The look of figures: sizes, fonts, and the colour, marker and hatch of each series.

A solver has one style in all figures of a study. The colours are those of Okabe and Ito (2008), which people
with any common kind of colour blindness can distinguish; hatches and markers distinguish series in grey.
Series that are not solvers, such as "found" and "solved", are grey in the figures of a study, so that no
solver's colour has two meanings (decision 193).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.analysis.findings import Bars, Curve, Plot, Violins
from gistpoint.core.analysis.pooling import groups
from gistpoint.core.study.data import StudyData

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
GREYS = ("#8C8C8C", "#5A5A5A", "#A9A9A9", "#6E6E6E")
"""The colours of series that are not solvers. The black whiskers are visible on each of them."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
RED = "#B00020"
_NO_SOLVER = 1024
"""The number of the first style for series that are not solvers; its shapes are the first ones."""
_SETTINGS: Mapping[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gistpoint",
    "pdf.fonttype": 42,  # publishers reject the default, Type 3
    "font.family": ["DejaVu Sans"],
    "text.usetex": False,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "axes.axisbelow": True,
    "hatch.linewidth": 0.6,
    "path.simplify": True,
}
_OF_SIMULATED = "simulated "


def shape_of(shapes: tuple[str, ...], number: int) -> str:
    """Return the shape of a series; repeated colours are combined with other shapes."""
    return shapes[(number + number // len(COLOURS)) % len(shapes)]


def colour_of(number: int) -> str:
    """Return the colour of the style with this number: a grey for a series that is not a solver."""
    colours = GREYS if number >= _NO_SOLVER else COLOURS
    return colours[number % len(colours)]


def without_settings(label: str) -> str:
    """Return a group's label without its budgets and settings, because one solver may have several."""
    return label.partition(" (")[0]


class SeriesStyles:
    """The number of the style of each series, equal in all figures that share the palette."""

    def __init__(self, solvers: Iterable[str] = ()) -> None:
        """`solvers` get the first numbers, in order; other series get theirs when they are first drawn."""
        self._numbers: dict[str, int] = {}
        for name in solvers:
            self._numbers.setdefault(without_settings(name), len(self._numbers))
        self._solvers = frozenset(self._numbers)

    @classmethod
    def of(cls, data: StudyData) -> SeriesStyles:
        """Return the palette of a study: its groups first, people before models."""
        found = groups(data)
        palette = cls(group.label for group in found)
        for group in found:
            # Some analyses name a solver without its condition.
            palette._numbers.setdefault(group.who, palette._numbers[without_settings(group.label)])
        return palette

    def numbers(self, plot: Plot) -> dict[str, int]:
        """Return the number of each series of a plot; two series share one only if either is dashed."""
        taken: dict[int, str] = {}
        found: dict[str, int] = {}
        for name in (*plot.series, *_labels_of_violins(plot), *filter(self.is_solver, lone_labels(plot))):
            if name in found:
                continue
            number = self._number(name)
            if number in taken and not _is_dashed(plot, name):
                first = 0 if number < _NO_SOLVER else _NO_SOLVER
                number = next(free for free in itertools.count(first) if free not in taken)
            taken.setdefault(number, name)
            found[name] = number
        if self._solvers and any(getattr(mark, "series", None) == "" for mark in plot.marks):
            found[""] = _NO_SOLVER
        return found

    def is_solver(self, name: str) -> bool:
        """Return whether a series or label is a solver of the study."""
        return bool(self._solvers) and without_settings(name) in self._numbers

    def _number(self, name: str) -> int:
        plain = without_settings(name)
        if plain in self._numbers:
            return self._numbers[plain]
        begins = [one for one in self._solvers if plain.startswith(f"{one},")]
        if begins:
            return self._numbers[max(begins, key=len)]
        if self._solvers:
            return _NO_SOLVER
        return self._numbers.setdefault(plain, max(self._numbers.values(), default=-1) + 1)


def _labels_of_violins(plot: Plot) -> list[str]:
    marks = (*plot.marks, *(mark for panel in plot.panels for mark in panel.marks))
    return [label for mark in marks if isinstance(mark, Violins) for label in mark.labels]


def lone_labels(plot: Plot) -> tuple[str, ...]:
    """Return the labels of the bars of a plot with one series; labels of solvers have the solvers' styles."""
    bars = [mark for mark in plot.marks if isinstance(mark, Bars)]
    return bars[0].labels if len(bars) == 1 else ()


def _is_dashed(plot: Plot, series: str) -> bool:
    drawn = [mark for mark in plot.marks if getattr(mark, "series", None) == series]
    return bool(drawn) and all(isinstance(mark, Curve) and mark.dashed for mark in drawn)


@dataclass(frozen=True)
class Look:
    """The size of figures, and the style that all of them share."""

    width: float = 7.4
    """The width in inches."""
    font: float = 10.0
    """The size of most text, in points."""
    palette: SeriesStyles = field(default_factory=SeriesStyles)
    simulated: bool = False

    @property
    def settings(self) -> Any:
        """The settings of matplotlib."""
        return {**_SETTINGS, "font.size": self.font, "lines.linewidth": 0.18 * self.font}

    @property
    def scale(self) -> float:
        """The ratio of these sizes to those of the report's figures."""
        return self.font / 10.0

    def shown(self, label: str) -> str:
        """Return a label as drawn: a figure marked as simulated need not repeat this in each label."""
        return label.replace(_OF_SIMULATED, "") if self.simulated else label


COLUMN = 3.3
"""The width of a column in most two-column papers, in inches."""
PAGE = 6.9
"""The width of both columns."""
