"""opencode's database: each session in the form of `opencode export`.

Tables: `session`; `message` and `part`, whose `data` is what an export contains, without the ids.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from gistpoint.sessions.records.archives import ArchiveMember
from gistpoint.sessions.records.databases.reading import Database, document, value_of

PROGRAM = "opencode"
TABLES = {"session", "message", "part"}
"""The tables by which its database is recognised."""
_COLUMNS = {
    "id": "id",
    "title": "title",
    "version": "version",
    "directory": "directory",
    "parent_id": "parentID",
}
"""The columns of a session, with their names in an export."""


def members(database: Database) -> list[ArchiveMember]:
    """Return the sessions. Raises `sqlite3.Error` if the tables have other columns, or are damaged."""
    sizes = {
        row["session_id"]: row["size"]
        for row in database.rows("SELECT session_id, SUM(LENGTH(data)) AS size FROM part GROUP BY session_id")
    }
    sessions = [dict(row) for row in database.rows("SELECT * FROM session ORDER BY time_created, id")]
    members = []
    for session in sessions:
        id = str(session["id"])
        open = partial(document, partial(_exported, database, session), id)
        members.append(ArchiveMember(id, sizes.get(session["id"]) or 0, open))
    return members


def _exported(database: Database, session: dict[str, Any]) -> dict[str, Any]:
    """Return a session as an export."""
    id = session["id"]
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in database.rows("SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id", [id]):
        own = {"id": row["id"], "messageID": row["message_id"], "sessionID": id}
        parts.setdefault(row["message_id"], []).append({**_object(row["data"]), **own})
    query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    messages: list[dict[str, Any]] = [
        {
            "info": {**_object(row["data"]), "id": row["id"], "sessionID": id},
            "parts": parts.pop(row["id"], []),
        }
        for row in database.rows(query, [id])
    ]
    info = {
        exported: session[column] for column, exported in _COLUMNS.items() if session.get(column) is not None
    }
    times = {"created": session.get("time_created"), "updated": session.get("time_updated")}
    return {"info": {**info, "time": times}, "messages": messages}


def _object(data: object) -> dict[str, Any]:
    """Return the object of a cell; a text part if the cell contains something else."""
    value = value_of(data)
    return {**value} if isinstance(value, dict) else {"type": "text", "text": str(value)}
