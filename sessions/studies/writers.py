"""Who writes which file of a study: `NAME@MACHINE`, where NAME is a participant's code or the organiser."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from gistpoint.core.study.operations import ORGANISER, StudyError

_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,23}")


def checked_code(code: str) -> str:
    """Return a participant's code if it can be one: it becomes part of the names of files. Raises `StudyError`."""
    if not _CODE.fullmatch(code) or code.lower() == ORGANISER:
        raise StudyError(
            f"{code[:60]!r} can't be the code of a participant.",
            hint="A code has at most 24 letters, digits, '-' and '_', and begins with a letter or a digit.",
        )
    return code


def writer_of(path: Path) -> str:
    """Return the writer that the name of a file of operations tells."""
    return unquote(path.stem)


def name_in(writer: str) -> str:
    """Return the name in a writer; the whole text if it names no machine."""
    name, at, _ = writer.rpartition("@")
    return name if at else writer
