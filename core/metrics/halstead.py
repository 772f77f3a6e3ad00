"""Halstead's measures over every operator and operand of a function, as in the Breakpoint paper.

Its appendix C treats programs "as collections of operators and operands". radon's measures, which are
recorded too, count only operators of arithmetic, comparison and logic.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log2

Definition = ast.FunctionDef | ast.AsyncFunctionDef

_SIGNS: Mapping[type[ast.AST], str] = {
    ast.NamedExpr: ":=",
    ast.Attribute: ".",
    ast.Subscript: "[]",
    ast.Slice: ":",
    ast.Call: "()",
    ast.Starred: "*",
    ast.IfExp: "if else",
    ast.Lambda: "lambda",
    ast.List: "[,]",
    ast.Dict: "{:}",
    ast.Set: "{,}",
    ast.FormattedValue: "f{}",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield from",
    ast.If: "if",
    ast.For: "for in",
    ast.AsyncFor: "for in",
    ast.While: "while",
    ast.Return: "return",
    ast.Raise: "raise",
    ast.Try: "try",
    ast.TryStar: "try",
    ast.ExceptHandler: "except",
    ast.With: "with",
    ast.AsyncWith: "with",
    ast.Match: "match",
    ast.match_case: "case",
    ast.MatchOr: "|",
    ast.Assert: "assert",
    ast.Delete: "del",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Import: "import",
    ast.ImportFrom: "from import",
    ast.Pass: "pass",
    ast.Break: "break",
    ast.Continue: "continue",
    ast.FunctionDef: "def",
    ast.AsyncFunctionDef: "def",
    ast.ClassDef: "class",
}
_NOT_CODE = {"annotation", "returns", "decorator_list", "type_comment", "type_params"}
"""The fields whose content is not counted."""


@dataclass(frozen=True, slots=True)
class Halstead:
    """Halstead's difficulty, n1/2 * N2/n2, and volume, N * log2(n).

    n1 and n2 are the numbers of distinct operators and operands, N2 that of all operands, n and N those of
    distinct and of all operators and operands together.
    """

    difficulty: float
    volume: float


def measure_halstead(function: Definition) -> Halstead:
    """Return Halstead's measures of a function.

    Operators are symbols (including those of assignment, attribute, call, subscript and display) and the
    keywords of statements; operands are names (including those of attributes and arguments) and constants.
    Nested functions count; decorators, annotations, docstrings and the function's own `def` and name do not.
    """
    operators: Counter[str] = Counter()
    operands: Counter[object] = Counter()
    for node in _code(function):
        if node is not function:
            operators.update(_operators(node))
            operands.update(_operands(node))
    n1, n2 = len(operators), len(operands)
    total = operators.total() + operands.total()
    return Halstead(
        difficulty=n1 / 2 * operands.total() / n2 if n2 else 0.0,
        volume=total * log2(n1 + n2) if total else 0.0,
    )


def _code(root: ast.AST) -> Iterator[ast.AST]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        for name, value in ast.iter_fields(node):
            if name in _NOT_CODE:
                continue
            items = value if isinstance(value, list) else [value]
            if name == "body" and _has_docstring(node):
                items = items[1:]
            stack.extend(item for item in items if isinstance(item, ast.AST))


def _has_docstring(node: ast.AST) -> bool:
    return isinstance(node, Definition | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None


def _operators(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.BinOp(op=sign) | ast.UnaryOp(op=sign):
            yield type(sign).__name__
        case ast.AugAssign(op=sign):
            yield f"{type(sign).__name__}="
        case ast.BoolOp(op=sign, values=values):
            yield from [type(sign).__name__] * (len(values) - 1)
        case ast.Compare(ops=signs):
            yield from (type(sign).__name__ for sign in signs)
        case ast.AnnAssign(value=ast.expr()) | ast.keyword(arg=str()):
            yield "="
        case ast.Assign(targets=targets):
            yield from ["="] * len(targets)
        case ast.keyword():
            yield "**"
        case ast.comprehension(ifs=tests):
            yield "for in"
            yield from ["if"] * len(tests)
        case _ if type(node) in _SIGNS:
            yield _SIGNS[type(node)]


_NAMED: Mapping[type[ast.AST], str] = {
    ast.Name: "id",
    ast.Attribute: "attr",
    ast.arg: "arg",
    ast.keyword: "arg",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
    ast.MatchClass: "kwd_attrs",
    ast.Global: "names",
    ast.Nonlocal: "names",
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
}
"""The field of each node type that holds names, which are operands."""


def _operands(node: ast.AST) -> Iterator[object]:
    match node:
        case ast.Constant(value=value) | ast.MatchSingleton(value=value):
            # The type is included, because 1 and True are equal.
            yield type(value).__name__, repr(value)
        case ast.alias(name=name, asname=new):
            yield new or name
        case _ if type(node) in _NAMED:
            names = getattr(node, _NAMED[type(node)])
            yield from names if isinstance(names, list) else filter(None, [names])
