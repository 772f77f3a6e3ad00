"""Calls that can't be carried out: what is wrong with them, and what is journalled of them.

What such a call is answered with depends on its event alone, so that a process that goes on with the attempt, and a
replay, answer it as the first process did. What it costs is decided by the bench (docs/decisions/0111).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from typing import Any

from gistpoint.core.attempts.state import Call
from gistpoint.core.tools.declaration import RefusalError, Tool

RAW_CHARACTERS = 100_000
"""Of the text of a malformed call's arguments, as it is journalled."""
_NAME_CHARACTERS, _VALUE_CHARACTERS = 200, 1_000
_MOST_ARGUMENTS = 20
"""Of arguments that are too large to be journalled whole; more than any tool has, so that one of them is unknown."""


class Malformed(StrEnum):
    """What is wrong with a call."""

    NOT_JSON = "not_json"
    NOT_OBJECT = "not_object"
    UNKNOWN_TOOL = "unknown_tool"
    BAD_ARGUMENTS = "bad_arguments"


def call_data(name: str, arguments: Mapping[str, Any] | None, raw: str, tools: tuple[Tool, ...]) -> dict[str, Any]:
    """Return what the event of a call holds of its tool and arguments.

    `raw` is the text of the arguments as it came; it is read if `arguments` is None.
    """
    given, found = (arguments, None) if arguments is not None else _read(raw)
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        found = Malformed.UNKNOWN_TOOL
    elif given is not None and not _binds(tool, given):
        found = Malformed.BAD_ARGUMENTS
    if found is None:
        return {"tool": name, "arguments": dict(given or {})}
    data: dict[str, Any] = {"tool": name[:_NAME_CHARACTERS], "malformed": found.value}
    if given is not None:
        data["arguments"] = _kept(given)
    return {**data, "raw": _cut(raw)} if raw else data


def fitting(call: Call, tool: Tool) -> None:
    """Raise `RefusalError` if a call does not fit the declaration of its tool."""
    if call.malformed == Malformed.NOT_JSON:
        raise RefusalError(f"The arguments of {tool.name} are not JSON; it takes {tool.usage()}.")
    if call.malformed == Malformed.NOT_OBJECT:
        raise RefusalError(f"The arguments of {tool.name} are not one JSON object; it takes {tool.usage()}.")
    tool.bind(call.arguments)
    if call.malformed:
        raise RefusalError(f"The arguments do not fit the declaration of {tool.name}; it takes {tool.usage()}.")


def json_object(text: str) -> Mapping[str, Any] | None:
    """Return the object that a JSON text holds; None if it holds another value. Raises `ValueError` for no JSON."""
    try:
        value = json.loads(text, parse_constant=_no_json)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value if isinstance(value, dict) else None


def _no_json(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _read(raw: str) -> tuple[Mapping[str, Any] | None, Malformed | None]:
    try:
        value = json_object(raw)
    except ValueError:
        return None, Malformed.NOT_JSON
    if value is None and len(raw) <= RAW_CHARACTERS:
        return None, Malformed.NOT_OBJECT
    return value, Malformed.NOT_JSON if value is None else None


def _cut(raw: str) -> str:
    """Return the text, bounded; what is cut is never JSON, so a replay does not take it for a sound call."""
    return raw if len(raw) <= RAW_CHARACTERS else f"{raw[: RAW_CHARACTERS - 1]}…"


def _binds(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    try:
        tool.bind(arguments)
    except RefusalError:
        return False
    return True


def _kept(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments; of those that are too large or too deep for a journal, flat and bounded ones like them."""
    try:
        small = len(json.dumps(arguments, allow_nan=False)) <= RAW_CHARACTERS
    except (RecursionError, TypeError, ValueError):
        small = False
    if small:
        return dict(arguments)
    return {str(name)[:_NAME_CHARACTERS]: _flat(value) for name, value in islice(arguments.items(), _MOST_ARGUMENTS)}


def _flat(value: object) -> object:
    if isinstance(value, str):
        return value[:_VALUE_CHARACTERS]
    return value if value is None or isinstance(value, bool) else {}
