"""Writes a run as an asciinema recording, version 2: the commands and their output, at the recorded pace."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gistpoint.core.text import visible, visible_line
from gistpoint.sessions.records.model import Step
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.rendering import summary, tilde_of

_LONGEST_PAUSE_S = 3.0
_GUESSED_S = 1.0
"""The pause in seconds before a step if the time since the step before it is not recorded."""
_SHOWN = 20_000


def cast_text(document: RunDocument, *, width: int = 120, height: int = 40) -> Iterator[str]:
    """Yield the lines of a recording; pauses are limited to 3 s, each string to 20,000 characters."""
    document.build()
    run = document.header
    outcome = f"{tilde_of(run, 'verdict')}{run.verdict}" if run.verdict else ""
    title = visible_line(" - ".join(part for part in (run.task or run.id or run.format, outcome) if part))
    head: dict[str, object] = {"version": 2, "width": width, "height": height, "title": title}
    if run.started is not None:
        head["timestamp"] = int(run.started)
    yield json.dumps(head) + "\n"
    clock, before = 0.0, None
    for index in range(document.step_count):
        step = document.step(index)
        pause = _GUESSED_S
        if step.started is not None and before is not None:
            pause = max(step.started - before, 0.0)
        clock += min(pause, _LONGEST_PAUSE_S)
        before = step.ended if step.ended is not None else step.started
        yield json.dumps([round(clock, 3), "o", _screen(step)]) + "\n"


def _screen(step: Step) -> str:
    lines = [f"── {step.index + 1} {step.kind.value} {visible(summary(step, 100))}"]
    if step.text and step.calls:
        lines.append(visible(step.text[:_SHOWN]))
    lines += [visible(result.text[:_SHOWN]) for result in step.results]
    text = "\n".join(lines)
    return text.replace("\n", "\r\n") + "\r\n"
