"""The dependency rule, checked in fresh interpreters that load modules and run commands."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from project_files import ROOT, module_name, source_files

from gistpoint.object_graph import build_worker_services
from gistpoint.sessions.agentruns.cluster_work import attempted, replayed
from gistpoint.sessions.team.address import choose

HEAVY = [
    "textual",
    "rich",
    "docker",
    "git",
    "networkx",
    "radon",
    "scipy",
    "pytest",
    "regex",
    "zstandard",
    "openai",
    "anthropic",
    "google.genai",
    "httpx2",
    "mcp",
    "anyio",
    "uvicorn",
    "textual_serve",
    "aiohttp",
    "sqlalchemy",
    "psycopg",
    "alembic",
    "distributed",
    "dask",
]
LOADED = """
import json, sys
{what}
names = [name.split(".") for name in sys.modules]
print(json.dumps(sorted({{".".join(parts[:count]) for parts in names for count in (1, 2)}})))
"""
ALLOWED = {
    "core": {"core"},
    "sandbox": {"core", "sandbox"},
    "sessions": {"core", "sessions"},
    "tui": {"core", "object_graph", "sandbox", "sessions", "tui"},
}
RUNS_INSIDE = {"sandbox/payload/enter.py"}
"""Modules executed in the sandbox's interpreter, without gistpoint; they act when imported."""


def loaded_by(what: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after running `what`.

    They are named by their top-level packages and by the first two parts of their names.
    """
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(what=what)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


LOADED_BEFORE = (
    "asyncio", "difflib", "distributed", "docker", "git", "igraph", "networkx", "packaging.requirements",
    "pygments.lexers", "pytest", "radon.metrics", "regex", "sqlite3", "tomli_w", "unittest.mock",
    "xml.etree.ElementTree", "zstandard",
)  # fmt: skip
ONE_BY_ONE = """
import importlib, json, os, sys
for name in sys.argv.pop(1).split(","):
    importlib.import_module(name)
for name in sys.argv[1:]:
    reading, writing = os.pipe()
    if os.fork() == 0:
        for each in name.split(","):
            importlib.import_module(each)
        os.write(writing, json.dumps(sorted({".".join(m.split(".")[:2]) for m in sys.modules})).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        print(file.read().decode() or "null", flush=True)
    os.wait()
"""
"""A program that loads some foreign packages, and forks to load the modules of each gistpoint folder."""


def test_every_module_loads_only_what_its_folder_may() -> None:
    """The modules of a folder are loaded together, which shows a forbidden import by any of them."""
    found = {
        top: [module_name(path) for path in source_files(top) if path not in RUNS_INSIDE]
        for top in ("core", "sandbox", "sessions", "tui")
    }
    paths, names = [f"{package}/" for package in found], [",".join(modules) for modules in found.values()]
    done = subprocess.run(
        [sys.executable, "-c", ONE_BY_ONE, ",".join(LOADED_BEFORE), *names],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    for path, line in zip(paths, lines, strict=True):
        assert line != "null", f"{path} can't be imported: {done.stderr[-2000:]}"
        loaded, top = set(json.loads(line)), path.partition("/")[0]
        assert f"gistpoint.{top}" in loaded
        assert {name.partition(".")[2] for name in loaded if name.startswith("gistpoint.")} <= ALLOWED[top], (
            path
        )
        if top != "tui":
            assert not {name.partition(".")[0] for name in loaded} & {"textual", "rich"}, path


WORKING = """
import msgspec, pickle
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.locations import Locations
from gistpoint.core.orders import WorkerIntroduction, WorkOrder, WorkReply, WorkStatus
from gistpoint.sessions.agentruns.elsewhere import AttemptOrder
from gistpoint.sessions.agentruns.store import (RunSettings, job_of)
settings = RunSettings(model="builtin:searcher", host="", agent=AgentSettings())
job = job_of(demo_task("remove", Locations.of_user().demo).id, settings, 1)
order = AttemptOrder(run="r", created_utc_ms=1, settings=settings, job=job, attempt="20300101-000000-000001")
about = msgspec.Raw(msgspec.json.encode({"tools": {"consented": True}, "order": order}))
sent = WorkOrder(start="s", job=job.key, sender=WorkerIntroduction(), about=about)
reply = msgspec.json.decode(pickle.loads(%r)(msgspec.json.encode(sent), b""), type=WorkReply)
assert reply.kind is WorkStatus.DONE, reply
"""


def test_a_worker_of_a_cluster_loads_no_user_interface(tmp_path: Path) -> None:
    """The worker gets functions by name, and has made an attempt before its modules are checked."""
    work = pickle.dumps(partial(attempted, build=build_worker_services))
    loaded = loaded_by(f"import os; os.environ['GISTPOINT_HOME'] = {str(tmp_path)!r}\n" + WORKING % work)
    assert {"gistpoint.object_graph", "gistpoint.sandbox", "gistpoint.sessions"} <= loaded
    assert not {name for name in loaded if name.startswith(("gistpoint.tui", "textual", "rich"))}
    pickle.loads(pickle.dumps(partial(replayed, build=build_worker_services)))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["task", "new", "--help"],
        ["replay", "--help"],
        ["mcp", "--help"],
        ["serve", "--help"],
        ["paths"],
    ],
    ids=" ".join,
)
def test_help_loads_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    loaded = loaded_by(
        f"import os; os.environ['GISTPOINT_HOME'] = {str(tmp_path)!r}; from gistpoint.tui.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit:\n    pass"
    )
    assert "gistpoint.tui" in loaded
    assert not loaded & set(HEAVY)
    assert len(arguments) > 1 or "msgspec" not in loaded  # only commands that read records decode them


OF_EXTRAS = {
    "openai",
    "anthropic",
    "google.genai",
    "httpx2",
    "mcp",
    "anyio",
    "starlette",
    "uvicorn",
    "textual_serve",
    "aiohttp",
    "sqlalchemy",
    "psycopg",
    "alembic",
}


@pytest.mark.parametrize(
    "arguments",
    [
        ["agent", "run", "--demo", "--model", "builtin:searcher", "--dry-run"],
        ["agent", "list"],
        ["attempt", "list"],
        ["store", "use", "files"],
        ["store", "status"],
    ],
    ids=" ".join,
)
def test_what_needs_no_extra_loads_nothing_of_one(arguments: list[str], tmp_path: Path) -> None:
    loaded = loaded_by(
        f"import os; os.environ['GISTPOINT_HOME'] = {str(tmp_path)!r}; from gistpoint.tui.cli import main\n"
        f"assert main({arguments!r}) == 0"
    )
    assert "gistpoint.tui" in loaded
    assert not loaded & OF_EXTRAS


def test_a_store_that_is_chosen_is_loaded_by_the_thread_that_reaches_it(tmp_path: Path) -> None:
    choose(tmp_path / "config", "postgresql:///team")
    loaded = loaded_by(
        f"import os; os.environ['GISTPOINT_HOME'] = {str(tmp_path)!r}\n"
        "from gistpoint.core.requests import IsolationChoice\n"
        "from gistpoint.object_graph import build_services\n"
        "assert build_services(IsolationChoice()).mirror is not None"
    )
    assert not loaded & OF_EXTRAS


PACKAGES = {"openai": "openai", "anthropic": "anthropic", "gemini": "google.genai"}


@pytest.mark.parametrize("api", PACKAGES)
def test_a_model_loads_the_package_of_its_api_alone(api: str) -> None:
    loaded = loaded_by(
        "from gistpoint.sandbox.endpoints.models import chat_model_at\n"
        "from gistpoint.sandbox.endpoints.settings import EndpointSettings\n"
        f"chat_model_at(EndpointSettings('m', api={api!r}))"
    )
    assert loaded & set(PACKAGES.values()) == {PACKAGES[api]}


OF_ANALYSES = {"numpy", "scipy", "pandas", "statsmodels", "lifelines", "matplotlib"}
OF_TEAMS = {"sqlalchemy", "psycopg", "alembic"}
JOINING = """
import asyncio
from gistpoint.tui.cli import main
try:
    main(["study", "join", "--help"])
except SystemExit:
    pass
from gistpoint.tui.commands.study_taking import app_of
from gistpoint.tui.study_opening import open_study
async def joining():
    app = app_of(open_study("demo-study"), "ME")
    async with app.run_test() as pilot:
        while type(app.screen).__name__ != "ConsentPage":
            assert app.is_running and not app.crashes
            await pilot.pause(0.02)
enrol = ["enrol", "demo-study", "--code", "ME", "--role", "author"]
for line in (["new", "demo-study", "--tasks", "demo"], ["open", "demo-study"], enrol):
    assert main(["study", *line]) == 0, line
assert main(["study", "progress", "demo-study"]) == 0
asyncio.run(joining())
"""


def test_taking_part_in_a_study_loads_no_package_of_the_analyses(tmp_path: Path) -> None:
    home = (
        f"import os; os.chdir({str(tmp_path)!r}); os.environ['GISTPOINT_HOME'] = {str(tmp_path / 'home')!r}\n"
    )
    loaded = loaded_by(home + JOINING)
    assert "gistpoint.tui" in loaded
    assert "textual" in loaded
    assert not loaded & (OF_ANALYSES | OF_TEAMS)
