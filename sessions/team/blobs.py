"""Blobs of a team's store: large contents by their sha256, in pieces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from gistpoint.core.trees import sha256_of
from gistpoint.sessions.team.address import TeamStoreError
from gistpoint.sessions.team.schema import PIECE, blobs, public_blobs

if TYPE_CHECKING:
    from sqlalchemy import Connection


def put_blobs(connection: Connection, files: Iterable[Path], *, secret: bool) -> list[str]:
    """Keep the contents of files that are not kept already, and return their sha256; readers see no `secret` one."""
    names: list[str] = []
    rows: list[dict[str, object]] = []
    size = 0
    for file in files:
        names.append(sha256_of(file))
        for number, data in enumerate(_pieces(file)):
            if rows and size + len(data) > PIECE:
                connection.execute(insert(blobs).values(rows).on_conflict_do_nothing())
                rows, size = [], 0
            rows.append({"sha256": names[-1], "piece": number, "secret": secret, "data": data})
            size += len(data)
    if rows:
        connection.execute(insert(blobs).values(rows).on_conflict_do_nothing())
    return names


def blob_sizes(connection: Connection, names: Collection[str], *, public: bool = False) -> dict[str, int]:
    """Return the bytes of the blobs that are kept; a reader can ask for `public` ones alone."""
    kept = public_blobs if public else blobs
    asked = select(kept.c.sha256, func.sum(func.octet_length(kept.c.data))).group_by(kept.c.sha256)
    return {name: int(size) for name, size in connection.execute(asked.where(kept.c.sha256.in_(names)))}


def get_blobs(
    connection: Connection, wanted: Mapping[str, Path], *, public: bool = False, streamed: bool = False
) -> None:
    """Write blobs into files, which are not there where none is kept; a reader can get `public` ones alone.

    What does not fit into memory is `streamed`, with more round trips. `require_whole` compares the files.
    """
    kept = public_blobs if public else blobs
    asked = select(kept.c.sha256, kept.c.data).where(kept.c.sha256.in_(wanted)).order_by(kept.c.sha256, kept.c.piece)
    for name, data in connection.execute(asked.execution_options(yield_per=2) if streamed else asked):
        with wanted[name].open("ab") as out:
            out.write(data)


def require_whole(file: Path, sha256: str) -> None:
    """Raise `TeamStoreError` if a blob was not kept, or is damaged."""
    if not file.exists() or sha256_of(file) != sha256:
        raise TeamStoreError(
            f"What the store keeps as {sha256[:12]} is missing or damaged.",
            hint="`gistpoint store check` names all that is; who has the files can share them again.",
        )


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while data := content.read(PIECE):
            yield data
