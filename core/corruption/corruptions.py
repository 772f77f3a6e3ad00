"""The corruptions of a function, best guesses first, and how many were dropped for which reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from gistpoint.core.code.definitions import Definition
from gistpoint.core.code.index import FileIndex
from gistpoint.core.corruption.edits import Edit, apply
from gistpoint.core.corruption.gates import Dropped, Gate
from gistpoint.core.corruption.operators.operator import Operator
from gistpoint.core.corruption.registry import all_operators
from gistpoint.core.corruption.subject import Subject, read_subject
from gistpoint.core.corruption.vocabulary import Scope, Vocabulary
from gistpoint.core.tasks.model import Target

MOST_PAIRS = 20


@dataclass(frozen=True, slots=True)
class Corruption:
    """A function with edits made to it. `edits` are on `target.original`, in order; `families` names each edit's."""

    target: Target
    edits: tuple[Edit, ...]
    families: tuple[str, ...]
    prior: float
    """The share of good corruptions expected among those like it, before any test has run."""


@dataclass(frozen=True, slots=True)
class Enumeration:
    """What was found in one function: the corruptions that passed the gates, and why the others did not."""

    kept: tuple[Corruption, ...]
    dropped: Mapping[Dropped, int] = field(default_factory=dict)


def corruptions_of(index: FileIndex, definition: Definition, vocabulary: Vocabulary) -> tuple[Corruption, ...]:
    """Return the corruptions of a function by one operator each, highest prior first, equal ones in source order."""
    return enumerate_corruptions(index, definition, vocabulary).kept


def enumerate_corruptions(
    index: FileIndex,
    definition: Definition,
    vocabulary: Vocabulary,
    operators: Iterable[Operator] | None = None,
) -> Enumeration:
    """Return the corruptions of a function with the count of each reason for which others were dropped.

    Where two operators lead to the same text, the one with the higher prior keeps it.
    """
    scope = vocabulary.scope(definition)
    subject = read_subject(definition, scope)
    if subject is None:
        return Enumeration((), {Dropped.UNREADABLE: 1})
    gate = Gate(subject.text, scope)
    dropped: Counter[Dropped] = Counter()
    kept: list[Corruption] = []
    seen: set[str] = set()
    for item in sorted(_proposed(subject, definition, operators), key=lambda item: (-item.prior, item.edits)):
        if item.target.corrupted in seen:
            dropped[Dropped.REPEATED] += 1
            continue
        seen.add(item.target.corrupted)
        reason = gate.check(item.target.corrupted)
        if reason is None:
            kept.append(item)
        else:
            dropped[reason] += 1
    return Enumeration(tuple(kept), dict(sorted(dropped.items())))


def _proposed(subject: Subject, definition: Definition, operators: Iterable[Operator] | None) -> Iterator[Corruption]:
    for operator in all_operators() if operators is None else operators:
        for edits in operator.find(subject):
            ordered = tuple(sorted(edits))
            target = Target(definition.ref.path, definition.qualname, subject.text, apply(ordered, subject.text))
            yield Corruption(target, ordered, (operator.family,), operator.prior)


def pairs_of(
    singles: Iterable[Corruption], scope: Scope | None = None, *, most: int = MOST_PAIRS
) -> tuple[Corruption, ...]:
    """Return the second-order corruptions that join two of one function, at places that do not touch.

    Meant for those whose tests stay green alone, or nearly. The prior is the chance that at least one of the two is
    good, were they independent; the highest come first, at most `most`.
    """
    pairs: list[Corruption] = []
    for first, second in combinations(singles, 2):
        if first.target.name != second.target.name or _touch(first, second):
            continue
        edits = tuple(sorted((*first.edits, *second.edits)))
        original = first.target.original
        target = Target(first.target.path, first.target.qualname, original, apply(edits, original))
        families = first.families + second.families
        pairs.append(Corruption(target, edits, families, 1 - (1 - first.prior) * (1 - second.prior)))
    pairs.sort(key=lambda pair: (-pair.prior, pair.edits))
    found: list[Corruption] = []
    for pair in pairs:
        if len(found) == most:
            break
        if Gate(pair.target.original, scope).check(pair.target.corrupted) is None:
            found.append(pair)
    return tuple(found)


def _touch(first: Corruption, second: Corruption) -> bool:
    """Whether the edits of two corruptions overlap or change the same line."""
    text = first.target.original
    lines = [
        {
            line
            for edit in item.edits
            for line in range(text.count("\n", 0, edit.start), text.count("\n", 0, edit.end) + 1)
        }
        for item in (first, second)
    ]
    return bool(lines[0] & lines[1])
