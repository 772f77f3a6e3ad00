"""Declarations of command-line options: tables from which options and their help are made for a request.

The request defines the fields: type, default and bounds. The table declares how they are typed: names,
placeholder and help. A request can contain other requests, whose tables are nested; their options are part of
the same command line (decision 112).
"""

from __future__ import annotations

import argparse
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gistpoint.core.errors import UserError
from gistpoint.core.locations import path_of
from gistpoint.core.requests import Request, ValueBounds, fields_of

R = TypeVar("R", bound=Request)
Read = Callable[[str], object]
"""Converts a typed word to a value. Raises `argparse.ArgumentTypeError` if it is not valid."""


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of an option or argument for a field of a request."""

    names: tuple[str, ...] = ()
    """The names, such as `--name` and `-n`. If empty, the field's own name is used."""
    metavar: str = ""
    help: str = ""
    """The help, in which `{default}` is replaced with the field's default."""
    read: Read | None = None
    """Converts the typed word, if the type and the bounds of the field are not enough."""
    bare: object = None
    """The value of the option when it is typed without one; None if that is not allowed."""
    choices: tuple[str, ...] = ()
    """The allowed values. Those of an `Enum` or a `Literal` need not be listed."""
    together: bool = False
    """Whether one option takes several values; otherwise, it is repeated for each value."""
    by_place: bool = False
    """Whether this is a positional argument."""
    only_with: tuple[str, ...] = ()
    """Fields of the command without which the option has no effect; one of them must be given too."""
    not_with: tuple[str, ...] = ()
    """Fields of the command with which the option has no effect, so they can't be given with it."""


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The declarations for all fields of a request."""

    options: Mapping[str, Option | OptionTable] = field(default_factory=dict)
    title: str = ""
    """The heading of the options in the help; empty if they are listed with the others."""
    description: str = ""
    one_of: tuple[tuple[str, ...], ...] = ()
    """Groups of fields of which at most one may be given."""
    required: bool = False
    """Whether one field of each group in `one_of` must be given."""

    def with_options(self, **changed: Option | OptionTable) -> OptionTable:
        """Return the table with other declarations for some fields."""
        return replace(self, options={**self.options, **changed})


def argument(metavar: str, help: str, *, read: Read | None = None, choices: tuple[str, ...] = ()) -> Option:
    """Return the declaration of a positional argument."""
    return Option((), metavar, help, read, choices=choices, by_place=True)


def option(
    help: str = "",
    *names: str,
    metavar: str = "",
    read: Read | None = None,
    bare: object = None,
    choices: tuple[str, ...] = (),
    together: bool = False,
    only_with: tuple[str, ...] = (),
    not_with: tuple[str, ...] = (),
) -> Option:
    """Return the declaration of an option. Its default name is that of the field."""
    return Option(names, metavar, help, read, bare, choices, together, only_with=only_with, not_with=not_with)


CALLED = Option(by_place=True)
"""The declaration of a field that is not an option: it gets all words of the call."""


class CliCommand(Generic[R]):
    """A command: its request, the declarations of its options, and the function that carries it out."""

    def __init__(
        self,
        request: type[R],
        run: Callable[[R], int],
        options: OptionTable | Mapping[str, Option | OptionTable],
        *,
        about: str = "",
    ) -> None:
        """`about` is the description in the command's help."""
        self._table = options if isinstance(options, OptionTable) else OptionTable(options)
        self._request, self._run, self._about = request, run, about

    def __call__(self, parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
        """Add the options to a parser, and return the function that runs the command."""
        if self._about:
            parser.description = self._about
        _add(parser, parser, self._request, self._table)
        return self.run

    def run(self, given: argparse.Namespace) -> int:
        """Carry out the request that the parsed options describe, and return the exit code."""
        return self._run(_build_request(self._request, self._table, vars(given)))


def add_options(parser: argparse.ArgumentParser, request: type[Request], table: OptionTable) -> None:
    """Add the options for a request to a parser."""
    _add(parser, parser, request, table)


def request_of(request: type[R], table: OptionTable, given: argparse.Namespace) -> R:
    """Return the request that parsed options describe."""
    return _build_request(request, table, vars(given))


def _add(
    parser: argparse.ArgumentParser,
    group: argparse._ActionsContainer,
    request: type[Request],
    table: OptionTable,
) -> None:
    """Add the options of a table in order; if it has a title, in a separate group.

    Raises `TypeError` if the table and the request differ in a field, or if two fields have the same name.
    """
    if table.title:
        group = parser.add_argument_group(table.title, table.description or None)
    hints = get_type_hints(request, include_extras=True)
    fields = fields_of(request)
    _require_complete(request, table, fields)
    exclusive = {
        name: made
        for names in table.one_of
        for made in (group.add_mutually_exclusive_group(required=table.required),)
        for name in names
    }
    for name, entry in table.options.items():
        if isinstance(entry, OptionTable):
            _add(parser, group, hints[name], entry)
        elif entry is not CALLED:
            if any(action.dest == name for action in parser._actions):
                raise TypeError(f"{request.__name__}: the command has two fields called {name!r}")
            named = _named(name, hints[name], fields[name], entry)
            exclusive.get(name, group).add_argument(*_names(name, entry), **named)


def _names(field: str, entry: Option) -> tuple[str, ...]:
    """Return the names of an option, or the name of a positional argument."""
    own = field if entry.by_place else f"--{field.replace('_', '-')}"
    return entry.names or (own,)


def _require_complete(request: type[Request], table: OptionTable, fields: Mapping[str, object]) -> None:
    """Raise `TypeError` unless the table has exactly the fields of the request."""
    if different := fields.keys() ^ table.options.keys():
        raise TypeError(f"{request.__name__} and its words differ in: {', '.join(sorted(different))}")


def _build_request(request: type[R], table: OptionTable, given: Mapping[str, Any]) -> R:
    """Return the request with the given values, and with the declared defaults for all others.

    Raises `UserError` for an option that would be ignored.
    """
    hints = get_type_hints(request)
    values: dict[str, Any] = {}
    for name, entry in table.options.items():
        if isinstance(entry, OptionTable):
            values[name] = _build_request(hints[name], entry, given)
        elif entry is CALLED:
            values[name] = given.get("called", ())
        elif name in given:
            _require_effect(table, name, entry, given)
            values[name] = _value(_split_type(hints[name]), given[name])
    return request(**values)


def _require_effect(table: OptionTable, name: str, entry: Option, given: Mapping[str, Any]) -> None:
    """Raise `UserError` if an option would have no effect, because another one is given or missing."""

    def typed(field: str) -> str:
        declared = table.options.get(field)
        return _names(field, declared if isinstance(declared, Option) else Option())[0]

    own, others = typed(name), [typed(field) for field in entry.not_with if field in given]
    if others:
        raise UserError(f"{own} has no effect with {others[0]}.", hint="Leave out one of them.")
    if entry.only_with and not any(field in given for field in entry.only_with):
        needed = " or ".join(map(typed, entry.only_with))
        raise UserError(f"{own} has no effect without {needed}.", hint=f"Give {needed} too, or leave it out.")


@dataclass(frozen=True, slots=True)
class _Type:
    """The parts of a field's type."""

    base: Any
    """The type of a single value."""
    bounds: ValueBounds | None = None
    many: bool = False
    number: int | None = None
    """The number of values; None if it is not fixed."""


def _split_type(hint: Any) -> _Type:
    """Return the parts of a type: `Annotated`, `X | None`, `tuple[X, ...]` or `tuple[X, X]`."""
    if get_origin(hint) is Annotated:
        base, *metas = get_args(hint)
        inner = _split_type(base)
        return replace(
            inner, bounds=next((meta for meta in metas if isinstance(meta, ValueBounds)), inner.bounds)
        )
    if get_origin(hint) in (Union, types.UnionType):
        return next(_split_type(part) for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is tuple:
        first, *others = get_args(hint)
        number = None if others == [...] else 1 + len(others)
        return replace(_split_type(first), many=True, number=number)
    return _Type(hint)


def _named(name: str, hint: Any, declared: Field[Any], entry: Option) -> dict[str, Any]:
    """Return the arguments with which argparse adds the option for a field.

    In argparse, options have no default: an option that is not typed is absent, and the request's default
    applies.
    """
    kind = _split_type(hint)
    named: dict[str, Any] = {
        "help": _help(declared, entry),
        "default": argparse.SUPPRESS,
        "metavar": entry.metavar or None,
    }
    if not entry.by_place:
        named |= {"dest": name, "required": _is_required(declared)}
    if kind.base is bool:
        del named["metavar"]
        return {**named, "action": "store_true"}
    choices = entry.choices or _choices(kind.base)
    named |= {"choices": choices} if choices else {"type": entry.read or _reader(kind)}
    return {**named, **_number_of_values(kind, declared, entry)}


def _is_required(declared: Field[Any]) -> bool:
    return declared.default is MISSING


def _help(declared: Field[Any], entry: Option) -> str:
    """Return the help on an option, with the default that the request declares."""
    if "{default}" not in entry.help:
        return entry.help
    default = declared.default
    shown = (
        default.value
        if isinstance(default, Enum)
        else f"{default:g}"
        if isinstance(default, float)
        else default
    )
    return entry.help.replace("{default}", str(shown))


def _number_of_values(kind: _Type, declared: Field[Any], entry: Option) -> dict[str, Any]:
    """Return argparse's arguments for the number of values, and for repeating the option."""
    if kind.number is not None:
        return {"nargs": kind.number}
    if kind.many and entry.by_place:
        return {"nargs": "+" if _is_required(declared) else "*"}
    if kind.many:
        return {"nargs": "+"} if entry.together else {"action": "append"}
    if entry.by_place:
        return {} if _is_required(declared) else {"nargs": "?"}
    return {} if entry.bare is None else {"nargs": "?", "const": entry.bare}


def _choices(base: Any) -> tuple[str, ...]:
    """Return the values of a `Literal` or an `Enum`; empty for any other type."""
    if get_origin(base) is Literal:
        return get_args(base)
    return tuple(member.value for member in base) if _is_enum(base) else ()


def _is_enum(base: Any) -> bool:
    return isinstance(base, type) and issubclass(base, Enum)


def _value(kind: _Type, given: Any) -> Any:
    """Return a value read by argparse in the declared type, such as a tuple or a member of an `Enum`."""
    if isinstance(given, list):
        return tuple(_value(kind, one) for one in given)
    return kind.base(given) if _is_enum(kind.base) else given


def reader_of(hint: Any) -> Callable[[str], Any]:
    """Return the function that converts a typed word to a type such as `Count`."""
    return _reader(_split_type(hint))


def _reader(kind: _Type) -> Read:
    """Return the function that converts a typed word to a type, within its bounds."""
    if kind.base is int:
        return lambda text: _within(whole(text), kind.bounds)
    if kind.base is float:
        return lambda text: _within(number(text), kind.bounds)
    return path_of if kind.base is Path else str


def _within(value: float, bounds: ValueBounds | None) -> float:
    """Return `value`.

    Raises `argparse.ArgumentTypeError` with the bound if the value is outside of the bounds.
    """
    if bounds is None:
        return value
    if bounds.least is not None and value < bounds.least:
        raise argparse.ArgumentTypeError(f"must be {bounds.least} or more")
    if bounds.above is not None and not bounds.above < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above {bounds.above}")
    if bounds.most is not None and value > bounds.most:
        raise argparse.ArgumentTypeError(f"must be {bounds.most} or less")
    return value


def number(text: str) -> float:
    """Return text as a number. Raises `argparse.ArgumentTypeError` if it is not one."""
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from error


def whole(text: str) -> int:
    """Return text as a whole number. Raises `argparse.ArgumentTypeError` if it is not one."""
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from error
