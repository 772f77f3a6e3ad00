"""A widget changes, the screen is laid out, it changes again, and only then comes to tell: so on a busy machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.app import App, ComposeResult
from textual.widget import Widget

from gistpoint.tui.home_rows import Row
from gistpoint.tui.screens.home_table import HomeTable
from gistpoint.tui.widgets.plain import Plain


class Page(App[None]):
    CSS = "Plain, HomeTable { height: auto; }"

    def compose(self) -> ComposeResult:
        yield Plain("")
        yield HomeTable(("Key", "Mode"), id="table")


def lines(widget: Widget, number: int) -> None:
    if isinstance(widget, Plain):
        widget.update("\n".join(["text"] * number))
    elif isinstance(widget, HomeTable):
        widget.show_rows(tuple(Row(str(place), ("a", "b"), ((0, "a"), (0, "b"))) for place in range(number)))


@pytest.mark.parametrize("kind", [Plain, HomeTable])
async def test_a_layout_between_two_changes_is_not_the_last(kind: Callable[..., Widget]) -> None:
    async with Page().run_test() as pilot:
        widget = pilot.app.query_one(kind)
        heights = []
        for before, number in ((2, 5), (1, 4), (9, 6)):
            lines(widget, before)
            widget.refresh(layout=True)  # as styles do when the focus comes
            pilot.app.screen._refresh_layout()
            lines(widget, number)
            await pilot.pause(0.1)
            heights.append(widget.size.height)
        header = 1 if kind is HomeTable else 0
        assert heights == [5 + header, 4 + header, 6 + header]


async def test_the_styles_of_the_widget_behind_it_hold() -> None:
    async with Page().run_test() as pilot:
        table = pilot.app.query_one(HomeTable)
        table.show_rows((Row("1", ("a", "b"), ((0, "a"), (0, "b"))),))
        await pilot.pause(0.1)
        assert table.get_component_styles("datatable--header").background.a
