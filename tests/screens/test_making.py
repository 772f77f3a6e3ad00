"""Tasks are shown while a thread makes them; kept ones can be opened at once, and nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import CHECKS, build_services, build_task
from examples import at_sizes
from fakes import FakeRunner
from screens.settling import text_of, until

from gistpoint.core.errors import CancelledError, SourceError
from gistpoint.core.generation.progress import CampaignProgress, KeptTask, TrialProgress
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.tasks.model import Mode
from gistpoint.tui.campaign_app import CampaignApp
from gistpoint.tui.screens.dialogs.ask import MessageDialog
from gistpoint.tui.screens.making.screen import MakingScreen
from gistpoint.tui.screens.validate.screen import ValidateScreen

SIZES = at_sizes((80, 24), (160, 48))
WAIT_S = 120.0
NAME = "shop/prices.py::discount"
TRIAL = TrialProgress("1", NAME, 4, "lost_case", "too_few_tests_fail[red]\x1b", 312, 7.0)
REPORT = CampaignProgress(
    source="[red]shop==1.0",
    wanted=3,
    candidates=88,
    tried=12,
    dropped={"too_few_tests_fail": 5, "hangs": 2},
    corruptions={"gives_itself_away": 31, "good": 77},
    trials=(
        TRIAL,
        replace(TRIAL, worker="2", attempt=0, latest="", function="shop/stock/shelf.py::capacity"),
    ),
    tests_per_second=41.6,
    elapsed=75.2,
    remaining=130.0,
)


class ScriptedWork:
    """Work whose reports and end the test controls."""

    def __init__(self) -> None:
        self.run = RunContext()
        self.begun, self.ended = threading.Event(), threading.Event()
        self.error: Exception | None = None

    def __call__(self, run: RunContext) -> str:
        self.run = run
        self.begun.set()
        while not self.ended.wait(0.01):
            run.check()
        if self.error is not None:
            raise self.error
        return "made"


@pytest.fixture
def work() -> ScriptedWork:
    return ScriptedWork()


def app_of(work: Callable[[RunContext], str], root: Path) -> CampaignApp[str]:
    services = build_services(root, runner=FakeRunner(CHECKS))
    return CampaignApp(services.locations, work, lambda: services)


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize("size", SIZES)
async def test_the_work_is_shown_and_a_kept_task_opens_meanwhile(
    tmp_path: Path, work: ScriptedWork, size: tuple[int, int], colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    app = app_of(work, tmp_path)
    task = build_task(app.locations.tasks, Mode.DISCOVERY)
    async with app.run_test(size=size, notifications=True) as pilot:
        assert isinstance(app.screen, MakingScreen)
        await until(pilot, work.begun.is_set, WAIT_S)
        work.run.progress(RunProgress(step="reading the source"))
        work.run.progress(RunProgress("running", 3, 416, step="running the suite"))
        await until(
            pilot, lambda: "▸ running the suite" in text_of(app) and " 3/416, about " in text_of(app), WAIT_S
        )
        assert "✔ reading the source" in text_of(app)
        await pilot.press("enter")  # nothing is kept yet
        work.run.progress(REPORT)
        await until(pilot, lambda: "12 of 88 functions tried" in text_of(app), WAIT_S)
        shown = text_of(app)
        assert "[red]shop==1.0   0 of 3 kept" in shown  # shown literally, not as markup
        assert "elapsed 1:15 · remaining about 2:10 · 42 tests a second" in shown
        assert "try 4, lost case   0:07, 312 tests" in shown
        assert "█" in shown
        assert "shop/stock/shelf.py::capacity" in shown
        assert "functions: 5 too few tests fail, 2 hangs" in shown
        assert "corruptions: 31 gives itself away" in shown
        assert "77" not in shown  # they were not discarded
        assert "\x1b" not in shown
        work.run.note("kept: the first one")
        kept = KeptTask(task.id, (NAME, "shop/stock/shelf.py::capacity"), 4, 0.12)
        work.run.progress(replace(REPORT, kept=(kept,), remaining=None))
        await until(pilot, lambda: f"{task.id[:4]} " in text_of(app), WAIT_S)
        shown = text_of(app)
        assert "1 of 3 kept" in shown
        assert "0.12" in shown
        assert "kept: the first one" in shown
        assert "remaining not known yet" in shown
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ValidateScreen), WAIT_S)
        work.run.progress(replace(REPORT, kept=(kept,), tried=13))  # the work continues
        await pilot.press("q")
        await until(pilot, lambda: "13 of 88 functions tried" in text_of(app), WAIT_S)
        other = replace(kept, id="f" * 64, replaces=task.id)
        work.run.progress(replace(REPORT, source="second==2", kept=(other,)))
        await until(pilot, lambda: "second==2" in text_of(app) and "ffff " in text_of(app), WAIT_S)
        assert f"{task.id[:4]} " in text_of(app)
        await pilot.press("down", "enter")  # a task that no longer exists
        await until(pilot, lambda: isinstance(app.screen, MessageDialog), WAIT_S)
        await pilot.press("escape")
        work.ended.set()
        await until(pilot, lambda: "done after 1:15" in text_of(app), WAIT_S)
        assert "q leaves and prints the tables" in text_of(app)
        assert "try 4" not in text_of(app)
        await pilot.press("q")
    assert app.crashes == []
    assert not work.run.cancel.cancelled
    assert app.result() == "made"
    assert [report.source for report in (*app.view.shown.before, REPORT)] == [
        "[red]shop==1.0",
        "[red]shop==1.0",
    ]


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_leaving_stops_the_work_without_a_question(
    tmp_path: Path, work: ScriptedWork, key: str
) -> None:
    app = app_of(work, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, work.begun.is_set, WAIT_S)
        work.run.progress(REPORT)
        await until(pilot, lambda: "12 of 88" in text_of(app), WAIT_S)
        await pilot.press(key)
    assert app.crashes == []
    assert app.at_work
    with pytest.raises(CancelledError):
        app.result()
    assert not app.at_work


async def test_an_error_closes_the_screen_and_is_raised(tmp_path: Path, work: ScriptedWork) -> None:
    work.error = SourceError("There is no such library.")
    app = app_of(work, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        work.ended.set()
        await until(pilot, lambda: not app.is_running or app._exit, WAIT_S)
    assert app.crashes == []
    with pytest.raises(SourceError, match="no such library"):
        app.result()


async def test_work_that_keeps_nothing_to_open_closes_its_screen(tmp_path: Path, work: ScriptedWork) -> None:
    services = build_services(tmp_path, runner=FakeRunner(CHECKS))
    app = CampaignApp(services.locations, work, lambda: services, stays=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, work.begun.is_set, WAIT_S)
        work.run.progress(RunProgress(step="the last stage"))
        await until(pilot, lambda: "▸ the last stage" in text_of(app), WAIT_S)
        work.ended.set()
        await until(pilot, lambda: not app.is_running or app._exit, WAIT_S)
    assert app.crashes == []
    assert app.result() == "made"
    assert [stage.took is None for stage in app.view.shown.stages] == [False]


async def test_many_trials_and_notes_fit_the_screen(tmp_path: Path, work: ScriptedWork) -> None:
    app = app_of(work, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, work.begun.is_set, WAIT_S)
        trials = tuple(replace(TRIAL, worker=str(n), function=f"a.py::f{n}") for n in range(9))
        reasons = {f"reason_{n}_that_is_long": n for n in range(1, 40)}
        kept = tuple(KeptTask(f"{n:064}", (f"a.py::g{n}",), n) for n in range(30))
        for n in range(300):
            work.run.note(f"note {n}")
        work.run.progress(replace(REPORT, trials=trials, dropped=reasons, corruptions=reasons, kept=kept))
        await until(pilot, lambda: "and 5 more" in text_of(app), WAIT_S)
        shown = text_of(app)
        assert "39 reason 39 that is long" in shown
        assert "33 more reasons" in " ".join(shown.replace("│", " ").split())
        assert "0000 " in shown
        assert "note 299" in shown
        assert "note 298" not in shown
        assert "Leave" in shown.splitlines()[-1]
        await pilot.press("q")
    assert app.crashes == []
    work.ended.set()
    assert app.view.shown.notes[-1] == "note 299"
