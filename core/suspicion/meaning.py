"""The possible meanings of names and expressions of a module: a module's attribute, a text, something from outside."""

from __future__ import annotations

import ast
import builtins
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.scopes import NameScope, scoped
from gistpoint.core.suspicion.folding import Folding
from gistpoint.core.suspicion.names import INNER, ROOTS, SAME, TRACEBACK

_BUILTINS = frozenset(dir(builtins))
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_ELEMENTS = (ast.List, ast.Tuple, ast.Set)
_GIVING = frozenset({
    "capitalize", "casefold", "get", "group", "groups", "items", "keys", "lower", "lstrip", "partition", "pop",
    "popleft", "removeprefix", "removesuffix", "replace", "rpartition", "rsplit", "rstrip", "setdefault", "split",
    "strip", "title", "upper", "values",
})  # fmt: skip
"""Methods that return their argument, or a part of it."""
_PASSING = frozenset({
    "builtins.enumerate", "builtins.filter", "builtins.getattr", "builtins.iter", "builtins.list", "builtins.map",
    "builtins.max", "builtins.min", "builtins.next", "builtins.repr", "builtins.reversed", "builtins.set",
    "builtins.sorted", "builtins.str", "builtins.tuple", "builtins.type", "builtins.zip", "builtins.super",
})  # fmt: skip
_MAKING = frozenset({
    "builtins.bytearray", "builtins.bytes", "builtins.chr", "builtins.dir", "builtins.format", "builtins.hex",
    "builtins.locals", "builtins.memoryview", "builtins.vars",
})  # fmt: skip
_OWN = frozenset({"self", "cls", "other", "mcs", "klass"})


class Made(IntEnum):
    """Where a text comes from."""

    WRITTEN = 0
    """It is written out in the code."""
    OUTSIDE = 1
    """It came from outside the function, perhaps only partly, or with literal text around it."""
    MADE = 2
    """The function builds it in a way that hides its value."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding of a name at one place: to a module's path, to an expression, or to a part of one."""

    path: str = ""
    value: ast.expr | None = None
    whole: bool = True
    """Whether it is the value itself, not an element of it."""
    node: ast.AST | None = None
    """The definition or parameter."""


class Meaning:
    """The names of one module and their possible meanings, whatever the flow of control."""

    def __init__(self, tree: ast.Module) -> None:
        """Read the bindings of a module; `modules` holds those that it imports by `import`."""
        self.nodes = scoped(tree)
        self.scopes: dict[ast.AST, NameScope] = dict(self.nodes)
        self._bindings: dict[tuple[NameScope, str], list[Binding]] = defaultdict(list)
        self._paths: dict[ast.expr, frozenset[str]] = {}
        self._made: dict[ast.expr, Made] = {}
        self._closed: dict[ast.expr, bool] = {}
        self._folding = Folding(self._written, self.path)
        self.modules: set[str] = set()
        for node, _ in self.nodes:
            for name, place, binding in _bindings(node):
                scope = self.scopes[place]
                self._bindings[scope.of(name) or scope, name].append(binding)
            if isinstance(node, ast.Import):
                self.modules.update(canonical(item.name) for item in node.names)
        for node, _ in self.nodes:
            if isinstance(node, ast.Call):
                self._hand_over(node)

    def _hand_over(self, call: ast.Call) -> None:
        """Bind the parameters of inner functions to everything in calls of them, or passed along with them."""
        given = [*call.args, *(item.value for item in call.keywords)]
        functions = [function for item in (call.func, *given) for function in self._inner(item)]
        if not functions:
            return
        all_of_it = ast.Tuple([item for item in given if not isinstance(item, ast.Lambda)], ast.Load())
        for parameter in (parameter for function in functions for parameter, _ in parameters(function.args)):
            scope = self.scopes[parameter]
            binding = Binding(value=all_of_it, whole=False, node=parameter)
            self._bindings[scope.of(parameter.arg) or scope, parameter.arg].append(binding)

    def _inner(self, node: ast.expr) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
        """Yield the lambda that an expression is, or the functions within a function that a name is bound to."""
        if isinstance(node, ast.Lambda):
            yield node
        elif isinstance(node, ast.Name) and self._is_local(node):
            for binding in self.bindings(node.id, node):
                found = binding.node if isinstance(binding.node, _FUNCTIONS) else binding.value
                if isinstance(found, ast.Lambda | _FUNCTIONS):
                    yield found

    def bindings(self, name: str, node: ast.AST) -> list[Binding]:
        """Return the bindings of a name used at `node`; empty for a built-in."""
        home = self.scopes[node].of(name)
        return self._bindings[home, name] if home is not None else []

    def _written(self, node: ast.Name) -> tuple[ast.expr, ...] | None:
        """Return all possible meanings of a name; None if some are not expressions of this module."""
        found = self.bindings(node.id, node) if node in self.scopes else []
        values = [binding.value for binding in found if binding.whole and not isinstance(binding.node, ast.arg)]
        return tuple(value for value in values if value is not None) if len(values) == len(found) else None

    def texts(self, node: ast.expr) -> tuple[str, ...] | None:
        """Return the possible texts of an expression, None if any of them is unknown."""
        return self._folding.texts(node)

    def path(self, node: ast.expr) -> str:
        """Return the meaning of an expression if it has exactly one: `sys.modules`, `builtins.open`."""
        paths = self.paths(node)
        return next(iter(paths)) if len(paths) == 1 else ""

    def paths(self, node: ast.expr) -> frozenset[str]:
        """Return the modules, and things reached from them, that an expression may mean."""
        known = self._paths.get(node)
        if known is None:
            self._paths[node] = frozenset()  # a reference to itself adds nothing
            known = self._paths[node] = frozenset(map(canonical, self._found(node)))
        return known

    def _found(self, node: ast.expr) -> Iterator[str]:
        match node:
            case ast.Name(id=name):
                if node in self.scopes and self.scopes[node].of(name) is None:
                    if name in _BUILTINS:
                        yield f"builtins.{name}"
                elif node in self.scopes:
                    for binding in self.bindings(name, node):
                        yield from [binding.path] if binding.path else []
                        yield from self.paths(binding.value) if binding.value is not None else ()
            case ast.Attribute(value=value, attr=attribute):
                yield from self._attribute(value, attribute)
            case ast.Call(func=function, args=arguments):
                yield from self._returned(function, arguments)
            case ast.Subscript(value=value, slice=index):
                yield from self._item(value, index)
            case _:
                for part in among(node) or ():
                    yield from self.paths(part)

    def _attribute(self, value: ast.expr, attribute: str) -> Iterator[str]:
        owners = self.paths(value)
        yield from (f"{owner}.{attribute}" for owner in owners)
        if attribute == "__traceback__":
            yield TRACEBACK
        elif attribute == "__class__" and self._is_class(value):
            yield "builtins.type"
        elif not owners and attribute in ("sys", "builtins", "gc", "ctypes"):
            yield attribute

    def _returned(self, function: ast.expr, arguments: list[ast.expr]) -> Iterator[str]:
        paths = self.paths(function)
        if paths & {"builtins.getattr"} and len(arguments) >= 2:
            names = self.texts(arguments[1]) or ()
            yield from (f"{owner}.{name}" for owner in self.paths(arguments[0]) for name in names)
        elif paths & {"builtins.__import__", "importlib.import_module"} and arguments:
            yield from self.texts(arguments[0]) or ()
        elif paths & {"builtins.vars"} and arguments:
            yield from (f"{owner}.__dict__" for owner in self.paths(arguments[0]))
        elif paths & {"builtins.type"} and len(arguments) == 1:
            yield from (f"{owner}.__class__" for owner in self.paths(arguments[0]))
            if self._is_class(arguments[0]):
                yield "builtins.type"
        elif isinstance(function, ast.Lambda):
            yield from self.paths(function.body)
            yield from (path for item in arguments for path in self.paths(item))
        elif isinstance(function, ast.Name):
            for binding in self.bindings(function.id, function) if function in self.scopes else ():
                if isinstance(binding.node, _FUNCTIONS):
                    returned = [n.value for n in ast.walk(binding.node) if isinstance(n, ast.Return)]
                    yield from (path for value in returned if value is not None for path in self.paths(value))
                elif isinstance(binding.value, ast.Lambda):
                    yield from self.paths(binding.value.body)
        if paths & {"functools.partial"} and arguments:
            yield from self.paths(arguments[0])

    def _is_class(self, node: ast.expr) -> bool:
        """Whether an expression is certainly a class: a built-in one, one of this module, or that of an object."""
        match node:
            case ast.Attribute(attr="__class__"):
                return True
            case ast.Call(func=function, args=[_]) if self.paths(function) & {"builtins.type"}:
                return True
            case ast.Name(id=name) if node in self.scopes:
                if any(isinstance(binding.node, ast.ClassDef) for binding in self.bindings(name, node)):
                    return True
        return any(
            isinstance(getattr(builtins, path.removeprefix("builtins."), None), type)
            for path in self.paths(node)
            if path.startswith("builtins.")
        )

    def _item(self, value: ast.expr, index: ast.expr) -> Iterator[str]:
        names = self.texts(index) or ()
        for owner in self.paths(value):
            if owner == "sys.modules":
                yield from names
            elif owner.endswith(".__dict__"):
                yield from (f"{owner.removesuffix('.__dict__')}.{name}" for name in names)
            else:
                yield owner

    def made(self, node: ast.expr) -> Made:
        """Return where the text of an expression comes from."""
        known = self._made.get(node)
        if known is None:
            self._made[node] = Made.WRITTEN  # a reference to itself adds nothing
            known = self._made[node] = self._source(node)
        return known

    def _source(self, node: ast.expr) -> Made:
        match node:
            case ast.Constant():
                return Made.WRITTEN
            case ast.Name(id=name):
                return max((self._bound(binding) for binding in self.bindings(name, node)), default=Made.OUTSIDE)
            case ast.Attribute(value=value, attr=attribute):
                made = attribute == "__doc__" or (attribute == "__dict__" and not is_own(value))
                return Made.MADE if made else max(Made.OUTSIDE, self.made(value))
            case ast.Subscript(value=value, slice=ast.Slice()):
                return Made.OUTSIDE if self.made(value) is Made.OUTSIDE else Made.MADE
            case ast.Subscript(value=value):
                return self.made(value)
            case ast.JoinedStr(values=parts):
                return self._together(parts)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._together([left, right])
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=right):
                return self._together([right])
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element) | ast.SetComp(elt=element):
                return self.made(element)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self._called(function, [*arguments, *(item.value for item in keywords)])
            case _:
                items = among(node)
                return Made.MADE if items is None else self._most(items)

    def _bound(self, binding: Binding) -> Made:
        if isinstance(binding.node, ast.arg):
            default = binding.value
            return Made.OUTSIDE if default is None else max(Made.OUTSIDE, self.made(default))
        return Made.OUTSIDE if binding.value is None else self.made(binding.value)

    def _most(self, items: Iterable[ast.expr]) -> Made:
        return max(map(self.made, items), default=Made.WRITTEN)

    def _together(self, parts: list[ast.expr]) -> Made:
        """Return where a value built from parts comes from; literal parts alone count as a constant."""
        for part in parts:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            if not isinstance(inner, ast.Constant) and self.made(inner) is not Made.OUTSIDE:
                return Made.MADE
        return Made.OUTSIDE

    def _called(self, function: ast.expr, arguments: list[ast.expr]) -> Made:
        paths = self.paths(function)
        given = self._most(arguments)
        if paths & {"builtins.dir", "builtins.vars"}:
            return Made.OUTSIDE if len(arguments) == 1 and is_own(arguments[0]) else Made.MADE
        if paths & _MAKING:
            return Made.MADE
        if paths & _PASSING:
            return max(Made.OUTSIDE, given)
        if isinstance(function, ast.Attribute) and function.attr in _GIVING:
            return self.made(function.value) if self.made(function.value) is Made.OUTSIDE else Made.MADE
        if isinstance(function, ast.Attribute) and function.attr in ("format", "join"):
            return self._together(arguments) if isinstance(function.value, ast.Constant) else Made.MADE
        texts = any(isinstance(item, ast.Constant) and isinstance(item.value, str | bytes) for item in arguments)
        receiver = self.made(function.value) if isinstance(function, ast.Attribute) and not paths else Made.OUTSIDE
        own = isinstance(function, ast.Lambda) or (isinstance(function, ast.Name) and self._is_local(function))
        made = texts or own or receiver is not Made.OUTSIDE or given is Made.MADE
        return Made.MADE if made else Made.OUTSIDE

    def _is_local(self, name: ast.Name) -> bool:
        """Whether a function of this module binds a name to a function or a lambda."""
        home = self.scopes[name].of(name.id) if name in self.scopes else None
        found = self.bindings(name.id, name) if home is not None and home.parent is not None else []
        return any(isinstance(item.node, ast.FunctionDef) or isinstance(item.value, ast.Lambda) for item in found)

    def is_closed(self, node: ast.expr) -> bool:
        """Whether an expression consists only of literals, built-ins and modules."""
        known = self._closed.get(node)
        if known is None:
            self._closed[node] = True  # a reference to itself adds nothing
            known = self._closed[node] = all(self._is_closed_part(part) for part in ast.walk(node))
        return known

    def _is_closed_part(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Lambda | ast.Yield | ast.YieldFrom | ast.Await):
            return False
        if not isinstance(node, ast.Name) or node not in self.scopes:
            return True
        found = self.bindings(node.id, node)
        return all(
            not isinstance(item.node, ast.AST) and (item.value is None or self.is_closed(item.value)) for item in found
        )


def is_own(node: ast.expr) -> bool:
    """Whether an expression is the object that a method is called on, or its class."""
    match node:
        case ast.Name(id=name):
            return name in _OWN
        case ast.Attribute(value=inner, attr="__class__") | ast.Call(func=ast.Name(id="type"), args=[inner]):
            return is_own(inner)
        case _:
            return False


def among(node: ast.expr) -> list[ast.expr] | None:
    """Return the expressions of which a node is one, or which it holds; None if it is of neither kind."""
    match node:
        case ast.IfExp(body=body, orelse=other):
            return [body, other]
        case ast.BoolOp(values=items) | ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return items
        case ast.Dict(keys=keys, values=values):
            return [*(key for key in keys if key is not None), *values]
        case ast.NamedExpr() | ast.Starred() | ast.Await() | ast.FormattedValue():
            return [node.value]
        case _:
            return None


def canonical(path: str) -> str:
    """Return a path from the last module in it: `sys.modules` for `collections._sys.modules`."""
    parts = path.split(".")
    known = INNER if parts[0] in sys.stdlib_module_names else ROOTS
    for place in range(len(parts) - 1, 0, -1):
        for name in (parts[place], parts[place].lstrip("_")):
            if name in known:
                return ".".join([SAME.get(name, name), *parts[place + 1 :]])
    return ".".join([SAME.get(parts[0], parts[0]), *parts[1:]])


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST, Binding]]:
    """Yield the names that a node binds, each with the node whose scope it is in, and the binding."""
    match node:
        case ast.Import(names=names):
            for item in names:
                first = item.name.partition(".")[0]
                yield item.asname or first, node, Binding(path=item.name if item.asname else first)
        case ast.ImportFrom(module=module, names=names, level=level):
            for item in names:
                yield item.asname or item.name, node, Binding(path=f"{'.' * level}{module or ''}.{item.name}")
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            if not isinstance(node, ast.Lambda):
                yield node.name, node, Binding(node=node)
            for parameter, default in parameters(node.args):
                yield parameter.arg, parameter, Binding(value=default, node=parameter)
        case ast.Name() | ast.arg():
            return  # bound by the node that they are a part of
        case _:
            yield from _targets(node)
            for name in bound_names(node):
                yield name, node, Binding(node=node)


def _targets(node: ast.AST) -> Iterator[tuple[str, ast.AST, Binding]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _assigned(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _assigned(target, value)
        case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
            yield name, target, Binding(value=ast.BinOp(target, op, value))
        case ast.For(target=target, iter=over) | ast.AsyncFor(target=target, iter=over):
            yield from _parts(target, over)
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield from _parts(target, value)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            for clause in node.generators:
                yield from _parts(clause.target, clause.iter)
        case _:
            return


def parameters(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield the parameters of a function, each with its default value."""
    named = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(named) - len(arguments.defaults))
    yield from zip(named, [*defaults, *arguments.defaults], strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    yield from ((item, None) for item in (arguments.vararg, arguments.kwarg) if item is not None)


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST, Binding]]:
    if isinstance(target, ast.Name):
        yield target.id, target, Binding(value=value)
    elif isinstance(target, _ELEMENTS) and isinstance(value, _ELEMENTS) and len(target.elts) == len(value.elts):
        for inner, given in zip(target.elts, value.elts, strict=True):
            yield from _assigned(inner, given)
    else:
        yield from _parts(target, value)


def _parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.AST, Binding]]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node, Binding(value=value, whole=False)
