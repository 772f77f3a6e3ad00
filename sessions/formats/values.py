"""Values of unknown shape, read as what they should be; what is something else reads as nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from gistpoint.sessions.runs.model import CutText, Json

_YEAR_9999 = 253_000_000_000


def as_dict(value: Json) -> dict[str, Json]:
    """Return an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Return an array, or an empty one."""
    return value if isinstance(value, list) else []


def as_str(value: Json) -> str:
    """Return a string, a number as it is written, or the empty string."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 else ""


def as_int(value: Json) -> int | None:
    """Return a whole number, or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if abs(value) < 1e18 else None
    return value if isinstance(value, int) else None


def as_float(value: Json) -> float | None:
    """Return a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None


def as_bool(value: Json) -> bool | None:
    """Return a truth value, or None."""
    return value if isinstance(value, bool) else None


def objects(value: Json) -> list[dict[str, Json]]:
    """Return the objects of an array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def dumped(value: Json) -> str:
    """Return a value as readable JSON; the empty string for None."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def compact(value: Json) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def as_text(value: Json) -> str:
    """Return the text of a message's content: a string, parts of several types, or any value as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return joined(_part(part) for part in value)
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return as_text(value["text"])
    return dumped(value)


def _part(part: Json) -> str:
    if not isinstance(part, dict):
        return as_text(part)
    for key in ("text", "content", "thinking", "reasoning", "output"):
        if isinstance(part.get(key), str | list):
            return as_text(part[key])
    kind = as_str(part.get("type")) or "part"
    source = part.get("source", part.get("image_url", part.get(kind)))
    shown = as_str(as_dict(source).get("path")) or as_str(as_dict(source).get("url")) or as_str(source)
    return f"[{kind}: {shown[:80]}]" if shown else f"[{kind}]"


def joined(parts: Iterable[str], separator: str = "\n") -> str:
    """Join texts; a single one keeps the mark of being cut."""
    texts = [part for part in parts if part]
    if len(texts) == 1:
        return texts[0]
    return separator.join(
        f"{text}\n[... cut here; the raw record has all of it]" if isinstance(text, CutText) else text for text in texts
    )


def when(value: Json) -> float | None:
    """Return a time as seconds since the epoch: a number, or ISO 8601; without a zone it counts as UTC."""
    number = as_float(value)
    if number is not None:
        seconds = number / 1e6 if number > 1e14 else number / 1e3 if number > 1e11 else number
        return seconds if 0 <= seconds < _YEAR_9999 else None
    if not isinstance(value, str) or not 8 <= len(value) <= 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < _YEAR_9999 else None


def is_naive(value: Json) -> bool:
    """Whether a time is written without its zone."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value[:40]).tzinfo is None
    except ValueError:
        return False


def parsed_object(text: str) -> dict[str, Json] | None:
    """Return the JSON object that `text` is, or None."""
    if text.lstrip()[:1] != "{" or isinstance(text, CutText):
        return None
    try:
        value: Json = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def total(values: Sequence[int | None]) -> int | None:
    """Return the sum of what is known, None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def first(mapping: Mapping[str, Json], *keys: str) -> Json:
    """Return the first value under `keys` that is neither missing, None nor empty."""
    for key in keys:
        value = mapping.get(key)
        if value is not None and value != "" and value != [] and value != {}:
            return value
    return None
