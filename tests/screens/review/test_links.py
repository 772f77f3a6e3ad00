"""A step that started another run has a sign; Enter opens that run from the list of steps or the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from screens.review.reviewing import reviewing


def line(uuid: str, kind: str, content: Any, **more: Any) -> str:
    message = {
        "role": kind,
        "content": content,
        **({"id": uuid, "model": "m"} if kind == "assistant" else {}),
    }
    record = {"type": kind, "uuid": uuid, "sessionId": "s1", "parentUuid": None, "message": message,
              "timestamp": "2026-06-10T18:23:50Z", **more}  # fmt: skip
    return json.dumps(record)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session whose second step started a side agent; the agent's file is in its usual place."""
    use = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "find it"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "found"}
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join([
        line("u1", "user", "Fix the mean"), line("a1", "assistant", [use]),
        line("u2", "user", [result], toolUseResult={"agentId": "abc123", "status": "completed"}),
        line("a2", "assistant", [{"type": "text", "text": "Done"}]),
    ]) + "\n", encoding="utf-8")  # fmt: skip
    side = tmp_path / "s1" / "subagents" / "agent-abc123.jsonl"
    side.parent.mkdir(parents=True)
    content = [{"type": "text", "text": "words of the side agent"}]
    side.write_text(
        line("b1", "assistant", content, agentId="abc123", isSidechain=True) + "\n", encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("keys", [["enter"], ["tab", "enter"]], ids=["list", "page"])
async def test_enter_opens_the_run_that_a_step_started(session: Path, keys: list[str]) -> None:
    async with reviewing(session, size=(110, 30)) as driver:
        await driver.until_read(0)
        assert "agent-abc123.jsonl (Enter opens it)" not in driver.text()
        await driver.press("right_square_bracket")
        await driver.until_read(1)
        await driver.until(lambda: "Enter opens it" in driver.text())
        assert "↳" in driver.text()
        await driver.press(*keys)
        await driver.until(lambda: driver.review.run.name.endswith("agent-abc123.jsonl"))
        await driver.until(lambda: "words of the side agent" in driver.text())


async def test_enter_on_a_step_without_a_run_goes_to_its_text(session: Path) -> None:
    async with reviewing(session, size=(110, 30)) as driver:
        await driver.until_read(0)
        before = driver.app.focused
        await driver.press("enter")
        await driver.until(lambda: driver.app.focused is not before)
        assert driver.review.run.name == str(session)


async def test_enter_on_the_page_of_a_step_without_a_run_opens_none(session: Path) -> None:
    async with reviewing(session, size=(110, 30)) as driver:
        await driver.until_read(0)
        await driver.press("tab", "enter")
        await driver.until(lambda: "This step does not lead to another run." in driver.text())
        assert driver.review.run.name == str(session)


async def test_the_last_step_offers_what_the_whole_run_leads_to(session: Path) -> None:
    async with reviewing(session, size=(110, 30)) as driver:
        await driver.until_read(0)
        await driver.press("right_square_bracket", "right_square_bracket")
        await driver.until_read(2)
        await driver.press("tab", "enter")
        await driver.until(lambda: "This run leads to" in driver.text())
        await driver.press("enter")
        await driver.until(lambda: driver.review.run.name.endswith("agent-abc123.jsonl"))
