"""How the tools show the definitions of a file."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from gistpoint.core.code.definitions import Definition
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import FileIndex, index_source
from gistpoint.core.tools.declaration import RefusalError, ToolContext

_DOCSTRING_CHARACTERS = 100


def indexed(context: ToolContext, path: str) -> FileIndex:
    """Return the definitions of a Python file; raises `RefusalError` for one that can't be parsed."""
    if not path.endswith((".py", ".pyi")):
        raise RefusalError(f"{path} is not a Python file; read_file shows it.")
    try:
        return _indexed(path, context.tree.read(path))
    except CodeError as error:
        raise RefusalError(str(error)) from error


@lru_cache(maxsize=64)
def _indexed(path: str, source: bytes) -> FileIndex:
    return index_source(path, source)


def listing(definitions: Iterable[Definition]) -> list[str]:
    """Return one line per definition: its lines, its name, what it is, and the start of its docstring."""
    lines = []
    for definition in definitions:
        summary = " ".join((definition.docstring or "").split())
        if len(summary) > _DOCSTRING_CHARACTERS:
            summary = summary[: _DOCSTRING_CHARACTERS - 3] + "..."
        span = f"{definition.start_line}-{definition.end_line}"
        text = f"  {span:>11}  {definition.ref.qualname} ({definition.kind})"
        lines.append(f"{text}: {summary}" if summary else text)
    return lines


def revealed_functions(definitions: Iterable[Definition]) -> tuple[tuple[str, int, int], ...]:
    """Return names and spans as `Revealed.functions` takes them."""
    return tuple((str(d.ref), d.start_line, d.end_line) for d in definitions)
