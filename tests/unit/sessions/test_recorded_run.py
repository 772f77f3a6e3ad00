"""The demo's recorded attempt of a model: the shipped files, and the run made from them in a user's home."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fakes import FakeClock

from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.state import attempt_result
from gistpoint.core.demo.tasks import demo_task, recorded_by_model
from gistpoint.core.locations import Locations
from gistpoint.sessions.agentruns.figures import figures_of
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.agentruns.recorded import RECORDED_RUN, open_recorded_run, recorded_attempt
from gistpoint.sessions.agentruns.store import AgentRunError, AgentRunStore, RunSettings
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import journal_in

MOST_BYTES = 200_000
_PLACES = re.compile(r"/(work|home|root|tmp|usr|opt)/|https?://|pypi|\bsk-|[A-Z]:\\\\")


@pytest.fixture
def locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Locations:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    return Locations.of_user()


def test_the_record_is_whole_small_and_of_the_demo(locations: Locations) -> None:
    name, data = recorded_by_model()
    assert len(data) <= MOST_BYTES
    content = journal_in(data)
    assert (content.fault, content.torn) == ("", False)
    state = recorded_attempt()
    header = state.header
    assert (header.task_id, header.role) == (demo_task(name, locations.demo).id, Role.DEMO)
    assert state.ended
    assert state.turns
    assert (header.solver or {})["calls"] == "text"


def test_the_record_names_no_place_of_the_machine_on_which_it_was_made() -> None:
    text = recorded_by_model()[1].decode("utf-8")
    assert _PLACES.findall(text) == []
    solver = recorded_attempt().header.solver or {}
    assert str(solver["host"]).partition(":")[0] == "127.0.0.1"


def test_it_is_stored_as_a_finished_run_of_another_machine(locations: Locations) -> None:
    run = open_recorded_run(locations, "test")
    assert (run.name, run.left) == (RECORDED_RUN, [])
    (job,) = run.jobs.values()
    assert job.status is JobStatus.ENDED
    attempts = AttemptStore(locations.attempts, FakeClock(), "test")
    summary = attempts.summary(job.attempt)
    assert (summary.problem, summary.elsewhere, summary.role) == ("", True, "demo")
    state = recorded_attempt()
    (row,) = figures_of(AgentRunStore(locations.runs).open(RECORDED_RUN), attempts).attempts
    assert (row.calls, row.turns, row.result) == (
        len(state.calls), len(state.turns), attempt_result(state).value
    )  # fmt: skip
    assert run.settings.digest == (state.header.solver or {})["settings_sha256"]


def test_it_is_stored_once(locations: Locations) -> None:
    first = open_recorded_run(locations, "test")
    before = {path: path.read_bytes() for path in locations.data.rglob("*") if path.is_file()}
    assert open_recorded_run(locations, "test").jobs == first.jobs
    assert {path: path.read_bytes() for path in locations.data.rglob("*") if path.is_file()} == before


def test_another_run_of_that_name_is_not_changed(locations: Locations) -> None:
    agent = open_recorded_run(locations, "test").settings.agent
    other = RunSettings(model="m", host="", agent=agent)
    store = AgentRunStore(locations.runs)
    (locations.runs / RECORDED_RUN / "run.toml").unlink()
    store.open_or_create(RECORDED_RUN, other, 1, "test")
    with pytest.raises(AgentRunError, match="different settings"):
        open_recorded_run(locations, "test")
