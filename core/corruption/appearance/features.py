"""Computes features of a corruption that a reader notices, or that describe its place in the function."""

from __future__ import annotations

import ast
import keyword
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import quantiles

from gistpoint.core.code.nodes import has_any
from gistpoint.core.corruption.appearance.changes import Change, Version
from gistpoint.core.corruption.appearance.contradictions import (
    SurroundingProse,
    against_annotation,
    agreement_lost,
    comments_in_reach,
    contradiction,
    message_contradicted,
)
from gistpoint.core.corruption.appearance.naturalness import FunctionModel, mean_bits
from gistpoint.core.corruption.appearance.symmetry import LineCounts, pair_broken
from gistpoint.core.corruption.naming import of_one_stem, words
from gistpoint.core.corruption.shapes import names_read

_BOUNDS = frozenset(("<", "<=", ">", ">="))
_TURNED = frozenset(("not", "==", "!=", "is", "in"))
_FIXED = frozenset(("None", "True", "False"))
_LOGIC = frozenset(("and", "or"))
_MOST = 3.0
"""The largest value of a count: further findings make a corruption no easier to see."""
_LIMIT = 40.0
"""The largest absolute value of a feature, in bits: beyond it, code looks no odder."""


class FunctionReading:
    """One function with the data for comparing its versions with the original, which is read once."""

    def __init__(self, original: Version, qualname: str, model: FunctionModel, elsewhere: LineCounts) -> None:
        self.original = original
        self._model, self._elsewhere = model, elsewhere
        self._around = SurroundingProse(qualname, original)
        self._bits = model.bits(original.facts.text)

    def features(self, corrupted: Version, findings: int = 0) -> dict[str, float]:
        """Return the features of a version by their names, each limited to an absolute value of `_LIMIT`.

        `findings` is the number of linter findings that the original does not have.
        """
        # The features keep the order of a task's provenance; the weights decide which of them count
        # (decision 95).
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
            **_lost(change, around.mentioned),
            **_place(change),
            "examples": float(">>>" in corrupted.facts.text),
            "said": math.log2(1 + around.number_of_words),
        }
        return {name: round(min(max(value, -_LIMIT), _LIMIT), 4) for name, value in found.items()}

    def _naturalness(self, change: Change) -> dict[str, float]:
        bits = self._model.bits(change.after.facts.text)
        rest = list(filter(None, map(bits.get, change.after.code_lines - change.new)))
        usual = _mean([_mean(values) for values in rest])
        # The lines are compared with the oddest tenth of the others, because any function has some odd lines.
        peaks = list(map(max, rest))
        high = quantiles(peaks, n=10)[-1] if len(peaks) > 1 else max(peaks, default=0.0)
        new = list(filter(None, map(bits.get, change.new)))
        gone = [self._bits.get(line, ()) for line in change.gone]
        shown = {
            "surprise": mean_bits(bits, change.new) - usual,
            "peak": max(max(map(max, new), default=0.0) - high, 0.0),
            "less_natural": sum(map(sum, new)) - sum(map(sum, gone)) if gone else 0.0,
        }
        return {
            **(shown if new else dict.fromkeys(shown, 0.0)),
            "expected": -mean_bits(self._bits, change.gone) if gone else -usual,
        }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def idle(change: Change) -> float:
    """Return the number of new oddities, such as unused names and unreachable statements; at most 3."""
    before, after = change.before.facts, change.after.facts
    number = len(after.unused - before.unused) + len(after.unbound - before.unbound)
    number += max(after.unreachable - before.unreachable, 0) + (after.oddities - before.oddities).total()
    number += before.rows.broken_by(after.rows) + (after.idle and not before.idle)
    return min(float(number), _MOST)


def doubled_names(change: Change) -> float:
    """Return how many more names than before are repeated within a changed line; at least 0."""
    return float(max(_doubled(change.after, change.new) - _doubled(change.before, change.gone), 0))


def _doubled(version: Version, lines: frozenset[int]) -> int:
    found = (token for token in version.tokens if token.line in lines and token.text.isidentifier())
    return sum(number - 1 for number in Counter((token.line, token.text) for token in found).values())


def _kinds(change: Change) -> Mapping[str, float]:
    """Return the features of the kinds of tokens that are exchanged."""
    lost, added = change.tokens
    gone, new = set(change.lost), set(change.added)
    swapped, touched = (lost | added).keys(), gone | new
    names, other_names = _names(gone), _names(new)
    replaced = bool(gone) and bool(new)
    steps = _on_both_sides(_BOUNDS, gone, new)
    return {
        "swap": float(bool(names) and bool(other_names)),
        "constant": float(replaced and any(token[:1].isdigit() for token in touched)),
        "flag": float(_on_both_sides(_FIXED, gone, new)),
        "none_test": float("None" in gone ^ new and "is" in touched),
        "negation": float(not steps and not _TURNED.isdisjoint(gone ^ new)),
        "boundary": float(steps or swapped <= {"+", "-", "1"}),
        "logic": float(_on_both_sides(_LOGIC, gone, new)),
        "removal": float(bool(gone) and not new),
        "moved": float(not touched),
        "foreign": float(len(other_names - set(change.before.facts.words))),
    }


def _names(tokens: Iterable[str]) -> set[str]:
    return {token for token in tokens if token.isidentifier() and not keyword.iskeyword(token)}


def _on_both_sides(tokens: frozenset[str], gone: set[str], new: set[str]) -> bool:
    """Return whether one of these tokens is lost and one of them is added."""
    return not tokens.isdisjoint(gone) and not tokens.isdisjoint(new)


def _lost(change: Change, mentioned: frozenset[str]) -> Mapping[str, float]:
    """Return the features of removed code, of remaining mentions, and of places that became constant."""
    whole = [] if change.new else [item for item in change.before.depths if item.lineno in change.gone]
    after = change.after.facts
    reads, names = Counter(names_read(after.nodes)), _names(change.lost)
    about = mentioned.union(*map(words, after.texts))
    kinds = {
        "call_gone": (ast.Expr,),
        "store_gone": (ast.Assign, ast.AugAssign),
        "step_gone": (ast.AugAssign,),
        "case_gone": (ast.If,),
    }
    part_gone = bool(change.lost) and not change.added and not whole
    return {
        **{feature: float(has_any(kind, whole)) for feature, kind in kinds.items()},
        "part_gone": float(part_gone),
        "left_over": sum(1 / (1 + reads[name]) for name in names & after.bound - {"self", "cls"}),
        "mention": float(sum(of_one_stem(words(token), about) for token in change.lost)),
        "forgotten": -float(len(names - set(after.words))),
        "fixed": float(len(after.constant_places - change.before.facts.constant_places)),
    }


def _place(change: Change) -> Mapping[str, float]:
    """Return the features of the change's place and size, and of the function's size."""
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
        "in_return": float(has_any(ast.Return, statements)),
        "in_test": float(has_any((ast.If, ast.While), statements)),
    }
