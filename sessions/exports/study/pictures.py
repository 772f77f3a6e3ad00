"""Exports the figures and tables of a study for a paper: SVG and PDF files, CSV, and LaTeX tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from gistpoint.core.analysis.findings import (
    Bars,
    Curve,
    Findings,
    FindingsTable,
    Hexagons,
    Mark,
    Matrix,
    Number,
    Plot,
    Points,
    Value,
    Violins,
)
from gistpoint.core.analysis.naming import in_words
from gistpoint.core.analysis.printing import NOTHING, Extent, extent_of_table, intervals_words, value_words
from gistpoint.core.analysis.seeing import seen_in
from gistpoint.core.csv_text import csv_line
from gistpoint.core.text import visible_line
from gistpoint.sessions.exports.study.naming import file_part, prefix_of
from gistpoint.sessions.exports.study.registry import StudyExport
from gistpoint.sessions.exports.study.report.figures import rendered
from gistpoint.sessions.exports.study.report.styles import COLUMN, PAGE, Look, SeriesStyles

_WIDTHS = {"column": (COLUMN, 7.0), "page": (PAGE, 8.0)}
"""The width in inches and the size of text in points of each set of figures."""
_SIMULATED = "SIMULATED"


def figure_files(export: StudyExport) -> Iterator[tuple[str, bytes]]:
    """Yield each figure as SVG and PDF in both widths, its values as CSV, and the captions as JSON."""
    data, prefix = export.data, prefix_of(export.data)
    palette, captions = SeriesStyles.of(data), dict[str, str]()
    for ran in export.ran:
        for plot in ran.findings.plots:
            name = f"{prefix}{file_part(plot.id)}"
            captions[name] = _caption(plot)
            for folder, (width, font) in _WIDTHS.items():
                look = Look(width, font, palette, simulated=data.study.simulated)
                for format in ("pdf", "svg"):
                    yield f"{folder}/{name}.{format}", rendered(plot, look, format)
            yield f"values/{name}.csv", _csv(_values_of(plot))
    text = json.dumps(captions, ensure_ascii=False, indent=1)
    yield f"{prefix}captions.json", text.encode("utf-8", "backslashreplace")


def latex_files(export: StudyExport) -> Iterator[tuple[str, bytes]]:
    """Yield each table as LaTeX (package booktabs), and as CSV in full precision, named by its analysis."""
    prefix = prefix_of(export.data)
    everything = Extent()
    for ran in export.ran:
        for number, table in enumerate(ran.findings.printed_tables, 1):
            name = f"{prefix}{file_part(ran.analysis.id)}-{number}"
            extent = extent_of_table(table, ran.findings, everything)
            text = latex_table(table, ran.findings, extent, name, simulated=export.data.study.simulated)
            yield f"{name}.tex", text.encode("utf-8", "backslashreplace")
            yield f"{name}.csv", csv_of(table)


def _caption(plot: Plot) -> str:
    return " ".join(filter(None, (f"{in_words(plot.title)}.", in_words(seen_in(plot)), plot.caption)))


# The values of a figure


def _values_of(plot: Plot) -> list[list[Value]]:
    """Return the values of a plot as rows: panel, kind of mark, series, place, value and bounds."""
    rows: list[list[Value]] = [["panel", "mark", "series", "x", "y", "low", "high"]]
    for panel in plot.panels or (plot,):
        title = panel.title if plot.panels else ""
        for mark in panel.marks:
            rows += ([title, type(mark).__name__.lower(), *row] for row in _of_mark(mark))
    return rows


def _of_mark(mark: Mark) -> Iterator[list[Value]]:
    match mark:
        case Bars():
            yield from _bounded(mark.series, mark.labels, mark.values, mark.lows, mark.highs)
        case Curve() | Points():
            yield from _bounded(mark.series, mark.x, mark.y, mark.low, mark.high)
        case Hexagons():
            # The colour shows the third value.
            yield from (["", x, y, z, None] for x, y, z in zip(mark.x, mark.y, mark.z, strict=False))
        case Matrix():
            for name, values in zip(mark.rows, mark.values, strict=False):
                pairs = zip(mark.columns, values, strict=False)
                yield from ([name, column, value, None, None] for column, value in pairs)
        case Violins():
            for label, members in zip(mark.labels, mark.values, strict=False):
                yield from ([label, None, value, None, None] for value in members)


def _bounded(
    series: str,
    places: Sequence[Value],
    values: Sequence[Value],
    lows: Sequence[Value],
    highs: Sequence[Value],
) -> Iterator[list[Value]]:
    low, high = (bounds or [None] * len(values) for bounds in (lows, highs))
    for row in zip(places, values, low, high, strict=False):
        yield [series, *row]


def _csv(rows: Sequence[Sequence[Value]]) -> bytes:
    return "".join(csv_line(row, end="\r\n") for row in rows).encode("utf-8", "backslashreplace")


# Tables


def csv_of(table: FindingsTable) -> bytes:
    """Return a table as CSV.

    A number occupies three columns, for its value and the bounds of its interval. If any number in the column
    has the interval that papers print, three more columns contain that interval and its label. A bound that
    is only known to lie beyond the data is empty.
    """
    parts = [_parts_of(row[place] for row in table.rows) for place in range(len(table.columns))]
    rows: list[list[Value]] = [
        [f"{name}{part}" for name, own in zip(table.columns, parts, strict=True) for part in own]
    ]
    for row in table.rows:
        rows.append([_part(cell, part) for cell, own in zip(row, parts, strict=True) for part in own])
    return _csv(rows)


_VALUE, _BOUNDS = "", (", low", ", high")
_OTHER_BOUNDS = (", other interval", ", other low", ", other high")


def _parts_of(column: Iterable[Number | Value]) -> tuple[str, ...]:
    """Return the suffixes of the CSV columns in which one column of a table is written."""
    numbers = [cell for cell in column if isinstance(cell, Number)]
    others = _OTHER_BOUNDS if any(number.iid is not None for number in numbers) else ()
    return (_VALUE, *_BOUNDS, *others) if numbers else (_VALUE,)


def _part(cell: Number | Value, part: str) -> Value:
    if not isinstance(cell, Number):
        return cell if part == _VALUE else None
    label, low, high = (cell.iid_label, *cell.iid) if cell.iid is not None else (None, None, None)
    known = zip(
        (_VALUE, *_BOUNDS, *_OTHER_BOUNDS),
        (cell.value, None if cell.below else cell.low, None if cell.above else cell.high, label, low, high),
        strict=True,
    )
    return dict(known)[part]


_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        NOTHING: "--",
        "−": "$-$",
        "∞": r"$\infty$",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    }
)


def escaped(text: str) -> str:
    """Return text, on one line, in a form that LaTeX prints verbatim."""
    return visible_line(text).translate(_ESCAPES)


def latex_table(
    table: FindingsTable, findings: Findings, extent: Extent, label: str, *, simulated: bool = False
) -> str:
    r"""Return a table for `\input`, with the rules of booktabs; intervals follow estimates in brackets."""
    columns = "".join("r" if _is_number(table, place) else "l" for place in range(len(table.columns)))
    head = _latex_row(escaped(in_words(column)) for column in table.columns)
    body = "\n".join(_latex_row(map(_latex_cell, row)) for row in table.rows)
    mark = f"\\textbf{{{_SIMULATED}}} " if simulated else ""
    counts = f" ({escaped(extent.words)})" if extent.words else ""
    notes = "".join(f" {escaped(in_words(note))}" for note in _notes(table))
    return (
        f"% {label}: needs \\usepackage{{booktabs}}; brackets contain 95% intervals\n"
        "\\begin{table}\n\\centering\n\\small\n"
        f"\\caption{{{mark}{escaped(in_words(table.title))}{counts}.{notes}}}\n\\label{{tab:{label}}}\n"
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{head}\n\\midrule\n{body}\n"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


def _notes(table: FindingsTable) -> list[str]:
    own = {cell.note for row in table.rows for cell in row if isinstance(cell, Number) and cell.note}
    return [*filter(None, [table.note]), *(f"{note[0].upper()}{note[1:]}." for note in sorted(own))]


def _is_number(table: FindingsTable, place: int) -> bool:
    return all(isinstance(row[place], Number | int | float | None) for row in table.rows)


def _latex_row(cells: Iterable[str]) -> str:
    """Return a row of a table; braces protect a bracket or star at its beginning.

    Without them, LaTeX would attribute it to the row above.
    """
    text = " & ".join(cells)
    return ("{}" if text.startswith(("[", "*")) else "") + text + r" \\"


def _latex_cell(cell: Number | Value) -> str:
    if not isinstance(cell, Number):
        return escaped(in_words(value_words(cell)))
    value, intervals = value_words(cell.value), "; ".join(intervals_words(cell))
    return f"{escaped(value)} {{\\footnotesize {escaped(intervals)}}}" if intervals else escaped(value)
