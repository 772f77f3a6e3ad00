"""The first schema: tasks, attempts, annotations and studies, and views of what readers may see.

Revision ID: 0001
"""

from __future__ import annotations

from alembic import op

from gistpoint.sessions.team.migrations import statements_of

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables and views."""
    for statement in statements_of(__file__):
        op.execute(statement)
