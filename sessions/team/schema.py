"""The tables of a team's store for composed statements; `migrations` creates them and all other tables."""

from __future__ import annotations

from sqlalchemy import LargeBinary, column, table

PIECE = 8 * 1024 * 1024
"""The maximum number of bytes in a piece of a blob."""

machines = table("machines", column("id"), column("version"), column("skew_ms"), column("seen_at"))

blobs = table("blobs", column("sha256"), column("piece"), column("secret"), column("data", LargeBinary))

public_blobs = table("public_blobs", column("sha256"), column("piece"), column("data", LargeBinary))
"""A view of the blobs that are not secret."""

tasks = table(
    "tasks",
    column("id"),
    column("mode"),
    column("source"),
    column("public_sha256"),  # the hash of `task.toml`, which contains the hash of the tree
    column("public_blob"),
    column("answer_sha256"),  # the hash of the answer without its baselines; empty if there is no answer
    column("answer_blob"),
    column("machine"),  # the machine that sent the task
)

studies = table("studies", column("id"), column("files_sha256"), column("archive_sha256"))
"""The studies: `files_sha256` covers the files of the declaration, `archive_sha256` is the blob with them."""

baselines = table("baselines", column("task"), column("name"), column("data", LargeBinary))
