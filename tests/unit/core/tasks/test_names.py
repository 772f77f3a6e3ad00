"""A task's two words can be pronounced, say nothing about it, and are rarely shared."""

from __future__ import annotations

import random
import re

import pytest

from gistpoint.core.tasks.names import folded_name, shown_name, word_name

SPOKEN = re.compile(r"(?:[dklmnrstv][aeiou]){2}-(?:[dklmnrstv][aeiou]){2}[klmnrst] [1-9]")


def ids(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [f"{drawn.getrandbits(256):064x}" for _ in range(count)]


def test_two_thousand_ids_have_names_that_can_be_said_and_differ() -> None:
    # With 258 million names, one in 130 sets of 2,000 tasks has two tasks with the same name (decision 128).
    names = [word_name(identity) for identity in ids(2_000, 7)]
    assert all(SPOKEN.fullmatch(name) for name in names)
    assert len(set(names)) == 2_000


def test_a_name_depends_on_the_id_alone_and_on_all_of_it() -> None:
    one, other = ids(2, 1)
    assert word_name(one) == word_name(one)
    assert word_name(one) != word_name(other)
    assert word_name(one) != word_name(one[:-1] + ("0" if one[-1] != "0" else "1"))
    # Names are typed and quoted, so they never change; these are from the first version.
    assert word_name("0" * 64) == "loro-rasis 1"
    assert word_name("f" * 64) == "nide-sanor 9"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("shop", "shop"),
        ("a\x1b[31mb\nc\x00", "a␛[31mb␊c␀"),
        ("\u202eevil", "⇄evil"),
        ("n" * 500, f"{'n' * 26}…{'n' * 13}"),
    ],
)
def test_names_from_outside_are_one_bounded_line(given: str, shown: str) -> None:
    assert shown_name(given) == shown


@pytest.mark.parametrize("typed", ["tavo-lumen 4", "TAVO-LUMEN 4", "tavo-lumen-4", " tavo  lumen 4"])
def test_case_and_punctuation_of_a_typed_name_do_not_matter(typed: str) -> None:
    assert folded_name(typed) == "tavo lumen 4"
