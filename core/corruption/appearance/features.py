"""The features of a corruption as a reader meets it; each is larger the more it shows, or describes its place."""

from __future__ import annotations

import ast
import keyword
import math
from collections import Counter
from collections.abc import Mapping
from statistics import quantiles

from gistpoint.core.corruption.appearance.changes import Change, Version
from gistpoint.core.corruption.appearance.contradictions import (
    SaidAround,
    against_annotation,
    agreement_lost,
    comments_in_reach,
    contradiction,
    message_contradicted,
)
from gistpoint.core.corruption.appearance.naturalness import FunctionModel, mean_bits
from gistpoint.core.corruption.appearance.symmetry import LineCounts, pair_broken
from gistpoint.core.corruption.naming import of_one_stem, words

_BOUNDS = frozenset(("<", "<=", ">", ">="))
_TURNED = frozenset(("not", "==", "!=", "is", "in"))
_FIXED = frozenset(("None", "True", "False"))
_MOST = 3.0
"""Counts above this are no worse."""
_LIMIT = 40.0
"""Bits beyond which code can't look odder."""


class FunctionReading:
    """One function with everything that a reader of its versions compares them with; its original is read once."""

    def __init__(self, original: Version, qualname: str, model: FunctionModel, elsewhere: LineCounts) -> None:
        self.original = original
        self._model, self._elsewhere = model, elsewhere
        self._around = SaidAround(qualname, original)
        self._bits = model.bits(original.facts.text)

    def features(self, corrupted: Version, findings: int = 0) -> dict[str, float]:
        """Return the features of a version; `findings` is how many more a linter has than in the original."""
        change = Change(self.original, corrupted)
        broken, repeated = pair_broken(change)
        around = self._around
        found = {
            "lint": float(findings),
            **self._naturalness(change),
            "docstring": contradiction(change, around.docstring),
            "comments": contradiction(change, comments_in_reach(change, around)),
            "names": contradiction(change, around.names),
            "annotation": against_annotation(change),
            "message": message_contradicted(change),
            "disagreement": agreement_lost(change),
            "asymmetry": broken,
            "repeated": repeated,
            "unlike_elsewhere": self._elsewhere.unlike_elsewhere(change),
            "idle": idle(change),
            "doubled_names": doubled_names(change),
            **_kinds(change),
            **_lost(change, around.spoken),
            **_place(change),
            "examples": float(">>>" in corrupted.facts.text),
            "said": math.log2(1 + around.number_of_words),
        }
        return {name: round(min(max(value, -_LIMIT), _LIMIT), 4) for name, value in found.items()}

    def _naturalness(self, change: Change) -> dict[str, float]:
        bits = self._model.bits(change.after.facts.text)
        code = change.after.code_lines
        rest = [bits[line] for line in code - change.new if line in bits]
        lines = [sum(values) / len(values) for values in rest]
        peaks = [max(values) for values in rest]
        new = [line for line in change.new if line in bits]
        usual = sum(lines) / len(lines) if lines else 0.0
        high = quantiles(peaks, n=10)[-1] if len(peaks) > 1 else max(peaks, default=0.0)
        peak = max((max(bits[line]) for line in new), default=0.0)
        spent = sum(sum(bits[line]) for line in new)
        before = sum(sum(self._bits.get(line, ())) for line in change.gone)
        return {
            "surprise": mean_bits(bits, new) - usual if new else 0.0,
            "peak": max(peak - high, 0.0) if new else 0.0,
            "less_natural": spent - before if new and change.gone else 0.0,
            "expected": -mean_bits(self._bits, change.gone) if change.gone else -usual,
        }


def idle(change: Change) -> float:
    """Return how much of the code is newly dead, idle or odd: unused names, repeated tests, rows that break."""
    before, after = change.before.facts, change.after.facts
    number = len(after.unused - before.unused) + len(after.unbound - before.unbound)
    number += max(after.unreachable - before.unreachable, 0) + (after.oddities - before.oddities).total()
    number += before.rows.broken_by(after.rows) + (after.idle and not before.idle)
    return min(float(number), _MOST)


def doubled_names(change: Change) -> float:
    """Return how many more names occur twice in one changed line than before."""
    return float(max(_doubled(change.after, change.new) - _doubled(change.before, change.gone), 0))


def _doubled(version: Version, lines: frozenset[int]) -> int:
    counts = Counter((token.line, token.text) for token in version.tokens if token.line in lines)
    return sum(number - 1 for (_, text), number in counts.items() if number > 1 and text.isidentifier())


def _kinds(change: Change) -> Mapping[str, float]:
    """Return what kinds of tokens are exchanged."""
    lost, added = change.tokens
    gone, new = set(change.lost), set(change.added)
    swapped = (lost | added).keys()
    numbers = {token for token in gone | new if token[:1].isdigit()}
    names = [{token for token in side if token.isidentifier() and not keyword.iskeyword(token)} for side in (gone, new)]
    steps = _BOUNDS & gone and _BOUNDS & new
    return {
        "swap": float(bool(names[0] and names[1])),
        "constant": float(bool(numbers and gone and new)),
        "flag": float(bool(_FIXED & gone and _FIXED & new)),
        "none_test": float(("None" in gone) != ("None" in new) and "is" in gone | new),
        "negation": float(bool(_TURNED & (gone ^ new)) and not steps),
        "boundary": float(bool(steps) or swapped <= {"+", "-", "1"}),
        "logic": float(bool({"and", "or"} & gone and {"and", "or"} & new)),
        "removal": float(bool(gone) and not new),
        "moved": float(not gone and not new),
        "foreign": float(len(names[1] - set(change.before.facts.words))),
    }


def _lost(change: Change, spoken: frozenset[str]) -> Mapping[str, float]:
    """Return what kind of code is gone without another in its place, and how much of it is still spoken of."""
    whole = [] if change.new else [item for item in change.before.depths if item.lineno in change.gone]
    after = change.after.facts
    reads = Counter(item.id for item in after.nodes if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load))
    names = {token for token in change.lost if token.isidentifier() and not keyword.iskeyword(token)}
    texts = {word for text in after.strings if isinstance(text, str) for word in words(text)}
    return {
        "call_gone": float(any(isinstance(item, ast.Expr) for item in whole)),
        "store_gone": float(any(isinstance(item, ast.Assign | ast.AugAssign) for item in whole)),
        "step_gone": float(any(isinstance(item, ast.AugAssign) for item in whole)),
        "case_gone": float(any(isinstance(item, ast.If) for item in whole)),
        "part_gone": float(bool(change.lost) and not change.added and not whole),
        "left_over": sum(1 / (1 + reads[name]) for name in names & after.bound - {"self", "cls"}),
        "mention": float(sum(of_one_stem(words(token), spoken | texts) for token in change.lost if words(token))),
        "forgotten": -float(len(names - set(after.words))),
        "fixed": float(len(after.constant_places - change.before.facts.constant_places)),
    }


def _place(change: Change) -> Mapping[str, float]:
    """Return where the change stands, and how large it and the function are."""
    after = change.after
    size = len(change.before.code_lines)
    statements = after.statements(change.seen)
    depth = max((after.depths[item] for item in statements), default=0)
    whole = sum(max(len(hunk.before), len(hunk.after)) for hunk in change.hunks)
    return {
        "size": -math.log2(1 + size),
        "changed": math.log2(1 + whole),
        "places": float(len(change.hunks)),
        "share": whole / max(size, 1),
        "depth": float(depth),
        "in_return": float(any(isinstance(item, ast.Return) for item in statements)),
        "in_test": float(any(isinstance(item, ast.If | ast.While) for item in statements)),
    }
