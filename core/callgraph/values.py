"""What a variable may hold, as far as calls are concerned, and the scopes of names. All compared by identity."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from gistpoint.core.callgraph.sources import SourceFile

#: A variable of the solver; `NOTHING` stands for an expression about whose value nothing can be known.
Variable = int
NOTHING: Variable = -1


class Value:
    """Anything that a variable may hold."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Arguments:
    """The arguments of a call: variables by position and by name, and those that are unpacked into it."""

    positional: list[Variable] = field(default_factory=list)
    named: dict[str, Variable] = field(default_factory=dict)
    starred: list[tuple[int, Variable]] = field(default_factory=list)
    mappings: list[Variable] = field(default_factory=list)

    def after(self, first: Arguments) -> Arguments:
        """Return the arguments of a call that gives those of `first` before these."""
        shift = len(first.positional)
        return Arguments(
            [*first.positional, *self.positional],
            {**first.named, **self.named},
            [*first.starred, *((place + shift, variable) for place, variable in self.starred)],
            [*first.mappings, *self.mappings],
        )


@dataclass(slots=True, eq=False)
class Function(Value):
    """A function, method or lambda, with the variables of its parameters and of what it gives back."""

    id: str
    name: str
    tree: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
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
    """A class; as a value it stands for exactly itself, `open` for itself or a subclass."""

    name: str
    tree: ast.ClassDef
    file: SourceFile
    scope: Scope
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
    """An object of a class; not `exact` where a subclass's is as likely: `self`, an annotation."""

    cls: Class
    exact: bool


@dataclass(slots=True, eq=False)
class Module(Value):
    """A module of the sources, or a package of them that has no file of its own."""

    name: str
    file: SourceFile | None
    scope: Scope | None


@dataclass(slots=True, eq=False)
class Bound(Value):
    """A function with its first argument given."""

    function: Function
    receiver: Value


@dataclass(slots=True, eq=False)
class SuperProxy(Value):
    """`super()` in a method of `cls`, called on `receiver`."""

    cls: Class
    receiver: Value


@dataclass(slots=True, eq=False)
class Property(Value):
    """A computed attribute: the variables of its functions, and whether its value is stored once computed."""

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
    """`functools.partial` or `partialmethod` applied to what `callee` holds."""

    callee: Variable
    arguments: Arguments


@dataclass(slots=True, eq=False)
class Container(Value):
    """A list, tuple, set, dict or iterator made in one place: variables of its items by constant key.

    `items` holds what is under any key, `unplaced` what is under an unknown one, `keys` a dict's keys.
    """

    kind: str
    items: Variable
    unplaced: Variable
    keys: Variable
    places: dict[object, Variable] = field(default_factory=dict)
    length: int | None = None


@dataclass(slots=True, eq=False)
class Generated(Value):
    """What a generator function gives: an iterator over what it yields."""

    items: Variable
    result: Variable


@dataclass(slots=True, eq=False)
class BuiltinMethod(Value):
    """A method of a container or of another built-in object."""

    owner: Value
    name: str


@dataclass(slots=True, eq=False)
class Constant(Value):
    """A short string, number, boolean or None that may be a key."""

    value: object


@dataclass(slots=True, eq=False)
class Text(Value):
    """A string of which only the beginning is known: `f"visit_{name}"`."""

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
    """Something imported that is not in the sources, by its dotted name."""

    name: str


Definer = Class | tuple[ast.Import | ast.ImportFrom, ast.alias] | ast.expr


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class, function or comprehension: the names it binds and what encloses it.

    `owner` is the id of the function (or module code) to which calls made here belong. `variables` holds what a name
    may be at any time, as seen from other scopes; `captured` says whether there may be such scopes, `written_inside`
    which names they assign; `definers` holds the class, import or expression that a name stands for.
    """

    kind: str
    file: SourceFile
    parent: Scope | None
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

    def enclosing(self, name: str) -> Scope | None:
        """Return the scope in which a name read here is bound; None for a built-in or an unknown one."""
        module: Scope = self
        while module.parent is not None:
            module = module.parent
        if name in self.globals:
            return module
        scope: Scope | None = self
        first = name not in self.nonlocals
        while scope is not None:
            if (scope.kind != "class" or first) and name in scope.bound and (first or scope is not self):
                return scope
            first = first and scope.kind == "comprehension"
            scope = scope.parent
        return module if name in module.bound else None
