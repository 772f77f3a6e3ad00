from __future__ import annotations

import random

import pytest
from screens.settling import until
from shown_screen import Stage
from textual import events

from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.writing_area import Pasted, WritingArea, WritingLine

LINES = "".join(f"line {number}\n" for number in range(60))


class Heard(Stage):
    def __init__(self, widget: WritingArea | WritingLine) -> None:
        super().__init__(widget)
        self.pasted: list[tuple[str, bool]] = []

    def on_pasted(self, message: Pasted) -> None:
        self.pasted.append((message.text, message.outside))


def areas() -> list[WritingArea]:
    return [FunctionEditor("x = 1\n"), WritingArea("x = 1\n", soft_wrap=True)]


@pytest.mark.parametrize("area", areas(), ids=["function", "wrapped"])
async def test_undo_and_redo_of_a_text_that_brings_a_scroll_bar(area: WritingArea) -> None:
    app = Heard(area)
    async with app.run_test(size=(40, 12)) as pilot:
        area.focus()
        app.post_message(events.Paste(LINES))
        await pilot.pause()
        assert area.text == LINES + "x = 1\n"
        for key, text in (("ctrl+z", "x = 1\n"), ("ctrl+y", LINES + "x = 1\n")) * 2:
            await pilot.press(key)
            assert area.text == text
            assert area.document.line_count > area.cursor_location[0]
        assert app.pasted == [(LINES, True)]


@pytest.mark.parametrize("kind", [FunctionEditor, WritingArea])
async def test_clicks_select_a_word_and_a_line(kind: type[WritingArea]) -> None:
    area = kind("def f():\n    return alpha + beta\n")
    async with Heard(area).run_test(size=(40, 12)) as pilot:
        column, row = area.content_region.x + area.gutter_width, area.content_region.y + 1
        for times, selected in ((2, "alpha"), (3, "return alpha + beta")):
            await pilot.click(offset=(column + 13, row), times=times)
            await pilot.pause()
            assert area.selected_text == selected
        await pilot.click(offset=(column + 2, row), times=2)
        assert area.selected_text == ""


@pytest.mark.parametrize("kind", [FunctionEditor, WritingArea, WritingLine])
async def test_what_is_typed_at_once_keeps_its_order(kind: type[WritingArea] | type[WritingLine]) -> None:
    area = kind()
    app = Heard(area)
    async with app.run_test(size=(40, 12)) as pilot:
        area.focus()
        await pilot.press("x", "1", "home")
        for event in (
            events.Key("end", None),
            events.Key("left", None),
            events.Paste("2"),
            events.Key("3", "3"),
        ):
            app.post_message(event)
        await pilot.pause()
        text = area.value if isinstance(area, WritingLine) else area.text
        assert text == "x231"


@pytest.mark.parametrize("area", areas(), ids=["function", "wrapped"])
async def test_redo_of_a_large_deletion(area: WritingArea) -> None:
    app = Heard(area)
    async with app.run_test(size=(40, 12)) as pilot:
        area.load_text(LINES)
        area.focus()
        area.select_all()
        await pilot.press("delete")
        await pilot.press("ctrl+z")
        assert area.text == LINES
        area.move_cursor(area.document.end)
        await pilot.press("ctrl+y")
        assert area.text == ""


@pytest.mark.parametrize("area", areas(), ids=["function", "wrapped"])
async def test_any_edits_are_undone_and_made_again(area: WritingArea) -> None:
    chance = random.Random(7)
    app = Heard(area)
    async with app.run_test(size=(40, 12)) as pilot:
        for _ in range(8):
            area.load_text("start\n")
            area.history.clear()
            for _ in range(chance.randrange(1, 8)):
                places = sorted(_place(area, chance) for _ in range(2))
                lines = "word " * chance.randrange(12) + "\n" * chance.choice([0, 0, 1, 20])
                area.replace(lines * chance.choice([0, 1, 1, 3]), *places)
                area.move_cursor(_place(area, chance))
            final = area.text
            steps = len(area.history.undo_stack)
            for _ in range(steps):
                area.undo()
                area.move_cursor(chance.choice([(0, 0), area.document.end]))
            assert area.text == "start\n"
            for _ in range(steps):
                area.redo()
                area.move_cursor(chance.choice([(0, 0), area.document.end]))
            assert area.text == final
            await pilot.pause()


async def test_the_line_that_is_written_stays_in_sight_when_there_is_less_room() -> None:
    area = WritingArea(LINES)
    app = Heard(area)
    async with app.run_test(size=(40, 12)) as pilot:
        area.focus()
        area.move_cursor(area.document.end)
        await pilot.pause()
        await pilot.resize_terminal(40, 6)
        # The area scrolls after its first drawing at the new size, which may happen after the pause.
        await until(pilot, lambda: area.scroll_y + area.size.height > area.cursor_location[0])


async def test_what_the_app_itself_has_copied_is_reported_when_it_is_pasted() -> None:
    area = WritingArea("one two")
    app = Heard(area)
    async with app.run_test() as pilot:
        area.focus()
        area.select_all()
        await pilot.press("ctrl+c", "end", "ctrl+v")
        assert area.text == "one twoone two"
        area.read_only = True
        await pilot.press("ctrl+v")
        assert app.pasted == [("one two", False)]


def _place(area: WritingArea, chance: random.Random) -> tuple[int, int]:
    row = chance.randrange(area.document.line_count)
    return row, chance.randint(0, len(area.document.get_line(row)))


async def test_a_line_reports_what_was_pasted_into_it() -> None:
    line = WritingLine()
    app = Heard(line)
    async with app.run_test() as pilot:
        line.focus()
        app.post_message(events.Paste("from outside"))
        await pilot.pause()
        app.copy_to_clipboard(" inside")
        await pilot.press("ctrl+v")
        assert line.value == "from outside inside"
        assert app.pasted == [("from outside", True), (" inside", False)]


@pytest.mark.parametrize("kind", [WritingArea, WritingLine])
async def test_pasting_can_be_switched_off(kind: type[WritingArea] | type[WritingLine]) -> None:
    field = kind()
    stage = Heard(field)
    async with stage.run_test() as pilot:
        field.may_paste = False
        field.focus()
        stage.copy_to_clipboard("gone")
        stage.post_message(events.Paste("gone"))
        await pilot.press("ctrl+v")
        await pilot.pause()
        assert "gone" not in (field.text if isinstance(field, WritingArea) else field.value)
        assert stage.pasted == []
