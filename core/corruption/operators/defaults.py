"""Faults in defaults and options: another default, a flag turned, an option not passed on, a normalisation skipped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.operators.layout import argument_dropped
from gistpoint.core.corruption.operators.operator import Edits, Operator
from gistpoint.core.corruption.subject import CorruptionTarget

_WITH_DEFAULT: Mapping[str, int] = {"get": 2, "pop": 2, "setdefault": 2, "getattr": 3, "next": 2}
_NORMALISING = re.compile(
    r"norm|clean|escape|quote|coerce|ensure|strip|fold|resolve|canon|decode|encode|unwrap|prepare"
)
_METHODS = frozenset({"strip", "rstrip", "lstrip", "lower", "upper", "casefold", "replace", "expandtabs", "title"})
_FUNCTIONS = frozenset({"abs", "int", "str", "bool", "round"})


def wrong_default(subject: CorruptionTarget) -> Iterator[Edits]:
    """Another default of `.get`, `getattr` and the like, or the operand after `or` left out."""
    for node in subject.of(ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if _WITH_DEFAULT.get(name) != len(node.args) or node.keywords:
            continue
        default = node.args[-1]
        if isinstance(default, ast.Constant) and default.value is None:
            continue
        if isinstance(default, ast.Constant) and type(default.value) in (int, bool) and default.value in (0, 1):
            yield subject.replaced(default, str(type(default.value)(not default.value)))
        elif name == "get":
            yield (TextEdit(subject.span(node.args[0])[1], subject.span(default)[1], ""),)
    for choice in subject.of(ast.BoolOp):
        if isinstance(choice.op, ast.Or) and isinstance(subject.parent(choice), ast.Assign | ast.Call | ast.Return):
            spans = [subject.operand(value) for value in choice.values]
            yield (TextEdit(spans[-2][1], spans[-1][1], ""),)


def option_dropped(subject: CorruptionTarget) -> Iterator[Edits]:
    """A keyword argument not passed on."""
    for node in subject.of(ast.Call):
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in ("key", "reverse"):
                yield from argument_dropped(subject, node, keyword)


def skipped_normalisation(subject: CorruptionTarget) -> Iterator[Edits]:
    """A value used without normalising it first."""
    for node in subject.of(ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            yield (TextEdit(subject.span(node.func.value)[1], subject.span(node)[1], ""),)
        elif len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            useless = isinstance(subject.parent(node), ast.Expr) or isinstance(node.args[0], ast.GeneratorExp)
            if name in _FUNCTIONS and isinstance(subject.parent(node), ast.BinOp):
                continue
            if (name in _FUNCTIONS or _NORMALISING.search(name.lower())) and not useless:
                yield subject.replaced(node, subject.source(node.args[0]))


OPERATORS = (
    Operator("wrong default", 0.15, wrong_default),
    Operator("dropped option", 0.45, option_dropped, in_rewritten=True),
    Operator("skipped normalisation", 0.2, skipped_normalisation, in_rewritten=True),
)
