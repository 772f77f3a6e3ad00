"""What of its tree the code under test may change, as a baseline and a library's folder keep it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gistpoint.core.errors import TaskError
from gistpoint.core.ports import Writable
from gistpoint.core.tasks.fields import Fields

MOST_PIECES = 200
"""A writable folder is shown to a run entry by entry, each of which costs some of its time."""


@dataclass(frozen=True, slots=True)
class Protection:
    """What of its tree a suite changes, and the code under test may change too; None if it can't be held to that."""

    writable: Writable | None
    reason: str = ""
    """Why it can't."""

    @property
    def words(self) -> str:
        """What of the tree can be changed, in a sentence."""
        if self.writable is None:
            return f"the code under test can change its tree: {self.reason}"
        places = [*(f"{folder}/" for folder in self.writable.folders), *self.writable.paths]
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        return f"of its tree the code under test can change {', '.join(places[:5]) or 'nothing'}{more}"


def protection_document(protection: Protection) -> dict[str, Any]:
    """Return a protection as it is written down."""
    writable = protection.writable
    if writable is None:
        return {"reason": protection.reason}
    return {"folders": list(writable.folders), "paths": list(writable.paths)}


def read_protections(fields: Fields) -> dict[str, Protection]:
    """Return the protections that a table holds by the names of backends."""
    return {name: read_protection(fields.table(name)) for name in fields.values}


def read_protection(fields: Fields) -> Protection:
    """Return a protection that was written down. Raises `TaskError` for one that names what is not in a tree."""
    if "reason" in fields.values:
        return Protection(None, fields.get("reason", str))
    writable = Writable(fields.strings("folders"), fields.strings("paths"))
    for path in (*writable.folders, *writable.paths):
        if path.startswith("/") or ".." in path.split("/") or "\0" in path:
            raise TaskError(f"{fields.file}: the key {fields.key!r} names {path!r}, which leads out of the tree.")
    return Protection(writable)
