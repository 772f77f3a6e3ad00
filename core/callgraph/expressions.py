"""Evaluates expressions: finds the variable with an expression's possible values, records its calls, and
binds targets.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from gistpoint.core.callgraph.containers import Key
from gistpoint.core.callgraph.graph import CallEvidence
from gistpoint.core.callgraph.program import CallSite
from gistpoint.core.callgraph.semantics import (
    BINARY,
    COMPARED,
    FORMATTED,
    MIRRORED,
    REFLECTED,
    UNARY,
    Semantics,
    first_place,
    is_super,
    literal_type,
)
from gistpoint.core.callgraph.values import (
    NOTHING,
    AnalysisScope,
    Arguments,
    Builtin,
    Function,
    Generated,
    Variable,
)
from gistpoint.core.code.nodes import has_any


@dataclass(slots=True, eq=False)
class NameFrame:
    """A scope while its code is walked: the current values of each name, and the enclosing frame."""

    scope: AnalysisScope
    names: dict[str, Variable] = field(default_factory=dict)
    outer: NameFrame | None = None


class Targets:
    """Binds values to the targets of assignments, loops, with blocks and match patterns."""

    def __init__(self, semantics: Semantics, expressions: Expressions) -> None:
        self.semantics = semantics
        self.solver = semantics.program.solver
        self.expressions = expressions

    def bind(self, frame: NameFrame, target: ast.expr, variable: Variable) -> None:
        """Let `target` hold the values of `variable`."""
        if isinstance(target, ast.Name):
            self.expressions.assign(frame, target.id, variable)
        elif isinstance(target, ast.Attribute):
            base = self.expressions.evaluate(frame, target.value)
            self.semantics.attributes.store(frame.scope, base, target.attr, variable)
        elif isinstance(target, ast.Subscript):
            base = self.expressions.evaluate(frame, target.value)
            if isinstance(target.slice, ast.Slice):
                call = CallSite(
                    frame.scope, "__setitem__", Arguments([NOTHING, variable]), NOTHING, CallEvidence.PROTOCOL
                )
                self.semantics.calls.protocol(call, base, "__setitem__")
                return
            key, index = self.expressions.index(frame, target.slice)
            self.semantics.containers.store(frame.scope, base, key, index, variable)
        elif isinstance(target, ast.Starred):
            self.bind(frame, target.value, variable)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(frame, target.elts, variable)

    def _unpack(self, frame: NameFrame, targets: list[ast.expr], variable: Variable) -> None:
        starred = next(
            (place for place, item in enumerate(targets) if isinstance(item, ast.Starred)), len(targets)
        )
        looped = self.semantics.containers.iterate(frame.scope, variable)
        for place, target in enumerate(targets):
            if place < starred:
                found = self.semantics.containers.get(variable, ("int", place))
            elif place > starred:
                found = self.semantics.containers.get(variable, ("int", place - len(targets)))
            else:
                found = self.semantics.containers.slice(frame.scope, variable, starred)
            made = self.solver.variable()
            self.solver.copy(found, made)
            self.semantics.operators.keep_objects(looped, made)
            self.bind(frame, target, made)

    def assign(self, frame: NameFrame, target: ast.expr, value: ast.expr) -> None:
        """Assign `value` to `target`; tuples of equal length are matched item by item."""
        pairs = _paired(target, value)
        if pairs is None:
            self.bind(frame, target, self.expressions.evaluate(frame, value))
            return
        # Every part is evaluated before the first is bound, as in `a, b = b, a`.
        variables = [self._part(frame, *pair) for pair in pairs]
        for (item, part), variable in zip(pairs, variables, strict=True):
            if variable is None:
                self.assign(frame, item, part)
            else:
                self.bind(frame, item, variable)

    def _part(self, frame: NameFrame, target: ast.expr, value: ast.expr) -> Variable | None:
        nested = isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List)
        return None if nested else self.expressions.evaluate(frame, value)

    def match(self, frame: NameFrame, pattern: ast.pattern, subject: Variable) -> None:
        """Bind the names of a match pattern."""
        if isinstance(pattern, ast.MatchValue):
            self.expressions.evaluate(frame, pattern.value)
        elif isinstance(pattern, ast.MatchAs):
            self._match_as(frame, pattern, subject)
        elif isinstance(pattern, ast.MatchStar):
            if pattern.name is not None:
                self.expressions.assign(
                    frame, pattern.name, self.semantics.containers.slice(frame.scope, subject, None)
                )
        elif isinstance(pattern, ast.MatchOr):
            for item in pattern.patterns:
                self.match(frame, item, subject)
        elif isinstance(pattern, ast.MatchClass):
            self._match_class(frame, pattern, subject)
        else:
            self._match_items(frame, pattern, subject)

    def _match_as(self, frame: NameFrame, pattern: ast.MatchAs, subject: Variable) -> None:
        if pattern.pattern is not None:
            self.match(frame, pattern.pattern, subject)
        if pattern.name is not None:
            held = self.narrowed(frame, pattern.pattern, subject) if pattern.pattern is not None else subject
            self.expressions.assign(frame, pattern.name, held)

    def _match_items(self, frame: NameFrame, pattern: ast.pattern, subject: Variable) -> None:
        if isinstance(pattern, ast.MatchSequence):
            for place, item in enumerate(pattern.patterns):
                self.match(frame, item, self.semantics.containers.get(subject, ("int", place)))
        elif isinstance(pattern, ast.MatchMapping):
            for key, item in zip(pattern.keys, pattern.patterns, strict=True):
                known, index = self.expressions.index(frame, key)
                self.match(
                    frame, item, self.semantics.containers.subscript(frame.scope, subject, known, index)
                )

    def _match_class(self, frame: NameFrame, pattern: ast.MatchClass, subject: Variable) -> None:
        held = self.narrowed(frame, pattern, subject)
        for name, item in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            self.match(frame, item, self.semantics.attributes.load(frame.scope, held, name))
        values = self.semantics.annotations.tested(frame.scope, pattern.cls)
        names = [name for value in values for name in getattr(getattr(value, "cls", None), "data_fields", [])]
        for place, item in enumerate(pattern.patterns):
            if place < len(names):
                self.match(frame, item, self.semantics.attributes.load(frame.scope, held, names[place]))
            else:
                self.match(frame, item, subject if len(pattern.patterns) == 1 else NOTHING)

    def narrowed(self, frame: NameFrame, pattern: ast.pattern, subject: Variable) -> Variable:
        """Return a variable for what a pattern may match: `subject` or, if it names a class, an instance."""
        if not isinstance(pattern, ast.MatchClass):
            return subject
        made = self.solver.variable()
        self.solver.copy(subject, made)
        for value in self.semantics.annotations.tested(frame.scope, pattern.cls):
            self.solver.add(made, value)
        return made


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]] | None:
    """Return the items of two tuples or lists in pairs; None unless their lengths are equal and known."""
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(value, ast.Tuple | ast.List):
        return None
    if len(target.elts) != len(value.elts) or has_any(ast.Starred, [*target.elts, *value.elts]):
        return None
    return list(zip(target.elts, value.elts, strict=True))


_MOST_ITEMS = 64
_SHORTEST_START = 3
_CONVERSIONS = {-1: "__format__", ord("r"): "__repr__"}
"""The special method of a conversion in an f-string; any other, such as `!s`, calls `__str__`."""


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A call through an attribute, kept in case its receiver stays unknown."""

    call: CallSite
    receiver: Variable
    callee: Variable


class Expressions:
    """Evaluates expressions in a frame; function bodies are left to `define`."""

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.program = semantics.program
        self.solver = semantics.program.solver
        self.targets = Targets(semantics, self)
        self.method_calls: list[MethodCall] = []
        self.define: Callable[[ast.Lambda, NameFrame], Variable]
        self._builtins: dict[str, Variable] = {}
        self._by_kind: dict[type[ast.AST], Callable[[NameFrame, ast.expr], Variable]] = {
            kind: getattr(self, "_" + kind.__name__.lower())
            for kind in (
                ast.Constant,
                ast.Name,
                ast.Attribute,
                ast.Call,
                ast.Lambda,
                ast.IfExp,
                ast.BoolOp,
                ast.BinOp,
                ast.UnaryOp,
                ast.Compare,
                ast.Subscript,
                ast.List,
                ast.Tuple,
                ast.Set,
                ast.Dict,
                ast.ListComp,
                ast.SetComp,
                ast.GeneratorExp,
                ast.DictComp,
                ast.Starred,
                ast.Await,
                ast.Yield,
                ast.YieldFrom,
                ast.NamedExpr,
                ast.JoinedStr,
                ast.FormattedValue,
            )
        }

    def evaluate(self, frame: NameFrame, node: ast.expr) -> Variable:
        """Return the variable of the possible values of `node`."""
        handler = self._by_kind.get(type(node))
        if handler is not None:
            return handler(frame, node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(frame, child)
        return NOTHING

    def test(self, frame: NameFrame, node: ast.expr) -> None:
        """Evaluate a condition; testing the truth of an object may call its `__bool__`."""
        variable = self.evaluate(frame, node)
        if variable != NOTHING:
            self.semantics.library.convert(frame.scope, variable, "__bool__")

    def lookup(self, frame: NameFrame, name: str) -> Variable:
        """Return the variable of a name at this point of the code."""
        scope = frame.scope.enclosing(name)
        if scope is None:
            return self._builtin(name)
        current: NameFrame | None = frame
        while current is not None:
            if current.scope is scope:
                known = current.names.get(name)
                return known if known is not None else self.program.name_variable(scope, name)
            current = current.outer
        return self.program.name_variable(scope, name)

    def assign(self, frame: NameFrame, name: str, variable: Variable, *, defines: bool = False) -> None:
        """Let a name hold the values of `variable` from this point on.

        If a definition or an import `defines` the name, code outside of a module does not see its values
        before.
        """
        scope = frame.scope
        if name in scope.globals or name in scope.nonlocals:
            target = scope.enclosing(name)
            if target is not None:
                self.solver.copy(variable, self.program.name_variable(target, name))
            return
        if name in scope.written_inside:
            frame.names[name] = self.program.name_variable(scope, name)
            self.solver.copy(variable, frame.names[name])
            return
        before = frame.names.get(name, NOTHING)
        frame.names[name] = variable
        # Code elsewhere may read the name: in other modules, or in functions inside this function.
        is_seen_outside = (
            scope.captured if scope.kind == "function" else scope.kind == "module" and not defines
        )
        if is_seen_outside:
            self.solver.copy(before, self.program.name_variable(scope, name))
            self.solver.copy(variable, self.program.name_variable(scope, name))

    def merged(self, variables: list[Variable]) -> Variable:
        """Return a variable that holds the values of all `variables`; `NOTHING` if all are `NOTHING`."""
        known = [variable for variable in dict.fromkeys(variables) if variable != NOTHING]
        if len(known) < 2:
            return known[0] if known else NOTHING
        made = self.solver.variable()
        for variable in known:
            self.solver.copy(variable, made)
        return made

    def narrowed(self, frame: NameFrame, test: ast.expr) -> dict[str, Variable]:
        """Return the names that a condition tests with `isinstance`, each with the values if it is true."""
        match test:
            case ast.BoolOp(op=ast.And(), values=parts):
                found: dict[str, Variable] = {}
                for part in parts:
                    found.update(self.narrowed(frame, part))
                return found
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), classes]):
                values = self.semantics.annotations.tested(frame.scope, classes)
            case _:
                return {}
        if not values:
            return {}
        made = self.solver.variable()
        self.solver.copy(self.lookup(frame, name), made)
        for value in values:
            self.solver.add(made, value)
        return {name: made}

    def _builtin(self, name: str) -> Variable:
        known = self._builtins.get(name)
        if known is None:
            value = Builtin(name) if name in self.semantics.library.builtin_names else None
            known = self._builtins[name] = self.solver.holding(value) if value else NOTHING
        return known

    def _constant(self, frame: NameFrame, node: ast.Constant) -> Variable:
        return self.solver.holding(self.program.constant(node.value))

    def _name(self, frame: NameFrame, node: ast.Name) -> Variable:
        return self.lookup(frame, node.id)

    def _attribute(self, frame: NameFrame, node: ast.Attribute) -> Variable:
        base = self.evaluate(frame, node.value)
        return self.semantics.attributes.load(frame.scope, base, node.attr) if base != NOTHING else NOTHING

    def _call(self, frame: NameFrame, node: ast.Call) -> Variable:
        receiver = NOTHING
        if isinstance(node.func, ast.Attribute):
            receiver = self.evaluate(frame, node.func.value)
            callee = self.semantics.attributes.load(frame.scope, receiver, node.func.attr)
            name = node.func.attr
        else:
            callee = self.evaluate(frame, node.func)
            name = node.func.id if isinstance(node.func, ast.Name) else ""
        found = CallEvidence.SUPER if is_super(node.func) else None
        call = CallSite(frame.scope, name, self.arguments(frame, node), self.solver.variable(), found)
        if isinstance(node.func, ast.Attribute) and name in self.program.class_names:
            self.method_calls.append(MethodCall(call, receiver, callee))
        self.semantics.calls.run(call, callee)
        return call.result

    def arguments(self, frame: NameFrame, node: ast.Call) -> Arguments:
        """Evaluate the arguments of a call, and return their variables."""
        made = Arguments()
        for item in node.args:
            if isinstance(item, ast.Starred):
                made.starred.append((len(made.positional), self.evaluate(frame, item.value)))
            elif made.starred:
                self.evaluate(frame, item)
            else:
                made.positional.append(self.evaluate(frame, item))
        for keyword in node.keywords:
            variable = self.evaluate(frame, keyword.value)
            if keyword.arg is None:
                made.mappings.append(variable)
            else:
                made.named[keyword.arg] = variable
        return made

    def _lambda(self, frame: NameFrame, node: ast.Lambda) -> Variable:
        return self.define(node, frame)

    def _ifexp(self, frame: NameFrame, node: ast.IfExp) -> Variable:
        self.test(frame, node.test)
        outer = dict(frame.names)
        frame.names.update(self.narrowed(frame, node.test))
        chosen = self.evaluate(frame, node.body)
        frame.names = outer
        return self.merged([chosen, self.evaluate(frame, node.orelse)])

    def _boolop(self, frame: NameFrame, node: ast.BoolOp) -> Variable:
        outer = dict(frame.names)
        variables: list[Variable] = []
        for item in node.values:
            variables.append(self.evaluate(frame, item))
            if isinstance(node.op, ast.And):
                frame.names.update(self.narrowed(frame, item))
        frame.names = {**frame.names, **outer}
        for variable in variables[:-1]:
            self.semantics.library.convert(frame.scope, variable, "__bool__")
        return self.merged(variables)

    def operate(self, frame: NameFrame, names: list[str], left: Variable, right: Variable) -> Variable:
        """Return the variable of an operator's result; `names` are the special methods to try in order."""
        result = self.solver.variable()
        for name in names:
            reflected = name in REFLECTED
            receiver, other = (right, left) if reflected else (left, right)
            call = CallSite(frame.scope, name, Arguments([other]), result, CallEvidence.PROTOCOL)
            self.semantics.calls.protocol(call, receiver, name)
        return result

    def _binop(self, frame: NameFrame, node: ast.BinOp) -> Variable:
        left, right = self.evaluate(frame, node.left), self.evaluate(frame, node.right)
        kind = literal_type(node.left)
        if isinstance(node.op, ast.Mod) and kind in FORMATTED:
            self.semantics.library.convert(frame.scope, right, FORMATTED[kind])
            return self._text(node.left) if kind is str else left
        name = BINARY[type(node.op)]
        result = self.operate(frame, [f"__{name}__", f"__r{name}__"], left, right)
        if isinstance(node.op, ast.Add) and kind is str:
            return self.merged([result, self._text(node.left)])
        self.semantics.operators.keep_builtin(left, result)
        self.semantics.operators.keep_builtin(right, result)
        return result

    def _unaryop(self, frame: NameFrame, node: ast.UnaryOp) -> Variable:
        operand = self.evaluate(frame, node.operand)
        if isinstance(node.op, ast.Not):
            self.semantics.library.convert(frame.scope, operand, "__bool__")
            return self.solver.holding(self.program.opaque("bool"))
        if isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int):
            return self.solver.holding(self.program.constant(-node.operand.value))
        return self.operate(frame, [UNARY[type(node.op)]], operand, NOTHING)

    def _compare(self, frame: NameFrame, node: ast.Compare) -> Variable:
        left = self.evaluate(frame, node.left)
        nodes = [node.left, *node.comparators]
        for operator, first, item in zip(node.ops, nodes, node.comparators, strict=False):
            right = self.evaluate(frame, item)
            if isinstance(operator, ast.In | ast.NotIn):
                call = CallSite(
                    frame.scope, "__contains__", Arguments([left]), NOTHING, CallEvidence.PROTOCOL
                )
                self.semantics.calls.protocol(call, right, "__contains__")
            elif type(operator) in COMPARED and literal_type(first) is not None:
                self.operate(frame, COMPARED[MIRRORED[type(operator)]], right, left)
            elif type(operator) in COMPARED:
                self.operate(frame, COMPARED[type(operator)], left, right)
            left = right
        return self.solver.holding(self.program.opaque("bool"))

    def _subscript(self, frame: NameFrame, node: ast.Subscript) -> Variable:
        base = self.evaluate(frame, node.value)
        if isinstance(node.slice, ast.Slice):
            for item in filter(None, (node.slice.lower, node.slice.upper, node.slice.step)):
                self.evaluate(frame, item)
            return self.semantics.containers.slice(frame.scope, base, first_place(node.slice))
        key, index = self.index(frame, node.slice)
        return self.semantics.containers.subscript(frame.scope, base, key, index)

    def index(self, frame: NameFrame, node: ast.expr) -> tuple[Key, Variable]:
        """Return the key of a constant index, None for any other, and the variable of the index."""
        variable = self.evaluate(frame, node)
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            node, sign = node.operand, -1
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str | int | bytes):
            return None, variable
        value = node.value if sign == 1 or not isinstance(node.value, int) else -node.value
        return (type(value).__name__, value), variable

    def _list(self, frame: NameFrame, node: ast.List | ast.Tuple | ast.Set) -> Variable:
        starred = has_any(ast.Starred, node.elts)
        kind = type(node).__name__.lower()
        has_places = kind != "set" and not starred
        made = self.program.container(kind, None if starred else len(node.elts))
        for place, item in enumerate(node.elts):
            if isinstance(item, ast.Starred):
                items = self.semantics.containers.iterate(frame.scope, self.evaluate(frame, item.value))
                self.solver.copy(items, made.unplaced)
                continue
            variable = self.evaluate(frame, item)
            if isinstance(item, ast.Constant) and len(node.elts) > _MOST_ITEMS:
                continue
            held = made.unplaced
            if has_places and place < _MOST_ITEMS:
                held = self.program.place(made, ("int", place))
            self.solver.copy(variable, held)
        return self.solver.holding(made)

    _tuple = _list
    _set = _list

    def _dict(self, frame: NameFrame, node: ast.Dict) -> Variable:
        made = self.program.container("dict")
        holder = self.solver.holding(made)
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.evaluate(frame, value_node)
            if key_node is None:
                self.semantics.containers.merge(value, holder)
                continue
            key, index = self.index(frame, key_node)
            if isinstance(value_node, ast.Constant) and len(node.keys) > _MOST_ITEMS:
                continue
            self.semantics.containers.store(frame.scope, holder, key, index, value)
        return holder

    def _comprehended(
        self, frame: NameFrame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> NameFrame:
        inner = NameFrame(self.program.definitions.scopes[node], {}, frame)
        for generator in node.generators:
            items = self.evaluate(inner, generator.iter)
            items = self.semantics.containers.iterate(
                frame.scope, items, asynchronous=bool(generator.is_async)
            )
            self.targets.bind(inner, generator.target, items)
            for condition in generator.ifs:
                self.test(inner, condition)
        return inner

    def _listcomp(self, frame: NameFrame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Variable:
        inner = self._comprehended(frame, node)
        made = self.program.container("list")
        self.solver.copy(self.evaluate(inner, node.elt), made.unplaced)
        return self.solver.holding(made)

    _setcomp = _listcomp
    _generatorexp = _listcomp

    def _dictcomp(self, frame: NameFrame, node: ast.DictComp) -> Variable:
        inner = self._comprehended(frame, node)
        made = self.program.container("dict")
        self.solver.copy(self.evaluate(inner, node.key), made.keys)
        self.solver.copy(self.evaluate(inner, node.value), made.unplaced)
        return self.solver.holding(made)

    def _starred(self, frame: NameFrame, node: ast.Starred) -> Variable:
        return self.semantics.containers.iterate(frame.scope, self.evaluate(frame, node.value))

    def _await(self, frame: NameFrame, node: ast.Await) -> Variable:
        variable = self.evaluate(frame, node.value)
        result = self.solver.variable()
        self.solver.copy(variable, result)
        call = CallSite(frame.scope, "__await__", Arguments(), NOTHING, CallEvidence.PROTOCOL)
        self.semantics.calls.protocol(call, variable, "__await__")
        return result

    def _generated(self, frame: NameFrame) -> Generated | None:
        scope: AnalysisScope | None = frame.scope
        while scope is not None and scope.kind == "comprehension":
            scope = scope.parent
        function: Function | None = scope.function if scope is not None else None
        if function is None:
            return None
        if function.generated is None:
            function.generated = Generated(self.solver.variable(), self.solver.variable())
            self.solver.add(function.result, function.generated)
        return function.generated

    def _yield(self, frame: NameFrame, node: ast.Yield) -> Variable:
        generated = self._generated(frame)
        if node.value is not None:
            variable = self.evaluate(frame, node.value)
            if generated is not None:
                self.solver.copy(variable, generated.items)
        return NOTHING

    def _yieldfrom(self, frame: NameFrame, node: ast.YieldFrom) -> Variable:
        generated = self._generated(frame)
        items = self.semantics.containers.iterate(frame.scope, self.evaluate(frame, node.value))
        if generated is not None:
            self.solver.copy(items, generated.items)
        return NOTHING

    def _namedexpr(self, frame: NameFrame, node: ast.NamedExpr) -> Variable:
        variable = self.evaluate(frame, node.value)
        current: NameFrame | None = frame
        while current is not None:
            self.assign(current, node.target.id, variable)
            current = current.outer if current.scope.kind == "comprehension" else None
        return variable

    def _joinedstr(self, frame: NameFrame, node: ast.JoinedStr) -> Variable:
        for item in node.values:
            self.evaluate(frame, item)
        return self._text(node.values[0] if node.values else None)

    def _text(self, first: ast.expr | None) -> Variable:
        """Return the variable of a string with a constant beginning, or `str` if that is not distinctive."""
        start = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
        start = start.partition("%")[0].partition("{")[0]
        if len(start) < _SHORTEST_START or not start.replace("_", "a").isalnum():
            return self.solver.holding(self.program.opaque("str"))
        return self.solver.holding(self.program.text(start))

    def _formattedvalue(self, frame: NameFrame, node: ast.FormattedValue) -> Variable:
        variable = self.evaluate(frame, node.value)
        special = _CONVERSIONS.get(node.conversion, "__str__")
        self.semantics.library.convert(frame.scope, variable, special)
        if node.format_spec is not None:
            self.evaluate(frame, node.format_spec)
        return NOTHING
