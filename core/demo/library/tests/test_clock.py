import pytest

from sporvei.clock import TimeError, Window, format_duration, format_time, parse_time, ticks


@pytest.mark.parametrize(("text", "minutes"), [("7:05", 425), ("23:59", 1439), ("24:20", 1460)])
def test_parse_time(text: str, minutes: int) -> None:
    assert parse_time(text) == minutes


@pytest.mark.parametrize("text", ["7:5", "12:60", "30:00"])
def test_not_a_time(text: str) -> None:
    with pytest.raises(TimeError, match=r"\["):
        parse_time(text)


@pytest.mark.parametrize(("minutes", "text"), [(425, "07:05"), (1460, "00:20⁺¹"), (-20, "23:40⁻¹")])
def test_format_time(minutes: int, text: str) -> None:
    assert format_time(minutes) == text


@pytest.mark.parametrize(("minutes", "text"), [(60, "1h00"), (125, "2h05")])
def test_format_duration(minutes: int, text: str) -> None:
    assert format_duration(minutes) == text


def test_no_duration_is_negative() -> None:
    with pytest.raises(TimeError, match=r"\[-1\]"):
        format_duration(-1)


@pytest.mark.parametrize(
    ("first", "last", "every", "expected"),
    [(60, 179, 60, [60, 120]), (60, 59, 5, [])],
)
def test_ticks(first: int, last: int, every: int, expected: list[int]) -> None:
    assert list(ticks(first, last, every)) == expected


def test_ticks_move_forward() -> None:
    with pytest.raises(TimeError, match=r"every \[0\]"):
        next(ticks(0, 10, 0))


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("07:00 – 09:30", Window(420, 570)),
        ("22:00-01:00", Window(1320, 1500)),
    ],
)
def test_parse_window(text: str, window: Window) -> None:
    assert Window.parse(text) == window


def test_a_window_has_two_ends() -> None:
    with pytest.raises(TimeError, match=r"not a window: \[07:00\]"):
        Window.parse("07:00")


def test_a_window_holds_both_its_ends() -> None:
    assert [minute for minute in (419, 420, 570, 571) if minute in Window(420, 570)] == [420, 570]
