"""Converts parsed documents into records with declared members, and names file and key in errors.

The records declare the types and limits of their members, so that no reader repeats them (decision 73).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from sys import float_info
from typing import Annotated, Any, TypeVar, get_args, get_type_hints, overload

import msgspec
from msgspec import Meta

from gistpoint.core.decoding import decodable
from gistpoint.core.errors import TaskError, UserError, did_you_mean

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
_MISSING = object()

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Duration = Annotated[float, Meta(gt=0, le=float_info.max)]
Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]

_FAULT = re.compile(r"(?P<fault>.*) - at `\$(?P<path>.*)`", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<type>\w+)[^`]*`(?: >= (?P<least>\S+))?(?: <= (?P<most>\S+))?")
_PART = re.compile(r"\.\w+|\[[^\]]+\]")
_TYPES: dict[str, tuple[type, str]] = {
    "str": (str, "a string"),
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "bool": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "a table"),
}
"""The Python type of a parsed value and the type's name in messages, by msgspec's name for it."""


class Fields:
    """A table of a document, with its file name and its own key for messages."""

    def __init__(
        self,
        values: Mapping[str, Any],
        file: str,
        key: str = "",
        *,
        error: type[UserError] = TaskError,
        is_complete: bool = False,
    ) -> None:
        """Give access to `values`; faults in them are raised as `error`.

        `is_complete` is true if this version has read the same values before and found no missing member.
        """
        self.values = values
        self.file = file
        self.key = key
        self.error = error
        self.is_complete = is_complete

    def name(self, key: str) -> str:
        """Return the full name of a key in this table, for messages."""
        return f"{self.key}.{key}".strip(".")

    @overload
    def get(self, key: str, kind: type[T]) -> T: ...
    @overload
    def get(self, key: str, kind: type[T], default: T) -> T: ...
    def get(self, key: str, kind: type[T], default: Any = _MISSING) -> T:
        """Return the value under `key`, or the default.

        Raises the error if the value is missing without a default, or of another type.
        """
        if key not in self.values and default is _MISSING:
            raise self.error(f"{self.file}: the key {self.name(key)!r} is missing.")
        return self._decoded(self.values.get(key, default), kind, self.name(key))

    def record(self, kind: type[T], *, optional: Collection[str] = ()) -> T:
        """Return the whole table as a record.

        A member with a default is required too, unless the default is None or `optional` names the member (as
        in `brief.test`), because the meaning of a file must not depend on a later default. Raises the error
        for a fault.
        """
        return self._decoded(self.values, kind, self.key, optional)

    def sparse(self, kind: type[S]) -> S:
        """Return the whole table as a struct, with defaults for missing members.

        Raises the error for an unknown key, at any depth, and for a wrong type.
        """
        self._only_declared(kind)
        return self._converted(self.values, kind, self.key)

    def _only_declared(self, kind: type[msgspec.Struct]) -> None:
        hints = get_type_hints(kind)
        self.only(hints)
        for name, value in self.values.items():
            self._one_of(hints[name], name, value)
            structs = list(structs_in(hints[name]))
            items = enumerate(value) if isinstance(value, list) else [(None, value)]
            for n, item in items:
                if structs and isinstance(item, dict):
                    key = self.name(name) if n is None else f"{self.name(name)}[{n}]"
                    Fields(item, self.file, key, error=self.error)._only_declared(structs[0])

    def table(self, key: str) -> Fields:
        """Return the nested table under `key`."""
        return self._part(self.get(key, dict[str, Any]), self.name(key))

    def tables(self, key: str) -> list[Fields]:
        """Return the list of tables under `key`."""
        items = enumerate(self.get(key, list[dict[str, Any]]))
        return [self._part(item, f"{self.name(key)}[{n}]") for n, item in items]

    def _part(self, values: Mapping[str, Any], key: str) -> Fields:
        return Fields(values, self.file, key, error=self.error, is_complete=self.is_complete)

    def only(self, known: Collection[str]) -> None:
        """Raise the error for the first unknown key, and suggest the most similar known key."""
        if strange := sorted(set(self.values).difference(known)):
            listed = f"known are {', '.join(sorted(known))}.{did_you_mean(strange[0], known)}"
            raise self.error(f"{self.file}: the key {self.name(strange[0])[:120]!r} is not known; {listed}")

    def _one_of(self, kind: Any, name: str, value: object) -> None:
        if isinstance(kind, type) and issubclass(kind, Enum) and isinstance(value, str):
            members = [member.value for member in kind]
            if value not in members:
                listed = f"known are {', '.join(repr(one) for one in members)}.{did_you_mean(value, members)}"
                raise self.error(
                    f"{self.file}: the key {self.name(name)!r} has {value[:80]!r}, which is not known;"
                    f" {listed}"
                )

    def _decoded(self, value: object, kind: type[T], key: str, optional: Collection[str] = ()) -> T:
        found = self._converted(value, kind, key)
        if self.is_complete:
            return found
        # A later version's default must not change what an older file means (decision 73).
        for absent in _absent(self._written(found), value):
            if absent not in optional:
                raise self.error(f"{self.file}: the key {f'{key}.{absent}'.strip('.')!r} is missing.")
        return found

    def _written(self, found: object) -> object:
        try:
            return msgspec.to_builtins(found)
        except (UnicodeEncodeError, RecursionError) as error:
            raise self.error(f"{self.file} can't be read: {error}.") from None

    def _converted(self, value: object, kind: type[T], key: str) -> T:
        try:
            return msgspec.convert(value, decodable(kind))
        except msgspec.ValidationError as error:
            raise self.error(f"{self.file}: {_sentence(str(error), value, key)}") from None
        except (UnicodeEncodeError, RecursionError) as error:
            raise self.error(f"{self.file} can't be read: {error}.") from None


def structs_in(annotation: Any) -> Iterator[type[msgspec.Struct]]:
    """Yield the struct types in an annotation, including those of a list's items."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        yield annotation
    for part in get_args(annotation):
        yield from structs_in(part)


def _absent(written: object, given: Any, key: str = "") -> Iterator[str]:
    """Yield the keys of members with values in the written record that the given one does not have."""
    if isinstance(written, dict):
        for name, value in written.items():
            if name not in given:
                if value is not None:
                    yield f"{key}{name}"
            # Equal values have the same members, and comparing them is faster: lists of tasks read thousands.
            elif isinstance(value, dict | list | tuple) and value != given[name]:
                yield from _absent(value, given[name], f"{key}{name}.")
    elif isinstance(written, list | tuple) and written and isinstance(written[0], dict):
        for n, item in enumerate(written):
            yield from _absent(item, given[n], f"{key.removesuffix('.')}[{n}].")


def _sentence(message: str, value: Any, key: str) -> str:
    """Return msgspec's message about the `value` under `key`, as a sentence."""
    found = _FAULT.fullmatch(message)
    fault, path = (found["fault"], found["path"]) if found else (message, "")
    if fault.startswith("Invalid enum value"):
        named = repr(f"{key}{path}".strip("."))
        return f"the key {named} has {fault.removeprefix('Invalid enum value ')[:80]}, which is not known."
    expected = _EXPECTED.match(fault)
    wanted = expected["type"] if expected else ""
    kind, words = _TYPES.get(wanted, (object, "a number"))
    path, value = _fault_at(path, value, kind)
    if fault.startswith("Object missing required field"):
        path = f"{path}.{fault.split('`')[1]}"
        return f"the key {f'{key}{path}'.strip('.')!r} is missing."
    named = repr(f"{key}{path}".strip("."))
    if expected and expected["least"]:
        return f"the key {named} must be at least {expected['least']}, but is {value}."
    if expected and expected["most"]:
        return f"the key {named} must be at most {expected['most']}."
    if "matching regex" in fault:
        return f"the key {named} must be 64 hexadecimal digits."
    if wanted == "str" and path.endswith("]"):
        return f"the key {named.rpartition('[')[0]}' must be a list of strings."
    if fault.startswith("Expected `float` "):
        return f"the key {named} must be a number above 0, but is {value}."
    return f"the key {named} must be {words}."


def _fault_at(path: str, value: Any, kind: type) -> tuple[str, Any]:
    """Return the path to a fault and the value there.

    Unlike msgspec's path, this one includes the keys of mappings.
    """
    named = ""
    for part in _PART.findall(path):
        if part == "[...]":
            if not path.endswith(f"{named}[...]"):
                return path, None
            wrong = (key for key, item in value.items() if type(item) is not kind)
            return f"{named}.{next(wrong, '...')}", None
        value = value[part[1:] if part[0] == "." else int(part[1:-1])]
        named += part
    return path, value
