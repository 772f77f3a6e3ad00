"""Files of records: lines appended whole or not at all under one lock, and on the disk when a power cut comes.

The public names are in this module; the modules inside are private. Decision 109 says what holds.
"""

from gistpoint.core.logs.files import (
    AppendLog,
    LogContent,
    LogKind,
    append_whole,
    create_file,
    line_hash,
    read_log,
    replace_file,
    sync_file,
    sync_folder,
    torn_path,
)
from gistpoint.core.logs.locks import FileLock, NoLocksError, is_held, take, wait_for

__all__ = [
    "AppendLog",
    "FileLock",
    "LogContent",
    "LogKind",
    "NoLocksError",
    "append_whole",
    "create_file",
    "is_held",
    "line_hash",
    "read_log",
    "replace_file",
    "sync_file",
    "sync_folder",
    "take",
    "torn_path",
    "wait_for",
]
