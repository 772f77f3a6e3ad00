"""Rewrites a module for Python 3.9, replacing newer syntax and arguments without a change of meaning.

This module covers what gistpoint's own modules use: `match`, unions of types at run time, `slots` and
`kw_only` of dataclasses, and `strict` of `zip`. Everything else is unchanged, so that each rule of the
verdict is written only once. Newer names are supplied when the bundle starts (`bundled/later_names.py`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from gistpoint.core.code.parsing import parse, undisturbed

OLDEST = (3, 9)
"""The oldest version of Python that can run the result."""

_TYPE = re.compile(r"_*[A-Z]\w*[a-z]\w*|str|int|float|bool|bytes|list|dict|tuple|set|frozenset|type|object")
_LATER_ARGUMENTS = {"dataclass": {"slots", "kw_only"}, "zip": {"strict"}}


class LoweringError(Exception):
    """A module uses a construct that can't be rewritten; the message names the line."""


def lowered(source: str) -> str:
    """Return a module as text that Python 3.9 compiles.

    Raises `LoweringError` for a construct that is not covered.
    """
    tree = ast.fix_missing_locations(_Lowering().visit(parse(source)))
    text = ast.unparse(tree) + "\n"
    try:
        undisturbed(lambda: ast.parse(text, feature_version=OLDEST))  # noqa: TID251 - by one thread at a time
    except SyntaxError as error:
        raise LoweringError(
            f"Line {error.lineno} of the rewritten module is newer syntax: {error.msg}."
        ) from error
    return text


class _Lowering(ast.NodeTransformer):
    def __init__(self) -> None:
        self._subjects = 0

    def _subject(self) -> str:
        self._subjects += 1
        return f"_matched_{self._subjects}"

    # Annotations stay: because of the import from __future__, Python 3.9 never evaluates them.

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        later = _LATER_ARGUMENTS.get(name, set())
        node.keywords = [keyword for keyword in node.keywords if keyword.arg not in later]
        if name in ("isinstance", "issubclass") and len(node.args) == 2:
            node.args[1] = _as_tuple(node.args[1])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        parts = _united(node)
        if parts and all(_is_type(part) for part in parts):
            return _as_tuple(node)
        return self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        self.generic_visit(node)
        name = self._subject()
        first = ast.Assign([ast.Name(name, ast.Store())], node.subject)
        following: list[ast.stmt] = []
        # From the last case to the first, because each `if` has the following cases as its `else`.
        for case in reversed(node.cases):
            conditions = self._conditions(case.pattern, name)
            if case.guard is not None:  # last, because it may use names that the pattern binds
                conditions = [*conditions, case.guard]
            following = [ast.If(_all_of(conditions), case.body, following)]
        return [ast.copy_location(first, node), *(ast.copy_location(item, node) for item in following)]

    def _conditions(self, pattern: ast.pattern, name: str) -> list[ast.expr]:
        """Return the conditions, in order, under which the object bound to `name` matches.

        Raises `LoweringError` for a pattern that is not covered.
        """
        subject = ast.Name(name, ast.Load())
        match pattern:
            case ast.MatchValue(value=value):
                return [ast.Compare(subject, [ast.Eq()], [value])]
            case ast.MatchSingleton(value=value):
                return [ast.Compare(subject, [ast.Is()], [ast.Constant(value)])]
            case ast.MatchAs(pattern=inner, name=bound):
                conditions = self._conditions(inner, name) if inner is not None else []
                return conditions if bound is None else [*conditions, _binding(bound, subject)]
            case ast.MatchOr(patterns=patterns):
                return [ast.BoolOp(ast.Or(), [_all_of(self._conditions(one, name)) for one in patterns])]
            case ast.MatchClass():
                return self._conditions_of_class(pattern, name)
            case ast.MatchSequence(patterns=patterns) if not any(
                isinstance(one, ast.MatchStar) for one in patterns
            ):
                return self._conditions_of_sequence(patterns, name)
            case _:
                raise LoweringError(
                    f"Line {pattern.lineno} has a pattern that is not covered: {ast.unparse(pattern)}."
                )

    def _conditions_of_class(self, pattern: ast.MatchClass, name: str) -> list[ast.expr]:
        subject, kind = ast.Name(name, ast.Load()), pattern.cls
        conditions = [_call("isinstance", subject, kind)]
        if pattern.patterns:
            # In patterns such as `str(x)` and `int(x)`, the one positional pattern matches the object itself.
            is_builtin = isinstance(kind, ast.Name) and kind.id.islower()
            if len(pattern.patterns) > 1 or not is_builtin:
                raise LoweringError(f"Line {pattern.lineno} matches a class by position.")
            conditions += self._conditions(pattern.patterns[0], name)
        for attribute, one in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            part = self._subject()
            conditions.append(_call("hasattr", subject, ast.Constant(attribute)))
            conditions.append(_binding(part, ast.Attribute(subject, attribute, ast.Load())))
            conditions += self._conditions(one, part)
        return conditions

    def _conditions_of_sequence(self, patterns: Sequence[ast.pattern], name: str) -> list[ast.expr]:
        subject = ast.Name(name, ast.Load())
        kinds = ast.Tuple([ast.Name("list", ast.Load()), ast.Name("tuple", ast.Load())], ast.Load())
        length = ast.Compare(_call("len", subject), [ast.Eq()], [ast.Constant(len(patterns))])
        conditions = [_call("isinstance", subject, kinds), length]
        for index, one in enumerate(patterns):
            part = self._subject()
            conditions.append(_binding(part, ast.Subscript(subject, ast.Constant(index), ast.Load())))
            conditions += self._conditions(one, part)
        return conditions


def _all_of(conditions: Sequence[ast.expr]) -> ast.expr:
    if not conditions:
        return ast.Constant(True)
    return conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.And(), list(conditions))


def _binding(name: str, value: ast.expr) -> ast.expr:
    """Return an expression that binds a name and is always true."""
    # The list is true even if the value in it is false.
    return ast.List([ast.NamedExpr(ast.Name(name, ast.Store()), value)], ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _united(node: ast.expr) -> list[ast.expr]:
    """Return the parts of `a | b | c`; empty for any other expression."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):
        return []
    return [*(_united(node.left) or [node.left]), *(_united(node.right) or [node.right])]


def _is_type(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _TYPE.fullmatch(name) is not None
        case ast.Subscript(value=value):
            return _is_type(value)
        case ast.Constant(value=None):
            return True
        case _:
            return False


def _as_tuple(node: ast.expr) -> ast.expr:
    parts = _united(node)
    return ast.Tuple(parts, ast.Load()) if parts else node
