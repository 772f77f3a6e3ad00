"""The times of a run as rows of styled raw text for the screen, and as tables for printing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from gistpoint.core.readable import duration
from gistpoint.sessions.runs.times import RunTimes, StepTime
from gistpoint.sessions.runs.work import Work
from gistpoint.tui import signs

Pieces = list[tuple[str, str]]

MODEL_STYLE, TOOLS_STYLE, MUTED = "$text-primary", "$text-warning", "$foreground 60%"
LEGEND: Pieces = [
    (signs.BLOCK, MODEL_STYLE),
    (" model  ", ""),
    (signs.SHADE, TOOLS_STYLE),
    (" tools", ""),
]
TOOL_HEADINGS = ("tool", "calls", "total", "median", "longest", "step")
PHASE_HEADINGS = ("work", "steps", "model", "tools")
_MINUTES_S = 100.0
"""The number of seconds from which a time is written as minutes and seconds."""


def seconds(value: float | None) -> str:
    """Return seconds in a few characters: `0.35s`, `12.3s`, or `2:05` from 100 seconds on; empty for None."""
    if value is None:
        return ""
    if round(value, 1) >= _MINUTES_S:
        return duration(1000 * max(value, _MINUTES_S))
    if not value:
        return "0s"
    return f"{value:.2f}s" if round(value, 2) < 10 else f"{value:.1f}s"


def total_words(times: RunTimes, *, is_person: bool = False, width: int = sys.maxsize) -> str:
    """Return the time of a run and all its parts with their shares; empty if no time is recorded at all.

    The shares are left out if they don't fit into `width` cells.
    """
    parts = times.parts
    if not times.is_known:
        return ""
    named = (
        ("person" if is_person else "model", parts.model),
        ("tools", parts.tools),
        ("user", parts.user),
        ("unknown", parts.unknown),
    )
    total = f"{'total' if parts.is_whole else 'known'} {seconds(parts.total)}: "
    with_shares = total + ", ".join(f"{name} {_figure(value, parts.total)}" for name, value in named)
    if len(with_shares) <= width:
        return with_shares
    return total + ", ".join(f"{name} {'?' if value is None else seconds(value)}" for name, value in named)


def _figure(value: float | None, total: float) -> str:
    """Return the seconds of a part and its share of the total; `?` if it is not recorded."""
    if value is None:
        return "?"
    share = 100 * value / total if total else 0.0
    return f"{seconds(value)} ({'<1' if 0 < share < 0.5 else f'{share:.0f}'}%)"


def missing_words(times: RunTimes) -> str:
    """Return what could not be measured, as a sentence; empty if everything was."""
    return f"Not recorded: {'; '.join(times.missing)}." if times.missing else ""


def phase_name(work: Work | None) -> str:
    """Return the name of a kind of work; `no call` for None."""
    return "no call" if work is None else work.value


def tool_cells(times: RunTimes) -> Iterator[tuple[int | None, Sequence[str]]]:
    """Yield each tool's cells below `TOOL_HEADINGS`, with the step of its longest call, counted from 0.

    The step is None if no call to the tool was timed.
    """
    for name, found in times.tools.items():
        step = found.longest_step
        if step is None:
            yield None, (name, f"{found.count:,}", "?", "", "", "")
            continue
        calls = f"{found.count:,}" if found.timed == found.count else f"{found.timed:,} of {found.count:,}"
        figures = map(seconds, (found.total, found.median, found.longest))
        yield step, (name, calls, *figures, f"{step + 1:,}")


def phase_cells(times: RunTimes) -> Iterator[Sequence[str]]:
    """Yield the cells of each kind of work below `PHASE_HEADINGS`."""
    replies, calls = bool(times.replies.timed), bool(times.timed_calls)
    for work, found in times.phases.items():
        model = seconds(found.model) if replies else "?"
        tools = "" if work is None else seconds(found.tools) if calls else "?"
        yield phase_name(work), f"{found.steps:,}", model, tools


def bar(time: StepTime, top: float, cells: int) -> Pieces:
    """Return the bar of a step, on a scale on which `top` seconds fill `cells` cells.

    A part with a time above 0 has at least one cell, if there is room.
    """
    if top <= 0 or cells <= 0:
        return []
    model = _cells(time.model, top, cells)
    tools = min(_cells(time.tools, top, cells), cells - model)
    return [(signs.BLOCK * model, MODEL_STYLE), (signs.SHADE * tools, TOOLS_STYLE)]


def _cells(value: float | None, top: float, cells: int) -> int:
    return min(cells, max(1, round((value or 0.0) / top * cells))) if value else 0
