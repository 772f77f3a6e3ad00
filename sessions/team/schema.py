"""The tables of a team's store that statements are composed of; `migrations` makes them, and those that SQL
names.
"""

from __future__ import annotations

from sqlalchemy import LargeBinary, column, table

PIECE = 8 * 1024 * 1024
"""Most bytes of a piece of a blob."""

machines = table("machines", column("id"), column("version"), column("skew_ms"), column("seen_at"))

blobs = table("blobs", column("sha256"), column("piece"), column("secret"), column("data", LargeBinary))

public_blobs = table("public_blobs", column("sha256"), column("piece"), column("data", LargeBinary))
"""A view of those that are not secret."""

tasks = table(
    "tasks",
    column("id"),
    column("mode"),
    column("source"),
    column("public_sha256"),  # of task.toml, which names the hash of the tree
    column("public_blob"),
    column("answer_sha256"),  # of what the answer says, without the baselines; empty without one
    column("answer_blob"),
    column("machine"),  # the one that sent it
)

studies = table("studies", column("id"), column("files_sha256"), column("archive_sha256"))
"""By id, the hash of the names and hashes of the files in the archive that declares a study, and of the blob.
"""

baselines = table("baselines", column("task"), column("name"), column("data", LargeBinary))
