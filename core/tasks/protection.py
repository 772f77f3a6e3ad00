"""The parts of its tree that code under test may change, as baselines and libraries store them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gistpoint.core.errors import TaskError
from gistpoint.core.outcomes import Writable
from gistpoint.core.tasks.fields import Fields

MOST_PIECES = 200
"""The maximum number of entries, because every run mounts the writable folders entry by entry."""


@dataclass(frozen=True, slots=True)
class Protection:
    """The parts of a tree that a suite, and therefore the code under test, may change.

    `writable` is None if that can't be enforced.
    """

    writable: Writable | None
    reason: str = ""
    """The reason why the protection can't be enforced; empty if it can be."""

    @property
    def words(self) -> str:
        """The allowed changes as a clause, including the reason if the protection can't be enforced."""
        if self.writable is None:
            return f"the code under test can change its tree: {self.reason}"
        places = [*(f"{folder}/" for folder in self.writable.folders), *self.writable.paths]
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        return f"the code under test can change {', '.join(places[:5]) or 'nothing'}{more} in its tree"


def protection_document(protection: Protection) -> dict[str, Any]:
    """Return the stored form of a protection: `folders` and `paths`, or the `reason` why there is none."""
    writable = protection.writable
    if writable is None:
        return {"reason": protection.reason}
    return {"folders": list(writable.folders), "paths": list(writable.paths)}


def read_protections(fields: Fields) -> dict[str, Protection]:
    """Return the protections in a table, by backend.

    Raises `TaskError` for a fault, such as a path that leads out of the tree.
    """
    return {name: read_protection(fields.table(name)) for name in fields.values}


def read_protection(fields: Fields) -> Protection:
    """Return a stored protection.

    Raises `TaskError` for a fault, such as a path that leads out of the tree.
    """
    if "reason" in fields.values:
        return Protection(None, fields.get("reason", str))
    writable = fields.record(Writable)
    for path in (*writable.folders, *writable.paths):
        if path.startswith("/") or ".." in path.split("/") or "\0" in path:
            raise TaskError(
                f"{fields.file}: the key {fields.key!r} names {path!r}, which leads out of the tree."
            )
    return Protection(writable)
