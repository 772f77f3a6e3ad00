"""Writes a run as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gistpoint.core.text import markdown_line, visible
from gistpoint.sessions.records.model import Step, TextScope, parts_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.rendering import (
    EMPTY,
    UNANSWERED,
    header_lines,
    summary,
    summed_header,
    title_of,
    unanswered,
)


def markdown_text(document: RunDocument) -> Iterator[str]:
    """Yield a run as Markdown, one step at a time; each fence is longer than any backticks within it."""
    document.build()
    run = document.header
    yield f"# {markdown_line(run.task or run.id or run.format)}\n\n"
    yield _fenced("\n".join(header_lines(summed_header(document))))
    if run.prompt:
        yield "## Task\n\n" + _fenced(run.prompt)
    for index in range(document.step_count):
        step = document.step(index)
        yield f"## {index + 1}. {step.kind.value}: {markdown_line(summary(step, 80))}\n\n"
        for title, text in _parts(document, step):
            yield f"**{markdown_line(title)}**\n\n" + _fenced(text)


def _parts(document: RunDocument, step: Step) -> Iterator[tuple[str, str]]:
    """Yield the title and text of each part of a step, except empty ones."""
    without_result = unanswered(step)
    for scope, number, text in parts_of(step):
        shown = "".join(document.full_text(text)) or EMPTY.get(scope, "")
        if shown:
            yield title_of(step, scope, number), shown
        if scope is TextScope.CALL and number in without_result:
            yield f"result {step.calls[number].id}".rstrip(), UNANSWERED


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall(r"`+", text)), default=0))
    return f"{fence}text\n{visible(text)}\n{fence}\n\n"
