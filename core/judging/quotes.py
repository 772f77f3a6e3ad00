"""Locates a judge's quotes in the run; a quote that is not there proves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gistpoint.core.judging.pieces import RunPassage

LONGEST_QUOTE = 2_000
MOST_QUOTES = 5
"""The maximum number of quotes of an answer that are looked up."""
LEAST_LETTERS = 10
"""The least number of letters and digits in a quote, unless it is a whole part of a step.

One that is shorter proves nothing, because other runs have it too (decision 212).
"""


@dataclass(frozen=True, slots=True)
class QuotePlace:
    """Code points `start` to `end` of a part of a step, named as in `RunPassage`."""

    step: int
    scope: str
    part: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LocatedQuotes:
    """The quotes that prove something, by their places, and the others."""

    places: tuple[QuotePlace, ...] = ()
    refused: tuple[str, ...] = ()


def located(quotes: Iterable[str], passages: Sequence[RunPassage]) -> LocatedQuotes:
    """Return the first place of each quote; those that are in no passage, or prove nothing, are refused.

    Only the first `MOST_QUOTES` of the `quotes` are looked up; the others are left out.
    """
    places, refused = list[QuotePlace](), list[str]()
    for quote in list(quotes)[:MOST_QUOTES]:
        place = place_of_quote(quote, passages)
        if place is None:
            refused.append(quote[:LONGEST_QUOTE])
        elif place not in places:
            places.append(place)
    return LocatedQuotes(tuple(places), tuple(refused))


def place_of_quote(quote: str, passages: Sequence[RunPassage]) -> QuotePlace | None:
    """Return the first place of a quote; None if no passage contains it, or if it is too short or too long.

    Apart from runs of whitespace, every character must be the same.
    """
    words = quote.split()
    if not words or len(quote) > LONGEST_QUOTE:
        return None
    is_short = sum(map(str.isalnum, quote)) < LEAST_LETTERS
    # Models copy words faithfully, but not tabs and line ends.
    copied = r"\s++".join(map(re.escape, words))
    # A short quote is accepted only if it is the whole passage, because then there is nothing more to quote.
    pattern = re.compile(rf"\A\s*+({copied})\s*+\Z" if is_short else f"({copied})")
    for passage in passages:
        found = pattern.search(passage.text)
        if found is not None:
            start, end = found.span(1)
            return QuotePlace(
                passage.step, passage.scope, passage.part, passage.start + start, passage.start + end
            )
    return None
