import pytest

from sporvei.notation import NotationError, cell_width, fold, lines, numbered, pad, split_fields


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("track HAV BRU 6.2", ["track", "HAV", "BRU", "6.2"]),
        ('station KÆR "Kærvik Øst"', ["station", "KÆR", "Kærvik Øst"]),
        ('"# kept" # dropped', ["# kept"]),
        ("", []),
        ("SKA 06:32 [/x]", ["SKA", "06:32", "[/x]"]),
    ],
)
def test_split_fields(line: str, fields: list[str]) -> None:
    assert split_fields(line) == fields


def test_a_quote_must_be_closed() -> None:
    with pytest.raises(NotationError, match=r"never closed: \[a \"b\]"):
        split_fields('a "b')


def test_lines_keep_the_numbers_of_the_text() -> None:
    assert list(lines("\none\n# two\n\nthree four")) == [(2, ["one"]), (5, ["three", "four"])]


def test_lines_tell_where_a_quote_is_open() -> None:
    with pytest.raises(NotationError, match=r"^line 2: a quote"):
        list(lines('fine\n"open'))


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("Mjølfjell", "mjolfjell"),
        ("Kærvik-Øst", "kaervik ost"),
        ("  Vik   ved fjorden ", "vik ved fjorden"),
    ],
)
def test_fold(name: str, folded: str) -> None:
    assert fold(name) == folded


@pytest.mark.parametrize(
    ("text", "width"),
    [("A\u030asga\u030ard", 6), ("東京", 4)],
)
def test_cell_width(text: str, width: int) -> None:
    assert cell_width(text) == width


@pytest.mark.parametrize(
    ("text", "align", "padded"),
    [("Vik", ">", "   Vik"), ("東京", "<", "東京  ")],
)
def test_pad(text: str, align: str, padded: str) -> None:
    assert pad(text, 6, align) == padded


def test_pad_knows_two_directions() -> None:
    with pytest.raises(ValueError, match=r"not \[\^\]"):
        pad("Vik", 6, "^")


def test_numbered_readers_tell_the_line_and_keep_their_name() -> None:
    @numbered
    def read(seen: list[str], fields: list[str]) -> None:
        seen.append(fields[1])

    seen: list[str] = []
    read(seen, 1, ["a", "b"])
    with pytest.raises(NotationError, match=r"^line 2: list index out of range"):
        read(seen, 2, ["a"])
    assert seen == ["b"]
    assert read.__name__ == "read"
