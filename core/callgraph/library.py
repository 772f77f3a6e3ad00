"""The effects of built-in functions, and of some of the standard library, on their arguments."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from functools import partial

from gistpoint.core.callgraph.attributes import Attributes
from gistpoint.core.callgraph.calls import Calls
from gistpoint.core.callgraph.containers import Containers
from gistpoint.core.callgraph.graph import CallEvidence
from gistpoint.core.callgraph.program import MOST_SUBCLASSES, CallSite, Program, as_class, class_of
from gistpoint.core.callgraph.values import (
    NOTHING,
    AnalysisScope,
    Arguments,
    Builtin,
    BuiltinMethod,
    Class,
    Constant,
    ContainerValue,
    Function,
    Generated,
    Instance,
    OpenClass,
    Outside,
    Partial,
    Property,
    SuperProxy,
    Text,
    Value,
    Variable,
    Wrapped,
)

_SPECIAL = {
    "str": "__str__",
    "repr": "__repr__",
    "len": "__len__",
    "hash": "__hash__",
    "bool": "__bool__",
    "int": "__int__",
    "float": "__float__",
    "abs": "__abs__",
    "round": "__round__",
    "format": "__format__",
    "bytes": "__bytes__",
    "reversed": "__reversed__",
    "dir": "__dir__",
    "complex": "__complex__",
    "index": "__index__",
    "ascii": "__repr__",
    "divmod": "__divmod__",
    "pow": "__pow__",
}
_COLLECT = {
    "list": "list",
    "tuple": "tuple",
    "set": "set",
    "frozenset": "set",
    "sorted": "list",
    "iter": "list",
    "reversed": "list",
    "collections.deque": "list",
    "itertools.chain": "list",
    "collections.OrderedDict": "dict",
    "dict": "dict",
    "collections.Counter": "dict",
    "itertools.chain.from_iterable": "list",
    "itertools.islice": "list",
    "itertools.cycle": "list",
    "enumerate": "pairs",
    "zip": "pairs",
    "any": "",
    "all": "",
    "sum": "",
    "min": "item",
    "max": "item",
    "next": "",
}
_APPLIES = {
    "map": 0,
    "filter": 0,
    "functools.reduce": 0,
    "itertools.starmap": 0,
    "itertools.takewhile": 0,
    "itertools.dropwhile": 0,
    "itertools.filterfalse": 0,
    "itertools.groupby": 1,
    "re.sub": 1,
    "re.subn": 1,
}
_KEYED = {"sorted", "min", "max", "itertools.groupby"}
_SAME = {
    "copy.copy",
    "copy.deepcopy",
    "dataclasses.replace",
    "weakref.proxy",
    "six.text_type",
    "asyncio.shield",
}
_PROPERTIES = {
    "property",
    "functools.cached_property",
    "abc.abstractproperty",
    "cached_property",
    "types.DynamicClassAttribute",
}
_TYPES = {
    "str",
    "int",
    "float",
    "bool",
    "bytes",
    "bytearray",
    "complex",
    "range",
    "memoryview",
    "object",
    "len",
    "repr",
    "open",
    "hash",
    "id",
    "ord",
    "chr",
    "format",
    "input",
    "round",
    "abs",
    "isinstance",
    "issubclass",
    "callable",
}
_PUTS = {"append": 0, "add": 0, "appendleft": 0, "insert": 1, "setdefault": 1, "put": 0}
_TAKES = {"pop", "popleft", "get", "setdefault", "popitem", "__getitem__", "__next__"}
_SHORTEST_START = 3
_MERGES = {"update", "extend", "union", "copy", "intersection", "difference", "extendleft"}


class BuiltinCalls:
    """Calls to functions and types that are not in the sources."""

    def __init__(
        self, program: Program, calls: Calls, attributes: Attributes, containers: Containers
    ) -> None:
        self.program = program
        self.solver = program.solver
        self.attributes = attributes
        self.containers = containers
        self.calls = calls
        calls.register(self._named, Builtin, Outside)
        calls.register(self._method, BuiltinMethod)
        self._functions: dict[str, Callable[[CallSite], None]] = {
            "super": self._super,
            "type": self._type,
            "getattr": self._getattr,
            "setattr": self._setattr,
            "hasattr": self._hasattr,
            "print": self._print,
            "staticmethod": partial(self._wrap, True),
            "classmethod": partial(self._wrap, False),
            "functools.partial": self._partial,
            "functools.partialmethod": self._partial,
            "typing.cast": self._cast,
            "builtins.vars": self._unknown,
        }
        self.builtin_names = frozenset(dir(builtins))
        self._proxies: dict[tuple[Class, Value], SuperProxy] = {}
        self._dict_views: dict[tuple[ContainerValue, str], ContainerValue] = {}

    def _named(self, call: CallSite, value: Builtin | Outside) -> None:
        name = value.name
        if name in self._functions:
            self._functions[name](call)
        elif name in _PROPERTIES or name.endswith("property"):
            self.solver.add(call.result, self._property(call))
        elif name in _SAME and call.arguments.positional:
            self.solver.copy(call.arguments.positional[0], call.result)
        else:
            self._known(call, name)

    def _known(self, call: CallSite, name: str) -> None:
        given = call.arguments.positional
        if name in _SPECIAL and given:
            self._convert(call, name, given[0])
        place = _APPLIES.get(name, len(given))
        if place < len(given):
            function = given[place]
            self._map_over(call, function, [item for item in given if item is not function])
        if name in _KEYED and "key" in call.arguments.named:
            self._map_over(call, call.arguments.named["key"], given[:1])
        if name in _COLLECT:
            self._collect(call, name, _COLLECT[name])
        elif name in _TYPES:
            self.solver.add(call.result, self.program.opaque(name))
        elif name != "map":
            self._unknown(call)

    def _unknown(self, call: CallSite) -> None:
        given = call.arguments.positional
        if call.found is CallEvidence.DECORATOR and given:
            self.solver.copy(given[0], call.result)
        else:
            self.solver.add(call.result, self.program.opaque(""))

    def _convert(self, call: CallSite, name: str, given: Variable) -> None:
        self.convert(call.scope, given, _SPECIAL[name])

    def convert(self, scope: AnalysisScope, given: Variable, special: str) -> None:
        """Record that converting the objects in `given` calls their method `special`, such as `__str__`."""
        call = CallSite(scope, special, Arguments(), NOTHING, CallEvidence.PROTOCOL)
        self.solver.watch(given, partial(self._converted, call))

    def _converted(self, call: CallSite, value: Value) -> None:
        other = {"__str__": "__repr__", "__format__": "__str__", "__bool__": "__len__"}.get(call.name)
        if not self.calls.special(call, value, call.name) and other is not None:
            self._converted(
                CallSite(call.scope, other, call.arguments, NOTHING, CallEvidence.PROTOCOL), value
            )

    def _map_over(self, call: CallSite, function: Variable, iterables: list[Variable]) -> None:
        """Call `function` on the items of `iterables`, like `map`."""
        items = [self.containers.iterate(call.scope, item) for item in iterables]
        made = self.program.container("list")
        inner = CallSite(call.scope, "", Arguments(items), made.unplaced)
        self.solver.add(call.result, made)
        self.calls.run(inner, function)

    def _collect(self, call: CallSite, name: str, kind: str) -> None:
        given = call.arguments.positional
        if name == "next":
            if given:
                self.solver.copy(self.containers.advance(call.scope, given[0]), call.result)
            return
        if name in ("list", "tuple", "iter", "sorted", "reversed", "set", "dict") and given:
            self.containers.merge(given[0], call.result)
        made = self.program.container("list" if kind in ("pairs", "item", "") else kind)
        pair = self.program.container("tuple")
        for place, items in enumerate(self._collected(call, name, kind)):
            if kind == "pairs":
                at = place if name == "zip" else 1
                self.solver.copy(items, self.program.place(pair, ("int", at)))
            else:
                self.solver.copy(items, call.result if kind == "item" else made.unplaced)
        if kind == "pairs":
            self.solver.add(made.unplaced, pair)
        for keyword, variable in call.arguments.named.items():
            if kind == "dict":
                self.solver.copy(variable, self.program.place(made, ("str", keyword)))
        if kind not in ("", "item"):
            self.solver.add(call.result, made)

    def _collected(self, call: CallSite, name: str, kind: str) -> Iterator[Variable]:
        """Yield the items collected from each argument; those of `dict` are merged as a whole instead."""
        given = call.arguments.positional
        # A single argument of `min` and `max` is iterated; several are the items themselves.
        are_items = kind == "item" and len(given) > 1
        for argument in () if name == "dict" else given:
            yield argument if are_items else self.containers.iterate(call.scope, argument)

    def _super(self, call: CallSite) -> None:
        given = call.arguments.positional
        if len(given) > 1:
            self.solver.watch(given[0], partial(self._super_of, call, given[1]))
            return
        method = _enclosing_method(call.scope)
        if method is None or method.cls is None or not method.positional:
            return
        receiver = method.parameters.get(method.positional[0], NOTHING)
        self.solver.watch(receiver, partial(self._proxy, call, method.cls))

    def _super_of(self, call: CallSite, receiver: Variable, value: Value) -> None:
        self.solver.watch(receiver, partial(self._proxy, call, value))

    def _proxy(self, call: CallSite, cls: Value, receiver: Value) -> None:
        owner = cls.cls if isinstance(cls, OpenClass) else cls
        self.solver.add(call.result, self._super_proxy(owner, receiver))

    def _super_proxy(self, cls: Value, receiver: Value) -> Value:
        if not isinstance(cls, Class):
            return self.program.opaque("super")
        key = (cls, receiver)
        known = self._proxies.get(key)
        if known is None:
            known = self._proxies[key] = SuperProxy(cls, receiver)
        return known

    def _type(self, call: CallSite) -> None:
        if len(call.arguments.positional) == 1:
            self.solver.watch(call.arguments.positional[0], partial(self._type_of, call))

    def _type_of(self, call: CallSite, value: Value) -> None:
        if isinstance(value, Instance):
            self.solver.add(call.result, as_class(value))

    def _getattr(self, call: CallSite) -> None:
        given = call.arguments.positional
        if len(given) > 1:
            self.solver.watch(given[1], partial(self._getattr_by, call))
        if len(given) > 2:
            self.solver.copy(given[2], call.result)

    def _getattr_by(self, call: CallSite, value: Value) -> None:
        name = _constant_text(value)
        if name is not None:
            reader = partial(self.attributes.read, call.scope, name, call.result)
            self.solver.watch(call.arguments.positional[0], reader)
        elif isinstance(value, Text):
            self.solver.watch(call.arguments.positional[0], partial(self._getattr_like, call, value.start))

    def _getattr_like(self, call: CallSite, start: str, value: Value) -> None:
        """Read every attribute whose name begins with `start`, as dispatch by computed names does."""
        cls = class_of(value)
        if cls is None or isinstance(value, SuperProxy):
            return
        owners = [*cls.mro, *([] if getattr(value, "exact", False) else cls.subclasses[:MOST_SUBCLASSES])]
        names = dict.fromkeys(
            name for owner in owners for name in sorted(owner.scope.bound) if name.startswith(start)
        )
        for name in names:
            self.attributes.read(call.scope, name, call.result, value)

    def _hasattr(self, call: CallSite) -> None:
        unused = CallSite(
            call.scope, "getattr", Arguments(call.arguments.positional[:2]), self.solver.variable()
        )
        self._getattr(unused)
        self.solver.add(call.result, self.program.opaque("bool"))

    def _setattr(self, call: CallSite) -> None:
        given = call.arguments.positional
        if len(given) > 2:
            self.solver.watch(given[1], partial(self._setattr_by, call))

    def _setattr_by(self, call: CallSite, value: Value) -> None:
        name = _constant_text(value)
        if name is not None:
            self.program.stored_names.add(name)
            self.attributes.store(
                call.scope, call.arguments.positional[0], name, call.arguments.positional[2]
            )

    def _print(self, call: CallSite) -> None:
        for item in call.arguments.positional:
            self.convert(call.scope, item, "__str__")

    def _wrap(self, static: bool, call: CallSite) -> None:
        for item in call.arguments.positional[:1]:
            self.solver.watch(item, partial(self._wrapped, call, static))

    def _wrapped(self, call: CallSite, static: bool, value: Value) -> None:
        if isinstance(value, Function):
            marked = value.is_static if static else value.is_class_method
            self.solver.add(call.result, value if marked else Wrapped(value, static))
        else:
            self.solver.add(call.result, value)

    def _property(self, call: CallSite) -> Property:
        given = [*call.arguments.positional[:3], NOTHING, NOTHING, NOTHING]
        named = call.arguments.named
        return Property(named.get("fget", given[0]), named.get("fset", given[1]), named.get("fdel", given[2]))

    def _partial(self, call: CallSite) -> None:
        given = call.arguments
        if given.positional:
            rest = Arguments(given.positional[1:], given.named, [], given.mappings)
            self.solver.add(call.result, Partial(given.positional[0], rest))

    def _cast(self, call: CallSite) -> None:
        if len(call.arguments.positional) > 1:
            self.solver.copy(call.arguments.positional[1], call.result)
            self.solver.watch(call.arguments.positional[0], partial(self._cast_to, call))

    def _cast_to(self, call: CallSite, value: Value) -> None:
        cls = getattr(value, "open_instance", None)
        if isinstance(cls, Instance):
            self.solver.add(call.result, cls)

    def _method(self, call: CallSite, value: BuiltinMethod) -> None:
        owner, name, given = value.owner, value.name, call.arguments.positional
        if isinstance(owner, Generated):
            self.solver.copy(owner.items, call.result)
        elif isinstance(owner, ContainerValue):
            self._container_method(call, owner, name)
        elif isinstance(owner, Text) and name in ("lower", "replace", "strip", "rstrip"):
            self.solver.add(call.result, owner)
        elif name in ("format", "join") and isinstance(owner, Constant | Text):
            for item in [*given, *call.arguments.named.values()]:
                if name == "format":
                    self.convert(call.scope, item, "__str__")
                else:
                    self.containers.iterate(call.scope, item)
            start = _template_start(owner) if name == "format" else ""
            self.solver.add(call.result, self.program.text(start) if start else self.program.opaque("str"))
        else:
            self.calls.apply(call, self.program.opaque(""))

    def _merge(self, call: CallSite, owner: ContainerValue) -> None:
        for item in call.arguments.positional:
            self.containers.merge(item, self.solver.holding(owner))
            if owner.kind != "dict":
                self.solver.copy(self.containers.iterate(call.scope, item), owner.unplaced)

    def _container_method(self, call: CallSite, owner: ContainerValue, name: str) -> None:
        given = call.arguments.positional
        if name in _PUTS and len(given) > _PUTS[name]:
            if name == "setdefault":
                self.containers.store(call.scope, self.solver.holding(owner), None, given[0], given[1])
            else:
                self.containers.put(self.solver.holding(owner), None, given[_PUTS[name]])
        if name in _TAKES:
            index = given[0] if given and owner.kind == "dict" else NOTHING
            found = self.containers.subscript(call.scope, self.solver.holding(owner), None, index)
            self.solver.copy(found, call.result)
            if name == "get" and len(given) > 1:
                self.solver.copy(given[1], call.result)
        elif name in _MERGES:
            self._merge(call, owner)
            if name not in ("update", "extend", "extendleft"):
                self.solver.add(call.result, owner)
        elif name == "sort" and "key" in call.arguments.named:
            self._map_over(call, call.arguments.named["key"], [self.solver.holding(owner)])
        elif name in ("items", "values", "keys"):
            self.solver.add(call.result, self._view(owner, name))

    def _view(self, owner: ContainerValue, name: str) -> ContainerValue:
        key = (owner, name)
        known = self._dict_views.get(key)
        if known is None:
            known = self._dict_views[key] = self.program.container("list")
            if name == "items":
                pair = self.program.container("tuple", 2)
                self.solver.copy(owner.keys, self.program.place(pair, ("int", 0)))
                self.solver.copy(owner.items, self.program.place(pair, ("int", 1)))
                self.solver.add(known.unplaced, pair)
            else:
                self.solver.copy(owner.items if name == "values" else owner.keys, known.unplaced)
        return known


def _enclosing_method(scope: AnalysisScope | None) -> Function | None:
    """Return the innermost method around a scope, or that scope's own; None outside of methods."""
    while scope is not None:
        if scope.function is not None and scope.function.cls is not None:
            return scope.function
        scope = scope.parent
    return None


def _constant_text(value: Value) -> str | None:
    match value:
        case Constant(value=(_, str(text))):
            return text
    return None


def _template_start(owner: Constant | Text) -> str:
    """Return the fixed beginning of a template for `format`; empty if it is not distinctive."""
    value = owner.value if isinstance(owner, Constant) else None
    start = str(value[1]).partition("{")[0] if isinstance(value, tuple) else ""
    is_distinctive = len(start) >= _SHORTEST_START and start.replace("_", "a").isalnum()
    return start if is_distinctive else ""
