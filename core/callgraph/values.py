"""The values that a variable may hold, as far as calls depend on them, and their solver."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gistpoint.core.callgraph.sources import SourceFile

#: A variable of the solver; `NOTHING` is for an expression whose value can't be known.
Variable = int
NOTHING: Variable = -1


class Value:
    """A value that a variable may hold."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Arguments:
    """The variables of a call's arguments.

    `positional` are those before any `*`, and `starred` the unpacked iterables, each with the number of
    positional arguments before it. Positional arguments after a `*` are left out.
    """

    positional: list[Variable] = field(default_factory=list)
    named: dict[str, Variable] = field(default_factory=dict)
    starred: list[tuple[int, Variable]] = field(default_factory=list)
    mappings: list[Variable] = field(default_factory=list)

    def after(self, first: Arguments) -> Arguments:
        """Return the arguments of a call with the arguments in `first` placed before these."""
        shift = len(first.positional)
        return Arguments(
            [*first.positional, *self.positional],
            {**first.named, **self.named},
            [*first.starred, *((place + shift, variable) for place, variable in self.starred)],
            [*first.mappings, *self.mappings],
        )


@dataclass(slots=True, eq=False)
class Function(Value):
    """A function, method or lambda, with the variables of its parameters and of its result."""

    id: str
    name: str
    tree: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: AnalysisScope
    cls: Class | None
    positional: list[str]
    keyword_only: list[str]
    parameters: dict[str, Variable] = field(default_factory=dict)
    rest: Variable = NOTHING
    keywords: Variable = NOTHING
    result: Variable = NOTHING
    generated: Generated | None = None
    passes_through: list[str] = field(default_factory=list)
    is_static: bool = False
    is_abstract: bool = False
    is_class_method: bool = False


@dataclass(slots=True, eq=False)
class Class(Value):
    """A class; as a value, it is exactly this class, whereas `open` also covers its subclasses."""

    name: str
    tree: ast.ClassDef
    file: SourceFile
    scope: AnalysisScope
    bases: list[Class] = field(default_factory=list)
    outside_bases: list[str] = field(default_factory=list)
    subclasses: list[Class] = field(default_factory=list)
    mro: tuple[Class, ...] = ()
    attributes: dict[str, Variable] = field(default_factory=dict)
    fields: dict[str, Variable] = field(default_factory=dict)
    data_fields: list[str] = field(default_factory=list)
    abstract_names: set[str] = field(default_factory=set)
    open: OpenClass = field(init=False)
    instance: Instance = field(init=False)
    open_instance: Instance = field(init=False)

    def __post_init__(self) -> None:
        self.open = OpenClass(self)
        self.instance = Instance(self, exact=True)
        self.open_instance = Instance(self, exact=False)


@dataclass(slots=True, eq=False)
class OpenClass(Value):
    """A class or one of its subclasses: `cls` in a class method, `type[C]` in an annotation."""

    cls: Class


@dataclass(slots=True, eq=False)
class Instance(Value):
    """An object of a class; not `exact` if it may be of a subclass, as `self` and annotated values may."""

    cls: Class
    exact: bool


@dataclass(slots=True, eq=False)
class ModuleValue(Value):
    """A module of the sources, or a package without its own file."""

    name: str
    file: SourceFile | None
    scope: AnalysisScope | None


@dataclass(slots=True, eq=False)
class BoundMethod(Value):
    """A function with its first argument bound."""

    function: Function
    receiver: Value


@dataclass(slots=True, eq=False)
class SuperProxy(Value):
    """`super()` in a method of `cls`, called on `receiver`."""

    cls: Class
    receiver: Value


@dataclass(slots=True, eq=False)
class Property(Value):
    """A property: the variables of its getter, setter and deleter."""

    getter: Variable
    setter: Variable
    deleter: Variable


@dataclass(slots=True, eq=False)
class PropertySlot(Value):
    """`p.setter`, `p.getter` or `p.deleter` of a property, about to decorate a function."""

    owner: Property
    slot: str


@dataclass(slots=True, eq=False)
class Wrapped(Value):
    """A function after `staticmethod` or `classmethod`."""

    function: Function
    static: bool


@dataclass(slots=True, eq=False)
class Partial(Value):
    """`functools.partial` or `partialmethod` applied to the values of `callee`."""

    callee: Variable
    arguments: Arguments


@dataclass(slots=True, eq=False)
class ContainerValue(Value):
    """A list, tuple, set, dict or iterator made in one place: variables of its items by constant key.

    `items` holds the values under any key, `unplaced` those under unknown keys, `keys` a dict's keys.
    """

    kind: str
    items: Variable
    unplaced: Variable
    keys: Variable
    places: dict[object, Variable] = field(default_factory=dict)
    length: int | None = None


@dataclass(slots=True, eq=False)
class Generated(Value):
    """The result of a generator function: an iterator over the values that it yields."""

    items: Variable
    result: Variable


@dataclass(slots=True, eq=False)
class BuiltinMethod(Value):
    """A method of a container or of another built-in object."""

    owner: Value
    name: str


@dataclass(slots=True, eq=False)
class Constant(Value):
    """A short string, integer, boolean or None that may be a key."""

    value: object


@dataclass(slots=True, eq=False)
class Text(Value):
    """A string with a known beginning only, such as `f"visit_{name}"`."""

    start: str


@dataclass(slots=True, eq=False)
class Builtin(Value):
    """A function or type of `builtins`."""

    name: str


@dataclass(slots=True, eq=False)
class Object(Value):
    """An object of a built-in type, or of one from outside of the sources."""

    type_name: str


@dataclass(slots=True, eq=False)
class Outside(Value):
    """An imported value outside of the sources, by its dotted name."""

    name: str


Definer = Class | tuple[ast.Import | ast.ImportFrom, ast.alias] | ast.expr


@dataclass(slots=True, eq=False)
class AnalysisScope:
    """A module, class, function or comprehension: the names it binds and the enclosing scope.

    `owner` is the id of the function or module code to which calls in this scope belong. `variables` holds
    all values of a name over time, as other scopes see them; `captured` is true if such scopes exist, and
    `written_inside` contains the names that they assign. `definers` maps a name to the class, import or
    expression that defines it.
    """

    kind: str
    file: SourceFile
    parent: AnalysisScope | None
    owner: str
    bound: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    variables: dict[str, Variable] = field(default_factory=dict)
    definers: dict[str, Definer] = field(default_factory=dict)
    stars: list[ast.ImportFrom] = field(default_factory=list)
    function: Function | None = None
    cls: Class | None = None
    captured: bool = False
    written_inside: set[str] = field(default_factory=set)

    def enclosing(self, name: str) -> AnalysisScope | None:
        """Return the scope that binds a name read in this scope; None for a built-in or unknown name."""
        module: AnalysisScope = self
        while module.parent is not None:
            module = module.parent
        if name in self.globals:
            return module
        scope: AnalysisScope | None = self
        first = name not in self.nonlocals
        while scope is not None:
            # Names of a class are visible only in its own code; `nonlocal` skips the scope that declares it.
            is_hidden = not first and (scope.kind == "class" or scope is self)
            if name in scope.bound and not is_hidden:
                return scope
            first = first and scope.kind == "comprehension"
            scope = scope.parent
        return module if name in module.bound else None


MOST_VALUES = 24
MOST_NARROW = 6
MOST_MINOR = 5

_MINOR = frozenset({Constant, ContainerValue, Object, BuiltinMethod, Outside, Text})
_MANY = frozenset({Function, Class})

Watcher = Callable[[Value], None]


class Solver:
    """Variables, copies between them, and watchers, which are called with each new value of a variable."""

    def __init__(self) -> None:
        self._values: list[dict[Value, None] | None] = []
        self._targets: list[dict[Variable, None] | None] = []
        self._watchers: list[list[Watcher] | None] = []
        self._fresh: list[list[Value] | None] = []
        self._pending: deque[Variable] = deque()
        self._narrow: set[Variable] = set()
        self._holders: dict[Value, Variable] = {}

    def narrow(self) -> Variable:
        """Return a new variable for values from many places, such as a parameter; it holds fewer values."""
        variable = self.variable()
        self._narrow.add(variable)
        return variable

    def variable(self) -> Variable:
        """Return a new variable that holds nothing yet."""
        self._values.append(None)
        self._targets.append(None)
        self._watchers.append(None)
        self._fresh.append(None)
        return len(self._values) - 1

    def holding(self, value: Value) -> Variable:
        """Return the variable that holds only `value`, always the same one; nothing may be added to it."""
        known = self._holders.get(value)
        if known is None:
            known = self._holders[value] = self.variable()
            self.add(known, value)
        return known

    def values(self, variable: Variable) -> list[Value]:
        """Return the values of `variable`, in the order in which they were added."""
        return list(self._values[variable] or ()) if variable != NOTHING else []

    def is_empty(self, variable: Variable) -> bool:
        """Return whether `variable` has no value."""
        return variable == NOTHING or not self._values[variable]

    def add(self, variable: Variable, value: Value) -> None:
        """Add `value` to `variable`, unless the variable is full."""
        if variable == NOTHING:
            return
        held = self._values[variable]
        if held is None:
            held = self._values[variable] = {}
        elif value in held or (len(held) >= MOST_MINOR and self._is_full(variable, len(held), type(value))):
            return
        held[value] = None
        fresh = self._fresh[variable]
        if fresh is None:
            self._fresh[variable] = [value]
            self._pending.append(variable)
        else:
            fresh.append(value)

    def _is_full(self, variable: Variable, held: int, kind: type[Value]) -> bool:
        if kind in _MINOR:
            return True
        return held >= (MOST_NARROW if kind not in _MANY or variable in self._narrow else MOST_VALUES)

    def copy(self, source: Variable, target: Variable) -> None:
        """Let `target` hold all values of `source`, including those that are added later."""
        if source in (NOTHING, target) or target == NOTHING:
            return
        targets = self._targets[source]
        if targets is None:
            targets = self._targets[source] = {}
        elif target in targets:
            return
        targets[target] = None
        for value in self._values[source] or ():
            self.add(target, value)

    def watch(self, variable: Variable, watcher: Watcher) -> None:
        """Call `watcher` with each value of `variable`, including those that it already holds."""
        if variable == NOTHING:
            return
        watchers = self._watchers[variable]
        if watchers is None:
            watchers = self._watchers[variable] = []
        watchers.append(watcher)
        held = self._values[variable]
        if held:
            fresh = self._fresh[variable] or ()  # pending values are delivered by `run`
            for value in list(held)[: len(held) - len(fresh)]:
                watcher(value)

    def run(self) -> None:
        """Propagate until nothing is pending."""
        pending, add = self._pending, self.add
        while pending:
            variable = pending.popleft()
            fresh = self._fresh[variable] or []
            self._fresh[variable] = None
            for target in self._targets[variable] or ():
                for value in fresh:
                    add(target, value)
            watchers = self._watchers[variable]
            if watchers:
                for watcher in watchers[:]:
                    for value in fresh:
                        watcher(value)
