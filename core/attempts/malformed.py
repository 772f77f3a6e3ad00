"""Calls that can't be carried out: their faults, and their form in the journal.

The answer to such a call depends only on its event, so a process that resumes the attempt, and a replay,
answer it as the first process did. The harness decides its cost (decision 49).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from typing import Any

from msgspec import UNSET

from gistpoint.core.attempts.events import CallMade
from gistpoint.core.attempts.parts import AttemptCall
from gistpoint.core.tools.declaration import BoundCall, RefusalError, Tool

RAW_CHARACTERS = 100_000
"""The maximum number of characters in a malformed call's arguments that are journalled."""
_NAME_CHARACTERS, _VALUE_CHARACTERS = 200, 1_000
_MOST_ARGUMENTS = 20
"""The maximum number of arguments journalled of a call whose arguments are too large; no tool has so many."""


class Malformed(StrEnum):
    """The reason why a call can't be carried out."""

    NOT_JSON = "not_json"
    NOT_OBJECT = "not_object"
    UNKNOWN_TOOL = "unknown_tool"
    BAD_ARGUMENTS = "bad_arguments"


def malformed_call(name: str, tool: Tool | None, given: Mapping[str, Any] | Malformed, raw: str) -> CallMade:
    """Return the event, without an id, of a call that can't be carried out.

    `given` are the arguments, or the fault of `raw`, their text as received; `tool` is None if no tool has
    the name. Long names, arguments and strings are cut.
    """
    fault = given if isinstance(given, Malformed) else Malformed.BAD_ARGUMENTS
    return CallMade(
        call_id="",
        tool=name[:_NAME_CHARACTERS],
        malformed=(fault if tool else Malformed.UNKNOWN_TOOL).value,
        arguments=UNSET if isinstance(given, Malformed) else _recorded_arguments(given),
        raw=_cut(raw) if raw else UNSET,
    )


def bound_again(call: AttemptCall, tool: Tool) -> BoundCall:
    """Return a recorded call bound to its tool.

    Raises `RefusalError` if the arguments were malformed or do not fit the tool.
    """
    if call.malformed == Malformed.NOT_JSON:
        raise RefusalError(f"The arguments of {tool.name} are not JSON; it takes {tool.usage()}.")
    if call.malformed == Malformed.NOT_OBJECT:
        raise RefusalError(f"The arguments of {tool.name} are not one JSON object; it takes {tool.usage()}.")
    bound = tool.bind(call.arguments)
    if call.malformed:
        raise RefusalError(
            f"The arguments do not fit the declaration of {tool.name}; it takes {tool.usage()}."
        )
    return bound


def json_object(text: str) -> Mapping[str, Any] | None:
    """Return the object in a JSON text; None for any other value. Raises `ValueError` if it is not JSON."""
    try:
        value = json.loads(text, parse_constant=_no_json)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value if isinstance(value, dict) else None


def _no_json(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def arguments_in(raw: str) -> Mapping[str, Any] | Malformed:
    """Return the arguments in the text of a call, or its fault.

    A JSON value that is not an object counts as not JSON if its text is too long for the journal.
    """
    try:
        value = json_object(raw)
    except ValueError:
        return Malformed.NOT_JSON
    if value is None:
        return Malformed.NOT_OBJECT if len(raw) <= RAW_CHARACTERS else Malformed.NOT_JSON
    return value


def _cut(raw: str) -> str:
    """Return the bounded text.

    Shortened text is never valid JSON, so a replay won't mistake it for a valid call.
    """
    return raw if len(raw) <= RAW_CHARACTERS else f"{raw[: RAW_CHARACTERS - 1]}…"


def _recorded_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments, or flat and bounded ones if they are too large or too deep for a journal."""
    try:
        small = len(json.dumps(arguments, allow_nan=False)) <= RAW_CHARACTERS
    except (RecursionError, TypeError, ValueError):
        small = False
    if small:
        return dict(arguments)
    return {
        str(name)[:_NAME_CHARACTERS]: _flat(value)
        for name, value in islice(arguments.items(), _MOST_ARGUMENTS)
    }


def _flat(value: object) -> object:
    if isinstance(value, str):
        return value[:_VALUE_CHARACTERS]
    return value if value is None or isinstance(value, bool) else {}
