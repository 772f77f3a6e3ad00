"""What an attempt's results have shown, looked up by path, name and line: free of charge, because it was paid for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gistpoint.core.attempts.state import AttemptState, Call
from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.tui.view_models import Shown, shown_sources

Functions = list[tuple[str, int, int]]
"""(`path::qualname`, first line, last line)."""


def call_of(state: AttemptState, call_id: str) -> Call | None:
    """Return a call by its id."""
    return next((call for call in state.calls if call.call_id == call_id), None)


def shown_file(state: AttemptState, path: str) -> Shown | None:
    """Return a file as it was shown last; None where it was not read whole."""
    call = call_of(state, state.knowledge.files.get(path, ""))
    return shown_sources(call) if call is not None else None


def shown_function(state: AttemptState, name: str) -> Shown | None:
    """Return a definition as it was shown last, alone or in its file; None where its source was not shown."""
    alone = call_of(state, state.knowledge.sources.get(name, ""))
    path, _, qualname = name.partition("::")
    within = call_of(state, state.knowledge.files.get(path, ""))
    if within is not None and (alone is None or within.number > alone.number):
        cut = _cut_out(within, name, qualname)
        if cut is not None:
            return cut
    return shown_sources(alone) if alone is not None else None


def _cut_out(call: Call, name: str, qualname: str) -> Shown | None:
    whole = shown_sources(call)
    if whole is None:
        return None
    try:
        found = index_source(whole.path, whole.text.encode("utf-8", "surrogatepass")).get(qualname)
    except (CodeError, UnicodeError):
        return None
    return replace(whole, text=found.source, first_line=found.start_line, function=name)


def functions_in(state: AttemptState, shown: Shown) -> Functions:
    """Return the definitions whose spans the result gave, outer ones first."""
    call = call_of(state, shown.call_id)
    if call is None:
        return []
    found = [(str(name), int(start), int(end)) for name, start, end in call.revealed.get("functions", ())]
    return sorted(found, key=lambda item: (item[1], -item[2]))


def enclosing(functions: Functions, line: int) -> str:
    """Return the innermost definition around a line; empty where there is none."""
    around = [item for item in functions if item[1] <= line <= item[2]]
    return min(around, key=lambda item: item[2] - item[1])[0] if around else ""


def definitions_named(state: AttemptState, word: str, path: str = "") -> list[str]:
    """Return the known definitions that a word in a file may mean, the likeliest first."""
    last = word.rpartition(".")[2]
    found = [name for name in state.knowledge.functions if _last_part(name) == last]
    exact = [name for name in found if _plain(name) == word or _plain(name).endswith(f".{word}")]
    same = [name for name in found if name.startswith(f"{path}::")]
    both = [name for name in exact if name in same]
    return both or same or exact or found


def _plain(name: str) -> str:
    return name.partition("::")[2].partition("#")[0]


def _last_part(name: str) -> str:
    return _plain(name).rpartition(".")[2]


def names_of(functions: Iterable[tuple[str, int, int]]) -> list[str]:
    """Return the names alone."""
    return [name for name, _, _ in functions]
