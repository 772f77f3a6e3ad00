"""A solve rate in words includes the rate by the tests alone, and separates unconfirmed runs."""

from __future__ import annotations

import pytest

from gistpoint.core.attempts.results import AttemptResult, Standing, solved_and_by_tests, standing_in

SOLVED, READ, NOT = AttemptResult.SOLVED, AttemptResult.TO_BE_READ, AttemptResult.NOT_SOLVED


@pytest.mark.parametrize("standing", [found for found in Standing if found is not Standing.EXEMPT])
def test_words_on_a_pass_are_read_with_and_without_a_reason(standing: Standing) -> None:
    for words in (str(standing), f"{standing} (too_slow)"):
        assert standing_in(words, passes=False) is standing


def test_runs_without_words_have_no_pass_or_one_that_is_not_confirmed() -> None:
    assert standing_in("", passes=True) is Standing.EXEMPT
    assert standing_in("", passes=False) is None
    assert standing_in("confirmed by me", passes=False) is None


def test_both_rates_are_told() -> None:
    results, words = (
        [SOLVED, SOLVED, READ, NOT, NOT],
        ["confirmed", "not asked", "contradicted", "unconfirmed", ""],
    )
    assert solved_and_by_tests(results, words) == (
        "2 of 5 solved, 1 more to be read; "
        "4 of 5 by the tests alone: 1 confirmed, 1 contradicted, 1 unconfirmed, 1 not asked"
    )


def test_runs_of_other_programs_have_one_rate() -> None:
    assert solved_and_by_tests([SOLVED, NOT], ["", ""]) == "1 of 2 solved"
    assert solved_and_by_tests([], []) == ""
