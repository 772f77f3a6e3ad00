"""Faults in names: a method or function of the same kind, another attribute, another variable, swapped arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_OPPOSITE_WORDS = """
start/end start/stop begin/end first/last left/right lo/hi low/high old/new prev/next previous/next key/value k/v
key/val src/dst source/target min/max row/col x/y width/height head/tail a/b i/j m/n lower/upper before/after
open/close parent/child in/out args/kwargs hits/misses line/col line/column name/value index/count idx/count
size/count pos/start pos/end item/key current/last current/previous add/remove push/pop get/set inc/dec enter/exit
"""
SHARED = 2
"""The likeness of names that share a word, or are single letters."""
PAIRED = 3
"""The likeness of names that are a known pair, such as `start` and `end`."""
_OPPOSITES = frozenset(frozenset(pair.split("/")) for pair in _OPPOSITE_WORDS.split())


def alike(first: str, second: str) -> int:
    """Return how alike two names are: `PAIRED`, `SHARED` or 0."""
    one, two = _words(first), _words(second)
    if not one or not two:
        return 0
    if len(one) == len(two):
        differing = [pair for pair in zip(one, two, strict=True) if pair[0] != pair[1]]
        if len(differing) == 1 and frozenset(differing[0]) in _OPPOSITES:
            return PAIRED
    shared = [word for word in one if word in two and len(word) > 1]
    if shared or (len(first) == len(second) == 1):
        return SHARED
    return SHARED if first.rstrip("s") == second.rstrip("s") else 0


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def shapes_of(subject: CorruptionTarget) -> Mapping[str, frozenset[str]]:
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


def _shape(subject: CorruptionTarget, node: ast.Name) -> set[str]:
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


_MOST = 2
"""Most siblings tried for one name."""
_PAIRS = (
    ("append", "appendleft"), ("pop", "popleft"), ("extend", "extendleft"), ("lstrip", "rstrip"), ("find", "rfind"),
    ("index", "rindex"), ("partition", "rpartition"), ("startswith", "endswith"), ("lower", "upper"),
    ("ljust", "rjust"), ("removeprefix", "removesuffix"), ("issubset", "issuperset"), ("floor", "ceil"),
    ("union", "intersection"), ("bisect_left", "bisect_right"), ("bisect", "bisect_left"),
    ("insort_left", "insort_right"), ("isdigit", "isalnum"), ("isalpha", "isalnum"), ("match", "search"),
    ("fullmatch", "match"), ("difference", "symmetric_difference"), ("popitem", "pop"), ("starmap", "map"),
    ("zip_longest", "zip"), ("takewhile", "dropwhile"), ("nlargest", "nsmallest"),
)  # fmt: skip
_ONE_WAY: Mapping[str, tuple[str, ...]] = {
    "strip": ("rstrip", "lstrip"), "search": ("match",), "split": ("rsplit",), "casefold": ("lower",),
    "splitlines": ("split",), "isnumeric": ("isdigit",), "isdecimal": ("isdigit",),
}  # fmt: skip
_FUNCTIONS = (("min", "max"), ("any", "all"), ("floor", "ceil"))


def _method_siblings() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = dict(_ONE_WAY)
    for first, second in _PAIRS:
        table[first] = (*table.get(first, ()), second)
        table[second] = (*table.get(second, ()), first)
    return table


_METHODS = _method_siblings()
_BUILTIN = {name: other for pair in _FUNCTIONS for name, other in (pair, pair[::-1])}
_OF_PATTERNS = frozenset({"match", "fullmatch", "search"})
_NO_ARGUMENTS = frozenset({"popleft", "appendleft", "splitlines"})


def sibling_method(subject: CorruptionTarget) -> Iterator[Edits]:
    """A method of the same objects that does something similar: `rstrip` for `lstrip`, `max` for `min`."""
    for node in subject.of(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _BUILTIN:
            yield subject.replaced(node.func, _BUILTIN[node.func.id])
        if not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr
        for other in _METHODS.get(name, ()):
            if not _fits(subject, node, name, other):
                continue
            end = subject.span(node.func)[1]
            yield (TextEdit(end - len(name), end, other),)


def _is_pattern(subject: CorruptionTarget, node: ast.Call) -> bool:
    """Whether a call is visibly one of a regular expression."""
    of = subject.source(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    return of.rpartition(".")[2].isupper() or bool(re.search(r"(^|_)(re|regexp?|pattern|rx)$", of.lower()))


def _fits(subject: CorruptionTarget, node: ast.Call, name: str, other: str) -> bool:
    if name in _OF_PATTERNS and not _is_pattern(subject, node):
        return False
    if name == "split":
        return len(node.args) + len(node.keywords) == 2
    if other in _NO_ARGUMENTS or name in _NO_ARGUMENTS:
        own = subject.scope.uses
        return own.get("deque", 0) > 0 and not (name == "pop" and node.args)
    return not (name == "pop" and other == "popitem")


def swapped_arguments(subject: CorruptionTarget) -> Iterator[Edits]:
    """Two adjacent arguments that are used in the same way, exchanged."""
    shapes = shapes_of(subject)
    for node in subject.of(ast.Call):
        for first, second in zip(node.args, node.args[1:], strict=False):
            names = [item.id if isinstance(item, ast.Name) else "" for item in (first, second)]
            plain = all(name in shapes for name in names)
            alike_in_use = shapes.get(names[0], frozenset()) & shapes.get(names[1], frozenset())
            if plain and (alike(*names) == SHARED or alike_in_use) and alike(*names) != PAIRED:
                one, two = subject.span(first), subject.span(second)
                yield TextEdit(*one, subject.text[slice(*two)]), TextEdit(*two, subject.text[slice(*one)])


OPERATORS = (
    Operator("sibling method", 0.14, sibling_method),
    Operator("swapped arguments", 0.15, swapped_arguments),
)
