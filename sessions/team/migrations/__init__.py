"""The revisions of the schema: each is a module in `versions` with its statements in an SQL file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import TextClause


def statements_of(module: str) -> list[TextClause]:
    """Return the statements of a revision, given its module's path; each ends at the end of a line."""
    sql = Path(module).with_suffix(".sql").read_text(encoding="utf-8")
    return [text(statement.replace(":", "\\:")) for statement in sql.split(";\n") if statement.strip()]
