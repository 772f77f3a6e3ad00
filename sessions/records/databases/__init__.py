"""Presents the databases of programs as archives with a member for each session, in a form that has a reader.

A database is only read, and nothing is written next to it (decision 170).
"""

from __future__ import annotations

from gistpoint.sessions.records.archives import Archive, Blob, RunFileError

DATABASE = "database"
"""The kind of archive for a database's sessions."""
_HEAD = b"SQLite format 3\0"


def sessions_of(blob: Blob | Archive) -> Blob | Archive:
    """Return the archive of a database's sessions; any other blob, or one without sessions, unchanged.

    Raises `RunFileError` if a known program's tables are damaged, or a database in an archive is too large.
    """
    if isinstance(blob, Archive) or blob.read(0, len(_HEAD)) != _HEAD:
        return blob
    import sqlite3

    from gistpoint.sessions.records.databases.programs import PROGRAMS
    from gistpoint.sessions.records.databases.reading import Database

    database = Database(blob)
    try:
        tables = database.tables
    except sqlite3.Error:
        return blob
    for program in PROGRAMS:
        try:
            if tables >= program.tables and (found := program.members(database)):
                return Archive(DATABASE, found)
        except sqlite3.OperationalError:
            continue  # from a different version, without a required column
        except sqlite3.Error as error:
            name = blob.name or "The file"
            raise RunFileError(f"{name} is a database that can't be read: {error}.") from error
    return blob
