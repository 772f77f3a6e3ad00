"""Blobs of a team's store: large contents by their sha256, in pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.sessions.team.address import TeamStoreError

if TYPE_CHECKING:
    from sqlalchemy import Connection


def put_blob(connection: Connection, file: Path, *, secret: bool) -> str:
    """Keep a file's content unless it is kept already, and return its sha256; readers never see a `secret` one."""
    from sqlalchemy.dialects.postgresql import insert

    from gistpoint.sessions.team.schema import blobs

    name = _sha256(_pieces(file))
    for number, data in enumerate(_pieces(file)):
        row = {"sha256": name, "piece": number, "secret": secret, "data": data}
        connection.execute(insert(blobs).values(row).on_conflict_do_nothing())
    return name


def get_blob(connection: Connection, sha256: str, into: Path, *, public: bool = False) -> None:
    """Write a blob into a file; a reader can get a `public` one alone.

    Raises `TeamStoreError` if it is not kept, or damaged.
    """
    from sqlalchemy import select

    from gistpoint.sessions.team.schema import blobs, public_blobs

    kept = public_blobs if public else blobs
    rows = select(kept.c.data).where(kept.c.sha256 == sha256).order_by(kept.c.piece)
    found = hashlib.sha256()
    with into.open("wb") as out, connection.execution_options(stream_results=True).execute(rows) as pieces:
        for (data,) in pieces:
            found.update(data)
            out.write(data)
    if found.hexdigest() != sha256:
        raise TeamStoreError(
            f"What the store keeps as {sha256[:12]} is missing or damaged.",
            hint="`gistpoint store check` names all that is; who has the files can share them again.",
        )


def _pieces(file: Path) -> Iterator[bytes]:
    from gistpoint.sessions.team.schema import PIECE

    with file.open("rb") as content:
        while data := content.read(PIECE):
            yield data


def _sha256(pieces: Iterator[bytes]) -> str:
    found = hashlib.sha256()
    for data in pieces:
        found.update(data)
    return found.hexdigest()
