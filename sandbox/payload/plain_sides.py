"""The common rules of two processes that exchange plain data: names, classes, kept objects (decision 113).

Runs in the target's interpreter. Objects are taken apart and put together without running their constructors
or methods.
"""

from __future__ import annotations

import base64
import builtins
import collections
import datetime
import decimal
import enum
import fractions
import importlib
import io
import logging
import operator
import os
import pathlib
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any


class CannotTravelError(BaseException):
    """A message contains, or would have to contain, a value that is not plain data.

    It is not an `Exception`, so that a test's `except Exception` does not catch it.
    """


class UnseenNameError(BaseException):
    """An answer contains a class or a name that no true answer was seen to contain."""


LOCKS = {type(threading.Lock()): threading.Lock, type(threading.RLock()): threading.RLock}
CONSTANTS: dict[str, object] = {"NotImplemented": NotImplemented, "Ellipsis": Ellipsis}
FACTORIES: dict[str, Any] = {
    f"builtins:{kind.__name__}": kind
    for kind in (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)
}
"""Functions that a `defaultdict` may always have, whether or not the true function answered with them."""
BY_PARTS: tuple[type, ...] = (
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    decimal.Decimal,
    fractions.Fraction,
    pathlib.PosixPath,
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
    operator.itemgetter,
    operator.attrgetter,
    operator.methodcaller,
)
"""Types of the standard library whose objects are rebuilt from the arguments of their `__reduce__`."""
PARTS = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in BY_PARTS}
CALLABLE_PARTS = frozenset(("operator.itemgetter", "operator.attrgetter", "operator.methodcaller", "partial"))
VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}

PLAIN_BASES: tuple[Any, ...] = (
    dict,
    list,
    set,
    frozenset,
    tuple,
    str,
    int,
    float,
    complex,
    bytes,
    bytearray,
    collections.deque,
)
UNCHANGING = (frozenset, tuple, str, int, float, complex, bytes)
NODE_KINDS: dict[type, str] = {
    list: "list",
    dict: "dict",
    set: "set",
    bytearray: "bytearray",
    collections.deque: "deque",
    collections.OrderedDict: "ordered",
    collections.defaultdict: "default",
    collections.Counter: "counter",
    types.SimpleNamespace: "namespace",
    io.StringIO: "text file",
    io.BytesIO: "byte file",
    **dict.fromkeys(LOCKS, "lock"),
}


def type_name(kind: type) -> str:
    """Return the name of a class as `module:qualname`."""
    return f"{kind.__module__}:{kind.__qualname__}"


def mro_of(kind: type) -> tuple[type, ...]:
    """Return the classes in the method resolution order, without running code of the metaclass."""
    found: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return found


_OF_EXCEPTIONS: dict[Any, tuple[str, ...]] = {
    AttributeError: ("name",),
    ImportError: ("name", "path"),
    NameError: ("name",),
}
"""The attributes of built-in exceptions besides `args`; before Python 3.10, two exceptions have no name."""


def slots_of(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the name and the descriptor of each slot of a class, and of what a built-in exception holds."""
    for part in mro_of(kind):
        for name in _OF_EXCEPTIONS.get(part, ()):
            if name in vars(part):
                yield name, vars(part)[name]
        for name, found in type.__dict__["__dict__"].__get__(part).items():
            if type(found) is types.MemberDescriptorType and "__slots__" in vars(part):
                yield name, found


def class_member(kind: type, name: str) -> object:
    """Return the value of a name in a class or its bases, without running a descriptor; None if unset."""
    for part in mro_of(kind):
        held = type.__dict__["__dict__"].__get__(part)
        if name in held:
            found: object = held[name]
            return found
    return None


def is_cached(kind: type, name: str) -> bool:
    """Whether an attribute holds what a cached property of the class computes."""
    return type(class_member(kind, name)).__name__ == "cached_property"


def is_default(kind: type, name: str, part: object) -> bool:
    """Whether an attribute takes the place of a default of the class, and both are plain data."""
    both = type(class_member(kind, name)), type(part)
    return not name.startswith("__") and _PLAIN_DATA.issuperset(both)


_PLAIN_DATA = frozenset((type(None), bool, *PLAIN_BASES))


def attributes_of(value: object) -> dict[str, object]:
    """Return an object's own attributes by name, including those in slots."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = None
    held = dict(own) if type(own) is dict else {}
    # An empty slot raises AttributeError; it does not count as an attribute.
    for name, slot in slots_of(type(value)):
        try:
            found = slot.__get__(value)
        except AttributeError:
            continue
        if found is not None or slot.__objclass__ not in _OF_EXCEPTIONS:
            held[name] = found
    return held


def contained(value: Any) -> list[object]:
    """Return the members of a list, set or deque, or the values of a dictionary; empty for anything else."""
    kind = type(value)
    if kind in (list, set, collections.deque):
        return list(value)
    return list(dict.values(value)) if kind in NODE_KINDS and issubclass(kind, dict) else []


def set_attributes(value: object, attributes: dict[str, object]) -> None:
    """Replace all of an object's own attributes."""
    slots = dict(slots_of(type(value)))
    for name, slot in slots.items():
        if name in attributes:
            slot.__set__(value, attributes[name])
        else:
            try:
                slot.__delete__(value)
            except AttributeError:
                continue
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return
    own.clear()
    own.update({name: part for name, part in attributes.items() if name not in slots})


def base_of(kind: type) -> Any:
    """Return the built-in type that a class extends, or `object` if it extends none.

    Returns None if objects of the class can't be rebuilt.
    """
    # The order does not matter: these types have conflicting layouts, so a class can extend only one.
    for base in PLAIN_BASES:
        if issubclass(kind, base):
            return base if _makes(kind, base) else None
    if issubclass(kind, BaseException):
        return BaseException
    return object if _makes(kind, object) else None


_MADE: dict[tuple[Any, Any], bool] = {}


def _makes(kind: Any, base: Any) -> bool:
    """Whether `base.__new__` accepts `kind`; a type written in C may refuse this."""
    # Tried only once per class, because this is needed for every value, and a refusal costs an exception.
    if (kind, base) not in _MADE:
        try:
            base.__new__(kind)
        except TypeError:
            _MADE[kind, base] = False
        else:
            _MADE[kind, base] = True
    return _MADE[kind, base]


def resolved(name: str) -> object:
    """Return the object with the name `module:qualname`. Raises `CannotTravelError` if there is none."""
    module, _, path = name.partition(":")
    try:
        found: object = importlib.import_module(module)
        for part in path.split(".") if path else ():
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise CannotTravelError(f"{name} is not there: {error}") from None
    return found


def present(name: str) -> object | None:
    """Return the object with the name `module:qualname` without importing anything; None if there is none."""
    module, _, path = name.partition(":")
    found: object = sys.modules.get(module)
    for part in path.split("."):
        # Not by `getattr`, which could run code of the library.
        held = vars(found) if isinstance(found, (type, types.ModuleType)) else {}
        found = held.get(part)
    return found


def name_of(value: Any) -> str:
    """Return the `module:qualname` of a class, function, module, descriptor or enum member.

    The result is empty if the name does not lead back to the object.
    """
    kind = type(value)
    if kind is types.ModuleType:
        own_name = vars(value).get("__name__", "")
        return f"{own_name}:" if sys.modules.get(own_name) is value else ""
    if isinstance(value, enum.Enum):
        return _confirmed_name(value, kind.__module__, f"{kind.__qualname__}.{getattr(value, '_name_', '')}")
    holder = getattr(value, "__objclass__", None) if kind in DESCRIPTORS else None
    module = getattr(holder or value, "__module__", None)
    if isinstance(value, type) or kind in _NAMED or kind in DESCRIPTORS:
        owner = getattr(value, "__self__", None)
        if kind is types.BuiltinFunctionType and type(owner) is types.ModuleType:
            module = vars(owner).get("__name__")
        own_name = _confirmed_name(value, module, getattr(value, "__qualname__", ""))
        return own_name or _name_in_module(value, owner)
    return ""


def _name_in_module(value: Any, owner: object) -> str:
    """Return the name under which its object's module offers a bound method, such as `random.choice`."""
    if owner is None or isinstance(owner, (type, types.ModuleType)):
        return ""
    return _confirmed_name(value, type(owner).__module__, value.__name__)


_NAMED = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
)


def _confirmed_name(value: object, module: object, path: str) -> str:
    found: Any = sys.modules.get(module) if type(module) is str else None
    is_importable = bool(path) and "<" not in path
    if found is None or not is_importable:
        return ""
    for part in path.split("."):
        found = getattr(found, part, None)
    # A bound method is a new object at each access, so it is compared by equality.
    are_methods = type(value) is type(found) is types.MethodType
    is_same = found is value or (are_methods and found == value)
    return f"{module}:{path}" if is_same else ""


_REAL_FILES: dict[str, str] = {}
"""The resolved paths of modules' files, by the paths in `__file__`."""


class Singletons:
    """Named objects in the tree's modules and classes; each process has its own copy."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root) + os.sep
        self.names: dict[int, str] = {}
        self.held: list[object] = []
        """The named objects, kept alive so that no other object gets their ids."""
        self.modules = 0

    def name(self, value: object) -> str:
        """Return the name of an object; empty if it has none."""
        if len(sys.modules) != self.modules:
            self.search()
        return self.names.get(id(value), "")

    def search(self) -> None:
        """Search the modules that have been imported so far."""
        self.modules = len(sys.modules)
        self.names, self.held = {}, []
        for name, module in sorted(sys.modules.items()):
            if type(module) is types.ModuleType and self.is_of_tree(module):
                self.add(f"{name}:", dict(vars(module)), name)

    def is_of_tree(self, module: types.ModuleType) -> bool:
        """Whether the file of a module is in the tree."""
        file = getattr(module, "__file__", None)
        if type(file) is not str:
            return False
        # Every import makes `search` check all modules again, and resolving a path is expensive.
        if file not in _REAL_FILES:
            _REAL_FILES[file] = os.path.realpath(file)
        return _REAL_FILES[file].startswith(self.root)

    def add(self, prefix: str, held: dict[str, object], module: str) -> None:
        for name, value in held.items():
            if isinstance(value, type):
                if value.__module__ == module and value.__qualname__ == f"{prefix.partition(':')[2]}{name}":
                    self.add(f"{prefix}{name}.", dict(type.__dict__["__dict__"].__get__(value)), module)
            elif not name.startswith("__") and type(value) not in _WITHOUT_IDENTITY:
                # The first name wins; sorted modules make both sides choose the same one.
                self.names.setdefault(id(value), prefix + name)
                self.held.append(value)


_WITHOUT_IDENTITY = frozenset(
    (
        *(type(None), bool, int, str, float, complex, bytes, tuple, frozenset, range, property, classmethod),
        *(staticmethod, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodType),
        *(types.MemberDescriptorType, types.GetSetDescriptorType, re.Pattern, logging.Logger),
    )
)


def same_plain(before: Any, after: Any) -> bool:
    """Whether a plain value is unchanged; only values without an identity are compared by content."""
    if before is after:
        return True
    kind = type(before)
    if type(after) is not kind:
        return False
    if kind is tuple:
        return len(before) == len(after) and all(map(same_plain, before, after))
    if kind is frozenset:
        # Types first: `==` would run the code of a class in the repository.
        return _COMPARED.issuperset(map(type, (*before, *after))) and bool(before == after)
    if kind not in _COMPARED:
        return False
    # NaN does not equal itself, but that is no change.
    both_nan = before != before and after != after
    return bool(before == after or both_nan)


_COMPARED = frozenset((type(None), range, int, float, str, bytes, bool, complex, decimal.Decimal, *BY_PARTS))


def refill_dict(base: Any, target: Any, pairs: list[tuple[Any, Any]]) -> None:
    base.clear(target)
    for key, part in pairs:
        base.__setitem__(target, key, part)
    if base.__len__(target) != len(pairs):
        raise CannotTravelError("a dictionary has equal keys")


def _fill_nothing(decoder: Any, target: Any, node: list[Any]) -> None:
    """Do nothing, because the state of a lock does not travel."""


def _fill_list(decoder: Any, target: list[Any], node: list[Any]) -> None:
    target[:] = decoder.parts(node[1])


def _fill_pairs(decoder: Any, target: dict[Any, Any], node: list[Any]) -> None:
    base = collections.OrderedDict if node[0] == "ordered" else dict
    refill_dict(base, target, decoder.pairs(node[1]))


def _fill_items(decoder: Any, target: Any, node: list[Any]) -> None:
    target.clear()
    for part in decoder.parts(node[1]):
        (target.add if node[0] == "set" else target.append)(part)
    if node[0] == "set" and len(target) != len(node[1]):
        raise CannotTravelError("a set has equal members")


def _fill_namespace(decoder: Any, target: types.SimpleNamespace, node: list[Any]) -> None:
    kind, number = type(target), decoder.shared.number(target)
    given = [(name, part) for name, part in decoder.pairs(node[1]) if decoder.may_set(kind, name, number)]
    vars(target).clear()
    vars(target).update(given)


def _fill_bytes(decoder: Any, target: bytearray, node: list[Any]) -> None:
    target[:] = base64.b64decode(node[1])


def _fill_file(decoder: Any, target: Any, node: list[Any]) -> None:
    target.seek(0)
    target.truncate()
    target.write(node[1] if node[0] == "text file" else base64.b64decode(node[1]))
    target.seek(node[2])


_FILLERS: dict[str, Callable[[Any, Any, list[Any]], None]] = {
    "list": _fill_list,
    **dict.fromkeys(("dict", "ordered", "default", "counter"), _fill_pairs),
    **dict.fromkeys(("set", "deque"), _fill_items),
    "namespace": _fill_namespace,
    "bytearray": _fill_bytes,
    "text file": _fill_file,
    "byte file": _fill_file,
}


def fill_container(decoder: Any, target: object, node: list[Any]) -> None:
    """Fill a container of a built-in type from its node, whose values `decoder` decodes."""
    _FILLERS.get(node[0], _fill_nothing)(decoder, target, node)


class ProcessSide:
    """The rules of one of the two processes: on names, on objects that stay in it, and on what it accepts."""

    def __init__(self, step: int, root: str) -> None:
        """`step` (1 or -1) is the direction in which this side numbers objects, `root` the tree's folder."""
        self.step = step
        self.singletons = Singletons(root)
        self.kept: dict[int, object] = {}
        """Objects that stay on this side, and proxies of those that stay on the other, by number."""
        self.kept_numbers: dict[int, int] = {}
        # Far from the numbers of travelling objects, which start at `step`: they must never collide.
        self._next_kept = step * 1_000_000_000

    def name(self, value: object) -> str:
        """Return the name under which the other side has the same object; empty if there is none."""
        return self.singletons.name(value) or name_of(value)

    def named(self, name: str) -> object:
        """Return the object for a name that the other side sent.

        Raises `CannotTravelError` if there is none.
        """
        return resolved(name)

    def kind_named(self, name: str, base: str) -> type | None:
        """Return the class of an object from the other side; None to use `base`, the built-in it extends.

        Raises `CannotTravelError` if the name is not that of a class.
        """
        found = resolved(name)
        if not isinstance(found, type):
            raise CannotTravelError(f"{name} is not a class")
        return found

    def exception_named(self, name: str, base: str) -> type:
        """Return the class of an exception from the other side; `base` is the built-in class it extends.

        Raises `CannotTravelError` if the name is not that of a class.
        """
        found = self.kind_named(name, "BaseException")
        if found is None:
            raise CannotTravelError(f"{name} is not an exception")
        return found

    def context_named(self, name: str, base: str) -> type[BaseException]:
        """Return the class of an exception in a context; `base` is the built-in class that it extends.

        Nothing is imported for it, and nobody may answer with it: a class that is not there is its base.
        """
        for found in (present(name), vars(builtins).get(base)):
            if isinstance(found, type) and issubclass(found, BaseException):
                return found
        return Exception

    def travels_as_proxy(self, value: object) -> bool:
        """Whether a proxy accompanies a callable, for use if the other side refuses its name."""
        return False

    def visible(self, kind: type) -> bool:
        """Whether the other side has this class."""
        return bool(self.name(kind))

    def class_name(self, kind: type) -> str:
        """Return the name under which objects of a class travel."""
        return type_name(kind)

    def attributes_of_class(self, kind: type) -> dict[str, object]:
        """Return the data that a class holds for its objects, if they travel as those of a base class."""
        return {}

    def travels(self, kind: type, base: type) -> bool:
        """Whether objects of a class can be rebuilt on the other side; `base` is the built-in it extends."""
        return self.visible(kind)

    def node_of_local(self, value: object) -> list[Any]:
        """Return the node of an object that stays on this side."""
        raise NotImplementedError

    def proxy_for(self, number: int, node: list[Any]) -> object:
        """Return a proxy of an object that stays on the other side."""
        raise NotImplementedError

    def factory(self, number: int, node: list[Any]) -> object:
        """Return a proxy of a function on the other side with which a `defaultdict` makes missing values."""
        return self.proxy_for(number, node)

    def may_write(self, value: object, key: str, *, new: bool) -> bool:
        """Whether a message may change an attribute, named by `key`, or a container of that kind."""
        return True

    def may_set(self, kind: type, name: str, place: str) -> bool:
        """Whether a message may give an object an attribute; `place` is `call/number` of the object."""
        return True

    def may_hide(self, value: object, name: str, part: object) -> bool:
        """Whether a message may set an attribute that could hide a member of the object's class."""
        return True

    def check_attribute(self, kind: type, name: str, part: object) -> None:
        """Raise `UnseenNameError` if an object of this class must not have such an attribute."""

    def answered(self, name: str) -> None:
        """Record that a message contains a class or a name; raise `UnseenNameError` if it is refused."""

    def keep(self, value: object, number: int = 0) -> int:
        """Keep an object that stays, or its proxy, and return its number, which never changes.

        An object that is not kept yet gets `number`, or a new number if that is 0.
        """
        if id(value) in self.kept_numbers:
            return self.kept_numbers[id(value)]
        if not number:
            number = self._next_kept
            self._next_kept += self.step
        self.kept[number] = value
        self.kept_numbers[id(value)] = number
        return number


class Shared:
    """The objects that both sides know by number for as long as a call lasts."""

    def __init__(self, side: ProcessSide, call: int = 0) -> None:
        self.side = side
        self.call = call
        """The number of the call."""
        self.objects: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.last: dict[int, str] = {}
        """The JSON text of each node as both sides know it, by number."""
        self.called: dict[int, str] = {}
        """The other side's names of the classes of objects that arrived as a built-in base, by number."""
        self._next = side.step

    def number(self, value: object) -> int:
        """Return the number of an object; an unknown object gets a new number."""
        found = self.numbers.get(id(value))
        if found is None:
            found = self._next
            self._next += self.side.step
            self.add(found, value)
        return found

    def add(self, number: int, value: object) -> None:
        """Register an object under a number."""
        self.objects[number] = value
        self.numbers[id(value)] = number
