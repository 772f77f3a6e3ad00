"""The tables of a team's store. What was hashed is kept as bytes; the columns beside it are indexes."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    column,
    func,
    table,
    text,
)

PIECE = 8 * 1024 * 1024
"""Most bytes of a piece of a blob."""

metadata = MetaData()


def _now() -> Column[object]:
    return Column("seen_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp())


machines = Table(
    "machines",
    metadata,
    Column("id", Text, primary_key=True),
    Column("version", Text, nullable=False),
    Column("skew_ms", BigInteger, nullable=False),  # its clock less the server's, when it was last seen
    _now(),
)

blobs = Table(
    "blobs",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("piece", Integer, primary_key=True),
    Column("secret", Boolean, nullable=False),  # of an answer: never read by gistpoint_reader
    Column("data", LargeBinary, nullable=False),
)

public_blobs = table("public_blobs", column("sha256"), column("piece"), column("data"))
"""A view of those that are not secret."""

tasks = Table(
    "tasks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("mode", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("public_sha256", Text, nullable=False),  # of task.toml, which names the hash of the tree
    Column("public_blob", Text, nullable=False),
    Column("answer_sha256", Text, nullable=False),  # of what the answer says, without the baselines; empty without one
    Column("answer_blob", Text, nullable=False),
    Column("machine", Text, nullable=False),  # the one that sent it
    _now(),
)

baselines = Table(
    "baselines",
    metadata,
    Column("task", Text, ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),  # of its file
    Column("data", LargeBinary, nullable=False),
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", Text, primary_key=True),  # ATTEMPT, or ATTEMPT~MACHINE for the branch of a machine
    Column("branch_of", Text),  # no foreign key: a machine may have a branch alone
    Column("task", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("participant", Text, nullable=False),
    Column("started_utc_ms", BigInteger, nullable=False),
    Column("ended", Boolean, nullable=False),
    Column("seq", Integer, nullable=False),  # lines that are here
    Column("head", Text, nullable=False),  # the hash of the last one
    Column("holder", Text, nullable=False),  # the machine that may add lines
    Column("lease_until", DateTime(timezone=True), nullable=False),  # by the server's clock
    Column("fence", Integer, nullable=False),  # counts the holders
    Index("attempts_by_task", "task"),
    Index("attempts_by_start", "started_utc_ms"),
)

events = Table(
    "events",
    metadata,
    Column("attempt", Text, ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("line", LargeBinary, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("machine", Text, nullable=False),  # the one that sent it
)

operations = Table(
    "operations",
    metadata,
    Column("folder", Text, primary_key=True),  # reviews, validations, glances, external-results
    Column("op", Text, primary_key=True),
    Column("reviewer", Text, nullable=False),
    Column("utc_ms", BigInteger, nullable=False),
    Column("subject", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("line", LargeBinary, nullable=False),
    Column("number", BigInteger, Identity(), nullable=False),  # counts the arrivals
    Index("operations_by_subject", "folder", "subject"),
    Index("operations_by_number", "number"),
)

reading = Table(
    "reading",
    metadata,
    Column("folder", Text, primary_key=True),
    Column("reviewer", Text, primary_key=True),
    Column("machine", Text, primary_key=True),
    Column("subject", Text, nullable=False),
    _now(),
)

studies = Table(
    "studies",
    metadata,
    Column("id", Text, primary_key=True),
    Column("files_sha256", Text, nullable=False),  # of the names and hashes of the files in its archive
    Column("archive_sha256", Text, nullable=False),  # the blob
    _now(),
)

study_lines = Table(
    "study_op",
    metadata,
    Column("study", Text, ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    Column("folder", Text, primary_key=True),  # log, reviews
    Column("writer", Text, primary_key=True),
    Column("number", Integer, primary_key=True),  # of the line in its writer's file of the log, from 1
    Column("op", Text),  # None for a header, and for a line that is no operation
    Column("utc_ms", BigInteger),
    Column("subject", Text),
    Column("kind", Text),
    Column("assignment", Text),
    Column("line", LargeBinary, nullable=False),
    Index("study_op_once", "study", "folder", "op", unique=True),
    Index(
        "study_begun_once",
        "study",
        "assignment",
        unique=True,
        postgresql_where=text("kind = 'begun' and assignment is not null"),
    ),
    Index("study_op_erased", "study", postgresql_where=text("subject = 'erased'")),
)

study_attempts = Table(
    "study_attempt",
    metadata,
    Column("study", Text, ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    Column("place", Text, primary_key=True),  # the name of its folder among the published ones
    Column("id", Text, nullable=False),
    Column("head", Text, nullable=False),
    Column("journal", LargeBinary, nullable=False),
    Column("note", LargeBinary, nullable=False),
)
