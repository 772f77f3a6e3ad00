"""The first schema: tasks, attempts, annotations and studies, and the views of what a reader may see.

Revision ID: 0001
"""

from __future__ import annotations

from alembic import op

from gistpoint.sessions.team.schema import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables, and the views."""
    metadata.create_all(op.get_bind())
    op.execute("CREATE VIEW public_blobs AS SELECT sha256, piece, data FROM blobs WHERE NOT secret")
    op.execute("CREATE VIEW public_operations AS SELECT folder, op, reviewer, utc_ms, subject, kind FROM operations")
