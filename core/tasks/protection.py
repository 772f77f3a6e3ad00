"""Which parts of its tree the code under test may change, as stored in baselines and libraries' folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gistpoint.core.errors import TaskError
from gistpoint.core.outcomes import Writable
from gistpoint.core.tasks.fields import Fields

MOST_PIECES = 200
"""Most entries: a writable folder is mounted entry by entry, each of which costs time in every run."""


@dataclass(frozen=True, slots=True)
class Protection:
    """The parts of its tree that a suite, and so code under test, may change; None if that can't be enforced."""

    writable: Writable | None
    reason: str = ""
    """Why it can't be enforced."""

    @property
    def words(self) -> str:
        """A sentence that names the allowed changes."""
        if self.writable is None:
            return f"the code under test can change its tree: {self.reason}"
        places = [*(f"{folder}/" for folder in self.writable.folders), *self.writable.paths]
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        return f"of its tree the code under test can change {', '.join(places[:5]) or 'nothing'}{more}"


def protection_document(protection: Protection) -> dict[str, Any]:
    """Return a protection as it is stored."""
    writable = protection.writable
    if writable is None:
        return {"reason": protection.reason}
    return {"folders": list(writable.folders), "paths": list(writable.paths)}


def read_protections(fields: Fields) -> dict[str, Protection]:
    """Return the protections in a table, by the names of backends."""
    return {name: read_protection(fields.table(name)) for name in fields.values}


def read_protection(fields: Fields) -> Protection:
    """Return a stored protection. Raises `TaskError` if it names something that can't be in a tree."""
    if "reason" in fields.values:
        return Protection(None, fields.get("reason", str))
    writable = fields.record(Writable)
    for path in (*writable.folders, *writable.paths):
        if path.startswith("/") or ".." in path.split("/") or "\0" in path:
            raise TaskError(
                f"{fields.file}: the key {fields.key!r} names {path!r}, which leads out of the tree."
            )
    return Protection(writable)
