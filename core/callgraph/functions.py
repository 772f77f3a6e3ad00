"""Functions and classes: headers where they stand, bodies after everything around them."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable
from functools import partial

from gistpoint.core.callgraph.expressions import Expressions
from gistpoint.core.callgraph.frames import Frame
from gistpoint.core.callgraph.graph import Found
from gistpoint.core.callgraph.parts import Parts
from gistpoint.core.callgraph.program import Call
from gistpoint.core.callgraph.scopes import Definition, last_name
from gistpoint.core.callgraph.values import (
    NOTHING,
    Arguments,
    Class,
    Container,
    Function,
    Generated,
    Instance,
    Object,
    Value,
    Variable,
)

Block = Callable[[list[ast.stmt], Frame], bool]


class Functions:
    """Headers, decorators and bodies; `block` walks statements."""

    def __init__(self, parts: Parts, expressions: Expressions, block: Block) -> None:
        self.parts = parts
        self.program = parts.program
        self.solver = parts.program.solver
        self.expressions = expressions
        self.block = block
        self._waiting: deque[Function] = deque()
        self._given: dict[tuple[Function, str], list[Variable]] = {}

    def function(self, frame: Frame, node: Definition) -> None:
        """Note a definition: its defaults, annotations and decorators; its body is walked later."""
        function = self.program.definitions.functions[node]
        self._header(frame, function, node.args)
        declared = self.parts.annotations.declared(frame.scope, node.returns)
        self.solver.copy(declared, function.result)
        variable = self.solver.holding(function)
        decorated = self._decorated(frame, node.decorator_list, variable)
        if not any(last_name(item) == "overload" for item in node.decorator_list):
            self.expressions.assign(frame, node.name, decorated)

    def lambda_(self, node: ast.Lambda, frame: Frame) -> Variable:
        """Return the variable of a lambda."""
        function = self.program.definitions.functions[node]
        self._header(frame, function, node.args)
        return self.solver.holding(function)

    def _header(self, frame: Frame, function: Function, arguments: ast.arguments) -> None:
        function.result = self.solver.narrow()
        for name in [*function.positional, *function.keyword_only]:
            function.parameters[name] = self.solver.narrow()
        positional = [*arguments.posonlyargs, *arguments.args]
        if arguments.defaults:
            for item, default in zip(positional[-len(arguments.defaults) :], arguments.defaults, strict=True):
                self._give(function, item.arg, self.expressions.evaluate(frame, default))
        for item, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if value is not None:
                self._give(function, item.arg, self.expressions.evaluate(frame, value))
        for item in [*positional, *arguments.kwonlyargs]:
            self._give(function, item.arg, self.parts.annotations.declared(frame.scope, item.annotation))
        if arguments.vararg is not None:
            function.rest = self._collected(frame, "tuple", arguments.vararg)
        if arguments.kwarg is not None:
            function.keywords = self._collected(frame, "dict", arguments.kwarg)
        if function.cls is not None and not function.is_static and function.positional:
            receiver = function.cls.open if function.is_class_method else function.cls.open_instance
            self._give(function, function.positional[0], self.solver.holding(receiver))
        elif function.name == "__new__" and function.cls is not None and function.positional:
            self._give(function, function.positional[0], self.solver.holding(function.cls.open))
        self._waiting.append(function)

    def _give(self, function: Function, name: str, variable: Variable) -> None:
        if variable != NOTHING:
            self.solver.copy(variable, function.parameters[name])
            self._given.setdefault((function, name), []).append(variable)

    def _collected(self, frame: Frame, kind: str, parameter: ast.arg) -> Variable:
        made = self.program.container(kind)
        self.solver.copy(self.parts.annotations.declared(frame.scope, parameter.annotation), made.unplaced)
        return self.solver.holding(made)

    def _decorated(self, frame: Frame, decorators: list[ast.expr], variable: Variable) -> Variable:
        for node in reversed(decorators):
            decorator = self.expressions.evaluate(frame, node)
            result = self.solver.variable()
            call = Call(frame.scope, "", Arguments([variable]), result, Found.DECORATOR)
            self.parts.calls.run(call, decorator)
            self.program.deferred.append(partial(self._undecorated, decorator, call))
            variable = result
        return variable

    def _undecorated(self, decorator: Variable, call: Call) -> None:
        """Take a decorator that gave nothing back for one that gives back what it is given."""
        if self.solver.is_empty(call.result):
            self.solver.copy(call.arguments.positional[0], call.result)

    def bodies(self) -> None:
        """Walk the bodies of all functions that were defined, and of those that they define."""
        while self._waiting:
            function = self._waiting.popleft()
            frame = Frame(function.scope, dict(function.parameters))
            arguments = function.tree.args
            if arguments.vararg is not None:
                frame.names[arguments.vararg.arg] = function.rest
            if arguments.kwarg is not None:
                frame.names[arguments.kwarg.arg] = function.keywords
            if function.scope.captured:
                for name, variable in list(frame.names.items()):
                    self.expressions.assign(frame, name, variable)
            if isinstance(function.tree, ast.Lambda):
                self._result(frame, function, function.tree.body)
            else:
                self.block(function.tree.body, frame)

    def return_(self, frame: Frame, node: ast.Return) -> bool:
        """Note what a function gives back."""
        function = frame.scope.function
        if node.value is not None and function is not None:
            self._result(frame, function, node.value)
        return True

    def _result(self, frame: Frame, function: Function, node: ast.expr) -> None:
        if isinstance(node, ast.Name) and frame.names.get(node.id, NOTHING) == function.parameters.get(node.id, -2):
            if node.id not in function.passes_through:
                function.passes_through.append(node.id)
                for variable in self._given.get((function, node.id), ()):
                    self.solver.copy(variable, function.result)
            return
        variable = self.expressions.evaluate(frame, node)
        self.solver.copy(variable, function.generated.result if function.generated else function.result)

    def class_(self, frame: Frame, node: ast.ClassDef) -> None:
        """Walk a class: its bases, its body at once, its decorators."""
        cls = self.program.definitions.classes[node]
        for item in [*node.bases, *(keyword.value for keyword in node.keywords)]:
            self.expressions.evaluate(frame, item)
        cls.data_fields = _declared_fields(node)
        inner = Frame(cls.scope, {}, frame)
        self.block(node.body, inner)
        for name, variable in inner.names.items():
            self.solver.copy(variable, self.program.name_variable(cls.scope, name))
        for base in cls.mro[1:]:
            if "__init_subclass__" in base.scope.bound:
                call = Call(frame.scope, "__init_subclass__", Arguments(), NOTHING, Found.PROTOCOL)
                self._hook(call, base, cls)
                break
        result = self._decorated(frame, node.decorator_list, self.solver.holding(cls))
        self.expressions.assign(frame, node.name, result)

    def _hook(self, call: Call, base: Class, cls: Class) -> None:
        variable = self.program.name_variable(base.scope, call.name)
        self.solver.watch(variable, partial(self._run_hook, call, cls))

    def _run_hook(self, call: Call, cls: Class, value: Value) -> None:
        if isinstance(value, Function):
            self.parts.calls.apply(call, self.program.bound(value, cls))

    def enter(self, frame: Frame, variable: Variable, *, asynchronous: bool) -> Variable:
        """Return the variable of what `with variable as …` gives."""
        result = self.solver.variable()
        names = ("__aenter__", "__aexit__") if asynchronous else ("__enter__", "__exit__")
        enter = Call(frame.scope, names[0], Arguments(), result, Found.PROTOCOL)
        leave = Call(frame.scope, names[1], Arguments([NOTHING] * 3), NOTHING, Found.PROTOCOL)
        self.parts.calls.protocol(enter, variable, names[0])
        self.parts.calls.protocol(leave, variable, names[1])
        self.solver.watch(variable, partial(self._entered, result))
        return result

    def _entered(self, result: Variable, value: Value) -> None:
        if isinstance(value, Generated | Container):
            self.solver.copy(value.items, result)
        elif isinstance(value, Object):
            self.solver.add(result, value)

    def raise_(self, frame: Frame, variable: Variable) -> None:
        """Note that raising a class makes an instance of it."""
        call = Call(frame.scope, "", Arguments(), self.solver.variable(), Found.CONSTRUCTOR)
        self.solver.watch(variable, partial(self._raised, call))

    def _raised(self, call: Call, value: Value) -> None:
        if not isinstance(value, Instance):
            self.parts.calls.apply(call, value)


def _declared_fields(node: ast.ClassDef) -> list[str]:
    names: list[str] = []
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            outer = item.annotation.value if isinstance(item.annotation, ast.Subscript) else item.annotation
            if getattr(outer, "id", getattr(outer, "attr", "")) != "ClassVar":
                names.append(item.target.id)
    return names
