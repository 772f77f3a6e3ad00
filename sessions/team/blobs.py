"""Large pieces of data in a team's store, named by their sha256 and kept in pieces of 8 MiB."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert

from gistpoint.sessions.team.address import TeamStoreError
from gistpoint.sessions.team.schema import PIECE, blobs

if TYPE_CHECKING:
    from sqlalchemy import Connection


class DamagedBlobError(TeamStoreError):
    """What the store holds under a sha256 is not there, or is something else."""


def put_blob(connection: Connection, data: bytes, *, secret: bool) -> str:
    """Keep data, unless they are there already, and return their sha256; `secret` hides them from readers."""
    sha256 = hashlib.sha256(data).hexdigest()
    for piece, start in enumerate(range(0, len(data) or 1, PIECE)):
        values = {"sha256": sha256, "piece": piece, "secret": secret, "data": data[start : start + PIECE]}
        connection.execute(insert(blobs).values(values).on_conflict_do_nothing())
    return sha256


def get_blob(connection: Connection, sha256: str, *, secret: bool = True) -> bytes:
    """Return the data of a blob. Raises `DamagedBlobError` unless they have this sha256.

    With `secret` false only what readers may see is looked at.
    """
    if secret:
        rows = connection.scalars(select(blobs.c.data).where(blobs.c.sha256 == sha256).order_by(blobs.c.piece))
    else:
        asked = text("SELECT data FROM public_blobs WHERE sha256 = :sha256 ORDER BY piece")
        rows = connection.scalars(asked, {"sha256": sha256})
    data = b"".join(bytes(row) for row in rows)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise DamagedBlobError(
            f"The blob {sha256[:12]} on the store is damaged or missing: what is there has another sha256.",
            hint="Delete its rows from the table blobs, then `gistpoint store sync` where the original is sends it.",
        )
    return data
