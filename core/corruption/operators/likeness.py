"""How alike two names are, by their words and by how a function uses them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from gistpoint.core.corruption.subject import Subject

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_PAIRS = """
start/end start/stop begin/end first/last left/right lo/hi low/high old/new prev/next previous/next key/value k/v
key/val src/dst source/target min/max row/col x/y width/height head/tail a/b i/j m/n lower/upper before/after
open/close parent/child in/out args/kwargs hits/misses line/col line/column name/value index/count idx/count
size/count pos/start pos/end item/key current/last current/previous add/remove push/pop get/set inc/dec enter/exit
"""
_OPPOSITES = frozenset(frozenset(pair.split("/")) for pair in _PAIRS.split())


def alike(first: str, second: str) -> int:
    """Return how alike two names are: 0 not at all, 2 for a shared word or one letter, 3 for a known pair."""
    one, two = _words(first), _words(second)
    if not one or not two:
        return 0
    if len(one) == len(two):
        differing = [pair for pair in zip(one, two, strict=True) if pair[0] != pair[1]]
        if len(differing) == 1 and frozenset(differing[0]) in _OPPOSITES:
            return 3
    shared = [word for word in one if word in two and len(word) > 1]
    if shared or (len(first) == len(second) == 1):
        return 2
    return 2 if first.rstrip("s") == second.rstrip("s") else 0


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def shapes_of(subject: Subject) -> Mapping[str, frozenset[str]]:
    """Return how each variable of a function is used: iterated, indexed, by its attributes, in sums."""
    found: dict[str, set[str]] = {}
    for argument in ast.walk(subject.node.args):
        if isinstance(argument, ast.arg):
            found.setdefault(argument.arg, set())
    for node in subject.of(ast.Name):
        if isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, set())
    for node in subject.of(ast.Name):
        if node.id in found:
            found[node.id] |= _shape(subject, node)
    return {name: frozenset(shapes) for name, shapes in found.items()}


def _shape(subject: Subject, node: ast.Name) -> set[str]:
    parent = subject.parent(node)
    if isinstance(parent, ast.Attribute):
        return {f".{parent.attr}"}
    if isinstance(parent, ast.Subscript):
        return {"indexed" if parent.value is node else "index"}
    if isinstance(parent, ast.Call):
        return set() if parent.func is node else _argument(parent)
    if isinstance(parent, ast.For | ast.comprehension):
        return {"iterated"} if parent.iter is node else set()
    if isinstance(parent, ast.BinOp | ast.AugAssign):
        return {"in a sum"}
    if isinstance(parent, ast.Compare):
        ordered = any(isinstance(kind, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for kind in parent.ops)
        return {"ordered"} if ordered else set()
    return {"bound"} if isinstance(parent, ast.Slice) else set()


def _argument(call: ast.Call) -> set[str]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return {f"{name}()"} if name in ("len", "iter", "next", "int", "str", "list", "set", "dict", "sorted") else set()
