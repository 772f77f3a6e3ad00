"""The first schema: tasks, attempts, annotations and studies, and the two roles.

Revision ID: 0001
"""

from __future__ import annotations

from alembic import op

from gistpoint.sessions.team.schema import metadata

revision = "0001"
down_revision = None

_WORKER, _READER = "gistpoint_worker", "gistpoint_reader"


def upgrade() -> None:
    """Make the tables, and the view of blobs that a reader may see."""
    metadata.create_all(op.get_bind())
    op.execute("CREATE VIEW public_blobs AS SELECT sha256, piece, data FROM blobs WHERE NOT secret")
    for role in (_WORKER, _READER):
        op.execute(
            f"DO $$ BEGIN CREATE ROLE {role} NOLOGIN; "
            "EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL; END $$"
        )
    op.execute(
        f"DO $$ BEGIN GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {_WORKER}; "
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {_READER}; REVOKE ALL ON blobs FROM {_READER}; "
        "EXCEPTION WHEN undefined_object THEN NULL; END $$"
    )
