"""Lenient readers for values of unknown shape: a value of an unexpected type counts as missing."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from gistpoint.core.nesting import is_nested
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.model import TOO_DEEP, CutText, Json, concatenated, json_text

_T = TypeVar("_T")
_NUMBERS = (int, float)
"""A tuple, because a union would be rebuilt for each value, and these functions read every member."""
_LATEST_S = 253_000_000_000
"""A time in the year 9987; something added to a later one could exceed the range of dates."""


def as_dict(value: Json) -> dict[str, Json]:
    """Return the value if it is an object; otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Return the value if it is an array; otherwise an empty one."""
    return value if isinstance(value, list) else []


def as_str(value: Json) -> str:
    """Return a string, or a number as text; empty for other values, and for numbers outside ±1e300."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return ""
    return str(value) if abs(value) < 1e300 else ""


def as_int(value: Json) -> int | None:
    """Return a number without its fraction; None for other values, and for floats outside ±1e18."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if abs(value) < 1e18 else None
    return value if isinstance(value, int) else None


def as_float(value: Json) -> float | None:
    """Return a number below 1e300 in absolute value; None for any other value, including booleans."""
    if value is None or isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    return float(value) if abs(value) < 1e300 else None


def in_seconds(milliseconds: float | None) -> float | None:
    """Return a duration in milliseconds as one in seconds; None if it is unknown."""
    return None if milliseconds is None else milliseconds / 1000


def as_bool(value: Json) -> bool | None:
    """Return the value if it is a boolean; otherwise None."""
    return value if isinstance(value, bool) else None


def objects(value: Json) -> list[dict[str, Json]]:
    """Return the objects in an array; empty for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def first_object(value: Json) -> dict[str, Json]:
    """Return the first element of an array; an empty object if it is not an object."""
    return as_dict((as_list(value) or [None])[0])


def dumped(value: Json) -> str:
    """Return a value as readable JSON; the empty string for None."""
    return "" if value is None else json_text(value)


def compact(value: Json) -> str:
    """Return a value as JSON on one line."""
    return json_text(value, None)


def as_text(value: Json) -> str:
    """Return the text of a message's content: a string, typed parts, or any other value as JSON.

    The text is empty for null. Parts that are nested too deeply are replaced with a note.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        try:
            return joined(_part(part) for part in value)
        except RecursionError:
            return TOO_DEEP
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return as_text(value["text"])
    return dumped(value)


_MEDIA = frozenset(
    (
        "image",
        "image_url",
        "input_image",
        "audio",
        "input_audio",
        "output_audio",
        "video",
        "file",
        "input_file",
        "document",
        "media",
        "computer_screenshot",
    )
)


def _part(part: Json) -> str:
    if not isinstance(part, dict):
        return as_text(part)
    if as_str(part.get("type")) in _MEDIA:
        return media_text(part)
    for key in ("text", "content", "thinking", "reasoning", "refusal", "output", "logs"):
        if isinstance(part.get(key), str | list):
            return as_text(part[key])
    if isinstance(part.get("stdout"), str) or isinstance(part.get("stderr"), str):
        return joined([as_text(part.get("stdout")), as_text(part.get("stderr"))])
    if isinstance(part.get("title"), str) and isinstance(part.get("url"), str):
        return f"{part['title']}\n{part['url']}"
    return dumped(part)


def media_text(part: dict[str, Json], kind: str = "") -> str:
    """Return text in place of an image, a sound or a file.

    The text contains the name, the type and the size of the medium as far as they are known, and any text in
    it.
    """
    kind = kind or _kind_of_medium(as_str(part.get("type")))
    holders = [as_dict(part.get(key)) for key in ("source", kind, "image_url", f"input_{kind}")]
    facts = {key: value for holder in reversed([part, *holders]) for key, value in holder.items() if value}
    name = as_str(first(facts, "path", "url", "filename", "file_name", "file_id", "title", "name", "id"))
    plain = first(part, kind, "image_url", "file_url", "file_data")
    name = plain if not name and isinstance(plain, str) else name
    data = first(facts, "data", "file_data")
    if isinstance(data, str) and as_dict(part.get("source")).get("type") == "text":
        return joined([f"[{kind}: {name}]" if name else "", data])
    media_type = as_str(first(facts, "media_type", "mime_type", "format"))
    size = _size(data) if isinstance(data, str) else ""
    # A set would lose the order. Duplicates occur because a data URL as the name repeats the type and size.
    shown = dict.fromkeys(filter(None, (_without_data(name), media_type, size)))
    inside = [as_text(facts.get(key)) for key in ("transcript", "content", "text")]
    return joined([f"[{kind}: {', '.join(shown)}]" if shown else f"[{kind}]", *inside])


def _kind_of_medium(type_name: str) -> str:
    """Return `image` for `input_image`, `image_url` and the like."""
    return type_name.removeprefix("input_").removeprefix("output_").removesuffix("_url")


def _without_data(name: str) -> str:
    """Return the name of a medium, cut to 2,000 characters; for a data URL, its type and size."""
    if not name.startswith("data:"):
        return name[:2000]
    head, _, data = name[:200].partition(",")
    return f"{head.removeprefix('data:').partition(';')[0]}, {_size(name, len(head) + 1)}" if data else head


def _size(data: str, before: int = 0) -> str:
    length = data.length - 2 if isinstance(data, CutText) else len(data)
    return f"{(length - before) * 3 // 4:,} bytes"


def joined(parts: Iterable[str], separator: str = "\n") -> str:
    """Join strings that are not empty; the result is cut if one of them is."""
    texts = list(filter(None, parts))
    if len(texts) < 2:
        return texts[0] if texts else ""
    if CutText not in map(type, texts):
        return separator.join(texts)
    return concatenated([texts[0], *(piece for text in texts[1:] for piece in (separator, text))])


def is_naive(value: Json) -> bool:
    """Return whether a time is written as text without a time zone."""
    moment = _moment(value) if isinstance(value, str) else None
    return moment is not None and moment.tzinfo is None


def when(value: Json) -> float | None:
    """Return a time as seconds since the epoch, from a number, ISO 8601 or RFC 2822; None for other values.

    Numbers, including digits in a string, may be seconds, milliseconds, microseconds or nanoseconds. A time
    without a time zone counts as UTC. Times before 1970 or after 9986 are None.
    """
    if isinstance(value, str) and _EPOCH.fullmatch(value):
        value = float(value)
    number = as_float(value)
    if number is not None:
        seconds = number / _PARTS[bisect_left(_LEAST, number)]
        return seconds if 0 <= seconds < _LATEST_S else None
    moment = _moment(value) if isinstance(value, str) else None
    if moment is None:
        return None
    try:
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except OverflowError:
        return None
    return seconds if 0 <= seconds < _LATEST_S else None


_LEAST, _PARTS = (1e11, 1e14, 1e17), (1.0, 1e3, 1e6, 1e9)
"""The numbers above which a time is in milli-, micro- or nanoseconds, and the number of units per second."""
_EPOCH = re.compile(r"(?:[0-9]{10}|[0-9]{13}|[0-9]{16}|[0-9]{19})(?:\.[0-9]+)?")
_MAIL = re.compile(r"(?:[A-Za-z]{3}, *)?\d{1,2} [A-Za-z]{3} \d{4} \d\d:\d\d")
"""The beginning of a time in the format of RFC 2822, as in headers of mail and HTTP."""


def _moment(text: str) -> datetime | None:
    """Return a time in the form of ISO 8601 or RFC 2822; None for other text."""
    if not 8 <= len(text) <= 40:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    if not _MAIL.match(text):
        return None
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None


def later(at: float | None, seconds: float | None) -> float | None:
    """Return the time `seconds` after `at`; None if that is unknown, before 1970 or after 9986."""
    if at is None or seconds is None:
        return None
    return at + seconds if 0 <= at + seconds < _LATEST_S else None


def recoded(value: Json) -> Json:
    """Return a value with strings in UTF-8 that were read as Latin-1; unchanged if nested too deeply."""
    try:
        return _recoded(value)
    except RecursionError:
        return value


def _recoded(value: Json) -> Json:
    if isinstance(value, str):
        try:
            return value if value.isascii() else value.encode("latin-1").decode("utf-8")
        except UnicodeError:
            return value
    if isinstance(value, list):
        return [_recoded(item) for item in value]
    if isinstance(value, dict):
        return {key: _recoded(item) for key, item in value.items()}
    return value


def parsed_object(text: str) -> dict[str, Json] | None:
    """Return the JSON object in `text`; None if there is none, or if it is cut or nested too deep."""
    if text.lstrip()[:1] != "{" or isinstance(text, CutText):
        return None
    try:
        value: Json = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not is_deep(value) else None


def is_deep(value: Json) -> bool:
    """Return whether a value is nested too deep to be used; never recurses."""
    return is_nested(value, limits.DECODED_DEPTH)


def shallow(value: Json) -> dict[str, Json]:
    """Return an object; an empty one for any other value, and for one that is nested too deep to be used."""
    return {} if is_deep(value) else as_dict(value)


def total(values: Sequence[int | None]) -> int | None:
    """Return the sum of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def first_known(values: Iterable[_T | None]) -> _T | None:
    """Return the first value that is not None; None if there is none."""
    return next((value for value in values if value is not None), None)


def first(mapping: Mapping[str, Json], *keys: str) -> Json:
    """Return the first value under `keys` that is neither missing, None nor empty; None if there is none."""
    for key in keys:
        value = mapping.get(key)
        # Zero and false count as values; an empty string, array or object does not.
        if value or (value is not None and isinstance(value, _NUMBERS)):
            return value
    return None
