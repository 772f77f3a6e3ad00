"""The export formats, by the name that the user gives; packages can add theirs by entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from gistpoint.core.errors import UserError
from gistpoint.core.plugins import declared, is_callable, load
from gistpoint.sessions.exports.atif import atif_text
from gistpoint.sessions.exports.cast import cast_text
from gistpoint.sessions.exports.chat import chat_text
from gistpoint.sessions.exports.html.page import html_text
from gistpoint.sessions.exports.markdown import markdown_text
from gistpoint.sessions.runs.document import RunDocument

ENTRY_POINTS = "gistpoint.exporters"
"""The entry-point group: each entry names one `Exporter`."""

Exporter = Callable[[RunDocument], Iterator[str]]
"""Yields the text of a run in one format, a piece at a time."""

_BUILT_IN: Mapping[str, Exporter] = {
    "atif": atif_text,
    "chat": chat_text,
    "markdown": markdown_text,
    "html": html_text,
    "cast": cast_text,
}
NAMES = tuple(_BUILT_IN)


def exporter(name: str) -> Exporter:
    """Return the writer of the format `name`. Raises `UserError` if it is unknown or can't be loaded."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    installed = {entry.name: entry for entry in declared(ENTRY_POINTS)}
    if name in installed:
        return cast("Exporter", load(installed[name], is_callable))
    known = ", ".join([*NAMES, *installed])
    raise UserError(f"There is no export format {name!r}.", hint=f"Known: {known}.")
