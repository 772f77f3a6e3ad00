"""The single writer and reader of CSV: cells are never formulas in a spreadsheet, and can be restored."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

Cell = str | int | float | None


class CsvTable(NamedTuple):
    """A table that was read from CSV."""

    columns: list[str]
    """The names in the first line, without spaces around them."""
    rows: list[dict[str, Any]]
    """The cells of each further line by column; a missing cell is None, and surplus cells are under None."""


_BEGINNING = "=+@\uff1d\uff0b\uff0d\uff20\t\r\n\\-"
"""Characters that OWASP lists as starting a formula, and full-width signs that some spreadsheets accept."""
_FORMULA = re.compile(f"'*[{_BEGINNING}]")
"""Cells that match get a leading apostrophe, even after another one; reading removes one apostrophe."""
_PREFIXED = re.compile(f"'+[{_BEGINNING}]")
_QUOTED = "\r\n\t;"
"""The line ending given to the writer, because the writer quotes cells that contain one of its characters.

Spreadsheets in some languages split lines at semicolons, and others at tabs too. Without quotes, a formula
after one of these would begin a cell.
"""
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def csv_line(cells: Iterable[Cell], *, end: str = "\n") -> str:
    """Return a line of CSV (RFC 4180) that ends with `end`; None is an empty cell.

    A string that a spreadsheet might read as a formula gets a leading apostrophe, as OWASP advises. Numbers
    are left as they are.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=_QUOTED)
    writer.writerow([_safe("" if cell is None else str(cell)) for cell in cells])
    return text.getvalue().removesuffix(_QUOTED) + end


def csv_table(text: str) -> CsvTable:
    """Return the table in a CSV text, whose lines may have the line endings of any system, even an old Mac's.

    Raises `ValueError`, with a sentence, for anything that is not CSV, such as an endless cell.
    """
    try:
        found = csv.DictReader(io.StringIO(text, newline=""))
        columns = [name.strip() for name in found.fieldnames or ()]
        found.fieldnames = columns
        return CsvTable(columns, list(found))
    except csv.Error as error:
        raise ValueError(f"it is not CSV ({error})") from error


def text_of_cell(cell: str) -> str:
    """Return the text of a cell made by `csv_line`."""
    return cell[1:] if _PREFIXED.match(cell) else cell


def _safe(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
