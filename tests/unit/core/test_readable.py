"""Durations and large numbers in readable form."""

from __future__ import annotations

import pytest

from gistpoint.core.readable import (
    duration,
    moment,
    percent_words,
    stamp,
    thousands,
    utc_day,
    utc_minute,
    when,
)


@pytest.mark.parametrize(
    ("ms", "passed"),
    [
        (-5, "0:00"),
        (499, "0:00"),
        (59_999, "0:59"),
        (62_999.9999, "1:03"),
        (142_800, "2:22"),
        (3_599_600, "59:59"),
        (3_723_000, "1:02:03"),
    ],
)
def test_clocks_and_totals_show_seconds_that_have_passed(ms: float, passed: str) -> None:
    assert duration(ms) == passed


@pytest.mark.parametrize(
    ("number", "short", "exact"),
    [
        (0, "0", "0"),
        (499, "499", "499"),
        (500, "500", "500"),
        (999, "1k", "999"),
        (1_000, "1k", "1.0k"),
        (12_345, "12k", "12.3k"),
        (999_499, "999k", "999.5k"),
        (999_500, "1.0M", "999.5k"),
        (999_949, "1.0M", "999.9k"),
        (999_950, "1.0M", "1.0M"),
        (1_234_567, "1.2M", "1.2M"),
        (123_456_789, "123M", "123.5M"),
    ],
)
def test_numbers_are_said_in_thousands_and_millions(number: float, short: str, exact: str) -> None:
    assert (thousands(number), thousands(number, exact=True)) == (short, exact)


def test_a_time_that_is_not_known_is_empty_and_one_in_utc_needs_no_zone_of_the_machine() -> None:
    assert (stamp(0), moment(0)) == ("", "")
    assert (utc_day(1_769_850_300_000), utc_minute(1_769_850_300_000)) == (
        "2026-01-31",
        "2026-01-31 09:05 UTC",
    )


@pytest.mark.parametrize("utc_ms", [-(10**40), -1, 253_402_300_800_000, 10**18, 10**400])
def test_a_time_that_no_calendar_has_is_shown_as_the_first_or_the_last(utc_ms: int) -> None:
    year = "1970" if utc_ms < 0 else "9987"
    assert utc_day(utc_ms)[:4] == utc_minute(utc_ms)[:4] == year
    years = (year, "1969") if utc_ms < 0 else (year,)  # the local time may be behind UTC
    assert stamp(utc_ms)[:4] in years
    assert moment(utc_ms)[:4] in years
    assert when(utc_ms, 2 * 10**12)[-4:] in years


@pytest.mark.parametrize("of", [1, 2, 3, 40, 250, 400, 10_000])
def test_a_percentage_claims_none_and_all_only_of_none_and_all(of: int) -> None:
    words = {count: percent_words(count / of) for count in {0, 1, of // 2, of - 1, of}}
    assert [count for count, text in sorted(words.items()) if text == "0%"] == [0]
    assert [count for count, text in sorted(words.items()) if text == "100%"] == [of]


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.004, "less than 1%"), (0.02, "2%"), (0.506, "51%"), (0.994, "99%"), (0.996, "more than 99%")],
)
def test_a_share_is_a_whole_percentage(share: float, words: str) -> None:
    assert percent_words(share) == words
