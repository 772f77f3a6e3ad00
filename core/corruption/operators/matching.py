"""Faults in matching: an alternative lost, a looser or a narrower match, an argument that limits it left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.naming import words
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_LIMITED: Mapping[str, int] = {
    "split": 2, "rsplit": 2, "replace": 3, "strip": 1, "lstrip": 1, "rstrip": 1, "find": 2, "rfind": 2, "index": 2,
    "startswith": 2, "endswith": 2, "match": 2, "search": 2, "count": 2, "round": 2, "sum": 2, "pop": 1,
}  # fmt: skip
"""The number of arguments after which the last one can be left out."""
_FROM = frozenset({"find", "rfind", "index", "startswith", "match", "search"})
"""Those whose last argument says where to begin: in a loop they would find the same thing again and again."""
_STANDING = (ast.BoolOp, ast.If, ast.While, ast.IfExp, ast.Return, ast.Assign, ast.comprehension)
_FEW = 2
"""Number of values in a list that has a name of which each would be missed."""
_BUILT_IN = frozenset({"list", "tuple", "set", "frozenset", "dict", "int", "float", "bool", "str", "bytes"})
"""Types of which a reader knows what belongs together."""
_PLAIN = (ast.Name, ast.Attribute, ast.Subscript)


def lost_alternative(subject: CorruptionTarget) -> Iterator[Edits]:
    """One of several values or types that are meant alike left out."""
    for node in subject.nodes:
        if not isinstance(node, ast.Tuple | ast.Set | ast.List):
            continue
        parent, items = subject.parent(node), node.elts
        if len(items) < 2 or any(isinstance(item, ast.Starred) for item in items):
            continue
        if not (_matched(parent, node) or (len(items) > _FEW and _listed(parent, node))):
            continue
        if sum(getattr(item, "id", "") in _BUILT_IN for item in items) > _FEW or _pair(items):
            continue
        for place in range(len(items)):
            rest = [subject.source(item) for other, item in enumerate(items) if other != place]
            if len(rest) > 1:
                cut = (items[place - 1], items[place]) if place else (items[0], items[1])
                low, high = (subject.span(cut[0])[1], subject.span(cut[1])[1])
                if not place:
                    low, high = subject.span(cut[0])[0], subject.span(cut[1])[0]
                yield (TextEdit(low, high, ""),)
            elif isinstance(parent, ast.Compare) and len(parent.ops) == 1:
                span = subject.between(parent.left, node)
                if span:
                    sign = "==" if isinstance(parent.ops[0], ast.In) else "!="
                    yield TextEdit(*span, sign), TextEdit(*subject.span(node), rest[0])
            elif isinstance(parent, ast.Call) and isinstance(node, ast.Tuple):
                yield subject.replaced(node, rest[0])


def _listed(parent: ast.AST, node: ast.expr) -> bool:
    """Whether a collection that is gone through, or has a name, lists values of one kind: constants or types."""
    items = node.elts if isinstance(node, ast.Tuple | ast.Set | ast.List) else []
    if isinstance(parent, ast.Assign):
        if not isinstance(parent.targets[0], ast.Name):
            return False
    elif not (isinstance(parent, ast.For | ast.comprehension) and parent.iter is node):
        return False
    kinds = {type(item.value) if isinstance(item, ast.Constant) else type(item) for item in items}
    return len(kinds) == 1 and all(
        isinstance(item, ast.Constant | ast.Attribute) or ast.unparse(item)[:1].isupper() for item in items
    )


def _pair(items: Sequence[ast.expr]) -> bool:
    """Whether these are two names that share a word, of which one alone looks like half of a pair."""
    names = [words(item.id if isinstance(item, ast.Name) else getattr(item, "attr", "")) for item in items]
    return len(names) == _FEW and bool(set(names[0]) & set(names[1]))


def _matched(parent: ast.AST, node: ast.expr) -> bool:
    """Whether a collection lists what a value may be."""
    if isinstance(parent, ast.Compare):
        return isinstance(parent.ops[-1], ast.In | ast.NotIn) and parent.comparators[-1] is node
    if not isinstance(parent, ast.Call) or not parent.args or parent.args[-1] is not node:
        return False
    name = parent.func.id if isinstance(parent.func, ast.Name) else getattr(parent.func, "attr", "")
    return name in ("isinstance", "issubclass", "startswith", "endswith")


def lost_limit(subject: CorruptionTarget) -> Iterator[Edits]:
    """A last argument left out that limits a search, a split or a rounding."""
    for node in subject.of(ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if _LIMITED.get(name) != len(node.args) or node.keywords or isinstance(node.args[-1], ast.Starred):
            continue
        if isinstance(node.func, ast.Name) != (name in ("round", "sum")):
            continue
        if name in _FROM and any(isinstance(item, ast.While | ast.For) for item in subject.around(node)):
            continue
        if name == "pop" and not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0):
            continue
        start = subject.span(node.args[-2])[1] if len(node.args) > 1 else subject.span(node.args[0])[0]
        yield (TextEdit(start, subject.span(node.args[-1])[1], ""),)
        if name in ("split", "rsplit") and isinstance(node.args[0], ast.Constant) and node.args[0].value == " ":
            yield (TextEdit(subject.span(node.args[0])[0], subject.span(node.args[-1])[1], ""),)


def looser_match(subject: CorruptionTarget) -> Iterator[Edits]:
    """`b in a` for `a.startswith(b)`, `type(a) is B` for `isinstance(a, B)`."""
    for node in subject.of(ast.Call):
        parent = subject.parent(node)
        whole: ast.expr = node
        sign = ""
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            whole, sign, parent = parent, "not ", subject.parent(parent)
        if not isinstance(parent, _STANDING) or node.keywords:
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("startswith", "endswith"):
            if len(node.args) == 1 and isinstance(node.args[0], ast.Constant | ast.Name | ast.Attribute):
                yield subject.replaced(
                    whole, f"{subject.source(node.args[0])} {sign}in {subject.source(node.func.value)}"
                )
        elif isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2:
            value, kind = node.args
            if isinstance(value, _PLAIN) and isinstance(kind, ast.Name) and kind.id not in ("type", "bool"):
                verb = "is not" if sign else "is"
                yield subject.replaced(whole, f"type({subject.source(value)}) {verb} {subject.source(kind)}")


def other_identity(subject: CorruptionTarget) -> Iterator[Edits]:
    """`==` for `is` between two values."""
    table: Mapping[type[ast.cmpop], str] = {ast.Is: "==", ast.IsNot: "!="}
    for node in subject.of(ast.Compare):
        if len(node.ops) == 1 and isinstance(node.left, _PLAIN) and isinstance(node.comparators[0], _PLAIN):
            text, span = table.get(type(node.ops[0])), subject.between(node.left, node.comparators[0])
            if text and span:
                yield (TextEdit(*span, text),)


OPERATORS = (
    Operator("lost alternative", 0.45, lost_alternative, in_rewritten=True),
    Operator("lost limit", 0.4, lost_limit, in_rewritten=True),
    Operator("looser match", 0.08, looser_match),
    Operator("other identity", 0.03, other_identity),
)
