"""What the tool results of an attempt have shown of the repository: all that tree, completion and search may know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class ShownFunction:
    """A definition whose name and span a tool result gave."""

    name: str
    """`path::qualname`."""
    start: int
    end: int
    """Lines, 1-based and inclusive."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Paths, functions and texts that were shown, each with the call that showed it last."""

    entries: Mapping[str, str] = field(default_factory=dict)
    """Path to `dir` or `file`."""
    listed: Mapping[str, str] = field(default_factory=dict)
    """Folder to the call that listed it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """File read whole, to the call whose text holds it."""
    functions: Mapping[str, ShownFunction] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    """Function read, to the call whose text holds it."""

    def with_revealed(self, revealed: Mapping[str, Any], call_id: str) -> Knowledge:
        """Return what is known after a result that revealed this (see `tools.declaration.Revealed`)."""
        if not revealed:
            return self
        entries = {**self.entries}
        for path, kind in revealed.get("entries", ()):
            entries[path] = kind
            _add_parents(entries, path)
        functions = {
            **self.functions,
            **{name: ShownFunction(name, start, end) for name, start, end in revealed.get("functions", ())},
        }
        return replace(
            self,
            entries=entries,
            functions=functions,
            listed={**self.listed, **dict.fromkeys(revealed.get("listed", ()), call_id)},
            files={**self.files, **dict.fromkeys(revealed.get("files", ()), call_id)},
            sources={**self.sources, **dict.fromkeys(revealed.get("sources", ()), call_id)},
        )

    def children(self, folder: str) -> list[tuple[str, str]]:
        """Return the known entries of a folder as (path, kind), folders first."""
        prefix = f"{folder}/" if folder else ""
        found = [
            (path, kind)
            for path, kind in self.entries.items()
            if path.startswith(prefix) and "/" not in path[len(prefix) :]
        ]
        return sorted(found, key=lambda item: (item[1] != "dir", item[0]))


def _add_parents(entries: dict[str, str], path: str) -> None:
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        entries.setdefault(path, "dir")
