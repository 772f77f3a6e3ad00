"""Makes the ids of tests readable: pytest writes non-ASCII characters of parameters as escapes."""

from __future__ import annotations

import re
import unicodedata

_ESCAPE = re.compile(r"\\\\|\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")


def unescaped(id: str) -> str:
    """Return an id with its escapes replaced by the characters themselves.

    Characters that are invisible, combine with others or change the direction of the line stay escaped.
    """
    return _ESCAPE.sub(_letter, id) if "\\" in id else id


def _letter(escape: re.Match[str]) -> str:
    code = int(next(filter(None, escape.groups()), "0"), 16)
    if not 0x80 <= code < 0x110000:
        return escape[0]
    letter = chr(code)
    is_visible = unicodedata.category(letter)[0] in "LNPS"
    is_rightwards = unicodedata.bidirectional(letter) not in ("R", "AL")
    return letter if is_visible and is_rightwards else escape[0]


def ending(id: str, width: int) -> str:
    """Return the end of an id, in at most `width` characters, since the end distinguishes it from others."""
    return id if len(id) <= width else f"…{id[len(id) - width + 1 :]}"
