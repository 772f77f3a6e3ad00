"""The needs of the first paint: imported modules, and tasks that are read (decisions 37 and 165)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from builders import build_services, build_task
from scripted_judges import write_runs

from gistpoint.core.demo import tasks as demo
from gistpoint.core.demo.tasks import demo_task, recorded_runs, unpack_demo
from gistpoint.core.kinds import registry
from gistpoint.core.kinds.folder import read_task, read_task_with_answer
from gistpoint.core.tasks import documents
from gistpoint.core.tasks.documents import read_document
from gistpoint.sessions import tasks as stored
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.commands.demo import NAMES

HOME = "import gistpoint.tui.commands.demo, gistpoint.tui.app, gistpoint.tui.commands.solve"
REVIEW = "import gistpoint.tui.commands.review, gistpoint.tui.review_app"
JOIN = (
    "import gistpoint.tui.commands.study_taking, gistpoint.tui.study_app, gistpoint.sessions.studies.taking"
)
ATTEMPTS = "import gistpoint.sessions.services, gistpoint.core.kinds.registry, gistpoint.sandbox.testruns"
OPENED = f"""
from gistpoint.sessions.runs.opening import open_run
run = open_run({str(recorded_runs() / "dear-tickets.played.jsonl")!r})
run.ensure(3)
[run.step(number) for number in range(4)]
"""


FOREIGN = """
import asyncio
import sys
from functools import partial
from gistpoint.core.locations import Locations
from gistpoint.tui.commands.review import first_screen
from gistpoint.tui.review_app import ReviewApp

async def look():
    names, locations = [sys.argv[1]], Locations.of_user()
    app = ReviewApp(locations, partial(first_screen, names, locations, "ada", False), names)
    async with app.run_test(size=(120, 40)) as pilot:
        while not is_read(app.screen):
            await pilot.pause(0.02)

def is_read(screen):
    run = getattr(screen, "run", None)
    return run is not None and run.step and run.review and run.loader.survey and run.loader.survey.finished

asyncio.run(look())
"""
"""A run of a common format, opened and surveyed: what it loads stays in memory as long as the run is open."""


def imported_by(program: str, *words: str) -> list[str]:
    """Return the modules that a program has imported by its end."""
    code = f"{program}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("program", "unwanted"),
    [
        (
            HOME,
            {"msgspec", "gistpoint.core.demo.tasks", "gistpoint.core.kinds", "textual.widgets._text_area"},
        ),
        (REVIEW, {"msgspec", "gistpoint.sessions", "textual.widgets._text_area"}),
        (
            JOIN,
            {
                "csv",
                "gistpoint.core.generation.submissions",
                "gistpoint.core.kinds.gist.kind",
                "gistpoint.core.study.flags",
                "gistpoint.core.study.measuring",
                "gistpoint.sessions.studies.recruiting",
                "gistpoint.sessions.team.connecting",
            },
        ),
        (
            ATTEMPTS,
            {
                "gistpoint.core.kinds.gist.kind",
                "gistpoint.sessions.annotations",
                "importlib.metadata",
                "configparser",
                "compileall",
            },
        ),
        (
            OPENED,
            {
                "gistpoint.sessions.formats.aider",
                "gistpoint.sessions.formats.traces.otel",
                "gistpoint.core.kinds.gist.kind",
                "importlib.metadata",
            },
        ),
        (
            "import gistpoint.tui.screens.review.screen",
            {"gistpoint.core.queries", "gistpoint.tui.tables", "gistpoint.tui.widgets.table"},
        ),
    ],
    ids=["home", "review", "join", "attempt", "step", "run"],
)
def test_what_the_first_paint_does_not_need_is_not_imported(program: str, unwanted: set[str]) -> None:
    assert not unwanted & set(imported_by(program))


def test_a_run_of_another_program_is_opened_without_our_kinds_and_tasks(tmp_path: Path) -> None:
    unwanted = {
        "gistpoint.core.kinds.registry",
        "gistpoint.core.tools.declaration",
        "gistpoint.sessions.tasks",
        "gistpoint.sessions.runs.searching",
        "gistpoint.sessions.runs.digest",
        "gistpoint.tui.screens.dialogs.ask",
        "email.message",
        "sqlite3",
        "tarfile",
    }
    write_runs(tmp_path, 1)
    assert not unwanted & set(imported_by(FOREIGN, str(tmp_path / "run-000.traj.json")))


@pytest.mark.parametrize(
    ("words", "also_unwanted"),
    [
        (("search", "needle"), {"gistpoint.sessions.exports.markdown"}),
        (("show",), {"gistpoint.sessions.runs.searching"}),
        (("convert", "--to", "markdown"), {"gistpoint.sessions.runs.searching"}),
    ],
    ids=["search", "show", "convert"],
)
def test_a_command_about_one_run_loads_neither_the_list_of_runs_nor_other_exporters(
    tmp_path: Path, words: tuple[str, ...], also_unwanted: set[str]
) -> None:
    write_runs(tmp_path, 1)
    run = str(tmp_path / "run-000.traj.json")
    program = (
        "import contextlib, io, sys\nfrom gistpoint.tui import cli\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n    cli.main(sys.argv[1:])"
    )
    unwanted = {
        "gistpoint.tui.commands.run_list",
        "gistpoint.sessions.runs.digest",
        "gistpoint.sessions.exports.html.page",
        "gistpoint.sessions.exports.atif",
        "gistpoint.sessions.exports.chat",
    }
    assert not (unwanted | also_unwanted) & set(imported_by(program, *words, run))


def test_built_in_kinds_and_tools_are_found_without_those_of_other_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the packages of others were searched")

    for known in (registry.all_kinds, registry.all_tools, registry._built_in_modes, registry._built_in_tools):
        known.cache_clear()
    monkeypatch.setattr(registry, "load_all", never)
    for kind in registry.built_in():
        assert all(registry.kind_named(mode) is kind for mode in kind.modes)
        assert all(registry.declared(tool.name) == tool for tool in kind.tools)
    registry._built_in_modes.cache_clear()
    with pytest.raises(AssertionError, match="others were searched"):
        registry.kind_named("of a package")


def test_a_repair_and_an_unfinished_attempt_need_neither_gists_nor_reviews(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = build_services(tmp_path)
    task = build_task(services.locations.tasks)
    opened = services.start(task)
    opened.close()
    monkeypatch.setattr(registry, "built_in", lambda: pytest.fail("the kind of gists was imported"))
    monkeypatch.setattr(AttemptStore, "_book", lambda store: pytest.fail("the reviews were read"))
    assert registry.is_built_in(task)
    assert registry.declared("submit_attempt") is not None
    assert services.attempts.summary(opened.attempt.state.attempt_id).task_id == task.id


def test_only_the_task_that_is_opened_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = next(task for entry, task in unpack_demo(tmp_path / "demo") if entry.name == "dear-tickets")
    monkeypatch.setattr(demo, "unpack_demo", lambda into: pytest.fail("all tasks were read"))
    assert demo_task("dear-tickets", tmp_path / "demo").id == wanted.id
    assert demo_task("discovery", tmp_path / "demo").id == wanted.id

    store = TaskStore(tmp_path / "tasks", demo=tmp_path / "demo")
    monkeypatch.setattr(TaskStore, "tasks", lambda store: pytest.fail("all tasks were read"))
    assert store.find(wanted.id).id == wanted.id


def test_a_folder_that_is_named_by_another_tasks_id_is_not_that_task(tmp_path: Path) -> None:
    first, second = [task for _, task in unpack_demo(tmp_path / "demo")][:2]
    folder = tmp_path / "demo" / first.id
    shutil.rmtree(folder)
    shutil.copytree(second.folder, folder)
    store = TaskStore(tmp_path / "demo")
    with pytest.raises(stored.TaskError, match="no task"):
        store.find(first.id)
    assert store.find(second.id).id == second.id


def test_the_help_names_the_tasks_of_the_demo() -> None:
    assert ", ".join(f"{task.name} ({task.shown_mode})" for task in demo.demo_tasks()) == NAMES


def test_a_task_of_the_demo_that_is_named_is_unpacked_alone(tmp_path: Path) -> None:
    wanted = demo_task("dear-tickets", tmp_path / "demo")
    assert [task.parent for task in (tmp_path / "demo").glob("*/task.toml")] == [wanted.folder]


def test_the_file_of_a_task_is_parsed_once_for_the_task_and_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build_task(tmp_path / "tasks").folder
    parsed = []
    original = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(text) or original(text))
    documents._parsed_task.cache_clear()
    first, answer = read_task_with_answer(folder)
    assert answer.targets
    assert len(parsed) == 1
    read_document(folder / "task.toml").values["brief"]["failing"] = ["changed"]
    assert read_task(folder) == first
