"""Requests from the program's interfaces: bounds of their fields, and fields local to this machine.

A request is a frozen dataclass, next to the function that carries it out. It is data: types, defaults and
bounds. Its wording for the command line is in a table of `tui/commands/` (decision 112).
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Annotated, Any, Final, TypeVar, get_type_hints


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """The bounds of a field's values; a bound of None does not apply."""

    least: int | None = None
    most: int | None = None
    above: int | None = None
    """An exclusive lower bound."""


Count = Annotated[int, ValueBounds(least=1)]
"""Allows whole numbers of 1 or more."""
Natural = Annotated[int, ValueBounds(least=0)]
"""Allows whole numbers of 0 or more."""
Port = Annotated[int, ValueBounds(least=0, most=65_535)]
"""Allows the number of a TCP port, or 0 for any free port."""
Positive = Annotated[float, ValueBounds(above=0)]
"""Allows finite numbers above 0."""
Share = Annotated[float, ValueBounds(above=0, most=1)]
"""Allows numbers above 0, up to and including 1."""

LOCAL: Final = "local"
"""Marks a field that is never sent to a worker, such as a local path or a format of printing."""


class Request:
    """The base of all requests: the options of a command, with types, defaults and bounds (decision 112)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationChoice(Request):
    """The isolation that a request requires for code from a repository."""

    sandbox: str | None = None
    """The name of a backend; None for the user's setting, else the best backend that works."""
    allow_unsandboxed: bool = False
    """Whether code may run without isolation if none works."""


R = TypeVar("R", bound=Request)


def fields_of(request: type[Request] | Request) -> dict[str, Field[Any]]:
    """Return the fields of a request by name."""
    return {field.name: field for field in fields(request)}  # type: ignore[arg-type] # requests are dataclasses


def for_worker(request: R) -> R:
    """Return a request for another machine: fields marked `LOCAL` have their defaults.

    Raises `TypeError` if a local field has no default.
    """
    hints = get_type_hints(type(request), include_extras=True)
    changes: dict[str, Any] = {}
    for name, field in fields_of(request).items():
        value = getattr(request, name)
        if isinstance(value, Request):
            changes[name] = for_worker(value)
        elif LOCAL in getattr(hints[name], "__metadata__", ()):
            if field.default is MISSING:
                raise TypeError(f"{type(request).__name__}.{name} is local and has no default.")
            changes[name] = field.default
    return replace(request, **changes)  # type: ignore[type-var] # requests are dataclasses
