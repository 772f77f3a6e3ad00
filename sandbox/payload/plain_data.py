"""Canonical plain data: the messages in which calls travel between two processes (decision 113).

Runs in the target's interpreter. A message is `{"roots": [value, ...], "heap": {number: node, ...}}`. A value
is a JSON scalar, `["#", number]` for a node, or a tagged list for a value without an identity (`_ENCODERS`).
A node is a container, an object by class name and attributes, or something that stays in its process: a
function, an iterator or an object that can't travel. Both sides know a node by the same number for as long as
its call lasts, so a later message contains only the nodes that changed.

Objects are taken apart and put together without running their constructors or methods.
"""

from __future__ import annotations

import base64
import collections
import enum
import functools
import json
import logging
import re
import types
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload import plain_parts as parts
    from gistpoint.sandbox.payload import plain_sides as sides
else:
    import gistpoint_parts as parts
    import gistpoint_sides as sides

MOST_NODES = 20_000
MOST_CHARACTERS = 700_000
"""The limit on one message, in characters; a line of the result pipe can hold a mebibyte."""
_STAND_INS = ("a", "e")
"""The tags of the values that may take the place of a name that the other side refuses."""
_DEPTH = 60
_SMALL = 1 << 62

Value = Any
"""A value as JSON: a scalar or a tagged list."""

# Taking values apart


class Encoder:
    """Encodes values for one message."""

    def __init__(self, shared: sides.Shared) -> None:
        self.shared = shared
        self.side = shared.side
        self.queue: collections.deque[int] = collections.deque()
        self.heap: dict[int, list[Any]] = {}
        self.reached: set[int] = set()
        self.stays = False
        """Whether the message refers to something that stays on its side."""

    def message(self, roots: Iterable[object]) -> dict[str, Any]:
        """Return the message of these values and of all objects that both sides know.

        Raises `CannotTravelError` if the values are too large or nested too deeply.
        """
        values = [self.value(root, 0) for root in roots]
        # Objects that no root refers to are sent too, because the call may have changed them.
        for number in list(self.shared.objects):
            self.reach(number)
        heap, characters = {}, 0
        while self.queue:
            number = self.queue.popleft()
            node = self.node(self.shared.objects[number])
            text = json.dumps(node)
            # Compared as text: equal strings are equal nodes, without asking an object whether it changed.
            if self.shared.last.get(number) != text:
                self.shared.last[number] = text
                heap[str(number)] = node
                characters += len(text)
            if len(self.reached) > MOST_NODES or characters > MOST_CHARACTERS:
                raise sides.CannotTravelError("the values of the call are too large")
        heap.update((str(number), node) for number, node in self.heap.items())
        return {"roots": values, "heap": heap, **({"stays": True} if self.stays else {})}

    def reach(self, number: int) -> None:
        if number not in self.reached:
            self.reached.add(number)
            self.queue.append(number)

    def value(self, value: Any, depth: int) -> Value:
        """Return the JSON form of a value. Raises `CannotTravelError` if it is nested too deeply."""
        kind = type(value)
        # Scalars come before the lookup in the table, because most parts of most calls are scalars.
        if value is None or kind is bool:
            return value
        if kind is str:
            return parts.text(value)
        if kind is int:
            return value if -_SMALL < value < _SMALL else ["i", hex(value)]
        if depth > _DEPTH:
            raise sides.CannotTravelError("the values of the call are nested too deeply")
        encoder = _ENCODERS.get(kind)
        if encoder is not None:
            return encoder(self, value, depth + 1)
        return self.identified(value, kind, depth + 1)

    def identified(self, value: Any, kind: type, depth: int) -> Value:
        """Return the JSON form of a value with an identity: its name, otherwise the number of its node."""
        name = self.side.name(value)
        if name:
            return ["n", name, *self.stand_in(value)]
        if isinstance(value, enum.Enum):
            if self.side.visible(kind):
                return self.member(value, depth)
            # A member of a local enumeration travels as its value, if that is a number or a string.
            base = sides.base_of(kind)
            if base in sides.UNCHANGING:
                return self.value(parts.PLAIN_VALUES[base](value), depth)
        if kind is types.MethodType or kind is types.BuiltinFunctionType:
            bound = self.bound(value, depth)
            if bound is not None:
                return bound
        return self.reference(value)

    def bound(self, value: Any, depth: int) -> Value | None:
        """Return the JSON form of a bound method.

        None if it is bound to a class, a module or nothing, or if the other side has no such method.
        """
        receiver, name = value.__self__, value.__name__
        if receiver is None or isinstance(receiver, (type, types.ModuleType)):
            return None
        found = sides.class_member(type(receiver), name)
        own = getattr(value, "__func__", None)
        if not self.side.visible(type(receiver)) or (own is not None and found is not own) or found is None:
            return None
        return ["m", self.value(receiver, depth), name, *self.stand_in(value)]

    def member(self, value: Any, depth: int) -> Value:
        """Return the JSON form of a member of an enumeration, with the built-in type that it extends."""
        base = sides.base_of(type(value))
        return [
            "e",
            sides.type_name(type(value)),
            self.value(value._value_, depth),
            base.__name__ if base else "",
        ]

    def stand_in(self, value: object) -> list[Value]:
        """Return a list with the substitute for a name that the other side may refuse; empty for others."""
        if isinstance(value, enum.Enum):
            return [self.member(value, 1)] if isinstance(value, sides.PLAIN_BASES) else []
        if not self.side.travels_as_proxy(value):
            return []
        return [["a", self.side.keep(value), *self.side.node_of_local(value)]]

    def reference(self, value: object) -> Value:
        """Return the JSON form of a reference to an object, whose node the message contains if needed."""
        if id(value) in self.side.kept_numbers:
            self.stays = True
            known = self.side.kept_numbers[id(value)]
            # Sent each time if it stays on this side, so that a call can be repeated without those before it.
            if known * self.side.step > 0:
                self.heap[known] = self.side.node_of_local(value)
            return ["#", known]
        if id(value) not in self.shared.numbers and not self.travels(value):
            self.stays = True
            number = self.side.keep(value)
            self.heap[number] = self.side.node_of_local(value)
            return ["#", number]
        number = self.shared.number(value)
        self.reach(number)
        return ["#", number]

    def travels(self, value: object) -> bool:
        """Whether an object can be rebuilt on the other side."""
        kind = type(value)
        if kind in sides.NODE_KINDS:
            return True
        if isinstance(value, (type, types.FunctionType, types.ModuleType, *sides.DESCRIPTORS)):
            return False
        base = sides.base_of(kind)
        return base is not None and self.side.travels(kind, base)

    def node(self, value: Any) -> list[Any]:
        """Return the node of an object that travels. Raises `CannotTravelError` if a part can't."""
        kind = type(value)
        name = sides.NODE_KINDS.get(kind)
        if name is not None:
            return [name, *self.contents(name, value)]
        base = sides.base_of(kind)
        held_itself = {**self.side.attributes_of_class(kind), **sides.attributes_of(value)}
        held_itself.update(parts.parts_of(value) if base is BaseException else {})
        attributes = {key: self.value(part, 1) for key, part in held_itself.items()}
        if base is BaseException:
            cause = self.value(value.__cause__, 1)
            # An exception that arrived as its built-in base keeps the name of its class on the way back.
            called = self.shared.called.get(self.shared.numbers.get(id(value), 0), self.class_name(value))
            arguments, base_name = self.value(parts.arguments_of(value), 1), parts.builtin_base(kind).__name__
            context = parts.context_of(self, value)
            return ["exception", called, arguments, attributes, cause, base_name, context]
        held = None
        if base is not None and base is not object:
            held = self.base_contents(base, value)
        return [
            "object",
            self.class_name(value),
            attributes,
            base.__name__ if held is not None and base else "",
            held,
        ]

    def class_name(self, value: object) -> str:
        """Return the name under which an object's class travels; record it if it is not the class's own."""
        own, name = sides.type_name(type(value)), self.side.class_name(type(value))
        if name != own:
            self.shared.called.setdefault(self.shared.number(value), name)
        return name

    def base_contents(self, base: Any, value: Any) -> Value:
        """Return the contents of an object whose class extends a built-in type."""
        plain = parts.PLAIN_VALUES.get(base)
        if plain is not None:
            return self.value(plain(value), 1)
        return parts.BASE_CONTENTS[base](self, value)

    def contents(self, name: str, value: Any) -> list[Any]:
        """Return the contents of a built-in container."""
        contents = _CONTENTS.get(name)
        return contents(self, value) if contents is not None else [self.parts(value)]

    def parts(self, values: Iterable[object]) -> list[Value]:
        found = [self.value(part, 1) for part in values]
        if len(found) > MOST_NODES * 5:
            raise sides.CannotTravelError("the values of the call are too large")
        return found

    def pairs(self, items: Iterable[tuple[object, object]]) -> list[list[Value]]:
        return [[self.value(key, 1), self.value(part, 1)] for key, part in items]

    def by_parts(self, value: Any, depth: int) -> Value:
        kind = type(value)
        arguments = self.value(parts.arguments_of_value(value), depth)
        return ["x", f"{kind.__module__}.{kind.__qualname__}", arguments, *self.stand_in(value)]


def _pattern(encoder: Encoder, value: re.Pattern[Any], depth: int) -> Value:
    return ["re", encoder.value(value.pattern, depth), value.flags]


def _partial(encoder: Encoder, value: functools.partial[Any], depth: int) -> Value:
    given = (value.func, value.args, tuple(value.keywords.items()))
    return ["p", *(encoder.value(part, depth) for part in given), *encoder.stand_in(value)]


def _view(encoder: Encoder, value: Any, depth: int) -> Value:
    return ["v", sides.VIEWS[type(value)], encoder.reference(parts.viewed(value)) if depth else None]


_ENCODERS: dict[type, Callable[[Encoder, Any, int], Value]] = {
    float: lambda encoder, value, depth: ["f", parts.nan_text(value) if value != value else value.hex()],
    complex: lambda encoder, value, depth: ["c", encoder.value(value.real, 1), encoder.value(value.imag, 1)],
    bytes: lambda encoder, value, depth: ["b", base64.b64encode(value).decode("ascii")],
    tuple: lambda encoder, value, depth: ["t", [encoder.value(part, depth) for part in value]],
    frozenset: lambda encoder, value, depth: [
        "z",
        parts.ordered([encoder.value(part, depth) for part in value]),
    ],
    range: lambda encoder, value, depth: ["r", *map(str, (value.start, value.stop, value.step))],
    slice: lambda encoder, value, depth: [
        "s",
        *(encoder.value(v, depth) for v in (value.start, value.stop, value.step)),
    ],
    re.Pattern: _pattern,
    functools.partial: _partial,
    logging.Logger: lambda encoder, value, depth: ["l", value.name],
    types.MappingProxyType: lambda encoder, value, depth: ["mp", encoder.reference(parts.viewed(value))],
    weakref.ref: lambda encoder, value, depth: ["w", encoder.value(value(), depth)],
    type(...): lambda encoder, value, depth: ["k", "Ellipsis"],
    type(NotImplemented): lambda encoder, value, depth: ["k", "NotImplemented"],
    **dict.fromkeys(sides.BY_PARTS, Encoder.by_parts),
    **dict.fromkeys(sides.VIEWS, _view),
}


_CONTENTS: dict[str, Callable[[Encoder, Any], list[Any]]] = {
    **dict.fromkeys(("dict", "ordered", "counter"), lambda encoder, value: [encoder.pairs(value.items())]),
    "default": lambda encoder, value: [
        encoder.pairs(value.items()),
        encoder.value(value.default_factory, 1),
    ],
    "namespace": lambda encoder, value: [encoder.pairs(vars(value).items())],
    "set": lambda encoder, value: [parts.ordered(encoder.parts(value))],
    "deque": lambda encoder, value: [encoder.parts(value), value.maxlen],
    "bytearray": lambda encoder, value: [base64.b64encode(bytes(value)).decode("ascii")],
    "text file": lambda encoder, value: [value.getvalue(), value.tell()],
    "byte file": lambda encoder, value: [base64.b64encode(value.getvalue()).decode("ascii"), value.tell()],
    "lock": lambda encoder, value: [type(value).__name__],
}
"""Functions that return a container's contents, by the name of its kind; other kinds have only parts."""


# Putting values together


class Decoder:
    """Decodes the values of one message."""

    def __init__(self, shared: sides.Shared, message: dict[str, Any]) -> None:
        self.shared = shared
        self.side = shared.side
        self.roots: list[Value] = message["roots"]
        self.heap: dict[int, list[Any]] = {int(number): node for number, node in message["heap"].items()}
        self.new: set[int] = set()
        self.making: set[int] = set()
        for number in self.heap:
            self.shared.last[number] = json.dumps(self.heap[number])

    def values(self) -> list[Any]:
        """Change the objects that the message changes, and return the values of its roots.

        Raises `CannotTravelError` if the message is invalid, and `UnseenNameError` if it contains a class
        or a name that no answer of the true function contained.
        """
        before = [number for number in self.heap if number in self.shared.objects]
        for number in self.heap:
            self.known(number)
        # Containers come last, because sets and dictionaries hash their members, which may need attributes.
        ordered = sorted(
            self.heap, key=lambda number: self.heap[number][0] not in ("object", "exception", "namespace")
        )
        for number in ordered:
            if number not in self.side.kept:
                self.fill(number, changed=number in before)
        return [self.value(root) for root in self.roots]

    def known(self, number: int) -> Any:
        """Return the object with a number, which may still be empty, or raise `CannotTravelError`."""
        # `1.0` and `true` would lead to the same object, but make messages differ.
        if type(number) is not int:
            raise sides.CannotTravelError("the number of an object is not an integer")
        if number in self.shared.objects:
            return self.shared.objects[number]
        if number in self.side.kept:
            return self.side.kept[number]
        if number not in self.heap or number in self.making:
            raise sides.CannotTravelError(f"there is no object {number}")
        self.making.add(number)
        node = self.heap[number]
        if node[0] in ("function", "iterator", "token"):
            made = self.side.proxy_for(number, node)
            self.side.keep(made, number)
            return made
        made = self.shell(node)
        if node[0] in ("object", "exception"):
            self.shared.called[number] = node[1]
        self.shared.add(number, made)
        self.new.add(number)
        return made

    def shell(self, node: list[Any]) -> Any:
        """Return an empty object for a node, a complete one if immutable, or raise `CannotTravelError`."""
        make = _SHELLS.get(node[0])
        if make is not None:
            return make(self, node)
        kind = _KINDS.get(node[0])
        if kind is None:
            raise sides.CannotTravelError(f"{node[0]!r} is not a kind of object")
        return kind()

    def lock(self, node: list[Any]) -> Any:
        """Return a new lock of the kind that a node names."""
        return next(make for kind, make in sides.LOCKS.items() if kind.__name__ == node[1])()

    def shell_of_class(self, node: list[Any]) -> Any:
        _, name, _, base_name, held = node
        kind = self.side.kind_named(name, base_name)
        base: Any = next((base for base in sides.PLAIN_BASES if base.__name__ == base_name), object)
        if kind is None:
            kind = base
        elif sides.base_of(kind) is not base:
            raise sides.CannotTravelError(f"{name} does not extend {base.__name__}")
        # An immutable object can't be filled later, nor can its contents refer back to it.
        if base in sides.UNCHANGING:
            return base.__new__(kind, self.value(held))
        return base.__new__(kind)

    def exception(self, node: list[Any]) -> BaseException:
        _, name, arguments, _, _, *base = node[:6]
        kind = self.side.exception_named(name, base[0] if base else "")
        if not issubclass(kind, BaseException):
            raise sides.CannotTravelError(f"{name} is not an exception")
        builtin: Any = parts.builtin_base(kind)
        given = self.value(arguments)
        made: BaseException = builtin.__new__(kind, *given)
        try:
            # The built-in initialiser, not that of the tree's class, which may do anything.
            builtin.__init__(made, *given)
        except TypeError:
            made = builtin.__new__(kind)
        if not parts.has_own_arguments(made):
            made.args = given
        return made

    def fill(self, number: int, *, changed: bool) -> None:
        """Give an object its contents; `changed` says whether this side had the object before the message.

        Raises `CannotTravelError` if the class of an object that this side had is no longer the same.
        """
        node, target = self.heap[number], self.shared.objects[number]
        if changed and not self.matches(node, number, target):
            raise sides.CannotTravelError("the class of an object has changed")
        if node[0] == "object":
            self.fill_attributes(target, number, node[2], changed)
            if node[3] and type(target).__mro__ and not isinstance(target, sides.UNCHANGING):
                self.fill_base(target, node, changed)
        elif node[0] == "exception":
            self.fill_attributes(target, number, parts.without_parts(type(target), node[3]), changed)
            self.fill_arguments(target, node[2], changed)
            parts.fill_parts(self, target, node[3], changed)
            parts.fill_cause(self, target, self.value(node[4]), changed)
            parts.fill_context(self, target, node[6] if len(node) > 6 else None, changed)
        elif not changed or self.side.may_write(target, node[0], new=False):
            sides.fill_container(self, target, node)
            if changed and node[0] == "default":
                parts.fill_factory(
                    self, target, Encoder(self.shared).value(target.default_factory, 1), node[2]
                )

    def fill_arguments(self, target: Any, arguments: Value, changed: bool) -> None:
        """Give an exception of this side the arguments that it has on the other side."""
        if not changed or parts.has_own_arguments(target):
            return
        given, key = self.value(arguments), f"{sides.type_name(type(target))}.args"
        if not sides.same_plain(target.args, given) and self.side.may_write(target, key, new=False):
            target.args = given

    def matches(self, node: list[Any], number: int, target: object) -> bool:
        kind = type(target)
        if node[0] in ("object", "exception"):
            return bool(node[1] == self.shared.called.get(number, sides.type_name(kind)))
        return bool(sides.NODE_KINDS.get(kind) == node[0])

    def fill_attributes(
        self, target: object, number: int, attributes: dict[str, Value], changed: bool
    ) -> None:
        held = sides.attributes_of(target)
        kind = type(target)
        allowed = {name for name in attributes if name in held or self.may_set(kind, name, number)}
        parts = {name: self.value(part) for name, part in attributes.items() if name in allowed}
        if changed:
            parts = self.allowed(kind, target, held, parts)
        else:
            parts = self.without_hiding(kind, target, parts)
        for name, part in parts.items():
            if name not in held or held[name] is not part:
                self.side.check_attribute(kind, name, part)
        if parts or held:
            sides.set_attributes(target, parts)

    def without_hiding(self, kind: type, target: object, parts: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes of a new object without caches and overridden defaults that are refused."""
        hiding = [n for n in parts if sides.is_cached(kind, n) or sides.is_default(kind, n, parts[n])]
        refused = {name for name in hiding if not self.side.may_hide(target, name, parts[name])}
        return {name: part for name, part in parts.items() if name not in refused}

    def may_set(self, kind: type, name: str, number: int) -> bool:
        """Whether the message may give an object with this number an attribute that it does not have."""
        return self.side.may_set(kind, name, f"{self.shared.call}/{number}")

    def allowed(
        self, kind: type, target: object, held: dict[str, object], parts: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the attributes of an object after a message, by name: those of `parts` that are allowed."""
        found = {}
        # In the order of the message, because a method may show all attributes in their order.
        for name in dict.fromkeys((*parts, *held)):
            same = name in held and name in parts and sides.same_plain(held[name], parts[name])
            key, is_new = f"{sides.type_name(kind)}.{name}", name not in held
            # An attribute can hide a method of the class from all later tests (decision 113).
            if is_new and not self.side.may_hide(target, name, parts[name]):
                continue
            if same or self.side.may_write(target, key, new=is_new):
                if name in parts:
                    found[name] = held[name] if same else parts[name]
            elif name in held:
                found[name] = held[name]
        return found

    def fill_base(self, target: Any, node: list[Any], changed: bool) -> None:
        if changed and not self.side.may_write(target, node[3], new=False):
            return
        parts.BASE_FILLERS[node[3]](self, target, node[4])

    def parts(self, values: list[Value]) -> list[Any]:
        return [self.value(part) for part in values]

    def pairs(self, values: list[list[Value]]) -> list[tuple[Any, Any]]:
        return [(self.value(key), self.value(part)) for key, part in values]

    def value(self, value: Value) -> Any:
        """Return the value of a JSON form. Raises `CannotTravelError` if the form is not valid."""
        if type(value) is dict:
            # Only lists are tagged; a dictionary can't come from an honest encoder here.
            raise sides.CannotTravelError("a JSON object is not a value")
        if type(value) is not list:
            return value
        decoder = _DECODERS.get(value[0])
        if decoder is None:
            raise sides.CannotTravelError(f"{value[0]!r} is not a kind of value")
        return decoder(self, *value[1:])

    def named(self, name: str, otherwise: Value = None) -> object:
        substitute = self.substitute(name, otherwise)
        return self.side.named(name) if substitute is None else substitute

    def substitute(self, name: str, otherwise: Value) -> object:
        """Record a name; return None or a refused name's substitute. Raises `UnseenNameError` without one."""
        try:
            self.side.answered(name)
        except sides.UnseenNameError:
            # Any other value would be read in one way here, and in another by the comparison of answers.
            if type(otherwise) is not list or not otherwise or otherwise[0] not in _STAND_INS:
                raise
            return self.value(otherwise)
        return None

    def stand_in_for(self, number: int, *node: Any) -> object:
        """Return a proxy for a callable that must not be found by its name, or raise `CannotTravelError`."""
        if number in self.side.kept:
            return self.side.kept[number]
        if node[0] != "function":
            raise sides.CannotTravelError(f"a function was expected, not {node[0]}")
        made = self.side.proxy_for(number, list(node))
        self.side.keep(made, number)
        return made

    def member(self, name: str, value: Value, base: str = "") -> object:
        kind: Any = self.side.kind_named(name, base)
        if kind is None:
            found = self.value(value)
            if type(found).__name__ != base:
                raise sides.CannotTravelError(f"{name} does not extend {base}")
            return found
        if not issubclass(kind, enum.Enum):
            # Otherwise, its constructor would run.
            raise sides.CannotTravelError(f"{name} is not an enumeration")
        return kind(self.value(value))

    def method(self, receiver: Value, name: str, otherwise: Value = None) -> object:
        found = self.value(receiver)
        substitute = self.substitute(f"{sides.type_name(type(found))}.{name}", otherwise)
        return getattr(found, name) if substitute is None else substitute

    def view(self, name: str, held: Value) -> object:
        if name not in sides.VIEWS.values():
            raise sides.CannotTravelError(f"{name!r} is not a view of dictionaries")
        return getattr(dict, name)(self.value(held))

    def by_parts(self, name: str, arguments: Value, otherwise: Value = None) -> object:
        substitute = self.substitute(name, otherwise) if name in sides.CALLABLE_PARTS else None
        return sides.PARTS[name](*self.value(arguments)) if substitute is None else substitute

    def partial(self, function: Value, arguments: Value, keywords: Value, otherwise: Value = None) -> object:
        substitute = self.substitute("partial", otherwise)
        if substitute is not None:
            return substitute
        return functools.partial(self.value(function), *self.value(arguments), **dict(self.value(keywords)))


_SHELLS: dict[str, Callable[[Decoder, list[Any]], Any]] = {
    "object": Decoder.shell_of_class,
    "exception": Decoder.exception,
    "deque": lambda decoder, node: collections.deque(maxlen=node[2]),
    "default": lambda decoder, node: collections.defaultdict(parts.factory(decoder, node[2])),
    "lock": Decoder.lock,
}
_KINDS: dict[str, Any] = {name: kind for kind, name in sides.NODE_KINDS.items() if name not in _SHELLS}
_DECODERS: dict[str, Callable[..., Any]] = {
    "#": Decoder.known,
    "a": Decoder.stand_in_for,
    "u": lambda decoder, encoded: parts.text_of(encoded),
    "i": lambda decoder, text: int(text, 16),
    "f": lambda decoder, text: float.fromhex(text),
    "c": lambda decoder, real, imaginary: complex(decoder.value(real), decoder.value(imaginary)),
    "b": lambda decoder, text: base64.b64decode(text),
    "t": lambda decoder, parts: tuple(decoder.parts(parts)),
    "z": lambda decoder, values: parts.all_members(frozenset(decoder.parts(values)), values),
    "r": lambda decoder, *parts: range(*map(int, parts)),
    "s": lambda decoder, *parts: slice(*decoder.parts(list(parts))),
    "k": lambda decoder, name: sides.CONSTANTS[name],
    "n": Decoder.named,
    "e": Decoder.member,
    "m": Decoder.method,
    "x": Decoder.by_parts,
    "p": Decoder.partial,
    "re": lambda decoder, text, flags: parts.pattern(decoder.value(text), flags),
    "l": lambda decoder, name: logging.getLogger(name),
    "mp": lambda decoder, number: types.MappingProxyType(decoder.value(number)),
    "v": Decoder.view,
    "w": lambda decoder, held: weakref.ref(decoder.value(held)),
}
