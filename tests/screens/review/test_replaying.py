"""Calls replayed while a run is viewed: badges in progress, differences, files, and stopping."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from builders import CHECKS, REPAIR, build_task
from fakes import FakeClock, FakeRunner
from screens.review.reviewing import reviewing

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.replay.replaying import Replay
from gistpoint.tui.screens.dialogs.ask import MessageDialog

WRONG = "def discount(price, percent):\n    return -1\n"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return build_task(tmp_path / "tasks")


@pytest.fixture
def journal(tmp_path: Path, task: Task) -> Path:
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS))
    opened = AttemptStore(tmp_path / "attempts", FakeClock(), "test").start(task, judge, Enrolment())
    opened.attempt.call("list_directory", {})
    opened.attempt.call("read_file", {"file_path": "shop/prices.py"})
    opened.attempt.call("submit_attempt", {"func_code": WRONG})
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    opened.close()
    lines = opened.journal.path.read_text().splitlines()
    events = [json.loads(line) for line in lines]
    for event in events:
        if event["type"] == "tool_result" and event["data"]["call_id"] == "call-2":
            event["data"]["text"] = "Nothing of the kind."
    opened.journal.path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return opened.journal.path


def replaying_on(task: Task, runner: FakeRunner):
    return lambda document: Replay(document, RepairJudge(task, read_answer(task), runner), FakeClock())


async def test_badges_appear_and_the_step_that_differs_shows_how(journal: Path, task: Task) -> None:
    async with reviewing(journal, size=(140, 40), replaying=replaying_on(task, FakeRunner(CHECKS))) as driver:
        await driver.until_read(0)
        await driver.press("a")
        await driver.until(lambda: driver.review.run.replay.begun and not driver.review.run.replay.running)
        await driver.until(lambda: len(driver.review.steps.badges) == 4)
        assert sorted(driver.review.steps.badges.values()) == ["=", "=", "=", "≠"]
        await driver.until(lambda: "Outcome then: not solved" in driver.text())
        assert "3 same, 1 differs" in driver.text()
        step = next(step for step, badge in driver.review.steps.badges.items() if badge == "≠")
        await driver.press("number_sign", *str(step + 1), "enter")
        await driver.until_read(step)
        assert "made again: differs" in driver.text()
        await driver.press("A")
        await driver.until(lambda: "-Nothing of the kind." in driver.text())


async def test_the_repository_is_that_of_the_replay(journal: Path, task: Task) -> None:
    async with reviewing(journal, size=(140, 40), replaying=replaying_on(task, FakeRunner(CHECKS))) as driver:
        await driver.until_read(0)
        await driver.press("a")
        await driver.until(lambda: len(driver.review.steps.badges) == 4)
        last = max(driver.review.steps.badges)
        await driver.press("number_sign", *str(last + 1), "enter")
        await driver.until_read(last)
        await driver.press("f7")
        await driver.until(lambda: "◉ executed again" in driver.text())
        assert "shop/prices.py" in driver.text()


async def test_a_replay_stops_at_once_and_keeps_what_it_found(journal: Path, task: Task) -> None:
    gate = threading.Event()
    async with reviewing(journal, replaying=replaying_on(task, FakeRunner(CHECKS, gate=gate))) as driver:
        await driver.until_read(0)
        await driver.press("a")
        await driver.until(lambda: len(driver.review.steps.badges) == 2)
        await driver.press("a")
        await driver.until(lambda: "Stopped." in driver.text())
        assert len(driver.review.steps.badges) == 2


async def test_why_nothing_can_be_made_again_is_shown(journal: Path) -> None:
    def nowhere(document: object) -> Replay:
        raise UserError("The task is not here.", hint="Get it.")

    async with reviewing(journal, replaying=nowhere) as driver:
        await driver.until_read(0)
        await driver.press("a")
        await driver.until_on(MessageDialog)
        assert "The task is not here." in driver.text()


async def test_without_a_way_the_command_is_named(journal: Path) -> None:
    async with reviewing(journal) as driver:
        await driver.until_read(0)
        await driver.press("a")
        assert "use `gistpoint replay`" in driver.text()
