"""The formats that a run can be written in, by the name that a person gives; packages add theirs by entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from gistpoint.core.errors import UserError
from gistpoint.sessions.runs.document import RunDocument

ENTRY_POINTS = "gistpoint.exporters"

Exporter = Callable[[RunDocument], Iterator[str]]

NAMES = ("atif", "chat", "markdown", "html", "cast")


def exporter(name: str) -> Exporter:
    """Return what writes a run in the format `name`. Raises `UserError` for a name that nobody knows."""
    if name == "atif":
        from gistpoint.sessions.exports.atif import atif_text

        return atif_text
    if name == "chat":
        from gistpoint.sessions.exports.chat import chat_text

        return chat_text
    if name in ("markdown", "html"):
        from gistpoint.sessions.exports.markdown import html_text, markdown_text

        return markdown_text if name == "markdown" else html_text
    if name == "cast":
        from gistpoint.sessions.exports.cast import cast_text

        return cast_text
    return _installed(name)


def _installed(name: str) -> Exporter:
    from importlib.metadata import entry_points

    found = entry_points(group=ENTRY_POINTS)
    if name in found.names:
        return cast("Exporter", found[name].load())
    known = ", ".join([*NAMES, *sorted(found.names)])
    raise UserError(f"There is no export format {name!r}.", hint=f"Known: {known}.")
