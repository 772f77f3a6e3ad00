"""An object of a recorded run, read leniently: missing and unexpected members count as empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from gistpoint.sessions.records.model import Json
from gistpoint.sessions.records.values import (
    as_bool,
    as_float,
    as_int,
    as_list,
    as_str,
    as_text,
    first,
    first_object,
    in_seconds,
    is_naive,
    when,
)


class Record:
    """An object whose members are read by paths of keys, as in `record.text("message", "content")`."""

    __slots__ = ("members",)

    def __init__(self, value: Json = None) -> None:
        """Read `value`; anything but an object counts as an empty object."""
        self.members: dict[str, Json] = value if isinstance(value, dict) else {}

    def __bool__(self) -> bool:
        return bool(self.members)

    def get(self, *path: str) -> Json:
        """Return the value at a path of keys; None if a key is missing."""
        value: Json = self.members
        for key in path:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value

    def has(self, *keys: str) -> bool:
        """Return whether the object has at least one of these members, whatever their values are."""
        return not self.members.keys().isdisjoint(keys)

    def has_all(self, *keys: str) -> bool:
        """Return whether the object has all of these members, whatever their values are."""
        return self.members.keys() >= set(keys)

    def inner(self, *path: str) -> Record:
        """Return the object at a path; an empty one if there is none."""
        return Record(self.get(*path))

    def objects(self, *path: str) -> list[Record]:
        """Return the objects in an array; its other elements are left out."""
        return records_in(self.get(*path))

    def items(self, *path: str) -> list[Json]:
        """Return the elements of an array; empty if there is no array."""
        return as_list(self.get(*path))

    def words(self, *path: str) -> list[str]:
        """Return the elements of an array as strings; other values become empty strings."""
        return list(map(as_str, self.items(*path)))

    def word(self, *path: str) -> str:
        """Return a string, or a number as text; empty for other values, and for numbers outside ±1e300."""
        return as_str(self.get(*path))

    def text(self, *path: str) -> str:
        """Return content as text: a string, typed parts, or any other value as JSON."""
        return as_text(self.get(*path))

    def whole(self, *path: str) -> int | None:
        """Return a number without its fraction; None for other values, and for floats outside ±1e18."""
        return as_int(self.get(*path))

    def number(self, *path: str) -> float | None:
        """Return a number below 1e300 in absolute value; None for any other value, including booleans."""
        return as_float(self.get(*path))

    def truth(self, *path: str) -> bool | None:
        """Return a boolean; None for any other value."""
        return as_bool(self.get(*path))

    def time(self, *path: str) -> float | None:
        """Return a time in seconds since the epoch, UTC; None if the value is not a time."""
        return when(self.get(*path))

    def naive(self, *path: str) -> bool:
        """Return whether a time is written without a time zone."""
        return is_naive(self.get(*path))

    def seconds_of_ms(self, *path: str) -> float | None:
        """Return, in seconds, a duration recorded in milliseconds; None if there is no number."""
        return in_seconds(self.number(*path))

    def first(self, *keys: str) -> Json:
        """Return the first member under `keys` that is neither missing nor empty; None if there is none."""
        return first(self.members, *keys)

    def first_word(self, *keys: str) -> str:
        """Return, as a string, the first member of `keys` that is neither missing nor empty; may be empty."""
        return as_str(first(self.members, *keys))

    def first_text(self, *keys: str) -> str:
        """Return, as text, the first member of `keys` that is neither missing nor empty; empty if all are."""
        return as_text(first(self.members, *keys))

    def texts(self, *keys: str) -> list[str]:
        """Return the text of each member under `keys`, empty for those that are missing."""
        return [self.text(key) for key in keys]

    def kept(self, *keys: str) -> dict[str, Json]:
        """Return the members under `keys` that are neither missing, empty, zero nor false."""
        return {key: value for key in keys if (value := self.members.get(key))}

    def without(self, *keys: str) -> dict[str, Json]:
        """Return all members except those under `keys`."""
        return {key: value for key, value in self.members.items() if key not in keys}


def records_in(value: Json) -> list[Record]:
    """Return the objects of an array as records."""
    return [Record(item) for item in as_list(value) if isinstance(item, dict)]


def first_in(value: Json) -> Record:
    """Return the first element of an array as a record; an empty one if it is not an object."""
    return Record(first_object(value))


class Decoded(Protocol):
    """A raw record of a file with its value."""

    @property
    def value(self) -> Json:
        """The decoded JSON."""
        ...


def records_of(raws: Iterable[Decoded]) -> list[Record]:
    """Return the values of raw records as `Record`s, in order."""
    return [Record(raw.value) for raw in raws]


def of_type(records: Iterable[Record], *types: str) -> list[Record]:
    """Return the records whose `type` is one of `types`."""
    return [record for record in records if record.get("type") in types]


def times_of(records: Iterable[Record], *path: str) -> Iterator[float | None]:
    """Yield the time at a path in each record, None where it is missing."""
    return (record.time(*path) for record in records)


def texts_of(records: Iterable[Record], *path: str) -> Iterator[str]:
    """Yield the text at a path in each record, empty where it is missing."""
    return (record.text(*path) for record in records)


def words_of(records: Iterable[Record], *path: str) -> Iterator[str]:
    """Yield the string at a path in each record, empty where it is missing."""
    return (record.word(*path) for record in records)


def attached(names: Iterable[str]) -> list[str]:
    """Return a line for each attached file, in place of its content."""
    return [f"[attached: {name}]" for name in names if name]
