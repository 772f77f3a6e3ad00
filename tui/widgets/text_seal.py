"""Stand-ins for the characters that an editor would interpret or lose."""

from __future__ import annotations

import re
from functools import cache

from gistpoint.core.text import visible

_CANDIDATES = (
    *range(0x300),
    0x61C,
    0x180E,
    *range(0x2000, 0x2070),
    *range(0xD800, 0xE000),
    0xFEFF,
    *range(0xFFF0, 0x10000),
    *range(0xE0000, 0xE0080),
)
_SPAN = 0x1000
_AREAS = (*range(0xF0000, 0xFF000, _SPAN), *range(0x100000, 0x10F000, _SPAN))


@cache
def _dangerous() -> str:
    return "".join(chr(code) for code in _CANDIDATES if chr(code) == "\r" or visible(chr(code)) != chr(code))


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"[{re.escape(_dangerous())}]")


def needs_seal(text: str) -> bool:
    """Whether an editor would interpret or lose a character of a text whose lines end in newlines alone."""
    return not text.isprintable() and bool(_pattern().search(text))


class TextSeal:
    """Protects characters that an editor would interpret or lose, by characters of a private-use area in their place.

    An editor that splits lines at form feeds, or encodes lone surrogates, would change a text by loading it.
    `close` and `open` are inverse for texts without characters of that area.
    """

    def __init__(self, text: str = "") -> None:
        """Choose an area that `text` has no character of; carriage returns are kept if they end every line."""
        regular = "\r" not in text or text.count("\r") == text.count("\r\n") == text.count("\n")
        self._kept = "\r" if regular else ""
        self.needed = bool(_pattern().search(text.replace("\r", "") if regular else text))
        used = {ord(character) & ~(_SPAN - 1) for character in set(text) if ord(character) >= _AREAS[0]}
        self._area = next((area for area in _AREAS if area not in used), _AREAS[-1])
        self._close = {
            ord(c): self._area + place for place, c in enumerate(_dangerous()) if not (c == "\r" and self._kept)
        }
        self._open = {sealed: raw for raw, sealed in self._close.items()}
        self._show = {sealed: visible(chr(raw)) for raw, sealed in self._close.items()}

    def close(self, text: str) -> str:
        """Return `text` with every dangerous character replaced, character for character."""
        return text.translate(self._close) if self.needed else text

    def open(self, text: str) -> str:
        """Return the original of a sealed text."""
        return text.translate(self._open) if self.needed else text

    def shown(self, text: str) -> str:
        """Return a sealed text for display, character for character."""
        return visible(text.translate(self._show) if self.needed else text)
