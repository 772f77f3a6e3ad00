"""The text of a gist, as the calls of its writing tools make it: for the tools, and for the fold over the events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GIST_BUFFER = "gist"
"""Name of the buffer in which a person types the gist (`edit_buffer` events)."""


class EditError(ValueError):
    """An edit that can't be made, with the reason."""


def written(text: str, tool: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the gist after a call; None for a tool that writes no gist. Raises `EditError`."""
    if tool in ("write_gist", "edit_and_execute"):
        return str(arguments.get("content", ""))
    if tool == "edit_gist":
        return _replaced(text, str(arguments.get("old", "")), str(arguments.get("new", "")))
    return None


def _replaced(text: str, old: str, new: str) -> str:
    if not old:
        raise EditError("The text to replace is empty; write_gist writes the whole gist.")
    count = text.count(old)
    if count == 0:
        raise EditError("The text to replace does not stand in the gist.")
    if count > 1:
        raise EditError(f"The text to replace stands {count} times in the gist; give more of what is around it.")
    return text.replace(old, new, 1)
