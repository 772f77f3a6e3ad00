"""Lines that name a place lead to it, free of charge if it was shown before, otherwise at a stated price."""

from __future__ import annotations

from pathlib import Path

from screens.driving import LARGE, SMALL, Driver, solving

from gistpoint.core.attempts.state import AttemptCall
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.declaration import Revealed
from gistpoint.tui.places import NamedPlace, places_in_answer, places_in_text
from gistpoint.tui.widgets.knowledge_tree import KnowledgeTree

TRACEBACK = """Traceback (most recent call last):
  File "shop/prices.py", line 6, in discount
    return 1 / 0
shop/stock/shelf.py:3: in room
E   ZeroDivisionError: 10:30 is no place
FAILED tests/test_prices.py::TestAll::test_total[a-1] - x
see https://example.org:80/a.py and /etc/passwd.py:1"""


def test_tracebacks_and_names_of_tests_name_places() -> None:
    assert places_in_text(TRACEBACK) == {
        1: NamedPlace("shop/prices.py", 6),
        3: NamedPlace("shop/stock/shelf.py", 3),
        5: NamedPlace("tests/test_prices.py", qualname="TestAll.test_total"),
    }


def test_the_name_of_a_function_leads_to_it_and_not_to_its_class() -> None:
    text = """    sporvei/seats.py::SeatMap.find_block
write shop/å.py::Gård.rom.<locals>.dør#2. Then submit (shop/board.py::show)."""
    assert places_in_text(text) == {
        0: NamedPlace("sporvei/seats.py", qualname="SeatMap.find_block"),
        1: NamedPlace("shop/å.py", qualname="Gård.rom.<locals>.dør#2"),
    }


def test_a_hit_leads_to_its_line_whatever_numbers_its_code_contains() -> None:
    text = """2 matching lines in 1 file.
shop/board.py
    45: def test_board() -> None:
    46-     assert show(board) == ["Havn", "06:33  L1  North"]
    47: def test_empty() -> None:"""
    found = AttemptCall(
        "1", 1, "search_code", {}, text, revealed=Revealed(entries=(("shop/board.py", "file"),))
    )
    assert places_in_answer(found) == {
        1: NamedPlace("shop/board.py"),
        2: NamedPlace("shop/board.py", 45),
        4: NamedPlace("shop/board.py", 47),
    }


async def searched(driver: Driver, pattern: str) -> None:
    await driver.press("S")
    await driver.until(lambda: "Search the repository: costs 1 tool use" in driver.text())
    await driver.type(pattern)
    await driver.press("enter")
    await driver.until(lambda: driver.solve.focused is driver.solve.results.answer)


async def test_a_hit_costs_nothing_before_a_second_enter_and_nothing_once_it_was_shown(
    tmp_path: Path,
) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=SMALL) as driver:
        await searched(driver, "def total")
        assert driver.state.calls[-1].arguments == {"pattern": "def total"}, "no quotes are needed"
        assert "→" in driver.text()
        await driver.press("enter")
        await driver.until(lambda: "Enter again opens it (costs 1 tool use" in driver.text())
        assert driver.state.remaining.tool_uses == 15
        await driver.press("f8")
        assert "again opens it" not in driver.text(), "there Enter is a new line"
        await driver.press("f7", "enter", "enter")
        await driver.until(lambda: "again opens it" in driver.text())
        assert driver.state.remaining.tool_uses == 15
        await driver.press("enter")
        await driver.until(
            lambda: driver.solve.code.is_attached and driver.solve.focused is driver.solve.code.view
        )
        assert (driver.solve.code.view.cursor_line, driver.state.remaining.tool_uses) == (19, 14)
        driver.solve.code.view.go_to(1)
        await driver.press("f7", "up", "enter", "enter")
        await driver.until(lambda: driver.solve.focused is driver.solve.code.view)
        assert (driver.solve.code.view.cursor_line, driver.state.remaining.tool_uses) == (19, 14)


async def test_a_click_selects_a_hit_and_further_ones_show_its_price_and_pay_it(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=SMALL) as driver:
        await searched(driver, "def total")
        answer = driver.solve.results.answer
        hit = answer.cursor_index
        answer.go_to(answer.first_line)
        await driver.pilot.click(answer, offset=(8, hit))
        assert answer.cursor_index == hit
        assert "Enter Open" in driver.text()
        assert "again opens it" not in driver.text()
        await driver.pilot.click(answer, offset=(8, hit))
        await driver.until(lambda: "Enter again opens it (costs 1 tool use" in driver.text())
        assert driver.state.remaining.tool_uses == 15
        await driver.pilot.click(answer, offset=(8, hit))
        await driver.until(lambda: driver.state.remaining.tool_uses == 14)


async def test_the_key_of_the_search_is_a_letter_where_letters_are_typed(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        await driver.press("f8", "S")
        assert driver.solve.notes.text == "S"
        await driver.press("f5", "S")
        assert driver.solve.console.line.value == "S"
        await driver.press("escape", "f2", "S", "escape")
        assert driver.solve.focused is driver.solve.query_one("#brief-view"), "Esc leads back"
        assert driver.state.calls == ()


async def test_the_lines_of_the_brief_lead_to_its_tests(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        view = driver.solve.query_one("#brief-view")
        line = next(line for line, place in view.places.items() if place.qualname == "test_total")  # type: ignore[attr-defined]
        view.go_to(line + 1)  # type: ignore[attr-defined]
        await driver.press("enter", "enter")
        await driver.until(lambda: "tests/test_prices.py::test_total" in driver.state.knowledge.sources)


async def test_a_single_click_spends_nothing(tmp_path: Path) -> None:
    async with solving(tmp_path, size=LARGE) as driver:
        tree = driver.solve.query_one(KnowledgeTree)
        await driver.pilot.click(tree, offset=(5, 0))
        await driver.until(lambda: "costs 1 tool use" in driver.text())
        assert driver.state.calls == ()
        await driver.pilot.click(tree, offset=(5, 0))
        await driver.until(lambda: "" in driver.state.knowledge.listed)
