"""Replaces the part of msgspec that the bundle uses, where only the standard library is available.

Structs are chosen by a tag and decoded from parsed JSON; types are checked, and no value is converted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

UNSET = object()


class RecordMismatchError(ValueError):
    """A value does not have the declared type."""


class Meta:
    """The limits of a value, which are not checked in the bundle."""

    def __init__(self, **bounds: Any) -> None:
        self.bounds = bounds


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "int": _is_int,
    "str": lambda value: isinstance(value, str),
    "float": lambda value: _is_int(value) or isinstance(value, float),
    "int | str": lambda value: _is_int(value) or isinstance(value, str),
    "list[str]": lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    "list[object]": lambda value: isinstance(value, list),
}


class Struct:
    """A record; its annotations are its fields."""

    _tag_field = ""
    _tag = ""

    def __init_subclass__(cls, *, tag_field: str = "", tag: str = "", **others: Any) -> None:
        super().__init_subclass__()
        cls._tag_field, cls._tag = tag_field or cls._tag_field, tag

    @classmethod
    def fields(cls) -> dict[str, str]:
        """Return the types of all fields as they are written, by name."""
        found: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            if base is not Struct:
                found.update(vars(base).get("__annotations__", {}))
        return found


def _collect(kinds: Any) -> None:
    """Do nothing: the fields of a type are read whenever a value is converted."""


json = SimpleNamespace(Decoder=_collect)


def convert(value: Any, kinds: Any) -> Any:
    """Return the struct that `value` describes; `kinds` is a class, or a nested tuple of possible classes.

    Raises `RecordMismatchError` if the value fits none of them.
    """
    if not isinstance(value, dict):
        raise RecordMismatchError("Expected `object`")
    for kind in _flat(kinds):
        if value.get(kind._tag_field) == kind._tag:
            return _struct_from(kind, value)
    raise RecordMismatchError("Invalid value in the tag")


def _struct_from(kind: type[Struct], value: dict[str, Any]) -> Struct:
    made = kind()
    for name, declared in kind.fields().items():
        found = value.get(name, getattr(kind, name, UNSET))
        if found is UNSET:
            raise RecordMismatchError(f"Object missing required field `{name}`")
        if not _CHECKS[declared](found):
            raise RecordMismatchError(f"Expected `{declared}` - at `$.{name}`")
        setattr(made, name, found)
    return made


def _flat(kinds: Any) -> Iterator[type[Struct]]:
    if isinstance(kinds, tuple):
        for one in kinds:
            yield from _flat(one)
    else:
        yield kinds
