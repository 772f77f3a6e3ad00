"""The databases of opencode and Cursor are read like their exports, and never written to."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from examples import share
from mutants import read_all
from recorded_runs.assistants import cursor_chat, opencode

from gistpoint.core.errors import UserError
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.databases import programs
from gistpoint.sessions.records.databases.reading import _authorized, bounded_cell, value_of
from gistpoint.sessions.runs.opening import list_runs, open_run

TABLES = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT,
                      version TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER,
                   data TEXT);
"""


def without(value: dict[str, Any], *keys: str) -> str:
    return json.dumps({key: item for key, item in value.items() if key not in keys})


def fill_opencode(connection: sqlite3.Connection, id: str = "ses_1") -> None:
    """Store the session of the export in the tables, as opencode does."""
    export = opencode()
    info, created = export["info"], export["info"]["time"]["created"]
    row = (id, "project", None, info["directory"], info["title"], info["version"], created, created)
    connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    for number, message in enumerate(export["messages"]):
        of = f"msg_{number}-{id}"
        data = without(message["info"], "id", "sessionID")
        connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", (of, id, number, number, data))
        for place, part in enumerate(message["parts"]):
            data = without(part, "id", "messageID", "sessionID")
            own = (f"prt_{number}{place:03}-{id}", of, id, place, place, data)
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", own)
    connection.commit()


def opencode_database(path: Path, *ids: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        for id in ids or ("ses_1",):
            fill_opencode(connection, id)
    return path


def cursor_database(path: Path, *, inside: bool = False) -> Path:
    """Write Cursor's database with the chat; `inside` stores the messages in the chat, as older versions did."""
    chat = cursor_chat()
    id, bubbles = chat["composerId"], chat["bubbles"]
    headers = [{"bubbleId": bubble["bubbleId"], "type": bubble["type"]} for bubble in bubbles]
    stored = {"conversation": bubbles} if inside else {"fullConversationHeadersOnly": headers}
    rows = {f"composerData:{id}": {**chat["composer"], **stored}, "composerData:empty": {"conversation": []}}
    if not inside:
        rows.update({f"bubbleId:{id}:{bubble['bubbleId']}": bubble for bubble in bubbles})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)")
        connection.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
        for number, (key, value) in enumerate(rows.items()):
            text = json.dumps(value)
            cell: str | bytes = text if number % 2 else text.encode()
            connection.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, cell))
        connection.commit()
    return path


def told(name: str | Path) -> list[Any]:
    """Return the contents of a run's steps."""
    document = open_run(name)
    document.build()
    assert not document.header.warnings
    return [
        (step.kind, step.actor, step.thought, step.text, step.calls, step.results, step.edits, step.started)
        for step in document.steps()
    ]


def test_opencodes_database_is_read_like_its_exports(tmp_path: Path) -> None:
    export = tmp_path / "export.json"
    export.write_text(json.dumps(opencode()), encoding="utf-8")
    database = opencode_database(tmp_path / "opencode.db", "ses_1", "ses_2")
    listed = list(list_runs([database]))
    assert [one.name for one in listed] == [f"{database}#ses_1", f"{database}#ses_2"]
    expected = open_run(export).header
    for one in listed:
        assert one.header is not None
        assert (one.header.format, one.header.task) == ("opencode", expected.task)
        assert told(one.name) == told(export)
    assert open_run(listed[1].name).header.id == "ses_2"


@pytest.mark.parametrize("inside", [False, True])
def test_cursors_database_is_read_with_messages_inside_the_chat_or_beside_it(
    inside: bool, tmp_path: Path
) -> None:
    alone = tmp_path / "chat.json"
    alone.write_text(json.dumps(cursor_chat()), encoding="utf-8")
    database = cursor_database(tmp_path / "state.vscdb", inside=inside)
    (listed,) = list_runs([database])
    assert listed.name == f"{database}#chat-1"
    assert told(database) == told(alone)
    header = open_run(database).header
    assert (header.task, header.model, header.exit_status) == ("Mean of nothing", "model-x", "completed")


def test_nothing_is_written_beside_a_database_and_its_log_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    database = opencode_database(folder / "opencode.db", "ses_1")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        fill_opencode(connection, "ses_2")  # only in the log while this connection is open
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert len(before["opencode.db-wal"]) > 1_000
        assert [one.name for one in list_runs([database])] == [f"{database}#ses_1", f"{database}#ses_2"]
        assert told(f"{database}#ses_2") == told(f"{database}#ses_1")
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_database_in_a_folder_that_can_not_be_written_to_is_read(tmp_path: Path) -> None:
    database = opencode_database(tmp_path / "opencode.db")
    database.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert len(told(database)) == 3
    finally:
        tmp_path.chmod(0o700)


def test_a_link_to_a_database_is_read_with_the_log_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    database = opencode_database(tmp_path / "real.db", "ses_1")
    link = tmp_path / "away" / "link.db"
    link.symlink_to(database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        fill_opencode(connection, "ses_2")
        assert [one.name for one in list_runs([link])] == [f"{link}#ses_1", f"{link}#ses_2"]


def test_rows_without_their_message_or_session_and_with_any_ids_are_read(tmp_path: Path) -> None:
    database = opencode_database(tmp_path / "opencode.db", "odd id")
    with closing(sqlite3.connect(database)) as connection:
        part = json.dumps({"type": "text", "text": "left behind"})
        connection.execute("INSERT INTO part VALUES ('p', 'gone', 'odd id', 1, 1, ?)", (part,))
        connection.execute("INSERT INTO part VALUES ('q', NULL, NULL, 1, 1, ?)", (part,))
        connection.execute("UPDATE message SET id = 'm' || id")
        connection.execute("UPDATE part SET message_id = 'm' || message_id WHERE id LIKE 'prt%'")
        connection.commit()
    names = [one.name for one in list_runs([database])]
    assert names == [f"{database}#odd%20id", f"{database}#None"]
    for name in names:
        assert [step.text for step in open_run(name).steps()][-1] == "left behind"
    assert len(list(open_run(names[0]).steps())) == 4


def test_one_cell_that_is_too_large_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_DATA", bounded_cell("data", most=1_000))
    database = opencode_database(tmp_path / "opencode.db", "ses_1", "ses_2")
    with closing(sqlite3.connect(database)) as connection:
        large = json.dumps({"type": "text", "text": "y" * 5_000 + "z" * 100_000})
        connection.execute("UPDATE part SET data = ? WHERE id = 'prt_0000-ses_1'", (large,))
        connection.commit()
    first, second = (open_run(one.name) for one in list_runs([database]))
    assert next(iter(first.steps())).text.startswith('{"type": "text", "text": "yyy')
    assert next(iter(second.steps())).text.startswith("Fix @a.py")


def test_a_database_in_an_archive_is_read(tmp_path: Path) -> None:
    database = opencode_database(tmp_path / "opencode.db")
    expected = told(database)
    packed = tmp_path / "opencode.db.gz"
    import gzip

    packed.write_bytes(gzip.compress(database.read_bytes()))
    assert told(packed) == expected


def test_another_database_is_refused_as_one(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (id TEXT)")
        connection.execute("CREATE VIEW session AS SELECT 1 AS id")
        connection.execute("CREATE VIEW message AS SELECT 1 AS id")
        connection.execute("CREATE VIEW part AS SELECT 1 AS id")
        connection.commit()
    with pytest.raises(RunFileError, match="of another version"):
        open_run(path)


def test_cells_that_contain_no_json_are_texts(tmp_path: Path) -> None:
    database = opencode_database(tmp_path / "opencode.db")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE part SET data = 'half of {' WHERE id LIKE 'prt_0000%'")
        connection.execute("UPDATE part SET data = x'ff00' WHERE id LIKE 'prt_1002%'")
        connection.commit()
    texts = [step.text for step in open_run(database).steps()]
    assert "half of {" in texts[0]
    assert value_of("[" * 100_000) == "[" * 100_000


def test_only_reading_is_allowed() -> None:
    allowed = {
        name
        for name in vars(sqlite3)
        if name.startswith("SQLITE_")
        and isinstance(getattr(sqlite3, name), int)
        and _authorized(getattr(sqlite3, name), None, None) == sqlite3.SQLITE_OK
    }
    actions = {
        "SQLITE_ATTACH", "SQLITE_DETACH", "SQLITE_INSERT", "SQLITE_UPDATE", "SQLITE_DELETE", "SQLITE_PRAGMA",
        "SQLITE_TRANSACTION", "SQLITE_CREATE_TRIGGER", "SQLITE_CREATE_VTABLE", "SQLITE_FUNCTION",
    }  # fmt: skip
    assert not allowed & actions
    assert {"SQLITE_SELECT", "SQLITE_READ"} <= allowed
    assert _authorized(sqlite3.SQLITE_FUNCTION, None, "load_extension") == sqlite3.SQLITE_DENY
    assert _authorized(sqlite3.SQLITE_FUNCTION, None, "LENGTH") == sqlite3.SQLITE_OK


def test_no_damaged_database_breaks_the_reader(tmp_path: Path) -> None:
    chance = random.Random(5)
    sources = [
        opencode_database(tmp_path / "one.db").read_bytes(),
        cursor_database(tmp_path / "two.db").read_bytes(),
    ]
    path = tmp_path / "damaged.db"
    for number in range(share(200)):
        data = bytearray(sources[number % 2])
        for _ in range(chance.choice([1, 5, 50])):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        path.write_bytes(data[: chance.choice([len(data), len(data) // 2, 200])])
        try:
            read_all(path)
        except Exception as error:
            raise AssertionError(f"database {number}") from error
        with suppress(UserError):
            open_run(path).build()
