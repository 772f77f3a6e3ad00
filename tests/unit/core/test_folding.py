"""One rule for text in any case: what it finds, where, and what a search of bytes may leave to it."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gistpoint.core.folding import contains_folded, folded, letters_for, places_of

ODD = "aAiIsSkKfFlLtT\u0130\u0131\u0307\u017f\u212a\u00df\u1e9e\ufb00\ufb01\ufb03\ufb06\u0149\u02bc\u0390\u03c2\u03a3 "
TEXTS = st.text(ODD, max_size=12) | st.text(max_size=12)


@pytest.mark.parametrize(
    ("wanted", "text", "found"),
    [
        ("istanbul", "in \u0130stanbul!", "\u0130stanbul"),
        ("istanbul", "in \u0130STANBUL!", "\u0130STANBUL"),
        ("\u0130stanbul", "in i\u0307stanbul!", "i\u0307stanbul"),
        ("i\u0307stanbul", "in \u0130stanbul!", "\u0130stanbul"),
        ("ISTANBUL", "in \u0131stanbul!", "\u0131stanbul"),
        ("strasse", "\u00df Stra\u00dfe", "Stra\u00dfe"),
        ("stra\u00dfe", "\u0130 STRASSE", "STRASSE"),
        ("office", "\u0130 o\ufb03ce", "o\ufb03ce"),
        (
            "\u03c3\u03bf\u03c6\u03cc\u03c2",
            "\u03a3\u039f\u03a6\u038c\u03a3",
            "\u03a3\u039f\u03a6\u038c\u03a3",
        ),
        ("kelvin", "\u212aelvin", "\u212aelvin"),
    ],
)
def test_a_match_is_shown_where_it_is(wanted: str, text: str, found: str) -> None:
    assert [text[start:end] for start, end in places_of(wanted, text)] == [found]
    assert contains_folded(text, folded(wanted))


@pytest.mark.parametrize(("wanted", "text"), [("s", "\u00df"), ("f", "\ufb01"), ("n", "\u0149"), ("", "a")])
def test_a_part_of_a_letter_is_not_found(wanted: str, text: str) -> None:
    assert not list(places_of(wanted, text))


@given(TEXTS, TEXTS, TEXTS)
@example("", "\u0131\u0307", "\u0307")
def test_a_text_contains_its_parts_in_any_case(before: str, wanted: str, after: str) -> None:
    text = before + wanted + after
    for form in (wanted, wanted.lower(), wanted.upper(), wanted.casefold()):
        spans = list(places_of(form, text))
        assert bool(spans) == bool(folded(form)) == (contains_folded(text, folded(form)) and form != "")
        assert all(folded(text[start:end]) == folded(form) for start, end in spans)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))


@given(TEXTS)
def test_folding_again_changes_nothing(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def test_the_letters_of_other_lengths_are_all_known() -> None:
    for letter in map(chr, range(sys.maxunicode + 1)):
        form = folded(letter)
        if form == letter:
            continue
        assert list(places_of("!", f"a{letter}!")) == [(2, 3)], f"{letter!r} moves what follows it"
        if form.isascii() and not letter.isascii():
            assert letter in letters_for(form), f"{letter!r} is not among the letters for {form}"
