"""The find bar searches during typing; the frame between two panes is moved by dragging or with keys."""

from __future__ import annotations

from pathlib import Path

from screens.settling import send_keys, text_of, until
from textual.app import App, ComposeResult

from gistpoint import tui
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.drafts import UnsentTexts
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.find_bar import FindBar, find_in
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.splitter import Splits

LINES = [f"line {n}" + (" of gold" if n % 10 == 5 else "") for n in range(1, 101)]


class BarScreen(BaseScreen[None]):
    """A screen that remembers the text typed into its bar."""

    HELP_PAGE = "home"


class TwoPanes(App[None]):
    """Two panes with a bar below, and a key that starts a search."""

    drafts = UnsentTexts(Path("no-such-folder"), print)

    def get_default_screen(self) -> BarScreen:
        return BarScreen()

    CSS_PATH = Path(tui.__file__).with_name("base.tcss")
    CSS = "#left { width: 30; } #right { width: 1fr; }"
    BINDINGS = [("slash", "find")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        yield Splits(framed(CodeView(id="left"), "left"), framed(CodeView(id="right"), "right"))
        yield KeyBar()

    def on_mount(self) -> None:
        for view in self.query(CodeView):
            view.load("\n".join(LINES), language=None)
        self.query_one("#left").focus()

    def action_find(self) -> None:
        find_in(self.query_one("#left", CodeView))


async def test_a_text_is_searched_as_one_types_and_stays_in_sight() -> None:
    app = TwoPanes()
    async with app.run_test(size=(80, 24)) as pilot:
        view = app.query_one("#left", CodeView)
        view.go_to(12)
        await pilot.press("slash")
        await until(pilot, lambda: app.query(FindBar) and app.focused is app.query_one(FindBar).words)
        send_keys(app, "of g")
        await until(pilot, lambda: "2 of 10" in text_of(app))
        assert (view.cursor_line, view.scroll_marks()) == (15, list(range(4, 100, 10)))
        assert "◆" in text_of(app)
        await pilot.press("down")
        await until(pilot, lambda: "3 of 10" in text_of(app))
        await pilot.press("enter")
        assert app.focused is view
        await pilot.press("n")
        await until(pilot, lambda: "4 of 10" in text_of(app) and view.cursor_line == 35)
        await pilot.press("escape")
        await until(pilot, lambda: not app.query_one(FindBar).display)
        assert (view.pattern, view.cursor_line) == ("", 35)
        await pilot.press("slash")
        send_keys(app, "silver")
        await until(pilot, lambda: "not found" in text_of(app))
        await pilot.press("escape")
        assert (app.focused, view.cursor_line) == (view, 35)


async def test_a_frame_is_dragged_or_moved_with_keys_and_stays_where_it_was_put() -> None:
    app = TwoPanes()
    async with app.run_test(size=(80, 24)) as pilot:
        left, right = app.query_one("#left"), app.query_one("#right")
        splits = app.query_one(Splits)
        assert (left.region.width, right.region.width) == (30, 50)
        await pilot.mouse_down(left, offset=(29, 5))
        await pilot.hover(splits, offset=(39, 5))
        await pilot.mouse_up(splits, offset=(39, 5))
        await until(pilot, lambda: (left.region.width, right.region.width) == (40, 40))
        await pilot.press("left_curly_bracket")
        await until(pilot, lambda: left.region.width == 36)
        right.focus()
        await pilot.press("right_curly_bracket")
        await until(pilot, lambda: left.region.width == 32)
        right.display = False
        splits.fit()
        left.styles.clear_rule("width")
        right.display = True
        splits.fit()
        await until(pilot, lambda: left.region.width == 32)
