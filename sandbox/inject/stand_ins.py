"""Looks at what stands under the names by which code reaches modules of the codebase.

In a gist these are the gist itself, or a `types.SimpleNamespace` of what stands in it. What else is there is told by
its kind; whether it is a fake is for the score to say.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType, SimpleNamespace

_MISSING = object()
_DEPTH = 5


class StandIns:
    """Looks for modules by their dotted `names`, and in `sys.modules` for the top-level names `owned`."""

    def __init__(self, names: Iterable[str], owned: Iterable[str]) -> None:
        self.found: dict[str, str] = {}
        """What stood under a name, by that name: as it was first seen to be something else than the gist."""
        self._names = tuple(names)
        self._owned = frozenset(owned)

    def look(self, namespace: Mapping[str, object], itself: object) -> None:
        """Look in the namespace of the code that uses the names; `itself` is the module that the gist is."""
        for name in self._names:
            found = _under(name, namespace, itself)
            if found is not _MISSING:
                self._note(name, _kind(found, namespace, itself))
        for name in list(sys.modules):
            if isinstance(name, str) and name.partition(".")[0] in self._owned:
                self._note(f"sys.modules[{name!r}]", _type_name(type(sys.modules[name])))

    def _note(self, name: str, kind: str) -> None:
        if kind:
            self.found.setdefault(name, kind)


def _under(name: str, namespace: Mapping[str, object], itself: object) -> object:
    first, *rest = name.split(".")
    found = namespace.get(first, vars(builtins).get(first, _MISSING))
    for attribute in rest:
        if found is itself and "__getattr__" in vars(found) and attribute not in vars(found):
            found = _asked(found, attribute)
        elif found is itself or type(found) is SimpleNamespace:
            found = vars(found).get(attribute, _MISSING)
        else:
            return _MISSING
    return found


def _asked(module: object, attribute: str) -> object:
    """Return what a module's own `__getattr__` has under a name."""
    try:
        return getattr(module, attribute, _MISSING)
    except Exception:
        return _MISSING


def _kind(found: object, namespace: Mapping[str, object], itself: object) -> str:
    """Return what something is in a few words; empty for the gist itself and for a namespace of what stands in it."""
    if found is itself and type(found) is ModuleType:
        return ""
    if type(found) is SimpleNamespace:
        known = {id(value) for scope in (namespace, vars(builtins)) for value in scope.values()}
        alien = _alien(found, known, itself, _DEPTH)
        return f"a namespace with {alien}" if alien else ""
    if type(found) is FunctionType:
        return f"function {found.__code__.co_qualname}"
    if issubclass(type(found), type):
        return f"class {_names(found)[1]}"  # type: ignore[arg-type]
    return f"object of {_type_name(type(found))}"


def _alien(space: SimpleNamespace, known: set[int], itself: object, depth: int) -> str:
    """Return the first name in a namespace under which something stands that the gist does not have by itself."""
    for name, value in vars(space).items():
        if id(value) in known or value is itself:
            continue
        if type(value) is SimpleNamespace:
            inner = _alien(value, known, itself, depth - 1) if depth else "too many namespaces in it"
            if inner:
                return f"{name}.{inner}"
        elif callable(value) and not (_is_of_top_level(value, itself) or _is_of_elsewhere(value, itself)):
            return f"{name}, {_type_name(type(value))}"
    return ""


def _is_of_top_level(value: object, itself: object) -> bool:
    """Whether a function or a class, or that of an object, is one of the gist's top level: a block that is counted."""
    if type(value) is FunctionType:
        name, module = value.__code__.co_qualname, value.__globals__.get("__name__")
    else:
        module, name = _names(value if issubclass(type(value), type) else type(value))  # type: ignore[arg-type]
    return name.isidentifier() and module == getattr(itself, "__name__", None)


def _is_of_elsewhere(value: object, itself: object) -> bool:
    """Whether another module has it under its own name."""
    try:
        module, name = sys.modules.get(value.__module__), getattr(value, "__name__", None)
    except Exception:
        return False
    return module is not None and module is not itself and isinstance(name, str) and vars(module).get(name) is value


def _names(kind: type) -> tuple[str, str]:
    """Return module and qualified name of a class, whatever its metaclass says."""
    module = type.__dict__["__dict__"].__get__(kind).get("__module__")
    return module if isinstance(module, str) else "builtins", type.__dict__["__qualname__"].__get__(kind)


def _type_name(kind: type) -> str:
    return ".".join(_names(kind))
