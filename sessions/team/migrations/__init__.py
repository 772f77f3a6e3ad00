"""One module for each revision of the schema, in `versions`, with its statements in a file of SQL next to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import TextClause


def statements_of(module: str) -> list[TextClause]:
    """Return the statements of a revision, by the file of its module; each ends a line."""
    whole = Path(module).with_suffix(".sql").read_text(encoding="utf-8")
    return [text(statement.replace(":", "\\:")) for statement in whole.split(";\n") if statement.strip()]
