"""Making a reference gist: extract, try, widen where it fails, reduce where it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gistpoint.core.gist.reference.assembly import Breadth, Codebase, flat_gist
from gistpoint.core.gist.reference.reduction import Oracle, Reducer


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference gist; `how` is the breadth of the extraction that held, `reason` says why none did."""

    text: str
    faithful: bool
    how: str = ""
    executed: frozenset[int] = frozenset()
    reason: str = ""


def make_reference(
    codebase: Codebase, path: str, qualname: str, oracle: Oracle, *, out_of_time: Callable[[], bool]
) -> Reference:
    """Return the smallest faithful gist found before `out_of_time`, or the first that was tried, with a reason."""
    first = ""
    for breadth in Breadth:
        text = flat_gist(codebase, path, qualname, breadth)
        verdict = oracle(text)
        if verdict.holds:
            text, verdict = Reducer(oracle, out_of_time, qualname).reduce(text, verdict)
            return Reference(text, True, breadth, verdict.executed)
        first = first or text
    return Reference(first, False, reason="No extraction is faithful.")
