"""The export formats of runs by name; packages can add formats by entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from gistpoint.core.errors import UserError, did_you_mean
from gistpoint.core.plugins import declared, is_callable, load, named, pieces_of

if TYPE_CHECKING:
    from gistpoint.sessions.runs.document import RunDocument

ENTRY_POINTS = "gistpoint.exporters"
"""The entry-point group: each entry names one `Exporter`."""

Exporter: TypeAlias = "Callable[[RunDocument], Iterator[str]]"
"""A function that yields the text of a run in one format, in pieces."""

_BUILT_IN: Mapping[str, str] = {
    "atif": "gistpoint.sessions.exports.atif:atif_text",
    "chat": "gistpoint.sessions.exports.chat:chat_text",
    "markdown": "gistpoint.sessions.exports.markdown:markdown_text",
    "html": "gistpoint.sessions.exports.html.page:html_text",
    "cast": "gistpoint.sessions.exports.cast:cast_text",
}
"""The module and the function of each exporter, which is imported only if it is used."""
NAMES = tuple(_BUILT_IN)


def exporter(name: str, also: Iterable[str] = ()) -> Exporter:
    """Return the exporter of the format `name`.

    Raises `UserError` if it can't be loaded, or if it is unknown; the error names all formats, including
    those in `also`, which the caller writes itself.
    """
    if name in _BUILT_IN:
        module, _, function = _BUILT_IN[name].partition(":")
        found: Exporter = getattr(import_module(module), function)
        return found
    entry = named(ENTRY_POINTS, name)
    if entry is not None:
        return partial(pieces_of, entry, load(entry, is_callable), _fault_of_text)
    installed = [entry.name for entry in declared(ENTRY_POINTS)]
    known = [*also, *NAMES, *installed]
    raise UserError(
        f"There is no export format {name!r}.{did_you_mean(name, known)}", hint=f"Known: {', '.join(known)}."
    )


def _fault_of_text(piece: Any) -> str:
    """Return why a piece of another package can't be written, in a few words; empty if it can."""
    if not isinstance(piece, str):
        return f"it yields a {type(piece).__name__}, not a str"
    try:
        piece.encode()
    except UnicodeEncodeError:
        return "it yields half of a surrogate pair, which is not text"
    return ""
