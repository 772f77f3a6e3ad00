"""Corruptions of a function by operators or by a replacement, and the records that reproduce them."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, pairwise
from typing import Any, TypeAlias

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.index import Definition, FileIndex, index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.corruption.blank_lines import without_gaps
from gistpoint.core.corruption.edits import TextEdit, apply, edits_between
from gistpoint.core.corruption.gates import Gate, GateRefusal
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.operators.rewrites import REWRITES
from gistpoint.core.corruption.registry import all_operators
from gistpoint.core.corruption.subject import (
    CorruptionTarget,
    NamesInReach,
    Vocabulary,
    read_subject,
    read_text,
)
from gistpoint.core.errors import UserError
from gistpoint.core.running import OnCount
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree

Fault: TypeAlias = tuple[Edits, tuple[str, ...], float]
"""The edits of a fault, its families and its prior."""

MOST_REWRITTEN = 8
"""The maximum number of faults in rewritten code of one function."""
_MOST_PLACES = 4
_LEAST = 3
"""The minimum length of changed code in characters: shorter code may be equal by chance."""
_BONUS = 1.2
"""The factor by which the prior of a fault rises if it is made at all places consistently."""


def together(subject: CorruptionTarget, faults: Iterable[tuple[Operator, Edits]]) -> Iterator[Fault]:
    """Yield faults made at all places where the same text can be changed in the same way.

    No place then contradicts another: for example, a key is converted to lower case neither where it is read
    nor where it is written. Changes that replace fewer than three characters are left out, and so are changes
    at a single place, at more than four places, or at places that overlap.
    """
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[Operator, Edits]]] = {}
    for operator, edits in faults:
        change = tuple((subject.text[edit.start : edit.end], edit.text) for edit in edits)
        if max(len(old) for old, _ in change) >= _LEAST:
            groups.setdefault((operator.family, change), []).append((operator, edits))
    for group in groups.values():
        if not 2 <= len(group) <= _MOST_PLACES:
            continue
        operator, _ = group[0]
        edits = tuple(sorted(chain.from_iterable(edits for _, edits in group)))
        overlap = any(one.end > two.start for one, two in pairwise(edits))
        if not overlap:
            yield edits, (operator.family, "consistent"), min(_BONUS * operator.prior, 0.9)


def in_rewritten(subject: CorruptionTarget, operators: Sequence[Operator]) -> Iterator[Fault]:
    """Yield faults in code that was first rewritten without changing its meaning, highest prior first.

    At most `MOST_REWRITTEN` faults are yielded.
    """
    found: list[tuple[float, Edits, tuple[str, ...]]] = []
    fitting = [operator for operator in operators if operator.in_rewritten]
    for name, rewrite in REWRITES:
        for edits in rewrite(subject):
            text = apply(edits, subject.text)
            rewritten = read_text(text, subject.scope)
            if rewritten is None:
                continue
            changed = _changed(subject.text, text)
            for operator, fault in _faults(rewritten, fitting):
                # Only faults in rewritten lines count, because the others can be made without the rewrite.
                if _is_inside(fault, changed):
                    all_edits = edits_between(subject.text, apply(fault, text))
                    found.append((operator.prior, all_edits, (operator.family, name)))
    # Only the few faults that readers are most likely to miss are kept (decision 93).
    found.sort(key=lambda item: (-item[0], item[1]))
    yield from ((edits, families, prior) for prior, edits, families in found[:MOST_REWRITTEN])


def _is_inside(edits: Edits, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether one of the edits is inside one of the spans."""
    return any(low <= edit.start and edit.end <= high for edit in edits for low, high in spans)


def _faults(subject: CorruptionTarget, operators: Iterable[Operator]) -> Iterator[tuple[Operator, Edits]]:
    for operator in operators:
        yield from ((operator, edits) for edits in operator.find(subject))


def _changed(before: str, after: str) -> list[tuple[int, int]]:
    """Return the offsets in `after` of the lines that `before` does not have."""
    return [(edit.start, edit.end) for edit in edits_between(after, before) if edit.start < edit.end]


SCHEMA = 1


class CorruptionReplayError(UserError):
    """A record of a corruption can't be replayed on a tree."""


def record_of(corruption: Corruption) -> dict[str, Any]:
    """Return a corruption as a JSON object.

    Its `edits` are `[start, end, text]`, with offsets in the text of the function without indentation.
    """
    target = corruption.target
    return {
        "schema": SCHEMA,
        "function": target.name,
        "families": list(corruption.families),
        "edits": [[edit.start, edit.end, edit.text] for edit in corruption.edits],
        "original_sha256": sha256_of_text(target.original),
        "corrupted_sha256": sha256_of_text(target.corrupted),
    }


def replay(record: Mapping[str, Any], tree: SourceTree) -> Target:
    """Return the target that a record describes, reproduced from `tree`.

    Raises `CorruptionReplayError` if the record is damaged or has another schema, if the tree's function is
    missing or different, or if the edits do not fit or do not result in the recorded text.
    """
    try:
        ref = FunctionRef.parse(record["function"])
        edits = tuple(TextEdit(int(start), int(end), str(text)) for start, end, text in record["edits"])
        hashes = record["original_sha256"], record["corrupted_sha256"]
        known = record["schema"] == SCHEMA
    except (CodeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise CorruptionReplayError(f"The record of the corruption is damaged: {error!r}.") from error
    if not known:
        raise CorruptionReplayError(
            f"The record has the schema {record['schema']!r}; {SCHEMA} is the only known schema."
        )
    try:
        original = index_source(ref.path, tree.read(ref.path)).get(ref.qualname).dedented
    except (CodeError, FileNotFoundError) as error:
        raise CorruptionReplayError(
            f"The tree does not contain {ref}.", hint="Replay the record on its own source."
        ) from error
    # Edits are offsets: applied to other code, they would produce code that nobody has checked
    # (decision 30).
    if sha256_of_text(original) != hashes[0]:
        raise CorruptionReplayError(
            f"{ref} is not the function of the record.", hint="Replay the record on its own source."
        )
    try:
        corrupted = apply(edits, original)
    except ValueError as error:
        raise CorruptionReplayError(f"The edits of {ref} do not fit: {error}.") from error
    if sha256_of_text(corrupted) != hashes[1]:
        raise CorruptionReplayError(f"The edits of {ref} do not give the text of the record.")
    return Target(ref.path, ref.qualname, original, corrupted)


def replaced_target(tree: SourceTree, ref: FunctionRef, code: str) -> Target:
    """Return the target whose corrupted text is `code`, put into the file with the file's own decorators.

    Raises `CodeError` if the code is not a single definition with that name, or if the file has no such
    function, and `FileNotFoundError` if the tree has no such file.
    """
    index = index_source(ref.path, tree.read(ref.path))
    definition = index.get(ref.qualname)
    data = replace_definition(index, definition, code)
    corrupted = index_source(ref.path, data).get(ref.qualname).dedented
    return Target(ref.path, ref.qualname, definition.dedented, corrupted)


def same_signature(target: Target) -> bool:
    """Return whether the name, parameters, annotations and defaults are the same as in the original.

    Raises `CodeError` if the code can't be read.
    """
    # The headers, without bodies and decorators, are compared as trees: layout does not count.
    headers = []
    for text in (target.original, target.corrupted):
        node = read_snippet(text).node
        node.body, node.decorator_list = [ast.Pass()], []
        headers.append(node)
    return same_tree(headers[0], headers[1])


def new_comments(target: Target) -> tuple[str, ...]:
    """Return the comments of the corrupted text that the original does not have.

    Raises `CodeError` if the code can't be read.
    """
    added = Counter(_comments(target.corrupted)) - Counter(_comments(target.original))
    return tuple(added.elements())


def new_strings(target: Target) -> tuple[str, ...]:
    """Return the string literals that only the corrupted text has, without the functions' docstrings.

    Bytes are included as their `repr`. Raises `CodeError` if the code can't be read.
    """
    known = set(_strings(target.original))
    return tuple(dict.fromkeys(text for text in _strings(target.corrupted) if text not in known))


def same_docstring(target: Target) -> bool:
    """Return whether the docstring is the same as in the original.

    Raises `CodeError` if the code can't be read.
    """
    texts = [read_snippet(text).definition.docstring_text for text in (target.original, target.corrupted)]
    return texts[0] == texts[1]


def clue_of(target: Target) -> str:
    """Return a sentence about a clue in the corrupted text; empty if there is none.

    Raises `CodeError` if the code can't be read.
    """
    if not same_signature(target):
        return (
            "The function definition was changed: copy its name, parameters and annotations over as they are."
        )
    if not same_docstring(target):
        return "The docstring was changed: copy it over as it is."
    if comments := new_comments(target):
        return f"The comment {comments[0][:100]!r} is new: no comment may be added or reworded."
    if strings := new_strings(target):
        return f"The string {strings[0][:100]!r} is new: it can be found by searching the code."
    return ""


def _comments(text: str) -> Iterator[str]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text + "\n").readline):
            if token.type == tokenize.COMMENT:
                yield " ".join(token.string.split())
    except (tokenize.TokenError, IndentationError) as error:
        raise CodeError(f"The code can't be read: {error}.") from error


def _strings(text: str) -> Iterator[str]:
    node = read_snippet(text).node
    if ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]
    for item in ast.walk(node):
        match item:
            case ast.Constant(value=str(text)):
                yield text
            case ast.Constant(value=bytes(data)):
                yield repr(data)


MOST_PAIRS = 20


@dataclass(frozen=True, slots=True)
class Corruption:
    """A function with edits of `target.original`, in order, and the families of the edits."""

    target: Target
    edits: tuple[TextEdit, ...]
    families: tuple[str, ...]
    prior: float
    """The expected share of good corruptions among similar ones, before any test has run."""


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The corruptions of one function that passed the gates, and how many were dropped, by reason."""

    kept: tuple[Corruption, ...]
    dropped: Mapping[GateRefusal, int] = field(default_factory=dict)


def enumerate_corruptions(
    index: FileIndex,
    definition: Definition,
    vocabulary: Vocabulary,
    operators: Iterable[Operator] | None = None,
    *,
    composed: bool = True,
    most: int | None = None,
    on_reading: OnCount = lambda done, total: None,
) -> Enumeration:
    """Return the corruptions of a function, highest prior first, and how many were dropped, by reason.

    Without `composed`, each is the edit of one operator at one place. If two operators produce the same text,
    it belongs to the one with the higher prior. Only the first `most` are read, by default all.
    """
    scope = vocabulary.scope(definition)
    subject = read_subject(definition, scope)
    if subject is None:
        return Enumeration((), {GateRefusal.UNREADABLE: 1})
    gate = Gate(subject.text, scope)
    dropped: Counter[GateRefusal] = Counter()
    kept: list[Corruption] = []
    seen: set[str] = set()
    # The prior decides the order, and which operator owns a corruption; among equal priors, the edits do, so
    # that the same seed produces the same tasks (decision 32).
    proposed = sorted(
        _proposed(subject, definition, operators, composed), key=lambda item: (-item.prior, item.edits)
    )
    if most is not None and len(proposed) > most:
        dropped[GateRefusal.BEYOND_THE_MOST_LIKELY] = len(proposed) - most
        del proposed[most:]
    for number, item in enumerate(proposed):
        on_reading(number, len(proposed))
        if item.target.corrupted in seen:
            dropped[GateRefusal.REPEATED] += 1
            continue
        seen.add(item.target.corrupted)
        reason = gate.check(item.target.corrupted)
        if reason is None:
            kept.append(item)
        else:
            dropped[reason] += 1
    return Enumeration(tuple(kept), dict(sorted(dropped.items())))


def _proposed(
    subject: CorruptionTarget, definition: Definition, operators: Iterable[Operator] | None, composed: bool
) -> Iterator[Corruption]:
    chosen = tuple(all_operators() if operators is None else operators)
    found = [(operator, tuple(sorted(edits))) for operator, edits in _faults(subject, chosen)]
    faults: list[Fault] = [(edits, (operator.family,), operator.prior) for operator, edits in found]
    if composed:
        faults += [*together(subject, found), *in_rewritten(subject, chosen)]
    for edits, families, prior in faults:
        text, edits = _edited(edits, subject.text)
        target = Target(definition.ref.path, definition.qualname, subject.text, text)
        yield Corruption(target, edits, families, prior)


def _edited(edits: Edits, original: str) -> tuple[str, Edits]:
    """Return the edited original, without the gaps that edits leave, and the edits that produce this text."""
    text = apply(edits, original)
    closed = without_gaps(text, original)
    return closed, edits if closed == text else edits_between(original, closed)


def pairs_of(
    singles: Iterable[Corruption], scope: NamesInReach | None = None, *, most: int = MOST_PAIRS
) -> tuple[Corruption, ...]:
    """Return second-order corruptions: pairs of corruptions of one function whose edits do not touch.

    Pairs serve where single corruptions break hardly any tests. The prior is the probability that at least
    one of the two is good, if they are independent. Pairs with the highest priors come first; those that a
    gate drops are left out, and at most `most` are returned.
    """
    pairs: list[Corruption] = []
    for first, second in combinations(singles, 2):
        if first.target.name != second.target.name or _touch(first, second):
            continue
        edits = tuple(sorted((*first.edits, *second.edits)))
        original = first.target.original
        text, edits = _edited(edits, original)
        target = Target(first.target.path, first.target.qualname, original, text)
        families = first.families + second.families
        pairs.append(Corruption(target, edits, families, 1 - (1 - first.prior) * (1 - second.prior)))
    # Gates cost more than sorting, so they run only until enough pairs have passed.
    pairs.sort(key=lambda pair: (-pair.prior, pair.edits))
    found: list[Corruption] = []
    for pair in pairs:
        if len(found) == most:
            break
        if Gate(pair.target.original, scope).check(pair.target.corrupted) is None:
            found.append(pair)
    return tuple(found)


def _touch(first: Corruption, second: Corruption) -> bool:
    """Return whether the edits of two corruptions overlap or change the same line."""
    return not _edited_lines(first).isdisjoint(_edited_lines(second))


def _edited_lines(corruption: Corruption) -> set[int]:
    """Return the lines of the original that the edits of a corruption touch, counted from 0."""
    text = corruption.target.original
    found: set[int] = set()
    for edit in corruption.edits:
        first, last = text.count("\n", 0, edit.start), text.count("\n", 0, edit.end)
        found.update(range(first, last + 1))
    return found
