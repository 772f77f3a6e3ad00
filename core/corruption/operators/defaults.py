"""Faults in defaults and options: another default, an option not passed on, a skipped normalisation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import argument_dropped
from gistpoint.core.corruption.operators.operator import Edits, Operator, at_each
from gistpoint.core.corruption.shapes import name_of
from gistpoint.core.corruption.subject import CorruptionTarget

_WITH_DEFAULT: Mapping[str, int] = {"get": 2, "pop": 2, "setdefault": 2, "getattr": 3, "next": 2}
_NORMALISING = re.compile(
    r"norm|clean|escape|quote|coerce|ensure|strip|fold|resolve|canon|decode|encode|unwrap|prepare"
)
_METHODS = frozenset(
    {"strip", "rstrip", "lstrip", "lower", "upper", "casefold", "replace", "expandtabs", "title"}
)
_FUNCTIONS = frozenset({"abs", "int", "str", "bool", "round"})
_OF_ORDER = (None, "key", "reverse")
"""Keywords that `iteration.sort_key` leaves out, and None, which syntax trees have for `**`."""


def wrong_default(subject: CorruptionTarget) -> Iterator[Edits]:
    """Yield edits that change the default of a call such as `.get`, or drop the last operand of `or`."""
    yield from _other_default(subject)
    yield from _last_operand_left_out(subject)


@at_each(ast.Call)
def _other_default(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    name = name_of(node.func)
    has_default = _WITH_DEFAULT.get(name) == len(node.args) and not node.keywords
    if has_default:
        yield from _default_changed(subject, name, node.args)


@at_each(ast.BoolOp)
def _last_operand_left_out(subject: CorruptionTarget, node: ast.BoolOp) -> Iterator[Edits]:
    is_value = isinstance(subject.parent(node), ast.Assign | ast.Call | ast.Return)
    if is_value and isinstance(node.op, ast.Or):
        *_, before, last = map(subject.operand, node.values)
        yield (TextEdit(before[1], last[1], ""),)


def _default_changed(subject: CorruptionTarget, name: str, args: list[ast.expr]) -> Iterator[Edits]:
    match args:
        case [*_, ast.Constant(value=None)]:
            return  # `.get(key)` would mean the same
        case [*_, ast.Constant(value=int(value)) as default] if value in (0, 1):
            yield subject.replaced(default, str(not value if isinstance(value, bool) else 1 - value))
        case [key, default] if name == "get":
            yield subject.replaced_after(key, default)


@at_each(ast.Call)
def option_dropped(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that leave out a keyword argument other than `key` and `reverse`."""
    for keyword in node.keywords:
        if keyword.arg not in _OF_ORDER:
            yield from argument_dropped(subject, node, keyword)


@at_each(ast.Call)
def skipped_normalisation(subject: CorruptionTarget, node: ast.Call) -> Iterator[Edits]:
    """Yield edits that use a value without normalising it first."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _METHODS:
            yield subject.replaced_after(value, node)
        case ast.Call(args=[value], keywords=[]) if _normalises(subject, node, value):
            yield subject.replaced(node, subject.source(value))


def _normalises(subject: CorruptionTarget, node: ast.Call, value: ast.expr) -> bool:
    """Return whether a call returns its argument in another form, and its result is used as a value."""
    name, parent = name_of(node.func), subject.parent(node)
    if isinstance(parent, ast.Expr) or isinstance(value, ast.Starred | ast.GeneratorExp):
        return False
    if name in _FUNCTIONS:
        # `"n" + str(n)` without the conversion would fail at once.
        return not isinstance(parent, ast.BinOp)
    return bool(_NORMALISING.search(name.lower()))


OPERATORS = (
    Operator("wrong default", 0.15, wrong_default),
    Operator("dropped option", 0.45, option_dropped, in_rewritten=True),
    Operator("skipped normalisation", 0.2, skipped_normalisation, in_rewritten=True),
)
