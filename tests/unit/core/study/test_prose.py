"""A template is filled with facts and nothing else."""

from __future__ import annotations

import pytest

from gistpoint.core.study.prose import Passage, PassageKind, bare, markdown, places, written

FACTS = {
    "people/enrolled": 12,
    "rate": 0.5,
    "empty": "",
    "modes/remove": 3,
    "modes/gist": 2,
    "by/a/x": 1,
    "by/b/x": 4,
}


def test_a_fact_stands_in_its_place() -> None:
    assert written("# People\nEnrolled: {people/enrolled}, {rate}.", FACTS) == (
        Passage(PassageKind.HEADING, "People"),
        Passage(PassageKind.PARAGRAPH, "Enrolled: 12, 0.5."),
    )


def test_a_condition_prints_its_text_or_nothing() -> None:
    assert [p.text for p in written("? empty: a\n! empty: b\n? rate: c\n! rate: d\n? unknown: e", FACTS)] == [
        "b",
        "c",
    ]


def test_a_repeated_line_has_the_name_and_what_is_below_it() -> None:
    assert [p.text for p in written("* modes: - {.} {=}\n* by: - {.}: {.x}", FACTS)] == [
        "remove 3",
        "gist 2",
        "a: 1",
        "b: 4",
    ]


def test_a_fact_that_there_is_not_is_no_empty_place() -> None:
    with pytest.raises(KeyError):
        written("{people/gone}", FACTS)


def test_a_fact_is_never_read_as_a_template_or_as_markup() -> None:
    facts = {"title": "{rate} # <b>*x*</b>\n\u202e"}
    (passage,) = written("{title}", facts)
    assert passage.text == "{rate} # <b>*x*</b>␊⇄"
    assert r"\{rate\} \# \<b\>\*x\*\</b\>" in markdown("t", [passage])


def test_what_is_typed_can_be_told_from_what_is_filled_in() -> None:
    template = "? bp-2: a {x1} b\n# c {y}"
    assert places(template) == ("x1", "y")
    assert not any(character.isdigit() for character in bare(template))
    assert any(character.isdigit() for character in bare("? a: 3 {x}"))
