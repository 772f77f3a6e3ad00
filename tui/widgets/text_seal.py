"""The reversible mapping of characters that an editor would interpret or lose to private-use characters."""

from __future__ import annotations

import re
from functools import cache

from gistpoint.core.text import visible

# Characters that may be invisible, a control or a surrogate: those that `visible` changes are dangerous.
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
_AREAS: tuple[int, ...] = (*range(0xF0000, 0xFF000, _SPAN), *range(0x100000, 0x10F000, _SPAN))


@cache
def _dangerous() -> str:
    return "".join(chr(code) for code in _CANDIDATES if chr(code) == "\r" or visible(chr(code)) != chr(code))


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"[{re.escape(_dangerous())}]")


def needs_seal(text: str) -> bool:
    """Return whether an editor would interpret or lose a character of text with plain newlines."""
    return not text.isprintable() and bool(_pattern().search(text))


def _has_regular_endings(text: str) -> bool:
    """Return whether each line ending has a carriage return, or none has, and nothing else has one."""
    return "\r" not in text or text.count("\r") == text.count("\r\n") == text.count("\n")


def _free_area(text: str) -> int:
    """Return the first code point of a private-use area that `text` doesn't use; the last if it uses all."""
    # An area begins at a multiple of its size, a power of two, so the mask maps a character to its area.
    used = {ord(character) & ~(_SPAN - 1) for character in set(text) if ord(character) >= _AREAS[0]}
    return next((area for area in _AREAS if area not in used), _AREAS[-1])


class TextSeal:
    """A mapping of the characters that an editor would interpret or lose to private-use characters.

    An editor that splits lines at form feeds, or encodes lone surrogates, would change the loaded text.
    `open` reverts `close` for text without characters of the private-use area in question.
    """

    def __init__(self, text: str = "") -> None:
        """Choose a private-use area, if possible one that `text` doesn't use.

        Carriage returns are kept if all line endings have one.
        """
        kept = "\r" if _has_regular_endings(text) else ""
        self.needed = bool(_pattern().search(text.replace("\r", "") if kept else text))
        area = _free_area(text)
        self._close = {
            ord(character): area + place for place, character in enumerate(_dangerous()) if character != kept
        }
        self._open = {sealed: raw for raw, sealed in self._close.items()}
        self._show = {sealed: visible(chr(raw)) for raw, sealed in self._close.items()}

    def close(self, text: str) -> str:
        """Return text in which each dangerous character is replaced with a private-use one."""
        return text.translate(self._close) if self.needed else text

    def open(self, text: str) -> str:
        """Return the original of a string that `close` returned."""
        return text.translate(self._open) if self.needed else text

    def shown(self, text: str) -> str:
        """Return sealed text for display, with one character for each of the original's."""
        return visible(text.translate(self._show) if self.needed else text)
