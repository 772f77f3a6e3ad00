"""The one writer of CSV: no cell that it writes is a formula in a spreadsheet, and its changes can be undone."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

Cell = str | int | float | None

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""Texts that begin like this get a prefix; one that already has it gets another, so that one can be removed.
"""
_PREFIXED = re.compile(r"'+[=+\-@\t\r]")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def csv_line(cells: Iterable[Cell], *, end: str = "\n") -> str:
    """Return a line of CSV (RFC 4180) with its end; None is an empty cell.

    A text that would begin a formula begins with an apostrophe, as OWASP advises against CSV injection.
    Numbers stay.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")  # cells with either character are quoted then
    writer.writerow([_safe("" if cell is None else str(cell)) for cell in cells])
    return text.getvalue().removesuffix("\r\n") + end


def text_of_cell(cell: str) -> str:
    """Return the text from which `csv_line` made a cell."""
    return cell[1:] if _PREFIXED.match(cell) else cell


def _safe(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
