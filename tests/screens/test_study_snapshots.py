"""Pictures of every page of a study in a small terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from screens.driving import SMALL
from screens.flows.test_study import joined, until, working
from screens.settling import text_of
from screens.study_driving import COMMAND, StudyDriver, app_of
from scripted_endpoint import ScriptedModel
from small_study import CODE, FORMS, do, opened, participation, study_at
from study_folders import Machine
from textual.pilot import Pilot
from textual.screen import Screen

from gistpoint.core.assist.help import HelpGist
from gistpoint.core.chat import ChatMessage, ChatReply, Usage
from gistpoint.core.diffs import compute
from gistpoint.core.study.data import MergeDecision
from gistpoint.core.study.declaration import Completion, Feedback, Privacy, Texts
from gistpoint.core.study.ledger import Assignment
from gistpoint.core.study.progress import Pace, PeopleProgress, PersonWaited, StudyProgress, TaskCoverage
from gistpoint.core.study.steps import (
    BetweenStep,
    ConsentStep,
    DoneStep,
    FormStep,
    ReadyStep,
    SittingLimit,
    SittingOverStep,
)
from gistpoint.sessions.studies.drafts import FormDraft, FormDrafts
from gistpoint.sessions.studies.help_gists import write_help
from gistpoint.sessions.studies.monitoring import Alert, MonitoredStudy
from gistpoint.tui import study_words as words
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.screens.study.form import FormPage
from gistpoint.tui.screens.study.pages import (
    BetweenPage,
    BreakPage,
    ConsentPage,
    LastPage,
    ReadyPage,
    RulesPage,
    WithdrawDialog,
)
from gistpoint.tui.screens.study.progress import ProgressScreen
from gistpoint.tui.screens.study.reading import BlindReadingScreen, MergeAnswer, ShownChange

Compare = Callable[..., bool]
TEXTS = Texts(
    welcome="Welcome.",
    consent="You will be asked to repair small Python programs.\n\nIt takes two hours.",
    consent_items=(
        "[required] I take part of my own free will and can stop at any time",
        "My attempts may be published without my code name",
        "[required] I will not use AI assistants or the internet",
    ),
    rules="Allowed: this program, paper.\nNot allowed: AI, the internet, other editors.",
)
PRIVACY = Privacy(contact="the lab", controller="The lab, Example University", retention_days=365)
COMPLETION = Completion(code="C1ABC2", url="https://example.org/done?code={code}")
BETWEEN = BetweenStep(Assignment("a", CODE, "t", "few", 1), "x", 1, 4, Feedback.NONE, break_offered=True)


def form_page(machine: Machine, form: FormStep, draft: Mapping[str, Any]) -> FormPage:
    drafts = FormDrafts(machine.locations.data, "s", CODE)
    drafts.write(form.form.id, form.assignment, FormDraft(values=dict(draft)))
    return FormPage("After task 2 of 4", CODE, form, drafts, lambda: 0.0)


def after_task(machine: Machine, root: Path) -> FormStep:
    opened(
        machine.open(study_at(root, {"questionnaire": [form for form in FORMS if form["id"] != "before"]}))
    )
    part = participation(machine, root)
    while not isinstance(step := part.step(), FormStep):
        assert do(part, step)
    return step


def progress() -> tuple[MonitoredStudy, str]:
    tasks = (
        TaskCoverage("1a1ec2b7ab6b", "discovery", "sporvei", {"few": 4}, 1, 3, 860.0),
        TaskCoverage("d039549306f5", "remove", "sporvei", {"few": 5}, 0, 4, None),
    )
    people = PeopleProgress(enrolled=12, consented=11, done=9, withdrew=1, at_work=2)
    waited = tuple(PersonWaited(f"Q{number}", "enrolled", 0) for number in range(5))
    pace = Pace(9, 4.0, 2.25, 3.0, 0.5, 14.3)
    found = StudyProgress(people, tasks, 6, 3, not_begun=waited, pace=pace)
    alerts = (
        Alert("audit", "line_missing", "log/P03@aaaaaa.jsonl, line 7 does not follow the line before it."),
        Alert("flag", "fast", "2 attempts with the flag fast"),
    )
    return MonitoredStudy(found, alerts), "railway-2026   open since 2026-11-21"


PAGES: dict[str, tuple[Callable[[Machine, Path], Screen[Any]], tuple[str, ...]]] = {
    "consent": (lambda m, r: ConsentPage(
        "Study: Railway 2026", CODE, msgspec.structs.replace(study_of(m, r), texts=TEXTS, privacy=PRIVACY),
        changed=words.changed_words(ConsentStep(again=True, changes=("There are two tasks more.",))),
        save=lambda ticked: "",
    ), ("tab", "space", "end", "f9")),
    "rules": (lambda m, r: RulesPage("Study: Railway 2026: the rules", CODE, TEXTS.rules), ()),
    "form": (
        lambda m, r: form_page(m, after_task(m, r), {"aids_ai": [0], "ease": [3], "seen": [2], "how": "the rounding"}),
        ("end",),
    ),
    "ready": (
        lambda m, r: ReadyPage(
            "Training task 1 of 2: a repair",
            CODE,
            ["This task is for practice.", "You have 16 tool uses, 4 submissions and no time limit."],
            resume=False,
            may_skip=True,
        ),
        (),
    ),
    "resume": (
        lambda m, r: ReadyPage("Task 3 of 4: a gist", CODE, ["You left this task."], resume=True, may_skip=False),
        (),
    ),
    "between": (
        lambda m, r: BetweenPage(
            "Study: Railway 2026", CODE, words.between_words(BETWEEN, None), more=True, break_offered=True, look=True
        ),
        (),
    ),
    "break": (lambda m, r: BreakPage("Study: Railway 2026: a break", CODE), ()),
    "over": (
        lambda m, r: LastPage(
            "Study: Railway 2026",
            CODE,
            [words.over_words(SittingOverStep(SittingLimit.TASKS, 2, 4)), *words.goodbye_words(CODE, COMMAND)],
            may_withdraw=True,
        ),
        (),
    ),
    "done": (
        lambda m, r: LastPage(
            "Study: Railway 2026", CODE, words.done_words(CODE, "the lab", DoneStep(4, 4), COMPLETION),
            text="What it was about.",
        ),
        (),
    ),
    "withdraw": (lambda m, r: WithdrawDialog(), ("down",)),
    "progress": (
        lambda m, r: ProgressScreen(study_of(m, r), progress, "railway", hidden=True),
        (),
    ),
}  # fmt: skip


CHANGE = ShownChange(
    "[red]shop",
    [f"tests/test_shop.py::test_{name}" for name in ("total", "discount", "change", "receipt")],
    [
        compute(
            "def total(prices):\n    return sum(prices) - 1\n",
            "def total(prices):\n    return sum(prices)\n",
            old_path="shop.py",
            new_path="shop.py",
        )
    ],
)
PAGES["reading"] = (
    lambda m, r: BlindReadingScreen(
        [CHANGE, CHANGE], {0: MergeAnswer(MergeDecision.REJECT, "wrong sign")}, lambda *_: None
    ),
    ("left_square_bracket",),
)


def study_of(machine: Machine, root: Path) -> Any:
    return machine.open(study_at(root)).study


async def drawn(pilot: Pilot[Any]) -> None:
    """Wait until the screen stops changing."""
    for _ in range(50):
        before = text_of(pilot.app)
        await pilot.pause(0.05)
        if text_of(pilot.app) == before:
            break


@pytest.mark.parametrize("name", list(PAGES))
def test_page(tmp_path: Path, snap_compare: Compare, name: str) -> None:
    machine = Machine.at(tmp_path / "home")
    make, keys = PAGES[name]

    async def ready(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        await pilot.press(*keys)
        await drawn(pilot)

    app = OneScreenApp(
        machine.locations, "screens/study/study.tcss", lambda: make(machine, tmp_path / "study")
    )
    assert snap_compare(app, terminal_size=SMALL, run_before=ready)


AIDS = {
    "chat": {"assistance": "chat", "chat": {"model": "m", "messages": 3}},
    "gist_help": {"gist_help": "first_failing"},
}


@pytest.mark.parametrize("name", list(AIDS))
def test_aid(tmp_path: Path, snap_compare: Compare, name: str) -> None:
    machine = Machine.at(tmp_path / "home")
    root = joined(machine, tmp_path / "study", {"condition": [{"id": "helped", **AIDS[name]}]})
    step = until(machine, root, ReadyStep)
    assert isinstance(step, ReadyStep)
    write_help(root, step.assignment.task, HelpGist("def test_total():\n    assert total() == 3\n"))
    reply = "Perhaps [red]this[/]:\n\n```python\ndef discount(price):\n    return price\n```\nI am not sure."
    model = ScriptedModel(
        [ChatReply(ChatMessage("assistant", reply), "stop", Usage(30, 10, cost_usd=0.01), "m-1")]
    )
    app = app_of(machine, root, models={"m": model})

    async def ready(pilot: Pilot[Any]) -> None:
        driver = StudyDriver(app, pilot)
        await driver.until_page("ReadyPage")
        await working(driver)
        await driver.press("alt+9" if name == "chat" else "alt+8")
        if name == "chat":
            await driver.until(lambda: app.focused is not None and app.focused.id == "assist-line")
            await driver.type("what is wrong?")
            await driver.press("enter")
            await driver.until(lambda: "I am not sure." in driver.text())
        await driver.until(lambda: name == "chat" or "assert total() == 3" in driver.text())
        await drawn(pilot)
        driver.solve.stop()

    assert snap_compare(app, terminal_size=SMALL, run_before=ready)
    assert app._taken is not None
    app._taken.opened.close()
    assert not app.crashes
