"""A gist with attempts under several settings: the one that the app continues, and the text of the brief."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import build_services
from fakes import FakeClock
from gist_tasks import FakeEntrypoints, build_gist_task
from screens.driving import driving

GIVEN: dict[str, Any] = {"steps": 7, "strategy": "reading"}
OTHERS: dict[str, Any] = {"steps": 9}


@pytest.mark.parametrize("given", [GIVEN, OTHERS, None])
async def test_what_is_gone_on_with_has_the_settings_given_and_without_any_it_is_asked(
    tmp_path: Path, given: dict[str, Any] | None
) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock, entrypoints=FakeEntrypoints())
    task = build_gist_task(services.locations.tasks)
    held = replace(services, gist_settings={task.id: GIVEN}).start(task)
    begun = held.attempt.state.attempt_id
    held.close()
    if given is not None:
        services = replace(services, gist_settings={task.id: given})
    async with driving(services, clock, open=task.id) as driver:
        if given is not OTHERS:
            await driver.until_screen("PickDialog")
            assert "Resume the attempt" in driver.text()
            await driver.press("enter")
        await driver.until_screen("GistScreen")
        assert (driver.state.attempt_id == begun) is (given is not OTHERS)
        steps = driver.state.budgets.tool_uses
        assert steps == (9 if given is OTHERS else 7)
        assert f"You have {steps} steps" in driver.screen.query_one("#brief-view").text  # type: ignore[attr-defined]
