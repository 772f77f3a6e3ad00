"""The places in the repository that the lines of an answer, a brief or a traceback name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import monotonic

from gistpoint.core.attempts.revealed import traced_functions
from gistpoint.core.attempts.state import AttemptCall, AttemptState
from gistpoint.core.tools.declaration import Revealed
from gistpoint.tui.known import ShownSource, shown_file, shown_function
from gistpoint.tui.widgets.text_view import StyledPart

_ROW = re.compile(r" *(\d{1,9}): ")
"""Matches a line found by a search, up to its text."""
_LINE = re.compile(r"(?:^|[\s(>E])((?:[\w.+-]+/)*[\w+-]+\.pyi?):(\d{1,9})(?::|\b)")
_FILE = re.compile(r'File "((?:[\w.+-]+/)*[\w+-]+\.pyi?)", line (\d{1,9})\b')
_PART = r"(?:[^\W\d]\w*|<locals>)"
_NAME = re.compile(rf"(?:^|[\s(])((?:[\w.+-]+/)*[\w+-]+\.py)::({_PART}(?:(?:::|\.){_PART})*(?:#\d+)?)")
"""Matches a function, `path::qualname`, or a test, `path::class::function`."""
_AROUND = re.compile(r" *\d+- ")
"""Matches a line around one found by a search, up to its text."""
_SECONDS = 0.2
"""The time in seconds for finding a pattern in all lines of an answer. The keyboard waits meanwhile."""
_LONGEST = 2_000
"""The length, in characters, above which a line is not searched."""


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A file, one of its lines or functions, or a folder."""

    path: str
    line: int = 0
    """The number of the line, counted from 1; 0 for none."""
    qualname: str = ""
    folder: bool = False

    @property
    def function(self) -> str:
        """The function as `path::qualname`; empty if there is none."""
        return f"{self.path}::{self.qualname}" if self.qualname else ""

    def line_in(self, path: str) -> int | None:
        """Return the line if it is in the file with this path; None otherwise."""
        return self.line or None if self.path == path else None

    @property
    def name(self) -> str:
        """The name shown on the screen: `path::qualname`, `path:line` or the path."""
        return self.function or (f"{self.path}:{self.line}" if self.line else self.path)


def places_in_answer(call: AttemptCall) -> dict[int, NamedPlace]:
    """Return the places that an answer names, from its data or else from its text.

    The keys are the indices of the lines, counted from 0. The result is empty for an answer that shows a
    whole file or definition.
    """
    text, revealed = call.text or "", call.revealed
    if revealed.files or revealed.sources:
        return {}
    if revealed.listed:
        return _entries(revealed)
    if revealed.functions:
        return {
            number: NamedPlace(name.partition("::")[0], start, name.partition("::")[2])
            for number, (name, start, _) in enumerate(revealed.functions, 1)
        }
    if revealed.entries and not revealed.traced:  # a search: code that it found may look like a trace
        return _hits(text, revealed)
    traced = list(traced_functions(text, revealed))
    return _traced(text, traced) if traced else places_in_text(text)


def places_in_text(text: str) -> dict[int, NamedPlace]:
    """Return the places that text names by `path:line`, in a traceback, as a function or by a test id.

    The keys are the indices of the lines, counted from 0. Each line has at most one place; lines of more than
    `_LONGEST` characters are skipped.
    """
    found: dict[int, NamedPlace] = {}
    for number, line in enumerate(text.split("\n")):
        if len(line) > _LONGEST or ".py" not in line:
            continue
        if match := _LINE.search(line) or _FILE.search(line):
            found[number] = NamedPlace(match[1], int(match[2]))
        elif match := _NAME.search(line):
            found[number] = NamedPlace(match[1], qualname=match[2].replace("::", "."))
    return found


def _entries(revealed: Revealed) -> dict[int, NamedPlace]:
    return {
        number: NamedPlace(path, folder=kind == "dir")
        for number, (path, kind) in enumerate(revealed.entries, 1)
    }


def _traced(text: str, traced: Iterable[tuple[str, int, str]]) -> dict[int, NamedPlace]:
    found: dict[int, NamedPlace] = {}
    rows = iter(enumerate(text.split("\n")))
    for path, line, qualname in traced:
        for number, row in rows:
            if f"{path}:{line}" in row:
                found[number] = NamedPlace(path, line, qualname)
                break
    return found


def _hits(text: str, revealed: Revealed) -> dict[int, NamedPlace]:
    """Return the positions of a search's matching lines, by the index of the line, counted from 0.

    The matching lines follow the paths that are named in the data of the search.
    """
    found: dict[int, NamedPlace] = {}
    paths = {path for path, _ in revealed.entries}
    path = ""
    for number, line in enumerate(text.split("\n")):
        if line in paths:
            path = line
            found[number] = NamedPlace(path)
        elif path and (match := _ROW.match(line)):
            found[number] = NamedPlace(path, int(match[1]))
    return found


def parts_of_hits(
    call: AttemptCall,
) -> dict[int, list[StyledPart]]:
    """Return the parts of a search's answer to be styled, by the index of the line, counted from 0.

    These are the matches of the pattern, the paths, and the lines around matching ones. Empty for any other
    answer, and if the search found nothing. Matches are left out if the pattern takes too long.
    """
    pattern = call.arguments.get("pattern")
    places = places_in_answer(call)
    if not isinstance(pattern, str) or not places:
        return {}
    matcher = _matcher(pattern)
    found: dict[int, list[StyledPart]] = {}
    for number, line in enumerate((call.text or "").split("\n")):
        row = _ROW.match(line)
        if number not in places:
            if _AROUND.match(line):
                found[number] = [(0, len(line), "context")]
        elif row is None:
            found[number] = [(0, len(line), "heading")]
        else:
            found[number] = [(start, end, "match") for start, end in matcher(line, row.end())]
    return found


def _matcher(pattern: str) -> Callable[[str, int], list[tuple[int, int]]]:
    """Return a function that finds the matches of a pattern in a line, from a column on.

    The function returns the start and end column of each match. It finds none if the pattern is invalid, if
    the line is too long, or once `_SECONDS` have passed.
    """
    import regex

    try:
        compiled = regex.compile(pattern)
    except regex.error:
        return lambda line, column: []
    until = monotonic() + _SECONDS

    def matches(line: str, column: int) -> list[tuple[int, int]]:
        left = until - monotonic()
        if left <= 0 or len(line) > _LONGEST:
            return []
        code = line[column:]  # cut, rather than searched from `column`, so that `^` matches where code begins
        try:
            spans = [match.span() for match in compiled.finditer(code, timeout=left)]
        except TimeoutError:
            return []
        return [(column + start, column + end) for start, end in spans if end > start]

    return matches


def shown_at(state: AttemptState, place: NamedPlace) -> tuple[ShownSource, int] | None:
    """Return the text that shows a place and the line to go to; None if no text does."""
    whole = shown_file(state, place.path)
    if place.qualname:
        alone = shown_function(state, place.function)
        if alone is not None:
            within = whole is not None and whole.call_id == alone.call_id
            return (whole if within and whole is not None else alone), place.line or alone.first_line
    if whole is not None:
        return whole, place.line or 1
    known = state.knowledge.functions
    around = [
        name
        for name, at in known.items()
        if name.startswith(f"{place.path}::") and at.start <= place.line <= at.end
    ]
    for name in sorted(around, key=lambda name: known[name].end - known[name].start):
        shown = shown_function(state, name)
        if shown is not None:
            return shown, place.line
    return None


def call_for(place: NamedPlace) -> tuple[str, Mapping[str, str]]:
    """Return the tool and the arguments of the call that shows a place."""
    if place.folder:
        return "list_directory", {"path": place.path}
    if place.qualname:
        return "read_function", {"function_name": place.qualname, "file_path": place.path}
    return "read_file", {"file_path": place.path}
