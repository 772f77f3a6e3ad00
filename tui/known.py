"""The sources that the results of an attempt show, by path, name and line.

Showing them again costs no budget, because the calls that revealed them already did.
"""

from __future__ import annotations

import builtins
import keyword
import re
from dataclasses import dataclass, replace
from functools import lru_cache

from gistpoint.core.attempts.revealed import source_text
from gistpoint.core.attempts.state import AttemptCall, AttemptState
from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError

Functions = list[tuple[str, int, int]]
"""The definitions in a source: (`path::qualname`, first line, last line)."""


@dataclass(frozen=True, slots=True)
class ShownSource:
    """Source code in a tool result, with its location."""

    path: str
    text: str
    first_line: int = 1
    function: str = ""
    """`path::qualname` of a single definition; empty for a whole file."""
    call_id: str = ""

    @property
    def name(self) -> str:
        """The name shown on the screen: `path::qualname`, or the path of a whole file."""
        return self.function or self.path


def call_of(state: AttemptState, call_id: str) -> AttemptCall | None:
    """Return the call with an id; None if there is none."""
    return next((call for call in state.calls if call.call_id == call_id), None)


def shown_sources(call: AttemptCall) -> ShownSource | None:
    """Return the source that a result shows in full (a file or a definition); None for any other result."""
    files, sources = call.revealed.files, call.revealed.sources
    if not (files or sources) or call.text is None:
        return None
    body = source_text(call.text, call.revealed)
    if files:
        return ShownSource(files[0], body, call_id=call.call_id)
    name = sources[0]
    first = next((start for found, start, _ in call.revealed.functions if found == name), 1)
    return ShownSource(name.partition("::")[0], body, first, name, call.call_id)


def last_source(state: AttemptState) -> ShownSource | None:
    """Return the source shown last; None if there is none."""
    return next((shown for call in reversed(state.calls) if (shown := shown_sources(call)) is not None), None)


def shown_file(state: AttemptState, path: str) -> ShownSource | None:
    """Return a file as it was shown last; None if the file was not read in full."""
    call = call_of(state, state.knowledge.files.get(path, ""))
    return shown_sources(call) if call is not None else None


def shown_function(state: AttemptState, name: str) -> ShownSource | None:
    """Return a definition as shown last: alone, in its class or in its file. None if no source shows it."""
    path, _, qualname = name.partition("::")
    parts = qualname.split(".")
    around = [f"{path}::{'.'.join(parts[:count])}" for count in range(1, len(parts) + 1)]
    calls = [call_of(state, state.knowledge.sources.get(one, "")) for one in around]
    within = call_of(state, state.knowledge.files.get(path, ""))
    for call in sorted(
        {call.number: call for call in (*calls, within) if call is not None}.values(), key=_latest
    ):
        shown = shown_sources(call)
        if shown is None or shown.function == name:
            found = shown
        elif call is within:
            found = _cut_out(call, name, qualname)
        else:
            found = next((inner for inner in _inside(shown) if inner.function == name), None)
        if found is not None:
            return found
    return None


def _latest(call: AttemptCall) -> int:
    return -call.number


@lru_cache(maxsize=16)
def _inside(shown: ShownSource) -> tuple[ShownSource, ...]:
    """Return the definitions inside a definition that was shown alone; empty if its text can't be parsed."""
    path, _, qualname = shown.function.partition("::")
    indented = shown.text[:1] in (" ", "\t")
    text = f"if 1:\n{shown.text}" if indented else shown.text
    try:
        found = index_source(path, text.encode("utf-8", "surrogatepass")).definitions
    except (CodeError, UnicodeError):
        return ()
    outer = f"{qualname.rpartition('.')[0]}.".removeprefix(".")
    return tuple(
        replace(
            shown,
            text=one.source,
            first_line=shown.first_line + one.start_line - 1 - indented,
            function=f"{path}::{outer}{one.qualname}",
        )
        for one in found
        if one.parent is not None
    )


def _cut_out(call: AttemptCall, name: str, qualname: str) -> ShownSource | None:
    whole = shown_sources(call)
    if whole is None:
        return None
    try:
        found = index_source(whole.path, whole.text.encode("utf-8", "surrogatepass")).get(qualname)
    except (CodeError, UnicodeError):
        return None
    return replace(whole, text=found.source, first_line=found.start_line, function=name)


def functions_in(state: AttemptState, shown: ShownSource) -> Functions:
    """Return the definitions in a result, and those inside a definition shown alone, by line, outer first."""
    call = call_of(state, shown.call_id)
    if call is None:
        return []
    inside = _inside(shown) if shown.function else ()
    spans = [(one.function, one.first_line, one.first_line + one.text.count("\n")) for one in inside]
    return sorted({*call.revealed.functions, *spans}, key=lambda item: (item[1], -item[2]))


def enclosing(functions: Functions, line: int) -> str:
    """Return the name of the innermost definition around a line; an empty string if there is none."""
    around = [item for item in functions if item[1] <= line <= item[2]]
    return min(around, key=lambda item: item[2] - item[1])[0] if around else ""


def definitions_named(state: AttemptState, word: str, path: str = "") -> list[str]:
    """Return the known definitions to which a word in a file most likely refers; empty if there are none."""
    last = word.rpartition(".")[2]
    found = [name for name in state.knowledge.functions if _last_part(name) == last]

    def likeness(name: str) -> tuple[bool, bool]:
        # Without the leading dots, `b.c` would also match `ab.c`.
        has_whole_word = f".{_plain(name)}".endswith(f".{word}")
        return name.startswith(f"{path}::"), has_whole_word

    most = max(map(likeness, found), default=None)
    return [name for name in found if likeness(name) == most]


def names_in(line: str) -> list[str]:
    """Return the names that a line of Python uses, without keywords, builtins and newly defined names."""
    found = (match for match in _NAME.finditer(line) if match["name"] and not match["assigned"])
    return list(dict.fromkeys(match["name"] for match in found if not _is_predefined(match["name"])))


_NAME = re.compile(
    r"""[rRbBfFuU]{0,2}(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|\#.*|\b(?:def|class)\s+\w+"""
    r"""|(?<!\w)(?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)(?P<assigned>\s*=(?!=))?"""
)


def _is_predefined(name: str) -> bool:
    return keyword.iskeyword(name) or hasattr(builtins, name)


def _plain(name: str) -> str:
    return name.partition("::")[2].partition("#")[0]


def _last_part(name: str) -> str:
    return _plain(name).rpartition(".")[2]


def stale(state: AttemptState, shown: ShownSource) -> str:
    """Return which functions of the file were replaced since it was shown, in words; empty if none were."""
    order = [call.call_id for call in state.calls]
    if shown.call_id not in order:
        return ""
    at = order.index(shown.call_id)
    later = [
        submission.replacement.qualname
        for submission in state.submissions
        if submission.replacement in state.replacements
        and submission.replacement.path == shown.path
        and submission.call_id in order
        and order.index(submission.call_id) > at
    ]
    return f"{', '.join(dict.fromkeys(later))} replaced since" if later else ""
