"""Detects a call's changes to modules and classes of the tree, which the tests can't see (decision 220).

Runs in the target's interpreter, in the submission's process. The tests' process has modules of its own.
"""

from __future__ import annotations

import collections
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

OF_LIBRARY = "the library's "
"""The beginning of a report on a changed name of a module or class; `module:name` follows."""
_MOST_NAMES = 2_000
_ALL_CALLS, _EACH = 50, 16
_QUICK = 300
"""The number of names that can be compared in each call."""
_CONTAINERS = frozenset(
    (list, dict, set, collections.deque, collections.OrderedDict, collections.defaultdict)
)
_SCALARS = frozenset((type(None), bool, int, float, str, bytes))
_MOST_MEMBERS = 20
_LEVELS = 3
_ABSENT = object()


class _Owner:
    """A module or class, with its values by name when they were last compared."""

    def __init__(self, held: Any, prefix: str, contents: Callable[[object], object]) -> None:
        self.held = held
        self.prefix = prefix
        self.contents = contents
        self.values: dict[str, object] = {}
        self.inside: dict[str, object] = {}
        self.note()

    def note(self) -> None:
        self.values = dict(self.held)
        found = ((name, self.contents(value)) for name, value in self.values.items() if name[:2] != "__")
        self.inside = {name: inside for name, inside in found if inside is not None}

    def changed(self, *, with_contents: bool) -> list[str]:
        """Return the names that were there before and have another value or other contents now."""
        values = self.values.values()
        is_same = len(self.held) == len(values) and all(map(operator.is_, self.held.values(), values))
        found: set[str] = set()
        if not is_same:
            known = self.values.items()
            found.update(name for name, value in known if self.held.get(name, _ABSENT) is not value)
        if with_contents:
            found.update(n for n, inside in self.inside.items() if self.contents(self.values[n]) != inside)
        if found:
            self.note()
        return [f"{OF_LIBRARY}{self.prefix}{name}" for name in sorted(found) if name[:2] != "__"]


class LibraryState:
    """The modules and classes of the tree when they were last compared."""

    def __init__(self, is_of_tree: Callable[[types.ModuleType], bool]) -> None:
        self.is_of_tree = is_of_tree
        self.owners: list[_Owner] = []
        self.seen: set[str] = set()
        self.names = self.calls = 0

    def begin(self) -> None:
        """Note the modules that were imported since the last time, up to 2,000 names."""
        if len(sys.modules) == len(self.seen):
            return
        for name, module in sorted(sys.modules.items()):
            if name in self.seen or self.names > _MOST_NAMES:
                continue
            if type(module) is types.ModuleType and self.is_of_tree(module):
                for held, prefix in _holders(module):
                    self.owners.append(_Owner(held, prefix, self.contents))
                    self.names += len(held)
        self.seen = set(sys.modules)

    def changed(self) -> list[str]:
        """Return reports on the names that a call has changed.

        What containers and objects contain is examined in each call to a small library, and in fewer of a
        large one; after 50 calls, this holds for names too, and for contents in every 16th of these calls.
        """
        self.calls += 1
        is_early, each = self.calls <= _ALL_CALLS, 1 + self.names // _QUICK
        if not is_early and self.calls % each:
            return []
        with_contents = not self.calls % (each if is_early else each * _EACH)
        found = [word for owner in self.owners for word in owner.changed(with_contents=with_contents)]
        self.begin()
        return found

    def contents(self, value: object, level: int = 0) -> object:
        """Return something that is equal as long as a container or an object of the tree has equal contents.

        Returns None for other values, which have no contents.
        """
        if type(value) in _SCALARS:
            return value if level else None
        held = self.held_by(value) if level < _LEVELS else None
        if held is None:
            return id(value) if level else None
        names = [*held][:_MOST_MEMBERS] if isinstance(held, dict) else []
        members = [*held.values()] if isinstance(held, dict) else [*held]
        parts = [self.contents(part, level + 1) for part in [*names, *members[:_MOST_MEMBERS]]]
        return len(members), parts

    def held_by(self, value: object) -> Any:
        """Return a container itself, the attributes of an object of the tree, or None for another value."""
        kind = type(value)
        if kind in _CONTAINERS:
            return value
        if isinstance(value, (type, types.FunctionType, types.ModuleType)):
            return None
        module = sys.modules.get(kind.__module__)
        attributes = _attributes(value) if module is not None and self.is_of_tree(module) else None
        return attributes if type(attributes) is dict else None


def _attributes(value: object) -> object:
    try:
        return object.__getattribute__(value, "__dict__")
    except Exception:  # it has none, or is a proxy whose object is missing
        return None


def _holders(module: types.ModuleType) -> Iterator[tuple[Any, str]]:
    yield vars(module), f"{module.__name__}:"
    for part in list(vars(module).values()):
        if isinstance(part, type) and part.__module__ == module.__name__:
            yield type.__dict__["__dict__"].__get__(part), f"{module.__name__}:{part.__qualname__}."
