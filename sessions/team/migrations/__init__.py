"""The revisions of the schema of a team's store, in order, as Alembic reads them."""
