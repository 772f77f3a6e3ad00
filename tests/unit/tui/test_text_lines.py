from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gistpoint.core.text import visible
from gistpoint.tui.widgets.text_lines import LONGEST_ROW, ScreenRows, TextLines, drawn

TEXT = st.text(st.sampled_from("ab \t\n漢é\u0301\x00\x0c\u2028👍\r"), max_size=200)


@given(TEXT)
def test_lines_are_those_that_newlines_end(text: str) -> None:
    lines = list(TextLines(text))
    assert "\n".join(lines) in (text, text.removesuffix("\n"))
    assert not any("\n" in line for line in lines)


@given(TEXT, st.integers(0, 220))
def test_an_offset_lies_on_the_line_that_is_named(text: str, offset: int) -> None:
    lines = TextLines(text)
    index = lines.line_of(min(offset, max(0, len(text) - 1)))
    assert lines.starts[index] <= max(0, min(offset, len(text) - 1)) or index == 0


@given(TEXT, st.one_of(st.none(), st.integers(4, 30)))
def test_rows_show_every_character_once_and_in_order(text: str, width: int | None) -> None:
    lines = TextLines(text)
    rows = ScreenRows(lines, width)
    shown: dict[int, str] = {}
    for row in range(len(rows)):
        line, start, end = rows.at(row)
        shown[line] = shown.get(line, "") + lines[line][start:end]
        assert rows.row_of(line, start) == row
        if width is not None and end > start:
            assert cell_len(drawn(lines[line][start:end])[0]) <= width
    assert list(shown.values()) == list(lines)
    assert list(shown) == list(range(len(lines)))


def test_only_long_lines_are_folded() -> None:
    lines = TextLines("a\n" + "b" * (2 * LONGEST_ROW + 1) + "\nc")
    rows = ScreenRows(lines)
    assert [rows.at(row) for row in range(len(rows))] == [
        (0, 0, 1),
        (1, 0, LONGEST_ROW),
        (1, LONGEST_ROW, 2 * LONGEST_ROW),
        (1, 2 * LONGEST_ROW, 2 * LONGEST_ROW + 1),
        (2, 0, 1),
    ]
    assert rows.row_of(1, LONGEST_ROW) == 2


@given(TEXT)
def test_what_is_drawn_is_what_is_visible(text: str) -> None:
    raw = text.replace("\n", "")
    shown, places = drawn(raw)
    for index, character in enumerate(raw):
        part = shown[places[index] : places[index + 1]]
        assert part == visible(character) if character != "\t" else part.strip() == ""
    assert places[len(raw)] == len(shown)


@given(TEXT)
def test_no_row_is_wider_than_the_widest(text: str) -> None:
    lines = TextLines(text)
    assert max(cell_len(drawn(line)[0]) for line in lines) <= lines.widest()


def test_lines_are_folded_behind_words_where_there_are_some() -> None:
    lines = TextLines("one two three four\n" + "x" * 25)
    rows = ScreenRows(lines, 10)
    shown = [lines[line][start:end] for line, start, end in map(rows.at, range(len(rows)))]
    assert shown == ["one two ", "three four", "xxxxxxxxxx", "xxxxxxxxxx", "xxxxx"]
