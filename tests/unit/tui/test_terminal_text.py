import pytest
from hostile import HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.tui.widgets.terminal_text import terminal_lines


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("10%\r20%\r100%", "100%"),
        ("abc\rX", "Xbc"),
        ("abc\r\x1b[KX", "X"),
        ("ab\b\bcd", "cd"),
        ("a\x1b[3Cb", "a   b"),
        ("abc\x1b[2Dx", "axc"),
        ("abc\x1b[1Gx", "xbc"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("windows\r", "windows"),
        ("\x1b[2J\x1b[Hhome", "home"),
        ("\x1b(Bcharset", "charset"),
        ("nul\x00bell\x07", "nul\x00bell\x07"),
        ("cut off \x1b[3", "cut off [3"),
    ],
)
def test_a_line_as_a_terminal_shows_it(raw: str, shown: str) -> None:
    assert [line.text for line in terminal_lines(raw)] == [shown]


def test_colours_last_until_they_are_reset() -> None:
    first, second = terminal_lines("\x1b[1;31mred\nstill\x1b[0m not\x1b[38;5;208mx\x1b[48;2;1;2;3my")
    assert first.looks == ((0, 3, "bold ansi_red"),)
    assert second.looks == (
        (0, 5, "bold ansi_red"),
        (9, 10, "rgb(255,135,0)"),
        (10, 11, "rgb(255,135,0) on rgb(1,2,3)"),
    )


def test_no_movement_makes_a_line_huge() -> None:
    (line,) = terminal_lines("\x1b[99999C" * 50 + "x")
    assert len(line.text) < 20_000


@given(st.text(st.sampled_from("\x1b[]0123;mKCDGH\r\b\x07\n ab" + "".join(HOSTILE)), max_size=80))
def test_anything_is_shown_line_by_line(text: str) -> None:
    lines = terminal_lines(text)
    assert len(lines) == text.count("\n") + 1
    assert not any("\x1b" in line.text or "\r" in line.text for line in lines)


@pytest.mark.parametrize(
    ("sequence", "look"),
    [
        ("38:2::1:2:3", "rgb(1,2,3)"),
        ("38:2:0:1:2:3", "rgb(1,2,3)"),
        ("38:2:1:2:3", "rgb(1,2,3)"),
        ("38;2;1;2;3", "rgb(1,2,3)"),
        ("38:5:208", "rgb(255,135,0)"),
        ("48:2::1:2:3;1", "bold on rgb(1,2,3)"),
        ("38:2::1:2:3;48:5:0", "rgb(1,2,3) on ansi_black"),
        ("4:3", "underline"),
        ("4;4:0", ""),
        ("38:2", ""),
        ("38", ""),
        ("31;38:", ""),
    ],
)
def test_parts_after_colons_belong_to_their_own_parameter(sequence: str, look: str) -> None:
    (line,) = terminal_lines(f"\x1b[{sequence}mx")
    assert [style for _, _, style in line.looks] == ([look] if look else [])
