from typing import ClassVar

from screens.settling import text_of, until
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Button, Input

from gistpoint.tui.widgets.key_bar import KeyBar


class ManyKeys(App[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"do('{key}')", f"Action {key}") for key in "abcdef"),
        Binding("f1", "help", "Help"),
    ]
    done = ""

    def compose(self) -> ComposeResult:
        yield KeyBar()

    def action_do(self, key: str) -> None:
        self.done += key


async def test_no_key_is_cut_and_all_can_be_reached_by_mouse() -> None:
    app = ManyKeys()
    async with app.run_test(size=(40, 5)) as pilot:
        await pilot.pause()
        line = text_of(app).splitlines()[-1]
        assert line == f" a Action a  b Action b {' ' * 6}› f1 Help"
        await pilot.click(KeyBar, offset=(line.index("›"), 0))
        assert text_of(app).splitlines()[-1].startswith(" c Action c  d Action d ")
        await pilot.click(KeyBar, offset=(2, 0))
        assert app.done == "c"
        for _ in range(2):
            await pilot.click(KeyBar, offset=(line.index("›"), 0))
        assert text_of(app).splitlines()[-1].startswith(" a Action a  b Action b ")
        await pilot.resize_terminal(100, 5)
        await until(pilot, lambda: "›" not in text_of(app))


class Writing(App[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "find", "Find"),
        Binding("ctrl+t", "try", "Try"),
    ]

    def compose(self) -> ComposeResult:
        yield Input()
        yield Button("Free")
        yield KeyBar()


async def test_a_key_that_a_field_takes_as_a_letter_is_not_offered() -> None:
    app = Writing()
    async with app.run_test(size=(40, 8)) as pilot:
        await until(pilot, lambda: "Try" in text_of(app))
        assert "Find" not in text_of(app)
        await pilot.press("tab")
        await until(pilot, lambda: "/ Find" in text_of(app))
