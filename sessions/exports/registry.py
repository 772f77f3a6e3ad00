"""The export formats of runs by name, and the writer of Markdown; packages can add formats by entry point."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.plugins import declared, is_callable, load, pieces_of
from gistpoint.core.text import markdown_line, visible
from gistpoint.sessions.exports.atif import atif_text
from gistpoint.sessions.exports.cast import cast_text
from gistpoint.sessions.exports.chat import chat_text
from gistpoint.sessions.exports.html.page import html_text
from gistpoint.sessions.records.model import Step, TextScope, parts_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.rendering import EMPTY, UNANSWERED, header_lines, summary, title_of, unanswered


def markdown_text(document: RunDocument) -> Iterator[str]:
    """Yield a run as Markdown, one step at a time; each fence is longer than any backticks within it."""
    document.build()
    run = document.header
    yield f"# {markdown_line(run.task or run.id or run.format)}\n\n"
    yield _fenced("\n".join(header_lines(run)))
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


ENTRY_POINTS = "gistpoint.exporters"
"""The entry-point group: each entry names one `Exporter`."""

Exporter = Callable[[RunDocument], Iterator[str]]
"""A function that yields the text of a run in one format, in pieces."""

_BUILT_IN: Mapping[str, Exporter] = {
    "atif": atif_text,
    "chat": chat_text,
    "markdown": markdown_text,
    "html": html_text,
    "cast": cast_text,
}
NAMES = tuple(_BUILT_IN)


def exporter(name: str) -> Exporter:
    """Return the exporter of the format `name`. Raises `UserError` if it is unknown or can't be loaded."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    installed = {entry.name: entry for entry in declared(ENTRY_POINTS)}
    if name in installed:
        return partial(pieces_of, installed[name], load(installed[name], is_callable), _fault_of_text)
    known = ", ".join([*NAMES, *installed])
    raise UserError(f"There is no export format {name!r}.", hint=f"Known: {known}.")


def _fault_of_text(piece: Any) -> str:
    """Return why a piece of another package can't be written, in a few words; empty if it can."""
    if not isinstance(piece, str):
        return f"it gives a {type(piece).__name__}, not a str"
    try:
        piece.encode()
    except UnicodeEncodeError:
        return "it gives half of a surrogate pair, which is not text"
    return ""
