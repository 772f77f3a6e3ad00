"""Aids of a condition: a chat that gets the code that the person has seen, and a gist to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from examples import at_sizes
from screens.flows.test_study import joined, until, working
from screens.study_driving import StudyDriver, taking
from scripted_endpoint import ScriptedModel
from study_folders import Machine

from gistpoint.core.assist.help import HelpGist
from gistpoint.core.attempts.events import AssistInserted
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, Usage
from gistpoint.core.study.steps import ReadyStep
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.studies.help_gists import write_help

CODE = "def discount(price, percent):\n    return price - price * percent // 100\n"
SAID = f"Perhaps [red]this[/]:\n\n```python\n{CODE}```\nI am not sure."


def condition(**given: Any) -> dict[str, Any]:
    return {"condition": [{"id": "helped", "words": "with help", **given}]}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.at(tmp_path / "home")


def replies(*texts: str) -> ScriptedModel:
    made = [
        ChatReply(ChatMessage("assistant", text), "stop", Usage(30, 10, cost_usd=0.01), "m-1")
        for text in texts
    ]
    return ScriptedModel([*made, ChatFailure(ChatProblem.TIMED_OUT, "late")])


async def asked(driver: StudyDriver, question: str) -> None:
    await driver.press("alt+9")
    await driver.until(lambda: driver.app.focused is not None and driver.app.focused.id == "assist-line")
    await driver.type(question)
    await driver.press("enter")


@pytest.mark.parametrize("size", at_sizes((80, 24), (160, 48)))
async def test_the_chat_answers_fails_and_gives_code(
    machine: Machine, tmp_path: Path, size: tuple[int, int]
) -> None:
    chat = {"model": "m", "messages": 3}
    root = joined(machine, tmp_path / "study", condition(assistance="chat", chat=chat))
    until(machine, root, ReadyStep)
    model = replies(SAID)
    async with taking(machine, root, size=size, models={"m": model}) as driver:
        await driver.until_page("ReadyPage")
        await working(driver)
        await asked(driver, "what is wrong?")
        await driver.until(lambda: "I am not sure." in driver.text())
        shown = driver.text()
        assert "[red]this[/]" in shown  # drawn literally
        assert "2 of 3 messages left" in shown
        assert "The model sees: brief, 0 answers" in shown
        await asked(driver, "and now?")
        await driver.until(lambda: "did not answer (timed out)" in driver.text())
        editor = driver.solve.editor
        if not editor.buffer:
            editor.open("shop/prices.py::discount")
        await asked(driver, "sure?")
        await driver.press("alt+i")
        await driver.until(lambda: CODE in editor.code)
        await driver.press("ctrl+l")
        await driver.until(lambda: driver.page != "SolveScreen")
    (journal,) = root.glob(f"attempts/*/{JOURNAL}")
    events = read_journal(journal).events
    assert [event.type for event in events if event.type.startswith("assist")].count("assist_asked") == 3
    inserted = [event.data for event in events if isinstance(event.data, AssistInserted)]
    assert [(one.exchange, one.characters) for one in inserted] == [(1, len(CODE))]
    assert {"view"} <= {event.type for event in events}
    assert "assist" in {getattr(event.data, "pane", "") for event in events}
    assert not [found for found in audit(machine.open(root)) if not found.note]
    assert len(model.asked) == 3


async def test_a_gist_is_shown_beside_a_repair_and_named_in_the_header(
    machine: Machine, tmp_path: Path
) -> None:
    root = joined(machine, tmp_path / "study", condition(gist_help="first_failing"))
    step = until(machine, root, ReadyStep)
    assert isinstance(step, ReadyStep)
    gist = HelpGist("def test_total():\n    assert total() == 3\n")
    write_help(root, step.assignment.task, gist)
    async with taking(machine, root) as driver:
        await driver.until_page("ReadyPage")
        await working(driver)
        assert "assert total() == 3" not in driver.text()
        await driver.press("f11")
        await driver.until(lambda: "assert total() == 3" in driver.text())
        await driver.press("ctrl+l")
        await driver.until(lambda: driver.page != "SolveScreen")
        await driver.until(lambda: list(machine.open(root).attempts()))  # a thread publishes it
    assert not [found for found in audit(machine.open(root)) if not found.note]
    write_help(root, step.assignment.task, HelpGist("pass\n"))
    assert [found.name for found in audit(machine.open(root)) if not found.note] == ["help_differs"]
