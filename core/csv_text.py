"""The one writer of CSV: no cell of it is a formula to a spreadsheet, and what it changed can be undone."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

Cell = str | int | float | None

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""How a text begins that is prefixed; one that has the prefix by itself gets another, so that one can be taken off."""
_PREFIXED = re.compile(r"'+[=+\-@\t\r]")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def csv_line(cells: Iterable[Cell], *, end: str = "\n") -> str:
    """Return a line of CSV (RFC 4180) with its end; None is an empty cell.

    A text that would begin a formula begins with an apostrophe, as OWASP advises against CSV injection. Numbers stay.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")  # cells with either character are quoted then
    writer.writerow([_safe("" if cell is None else str(cell)) for cell in cells])
    return text.getvalue().removesuffix("\r\n") + end


def text_of_cell(cell: str) -> str:
    """Return the text that `csv_line` was given for a cell."""
    return cell[1:] if _PREFIXED.match(cell) else cell


def _safe(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
