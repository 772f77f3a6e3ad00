"""Lines folded to the width of a list."""

import pytest

from gistpoint.tui.widgets.line_list import Line, line, parts_of


@pytest.mark.parametrize("text", ["a b " * 900, "x" * 3000, "你好" * 900, " word" * 30, "a " + "x" * 50])
@pytest.mark.parametrize("width", [0, 1, 7, 11, 17, 18, 19, 40])
def test_a_line_is_folded_at_any_width_and_nothing_of_it_is_lost(text: str, width: int) -> None:
    parts = parts_of(line(text, link="there"), width)
    assert "".join("".join(part.text for part in parts).split()) == "".join(text.split())
    assert all(part.link == "there" for part in parts)
    assert (len(parts) == 1) == (width < 18)


@pytest.mark.parametrize("text", ["a " * 30, " word" * 30, "a  b   " * 20])
@pytest.mark.parametrize("size", [1, 2, 5, 200])
def test_each_further_part_has_the_same_indent(text: str, size: int) -> None:
    pieces = tuple((text[at : at + size], "") for at in range(0, len(text), size))
    _, *further = parts_of(Line(pieces), 20)
    indents = {len(part.text) - len(part.text.lstrip()) for part in further if part.text.strip()}
    assert indents == {6}
