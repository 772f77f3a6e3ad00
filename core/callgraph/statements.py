"""Statements: the order in which names change, and where the bodies of functions and classes are walked."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from gistpoint.core.callgraph.expressions import Expressions
from gistpoint.core.callgraph.frames import Frame
from gistpoint.core.callgraph.functions import Functions
from gistpoint.core.callgraph.graph import Found
from gistpoint.core.callgraph.operators import AUGMENTED, BINARY
from gistpoint.core.callgraph.parts import Parts
from gistpoint.core.callgraph.program import Call
from gistpoint.core.callgraph.sources import SourceFile
from gistpoint.core.callgraph.targets import Targets
from gistpoint.core.callgraph.values import NOTHING, Arguments, Module, Value, Variable

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
State = dict[str, Variable]


class Statements:
    """Walks modules and function bodies in the order of execution, with one state per point of the code.

    A name that is assigned again stands for the new value from there on; where branches meet, for either.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.program = parts.program
        self.solver = parts.program.solver
        self.expressions = Expressions(parts)
        self.targets = parts.targets = Targets(parts, self.expressions)
        self.functions = Functions(parts, self.expressions, self.block)
        self.expressions.define = self.functions.lambda_
        self._by_kind: dict[type[ast.stmt], Callable[[Frame, Any], bool | None]] = {
            ast.FunctionDef: self.functions.function,
            ast.AsyncFunctionDef: self.functions.function,
            ast.ClassDef: self.functions.class_,
            ast.Return: self.functions.return_,
            ast.Expr: self._expression,
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented,
            ast.If: self._if,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.While: self._while,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Try: self._try,
            ast.TryStar: self._try,
            ast.Raise: self._raise,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Delete: self._delete,
            ast.Match: self._match,
            ast.Assert: self._assert,
        }

    def module(self, file: SourceFile) -> None:
        """Walk a module, then the bodies of its functions."""
        self.block(file.tree.body, Frame(self.program.definitions.modules[file.path]))
        self.functions.bodies()

    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        """Walk statements; whether they always leave the block by `return` or `raise`."""
        for node in body:
            handler = self._by_kind.get(type(node))
            if handler is not None and handler(frame, node):
                return True
        return False

    def _expression(self, frame: Frame, node: ast.Expr) -> None:
        self.expressions.evaluate(frame, node.value)

    def _assign(self, frame: Frame, node: ast.Assign) -> None:
        if len(node.targets) == 1:
            self.targets.assign(frame, node.targets[0], node.value)
            return
        variable = self.expressions.evaluate(frame, node.value)
        for target in node.targets:
            self.targets.bind(frame, target, variable)

    def _annotated(self, frame: Frame, node: ast.AnnAssign) -> None:
        value = self.expressions.evaluate(frame, node.value) if node.value is not None else NOTHING
        declared = self.parts.annotations.declared(frame.scope, node.annotation)
        if node.value is not None or declared != NOTHING:
            self.targets.bind(frame, node.target, self.expressions.merged([value, declared]))

    def _augmented(self, frame: Frame, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            left = self.expressions.lookup(frame, target.id)
        else:
            left = self.expressions.evaluate(frame, target)
        right = self.expressions.evaluate(frame, node.value)
        name = BINARY[type(node.op)]
        result = self.expressions.operate(frame, [AUGMENTED[type(node.op)], f"__{name}__"], left, right)
        self.solver.copy(left, result)
        if isinstance(node.op, ast.Add):
            self.parts.containers.merge(right, left)
        self.targets.bind(frame, target, result)

    def _if(self, frame: Frame, node: ast.If) -> bool:
        self.expressions.test(frame, node.test)
        before = frame.names
        frame.names = {**before, **self.expressions.narrowed(frame, node.test)}
        ended = self.block(node.body, frame)
        chosen = frame.names
        frame.names = dict(before)
        if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            frame.names.update(self.expressions.narrowed(frame, node.test.operand))
        if self.block(node.orelse, frame):
            frame.names = chosen
            return ended
        if not ended:
            frame.names = self._joined([chosen, frame.names])
        return False

    def _joined(self, states: list[State]) -> State:
        joined: State = {}
        for name in dict.fromkeys(name for state in states for name in state):
            held = list(dict.fromkeys(state[name] for state in states if name in state))
            joined[name] = held[0] if len(held) == 1 else self.expressions.merged(held)
        return joined

    def _loop(self, frame: Frame, node: ast.For | ast.AsyncFor | ast.While, items: Variable) -> None:
        """Walk a loop's body, in which names hold what they did before or at the end of a round."""
        heads: State = {}
        for name in _assigned(node.body):
            if name in frame.names:
                heads[name] = self.solver.variable()
                self.solver.copy(frame.names[name], heads[name])
        frame.names = {**frame.names, **heads}
        before = dict(frame.names)
        if isinstance(node, ast.While):
            self.expressions.test(frame, node.test)
        else:
            self.targets.bind(frame, node.target, items)
        self.block(node.body, frame)
        for name, head in heads.items():
            self.solver.copy(frame.names.get(name, NOTHING), head)
        frame.names = self._joined([before, frame.names])
        self.block(node.orelse, frame)

    def _for(self, frame: Frame, node: ast.For | ast.AsyncFor) -> None:
        variable = self.expressions.evaluate(frame, node.iter)
        asynchronous = isinstance(node, ast.AsyncFor)
        self._loop(frame, node, self.parts.containers.iterate(frame.scope, variable, asynchronous=asynchronous))

    def _while(self, frame: Frame, node: ast.While) -> None:
        self._loop(frame, node, NOTHING)

    def _with(self, frame: Frame, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            variable = self.expressions.evaluate(frame, item.context_expr)
            entered = self.functions.enter(frame, variable, asynchronous=isinstance(node, ast.AsyncWith))
            if item.optional_vars is not None:
                self.targets.bind(frame, item.optional_vars, entered)
        return self.block(node.body, frame)

    def _try(self, frame: Frame, node: ast.Try | ast.TryStar) -> bool:
        before = dict(frame.names)
        ended = self.block(node.body, frame)
        reached = dict(frame.names)
        ends: list[State] = []
        if not ended:
            ended = self.block(node.orelse, frame)
        if not ended:
            ends.append(frame.names)
        for handler in node.handlers:
            frame.names = self._joined([before, reached])
            if handler.type is not None:
                self.expressions.evaluate(frame, handler.type)
                if handler.name:
                    caught = self.parts.annotations.tested(frame.scope, handler.type)
                    self.expressions.assign(frame, handler.name, self._any_of(caught))
            if not self.block(handler.body, frame):
                ends.append(frame.names)
        frame.names = self._joined(ends) if ends else self._joined([before, reached])
        return self.block(node.finalbody, frame) or not ends

    def _any_of(self, values: list[Value]) -> Variable:
        return self.expressions.merged([self.solver.holding(value) for value in values])

    def _raise(self, frame: Frame, node: ast.Raise) -> bool:
        if node.exc is not None:
            raised = self.expressions.evaluate(frame, node.exc)
            if not isinstance(node.exc, ast.Call):
                self.functions.raise_(frame, raised)
        if node.cause is not None:
            self.expressions.evaluate(frame, node.cause)
        return True

    def _import(self, frame: Frame, node: ast.Import) -> None:
        for alias in node.names:
            dotted = alias.name if alias.asname else alias.name.split(".")[0]
            found = self.program.hierarchy.absolute(dotted, frame.scope.file)
            value = found if isinstance(found, Module) else self.program.outside(found)
            self.expressions.assign(frame, alias.asname or dotted, self.solver.holding(value))

    def _import_from(self, frame: Frame, node: ast.ImportFrom) -> None:
        module = self.program.hierarchy.imported_from(node, frame.scope.file)
        for alias in node.names:
            if alias.name == "*":
                continue
            made = self.solver.variable()
            if isinstance(module, Module):
                inside = module.file is frame.scope.file  # a package's own file imports its modules by its own name
                self.parts.attributes.read_module(alias.name, made, module, submodule_first=inside)
            else:
                self.solver.add(made, self.program.outside(f"{module}.{alias.name}"))
            self.expressions.assign(frame, alias.asname or alias.name, made)

    def _delete(self, frame: Frame, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                base = self.expressions.evaluate(frame, target.value)
                self.parts.attributes.delete(frame.scope, base, target.attr)
            elif isinstance(target, ast.Subscript):
                base = self.expressions.evaluate(frame, target.value)
                index = self.expressions.evaluate(frame, target.slice)
                call = Call(frame.scope, "__delitem__", Arguments([index]), NOTHING, Found.PROTOCOL)
                self.parts.calls.protocol(call, base, "__delitem__")

    def _match(self, frame: Frame, node: ast.Match) -> None:
        subject = self.expressions.evaluate(frame, node.subject)
        before = frame.names
        ends: list[State] = [before]
        for case in node.cases:
            frame.names = dict(before)
            if isinstance(case.pattern, ast.MatchClass) and isinstance(node.subject, ast.Name):
                held = self.targets.narrowed(frame, case.pattern, subject)
                frame.names[node.subject.id] = held
            self.targets.match(frame, case.pattern, subject)
            if case.guard is not None:
                self.expressions.test(frame, case.guard)
            if not self.block(case.body, frame):
                ends.append(frame.names)
        frame.names = self._joined(ends)

    def _assert(self, frame: Frame, node: ast.Assert) -> None:
        self.expressions.test(frame, node.test)
        frame.names.update(self.expressions.narrowed(frame, node.test))
        if node.msg is not None:
            self.expressions.evaluate(frame, node.msg)


def _assigned(body: list[ast.stmt]) -> list[str]:
    """Return the names that statements assign, not those that functions and classes inside do."""
    names: dict[str, None] = {}
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names[node.id] = None
        elif not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    return sorted(names)
