"""Brings documents of earlier versions to the present one, through chained pure functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gistpoint.core.errors import TaskError
from gistpoint.core.tasks.model import FORMAT, VERSION

FORMATS = frozenset({FORMAT, "gistpoint.answer", "gistpoint.baseline"})

UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""From version N to N + 1; each one that is added has a golden file among the tests' data."""


def upgraded(document: dict[str, Any], file: str) -> dict[str, Any]:
    """Return `document` in the present version; raises `TaskError` for another format or a newer version."""
    for key in ("format", "version"):
        if key not in document:
            raise TaskError(f"{file}: the key {key!r} is missing.")
    if not isinstance(document["format"], str) or document["format"] not in FORMATS:
        raise TaskError(f"{file}: the key 'format' is {document['format']!r}, not one of gistpoint's.")
    version = document["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1 or version > VERSION:
        raise TaskError(
            f"{file}: the key 'version' is {version!r}; this gistpoint reads 1 to {VERSION}.",
            hint="Install a newer gistpoint." if isinstance(version, int) and version > VERSION else "",
        )
    while version < VERSION:
        document = UPGRADES[version](document)
        version += 1
    return document
