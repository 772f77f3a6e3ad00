"""A list shows a file that can't be read with its problem, and shows all others as before."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_runs import SOLVES, Home
from builders import build_services, build_task
from fakes import FakeClock
from held_studies import Held

from gistpoint.core import locations
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.locations import LARGEST_RECORDS
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.sessions.agentruns.figures import UNREADABLE, outcomes_of
from gistpoint.sessions.agentruns.killed_requests import losses_of_killed_requests
from gistpoint.sessions.agentruns.store import RUN_FILE, AgentRunError
from gistpoint.sessions.attempt_outcomes import ATTEMPT_WRITERS
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.leases import piles
from gistpoint.sessions.runs.opening import list_runs
from gistpoint.sessions.services import Services
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.tasks import BrokenTask, TaskStore

Damage = Callable[[Path], None]


def _lengthened(path: Path) -> None:
    os.truncate(path, LARGEST_RECORDS + 10)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.fixture(params=["too long", "a folder", "refused", "a bad sector"])
def damage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Damage:
    """Make a file unreadable, in each way that is an `OSError` of the reader."""
    if request.param == "too long":
        return _lengthened
    if request.param == "a folder":
        return _folder
    error: type[OSError] = PermissionError if request.param == "refused" else OSError
    opened = locations.open_regular

    def refuse(path: Path) -> None:
        def opening(other: Path, *arguments: object, **options: object) -> int:
            if Path(other) == path:
                raise error(5, "no", str(path))
            return opened(other, *arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(locations, "open_regular", opening)

    return refuse


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return build_services(tmp_path, clock=FakeClock())


def _attempts(services: Services) -> tuple[str, str, str]:
    task, made = build_task(services.locations.tasks), []
    for _ in range(3):
        opened = services.attempts.start(task, services.judge_for(task), Enrolment(actor="model"))
        opened.close()
        made.append(opened.journal.path.parent.name)
        services.clock.advance(1_000)  # type: ignore[attr-defined]
    return tuple(made)


def test_attempts(services: Services, damage: Damage) -> None:
    made = _attempts(services)
    store, bad = services.attempts, made[1]
    damage(store.folder(bad) / JOURNAL)
    for rows in (store.summaries(), store.outlines(), store.outlines_of(sorted(made, reverse=True))):
        found = {row.attempt_id: row.problem for row in rows}
        assert list(found) == sorted(made, reverse=True)
        assert found.pop(bad)
        assert not any(found.values())
    listed = {row.attempt_id: row.outcome for row in store.listed()}
    assert "can't be read" in listed[bad]
    assert listed[made[0]] == "unfinished"
    assert piles(store, "mcp", 0) == []
    assert store.unfinished(next(store.summaries()).task_id, Enrolment()) == []
    for write in ATTEMPT_WRITERS.values():
        assert write(store, list(store.summaries()))


def test_figures_of_a_run(tmp_path: Path, damage: Damage) -> None:
    home = Home(tmp_path, script=(*SOLVES, *SOLVES))
    run = home.run(home.task(1), home.task(2))
    home.work(run)
    bad = next(iter(run.jobs.values())).attempt
    damage(home.attempts.folder(bad) / JOURNAL)
    figures = home.figures(run)
    (row,) = [row for row in figures.attempts if row.attempt == bad]
    assert (row.reason, row.result) == (UNREADABLE, "")
    assert "can't be read" in row.message
    assert figures.totals.counted == outcomes_of(run, home.attempts).counted == 1
    assert losses_of_killed_requests(run, home.attempts) == []


def test_runs_of_agents(tmp_path: Path, damage: Damage) -> None:
    home = Home(tmp_path)
    home.run(home.task(), name="good")
    home.run(home.task(), name="bad")
    damage(home.runs.root / "bad" / RUN_FILE)
    assert home.runs.names() == ["bad", "good"]
    with pytest.raises(AgentRunError, match="can't be read"):
        home.runs.open("bad")


def test_tasks(tmp_path: Path, damage: Damage) -> None:
    good, bad = (build_task(tmp_path, extra_files={"notes.txt": text}) for text in ("one\n", "two\n"))
    damage(bad.folder / TASK_FILE)
    entries = list(TaskStore(tmp_path).tasks())
    assert [entry.id for entry in entries if not isinstance(entry, BrokenTask)] == [good.id]
    (broken,) = (entry for entry in entries if isinstance(entry, BrokenTask))
    assert broken.folder == bad.folder
    assert "can't be read" in broken.problem


def test_recorded_runs(services: Services, damage: Damage) -> None:
    made = _attempts(services)
    damage(services.attempts.folder(made[1]) / JOURNAL)
    found = {Path(run.name).parent.name: run for run in list_runs([str(services.locations.attempts)])}
    assert found[made[0]].header is not None
    assert found[made[2]].header is not None


def test_published_attempts(tmp_path: Path, damage: Damage) -> None:
    held = Held.at(tmp_path)
    bad, good = held.attempt("P01", held.tasks[0]), held.attempt("P02", held.tasks[0])
    journal = held.folder.attempt(bad)
    assert journal is not None
    damage(journal.journal)
    data = held.load().data
    assert [row.attempt for row in data.rows] == [good]
    found = {finding.name for finding in audit(held.folder)}
    if journal.journal.is_file():
        assert [one for one in data.problems if bad in one and "can't be read" in one]
        assert "journal_broken" in found
    else:
        assert "not_published" in found
