"""No pane, dialog, page or prompt that a solver sees in an attempt that counts names the library."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from builders import CHECKS, build_services, build_task
from examples import at_sizes
from fakes import FakeClock, FakeRunner
from gist_tasks import build_gist_task
from mcp_client import Case
from screens.driving import LARGE, SMALL, Driver, driving, solving
from screens.settling import text_of, until
from screens.study_driving import taking
from small_study import opened, study_at
from study_folders import Machine

from gistpoint.core.attempts.identity import Role
from gistpoint.core.kinds.registry import kind_of, render_brief
from gistpoint.core.kinds.titles import author_title, solver_title
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tasks.names import word_name
from gistpoint.tui import cli
from gistpoint.tui.commands.participant import services_of
from gistpoint.tui.home_rows import remember_tour
from gistpoint.tui.mcp.server import AttemptServer
from gistpoint.tui.participant_app import ParticipantApp
from gistpoint.tui.screens.solve.screen import SolveScreen

MARK = "Zanzibar"
"""The library of these tasks, a name that is neither in the tree nor in the failing tests."""
KEYS = ("f2", "f3", "f4", "f5", "f6", "f7", "f8", "f1", "escape", "ctrl+p", "escape", "ctrl+g", "escape")
"""Keys that show each pane, the help, the palette and the dialog for giving up."""


async def walked(driver: Driver) -> str:
    """Return all visible text while the panes and dialogs of an attempt are opened one by one."""
    seen = [driver.text()]
    for key in KEYS:
        await driver.press(key)
        seen.append(driver.text())
    return "\n".join(seen)


@pytest.mark.parametrize("size", at_sizes(SMALL, LARGE))
@pytest.mark.parametrize("mode", [Mode.REMOVE, Mode.DISCOVERY])
async def test_no_pane_of_an_attempt_that_counts_names_the_library(
    mode: Mode, size: tuple[int, int], tmp_path: Path
) -> None:
    services = build_services(tmp_path, clock=FakeClock())
    task = build_task(services.locations.tasks, mode, library=MARK)
    async with solving(tmp_path, mode, task=task, size=size) as driver:
        seen = await walked(driver)
        assert MARK not in seen
        if size == LARGE:
            assert solver_title(task) in seen


async def test_an_attempt_that_cannot_count_shows_its_authors_title(tmp_path: Path) -> None:
    services = build_services(tmp_path, clock=FakeClock())
    task = build_task(services.locations.tasks, Mode.DISCOVERY, library=MARK)
    async with solving(tmp_path, Mode.DISCOVERY, task=task, size=LARGE, role=Role.QA) as driver:
        assert author_title(task) in driver.text()


async def test_the_question_which_attempt_is_meant_hides_the_library(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock, runner=FakeRunner(CHECKS))
    task = build_task(services.locations.tasks, Mode.DISCOVERY, library=MARK)
    services.start(task).close()
    async with driving(services, clock, open=task.id, size=LARGE) as driver:
        await driver.until_screen("PickDialog")
        assert f"{solver_title(task)}: an attempt has not ended" in driver.text()
        assert MARK not in driver.text()


async def test_home_names_the_library_and_finds_a_task_by_its_two_words(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    task = build_task(services.locations.tasks, Mode.DISCOVERY, library=MARK)
    build_task(services.locations.tasks, Mode.REMOVE)
    remember_tour(services.locations)  # newcomers see neither ids nor word names
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: author_title(task) in driver.text())
        await driver.press("slash")
        await driver.type(word_name(task.id).partition(" ")[0])
        await driver.until(lambda: "shop · discount removed" not in driver.text())
        assert author_title(task) in driver.text()
        assert word_name(task.id) in driver.text()


async def test_the_tasks_behind_a_link_hide_the_library(tmp_path: Path) -> None:
    services = build_services(tmp_path, clock=FakeClock(), runner=FakeRunner(CHECKS))
    tasks = [build_task(services.locations.tasks, m, library=MARK) for m in (Mode.REMOVE, Mode.DISCOVERY)]
    app = ParticipantApp("P01", [task.id for task in tasks], services_of("P01", services))
    async with app.run_test(size=LARGE) as pilot:
        await until(pilot, lambda: "of 2 done" in text_of(app))
        assert all(solver_title(task) in text_of(app) for task in tasks)
        assert MARK not in text_of(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SolveScreen) and app.screen.focused is not None)
        assert MARK not in text_of(app)


async def test_the_pages_of_a_study_hide_the_libraries(tmp_path: Path) -> None:
    machine, root = Machine.at(tmp_path / "home"), tmp_path / "study"
    opened(machine.open(study_at(root)))  # the libraries are called shop0 to shop3
    async with taking(machine, root, size=LARGE) as driver:
        seen = []
        steps = (
            ("ConsentPage", ("f9", "space", "f9")),
            ("FormPage", ("1", "tab", "1", "f9")),
            ("RulesPage", ("f9",)),
            ("ReadyPage", ("enter",)),
            ("SolveScreen", ("f9",)),
            ("FormPage", ("f9", "enter")),
        )
        for page, keys in steps:
            await driver.until_page(page)
            seen.append(driver.text())
            await driver.press(*keys)
        await driver.until_page("SolveScreen")
        task = driver.solve._attempt.task
        await driver.until(lambda: solver_title(task) in driver.text())
        seen.append(driver.text())
    assert not re.search(r"shop\d", "\n".join(seen))


@pytest.mark.parametrize("mode", [*Mode])
def test_no_text_that_a_model_gets_names_the_library(
    mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    place = tmp_path / "data" / "tasks"
    is_gist = mode is Mode.GIST
    task = build_gist_task(place, library=MARK) if is_gist else build_task(place, mode, library=MARK)
    kind = kind_of(task)
    assert MARK not in render_brief(task)
    assert MARK not in kind.exported_brief(task, "/testbed", "/testbed/gist.py")
    assert cli.main(["agent", "run", task.id, "--model", "builtin:searcher", "--dry-run", "--json"]) == 0
    sent = json.loads(capsys.readouterr().out)
    assert MARK not in json.dumps([sent["messages"], sent["tools"]])


def test_a_server_of_tools_is_called_by_the_solvers_title(tmp_path: Path) -> None:
    case = Case(tmp_path)
    served = case.served()
    try:
        server = AttemptServer(served)
        assert server.title == f"gistpoint: {solver_title(case.task)}"
        assert "shop" not in f"{server.title} {server.instructions}"
    finally:
        served.close()


def test_lines_of_an_attempt_that_counts_hide_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    task: Task = build_task(tmp_path / "data" / "tasks", Mode.DISCOVERY, library=MARK)
    assert cli.main(["task", "show", task.id]) == 0
    assert MARK not in capsys.readouterr().out
