"""Files of records: lines are appended under one lock, all or nothing, and survive a power cut.

The public names are in this module; the modules inside are private. Decision 109 lists the guarantees.
"""

from gistpoint.core.logs.files import (
    AppendLog,
    LogContent,
    LogKind,
    append_whole,
    create_file,
    line_hash,
    naming,
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
    "naming",
    "read_log",
    "replace_file",
    "sync_file",
    "sync_folder",
    "take",
    "torn_path",
    "wait_for",
]
