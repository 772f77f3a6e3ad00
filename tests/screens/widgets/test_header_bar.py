"""The header of a screen: in a narrow terminal, only the name is cut, and only as far as necessary."""

from __future__ import annotations

import pytest
from screens.settling import until
from shown_screen import Stage, rows

from gistpoint.tui.widgets.header_bar import HeaderBar, HeaderField

NAME = "orchard · Crate.has_room_for and three other functions corrupted"
HEADERS = {
    "a summary": ("✔ solved", [HeaderField("", "score 1.000"), HeaderField("working time", "1:02:03")]),
    "a queue": (
        "12 of 120   100 judged, 90 accepted",
        [HeaderField("reviewer", "ada"), HeaderField("set", "of today")],
    ),
    "a run": (
        "a-model-with-a-name   solved",
        [HeaderField("run", "3 of 12"), HeaderField("format", "inspect")],
    ),
    "words alone": ("reading both runs, which takes a while", []),
}


@pytest.mark.parametrize("width", [60, 80, 120, 160, 200])
@pytest.mark.parametrize("name", [NAME, NAME[:20], "Runs"])
@pytest.mark.parametrize("header", HEADERS)
async def test_of_a_header_only_the_name_is_cut(width: int, name: str, header: str) -> None:
    words, fields = HEADERS[header]
    async with (app := Stage(HeaderBar(name, words, fields))).run_test(size=(width, 3)) as pilot:
        await pilot.pause()
        (drawn, *_) = rows(app)
        assert words in drawn
        shown = [field for field in fields if f"{field.name} {field.value}".strip() in drawn]
        assert shown == fields[: len(shown)], "the last field is left out first"
        assert drawn.replace(words, "").count("…") <= 1, "a field is shown whole or not at all"
        free = width - len(drawn.rstrip())
        assert name in drawn or len(shown) <= 1, "fields are left out before the name is cut"
        assert name in drawn or free <= 2, "the name is cut next to free cells"


@pytest.mark.parametrize(("before", "after"), [(80, 160), (160, 80), (120, 121), (60, 200)])
async def test_a_header_is_drawn_whole_after_the_terminal_got_another_width(before: int, after: int) -> None:
    words, fields = HEADERS["a run"]
    async with Stage(HeaderBar(NAME, words, fields)).run_test(size=(after, 3)) as pilot:
        await pilot.pause()
        (expected, *_) = rows(pilot.app)
    async with Stage(HeaderBar(NAME, words, fields)).run_test(size=(before, 3)) as pilot:
        await pilot.pause()
        await pilot.resize_terminal(after, 3)
        await until(pilot, lambda: rows(pilot.app)[0] == expected)
