"""Statements, and the bodies of functions and classes, in the order in which they bind names."""

from __future__ import annotations

import ast
import operator
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from gistpoint.core.callgraph.expressions import Expressions, NameFrame
from gistpoint.core.callgraph.graph import CallEvidence
from gistpoint.core.callgraph.program import CallSite
from gistpoint.core.callgraph.scopes import Definition, last_name
from gistpoint.core.callgraph.semantics import AUGMENTED, BINARY, Semantics
from gistpoint.core.callgraph.sources import SourceFile
from gistpoint.core.callgraph.values import (
    NOTHING,
    Arguments,
    Class,
    ContainerValue,
    Function,
    Generated,
    Instance,
    ModuleValue,
    Object,
    Value,
    Variable,
)

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
State = dict[str, Variable]


class Statements:
    """A walk through modules and function bodies in the order of execution, with a state for each point.

    A reassigned name has only the new value from there on; after branches, it has the values of both.
    """

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.program = semantics.program
        self.solver = semantics.program.solver
        self.expressions = Expressions(semantics)
        self.targets = self.expressions.targets
        self.functions = FunctionBodies(semantics, self.expressions, self.block)
        self.expressions.define = self.functions.lambda_
        self._by_kind: dict[type[ast.stmt], Callable[[NameFrame, Any], bool | None]] = {
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
        frame = NameFrame(self.program.definitions.modules[file.path])
        self.block(file.tree.body, frame)
        # Code elsewhere runs after the module, and calls the last definition of a name (decision 208).
        for name, variable in frame.names.items():
            self.solver.copy(variable, self.program.name_variable(frame.scope, name))
        self.functions.bodies()

    def block(self, body: list[ast.stmt], frame: NameFrame) -> bool:
        """Walk statements; return whether they always leave the block by `return` or `raise`."""
        for node in body:
            handler = self._by_kind.get(type(node))
            if handler is not None and handler(frame, node):
                return True
        return False

    def _expression(self, frame: NameFrame, node: ast.Expr) -> None:
        self.expressions.evaluate(frame, node.value)

    def _assign(self, frame: NameFrame, node: ast.Assign) -> None:
        if len(node.targets) == 1:
            self.targets.assign(frame, node.targets[0], node.value)
            return
        variable = self.expressions.evaluate(frame, node.value)
        for target in node.targets:
            self.targets.bind(frame, target, variable)

    def _annotated(self, frame: NameFrame, node: ast.AnnAssign) -> None:
        value = self.expressions.evaluate(frame, node.value) if node.value is not None else NOTHING
        declared = self.semantics.annotations.declared(frame.scope, node.annotation)
        if node.value is not None or declared != NOTHING:
            self.targets.bind(frame, node.target, self.expressions.merged([value, declared]))

    def _augmented(self, frame: NameFrame, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            left = self.expressions.lookup(frame, target.id)
        else:
            left = self.expressions.evaluate(frame, target)
        right = self.expressions.evaluate(frame, node.value)
        name = BINARY[type(node.op)]
        names = [AUGMENTED[type(node.op)], f"__{name}__", f"__r{name}__"]
        result = self.expressions.operate(frame, names, left, right)
        self.solver.copy(left, result)
        if isinstance(node.op, ast.Add):
            self.semantics.containers.merge(right, left)
        self.targets.bind(frame, target, result)

    def _if(self, frame: NameFrame, node: ast.If) -> bool:
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
        taken = branch_taken(node.test)
        if ended:
            return False
        if taken is None:
            frame.names = self._joined([chosen, frame.names])
        else:
            # Names of the other branch alone are kept, because annotations use them.
            frame.names = {**frame.names, **chosen} if taken else {**chosen, **frame.names}
        return False

    def _joined(self, states: list[State]) -> State:
        held: dict[str, list[Variable]] = {}
        for state in states:
            for name, variable in state.items():
                held.setdefault(name, []).append(variable)
        joined: State = {}
        for name, variables in held.items():
            distinct = list(dict.fromkeys(variables))
            joined[name] = distinct[0] if len(distinct) == 1 else self.expressions.merged(distinct)
        return joined

    def _loop(self, frame: NameFrame, node: ast.For | ast.AsyncFor | ast.While, items: Variable) -> None:
        """Walk a loop's body, where names hold their values from before the loop or from an iteration."""
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

    def _for(self, frame: NameFrame, node: ast.For | ast.AsyncFor) -> None:
        variable = self.expressions.evaluate(frame, node.iter)
        asynchronous = isinstance(node, ast.AsyncFor)
        self._loop(
            frame, node, self.semantics.containers.iterate(frame.scope, variable, asynchronous=asynchronous)
        )

    def _while(self, frame: NameFrame, node: ast.While) -> None:
        self._loop(frame, node, NOTHING)

    def _with(self, frame: NameFrame, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            variable = self.expressions.evaluate(frame, item.context_expr)
            entered = self.functions.enter(frame, variable, asynchronous=isinstance(node, ast.AsyncWith))
            if item.optional_vars is not None:
                self.targets.bind(frame, item.optional_vars, entered)
        return self.block(node.body, frame)

    def _try(self, frame: NameFrame, node: ast.Try | ast.TryStar) -> bool:
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
                    caught = self.semantics.annotations.tested(frame.scope, handler.type)
                    self.expressions.assign(frame, handler.name, self._any_of(caught))
            if not self.block(handler.body, frame):
                ends.append(frame.names)
        frame.names = self._joined(ends) if ends else self._joined([before, reached])
        return self.block(node.finalbody, frame) or not ends

    def _any_of(self, values: list[Value]) -> Variable:
        return self.expressions.merged([self.solver.holding(value) for value in values])

    def _raise(self, frame: NameFrame, node: ast.Raise) -> bool:
        if node.exc is not None:
            raised = self.expressions.evaluate(frame, node.exc)
            if not isinstance(node.exc, ast.Call):
                self.functions.raise_(frame, raised)
        if node.cause is not None:
            self.expressions.evaluate(frame, node.cause)
        return True

    def _import(self, frame: NameFrame, node: ast.Import) -> None:
        for alias in node.names:
            dotted = alias.name if alias.asname else alias.name.split(".")[0]
            found = self.program.hierarchy.absolute(dotted, frame.scope.file)
            value = found if isinstance(found, ModuleValue) else self.program.outside(found)
            self.expressions.assign(frame, alias.asname or dotted, self.solver.holding(value), defines=True)

    def _import_from(self, frame: NameFrame, node: ast.ImportFrom) -> None:
        module = self.program.hierarchy.imported_from(node, frame.scope.file)
        for alias in node.names:
            if alias.name == "*":
                continue
            made = self.solver.variable()
            if isinstance(module, ModuleValue):
                # A package's own file imports its submodules under the name of the package.
                inside = module.file is frame.scope.file
                self.semantics.attributes.read_module(alias.name, made, module, submodule_first=inside)
            else:
                self.solver.add(made, self.program.outside(f"{module}.{alias.name}"))
            self.expressions.assign(frame, alias.asname or alias.name, made, defines=True)

    def _delete(self, frame: NameFrame, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                base = self.expressions.evaluate(frame, target.value)
                self.semantics.attributes.delete(frame.scope, base, target.attr)
            elif isinstance(target, ast.Subscript):
                base = self.expressions.evaluate(frame, target.value)
                index = self.expressions.evaluate(frame, target.slice)
                call = CallSite(
                    frame.scope, "__delitem__", Arguments([index]), NOTHING, CallEvidence.PROTOCOL
                )
                self.semantics.calls.protocol(call, base, "__delitem__")

    def _match(self, frame: NameFrame, node: ast.Match) -> None:
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

    def _assert(self, frame: NameFrame, node: ast.Assert) -> None:
        self.expressions.test(frame, node.test)
        frame.names.update(self.expressions.narrowed(frame, node.test))
        if node.msg is not None:
            self.expressions.evaluate(frame, node.msg)


_ANY_VERSION = ((3, 0), (3, 999))
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def branch_taken(test: ast.expr) -> bool | None:
    """Return whether an `if` with this condition runs its body on every Python 3; None if that is not known.

    It is known for `TYPE_CHECKING`, and for comparisons of `sys.version_info` or its first part with a
    version that no Python 3 has.
    """
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return False
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            taken = branch_taken(operand)
            return None if taken is None else not taken
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if (
            type(comparison) in _COMPARISONS
        ):
            versions, wanted = _versions(left), _constant(right)
            try:
                found = {_COMPARISONS[type(comparison)](version, wanted) for version in versions}
            except TypeError:
                return None
            return found.pop() if len(found) == 1 else None
    return None


def _versions(node: ast.expr) -> list[Any]:
    """Return the lowest and highest value of `sys.version_info`, or of its first part; otherwise nothing."""
    match node:
        case ast.Attribute(value=ast.Name(id="sys"), attr="version_info"):
            return [*_ANY_VERSION]
        case (
            ast.Attribute(value=inner, attr="major") | ast.Subscript(value=inner, slice=ast.Constant(value=0))
        ):
            return [version[0] for version in _versions(inner)]
    return []


def _constant(node: ast.expr) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=items):
            return tuple(map(_constant, items))
    return None


def _assigned(body: list[ast.stmt]) -> list[str]:
    """Return the names that statements assign, without those of nested functions and classes."""
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


Block = Callable[[list[ast.stmt], NameFrame], bool]


class FunctionBodies:
    """Headers, decorators and bodies of functions and classes; `block` walks their statements."""

    def __init__(self, semantics: Semantics, expressions: Expressions, block: Block) -> None:
        self.semantics = semantics
        self.program = semantics.program
        self.solver = semantics.program.solver
        self.expressions = expressions
        self.block = block
        self._waiting: deque[Function] = deque()
        self._given: dict[tuple[Function, str], list[Variable]] = {}

    def function(self, frame: NameFrame, node: Definition) -> None:
        """Record a definition with its defaults, annotations and decorators; its body is walked later."""
        function = self.program.definitions.functions[node]
        self._header(frame, function, node.args)
        declared = self.semantics.annotations.declared(frame.scope, node.returns)
        self.solver.copy(declared, function.result)
        variable = self.solver.holding(function)
        decorated = self._decorated(frame, node.decorator_list, variable)
        if not any(last_name(item) == "overload" for item in node.decorator_list):
            self.expressions.assign(frame, node.name, decorated, defines=True)

    def lambda_(self, node: ast.Lambda, frame: NameFrame) -> Variable:
        """Return the variable of a lambda."""
        function = self.program.definitions.functions[node]
        self._header(frame, function, node.args)
        return self.solver.holding(function)

    def _header(self, frame: NameFrame, function: Function, arguments: ast.arguments) -> None:
        function.result = self.solver.narrow()
        for name in [*function.positional, *function.keyword_only]:
            function.parameters[name] = self.solver.narrow()
        positional = [*arguments.posonlyargs, *arguments.args]
        # Defaults belong to the last positional arguments.
        with_default = positional[len(positional) - len(arguments.defaults) :]
        defaults = [*zip(with_default, arguments.defaults, strict=True)]
        for item, value in [*defaults, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]:
            if value is not None:
                self._give(function, item.arg, self.expressions.evaluate(frame, value))
        for item in [*positional, *arguments.kwonlyargs]:
            self._give(function, item.arg, self.semantics.annotations.declared(frame.scope, item.annotation))
        if arguments.vararg is not None:
            function.rest = self._collected(frame, "tuple", arguments.vararg)
        if arguments.kwarg is not None:
            function.keywords = self._collected(frame, "dict", arguments.kwarg)
        if function.cls is not None and function.positional:
            self._give_receiver(function, function.cls)
        self._waiting.append(function)

    def _give_receiver(self, function: Function, cls: Class) -> None:
        if function.is_static and function.name != "__new__":
            return
        # Python treats `__new__` as static but passes the class to it.
        takes_class = function.is_static or function.is_class_method
        receiver = cls.open if takes_class else cls.open_instance
        self._give(function, function.positional[0], self.solver.holding(receiver))

    def _give(self, function: Function, name: str, variable: Variable) -> None:
        if variable != NOTHING:
            self.solver.copy(variable, function.parameters[name])
            self._given.setdefault((function, name), []).append(variable)

    def _collected(self, frame: NameFrame, kind: str, parameter: ast.arg) -> Variable:
        made = self.program.container(kind)
        self.solver.copy(
            self.semantics.annotations.declared(frame.scope, parameter.annotation), made.unplaced
        )
        return self.solver.holding(made)

    def _decorated(self, frame: NameFrame, decorators: list[ast.expr], variable: Variable) -> Variable:
        for node in reversed(decorators):
            decorator = self.expressions.evaluate(frame, node)
            result = self.solver.variable()
            call = CallSite(frame.scope, "", Arguments([variable]), result, CallEvidence.DECORATOR)
            self.semantics.calls.run(call, decorator)
            self.program.deferred.append(partial(self._undecorated, decorator, call))
            variable = result
        return variable

    def _undecorated(self, decorator: Variable, call: CallSite) -> None:
        """Let a decorator with an unknown result return its argument."""
        if self.solver.is_empty(call.result):
            self.solver.copy(call.arguments.positional[0], call.result)

    def bodies(self) -> None:
        """Walk the bodies of all defined functions, including those they define."""
        while self._waiting:
            function = self._waiting.popleft()
            frame = NameFrame(function.scope, dict(function.parameters))
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

    def return_(self, frame: NameFrame, node: ast.Return) -> bool:
        """Record the result of a function; return True, because a `return` leaves the block."""
        function = frame.scope.function
        if node.value is not None and function is not None:
            self._result(frame, function, node.value)
        return True

    def _result(self, frame: NameFrame, function: Function, node: ast.expr) -> None:
        if isinstance(node, ast.Name) and frame.names.get(node.id, NOTHING) == function.parameters.get(
            node.id, -2
        ):
            if node.id not in function.passes_through:
                function.passes_through.append(node.id)
                for variable in self._given.get((function, node.id), ()):
                    self.solver.copy(variable, function.result)
            return
        variable = self.expressions.evaluate(frame, node)
        self.solver.copy(variable, function.generated.result if function.generated else function.result)

    def class_(self, frame: NameFrame, node: ast.ClassDef) -> None:
        """Walk a class: its bases, then its body, which runs immediately, then its decorators."""
        cls = self.program.definitions.classes[node]
        for item in [*node.bases, *(keyword.value for keyword in node.keywords)]:
            self.expressions.evaluate(frame, item)
        cls.data_fields = _declared_fields(node)
        inner = NameFrame(cls.scope, {}, frame)
        self.block(node.body, inner)
        for name, variable in inner.names.items():
            self.solver.copy(variable, self.program.name_variable(cls.scope, name))
        for base in cls.mro[1:]:
            if "__init_subclass__" in base.scope.bound:
                call = CallSite(frame.scope, "__init_subclass__", Arguments(), NOTHING, CallEvidence.PROTOCOL)
                self._hook(call, base, cls)
                break
        result = self._decorated(frame, node.decorator_list, self.solver.holding(cls))
        self.expressions.assign(frame, node.name, result, defines=True)

    def _hook(self, call: CallSite, base: Class, cls: Class) -> None:
        variable = self.program.name_variable(base.scope, call.name)
        self.solver.watch(variable, partial(self._run_hook, call, cls))

    def _run_hook(self, call: CallSite, cls: Class, value: Value) -> None:
        if isinstance(value, Function):
            self.semantics.calls.apply(call, self.program.bound(value, cls))

    def enter(self, frame: NameFrame, variable: Variable, *, asynchronous: bool) -> Variable:
        """Return the variable of the value that a `with`, or an `async with` if `asynchronous`, binds."""
        result = self.solver.variable()
        names = ("__aenter__", "__aexit__") if asynchronous else ("__enter__", "__exit__")
        enter = CallSite(frame.scope, names[0], Arguments(), result, CallEvidence.PROTOCOL)
        leave = CallSite(frame.scope, names[1], Arguments([NOTHING] * 3), NOTHING, CallEvidence.PROTOCOL)
        self.semantics.calls.protocol(enter, variable, names[0])
        self.semantics.calls.protocol(leave, variable, names[1])
        self.solver.watch(variable, partial(self._entered, result))
        return result

    def _entered(self, result: Variable, value: Value) -> None:
        if isinstance(value, Generated | ContainerValue):
            self.solver.copy(value.items, result)
        elif isinstance(value, Object):
            self.solver.add(result, value)

    def raise_(self, frame: NameFrame, variable: Variable) -> None:
        """Record that raising a class creates an instance of it."""
        call = CallSite(frame.scope, "", Arguments(), self.solver.variable(), CallEvidence.CONSTRUCTOR)
        self.solver.watch(variable, partial(self._raised, call))

    def _raised(self, call: CallSite, value: Value) -> None:
        if not isinstance(value, Instance):
            self.semantics.calls.apply(call, value)


def _declared_fields(node: ast.ClassDef) -> list[str]:
    names: list[str] = []
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            outer = item.annotation.value if isinstance(item.annotation, ast.Subscript) else item.annotation
            if getattr(outer, "id", getattr(outer, "attr", "")) != "ClassVar":
                names.append(item.target.id)
    return names
