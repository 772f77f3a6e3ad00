"""Draws the plots of findings as SVG elements for a page, without scripts, links and dates.

Equal plots have equal bytes. Series differ in shape as well as in colour. The colours are those of Okabe and
Ito (2008), which people with any common kind of colour blindness can distinguish.
"""

from __future__ import annotations

import html
import io
import math
import re
import textwrap
import warnings
from collections.abc import Sequence
from itertools import accumulate, cycle, islice
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from gistpoint.core.analysis.findings import Bars, Curve, Hexagons, Mark, Matrix, Plot, Points, Violins
from gistpoint.core.analysis.printing import NOTHING, value_words
from gistpoint.core.text import visible_line

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo", "--")
_RED = "#B00020"
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gistpoint",
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "text.usetex": False,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "axes.axisbelow": True,
    "hatch.linewidth": 0.6,
    "path.simplify": True,
}
_WIDTH = 7.4
"""The width of every figure in inches."""
_LABEL, _LEGEND, _SHARED = 26, 34, 14
"""The maximum line lengths of a side label, of the legend, and of a label below an axis, in characters."""
_MOST_LABELS = 12
"""The maximum number of points that are labelled; labels of more would cover each other."""
_LONGEST_LABEL = 120


def draw(plot: Plot, *, simulated: bool = False) -> str:
    """Return a plot as an `<svg>` element with a title and a description.

    `simulated` writes SIMULATED across the plot. Raises ValueError, or another error of matplotlib, for
    values that can't be drawn.
    """
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(_WIDTH, _height(plot)), layout="constrained")
        FigureCanvasSVG(figure)
        _Drawing(figure, plot).draw()
        if simulated:
            figure.text(
                0.5,
                0.5,
                "SIMULATED",
                rotation=24,
                fontsize=54,
                fontweight="bold",
                color=_RED,
                alpha=0.2,
                ha="center",
                va="center",
                zorder=100,
                in_layout=False,
            )
        target = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(target, format="svg", metadata=nothing)
    return _inline(target.getvalue(), plot, simulated)


def _inline(text: str, plot: Plot, simulated: bool) -> str:
    """Return the `<svg>` element of a document, with unique ids, a title and a description.

    `simulated` puts SIMULATED before the title.
    """
    body = re.sub(
        r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", text[text.index("<svg") :], count=1, flags=re.DOTALL
    )
    prefix = re.sub(r"[^a-z0-9-]", "-", plot.id.lower())
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = body.replace('xlink:href="#', f'href="#{prefix}-').replace("url(#", f"url(#{prefix}-")
    body = body.replace("font-family: 'DejaVu Sans'", "font-family: 'DejaVu Sans', Verdana, sans-serif")
    start = body.index(">") + 1
    size = re.search(r'viewBox="[^"]*"', body[:start])
    mark = "SIMULATED: " if simulated else ""
    title = html.escape(mark + visible_line(plot.title))
    words = html.escape(visible_line(description(plot)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size.group() if size else ""} role="img"'
        f' aria-labelledby="{prefix}-title {prefix}-words"><title id="{prefix}-title">{title}</title><desc'
        f' id="{prefix}-words">{words}</desc>{body[start:].rstrip()}'
    )


def description(plot: Plot) -> str:
    """Return a description of a plot: its axes, and each series with its values or its range."""
    parts = [f"{plot.y_label} against {plot.x_label}." if plot.x_label else f"{plot.y_label}."]
    for mark in plot.marks:
        match mark:
            case Bars():
                pairs = zip(mark.labels, mark.values, strict=False)
                parts.append(
                    _named(mark.series)
                    + ", ".join(f"{label} {value_words(value)}" for label, value in pairs)
                    + "."
                )
            case Curve() | Points() if mark.y:
                kind = "points" if isinstance(mark, Points) else "a line"
                spread = f"{value_words(min(mark.y))} to {value_words(max(mark.y))}"
                parts.append(f"{_named(mark.series)}{kind}, {len(mark.y)} values from {spread}.")
            case Hexagons():
                parts.append(f"Hexagons of {len(mark.z)} values.")
            case Matrix():
                parts.append(f"A matrix of {len(mark.rows)} rows and {len(mark.columns)} columns.")
            case Violins():
                parts += [
                    f"{label}: {len(values)} values."
                    for label, values in zip(mark.labels, mark.values, strict=False)
                ]
            case _:
                pass
    return " ".join(parts)


def _named(series: str) -> str:
    return f"{series}: " if series else ""


def _height(plot: Plot) -> float:
    """Return the height in inches: more for many horizontal bars, rows of a matrix and numbers at risk."""
    height = 4.2
    for mark in plot.marks:
        if not isinstance(mark, Matrix):
            continue
        has_many_columns = len(mark.columns) > 9
        row_height = 0.34 if has_many_columns else 0.46
        height = max(height, 1.6 + row_height * len(mark.rows))
        if has_many_columns:
            height += 1.2  # their names are upright
    bars = [mark for mark in plot.marks if isinstance(mark, Bars)]
    if bars and _sideways(bars):
        labels = _labels_of(bars)
        lines = sum(_wrapped(label, _LABEL).count("\n") + 1 for label in labels)
        height = max(3.0, 1.4 + max(0.2 * lines, 0.24 * len(bars) * len(labels)))
    if plot.at_risk:
        height += 0.35 + 0.19 * _risk_lines(plot)
    entries = _entries(plot)
    across = _legend_columns(entries)
    lines = sum(
        max(entry.count("\n") + 1 for entry in entries[at : at + across])
        for at in range(0, len(entries), across)
    )
    return min(height + 0.17 * max(0, lines - 1), 14.0)


def _entries(plot: Plot) -> list[str]:
    """Return the wrapped names of the series, which are the entries of the legend."""
    series = (mark.series for mark in plot.marks if isinstance(mark, Bars | Curve | Points) and mark.series)
    return [_wrapped(name, _LEGEND) for name in dict.fromkeys(series)]


def _legend_columns(entries: Sequence[str]) -> int:
    """Return the number of columns of the legend for which there is room."""
    longest = max((len(line) for entry in entries for line in entry.split("\n")), default=1)
    return max(1, min(len(entries), 96 // (longest + 9)))


def _labels_of(bars: Sequence[Bars]) -> list[str]:
    return list(dict.fromkeys(label for mark in bars for label in mark.labels))


def _sideways(bars: Sequence[Bars]) -> bool:
    """Whether bars are horizontal, because there is no room for their labels below the axis."""
    labels = _labels_of(bars)
    return len(labels) > 7 or any(len(label) * len(labels) > 8 * _SHARED for label in labels)


def _wrapped(text: str, width: int) -> str:
    shown = visible_line(text)
    if len(shown) > _LONGEST_LABEL:
        shown = f"{shown[: _LONGEST_LABEL - 1]}…"
    return "\n".join(textwrap.wrap(shown, width, break_long_words=True)) or shown


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _bar(mark: Bars, label: str) -> tuple[Bars, float, Any] | None:
    """Return a series, its value at a label, and the whiskers; None if it has no value there."""
    if label not in mark.labels:
        return None
    index = mark.labels.index(label)
    value = _at(mark.values, index)
    if value is None or not math.isfinite(value):
        return None
    return mark, value, _whiskers(value, _at(mark.lows, index), _at(mark.highs, index))


def _at(values: Sequence[float | None], index: int) -> float | None:
    return values[index] if index < len(values) else None


def _whiskers(value: float, low: float | None, high: float | None) -> Any:
    """Return the lengths of the whiskers in the form of matplotlib; None if there is no finite interval."""
    if low is None or high is None:
        return None
    if not math.isfinite(low) or not math.isfinite(high):
        return None
    return np.array([[max(0.0, value - low)], [max(0.0, high - value)]])


def _shape(shapes: Sequence[str], number: int) -> str:
    """Return the shape of a series; when the colours repeat, they are combined with other shapes."""
    return shapes[(number + number // len(_COLOURS)) % len(shapes)]


class _Drawing:
    """One plot on its axes."""

    def __init__(self, figure: Figure, plot: Plot) -> None:
        self._figure, self._plot = figure, plot
        series = [
            mark.series for mark in plot.marks if isinstance(mark, Bars | Curve | Points) and mark.series
        ]
        self._numbers = {name: number for number, name in enumerate(dict.fromkeys(series))}
        self._solid = {mark.series for mark in plot.marks if isinstance(mark, Curve) and not mark.dashed}
        self._below: Any = None
        if plot.at_risk:
            grid = figure.add_gridspec(2, 1, height_ratios=(3.6, 0.1 + 0.19 * _risk_lines(plot)))
            self._axes: Any = figure.add_subplot(grid[0])
            self._below = figure.add_subplot(grid[1], sharex=self._axes)
        else:
            self._axes = figure.add_subplot()

    def draw(self) -> None:
        """Draw all marks, and then the labels, the grid and the legend."""
        plot, axes = self._plot, self._axes
        bars = [mark for mark in plot.marks if isinstance(mark, Bars)]
        self._scales()
        swapped = self._bars(bars) if bars else False
        for mark in plot.marks:
            self._mark(mark)
        across, up = _wrapped(plot.x_label, 80), _wrapped(plot.y_label, 48)
        axes.set_xlabel(up if swapped else across)
        axes.set_ylabel(across if swapped else up)
        if not any(isinstance(mark, Matrix) for mark in plot.marks):
            axes.grid(axis="x" if swapped else "y", color="#dddddd", linewidth=0.6)
        self._whole_numbers()
        self._legend()
        if self._below is not None:
            self._at_risk(self._below)

    def _mark(self, mark: Mark) -> None:
        match mark:
            case Curve():
                self._curve(mark)
            case Points():
                self._points(mark)
            case Hexagons():
                self._hexagons(mark)
            case Matrix():
                self._matrix(mark)
            case Violins():
                self._violins(mark)
            case Bars():
                pass  # drawn earlier, all together

    def _scales(self) -> None:
        axes, plot = self._axes, self._plot
        for axis, logarithmic in (("x", plot.log_x), ("y", plot.log_y)):
            if logarithmic:
                getattr(axes, f"set_{axis}scale")("log")
                scale = getattr(axes, f"{axis}axis")
                scale.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
                scale.set_minor_locator(NullLocator())
                scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))

    def _whole_numbers(self) -> None:
        """Put ticks only at whole numbers if all horizontal positions are whole numbers in a small range."""
        marks = self._plot.marks
        places = {x for mark in marks if isinstance(mark, Curve | Points) for x in mark.x}
        if self._plot.log_x or not places:
            return
        if any(isinstance(mark, Bars | Hexagons) for mark in marks):
            return
        are_whole = all(float(x).is_integer() for x in places)
        if are_whole and max(places) - min(places) <= 20:
            self._axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    def _number(self, series: str) -> int:
        return self._numbers.get(series, 0)

    def _colour(self, series: str) -> str:
        return _COLOURS[self._number(series) % len(_COLOURS)]

    def _bars(self, bars: Sequence[Bars]) -> bool:
        """Draw all bars, grouped by label, and return whether they are horizontal.

        Series without a value take no room in a group.
        """
        axes, labels, lying = self._axes, _labels_of(bars), _sideways(bars)
        groups = {
            label: [drawn for drawn in (_bar(mark, label) for mark in bars) if drawn] for label in labels
        }
        breadth = 0.8 / max(1, *(len(group) for group in groups.values()))
        named: set[str] = set()
        for place, group in enumerate(groups.values()):
            if not group:
                self._no_data(place, lying=lying)
            for number, (mark, value, error) in enumerate(group):
                at = place + (number - (len(group) - 1) / 2) * breadth
                options = self._bar_options(mark.series, is_named=mark.series in named)
                named.add(mark.series)
                if lying:
                    axes.barh(at, value, breadth * 0.94, xerr=error, **options)
                else:
                    axes.bar(at, value, breadth * 0.94, yerr=error, **options)
        width = _LABEL if lying else max(8, 7 * _SHARED // max(1, len(labels)))
        (axes.set_yticks if lying else axes.set_xticks)(
            range(len(labels)), [_wrapped(label, width) for label in labels]
        )
        axes.tick_params(axis="y" if lying else "x", length=0)
        if lying:
            axes.set_ylim(len(labels) - 0.5, -0.5)
        else:
            axes.set_xlim(-0.5, len(labels) - 0.5)
        return lying

    def _no_data(self, place: int, *, lying: bool) -> None:
        """Write `no data` in the place of a group of bars, which are horizontal if `lying`."""
        where = (0.0, place) if lying else (place, 0.0)
        side = {"ha": "left", "va": "center"} if lying else {"ha": "center", "va": "bottom"}
        self._axes.annotate("no data", where, fontsize=8, color="#555555", **side)

    def _bar_options(self, series: str, *, is_named: bool) -> dict[str, Any]:
        return {
            "color": self._colour(series),
            "edgecolor": "black",
            "linewidth": 0.6,
            "ecolor": "black",
            "capsize": 3,
            "hatch": _shape(_HATCHES, self._number(series)),
            "label": "_" if is_named else self._entry(series),
        }

    def _entry(self, series: str) -> str:
        """Return a series' name for the legend, which would hide names that begin with an underscore."""
        shown = _wrapped(series, _LEGEND)
        return f"\u200a{shown}" if shown.startswith("_") else shown or "_"

    def _curve(self, mark: Curve) -> None:
        number, colour = self._number(mark.series), self._colour(mark.series)
        x, y = np.asarray(mark.x, float), np.asarray(mark.y, float)
        step = "post" if mark.steps else None
        options: dict[str, Any] = {
            "color": colour,
            "linestyle": (0, (6, 2)) if mark.dashed else "-",
            "linewidth": 1.8,
            "label": self._entry(mark.series),
        }
        if mark.steps:
            self._axes.step(x, y, where="post", **options)
        else:
            self._axes.plot(x, y, **options)
        if mark.low and mark.high:
            low, high = np.asarray(mark.low, float), np.asarray(mark.high, float)
            self._axes.fill_between(x, low, high, step=step, color=colour, alpha=0.15, linewidth=0)
        doubled = mark.dashed and mark.series in self._solid
        if len(x) and len(self._numbers) > 1 and not doubled:
            shown = slice(0, None, max(1, len(x) // 6))
            self._axes.plot(
                x[shown],
                y[shown],
                linestyle="none",
                marker=_shape(_MARKERS, number),
                color=colour,
                markersize=5,
            )

    def _points(self, mark: Points) -> None:
        number, colour = self._number(mark.series), self._colour(mark.series)
        errors = None
        if mark.low and mark.high:
            pairs = [
                _whiskers(y, low, high) for y, low, high in zip(mark.y, mark.low, mark.high, strict=False)
            ]
            errors = np.concatenate([np.zeros((2, 1)) if pair is None else pair for pair in pairs], axis=1)
        crowded = len(mark.x) > 60
        self._axes.errorbar(
            mark.x,
            mark.y,
            yerr=errors,
            linestyle="none",
            marker=_shape(_MARKERS, number),
            color=colour,
            markersize=4 if crowded else 7,
            markeredgecolor="white",
            markeredgewidth=0.5,
            capsize=3,
            elinewidth=1.2,
            alpha=0.6 if crowded else 1.0,
            label=self._entry(mark.series),
        )
        if mark.labels and len(mark.labels) <= _MOST_LABELS:
            for x, y, label in zip(mark.x, mark.y, mark.labels, strict=False):
                if _finite(x) and _finite(y):
                    self._axes.annotate(
                        _wrapped(label, 18), (x, y), xytext=(7, 5), textcoords="offset points", fontsize=8
                    )
            self._axes.margins(0.14)

    def _hexagons(self, mark: Hexagons) -> None:
        colours = matplotlib.colormaps["cividis"].resampled(10)
        drawn = self._axes.hexbin(
            mark.x,
            mark.y,
            C=mark.z,
            reduce_C_function=np.mean,
            gridsize=18,
            cmap=colours,
            xscale="log" if self._plot.log_x else "linear",
            yscale="log" if self._plot.log_y else "linear",
            linewidths=0.2,
            edgecolors="white",
        )
        if self._plot.log_x or self._plot.log_y:
            self._scales()
        values = drawn.get_array()
        if values is not None and len(values):
            low, high = float(np.min(values)), float(np.max(values))
            low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high if high > low else low + 1)
            drawn.set_norm(BoundaryNorm(np.linspace(low, high, 11), 10))
        self._figure.colorbar(drawn, ax=self._axes, label="mean", shrink=0.9)

    def _matrix(self, mark: Matrix) -> None:
        axes = self._axes
        values = np.array([[v if _finite(v) else np.nan for v in row] for row in mark.values], float)
        if values.size == 0:
            return
        known = values[~np.isnan(values)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        # Values of both signs, such as correlations, get a colour for each sign.
        signed = low < 0
        top = max(1.0, -low, high)
        drawn = axes.pcolormesh(
            np.ma.masked_invalid(values),
            cmap=matplotlib.colormaps["PuOr" if signed else "cividis"].resampled(12),
            vmin=-top if signed else 0.0,
            vmax=top,
            edgecolors="white",
            linewidth=1,
        )
        many = len(mark.columns) > 9
        for row, column in np.ndindex(values.shape):
            count = f"\nn {mark.counts[row][column]}" if mark.counts else ""
            self._cell(drawn, (row, column), float(values[row, column]), count, size=5.5 if many else 8)
        axes.set_yticks(np.arange(len(mark.rows)) + 0.5, [_wrapped(label, _LABEL) for label in mark.rows])
        self._name_columns(mark.columns)
        if many:
            axes.tick_params(axis="y", labelsize=8)
        axes.tick_params(length=0)
        axes.invert_yaxis()
        axes.spines[:].set_visible(False)

    def _cell(self, drawn: Any, at: tuple[int, int], value: float, count: str, *, size: float) -> None:
        """Write a value of a matrix and its count, in white on a dark cell."""
        row, column = at
        is_known = not math.isnan(value)
        is_dark = is_known and sum(drawn.cmap(drawn.norm(value))[:3]) < 1.7
        self._axes.text(
            column + 0.5,
            row + 0.5,
            (f"{value:.2f}" if is_known else NOTHING) + count,
            ha="center",
            va="center",
            fontsize=size,
            color="white" if is_dark else "black",
        )

    def _name_columns(self, columns: Sequence[str]) -> None:
        """Name the columns of a matrix: horizontally if there is room, slanted if not, upright if many."""
        room = 60 // max(1, len(columns))
        style: dict[str, Any]
        if len(columns) > 9:
            width, style = 60, {"rotation": 90, "fontsize": 8, "ha": "right", "va": "center"}
        elif len(columns) > 5 or any(len(label) > room for label in columns):
            width, style = _LABEL, {"rotation": 40, "fontsize": 10, "ha": "right", "va": "top"}
        else:
            width, style = 14, {"rotation": 0, "fontsize": 10, "ha": "center", "va": "top"}
        style["rotation_mode"] = "anchor" if style["rotation"] else None
        self._axes.set_xticks(
            np.arange(len(columns)) + 0.5, [_wrapped(label, width) for label in columns], **style
        )

    def _violins(self, mark: Violins) -> None:
        axes = self._axes
        for place, (values, colour, marker) in enumerate(
            zip(
                mark.values,
                islice(cycle(_COLOURS), len(mark.values)),
                islice(cycle(_MARKERS), len(mark.values)),
                strict=False,
            )
        ):
            numbers = np.asarray([value for value in values if math.isfinite(value)], float)
            if len(numbers) > 4 and float(numbers.std()) > 0 and not self._plot.log_y:
                for body in axes.violinplot([numbers], [place], widths=0.7, showextrema=False)["bodies"]:
                    body.set(facecolor=colour, edgecolor="black", alpha=0.35)
            offsets = place + 0.12 * (np.arange(len(numbers)) % 5 - 2) / 2
            axes.plot(
                offsets,
                numbers,
                linestyle="none",
                marker=marker,
                markersize=5,
                color=colour,
                markeredgecolor="white",
            )
            if len(numbers):
                low, middle, high = np.quantile(numbers, (0.25, 0.5, 0.75))
                axes.vlines(place, low, high, color="black", linewidth=3)
                axes.hlines(middle, place - 0.18, place + 0.18, color="black", linewidth=2)
        names = [
            f"{_wrapped(label, max(8, 7 * _SHARED // max(1, len(mark.labels))))}\nn = {len(values)}"
            for label, values in zip(mark.labels, mark.values, strict=False)
        ]
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.tick_params(axis="x", length=0)

    def _legend(self) -> None:
        handles, labels = self._axes.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        if not unique:
            return
        self._figure.legend(
            unique.values(),
            unique.keys(),
            loc="outside upper left",
            frameon=False,
            fontsize=9,
            handlelength=2.8,
            ncols=_legend_columns(list(unique)),
        )

    def _at_risk(self, table: Any) -> None:
        """Write the numbers at risk below the time axis, a line for each series."""
        times = self._plot.risk_times
        self._axes.set_xticks(times)
        names = [_wrapped(name, _LABEL) for name in self._plot.at_risk]
        ends = list(accumulate(name.count("\n") + 1 for name in names))
        middles = [end - (name.count("\n") + 1) / 2 for end, name in zip(ends, names, strict=True)]
        for middle, counts in zip(middles, self._plot.at_risk.values(), strict=True):
            for time, count in zip(times, counts, strict=False):
                table.text(time, middle, str(count), ha="center", va="center", fontsize=9)
        table.set_ylim(ends[-1], 0)
        table.set_title("Number at risk", loc="left", fontsize=9)
        table.set_yticks(middles, names, fontsize=9)
        table.tick_params(axis="both", length=0, labelbottom=False)
        table.spines[:].set_visible(False)


def _risk_lines(plot: Plot) -> int:
    return sum(_wrapped(name, _LABEL).count("\n") + 1 for name in plot.at_risk)
