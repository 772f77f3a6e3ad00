"""A key that can be used and not be seen: it has no text of its own, can't be stored, and is taken out of any text."""

from __future__ import annotations

from typing import NoReturn

_SHOWN = "[key]"
_LEAST_CHARACTERS = 6
"""Shorter keys are placeholders; taking those out of texts would only damage them."""


class Secret:
    """A key. `reveal` is for the one place that sends it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return _SHOWN

    def __reduce__(self) -> NoReturn:
        raise TypeError("A key is never stored or sent to another process.")

    def taken_out_of(self, value: object) -> object:
        """Return a JSON value with the key taken out of all its strings, and half surrogate pairs replaced."""
        if isinstance(value, str):
            return self.taken_out_of_text(value)
        if isinstance(value, list):
            return [self.taken_out_of(item) for item in value]
        if isinstance(value, dict):
            return {self.taken_out_of_text(str(key)): self.taken_out_of(item) for key, item in value.items()}
        return value

    def taken_out_of_text(self, text: str) -> str:
        """Return a text without the key, and such that it can be written in UTF-8."""
        if len(self._value) >= _LEAST_CHARACTERS:
            text = text.replace(self._value, _SHOWN)
        return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text
