"""Stores text that a person typed but has not sent, in files on this machine (decision 215).

There is a file for each subject, such as an attempt or a run, and each person. It is read when a question
about the subject is asked again, even if the program was killed. The files belong to the person alone: they
are passed to no backend, team store, study or export.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import replace_file
from gistpoint.core.unfinished import remove_abandoned

MOST_SUBJECTS = 500
"""The maximum number of files. To make room for another, the least recently written file is deleted."""
LARGEST = 1 << 20
"""The maximum size of a file in bytes; longer text is refused."""

Answers = Mapping[str, Mapping[str, str]]
"""The text of each field, by the question and the name of the field."""


class UnsentText(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a file."""

    by: str = ""
    """The pseudonym of the person who typed the text; empty outside of studies and reviews."""
    about: str
    """The subject, such as the id of an attempt or the path of a run."""
    texts: dict[str, dict[str, str]] = {}
    """The text of each field, by the question and the name of the field."""


class UnsentTextFiles:
    """The files with unsent text below a folder."""

    def __init__(self, folder: Path) -> None:
        """The folder is created at the first write."""
        self._folder = folder

    def read(self, by: str, about: str) -> Answers:
        """Return the text typed by a person about a subject; empty if there is no readable text."""
        found = _content(self._path(by, about))
        return found.texts if found is not None else {}

    def write(self, by: str, about: str, changed: Answers) -> None:
        """Replace the text of some questions. The file is deleted if no text is left.

        Raises `OSError` if the file can't be written, or would be larger than `LARGEST`.
        """
        path = self._path(by, about)
        texts = {asked: dict(fields) for asked, fields in {**self.read(by, about), **changed}.items()}
        texts = {asked: fields for asked, fields in texts.items() if any(fields.values())}
        if not texts:
            path.unlink(missing_ok=True)
            return
        unsent = UnsentText(by=by, about=about, texts=texts)
        data = json.dumps(msgspec.to_builtins(unsent)).encode("ascii")  # escapes lone surrogates
        if len(data) > LARGEST:
            raise OSError(f"it would have more than {LARGEST:,} bytes")
        if not path.exists():
            self._make_room(path)
        replace_file(path, data, durable=False, mode=0o600)

    def delete(self, by: str, about: str) -> None:
        """Delete the text typed by a person about a subject, if there is any."""
        self._path(by, about).unlink(missing_ok=True)

    def delete_if(self, goes: Callable[[UnsentText], bool]) -> None:
        """Delete the files whose content meets a condition, and those that can't be read."""
        for path in self._folder.glob("*.json"):
            found = _content(path)
            if found is None or goes(found):
                with suppress(OSError):
                    remove_abandoned(path)
                    path.unlink(missing_ok=True)

    def _make_room(self, path: Path) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        remove_abandoned(path)
        files = sorted(self._folder.glob("*.json"), key=_written_at)
        for old in files[: max(0, len(files) - MOST_SUBJECTS + 1)]:
            old.unlink(missing_ok=True)

    def _path(self, by: str, about: str) -> Path:
        name = hashlib.sha256(f"{by}\x1f{about}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._folder / f"{name}.json"


def _content(path: Path) -> UnsentText | None:
    try:
        return msgspec.convert(json.loads(read_regular(path, LARGEST)), decodable(UnsentText))
    except (OSError, ValueError, RecursionError):
        return None


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
