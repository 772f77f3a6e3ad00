"""Agreement between reviewers: rows of units, and Cohen's kappa."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
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


def cohen_kappa(pairs: Iterable[tuple[Hashable, Hashable]]) -> float | None:
    """Return Cohen's kappa of two raters' categories for the same units, -1 to 1.

    (p_o - p_e) / (1 - p_e), with p_o the share of units that they agree on and p_e the sum over the categories of the
    product of both raters' shares. None without units, and where chance agreement is certain (p_e = 1).
    Source: J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20(1),
    1960, equation 1.
    """
    units = list(pairs)
    if not units:
        return None
    total = len(units)
    left, right = Counter(one for one, _ in units), Counter(other for _, other in units)
    agreed = sum(one == other for one, other in units) * total
    chance = sum(count * right[category] for category, count in left.items())
    # Both in units of 1 / total squared, so that certainty is told exactly.
    return None if chance == total * total else (agreed - chance) / (total * total - chance)
