"""Faults of several edits: one made at each place where the same text stands, and faults in rewritten code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TypeAlias

from gistpoint.core.corruption.edits import apply, edits_between
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.operators.rewrites import REWRITES
from gistpoint.core.corruption.subject import CorruptionTarget, read_text

Fault: TypeAlias = tuple[Edits, tuple[str, ...], float]
"""The edits of a fault, its families and its prior."""

MOST_REWRITTEN = 8
"""Most faults in rewritten code of one function."""
_MOST_PLACES = 4
_LEAST = 3
"""Shorter texts are alike by chance."""
_BONUS = 1.2
"""The prior of a fault that is made consistently, by that of one alone."""


def together(subject: CorruptionTarget, faults: Iterable[tuple[Operator, Edits]]) -> Iterator[Fault]:
    """Yield one fault made wherever the same text can be changed in the same way: no place contradicts another.

    For example a key that is no longer lowered, neither where it is written nor where it is read.
    """
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[Operator, Edits]]] = {}
    for operator, edits in faults:
        change = tuple((subject.text[edit.start : edit.end], edit.text) for edit in edits)
        if max(len(old) for old, _ in change) >= _LEAST:
            groups.setdefault((operator.family, change), []).append((operator, edits))
    for group in groups.values():
        if 2 <= len(group) <= _MOST_PLACES:
            operator = group[0][0]
            edits = tuple(sorted(chain.from_iterable(edits for _, edits in group)))
            if all(one.end <= two.start for one, two in pairwise(edits)):
                yield edits, (operator.family, "consistent"), min(_BONUS * operator.prior, 0.9)


def in_rewritten(subject: CorruptionTarget, operators: Sequence[Operator]) -> Iterator[Fault]:
    """Yield faults in code that was first rewritten to mean the same, those with a high prior first."""
    found: list[tuple[float, Edits, tuple[str, ...]]] = []
    fitting = [operator for operator in operators if operator.in_rewritten]
    for name, rewrite in REWRITES:
        for edits in rewrite(subject):
            text = apply(edits, subject.text)
            rewritten = read_text(text, subject.scope)
            if rewritten is None:
                continue
            changed = _changed(subject.text, text)
            for operator in fitting:
                for fault in operator.find(rewritten):
                    if any(low <= edit.start and edit.end <= high for edit in fault for low, high in changed):
                        corrupted = apply(fault, text)
                        whole = edits_between(subject.text, corrupted)
                        found.append((operator.prior, whole, (operator.family, name)))
    found.sort(key=lambda item: (-item[0], item[1]))
    yield from ((edits, families, prior) for prior, edits, families in found[:MOST_REWRITTEN])


def _changed(before: str, after: str) -> list[tuple[int, int]]:
    """Return the offsets in `after` of the lines that `before` lacks."""
    return [(edit.start, edit.end) for edit in edits_between(after, before) if edit.start < edit.end]
