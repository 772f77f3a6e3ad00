"""The parts of the repository that tool results reveal, to which the tree, completion and search are limited.

The module also extracts sources and traced functions from an answer: from its event, or from its wording in
versions that recorded only text. No other module parses the wording of an answer (decision 64).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from gistpoint.core.tools.declaration import NOTHING_REVEALED, Revealed


@dataclass(frozen=True, slots=True)
class ShownFunction:
    """A definition whose name and lines a tool result has shown."""

    name: str
    """The name, as `path::qualname`."""
    start: int
    end: int
    """The last line; lines count from 1, both ends inclusive."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The paths and functions that were shown, and the call that last showed each folder, file and source."""

    entries: Mapping[str, str] = field(default_factory=dict)
    """The kind of each path, `dir` or `file`."""
    listed: Mapping[str, str] = field(default_factory=dict)
    """The id of the call that listed each folder."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The id of the call with the text of each file read completely."""
    functions: Mapping[str, ShownFunction] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    """The id of the call with the text of each function read."""

    def with_revealed(self, revealed: Revealed, call_id: str) -> Knowledge:
        """Return the knowledge after a result that revealed more."""
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
"""The lines about the budget at the end of answers, as earlier versions worded them."""
_FUNCTION = re.compile(r"  (.+?):(\d{1,9})  (\S.*)")
"""A line on a function in an answer of `trace`."""


def source_text(text: str, revealed: Revealed) -> str:
    """Return the source in an answer that shows a file or definition; `revealed` is from the event."""
    if revealed.span:
        start, length = revealed.span
        return text[start : start + length]
    return _BUDGET.sub("", text).partition("\n")[2]


def traced_functions(text: str, revealed: Revealed) -> Iterator[tuple[str, int, str]]:
    """Yield the path, the line and the qualified name of each function that an answer of `trace` lists."""
    if revealed.traced:
        yield from revealed.traced
        return
    for match in filter(None, map(_FUNCTION.fullmatch, text.split("\n"))):
        yield match[1], int(match[2]), match[3]
