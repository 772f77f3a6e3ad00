"""The output of `gistpoint show --times`: how long model and tools took, as text, JSON or CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from gistpoint.core.csv_text import csv_line
from gistpoint.core.running import NEVER
from gistpoint.sessions.records.model import Actor
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.times import RunTimes, TimeSum, times_of
from gistpoint.tui.commands.output import for_output, print_json, print_table, print_text
from gistpoint.tui.time_drawing import (
    PHASE_HEADINGS,
    TOOL_HEADINGS,
    missing_words,
    phase_cells,
    phase_name,
    seconds,
    tool_cells,
    total_words,
)

_LONGEST = 10
"""The maximum number of steps that the text lists."""
_COLUMNS = ("step", "tools", "model_s", "tools_s", "user_s", "unknown_s")


def print_times(document: RunDocument, *, as_json: bool, as_csv: bool) -> None:
    """Print the times of a run.

    The text has the sums and the longest steps, JSON the sums and all timed steps, CSV only these steps.
    """
    times = times_of(document, cancel=NEVER)
    if as_json:
        steps = [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(times)]
        print_json("gistpoint.times/1", {"run": document.name, **times_record(times), "by_step": steps})
    elif as_csv:
        sys.stdout.writelines(for_output(map(csv_line, (_COLUMNS, *_rows(times)))))
    else:
        _print_text(document, times)


def _print_text(document: RunDocument, times: RunTimes) -> None:
    print_text(
        total_words(times, is_person=document.header.actor is Actor.PERSON) or "No times are recorded."
    )
    if not times.is_known:
        return
    if missing := missing_words(times):
        print_text(missing)
    if times.tools:
        print()
        print_table(TOOL_HEADINGS, [cells for _, cells in tool_cells(times)])
    print()
    print_table(PHASE_HEADINGS, phase_cells(times))
    rows = [(step, times.steps[step]) for step in times.steps.longest(_LONGEST)]
    print()
    print_table(
        ("longest steps", "tools", "model", "in tools"),
        [(f"{step + 1:,}", row.tool, seconds(row.model), seconds(row.tools)) for step, row in rows],
    )


def _rows(times: RunTimes) -> Iterator[tuple[Any, ...]]:
    """Yield each step's times if any is known, with its number, counted from 1; None for an unknown time."""
    for step in times.steps.timed:
        found = times.steps[step]
        yield (step + 1, found.tool, *map(_rounded, (found.model, found.tools, found.user, found.unknown)))


def times_record(times: RunTimes) -> dict[str, Any]:
    """Return the sums as JSON data: seconds, and steps counted from 1; None for what is not recorded."""
    return {
        **parts_record(times),
        "model": _sum_record(times.replies),
        "by_tool": {name: _sum_record(found) for name, found in times.tools.items()},
        "by_work": {phase_name(work): _phase(times, work) for work in times.phases},
        "not_known": list(times.missing),
    }


def parts_record(times: RunTimes) -> dict[str, float | None]:
    """Return the time of a run and its parts as JSON data, in seconds; None for what is not known."""
    parts, is_known = times.parts, times.is_known
    return {
        "total_s": _rounded(parts.total) if is_known and parts.is_whole else None,
        "model_s": _rounded(parts.model),
        "tools_s": _rounded(parts.tools),
        "user_s": _rounded(parts.user) if is_known else None,
        "unknown_s": _rounded(parts.unknown) if is_known and parts.is_whole else None,
    }


def _sum_record(found: TimeSum) -> Mapping[str, Any]:
    is_known = found.timed > 0
    return {
        "count": found.count,
        "timed": found.timed,
        "total_s": _rounded(found.total) if is_known else None,
        "median_s": _rounded(found.median),
        "longest_s": _rounded(found.longest) if is_known else None,
        "longest_step": None if found.longest_step is None else found.longest_step + 1,
    }


def _phase(times: RunTimes, work: Any) -> Mapping[str, Any]:
    found = times.phases[work]
    return {
        "steps": found.steps,
        "model_s": _rounded(found.model) if times.replies.timed else None,
        "tools_s": _rounded(found.tools) if times.timed_calls else None,
    }


def _rounded(value: float | None) -> float | None:
    """Return seconds to the millisecond, which is as precise as files are; None stays None."""
    return None if value is None else round(value, 3)
