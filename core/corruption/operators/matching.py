"""Faults in matching: a lost alternative, a looser match, or a lost limit."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from gistpoint.core.code.nodes import has_any
from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.naming import words
from gistpoint.core.corruption.operators.layout import part_dropped
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import LOOPS, is_not, name_of, without
from gistpoint.core.corruption.subject import CorruptionTarget

_LIMITED: Mapping[str, int] = {
    "split": 2,
    "rsplit": 2,
    "replace": 3,
    "strip": 1,
    "lstrip": 1,
    "rstrip": 1,
    "find": 2,
    "rfind": 2,
    "index": 2,
    "startswith": 2,
    "endswith": 2,
    "match": 2,
    "search": 2,
    "count": 2,
    "round": 2,
    "sum": 2,
    "pop": 1,
}
"""The number of arguments with which the last one can be left out."""
_FROM = frozenset({"find", "rfind", "index", "startswith", "match", "search"})
"""Functions whose last argument is a starting point: in a loop, they would find the same place again."""
_STANDING = (ast.BoolOp, ast.If, ast.While, ast.IfExp, ast.Return, ast.Assign, ast.comprehension)
_FEW = 2
"""The maximum length of a named list in which a reader notices a missing value."""
_BUILT_IN = frozenset({"list", "tuple", "set", "frozenset", "dict", "int", "float", "bool", "str", "bytes"})
"""Types that a reader knows to belong together."""
_BY_SEVERAL = frozenset({"isinstance", "issubclass", "startswith", "endswith"})
"""Functions and methods whose last argument may contain several values, one of which must match."""
_COLLECTIONS: tuple[type[ast.Tuple | ast.Set | ast.List], ...] = (ast.Tuple, ast.Set, ast.List)


@at_each(*_COLLECTIONS)
def lost_alternative(subject: CorruptionTarget, node: ast.Tuple | ast.Set | ast.List) -> Iterator[Edits]:
    """Yield edits that leave out one of several values or types that are treated alike."""
    items = node.elts
    if len(items) < 2 or has_any(ast.Starred, items) or _is_known_whole(items):
        return
    parent = subject.parent(node)
    is_list_of_values = len(items) > _FEW and _listed(parent, node, items)
    if is_list_of_values or _matched(parent, node):
        for place in range(len(items)):
            yield from _alternative_dropped(subject, parent, node, place)


def _alternative_dropped(
    subject: CorruptionTarget, parent: ast.AST, node: ast.Tuple | ast.Set | ast.List, place: int
) -> Iterator[Edits]:
    match parent, without(node.elts, place):
        case _, [_, _, *_]:
            yield part_dropped(list(map(subject.span, node.elts)), place)
        case ast.Compare(left=left, ops=[kind]), [value]:
            # `x in (a,)` would be noticed: a single value is normally compared with `==`.
            span = subject.between(left, node)
            if span:
                sign = "==" if isinstance(kind, ast.In) else "!="
                yield TextEdit(*span, sign), TextEdit(*subject.span(node), subject.source(value))
        case ast.Call(), [value] if isinstance(node, ast.Tuple):
            yield subject.replaced(node, subject.source(value))


def _is_known_whole(items: Sequence[ast.expr]) -> bool:
    """Return whether readers know which items belong together, as for several built-in types or a pair."""
    return sum(getattr(item, "id", "") in _BUILT_IN for item in items) > _FEW or _is_pair(items)


def _listed(parent: ast.AST, node: ast.expr, items: Sequence[ast.expr]) -> bool:
    """Return whether a collection that has a name, or is iterated over, lists values of one kind."""
    has_name = isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name)
    gone_through = isinstance(parent, ast.For | ast.comprehension) and parent.iter is node
    kinds = {type(item.value) if isinstance(item, ast.Constant) else type(item) for item in items}
    # A named collection counts although it may also be used elsewhere (decision 93).
    return (has_name or gone_through) and len(kinds) == 1 and all(map(_is_value, items))


def _is_value(item: ast.expr) -> bool:
    return isinstance(item, ast.Constant | ast.Attribute) or ast.unparse(item)[:1].isupper()


def _is_pair(items: Sequence[ast.expr]) -> bool:
    """Return whether these are two names that share a word, so that one alone looks incomplete."""
    match items:
        case [one, other]:
            return not set(words(name_of(one))).isdisjoint(words(name_of(other)))
    return False


def _matched(parent: ast.AST, node: ast.expr) -> bool:
    """Return whether a collection lists the values against which something is matched."""
    match parent:
        case ast.Compare(ops=[*_, ast.In() | ast.NotIn()], comparators=[*_, last]):
            return last is node
        case ast.Call(func=called, args=[*_, last]) if name_of(called) in _BY_SEVERAL:
            return last is node
    return False


@at_each(ast.Call)
def lost_limit(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that leave out a last argument that limits a call such as a search, split or rounding."""
    name = name_of(node.func)
    has_limit = _LIMITED.get(name) == len(node.args) and not node.keywords
    if has_limit and _is_limit(subject, name, node):
        spans = list(map(subject.span, node.args))
        start = spans[-2][1] if len(spans) > 1 else spans[0][0]
        yield (TextEdit(start, spans[-1][1], ""),)
        match name, node.args[0]:
            case "split" | "rsplit", ast.Constant(value=" "):
                yield (TextEdit(spans[0][0], spans[-1][1], ""),)


def _is_limit(subject: CorruptionTarget, name: str, node: ast.Call) -> bool:
    """Return whether the last argument only limits a call: without it, the call is valid and a loop ends."""
    of_name = isinstance(node.func, ast.Name)
    if of_name != (name in ("round", "sum")) or isinstance(node.args[-1], ast.Starred):
        return False
    if name == "pop":
        return isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
    return name not in _FROM or subject.nearest(node, LOOPS) is None


@at_each(ast.Call)
def looser_match(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that replace `a.startswith(b)` with `b in a`, or `isinstance(a, B)` with `type(a) is B`."""
    parent = subject.parent(node)
    if is_not(parent):
        if isinstance(subject.parent(parent), _STANDING):
            yield from _loosened(subject, node, parent, "not ")
    elif isinstance(parent, _STANDING):
        yield from _loosened(subject, node, node, "")


def _loosened(subject: CorruptionTarget, node: ast.Call, whole: ast.expr, sign: str) -> Iterator[Edits]:
    match node:
        case ast.Call(
            func=ast.Attribute(value=value, attr="startswith" | "endswith"),
            args=[ast.Constant() | ast.Name() | ast.Attribute() as part],
            keywords=[],
        ):
            yield subject.replaced(whole, f"{subject.source(part)} {sign}in {subject.source(value)}")
        case ast.Call(
            func=ast.Name(id="isinstance"),
            args=[ast.Name() | ast.Attribute() | ast.Subscript() as value, ast.Name(id=name) as kind],
            keywords=[],
        ) if name not in ("type", "bool"):
            verb = "is not" if sign else "is"
            yield subject.replaced(whole, f"type({subject.source(value)}) {verb} {subject.source(kind)}")


@at_each(ast.Compare)
def other_identity(subject: CorruptionTarget, node: ast.Compare) -> Iterator[Edits]:
    """Yield edits that replace `is` with `==`, or `is not` with `!=`, between two values."""
    match node:
        case ast.Compare(
            left=ast.Name() | ast.Attribute() | ast.Subscript() as left,
            ops=[ast.Is() | ast.IsNot() as kind],
            comparators=[ast.Name() | ast.Attribute() | ast.Subscript() as right],
        ):
            span = subject.between(left, right)
            if span:
                yield (TextEdit(*span, "==" if isinstance(kind, ast.Is) else "!="),)


OPERATORS = (
    Operator("lost alternative", 0.45, lost_alternative, in_rewritten=True),
    Operator("lost limit", 0.4, lost_limit, in_rewritten=True),
    Operator("looser match", 0.08, looser_match),
    Operator("other identity", 0.03, other_identity),
)
