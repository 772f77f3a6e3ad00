"""The blobs of a team's store: large contents, identified by their SHA-256 and stored in pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from gistpoint.core.trees import sha256_of
from gistpoint.sessions.team.address import TeamStoreError
from gistpoint.sessions.team.replication import portions
from gistpoint.sessions.team.schema import PIECE, blobs, public_blobs

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_KEPT = {False: blobs, True: public_blobs}
_AT_ONCE = 200
"""The maximum number of pieces in one statement."""


def put_blobs(connection: Connection, files: Iterable[Path], *, secret: bool) -> list[str]:
    """Store the contents of files that are not stored yet, and return the SHA-256 of each file.

    Readers can't see `secret` blobs.
    """
    names: list[str] = []

    def pieces() -> Iterator[dict[str, object]]:
        for file in files:
            names.append(sha256_of(file))
            with file.open("rb") as content:
                for number, data in enumerate(iter(partial(content.read, PIECE), b"")):
                    yield {"sha256": names[-1], "piece": number, "secret": secret, "data": data}

    for rows in portions(pieces(), _AT_ONCE, lambda row: len(row["data"]), PIECE):  # type: ignore[arg-type]  # bytes
        connection.execute(insert(blobs).values(rows).on_conflict_do_nothing())
    return names


def blob_sizes(engine: Engine, names: Collection[str], *, public: bool = False) -> Counter[str]:
    """Return the sizes in bytes of the blobs that are stored, by name; readers must set `public`."""
    if not names:
        return Counter()
    kept = _KEPT[public]
    asked = select(kept.c.sha256, func.sum(func.octet_length(kept.c.data))).group_by(kept.c.sha256)
    with engine.begin() as connection:
        rows = connection.execute(asked.where(kept.c.sha256.in_(names)))
        return Counter({name: int(size) for name, size in rows})


def get_blobs(
    connection: Connection,
    names: Collection[str],
    into: Path,
    *,
    public: bool = False,
    streamed: bool = False,
) -> None:
    """Write the blobs that are stored to files with their names; readers must set `public`.

    `streamed` requires less memory but more round trips. `whole_blob` returns the files, after checking them.
    """
    kept = _KEPT[public]
    named = kept.c.sha256.in_([*filter(str.isalnum, names)])  # the names become file names
    asked = select(kept.c.sha256, kept.c.data).where(named).order_by(kept.c.sha256, kept.c.piece)
    rows = connection.execute(asked.execution_options(yield_per=2) if streamed else asked)
    for name, pieces in groupby(rows, key=itemgetter(0)):
        with (into / name).open("wb") as out:
            out.writelines(map(itemgetter(1), pieces))


def whole_blob(folder: Path, sha256: str) -> Path:
    """Return the file of a fetched blob. Raises `TeamStoreError` if it is missing or damaged."""
    file = folder / sha256
    if not file.exists() or sha256_of(file) != sha256:
        raise TeamStoreError(
            f"The content that the store has as {sha256[:12]} is missing or damaged.",
            hint="`gistpoint store check` names everything that is damaged; people who have the files can"
            " share them again.",
        )
    return file
