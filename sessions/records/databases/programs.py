"""The sessions in opencode's and Cursor's databases, each in a form that has a reader.

opencode has the tables `session`, `message` and `part`; the `data` of the last two is what
`opencode export` contains, without the ids. Cursor calls chats composers and messages bubbles. Its table
`cursorDiskKV` contains a chat under `composerData:ID`, and its messages under `bubbleId:ID:BUBBLE` or, in
older versions, in the chat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gistpoint.sessions.records.archives import ArchiveMember
from gistpoint.sessions.records.databases.reading import Database, bounded_cell, document, value_of
from gistpoint.sessions.records.model import Json
from gistpoint.sessions.records.values import as_dict, as_str, objects

_OF_CURSOR = "cursorDiskKV"


@dataclass(frozen=True, slots=True)
class KnownProgram:
    """A program whose database is recognised by its tables.

    `members` returns its sessions, and raises `sqlite3.Error` for other columns and damaged tables.
    """

    tables: frozenset[str]
    members: Callable[[Database], list[ArchiveMember]]


_DATA = bounded_cell("data")
_COLUMNS = {
    "id": "id",
    "title": "title",
    "version": "version",
    "directory": "directory",
    "parent_id": "parentID",
}
"""The columns of a session, with their names in an export."""


def _opencode_sessions(database: Database) -> list[ArchiveMember]:
    """Return the sessions, including those of messages or parts whose session is gone.

    Raises `sqlite3.Error` if the tables have other columns, or are damaged.
    """
    sizes = {
        row["session_id"]: row["size"]
        for row in database.rows("SELECT session_id, SUM(LENGTH(data)) AS size FROM part GROUP BY session_id")
    }
    sessions = [dict(row) for row in database.rows("SELECT * FROM session ORDER BY time_created, id")]
    known = {session["id"] for session in sessions}
    for table in ("message", "part"):
        for row in database.rows(f"SELECT DISTINCT session_id FROM {table} ORDER BY session_id"):
            if row["session_id"] not in known:
                known.add(row["session_id"])
                sessions.append({"id": row["session_id"]})
    members = []
    for session in sessions:
        id = str(session["id"])
        open = partial(document, partial(_opencode_export, database, session), id)
        members.append(ArchiveMember(id, sizes.get(session["id"]) or 0, open))
    return members


def _opencode_export(database: Database, session: dict[str, Any]) -> dict[str, Any]:
    """Return a session as an export."""
    id = session["id"]
    parts: dict[str, list[dict[str, Any]]] = {}
    query = f"SELECT id, message_id, {_DATA} FROM part WHERE session_id IS ? ORDER BY id"
    for row in database.rows(query, [id]):
        own = {"id": row["id"], "messageID": row["message_id"], "sessionID": id}
        parts.setdefault(row["message_id"], []).append({**_object(row["data"]), **own})
    query = f"SELECT id, {_DATA} FROM message WHERE session_id IS ? ORDER BY time_created, id"
    messages: list[dict[str, Any]] = [
        {
            "info": {**_object(row["data"]), "id": row["id"], "sessionID": id},
            "parts": parts.pop(row["id"], []),
        }
        for row in database.rows(query, [id])
    ]
    # Parts whose message is missing are given one here; otherwise, they would not be shown.
    messages += [{"info": {"id": of, "role": "assistant"}, "parts": left} for of, left in parts.items()]
    info = {
        exported: session[column] for column, exported in _COLUMNS.items() if session.get(column) is not None
    }
    times = {"created": session.get("time_created"), "updated": session.get("time_updated")}
    return {"program": "opencode", "info": {**info, "time": times}, "messages": messages}


def _object(data: object) -> dict[str, Any]:
    """Return the object in a cell, or a part of text with the cell's value if that is not an object."""
    value = value_of(data)
    return {**value} if isinstance(value, dict) else {"type": "text", "text": str(value)}


_VALUE = bounded_cell("value")
_CHATS = "composerData:"
_AFTER = "composerData;"
"""The first string, in sorting order, after all those that begin with `_CHATS`."""


def _cursor_chats(database: Database) -> list[ArchiveMember]:
    """Return the chats with messages, sorted by id. Raises `sqlite3.Error` if the table is damaged."""
    query = f"SELECT key, {_VALUE} FROM {_OF_CURSOR} WHERE key > ? AND key < ? ORDER BY key"
    found = []
    for row in database.rows(query, [_CHATS, _AFTER]):
        chat = as_dict(value_of(row["value"]))
        if chat.get("fullConversationHeadersOnly") or chat.get("conversation"):
            id = str(row["key"]).removeprefix(_CHATS)
            found.append(
                ArchiveMember(id, len(row["value"]), partial(document, partial(_chat, database, id), id))
            )
    return found


def _chat(database: Database, id: str) -> Json:
    """Return a chat with all of its messages in order."""
    one = f"SELECT {_VALUE} FROM {_OF_CURSOR} WHERE key = ?"
    row = next(database.rows(one, [f"{_CHATS}{id}"]))
    chat = dict(as_dict(value_of(row["value"])))
    bubbles: list[Any] = objects(chat.pop("conversation", None))
    headers = objects(chat.pop("fullConversationHeadersOnly", None))
    for header in headers:
        key = f"bubbleId:{id}:{as_str(header.get('bubbleId'))}"
        stored = next(database.rows(one, [key]), None)
        bubbles.append(header if stored is None else value_of(stored["value"]))
    return {"composerId": id, "composer": chat, "bubbles": bubbles}


PROGRAMS = (
    KnownProgram(frozenset({"session", "message", "part"}), _opencode_sessions),
    KnownProgram(frozenset({_OF_CURSOR}), _cursor_chats),
)
