"""The rules by which the tests' process accepts plain data from the other process (decision 113).

Runs in the target's interpreter.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING or "." in __name__:
    from gistpoint.sandbox.payload.plain_parts import builtin_base
    from gistpoint.sandbox.payload.plain_sides import (
        NODE_KINDS,
        PLAIN_BASES,
        CannotTravelError,
        ProcessSide,
        Shared,
        UnseenNameError,
        attributes_of,
        class_member,
        contained,
        is_cached,
        mro_of,
        present,
        resolved,
        same_plain,
        type_name,
    )
else:
    from gistpoint_parts import builtin_base
    from gistpoint_sides import (
        NODE_KINDS,
        PLAIN_BASES,
        CannotTravelError,
        ProcessSide,
        Shared,
        UnseenNameError,
        attributes_of,
        class_member,
        contained,
        is_cached,
        mro_of,
        present,
        resolved,
        same_plain,
        type_name,
    )

_TOOLS = frozenset(
    ("pytest", "_pytest", "pluggy", "py", "unittest", "hypothesis", "mock", "__main__", "conftest")
)
"""Packages that the other process does not have, or whose objects belong to tests."""
_MOST_HOLDERS = 2_000
_EXCEPTION, _STACK = "exc_info", "stack_info"
_EFFECTS_KNOWN = "effects known"
"""A marker in a function's learned answers, which shows that they include its effects."""


class Learned:
    """The names in a function's answers, and the changes that it makes.

    They are recorded while the true function answers (`learning`), and limit the answers of a submission
    afterwards.
    """

    def __init__(
        self, *, learning: bool, answers: list[str], writes: list[str], all_changes: bool = False
    ) -> None:
        self.learning = learning
        self.answers = set(answers)
        self.writes = set(writes)
        self.all_changes = all_changes
        """Whether all changes are made, even those that the true function was never seen to make."""
        self.has_unmade_change = False
        """Whether an answer contains a change that the true function was never seen to make."""
        if learning:
            self.answers.add(_EFFECTS_KNOWN)

    def holds(self, name: str) -> bool:
        """Whether an answer may contain a class or a name; while learning, the name is recorded."""
        if self.learning:
            self.answers.add(name)
        return name in self.answers

    def changes(self, key: str) -> bool:
        """Whether an answer may make the changes with this key, to an attribute or a kind of container.

        While learning, the key is recorded.
        """
        if self.learning:
            self.writes.add(key)
        return key in self.writes

    def has_set(self, kind: type, value: object) -> bool:
        """Whether all attributes of a constant were seen on objects of its class, or are cached properties.

        With others, a comparison of the library could accept it in place of any object. Older controls do
        not name attributes.
        """
        known = f"{type_name(kind)}."
        names = {key for key in self.answers if key.startswith(known) and key.endswith(" set")}
        new = [name for name in attributes_of(value) if f"{known}{name} set" not in names]
        return not names or all(is_cached(kind, name) for name in new)

    def does(self, effect: str) -> bool:
        """Whether an effect of a call, such as output, is repeated; while learning, it is recorded.

        Effects that the true function never has are not repeated, because a test may look at the output, the
        warnings or the log records of other code (decision 135).
        """
        if self.learning:
            self.answers.add(effect)
        # Older controls do not name effects.
        if effect in self.answers or _EFFECTS_KNOWN not in self.answers:
            return True
        self.has_unmade_change = True
        return self.all_changes

    def repeats(self, side: TestSide, logger: logging.Logger, row: list[Any]) -> logging.LogRecord | None:
        """Return the log record to repeat for a row of an answer; None if the other process has none here.

        What belongs to a record besides its text is a separate effect (decision 205).
        """
        name, level, text, more = row
        if not self.does(f"logs {level} {name}") or not logger.isEnabledFor(level):
            return None
        record = logger.makeRecord(name, level, "", 0, text, (), None)
        for own, value in more.items():
            if not self.does(f"logs {own} with {name}"):
                continue
            if own == _EXCEPTION:
                record.exc_info = side.exception_info(value)
            elif own == _STACK or own not in vars(record):
                setattr(record, own, value)
        return record


class CallsInProgress(Protocol):
    """The part of `StubCalls` that the tests' side needs."""

    learned: list[Learned]
    asked: list[int]
    shared: list[Shared]

    def function(self, number: int, name: str, doc: Any) -> Callable[..., Any]:
        """Return a function whose calls are made in the other process."""
        ...

    def iterator(self, number: int) -> Iterator[Any]:
        """Return a generator over the items of an iterator in the other process."""
        ...


class TestSide(ProcessSide):
    """The side of the tests' process; it accepts only plain data."""

    __test__ = False

    def __init__(
        self, calls: CallsInProgress, root: str, hidden: list[str], unset: Sequence[str] = ()
    ) -> None:
        super().__init__(1, root)
        self.unset = frozenset(unset)
        self.calls = calls
        self.hidden = frozenset(os.path.join(os.path.realpath(root), path) for path in hidden)
        self.is_hidden: dict[str, bool] = {}

    def name(self, value: object) -> str:
        found = super().name(value)
        return "" if found and self.hides(found.partition(":")[0]) else found

    def hides(self, module: str) -> bool:
        """Whether the other process does not have a module."""
        known = self.is_hidden.get(module)
        if known is None:
            file = getattr(sys.modules.get(module), "__file__", None)
            inside = type(file) is str and os.path.realpath(file) in self.hidden
            known = self.is_hidden[module] = inside or module.partition(".")[0] in _TOOLS
        return known

    @property
    def learned(self) -> Learned:
        """The names and changes learned from the function that is being called."""
        return self.calls.learned[self.calls.asked[-1]]

    def holds(self, name: str) -> bool:
        """Whether an answer of the function that is being called may contain a class or a name.

        Names of pytest, `unittest` and other test tools are never allowed: `unittest.mock.ANY`, for example,
        is equal to everything.
        """
        is_of_tools = name.partition(":")[0].partition(".")[0] in _TOOLS
        return not is_of_tools and self.learned.holds(name)

    def answered(self, name: str) -> None:
        constant = self.constant(name)
        if self.learned.learning and constant is not None:
            # A repair may as well answer with a new object of the same class.
            kind = type_name(type(constant))
            self.holds(kind)
            self.learned.answers.update(f"{kind}.{own} set" for own in attributes_of(constant))
        if not self.holds(name) and (constant is None or not self.holds(type_name(type(constant)))):
            raise UnseenNameError(f"the answer contains {name}")

    def constant(self, name: str) -> object | None:
        """Return the object of a class of the library that a module of the tree has under a name.

        Returns None if there is none, or if the object belongs to the tests or can be called.
        """
        found = present(name)
        kind = type(found)
        is_object = found is not None and not callable(found) and kind.__module__ != "builtins"
        if not is_object or self.hides(name.partition(":")[0]):
            return None
        is_known = self.singletons.name(found) == name and bool(self.name(kind))
        if not is_known:
            return None
        is_like_others = self.learned.learning or self.learned.has_set(kind, found)
        return found if is_like_others else None

    def kind_named(self, name: str, base: str) -> type | None:
        if name in _CONTAINERS or self.holds(name):
            return super().kind_named(name, base)
        if base in _BASES:
            return None
        raise UnseenNameError(f"the answer contains an object of {name}")

    def exception_named(self, name: str, base: str) -> type:
        if self.holds(name):
            return super().exception_named(name, base)
        seen = self.seen_base(name)
        if seen is not None:
            return seen
        # A class that no answer of the true function contained arrives as the built-in that it extends.
        known = name if name.startswith("builtins:") else f"builtins:{base}"
        found = resolved(known) if base or known == name else None
        if isinstance(found, type) and issubclass(found, Exception):
            return found
        raise UnseenNameError(f"it raises {name}")

    def exception_info(self, value: object) -> tuple[type, BaseException, None]:
        """Return what a log record keeps of an exception with this class, built-in base and text.

        Raises `CannotTravelError` for anything else, and `UnseenNameError` for a class that is refused.
        """
        if type(value) is not list or len(value) != 3 or not all(type(part) is str for part in value):
            raise CannotTravelError("the logged exception has an invalid form")
        kind = self.exception_named(value[0], value[1])
        builtin: Any = builtin_base(kind)
        made: BaseException = builtin.__new__(kind)
        made.args = (value[2],)
        return kind, made, None

    def context_named(self, name: str, base: str) -> type[BaseException]:
        """Return the class as the other process has it, unless it belongs to the tools or the tests."""
        module = name.partition(":")[0]
        return super().context_named("" if self.hides(module) else name, base)

    def seen_base(self, name: str) -> type[Exception] | None:
        """Return the first exception class of true answers that the class with this name extends, if any."""
        found = present(name)
        for part in mro_of(found)[1:] if isinstance(found, type) else ():
            if issubclass(part, Exception) and part.__module__ != "builtins" and self.holds(type_name(part)):
                return part
        return None

    def warning_named(self, name: str) -> type[Warning] | None:
        """Return the category of a warning; None if it belongs to the tools, or is not a category.

        Raises `UnseenNameError` for a name outside of the builtins that no answer of the true function
        contained; nothing is imported for it.
        """
        if name.partition(".")[0].partition(":")[0] in _TOOLS:
            return None
        if not name.startswith("builtins:") and not self.holds(name):
            raise UnseenNameError(f"it warns with {name}")
        found = resolved(name)
        return found if isinstance(found, type) and issubclass(found, Warning) else None

    def check_attribute(self, kind: type, name: str, part: object) -> None:
        if not self.learned.all_changes and _hides(kind, name, part):
            self.answered(f"{type_name(kind)}.{name} hidden")

    def may_set(self, kind: type, name: str, place: str) -> bool:
        key = f"{type_name(kind)}.{name}"
        if self.learned.learning:
            self.learned.answers.add(f"{key} set")
        return self.unset.isdisjoint((key, f"{place} {key}"))

    def may_hide(self, value: object, name: str, part: object) -> bool:
        kind = type(value)
        hides = _hides(kind, name, part)
        return not hides or self.allowed(self.learned.holds(f"{type_name(kind)}.{name} hidden"))

    def may_write(self, value: object, key: str, *, new: bool) -> bool:
        # A new attribute is allowed, because no code of the original knows its name (decision 113).
        if new:
            return True
        if self.learned.learning:
            for same in self.keys_of_same_change(value, key):
                self.learned.changes(same)
        return self.allowed(self.learned.changes(key))

    def keys_of_same_change(self, value: object, key: str) -> Iterator[str]:
        """Yield the keys of changes that have the same effect as the change `key` of `value`.

        For example, a list can be extended in place, or replaced with a longer one in the attribute or
        container that contains it.
        """
        _, attribute, name = key.rpartition(".")
        held = [attributes_of(value).get(name)] if attribute else contained(value)
        yield from {NODE_KINDS[type(part)] for part in held if type(part) in NODE_KINDS}
        known = self.calls.shared[-1].objects if self.calls.shared else {}
        # Searching all holders for every container takes time that is quadratic in their number.
        if attribute or len(known) > _MOST_HOLDERS:
            return
        for holder in known.values():
            if any(part is value for part in contained(holder)):
                yield NODE_KINDS[type(holder)]
            for own, part in attributes_of(holder).items():
                if part is value:
                    yield f"{type_name(type(holder))}.{own}"

    def allowed(self, seen: bool) -> bool:
        """Whether a change is made; `seen` says whether the true function was seen to make it.

        A change that was not seen is noted in `Learned.has_unmade_change`.
        """
        self.learned.has_unmade_change = self.learned.has_unmade_change or not seen
        return seen or self.learned.all_changes

    def node_of_local(self, value: object) -> list[Any]:
        if isinstance(value, (types.FunctionType, types.MethodType)):
            # Without the enclosing scopes, which name the test.
            return ["function", _bare_name(value), None]
        if _is_iterator(value):
            return ["iterator", type_name(type(value)), None]
        if isinstance(value, BaseException):
            # The submission may raise it as its built-in base; here, it becomes the original object again.
            return ["token", type_name(type(value)), builtin_base(type(value)).__name__]
        return ["token", type_name(type(value)), None]

    def factory(self, number: int, node: list[Any]) -> object:
        # Allowed as the factories of plain values are: it is only asked for values that are missing.
        return self.calls.function(number, node[1], node[2])

    def proxy_for(self, number: int, node: list[Any]) -> object:
        self.answered(f"{node[0]} elsewhere")
        if node[0] == "function":
            return self.calls.function(number, node[1], node[2])
        if node[0] == "iterator":
            return self.calls.iterator(number)
        return Elsewhere()


class Elsewhere:
    """A placeholder for an object that can't leave the other process; it can only be passed back."""


_CONTAINERS = frozenset(f"collections:{name}" for name in ("ChainMap", "UserDict", "UserList", "UserString"))
"""Containers of the standard library that are written in Python, let through like the built-in ones."""
_BASES = frozenset(base.__name__ for base in PLAIN_BASES)


def _hides(kind: type, name: str, part: object) -> bool:
    """Whether an attribute would hide a member of the object's class with another value."""
    found = class_member(kind, name)
    is_slot = type(found) is types.MemberDescriptorType
    of_class = any(name in type.__dict__["__dict__"].__get__(base) for base in mro_of(kind))
    return of_class and not is_slot and not same_plain(found, part)


def _bare_name(function: types.FunctionType | types.MethodType) -> str:
    """Return the name of one of the tests' functions, or a neutral name if its own could reveal a test."""
    name = function.__qualname__.rpartition(".")[2]
    return "function" if "test" in name.lower() else name


def _is_iterator(value: object) -> bool:
    has_next = any("__next__" in vars(part) for part in mro_of(type(value)))
    return has_next and not isinstance(value, io.IOBase)
