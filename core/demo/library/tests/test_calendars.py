from datetime import date

import pytest

from sporvei.calendars import Calendar, CalendarError, easter, holidays, parse_calendar, parse_days, service_weekday


@pytest.mark.parametrize(
    "sunday",
    [date(1818, 3, 22), date(2024, 3, 31), date(2038, 4, 25)],
    ids=str,
)
def test_easter(sunday: date) -> None:
    assert easter(sunday.year) == sunday


def test_holidays_are_ten_days() -> None:
    assert sorted(day.strftime("%m-%d") for day in holidays(2024)) == [
        "01-01",
        "03-28",
        "03-29",
        "04-01",
        "05-01",
        "05-09",
        "05-17",
        "05-20",
        "12-25",
        "12-26",
    ]


@pytest.mark.parametrize(
    ("day", "weekday"),
    [
        (date(2024, 6, 10), 0),
        (date(2024, 5, 17), 6),
        (date(2024, 4, 1), 6),
    ],
    ids=str,
)
def test_service_weekday(day: date, weekday: int) -> None:
    assert service_weekday(day) == weekday


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("sa, SU", {5, 6}),
        ("Sa-Mo", {5, 6, 0}),
        ("Mo-Tu,Th", {0, 1, 3}),
    ],
)
def test_parse_days(text: str, days: set[int]) -> None:
    assert parse_days(text) == days


@pytest.mark.parametrize("text", ["", "Mo-We-Fr"])
def test_not_days(text: str) -> None:
    with pytest.raises(CalendarError, match="not a weekday or range"):
        parse_days(text)


def test_a_removed_day_outweighs_an_added_one() -> None:
    monday = date(2024, 6, 10)
    calendar = Calendar(frozenset({0}), added=frozenset({monday}), removed=frozenset({monday}))
    assert not calendar.runs_on(monday)


def test_parse_calendar() -> None:
    text = "Mo-Fr from 2024-01-08 not 2024-06-12 until 2024-06-14 also 2024-06-15"
    calendar = parse_calendar(text.split())
    week = [day for day in range(8, 18) if calendar.runs_on(date(2024, 6, day))]
    assert week == [10, 11, 13, 14, 15]
    assert not calendar.runs_on(date(2024, 1, 5))
    assert calendar.runs_on(date(2024, 1, 8))


def test_holidays_run_as_sundays() -> None:
    constitution_day = date(2024, 5, 17)
    assert not parse_calendar(["Mo-Fr"]).runs_on(constitution_day)
    assert parse_calendar(["Su"]).runs_on(constitution_day)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Mo not", r"no date follows \[not\]"),
        ("Mo not 17.05.2024", r"not a date: \[17.05.2024\]"),
        ("Mo on 2024-05-17", r"unknown word \[on\]"),
    ],
)
def test_not_a_calendar(text: str, complaint: str) -> None:
    with pytest.raises(CalendarError, match=complaint):
        parse_calendar(text.split())
