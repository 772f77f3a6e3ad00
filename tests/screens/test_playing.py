from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from builders import REPAIR, build_services, build_task
from fakes import FakeClock
from screens.driving import LARGE, Driver, driving

from gistpoint.core.tasks.model import Mode
from gistpoint.tui.app import GistpointApp
from gistpoint.tui.screens.dialogs.cover import GRACE_S

PATH = "shop/prices.py"
STEPS = [
    {"kind": "tool_call", "think_s": 1, "tool": "read_file", "arguments": {"file_path": PATH}},
    {"kind": "note", "think_s": 1, "text": "plus instead of minus"},
    {"kind": "suspect", "think_s": 1, "function": f"{PATH}::discount"},
    {
        "kind": "tool_call",
        "think_s": 1,
        "tool": "replace_function",
        "arguments": {"func_code": REPAIR, "func_name": "discount", "file_path": PATH},
    },
]


async def test_a_recorded_attempt_is_played_to_its_end(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    task = build_task(services.locations.tasks, Mode.DISCOVERY)
    app = GistpointApp(services, open=task.id, play=(STEPS, 1000.0))
    async with app.run_test(size=LARGE) as pilot:
        driver = Driver(app, pilot, services, clock)
        await driver.until_screen("SummaryScreen")
        assert "✔ solved" in driver.text()
        assert "2 used of 16" in driver.text()
    assert not app.crashes


async def test_consent_is_asked_in_a_dialog_and_not_by_default(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    async with driving(services, clock, size=LARGE) as driver:
        for keys, expected in ((("enter",), False), (("shift+tab", "enter"), True)):
            answers: list[bool] = []
            thread = threading.Thread(
                target=lambda a=answers: a.append(services.consent.ask("No user namespaces."))
            )
            thread.start()
            await driver.until_screen("ConfirmDialog")
            assert "No user namespaces." in driver.text()
            await asyncio.sleep(GRACE_S)  # keys pending for another screen are not an answer
            await driver.press(*keys)
            await driver.until(lambda a=answers: a)
            thread.join()
            assert answers == [expected]
