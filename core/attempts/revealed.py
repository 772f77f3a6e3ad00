"""The parts of the repository that tool results have revealed: tree, completion and search may know only
these.

The module also extracts sources and traced functions from an answer: from its event, or from its wording for
versions that recorded only texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from gistpoint.core.tools.declaration import NOTHING_REVEALED, Revealed


@dataclass(frozen=True, slots=True)
class ShownFunction:
    """A definition whose name and span a tool result has shown."""

    name: str
    """`path::qualname`."""
    start: int
    end: int
    """Lines, 1-based and inclusive."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Paths, functions and texts that were shown, each with the call that showed it last."""

    entries: Mapping[str, str] = field(default_factory=dict)
    """By path, `dir` or `file`."""
    listed: Mapping[str, str] = field(default_factory=dict)
    """By folder, the call that listed it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """By file read whole, the call whose text contains it."""
    functions: Mapping[str, ShownFunction] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    """By function read, the call whose text contains it."""

    def with_revealed(self, revealed: Revealed, call_id: str) -> Knowledge:
        """Return what is known after a result that revealed this."""
        if revealed == NOTHING_REVEALED:
            return self
        entries = {**self.entries}
        for path, kind in revealed.entries:
            entries[path] = kind
            _add_parents(entries, path)
        functions = {
            **self.functions,
            **{name: ShownFunction(name, start, end) for name, start, end in revealed.functions},
        }
        return replace(
            self,
            entries=entries,
            functions=functions,
            listed={**self.listed, **dict.fromkeys(revealed.listed, call_id)},
            files={**self.files, **dict.fromkeys(revealed.files, call_id)},
            sources={**self.sources, **dict.fromkeys(revealed.sources, call_id)},
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


_BUDGET = re.compile(
    r"\n\[\d+ (?:tool uses?|steps?)(?: and \d+ (?:submissions?|scores?))? left\]"
    r"(?:\nThis was the last tool use before the final one, and nothing was submitted yet: "
    r"only a submission can follow\.)?\Z"
)
"""The lines that ended every answer."""
_FUNCTION = re.compile(r"  (.+?):(\d+)  (\S.*)")
"""A function in the answer of `trace`."""


def source_text(text: str, revealed: Revealed) -> str:
    """Return the source in an answer that shows a whole file or definition; `revealed` comes from its event."""
    if revealed.span:
        start, length = revealed.span
        return text[start : start + length]
    return _BUDGET.sub("", text).partition("\n")[2]


def traced_functions(text: str, revealed: Revealed) -> Iterator[tuple[str, int, str]]:
    """Yield path, line and qualified name of each function that an answer of `trace` lists, in its order."""
    if revealed.traced:
        yield from revealed.traced
        return
    for match in filter(None, map(_FUNCTION.fullmatch, text.split("\n"))):
        yield match[1], int(match[2]), match[3]
