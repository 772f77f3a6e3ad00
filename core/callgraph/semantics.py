"""The operations of the language on values, bundled for one program."""

from __future__ import annotations

import ast
from functools import partial

from gistpoint.core.callgraph.annotations import Annotations
from gistpoint.core.callgraph.attributes import Attributes
from gistpoint.core.callgraph.callables import Callables
from gistpoint.core.callgraph.calls import Calls
from gistpoint.core.callgraph.containers import Containers
from gistpoint.core.callgraph.library import BuiltinCalls
from gistpoint.core.callgraph.program import Program
from gistpoint.core.callgraph.values import ContainerValue, Object, Value, Variable

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
    ast.Div: "truediv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.BitAnd: "and",
    ast.FloorDiv: "floordiv",
}
REFLECTED = {f"__r{name}__" for name in BINARY.values()}
AUGMENTED = {kind: f"__i{name}__" for kind, name in BINARY.items()}
UNARY: dict[type[ast.unaryop], str] = {ast.Invert: "__invert__", ast.UAdd: "__pos__", ast.USub: "__neg__"}
COMPARED: dict[type[ast.cmpop], list[str]] = {
    ast.Eq: ["__eq__"],
    ast.NotEq: ["__ne__", "__eq__"],
    ast.Lt: ["__lt__"],
    ast.LtE: ["__le__"],
    ast.Gt: ["__gt__"],
    ast.GtE: ["__ge__"],
}
MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
"""The comparison that Python tries with the right operand if the left operand does not support its type."""
FORMATTED: dict[type, str] = {str: "__str__", bytes: "__bytes__"}
"""The conversion that `%` applies to the right operand, by the type of the format on the left."""


def first_place(node: ast.Slice) -> int | None:
    """Return the place at which a slice starts; None if that place is not constant."""
    match node.lower:
        case None:
            return 0
        case ast.Constant(value=int(place)):
            return place
    return None


def is_super(node: ast.expr) -> bool:
    """Return whether a callee is an attribute of `super()`."""
    match node:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
            return True
    return False


def literal_type(node: ast.expr) -> type | None:
    """Return the type of a literal, which may have a sign; None for any other expression."""
    match node:
        case ast.Constant(value=value) | ast.UnaryOp(operand=ast.Constant(value=value)):
            return type(value)
    return None


class Operators:
    """The results of operators on built-in objects."""

    def __init__(self, program: Program) -> None:
        self.solver = program.solver

    def keep_builtin(self, source: Variable, result: Variable) -> None:
        """Let `result` hold the containers and built-in objects of `source`, as after adding two of them."""
        self.solver.watch(source, partial(self._keep, result))

    def keep_objects(self, source: Variable, result: Variable) -> None:
        """Let `result` hold those values of `source` that are objects of built-in or outside types."""
        self.solver.watch(source, partial(self._keep_object, result))

    def _keep_object(self, result: Variable, value: Value) -> None:
        if isinstance(value, Object):
            self.solver.add(result, value)

    def _keep(self, result: Variable, value: Value) -> None:
        if isinstance(value, ContainerValue | Object):
            self.solver.add(result, value)


class Semantics:
    """The parts of one program's analysis; `callables` and `library` register their runners in `calls`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.annotations = Annotations(program)
        self.calls = Calls(program)
        self.attributes = Attributes(program, self.calls)
        self.containers = Containers(program, self.calls)
        self.callables = Callables(program, self.calls, self.containers)
        self.library = BuiltinCalls(program, self.calls, self.attributes, self.containers)
        self.operators = Operators(program)
