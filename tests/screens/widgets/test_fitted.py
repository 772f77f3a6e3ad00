"""A widget changes twice, with a layout in between, before it can report, as on a busy machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.app import App, ComposeResult
from textual.widget import Widget

from gistpoint.tui.tables import Column
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.table import Table


class Page(App[None]):
    CSS = "Plain, Table { height: auto; }"

    def compose(self) -> ComposeResult:
        yield Plain("")
        yield Table((Column("Key", str), Column("Mode", str)), id="table")


def lines(widget: Widget, number: int) -> None:
    if isinstance(widget, Plain):
        widget.update("\n".join(["text"] * number))
    elif isinstance(widget, Table):
        widget.show(range(number))


@pytest.mark.parametrize("kind", [Plain, Table])
async def test_a_layout_between_two_changes_is_not_the_last(kind: Callable[..., Widget]) -> None:
    async with Page().run_test() as pilot:
        widget = pilot.app.query_one(kind)
        heights = []
        for before, number in ((2, 5), (1, 4), (9, 6)):
            lines(widget, before)
            widget.refresh(layout=True)  # like styles on focus
            pilot.app.screen._refresh_layout()
            lines(widget, number)
            await pilot.pause(0.1)
            heights.append(widget.size.height)
        header = 1 if kind is Table else 0
        assert heights == [5 + header, 4 + header, 6 + header]


async def test_the_styles_of_the_widget_behind_it_hold() -> None:
    async with Page().run_test() as pilot:
        table = pilot.app.query_one(Table)
        table.show([1])
        await pilot.pause(0.1)
        assert table.get_component_styles("table--head").background.a
