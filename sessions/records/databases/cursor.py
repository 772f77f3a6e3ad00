"""Cursor's database (`state.vscdb`): each chat with its messages, which Cursor calls composer and bubbles.

The table `cursorDiskKV` contains a chat under `composerData:ID`, and its messages under `bubbleId:ID:BUBBLE`
or, in older versions, within the chat.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from gistpoint.sessions.records.archives import ArchiveMember
from gistpoint.sessions.records.databases.reading import Database, document, value_of
from gistpoint.sessions.records.model import Json
from gistpoint.sessions.records.values import as_dict, as_str, objects

PROGRAM = "Cursor"
_TABLE = "cursorDiskKV"
TABLES = {_TABLE}
"""The tables by which its database is recognised."""
_CHATS = "composerData:"
_AFTER = "composerData;"
"""The first text after all those that begin with `_CHATS`."""


def members(database: Database) -> list[ArchiveMember]:
    """Return the chats with messages, by their ids. Raises `sqlite3.Error` if the table is damaged."""
    query = f"SELECT key, value FROM {_TABLE} WHERE key > ? AND key < ? ORDER BY key"
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
    one = f"SELECT value FROM {_TABLE} WHERE key = ?"
    row = next(database.rows(one, [f"{_CHATS}{id}"]))
    chat = dict(as_dict(value_of(row["value"])))
    bubbles: list[Any] = objects(chat.pop("conversation", None))
    headers = objects(chat.pop("fullConversationHeadersOnly", None))
    for header in headers:
        key = f"bubbleId:{id}:{as_str(header.get('bubbleId'))}"
        stored = next(database.rows(one, [key]), None)
        bubbles.append(header if stored is None else value_of(stored["value"]))
    return {"composerId": id, "composer": chat, "bubbles": bubbles}
