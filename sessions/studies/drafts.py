"""Drafts of participants' forms on this machine, so that a crash loses no input."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.locations import UNSENT_TEXTS, read_regular
from gistpoint.core.logs import FileLock, NoLocksError, replace_file, take
from gistpoint.core.study.ledger import person_sha256
from gistpoint.sessions.unsent_texts import UnsentTextFiles


class FormDraft(msgspec.Struct, frozen=True, kw_only=True):
    """The answers so far, by question id, and the seconds for which the form was on the screen."""

    values: dict[str, Any] = {}
    seconds: float = 0.0


def drafts_folder(data: Path, study: str, person_sha256: str) -> Path:
    """Return the folder of a person's drafts, named by the hash that also identifies an erased person."""
    return data / "study-drafts" / study / person_sha256[:16]


class FormDrafts:
    """One participant's drafts in one study; an unreadable draft counts as missing."""

    def __init__(self, data: Path, study: str, code: str) -> None:
        """`data` is the data folder; the name of the person's folder is a hash."""
        self.folder = drafts_folder(data, study, person_sha256(code))
        self._code, self._unsent_texts = code, UnsentTextFiles(data / UNSENT_TEXTS)
        self._lock: FileLock | None = None

    def hold(self) -> bool:
        """Lock the participation for this process; return False if another process has the lock.

        The lock lasts as long as this object. In a data folder that does not support locks, the result is
        True.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = take(self.folder / "lock")
        except (OSError, NoLocksError):
            return True  # the data folder does not support locks; the attempt's own lock still protects it
        return self._lock is not None

    def read(self, form: str, assignment: str = "") -> FormDraft:
        """Return the draft of a form; empty if there is no readable draft.

        `assignment` identifies the task of a form about a task.
        """
        try:
            return msgspec.convert(
                json.loads(read_regular(self._path(form, assignment))), decodable(FormDraft)
            )
        except (OSError, ValueError, RecursionError):
            return FormDraft()

    def write(self, form: str, assignment: str, draft: FormDraft) -> None:
        """Replace the draft of a form. Raises `OSError` if it can't be written."""
        text = json.dumps(msgspec.to_builtins(draft))  # escapes lone surrogates
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self._path(form, assignment), text.encode("ascii"), durable=False)

    def remove(self, form: str, assignment: str = "") -> None:
        """Delete a draft, if there is one."""
        self._path(form, assignment).unlink(missing_ok=True)

    def remove_all(self) -> None:
        """Delete all drafts of the person, and other unsent text, as far as possible; errors are ignored."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._unsent_texts.delete_if(lambda unsent: unsent.by == self._code)

    def _path(self, form: str, assignment: str) -> Path:
        name = hashlib.sha256(f"{form}\x1f{assignment}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return self.folder / f"{name}.json"
