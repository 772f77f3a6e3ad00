"""Reads typed values out of a parsed document; what is wrong is told in a sentence that names file and key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar, overload

from gistpoint.core.errors import TaskError

T = TypeVar("T")
_MISSING = object()
_LARGEST = 2**63
"""Of whole numbers that stand for a number: larger ones have no floating point form."""
_NAMES = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


class Fields:
    """A table of a document, with the name of its file and its own key for messages."""

    def __init__(self, values: Mapping[str, Any], file: str, key: str = "") -> None:
        self.values = values
        self.file = file
        self.key = key

    def name(self, key: str) -> str:
        """Return a key of this table as messages name it."""
        return f"{self.key}.{key}" if self.key else key

    @overload
    def get(self, key: str, kind: type[T]) -> T: ...
    @overload
    def get(self, key: str, kind: type[T], default: T) -> T: ...
    def get(self, key: str, kind: type[T], default: Any = _MISSING) -> T:
        """Return the value under `key`; raises `TaskError` where it is missing or of another kind."""
        value: Any = self.values.get(key, _MISSING)
        if value is _MISSING:
            if default is _MISSING:
                raise TaskError(f"{self.file}: the key {self.name(key)!r} is missing.")
            value = default
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value) if abs(value) <= _LARGEST else None
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise TaskError(f"{self.file}: the key {self.name(key)!r} must be {_NAMES.get(kind, kind.__name__)}.")
        return value

    def table(self, key: str) -> Fields:
        """Return the table under `key`."""
        values: dict[str, Any] = self.get(key, dict)
        return Fields(values, self.file, self.name(key))

    def tables(self, key: str) -> list[Fields]:
        """Return the list of tables under `key`."""
        items: list[Any] = self.get(key, list)
        return [
            Fields(self._as_table(item, key, n), self.file, f"{self.name(key)}[{n}]") for n, item in enumerate(items)
        ]

    def strings(self, key: str) -> tuple[str, ...]:
        """Return the list of strings under `key`."""
        items: list[Any] = self.get(key, list)
        if not all(isinstance(item, str) for item in items):
            raise TaskError(f"{self.file}: the key {self.name(key)!r} must be a list of strings.")
        return tuple(items)

    def at_least(self, key: str, low: int, default: int | None = None) -> int:
        """Return the whole number under `key`, which must not be below `low`."""
        value = self.get(key, int) if default is None else self.get(key, int, default)
        if value < low:
            raise TaskError(f"{self.file}: the key {self.name(key)!r} must be at least {low}, and is {value}.")
        return value

    def above_zero(self, key: str) -> float:
        """Return the number under `key`, which must be finite and above zero."""
        value = self.get(key, float)
        if not 0 < value < math.inf:
            raise TaskError(f"{self.file}: the key {self.name(key)!r} must be a number above 0, and is {value}.")
        return value

    def _as_table(self, item: Any, key: str, n: int) -> Mapping[str, Any]:
        if not isinstance(item, dict):
            raise TaskError(f"{self.file}: the key '{self.name(key)}[{n}]' must be a table.")
        return item
