"""A person takes over a model's attempt and returns it; one works at a time, and it counts for neither."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_runs import LOOK, RIGHT, SOLVES, Home, WaitingModel
from msgspec import structs
from scripted_endpoint import ScriptedModel, reply

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.parts import Ending
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import ChatFailure, ChatProblem
from gistpoint.core.errors import AttemptError
from gistpoint.sessions.agentruns.control import CONTROL, PendingRequest, ask_for, asker_of, run_to_take_from
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.agentruns.runner import AgentRunner, JobReport
from gistpoint.sessions.agentruns.store import AgentRun
from gistpoint.sessions.attempt_outcomes import attempt_row

LONG_S = 60.0
ENDED = (JobStatus.ENDED, "solved")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def told(run: AgentRun) -> list[tuple[JobStatus, str]]:
    return [(state.status, state.problem) for state in run.jobs.values()]


def test_a_person_takes_over_and_gives_back_and_the_attempt_is_nobodys_figure(home: Home) -> None:
    model = WaitingModel(reply(LOOK))
    home.model_of = lambda settings: model
    run = home.run(home.task())
    thread = threading.Thread(target=AgentRunner(run, home.ports).work)
    thread.start()
    assert model.asked.wait(LONG_S)
    (state,) = run.jobs.values()
    folder = home.attempts.folder(state.attempt)
    asking = ask_for(folder, "p07")
    thread.join(LONG_S)
    assert not thread.is_alive()
    asking.withdraw()
    assert told(run) == [(JobStatus.HALTED, "handed_over")]
    home.model_of = None
    home.work(run)
    assert told(run) == [(JobStatus.HALTED, "handed_over")]
    assert [model.asked for model in home.asked] == []
    opened = home.attempts.resume(state.attempt, home.tasks.find(state.job.task), home.judge(state.job.task))
    assert opened.attempt.state.handovers[-1].by == "p07"
    opened.attempt.call("read_file", {"file_path": "shop/prices.py"})
    opened.attempt.hand_over("model", note="Look at the discount.")
    opened.close()
    home.script = SOLVES[1:]
    home.work(run)
    assert told(run) == [ENDED]
    said = home.asked[0].asked[0][-1].content
    assert "read_file" in said
    assert "Look at the discount." in said
    figures = home.figures(run)
    assert figures.attempts[0].mixed
    assert (figures.totals.counted, figures.totals.mixed, figures.totals.solved) == (0, 1, None)


def test_an_attempt_that_is_given_back_while_its_run_is_at_work_is_gone_on_with(home: Home) -> None:
    held = WaitingModel(reply(LOOK))
    models = iter([held, ScriptedModel(SOLVES), ScriptedModel(SOLVES)])
    home.model_of = lambda settings: next(models)
    run = home.run(home.task(1), home.task(2))
    first = next(iter(run.jobs.values())).job
    gave_back, asked = threading.Event(), list[PendingRequest]()

    def changed(report: JobReport) -> None:
        if report.job.status is JobStatus.ENDED and not gave_back.is_set():
            gave_back.set()
            asked[0].withdraw()
            attempt = run.jobs[first.key].attempt
            opened = home.attempts.resume(attempt, home.tasks.find(first.task), home.judge(first.task))
            opened.attempt.hand_over("model")
            opened.close()

    thread = threading.Thread(target=AgentRunner(run, home.ports, at_once=1, on_job=changed).work)
    thread.start()
    assert held.asked.wait(LONG_S)
    asked.append(ask_for(home.attempts.folder(run.jobs[first.key].attempt), "p07"))
    thread.join(LONG_S)
    assert not thread.is_alive()
    assert told(run) == [ENDED, ENDED]
    assert [row.mixed for row in home.figures(run).attempts] == [True, False]


def taken(home: Home, *, act: Callable[[Attempt], object] = lambda attempt: None) -> AgentRun:
    """Return a run whose only attempt was taken over by a person, who then did `act`."""
    home.script = (reply(LOOK), ChatFailure(ChatProblem.SERVER_ERROR, "It answered 500."))
    run = home.run(home.task())
    home.work(run)
    (state,) = run.jobs.values()
    opened = home.attempts.resume(state.attempt, home.tasks.find(state.job.task), home.judge(state.job.task))
    opened.attempt.hand_over("person", by="p07")
    act(opened.attempt)
    opened.close()
    return run


def test_an_attempt_that_a_person_ended_ends_its_job_without_a_request(home: Home) -> None:
    name, arguments = RIGHT
    run = taken(home, act=lambda attempt: attempt.call(name, arguments))
    home.asked.clear()
    home.work(run)
    assert told(run) == [ENDED]
    assert [model.asked for model in home.asked] == [[]]
    (figures,) = home.figures(run).attempts
    assert (figures.result, figures.mixed) == ("solved", True)
    assert home.figures(run).totals.counted == 0
    assert home.figures(run).totals.reasons == {}
    row = attempt_row(home.attempts.summary(next(iter(run.jobs.values())).attempt))
    assert (row["drivers"], row["mixed"]) == (["model", "person"], True)


def test_nothing_is_written_into_an_attempt_that_a_person_has(home: Home) -> None:
    run = taken(home)
    (state,) = run.jobs.values()
    before = home.attempts.summary(state.attempt).head
    home.work(run)
    assert told(run) == [(JobStatus.HALTED, "handed_over")]
    assert home.attempts.summary(state.attempt).head == before


def test_a_request_that_is_withdrawn_in_time_stops_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["p07", None])  # withdrawn before the attempt is released
    monkeypatch.setattr("gistpoint.sessions.agentruns.runner.asker_of", lambda folder: next(answers, None))
    run = home.run(home.task())
    home.work(run)
    assert told(run) == [ENDED]
    assert [row.mixed for row in home.figures(run).attempts] == [False]


def test_a_request_without_an_asker_is_none(home: Home) -> None:
    run = home.run(home.task())
    home.work(run)
    folder = home.attempts.folder(next(iter(run.jobs.values())).attempt)
    assert asker_of(folder) is None
    (folder / CONTROL).write_text('{"want": "person", "by": "gone"}')
    assert asker_of(folder) is None
    asking = ask_for(folder, "p" * 200)
    assert asker_of(folder) == "p" * 100
    assert (folder / CONTROL).stat().st_mode & 0o777 == 0o600
    asking.withdraw()
    asking.withdraw()
    assert not (folder / CONTROL).exists()


def test_only_an_attempt_that_a_run_can_let_go_of_is_taken_over(home: Home) -> None:
    run = taken(home)
    (job,) = run.jobs.values()
    state = home.attempts.summary(job.attempt).state
    assert run_to_take_from(state, home.runs, live=False).name == "r"

    def why_not(changed: AttemptState, *, live: bool = False) -> str:
        with pytest.raises(AttemptError) as raised:
            run_to_take_from(changed, home.runs, live=live)
        return raised.value.message

    def with_header(**members: Any) -> AttemptState:
        return structs.replace(state, header=msgspec.structs.replace(state.header, **members))

    solver = dict(state.header.solver or {})
    assert why_not(state, live=True) == "A person already has this attempt open."
    untouched = structs.replace(state, handovers=())
    assert "is not working on the run r" in why_not(untouched, live=True)
    with run.held():
        assert run_to_take_from(untouched, home.runs, live=True).name == "r"
    assert "in a run" in why_not(with_header(actor="person"))
    assert "in a run" in why_not(with_header(solver={"kind": "mcp"}))
    assert "single reply" in why_not(with_header(solver=solver | {"setting": "static"}))
    assert "is gone" in why_not(with_header(solver=solver | {"run": "../r"}))
    assert why_not(structs.replace(state, ending=Ending("solved"))) == "The attempt has ended."
