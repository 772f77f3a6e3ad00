"""Finds text in other text without regard to case, by one rule for queries, searches, indexes and highlights.

The rule is Unicode's full case folding, by which `Straße` is `STRASSE`, with one addition: the dotted and the
dotless i of Turkish are an i, in whatever form a program wrote them. A letter is found only as a whole, so
that `s` is not in `ß`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

_DOTTED_I = re.compile("i\u0307+")
_LONGER = (
    "\u00df\u0149\u01f0\u0390\u03b0\u0587\u1e96-\u1e9a\u1e9e\u1f50\u1f52\u1f54\u1f56\u1f80-\u1faf\u1fb2-\u1fb4\u1fb6"
    "\u1fb7\u1fbc\u1fc2-\u1fc4\u1fc6\u1fc7\u1fcc\u1fd2\u1fd3\u1fd6\u1fd7\u1fe2-\u1fe4\u1fe6\u1fe7\u1ff2-\u1ff4\u1ff6"
    "\u1ff7\u1ffc\ufb00\ufb02\ufb05\ufb06\ufb13-\ufb17"
)
"""The letters whose folded form is longer, except those whose form contains an i that a dot may follow."""
_RESIZED = re.compile(f"[\u0130\ufb01\ufb03]\u0307*|[iI\u0131]\u0307+|[\ufb04{_LONGER}]")
"""A pattern that matches letters whose folded form has a different length."""


def folded(text: str) -> str:
    """Return the case-folded form of a string, which is equal for strings that differ only in case."""
    if text.isascii():
        return text.lower()
    form = text.casefold().replace("\u0131", "i")
    return _DOTTED_I.sub("i", form) if "\u0307" in form else form


def contains_folded(text: str, wanted: str) -> bool:
    """Return whether a string contains `wanted`, a folded string, in upper or lower case."""
    form = folded(text)
    if wanted not in form:
        return False
    return _keeps_places(text, form) or next(_whole(text, form, wanted), None) is not None


def places_of(wanted: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each occurrence of a string in another, ignoring case.

    Occurrences are in order and do not overlap. An empty string does not occur anywhere.
    """
    wanted = folded(wanted)
    if not wanted:
        return iter(())
    if text.isascii():
        return exact_places(wanted, text.lower())
    # Folding a long text takes much longer than searching it, and few texts have any such letter.
    if wanted.isascii() and not any(letter in text for letter in letters_for(wanted)):
        return (found.span() for found in _in_any_case(wanted).finditer(text))
    form = folded(text)
    return exact_places(wanted, form) if _keeps_places(text, form) else _whole(text, form, wanted)


def _keeps_places(text: str, form: str) -> bool:
    """Return whether each letter keeps its place in the folded string, which only dots make shorter."""
    return len(form) == len(text) and "\u0307" not in text


@lru_cache(maxsize=8)
def _in_any_case(wanted: str) -> regex.Pattern[str]:
    import regex as engine

    return engine.compile(engine.escape(wanted), engine.IGNORECASE)


def exact_places(wanted: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each occurrence of a string that is not empty; they do not overlap."""
    find, length = text.find, len(wanted)
    at = find(wanted)
    while at >= 0:
        end = at + length
        yield at, end
        at = find(wanted, end)


def _whole(text: str, form: str, wanted: str) -> Iterator[tuple[int, int]]:
    """Yield the occurrences of a folded string that consist of whole letters of `text`, folded as `form`."""
    spans = list(_resized_spans(text))

    def in_text(offset: int) -> int | None:
        """Return the offset in the text for an offset in its folded form; None within a letter."""
        number = bisect_right(spans, offset, key=itemgetter(0)) - 1
        if number < 0:
            return offset
        form_start, form_end, start, end = spans[number]
        if offset == form_start:
            return start
        return end + offset - form_end if offset >= form_end else None

    at = form.find(wanted)
    while at >= 0:
        start, end = in_text(at), in_text(at + len(wanted))
        step = 1
        if start is not None and end is not None:
            yield start, end
            step = len(wanted)
        at = form.find(wanted, at + step)


def _resized_spans(text: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield where the resized parts of a string are: start and end in its folded form, and in the text."""
    longer_by = 0
    for found in _RESIZED.finditer(text):
        start, end = found.span()
        form_start = start + longer_by
        form_end = form_start + len(folded(found[0]))
        yield form_start, form_end, start, end
        longer_by = form_end - end


_LIKE_ASCII = {
    "i": "\u0130\u0131\u0307",
    "k": "\u212a",
    "s": "\u017f",
    "ss": "\u00df\u1e9e",
    "ff": "\ufb00",
    "fi": "\ufb01",
    "fl": "\ufb02",
    "ffi": "\ufb03",
    "ffl": "\ufb04",
    "st": "\ufb05\ufb06",
}
"""The letters outside of ASCII that fold to ASCII letters, by ASCII letter, and the dot of an i."""


@lru_cache(maxsize=8)
def letters_for(wanted: str) -> str:
    """Return the letters outside of ASCII that may occur in place of a string's ASCII letters."""
    form = folded(wanted)
    return "".join(letters for plain, letters in _LIKE_ASCII.items() if plain in form)
