"""One table for the lines of attempts, annotations and studies, in place of several tables.

Revision ID: 0002
"""

from __future__ import annotations

import json

from alembic import op
from sqlalchemy import Connection, text

from gistpoint.core.logs import line_hash
from gistpoint.sessions.team.migrations import statements_of

revision = "0002"
down_revision = "0001"

_JOURNAL = text(
    "INSERT INTO lines (file, writer, number, line, sha256, machine, subject) SELECT :file, :writer, l.*,"
    " :machine, :subject FROM unnest(CAST(:numbers AS integer[]), CAST(:lines AS bytea[]), CAST(:hashes AS"
    " text[])) l"
)


def upgrade() -> None:
    """Create the table, move the lines into it, and drop the tables that it replaces."""
    for statement in statements_of(__file__):
        op.execute(statement)
    connection = op.get_bind()
    for row in connection.execute(text("SELECT study, place FROM study_attempt")).all():
        _move_journal(connection, row.study, row.place)
    op.execute("DROP TABLE study_attempt")


def _move_journal(connection: Connection, study: str, place: str) -> None:
    """Move a published journal into the table of lines; an incomplete last line is dropped."""
    asked = text("SELECT journal, note FROM study_attempt WHERE study = :study AND place = :place")
    row = connection.execute(asked, {"study": study, "place": place}).one()
    try:
        writer = str(json.loads(bytes(row.note))["writer"])
    except (ValueError, KeyError, TypeError, RecursionError):
        writer = ""
    lines = bytes(row.journal).split(b"\n")[:-1]
    given = {
        "file": f"studies/{study}/attempts",
        "writer": place,
        "machine": writer.rpartition("@")[2],
        "subject": writer,
        "numbers": list(range(1, len(lines) + 1)),
        "lines": lines,
        "hashes": [line_hash(line) for line in lines],
    }
    connection.execute(_JOURNAL, given)
