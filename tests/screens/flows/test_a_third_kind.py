"""A kind of task from another package on the screens: started at home, submitted, summarised and reopened."""

from __future__ import annotations

from pathlib import Path

import pytest
from assertion_kind import RIGHT, AssertionKind, assertion_kind, assertion_task, holds
from builders import build_services
from fakes import FakeClock, FakeRunner
from screens.driving import LARGE, driving
from screens.validate.validating import validating

from gistpoint.core.kinds.kind import TaskKind
from gistpoint.tui.screens.dialogs.ask import MessageDialog

__all__ = ["assertion_kind"]
pytestmark = pytest.mark.usefixtures("assertion_kind")


async def test_it_is_attempted_from_home_to_its_summary_and_opened_again(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock, runner=FakeRunner({"holds": holds}))
    assertion_task(services.locations.tasks)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "assertion" in driver.text())
        await driver.press("enter")
        await driver.until_screen("SolveScreen")
        await driver.until(lambda: driver.solve.is_mounted and driver.solve.focused is not None)
        assert "Make this true" in driver.text()
        await driver.press("f6")
        assert driver.solve.editor.code == "def total(price):\n    return price\n"
        await driver.press("down", "end")
        await driver.type(" + 2")
        await driver.press("f9")
        await driver.until_screen("ConfirmDialog")
        assert "shop/prices.py" in driver.text()
        await driver.press("enter")
        await driver.until(lambda: len(driver.state.submissions) == 1 and driver.state.pending is None)
        await driver.press("f7")
        await driver.until(lambda: "The assertion does not hold." in driver.text())
        await driver.press("right_square_bracket")
        await driver.until(lambda: "return price + 2" in driver.text())
        await driver.press("f6", "backspace")
        await driver.type("1")
        assert driver.solve.editor.code == RIGHT
        await driver.press("f9")
        await driver.until_screen("ConfirmDialog")
        assert "THE LAST" in driver.text()
        await driver.press("tab", "enter")
        await driver.until_screen("SummaryScreen")
        assert "✔ solved" in driver.text().splitlines()[0]
        assert "score 1.000" in driver.text().splitlines()[0]
        await driver.press("right_square_bracket")
        await driver.until(lambda: "which is correct" in driver.text())
        await driver.press("escape")
        await driver.until_screen("HomeScreen")
        await driver.until(lambda: "✔ solved" in driver.text())
        await driver.press("tab", "enter")
        await driver.until_screen("SummaryScreen")
        assert "✔ solved" in driver.text().splitlines()[0]
        assert "score 1.000" in driver.text().splitlines()[0]


async def test_without_a_text_to_begin_with_or_an_answer_to_compare_the_editor_holds_the_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AssertionKind, "start", TaskKind.start)
    monkeypatch.setattr(AssertionKind, "expected", TaskKind.expected)
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock, runner=FakeRunner({"holds": holds}))
    task = assertion_task(services.locations.tasks)
    async with driving(services, clock, open=task.id, size=LARGE) as driver:
        await driver.until_screen("SolveScreen")
        await driver.until(lambda: driver.solve.is_mounted and driver.solve.focused is not None)
        await driver.press("f6")
        assert (driver.solve.editor.buffer, driver.solve.editor.code) == ("submission", "")
        await driver.type(RIGHT)
        await driver.press("f9")
        await driver.until_screen("ConfirmDialog")
        await driver.press("enter")
        await driver.until_screen("SummaryScreen")
        await driver.press("right_square_bracket")
        await driver.until(lambda: "return price + 1" in driver.text())


async def test_it_is_validated_by_its_brief_and_its_check(tmp_path: Path) -> None:
    services = build_services(tmp_path)
    task = assertion_task(services.locations.tasks)
    async with validating(services, [task], runner=FakeRunner({"holds": holds}), size=LARGE) as driver:
        await driver.until(lambda: "assertion  shop 1.0" in driver.text())
        assert "F4" not in driver.text()
        await driver.page("f3", "Make this true")
        await driver.press("f8")
        await driver.idle()
        assert driver.screen.pages.current == "brief", "there is neither a fix nor a gist to show"
        await driver.press("exclamation_mark")
        await driver.idle()
        await driver.page("f6", "it does not hold at the start")
        await driver.press("f9")
        await driver.until(lambda: "there is no fix to try" in driver.text())
        await driver.press("r")
        await driver.until(lambda: isinstance(driver.app.screen, MessageDialog))
        assert "Trials are not available for tasks in the mode 'assertion'." in driver.text()
        await driver.press("escape", "1")
        assert driver.said.verdict is not None
        assert (driver.said.check is not None, driver.said.trials) == (True, ())
