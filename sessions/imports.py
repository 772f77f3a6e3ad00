"""Imported records: those that became tasks, and those whose repository is not available yet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gistpoint.core.errors import TaskError
from gistpoint.core.logs import replace_file
from gistpoint.core.tasks.fields import Fields

FORMAT, VERSION = "gistpoint.imports", 1


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """A valid record whose repository was unavailable."""

    id: str
    url: str
    commit: str
    function: str
    """`path::name`, as in the record."""
    line: int
    """The line in the source file."""
    reason: str
    tried: str
    """When it was last tried: UTC, ISO 8601."""
    text: str
    """The record, verbatim."""


@dataclass(frozen=True, slots=True)
class Imports:
    """The records of one data set: ids of those imported with the ids of their tasks, and those pending, by id."""

    imported: Mapping[str, str]
    pending: Mapping[str, PendingRecord]


class ImportLedger:
    """One data set's file in the data folder; every change is on the disk when the method returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Imports:
        """Return the content of the file, empty if there is none. Raises `TaskError` if it is damaged."""
        try:
            values = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Imports({}, {})
        except (OSError, ValueError) as error:
            raise TaskError(f"{self.path} can't be read: {error}.", hint="Correct it, or move it away.") from error
        if not isinstance(values, dict):
            raise TaskError(f"{self.path} holds no table.", hint="Correct it, or move it away.")
        fields = Fields(values, str(self.path))
        if fields.get("format", str) != FORMAT or fields.get("version", int) > VERSION:
            raise TaskError(f"{self.path} is of another format or of a newer gistpoint.", hint="Install a newer one.")
        pending = fields.get("pending", tuple[PendingRecord, ...])
        return Imports(fields.get("imported", dict[str, str]), {item.id: item for item in pending})

    def settle(self, *, imported: Mapping[str, str] | None = None, refused: Iterable[str] = ()) -> None:
        """Record settled records: made into tasks, or refused permanently; they are no longer pending."""
        known = self.read()
        gone = {*(imported or {}), *refused}
        waiting = {id: item for id, item in known.pending.items() if id not in gone}
        self._write(Imports({**known.imported, **(imported or {})}, waiting))

    def wait(self, records: Iterable[PendingRecord]) -> None:
        """Store records as pending; one that is pending already gets the newer reason."""
        known = self.read()
        self._write(replace(known, pending={**known.pending, **{item.id: item for item in records}}))

    def _write(self, imports: Imports) -> None:
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "imported": dict(imports.imported),
            "pending": [asdict(item) for item in imports.pending.values()],
        }
        text = json.dumps(document, indent=1, ensure_ascii=True) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self.path, text.encode("ascii"), mode=0o600)
