"""The writers of a study's files: `NAME@MACHINE`, where NAME is a participant's code or the organiser.

With one writer per file, no lock is shared, and a person is erased by deleting files (decision 84).
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from gistpoint.core.attempts.identity import CODE_HINT, is_code
from gistpoint.core.study.operations import ORGANISER, StudyError


def checked_code(code: str) -> str:
    """Return a participant's code.

    Raises `StudyError` if it is invalid, because file names will contain it.
    """
    if not is_code(code) or code.lower() == ORGANISER:
        raise StudyError(
            f"{code[:60]!r} is not a valid code for a participant.",
            hint=CODE_HINT,
        )
    return code


def writer_of(path: Path) -> str:
    """Return the writer of an operations file, from the file's name."""
    return unquote(path.stem)


def name_in(writer: str) -> str:
    """Return the name in a writer, or the whole writer if it contains no machine."""
    name, at, _ = writer.rpartition("@")
    return name if at else writer
