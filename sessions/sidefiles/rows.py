"""Rows of what was said, as CSV or as JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from gistpoint.sessions.runs.model import Json

Row = dict[str, Json]


def utc_text(utc_ms: int) -> str:
    """Return a time as ISO 8601 with milliseconds."""
    return datetime.fromtimestamp(utc_ms / 1000, UTC).isoformat(timespec="milliseconds")


def csv_lines(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a CSV with a heading (RFC 4180; lists are separated by blanks), line ends included."""
    yield _csv(columns)
    for row in rows:
        yield _csv([_cell(row[column]) for column in columns])


def jsonl_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a JSON object a line, what is not known left out, line ends included."""
    for row in rows:
        yield json.dumps({key: value for key, value in row.items() if value is not None}, ensure_ascii=True) + "\n"


def _cell(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _csv(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()
