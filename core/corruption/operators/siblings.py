"""Faults in names: a method or function of the same kind, another attribute, another variable, swapped arguments."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
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


def _fits(subject: CorruptionTarget, node: ast.Call, name: str, other: str) -> bool:
    if name == "split":
        return len(node.args) + len(node.keywords) == 2
    if other in _NO_ARGUMENTS or name in _NO_ARGUMENTS:
        own = subject.scope.uses
        return own.get("deque", 0) > 0 and not (name == "pop" and node.args)
    return not (name == "pop" and other == "popitem")


def sibling_function(subject: CorruptionTarget) -> Iterator[Edits]:
    """Another method of `self`, or another function of the module, with a like name, that takes the same arguments."""
    for node in subject.of(ast.Call):
        keywords = [keyword.arg for keyword in node.keywords if keyword.arg is not None]
        if len(keywords) < len(node.keywords) or any(isinstance(item, ast.Starred) for item in node.args):
            continue
        own = isinstance(node.func, ast.Attribute) and _is_self(subject, node.func.value)
        table = subject.scope.own.methods if own else subject.scope.functions
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in table or (isinstance(node.func, ast.Attribute) and not own):
            continue
        others = [
            other
            for other in sorted(table)
            if other not in (name, subject.node.name)
            and table[other].takes(len(node.args), keywords)
            and alike(name, other)
        ]
        for other in sorted(others, key=lambda other: -alike(name, other))[:_MOST]:
            end = subject.span(node.func)[1]
            yield (TextEdit(end - len(name), end, other),)


def sibling_attribute(subject: CorruptionTarget) -> Iterator[Edits]:
    """Another attribute of `self` with a like name, that is not known to be used in other ways."""
    uses: defaultdict[str, set[str]] = defaultdict(set)
    for node in subject.of(ast.Attribute):
        if _is_self(subject, node.value):
            uses[node.attr] |= _use(subject, node)
    for node in subject.of(ast.Attribute):
        parent = subject.parent(node)
        if not _is_self(subject, node.value) or (isinstance(parent, ast.Call) and parent.func is node):
            continue
        if node.attr not in subject.scope.own.attributes:
            continue
        own = sorted(subject.scope.own.attributes)
        others = [other for other in own if other != node.attr and other.startswith("_") == node.attr.startswith("_")]
        near = sorted((other for other in others if alike(node.attr, other)), key=lambda o: -alike(node.attr, o))
        for other in near[:_MOST]:
            end = subject.span(node)[1]
            own_use = _use(subject, node)
            if not (uses[other] and own_use) or uses[other] & own_use:
                yield (TextEdit(end - len(node.attr), end, other),)


def _use(subject: CorruptionTarget, node: ast.Attribute) -> set[str]:
    """Return the facts about a value's type that its use shows: an attribute, or that it is a collection."""
    parent = subject.parent(node)
    if isinstance(parent, ast.Attribute):
        return {parent.attr}
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return {"indexed"}
    return {"iterated"} if isinstance(parent, ast.For | ast.comprehension) and parent.iter is node else set()


def sibling_name(subject: CorruptionTarget) -> Iterator[Edits]:
    """Another variable that is used in the same way or has a like name: a stale one, the other of a pair."""
    shapes = shapes_of(subject)
    for node in subject.of(ast.Name):
        if not isinstance(node.ctx, ast.Load) or node.id not in shapes or node.id in ("self", "cls"):
            continue
        parent = subject.parent(node)
        if isinstance(parent, ast.Starred) or (isinstance(parent, ast.keyword) and parent.arg is None):
            continue
        scores = {
            other: alike(node.id, other) + 2 * len(shapes[node.id] & shapes[other])
            for other in sorted(shapes)
            if other != node.id
        }
        near = sorted((other for other, score in scores.items() if score >= 2), key=lambda other: -scores[other])
        for other in near[:_MOST]:
            yield subject.replaced(node, other)


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


def _is_self(subject: CorruptionTarget, node: ast.expr) -> bool:
    given = [*subject.node.args.posonlyargs, *subject.node.args.args]
    return isinstance(node, ast.Name) and bool(given) and node.id == given[0].arg and node.id in ("self", "cls")


OPERATORS = (
    Operator("sibling method", 0.14, sibling_method),
    Operator("sibling function", 0.14, sibling_function),
    Operator("sibling attribute", 0.29, sibling_attribute),
    Operator("sibling name", 0.17, sibling_name),
    Operator("swapped arguments", 0.15, swapped_arguments),
)
