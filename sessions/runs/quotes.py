"""Where a JSON string literal closes: by hops from quote to quote, which does not look at what lies between."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import AnyStr, Generic

_HOPS = 200
_NEAR = 64


@dataclass(frozen=True, slots=True)
class Quotes(Generic[AnyStr]):
    """The same for bytes and for text."""

    quote: AnyStr
    slash: AnyStr
    rest: re.Pattern[AnyStr]
    """The inside of a literal and its closing quote; for literals with very many quotes in them."""

    def closing(self, text: AnyStr, opening: int) -> int:
        """Return where the literal that opens at `opening` closes, -1 if it does not."""
        closing = text.find(self.quote, opening + 1)
        for _ in range(_HOPS):
            if closing < 0 or not self._is_escaped(text, closing, opening):
                return closing
            closing = text.find(self.quote, closing + 1)
        match = self.rest.match(text, opening + 1)
        return match.end() - 1 if match else -1

    def _is_escaped(self, text: AnyStr, quote: int, opening: int) -> bool:
        slashes = 0
        for reach in (_NEAR, quote - opening - 1):
            before = text[max(opening + 1, quote - reach) : quote]
            slashes = len(before) - len(before.rstrip(self.slash))
            if slashes < len(before):
                break
        return slashes % 2 == 1


IN_BYTES = Quotes(b'"', b"\\", re.compile(rb'(?:[^"\\]++|\\.)*+"', re.S))
IN_TEXT = Quotes('"', "\\", re.compile(r'(?:[^"\\]++|\\.)*+"', re.S))
