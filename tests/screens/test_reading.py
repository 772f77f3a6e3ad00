from __future__ import annotations

from pathlib import Path

from builders import build_services, build_task
from screens.driving import LARGE, Driver, solving

from gistpoint.core.tasks.model import Mode
from gistpoint.tui.known import names_in
from gistpoint.tui.screens.solve.console import candidates
from gistpoint.tui.widgets.find_bar import FindBar


async def flushed(driver: Driver) -> None:
    driver.solve.controller.flush()
    await driver.pilot.pause(0.1)


async def test_what_was_shown_opens_again_free_of_charge(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.console("list_directory shop")
        await driver.console("read_file shop/prices.py")
        left = driver.state.remaining
        await driver.press("f3", "home", "down", "down", "down", "down", "enter")
        await driver.until(lambda: driver.solve.focused is driver.solve.code.view)
        assert driver.state.remaining == left
        await flushed(driver)
        await driver.until(lambda: driver.state.affordances.get("reopen") == 1)


async def test_a_definition_that_was_not_shown_is_read_for_its_price(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.console("list_file_functions shop/prices.py")
        await driver.console("read_function total shop/prices.py")
        await driver.press("f4", "down", "down")
        view = driver.solve.code.view
        view.go_to(view.cursor_line, view.lines[view.cursor_index].index("discount"))
        assert view.word_at_cursor() == "discount"
        await driver.press("enter")
        await driver.until(lambda: "(costs 1 tool use, leaves 13)" in driver.text())
        await driver.press("enter")
        await driver.until(lambda: "shop/prices.py::discount" in driver.state.knowledge.sources)
        assert driver.state.remaining.tool_uses == 13
        assert driver.solve.code.shown is not None
        assert driver.solve.code.shown.function == "shop/prices.py::discount"
        assert driver.solve.code.shown.first_line == 4


async def test_a_definition_in_a_file_that_was_read_is_free(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4")
        view = driver.solve.code.view
        view.go_to(21, 15)
        assert view.word_at_cursor() == "discount"
        await driver.press("enter")
        await driver.until(lambda: view.cursor_line == 4)
        assert driver.state.remaining.tool_uses == 15


async def test_a_name_that_nothing_has_shown_leads_nowhere(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.console("read_function total shop/prices.py")
        await driver.press("f4", "down", "down")
        view = driver.solve.code.view
        view.go_to(view.cursor_line, view.lines[view.cursor_index].index("discount"))
        await driver.press("enter")
        await driver.until(lambda: "No result has shown where discount is defined" in driver.text())
        assert driver.state.remaining.tool_uses == 15


def test_names_that_lead_somewhere() -> None:
    assert names_in("    metres = network.distance(a, key=len(b))  # see other") == [
        "network.distance",
        "a",
        "b",
    ]
    assert names_in("def total(self): return f'{x}' + self.items[0].price() if a == b else None") == [
        *("self", "self.items", "price", "a", "b")
    ]


async def test_a_name_of_the_line_is_offered_where_that_at_the_cursor_is_a_local_one(tmp_path: Path) -> None:
    files = {"shop/sales.py": "def half(price):\n    left = discount(price, len('ab'))\n    return left\n"}
    task = build_task(build_services(tmp_path).locations.tasks, extra_files=files)
    async with solving(tmp_path, size=LARGE, task=task) as driver:
        await driver.console("read_file shop/sales.py")
        await driver.console("list_file_functions shop/prices.py")
        await driver.press("f4")
        view = driver.solve.code.view
        await driver.until(lambda: "left = discount" in driver.text())
        view.go_to(2, 5)
        await driver.press("enter")
        await driver.until_screen("PickDialog")
        assert "This line names" in driver.text()
        assert "○ 1 tool use: shop/prices.py::discount" in driver.text()
        await driver.press("escape")
        await driver.console("read_function discount shop/prices.py")
        driver.solve.code.go_to("shop/sales.py")
        view.go_to(2)
        await driver.press("enter")
        await driver.until(lambda: driver.solve.code.shown.function == "shop/prices.py::discount")
        assert driver.state.remaining.tool_uses == 13


async def test_search_in_what_was_shown_is_free_and_counted(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4", "slash")
        await driver.until(lambda: driver.solve.query(FindBar))
        await driver.type("PRICE")
        await driver.until(lambda: "1 of 7" in driver.text())
        await driver.press("enter")
        first = driver.solve.code.view.cursor_line
        await driver.press("n", "n", "n", "n")
        assert driver.solve.code.view.cursor_line > first
        assert driver.state.remaining.tool_uses == 15
        await flushed(driver)
        await driver.until(lambda: driver.state.affordances.get("search"))


async def test_completion_knows_only_what_was_shown(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        tools, knowledge = driver.attempt.offered(), driver.state.knowledge
        assert candidates("read_file s", tools, knowledge) == []
        assert candidates("read_fu", tools, knowledge) == ["read_function "]
        await driver.console("list_directory shop")
        assert candidates("read_file shop/p", tools, driver.state.knowledge) == ["read_file shop/prices.py"]
        assert candidates("read_file shop/stock/", tools, driver.state.knowledge) == []
        await driver.press("f5")
        await driver.type("read_file shop/p")
        await driver.press("tab")
        assert driver.solve.console.line.value == "read_file shop/prices.py"
        await driver.press("enter")
        await driver.until(lambda: "shop/prices.py" in driver.state.knowledge.files)
        functions = candidates("read_function Basket.t", tools, driver.state.knowledge)
        assert functions == ["read_function Basket.total"]
        assert candidates("read_function Basket.total ", tools, driver.state.knowledge) == [
            "read_function Basket.total shop/prices.py"
        ]


async def test_a_text_that_is_no_longer_current_says_so(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4")
        driver.solve.code.view.go_to(13)
        await driver.press("e")
        await driver.until(lambda: driver.solve.editor.buffer == "shop/prices.py::Basket.__init__")
        await driver.press("f9", "shift+tab", "enter")
        await driver.until(lambda: driver.state.submissions and driver.state.pending is None)
        await driver.press("f4")
        assert "Basket.__init__ replaced since" in driver.text()
        await driver.press("full_stop")
        await driver.until(lambda: "Press it again" in driver.text())
        await driver.press("full_stop")
        await driver.until(lambda: "replaced since" not in driver.text())


async def test_the_line_of_keys_shows_enter_in_files_and_results(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        for pane, shown in (("f3", "Enter Open"), ("f7", "Enter Read"), ("f3", "Enter Open")):
            await driver.press(pane)
            await driver.until(lambda shown=shown: shown in driver.text().splitlines()[-1])
            await driver.console("list_directory shop")


async def test_a_suspect_is_marked_at_no_cost(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        left = driver.state.remaining
        await driver.press("f4", *["down"] * 5, "m")
        await driver.until(lambda: [s.name for s in driver.state.suspects] == ["shop/prices.py::discount"])
        await driver.until(lambda: "⚑" in driver.text())
        await driver.press("m")
        await driver.until(lambda: not driver.state.suspects)
        assert driver.state.remaining == left


async def test_in_remove_mode_only_the_target_can_be_edited(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4")
        driver.solve.code.view.go_to(13)
        await driver.press("e")
        await driver.until(lambda: "changed in this task: F6 opens it" in " ".join(driver.text().split()))
        assert driver.solve.editor.buffer == "shop/prices.py::discount"


async def test_lines_and_functions_are_gone_to_by_name(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4", "number_sign")
        await driver.until_screen("TextDialog")
        await driver.type("19")
        await driver.press("enter")
        await driver.until(lambda: driver.solve.code.view.cursor_line == 19)
        await driver.press("F")
        await driver.until_screen("PickDialog")
        await driver.type("add")
        await driver.press("enter")
        await driver.until(lambda: driver.solve.code.view.cursor_line == 15)
