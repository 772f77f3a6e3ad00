"""Numbers as people type them into a questionnaire."""

from __future__ import annotations

import pytest
from shown_screen import Stage

from gistpoint.core.study.declaration import Question, QuestionKind
from gistpoint.tui.widgets.form import NumberField, QuestionForm

NUMBERS = {
    "1,5": 1.5,
    "1.5": 1.5,
    "0,25": 0.25,
    "12,3456": 12.3456,
    "1.500": 1.5,
    "-2,5": -2.5,
    ",5": 0.5,
    "5,": 5,
    "1000": 1000,
    "": None,
}
SAYS_HOW = "such as 1000 or 1.5"


async def field_with(typed: str) -> NumberField:
    field = NumberField(1, Question(id="years", kind=QuestionKind.NUMBER, text="Years?"))
    async with Stage(field).run_test():
        field.line.value = typed
        return field


@pytest.mark.parametrize("typed", NUMBERS)
async def test_a_comma_or_a_point_stands_before_decimals(typed: str) -> None:
    field = await field_with(typed)
    assert (field.value, field.fault) == (NUMBERS[typed], "")


@pytest.mark.parametrize(
    "typed",
    ["1,000", "1,500", "-1,500", "0,500", "1,000,000", "1.000.000", "1,000.5", "1.000,5", "1,,5", " 1,000 "],
)
async def test_a_number_that_may_have_thousands_is_refused_and_says_how_to_write_it(typed: str) -> None:
    field = await field_with(typed)
    assert isinstance(field.value, str)
    assert SAYS_HOW in field.fault


async def test_words_are_no_number() -> None:
    field = await field_with("two, or three")
    assert field.fault == "The answer must be a number."


@pytest.mark.parametrize(
    ("typed", "is_answered"), [("two", False), ("1,000", False), ("-1", False), ("2", True)]
)
async def test_only_a_valid_number_counts_as_answered(typed: str, is_answered: bool) -> None:
    question = Question(id="years", kind=QuestionKind.NUMBER, text="Years?", min=0)
    form = QuestionForm([question], {"years": typed})
    async with Stage(form).run_test():
        assert form.answered == is_answered
        assert form.draft == {"years": typed}, "what was typed stays in any case"


async def test_space_does_not_erase_the_number_that_tab_selected() -> None:
    form = QuestionForm([Question(id="years", kind=QuestionKind.NUMBER, text="Years?")], {"years": "12"})
    async with Stage(form).run_test() as pilot:
        field = form.fields[0]
        assert isinstance(field, NumberField)
        field.line.select_all()
        await pilot.press("space")
        assert field.line.value == "12"
        await pilot.press("3")
        assert field.line.value == "3", "a digit replaces it"
        await pilot.press("space", "4")
        assert field.line.value == "3 4", "what is typed within a text stays, and is reported"
