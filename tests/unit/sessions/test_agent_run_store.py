"""The files of a run keep acknowledged records, queue no job twice, and refuse other settings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_runs import Home

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.chat import Sampling
from gistpoint.sessions.agentruns import store
from gistpoint.sessions.agentruns.jobs import JobAttempt, JobEnded, JobHalted, JobStatus
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunError, RunSettings, job_of

FULL = RunSettings(
    model="m-1",
    host="localhost:8000",
    agent=AgentSettings(sampling=Sampling(temperature=0.5, seed=3)),
    tool_uses=8,
    submissions=2,
    gist={"steps": 20, "tools": ["trace"]},
)


def test_settings_and_jobs_are_read_as_they_were_written(tmp_path: Path) -> None:
    home = Home(tmp_path, settings=FULL)
    run = home.run(home.task(1), home.task(2), repeats=2)
    again = home.runs.open("r")
    assert again.document == run.document
    assert again.settings == FULL
    assert again.settings.digest == FULL.digest
    assert [(s.job.repeat, s.status) for s in again.jobs.values()] == [
        (n, JobStatus.QUEUED) for n in (1, 2, 1, 2)
    ]


def test_the_state_of_a_job_is_the_fold_of_its_operations(tmp_path: Path) -> None:
    home = Home(tmp_path)
    run = home.run(home.task())
    (key,) = run.jobs
    for operation, status, left in (
        (JobAttempt(job=key, attempt="a1"), JobStatus.BEGUN, 1),
        (JobHalted(job=key, problem="rate_limited", message="slow"), JobStatus.HALTED, 1),
        (JobAttempt(job=key, attempt="a1"), JobStatus.BEGUN, 1),
        (JobEnded(job=key, reason="solved"), JobStatus.ENDED, 0),
    ):
        run.append([operation])
        for one in (run, home.runs.open("r")):
            assert (one.jobs[key].status, one.jobs[key].attempt, len(one.left)) == (status, "a1", left)


def test_the_same_job_is_queued_once_and_other_settings_are_another_run(tmp_path: Path) -> None:
    home = Home(tmp_path)
    task = home.task()
    assert len(home.run(task).jobs) == 1
    assert len(home.run(task, repeats=3).jobs) == 3
    other = msgspec.structs.replace(home.settings, agent=AgentSettings(context_tokens=8_000))
    assert job_of(task.id, other, 1).key not in home.run(task).jobs
    with pytest.raises(AgentRunError, match=r"different settings: agent\.context_tokens"):
        home.runs.open_or_create("r", other, 0, "test")


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a b", "x" * 101])
def test_names_that_are_no_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AgentRunError, match="is not a valid name"):
        Home(tmp_path).run(name=name)


def test_a_torn_last_line_is_left_out_and_cut_off_by_the_next(tmp_path: Path) -> None:
    home = Home(tmp_path)
    run = home.run(home.task())
    (key,) = run.jobs
    file = run.folder / "jobs.jsonl"
    with file.open("ab") as opened:
        opened.write(b'{"kind":"ended","job":')
    again = home.runs.open("r")
    assert again.jobs[key].status is JobStatus.QUEUED
    again.append([JobEnded(job=key, reason="solved")])
    assert home.runs.open("r").jobs[key].status is JobStatus.ENDED
    assert file.read_bytes().count(b"\n") == 2


def test_what_a_newer_version_writes_is_left_out_and_what_is_broken_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path)
    run = home.run(home.task())
    file = run.folder / "jobs.jsonl"
    with file.open("ab") as opened:
        opened.write(b'{"kind":"moved","job":"x"}\n')
    assert len(home.runs.open("r").jobs) == 1
    with file.open("ab") as opened:
        opened.write(b"nonsense\n")
    with pytest.raises(AgentRunError, match=r"r/jobs\.jsonl, line 3"):
        home.runs.open("r")


def test_one_process_works_on_a_run_and_can_be_asked_to_stop(tmp_path: Path) -> None:
    home = Home(tmp_path)
    run = home.run(home.task())
    assert not run.ask_to_stop()
    (run.folder / "stop").touch()
    with run.held(at_work=True):
        assert run.worked_on
        assert not run.stop_asked  # a request from before its start is not meant for it
        with pytest.raises(AgentRunError, match="Another process"), home.runs.open("r").held():
            pass
        assert home.runs.open("r").ask_to_stop()
        assert run.stop_asked
    assert not run.worked_on
    assert not run.ask_to_stop()


@pytest.mark.parametrize("at", ["starting", "locked", "read"])
def test_a_request_to_stop_a_process_that_just_begins_is_not_lost(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    run, reached, asked = home.run(home.task()), threading.Event(), list[bool]()

    def slow(own: Callable[..., Any]) -> Callable[..., Any]:
        def slowly(*given: Any, **named: Any) -> Any:
            if threading.current_thread() is worker:
                reached.set()
                time.sleep(0.3)
            return own(*given, **named)

        return slowly

    def works() -> None:
        with home.runs.starting("r"):
            if at == "starting":
                reached.set()
                time.sleep(0.3)
            with run.held(at_work=True):
                until = time.monotonic() + 20
                while not run.stop_asked and time.monotonic() < until:
                    time.sleep(0.01)
                asked.append(run.stop_asked)

    worker = threading.Thread(target=works)
    if at == "locked":
        monkeypatch.setattr(Path, "unlink", slow(Path.unlink))
    elif at == "read":
        monkeypatch.setattr(AgentRun, "reload", slow(AgentRun.reload))
    worker.start()
    assert reached.wait(20)
    assert home.runs.open("r").ask_to_stop()
    worker.join()
    assert asked == [True]


def test_a_process_that_only_decides_jobs_is_not_asked_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_BEGINNING_S", 0.1)
    home = Home(tmp_path)
    run = home.run(home.task())
    with run.held():
        assert not home.runs.open("r").ask_to_stop()


def test_files_that_can_not_be_opened_are_named(tmp_path: Path) -> None:
    home = Home(tmp_path)
    run = home.run(home.task())
    (run.folder / "lock").mkdir()
    with pytest.raises(AgentRunError, match=r"r/lock can't be opened: Is a directory"), run.held():
        pass
    (run.folder / "jobs.jsonl").unlink()
    (run.folder / "jobs.jsonl").mkdir()
    with pytest.raises(AgentRunError, match=r"r/jobs\.jsonl can't be read: Is a directory"):
        home.runs.open("r")


def test_a_role_that_there_is_not_is_told_before_a_job_begins(tmp_path: Path) -> None:
    file = Home(tmp_path).run().folder / "run.toml"
    file.write_text(file.read_text().replace('role = "baseline"', 'role = "king"'))
    with pytest.raises(AgentRunError, match=r"r/run\.toml can't be read: 'king'"):
        Home(tmp_path).runs.open("r")


def test_a_new_limit_on_the_cost_is_kept(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.run(home.task()).limit_cost(2.5)
    assert home.runs.open("r").document.max_cost_usd == 2.5
