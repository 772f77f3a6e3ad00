"""Draws the plots of findings: SVG elements for a page, without scripts, links and dates, and PDF files.

Equal plots have equal bytes.
"""

from __future__ import annotations

import html
import io
import math
import re
import textwrap
import warnings
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from gistpoint.core.analysis.findings import Bars, Curve, Hexagons, Mark, Matrix, Plot, Points, Violins
from gistpoint.core.analysis.naming import in_words
from gistpoint.core.analysis.printing import NOTHING
from gistpoint.core.analysis.seeing import seen_in
from gistpoint.core.text import visible_line
from gistpoint.sessions.exports.study.report.styles import (
    HATCHES,
    MARKERS,
    RED,
    Look,
    colour_of,
    lone_labels,
    shape_of,
)

_LABEL, _LEGEND, _SHARED = 26, 34, 14
"""The maximum line lengths of a side label, of the legend, and of a label below an axis, in characters."""
_MOST_LABELS = 12
"""The maximum number of labelled points; more labels would overlap."""
_LONGEST_LABEL = 120
_FOOTER = 0.26
"""The height in inches of the line below a figure that marks simulated data, for text of 10 points."""


def draw(plot: Plot, look: Look | None = None) -> str:
    """Return a plot as an `<svg>` element with a title and a description.

    Raises ValueError, or another error of matplotlib, for values that can't be drawn.
    """
    look = look or Look()
    return _inline(rendered(plot, look, "svg").decode(), plot, look.simulated)


def rendered(plot: Plot, look: Look, format: str) -> bytes:
    """Return a plot as a file in the format `svg` or `pdf`. Raises ValueError as `draw` does."""
    with matplotlib.rc_context(look.settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        across = _panel_columns(plot, look)
        size = look.width, _height(plot, look, across)
        figure = Figure(figsize=size, layout="constrained")
        _draw_on(figure, plot, look, across)
        if look.simulated:
            _mark_simulated(figure, look, size[1])
        target = io.BytesIO()
        # `savefig` is not used, because it would draw everything twice: first only to find the size.
        if format == "pdf":
            from matplotlib.backends.backend_pdf import FigureCanvasPdf  # slow to load, and pages need none

            metadata = dict.fromkeys(("Creator", "Producer", "CreationDate"))
            pdf: Any = FigureCanvasPdf(figure)
            pdf.print_pdf(target, metadata=metadata)
        else:
            nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
            svg: Any = FigureCanvasSVG(figure)
            svg.print_svg(target, metadata=nothing)
    return target.getvalue()


def _draw_on(figure: Figure, plot: Plot, look: Look, across: int) -> None:
    numbers = look.palette.numbers(plot)
    if not plot.panels:
        drawing = _Drawing(figure, plot, look, numbers)
        drawing.draw()
        _legend(figure, [drawing.axes], look)
        return
    rows = math.ceil(len(plot.panels) / across)
    room = max(12, int(look.width / across * 72 / (look.font * 0.95 * 0.62)) - 9)
    grid = figure.add_gridspec(rows, across)
    for place, panel in enumerate(plot.panels):
        axes = figure.add_subplot(grid[place // across, place % across])
        _Drawing(figure, panel, look, numbers, axes).draw()
        axes.set_title(_wrapped(look.shown(panel.title), room), fontsize=look.font * 0.95, loc="left")
        axes.set_ylabel("")


def _mark_simulated(figure: Figure, look: Look, height: float) -> None:
    """Write SIMULATED below a figure, on a line reserved for it, where it does not cover any data."""
    free = _FOOTER * look.scale / height
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, free, 1, 1 - free))
    style: dict[str, Any] = {"fontsize": look.font * 1.1, "fontweight": "bold", "color": RED, "va": "bottom"}
    for x, side in ((0.005, "left"), (0.5, "center"), (0.995, "right")):
        figure.text(x, 0.15 * free, "SIMULATED", ha=side, in_layout=False, **style)


def _legend(figure: Figure, all_axes: Sequence[Any], look: Look) -> None:
    unique: dict[str, Any] = {}
    for axes in all_axes:
        handles, labels = axes.get_legend_handles_labels()
        unique |= dict(zip(labels, handles, strict=True))
    if unique:
        figure.legend(
            unique.values(),
            unique.keys(),
            loc="outside upper left",
            frameon=False,
            fontsize=look.font * 0.9,
            handlelength=2.4,
            columnspacing=1.2,
            ncols=_legend_columns(list(unique), look),
        )


def _panel_columns(plot: Plot, look: Look) -> int:
    """Return how many panels fit next to each other, each wide enough for its names."""
    room = max(1, min(len(plot.panels), 3, int(look.width / (2.2 * look.scale))))
    return math.ceil(len(plot.panels) / math.ceil(len(plot.panels) / room)) if plot.panels else room


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
    title = html.escape(mark + visible_line(in_words(plot.title)))
    words = html.escape(visible_line(f"{_axes_of(plot)} {in_words(seen_in(plot))}".strip()))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size.group() if size else ""} role="img"'
        f' aria-labelledby="{prefix}-title {prefix}-words"><title id="{prefix}-title">{title}</title><desc'
        f' id="{prefix}-words">{words}</desc>{body[start:].rstrip()}'
    )


def _axes_of(plot: Plot) -> str:
    """Return the axes of a plot in words; empty if the vertical one has no name."""
    up, across = in_words(plot.y_label), in_words(plot.x_label)
    return f"{up} against {across}." if up and across else f"{up}." if up else ""


def _height(plot: Plot, look: Look, across: int) -> float:
    """Return the height in inches, which grows with horizontal bars, rows of a matrix and numbers at risk."""
    if plot.panels:
        return (0.4 + 2.6 * math.ceil(len(plot.panels) / across)) * look.scale + _footer(look)
    height = max([4.2, *(_height_of_matrix(mark) for mark in plot.marks if isinstance(mark, Matrix))])
    bars = [mark for mark in plot.marks if isinstance(mark, Bars)]
    if bars and _sideways(bars, look):
        labels = _labels_of(bars)
        lines = sum(_wrapped(look.shown(label), _LABEL).count("\n") + 1 for label in labels)
        height = max(3.0, 1.4 + max(0.2 * lines, 0.24 * len(bars) * len(labels)))
    if plot.at_risk:
        height += 0.35 + 0.19 * _risk_lines(plot, look)
    entries = [_wrapped(look.shown(name), _LEGEND) for name in plot.series]
    columns = _legend_columns(entries, look)
    lines = sum(
        max(entry.count("\n") + 1 for entry in entries[at : at + columns])
        for at in range(0, len(entries), columns)
    )
    return min(height + 0.17 * max(0, lines - 1), 14.0) * look.scale + _footer(look)


def _height_of_matrix(matrix: Matrix) -> float:
    if len(matrix.columns) > 9:
        return 3.2 + 0.34 * len(matrix.rows)  # column names are vertical
    return 1.6 + 0.46 * len(matrix.rows)


def _footer(look: Look) -> float:
    return _FOOTER * look.scale if look.simulated else 0.0


def _legend_columns(entries: Sequence[str], look: Look) -> int:
    """Return the number of columns in the legend for which there is room."""
    longest = max((len(line) for entry in entries for line in entry.split("\n")), default=1)
    room = int(look.width * 72 / (look.font * 0.9 * 0.62))
    return max(1, min(len(entries), room // (longest + 7)))


def _labels_of(bars: Sequence[Bars]) -> list[str]:
    return list(dict.fromkeys(label for mark in bars for label in mark.labels))


def _sideways(bars: Sequence[Bars], look: Look) -> bool:
    """Return whether bars are horizontal, because there is no room for their labels below the axis."""
    labels = [look.shown(label) for label in _labels_of(bars)]
    room = 8 * _SHARED * look.width / (7.4 * look.scale)
    return len(labels) > 7 or any(len(label) * len(labels) > room for label in labels)


def _wrapped(text: str, width: int) -> str:
    shown = visible_line(in_words(text))
    if len(shown) > _LONGEST_LABEL:
        shown = f"{shown[: _LONGEST_LABEL - 1]}…"
    return "\n".join(textwrap.wrap(shown, width, break_on_hyphens=False)) or shown


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _bar(mark: Bars, label: str) -> tuple[Bars, float, Any] | None:
    """Return a series, its value at a label, and the whiskers; None if the series has no value there."""
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
    """Return the lengths of the whiskers as matplotlib expects them; None if no interval is finite."""
    if low is None or high is None:
        return None
    if not math.isfinite(low) or not math.isfinite(high):
        return None
    return np.array([[max(0.0, value - low)], [max(0.0, high - value)]])


class _Drawing:
    """One plot on its axes."""

    def __init__(
        self, figure: Figure, plot: Plot, look: Look, numbers: dict[str, int], axes: Any = None
    ) -> None:
        """`numbers` are the style numbers of the series; if `axes` is None, the plot makes new axes."""
        self._figure, self._plot, self._look, self._numbers = figure, plot, look, numbers
        self._scale = look.scale
        self._lone = {label for label in lone_labels(plot) if label in numbers}
        """The solvers that the only series of bars names, each of which is drawn in its own style."""
        self._dotted = {mark.series for mark in plot.marks if isinstance(mark, Points)}
        self._solid = {mark.series for mark in plot.marks if isinstance(mark, Curve) and not mark.dashed}
        self._below: Any = None
        if plot.at_risk:
            grid = figure.add_gridspec(2, 1, height_ratios=(3.6, 0.1 + 0.19 * _risk_lines(plot, look)))
            self.axes: Any = figure.add_subplot(grid[0])
            self._below = figure.add_subplot(grid[1], sharex=self.axes)
        else:
            self.axes = figure.add_subplot() if axes is None else axes

    def _fit(self, text: str, width: int) -> str:
        """Return a label on lines of at most `width` characters, without words that the figure repeats."""
        return _wrapped(self._look.shown(text), width)

    def draw(self) -> None:
        """Draw all marks, and then the labels, the grid and the numbers at risk."""
        plot, axes = self._plot, self.axes
        bars = [mark for mark in plot.marks if isinstance(mark, Bars)]
        self._scales()
        swapped = self._bars(bars) if bars else False
        for mark in plot.marks:
            self._mark(mark)
        wide = round(80 * self._look.width / (7.4 * self._scale))
        across, up = self._fit(plot.x_label, wide), self._fit(plot.y_label, 48)
        axes.set_xlabel(up if swapped else across)
        axes.set_ylabel(across if swapped else up)
        if not any(isinstance(mark, Matrix) for mark in plot.marks):
            axes.grid(axis="x" if swapped else "y", color="#dddddd", linewidth=0.6)
        self._whole_numbers()
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
                pass  # already drawn, all together

    def _scales(self) -> None:
        axes, plot = self.axes, self._plot
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
            self.axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    def _number(self, series: str) -> int:
        return self._numbers.get(series, 0)

    def _colour(self, series: str) -> str:
        return colour_of(self._number(series))

    def _bars(self, bars: Sequence[Bars]) -> bool:
        """Draw all bars, grouped by label, and return whether they are horizontal.

        Series without a value take up no space in a group.
        """
        axes, labels, horizontal = self.axes, _labels_of(bars), _sideways(bars, self._look)
        groups = {
            label: [drawn for drawn in (_bar(mark, label) for mark in bars) if drawn] for label in labels
        }
        breadth = 0.8 / max(1, *(len(group) for group in groups.values()))
        # The axis names the values of a lone series, so it needs no legend.
        named = {mark.series for mark in bars} if len(bars) == 1 else set[str]()
        for place, (label, group) in enumerate(groups.items()):
            if not group:
                self._no_data(place, horizontal=horizontal)
            for number, (mark, value, error) in enumerate(group):
                at = place + (number - (len(group) - 1) / 2) * breadth
                style = label if label in self._lone else mark.series
                options = self._bar_options(style, is_named=mark.series in named)
                named.add(mark.series)
                if horizontal:
                    axes.barh(at, value, breadth * 0.94, xerr=error, **options)
                else:
                    axes.bar(at, value, breadth * 0.94, yerr=error, **options)
        self._name_bars(labels, horizontal=horizontal)
        return horizontal

    def _name_bars(self, labels: Sequence[str], *, horizontal: bool) -> None:
        """Name the groups of bars: below the axis, or next to it if the bars are `horizontal`."""
        axes = self.axes
        width = _LABEL if horizontal else max(8, 7 * _SHARED // max(1, len(labels)))
        (axes.set_yticks if horizontal else axes.set_xticks)(
            range(len(labels)), [self._fit(label, width) for label in labels]
        )
        axes.tick_params(axis="y" if horizontal else "x", length=0)
        if horizontal:
            axes.set_ylim(len(labels) - 0.5, -0.5)
        else:
            axes.set_xlim(-0.5, len(labels) - 0.5)

    def _no_data(self, place: int, *, horizontal: bool) -> None:
        """Write `no data` in the place of a group of bars, which may be `horizontal`."""
        where = (0.0, place) if horizontal else (place, 0.0)
        side = {"ha": "left", "va": "center"} if horizontal else {"ha": "center", "va": "bottom"}
        self.axes.annotate("no data", where, fontsize=8 * self._scale, color="#555555", **side)

    def _bar_options(self, series: str, *, is_named: bool) -> dict[str, Any]:
        return {
            "color": self._colour(series),
            "edgecolor": "black",
            "linewidth": 0.6,
            "ecolor": "black",
            "capsize": 3 * self._scale,
            "error_kw": {"elinewidth": 1.2 * self._scale},
            "hatch": shape_of(HATCHES, self._number(series)),
            "label": "_" if is_named else self._entry(series),
        }

    def _entry(self, series: str) -> str:
        """Return a series' name for the legend, which would hide names that begin with an underscore."""
        shown = self._fit(series, _LEGEND)
        return f"\u200a{shown}" if shown.startswith("_") else shown or "_"

    def _curve(self, mark: Curve) -> None:
        number, colour = self._number(mark.series), self._colour(mark.series)
        x, y = np.asarray(mark.x, float), np.asarray(mark.y, float)
        step = "post" if mark.steps else None
        options: dict[str, Any] = {
            "color": colour,
            "linestyle": (0, (6, 2)) if mark.dashed else "-",
            "label": self._entry(mark.series),
        }
        doubled = mark.dashed and mark.series in self._solid
        # Markers distinguish the lines in grey, but on a line through points, markers would look like data.
        if len(x) and len(self._numbers) > 1 and not doubled and mark.series not in self._dotted:
            options |= {
                "marker": shape_of(MARKERS, number),
                "markersize": 5 * self._scale,
                "markevery": max(1, len(x) // 6),
            }
        if mark.steps:
            self.axes.step(x, y, where="post", **options)
        else:
            self.axes.plot(x, y, **options)
        if mark.low and mark.high:
            low, high = np.asarray(mark.low, float), np.asarray(mark.high, float)
            self.axes.fill_between(x, low, high, step=step, color=colour, alpha=0.15, linewidth=0)

    def _points(self, mark: Points) -> None:
        number, colour = self._number(mark.series), self._colour(mark.series)
        errors = None
        if mark.low and mark.high:
            pairs = [
                _whiskers(y, low, high) for y, low, high in zip(mark.y, mark.low, mark.high, strict=False)
            ]
            errors = np.concatenate([np.zeros((2, 1)) if pair is None else pair for pair in pairs], axis=1)
        crowded = len(mark.x) > 60
        self.axes.errorbar(
            mark.x,
            mark.y,
            yerr=errors,
            linestyle="none",
            marker=shape_of(MARKERS, number),
            color=colour,
            markersize=(4 if crowded else 7) * self._scale,
            markeredgecolor="white",
            markeredgewidth=0.5,
            capsize=3,
            elinewidth=1.2 * self._scale,
            alpha=0.6 if crowded else 1.0,
            label=self._entry(mark.series),
        )
        if mark.labels and len(mark.labels) <= _MOST_LABELS:
            for x, y, label in zip(mark.x, mark.y, mark.labels, strict=False):
                if _finite(x) and _finite(y):
                    self.axes.annotate(
                        self._fit(label, 18),
                        (x, y),
                        xytext=(7, 5),
                        textcoords="offset points",
                        fontsize=8 * self._scale,
                    )
            self.axes.margins(0.14)

    def _hexagons(self, mark: Hexagons) -> None:
        colours = matplotlib.colormaps["cividis"].resampled(10)
        drawn = self.axes.hexbin(
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
        self._figure.colorbar(drawn, ax=self.axes, label=self._fit(mark.label, 48), shrink=0.9)

    def _matrix(self, mark: Matrix) -> None:
        axes = self.axes
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
        axes.set_yticks(np.arange(len(mark.rows)) + 0.5, [self._fit(label, _LABEL) for label in mark.rows])
        self._name_columns(mark.columns)
        if many:
            axes.tick_params(axis="y", labelsize=8 * self._scale)
        axes.tick_params(length=0)
        axes.invert_yaxis()
        axes.spines[:].set_visible(False)

    def _cell(self, drawn: Any, at: tuple[int, int], value: float, count: str, *, size: float) -> None:
        """Write a value of a matrix and its count, in white on a dark cell."""
        row, column = at
        is_known = not math.isnan(value)
        is_dark = is_known and sum(drawn.cmap(drawn.norm(value))[:3]) < 1.7
        self.axes.text(
            column + 0.5,
            row + 0.5,
            (f"{value:.2f}" if is_known else NOTHING) + count,
            ha="center",
            va="center",
            fontsize=size * self._scale,
            color="white" if is_dark else "black",
            in_layout=False,  # inside its cell
        )

    def _name_columns(self, columns: Sequence[str]) -> None:
        """Label the columns of a matrix: horizontally if there is room, otherwise slanted, or vertically."""
        room = 60 // max(1, len(columns))
        style: dict[str, Any]
        if len(columns) > 9:
            width, style = (
                60,
                {"rotation": 90, "fontsize": 8 * self._scale, "ha": "right", "va": "center"},
            )
        elif len(columns) > 5 or any(len(label) > room for label in columns):
            width, style = (
                _LABEL,
                {"rotation": 40, "fontsize": 10 * self._scale, "ha": "right", "va": "top"},
            )
        else:
            width, style = 14, {"rotation": 0, "fontsize": 10 * self._scale, "ha": "center", "va": "top"}
        style["rotation_mode"] = "anchor" if style["rotation"] else None
        self.axes.set_xticks(
            np.arange(len(columns)) + 0.5, [self._fit(label, width) for label in columns], **style
        )

    def _violins(self, mark: Violins) -> None:
        axes = self.axes
        for place, (label, values) in enumerate(zip(mark.labels, mark.values, strict=False)):
            colour, marker = self._colour(label), shape_of(MARKERS, self._number(label))
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
                markersize=5 * self._scale,
                color=colour,
                markeredgecolor="white",
            )
            if len(numbers):
                low, middle, high = np.quantile(numbers, (0.25, 0.5, 0.75))
                axes.vlines(place, low, high, color="black", linewidth=3 * self._scale)
                axes.hlines(middle, place - 0.18, place + 0.18, color="black", linewidth=2 * self._scale)
        names = [
            f"{self._fit(label, max(8, 30 // max(1, len(mark.labels))))}\nn = {len(values)}"
            for label, values in zip(mark.labels, mark.values, strict=False)
        ]
        axes.set_xticks(range(len(names)), names, fontsize=7.5 * self._scale)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.tick_params(axis="x", length=0)

    def _at_risk(self, table: Any) -> None:
        """Write the numbers at risk below the time axis, a line for each series."""
        times = self._plot.risk_times
        self.axes.set_xticks(times)
        names = [self._fit(name, _LABEL) for name in self._plot.at_risk]
        ends = list(accumulate(name.count("\n") + 1 for name in names))
        middles = [end - (name.count("\n") + 1) / 2 for end, name in zip(ends, names, strict=True)]
        for middle, counts in zip(middles, self._plot.at_risk.values(), strict=True):
            for time, count in zip(times, counts, strict=False):
                table.text(time, middle, str(count), ha="center", va="center", fontsize=9 * self._scale)
        table.set_ylim(ends[-1], 0)
        table.set_title("Number at risk", loc="left", fontsize=9 * self._scale)
        table.set_yticks(middles, names, fontsize=9 * self._scale)
        table.tick_params(axis="both", length=0, labelbottom=False)
        table.spines[:].set_visible(False)


def _risk_lines(plot: Plot, look: Look) -> int:
    return sum(_wrapped(look.shown(name), _LABEL).count("\n") + 1 for name in plot.at_risk)
