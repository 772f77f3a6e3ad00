"""Half-written text: journalled as what changed in it, and whether what was pasted into it had been shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gistpoint.core.canonical import sha256_of_text

_SHORT = 1_000
"""Code points; a text of so many is written whole, which costs little and reads well."""


def draft_data(before: str | None, now: str) -> dict[str, Any]:
    """Return what an `edit_buffer` event says of a text that was `before`: the whole, or the part that is new.

    A part stands at code point `at` in place of `removed` others. Texts are written many times a minute, and whole ones
    would fill the disk with copies.
    """
    if before is None or len(now) <= _SHORT:
        return {"text": now}
    head = _common(before, now)
    tail = _common(before[head:][::-1], now[head:][::-1])
    part = now[head : len(now) - tail]
    if len(part) * 2 > len(now):
        return {"text": now}
    return {"at": head, "removed": len(before) - head - tail, "text": part}


def drafted(before: str | None, data: Mapping[str, Any]) -> str:
    """Return the text after an `edit_buffer` event."""
    text = str(data.get("text", ""))
    if "at" not in data:
        return text
    old, at, removed = before or "", int(data["at"]), int(data.get("removed", 0))
    return f"{old[:at]}{text}{old[at + removed :]}"


def _common(one: str, other: str) -> int:
    """Return how many code points two texts have in common at their start, by comparing halves."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def paste_data(text: str, shown: Iterable[str], *, outside: bool) -> dict[str, Any]:
    """Return what is recorded of a paste: never the text itself.

    `shown` is everything that the solver has been shown; indentation and empty lines make no difference. `outside` is
    what came through the terminal, rather than from the program's own clipboard.
    """
    wanted = _plain(text)
    return {
        "characters": len(text),
        "sha256": sha256_of_text(text),
        "shown": any(wanted in _plain(known) for known in shown),
        "outside": outside,
    }


def _plain(text: str) -> str:
    return "\n".join(stripped for line in text.splitlines() if (stripped := line.strip()))
