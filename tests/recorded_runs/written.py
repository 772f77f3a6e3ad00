"""Writes runs to files and opens them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gistpoint.sessions.records.model import Step
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import open_run


def read_whole(path: Path, id: str = "") -> RunDocument:
    """Open a run and build its index."""
    document = open_run(f"{path}#{id}" if id else path)
    document.build()
    return document


def written(path: Path, value: Any) -> RunDocument:
    """Write a string or a JSON value, and open it."""
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return read_whole(path)


def written_lines(path: Path, records: Iterable[Any]) -> RunDocument:
    """Write JSON lines and open them."""
    return written(path, "".join(json.dumps(record) + "\n" for record in records))


def answers(step: Step) -> list[tuple[str, str, bool | None] | None]:
    """Return, for each call, its tool, its result's text and whether that is an error.

    The item is None for a call without a result.
    """
    pairs = [(call.tool, step.result_of(call)) for call in step.calls]
    return [None if result is None else (tool, result.text, result.is_error) for tool, result in pairs]
