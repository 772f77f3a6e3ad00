"""Distinguishes the calls in a stream, and merges their pieces (decision 149)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gistpoint.core.merging import Merger, plain


class StreamedCalls:
    """The calls of a message as received so far."""

    def __init__(self, merger: Merger) -> None:
        self._merger = merger
        self._calls: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._calls)

    def built(self) -> list[dict[str, Any]]:
        """Return the calls ordered by their index, which is removed: calls in whole replies have none."""
        calls = sorted(self._calls, key=index_of)
        return [{name: plain(value) for name, value in call.items() if name != "index"} for call in calls]

    def add(self, delta: Mapping[str, Any]) -> None:
        """Add a piece of a call. Raises `EndlessReplyError` if there is no room for it."""
        call = self._continued(delta)
        if call is None:
            call = {}
            self._calls.append(call)
        for name, value in delta.items():
            if name == "function" and isinstance(value, dict):
                self._add_function(call.setdefault("function", {}), value)
            elif name in ("id", "index"):
                if call.get(name) in (None, ""):
                    call[name] = self._merger.kept(value, name)
            elif value is not None:
                call[name] = self._merger.merged(call.get(name), value, name)

    def _add_function(self, function: dict[str, Any], delta: Mapping[str, Any]) -> None:
        for name, value in delta.items():
            if name == "name" and isinstance(value, str):
                function["name"] = self._merger.kept(
                    _extended_name(function.get("name") or "", value), "name"
                )
            elif value is not None:
                function[name] = self._merger.merged(function.get(name), value, name)

    def _continued(self, delta: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the call that a piece continues; None if it begins a new call.

        The index names the call. vLLM, SGLang and Gemini have sent several calls with the same index, and
        others a new id with each piece, so only a new id with a name begins a new call.
        """
        index, id = delta.get("index"), delta.get("id")
        if isinstance(index, int):
            same = [call for call in self._calls if call.get("index") == index]
        else:
            same = [call for call in self._calls if not id or call.get("id") in (id, None)]
        if not same or _is_another(same[-1], delta):
            return None
        return same[-1]


def index_of(item: Mapping[str, Any]) -> int:
    """Return the index of a choice or call; 0 if it has none."""
    index = item.get("index")
    return index if isinstance(index, int) else 0


def _is_another(call: Mapping[str, Any], delta: Mapping[str, Any]) -> bool:
    """Return whether a piece with a call's index begins another call, which has a name and a new id.

    Without ids, a named piece with arguments begins another call if the first call's arguments are complete.
    """
    function = delta.get("function")
    if not isinstance(function, dict) or not function.get("name"):
        return False
    before, id = call.get("id"), delta.get("id")
    if before or id:
        return bool(before and id) and before != id
    return bool(function.get("arguments")) and _is_whole(call)


def _extended_name(old: str, new: str) -> str:
    """Return a function's name after one more piece, which may also repeat the whole name."""
    return new if new.startswith(old) else old if old.startswith(new) else old + new


def _is_whole(call: Mapping[str, Any]) -> bool:
    """Return whether the arguments of a call so far are a JSON object."""
    arguments = str(call.get("function", {}).get("arguments") or "").strip()
    if not arguments.endswith("}"):
        return False
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False
