"""Every halted job can be decided: its attempt ends in its journal, or it is excluded; both can be undone."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_runs import LOOK, RIGHT, SOLVES, Home
from gist_tasks import FakeEntrypoints, FakeGistJudge, build_gist_task
from scripted_endpoint import reply

from gistpoint.core.agents.loop import HISTORY_CUT, INFRASTRUCTURE
from gistpoint.core.attempts.events import EndWithdrawn
from gistpoint.core.chat import ChatFailure, ChatProblem
from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.logs import AppendLog
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.agentruns.figures import AttemptFigures
from gistpoint.sessions.agentruns.jobs import QUEUED, STOPPED, JobHalted, JobStatus
from gistpoint.sessions.agentruns.runner import AgentPorts, AgentRunner
from gistpoint.sessions.agentruns.settling import DecidedJob, Decision, SettledAs, advice, chosen_jobs
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunError

DOWN = ChatFailure(ChatProblem.SERVER_ERROR, "It answered 500.")
HALTING = (
    *(problem for problem in ChatProblem if problem is not ChatProblem.CONTEXT_FULL),
    HISTORY_CUT,
    INFRASTRUCTURE,
    "sandbox",
    "task",
    "attempt",
    "refused",
    "over_cost",
)
ENDS = {
    SettledAs.CONTEXT_EXHAUSTED: "context_exhausted",
    SettledAs.DECLINED: "gave_up: declined",
    SettledAs.NO_TOOL_CALL: "gave_up: no_tool_call",
}
COUNTS = [outcome for outcome in SettledAs if outcome.counts]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, script=(SOLVES[0], DOWN))


def halted(home: Home, problem: str = "server_error", *tasks: Task) -> AgentRun:
    """Return a run whose jobs have halted for this problem after a turn."""
    run = home.run(*(tasks or [home.task()]))
    home.work(run)
    run.append([JobHalted(job=key, problem=problem, message=f"It is {problem}.") for key in run.jobs])
    return run


def decide(
    home: Home, run: AgentRun, outcome: SettledAs, ports: AgentPorts | None = None
) -> list[DecidedJob]:
    with run.held():
        settler = (ports or home.ports).settler(run)
        return list(settler.settle(list(run.jobs.values()), Decision(outcome, "ada", "read it")))


def undo(home: Home, run: AgentRun) -> list[DecidedJob]:
    with run.held():
        return list(home.ports.settler(run).undo(list(run.jobs.values()), "ada", "too early"))


def only(home: Home, run: AgentRun) -> AttemptFigures:
    (row,) = home.figures(run).attempts
    return row


def resumed(home: Home, run: AgentRun) -> int:
    """Resume a run with a model that solves; return the number of requests."""
    before = len(home.asked)
    home.script = SOLVES[1:]
    home.work(run)
    return sum(len(model.asked) for model in home.asked[before:])


@pytest.mark.parametrize("outcome", COUNTS)
@pytest.mark.parametrize("problem", HALTING)
def test_a_halted_job_ends_in_its_journal_and_is_left_alone(
    home: Home, problem: str, outcome: SettledAs
) -> None:
    run = halted(home, problem)
    assert home.figures(run).totals.solved is None
    (decided,) = decide(home, run, outcome)
    assert (decided.refused, decided.job.status) == ("", JobStatus.ENDED)
    row = only(home, run)
    assert (row.result, row.in_rates, row.solved_at_best) == ("not solved", True, 0)
    assert row.reason == ENDS.get(outcome, f"settled: {problem}")
    assert (row.settled, row.settled_by, row.settled_why) == (outcome.value, "ada", "read it")
    totals = home.figures(run).totals
    assert totals.solved is not None
    assert (totals.solved.words, totals.solved_bounds) == ("0 of 1 [0, 79]", None)
    ending = home.attempts.summary(row.attempt).state.ending
    assert ending is not None
    assert (ending.text, ending.settled_by) == (f"It is {problem}.", "ada")
    assert resumed(home, run) == 0
    assert only(home, home.runs.open("r")) == row


@pytest.mark.parametrize("problem", HALTING)
def test_an_excluded_job_is_reported_and_left_alone(home: Home, problem: str) -> None:
    run = halted(home, problem)
    (decided,) = decide(home, run, SettledAs.EXCLUDED)
    assert (decided.refused, decided.job.status) == ("", JobStatus.EXCLUDED)
    row = only(home, run)
    assert (row.status, row.reason, row.result, row.in_rates) == ("excluded", problem, "", False)
    totals = home.figures(run).totals
    assert (totals.excluded, totals.left, totals.halted, totals.missing) == ({problem: 1}, 0, 0, 1)
    assert resumed(home, run) == 0
    assert not home.attempts.summary(row.attempt).state.ended


@pytest.mark.parametrize("outcome", SettledAs)
@pytest.mark.parametrize("problem", HALTING)
def test_every_decision_can_be_undone(home: Home, problem: str, outcome: SettledAs) -> None:
    run = halted(home, problem)
    before = only(home, run)
    decide(home, run, outcome)
    (undone,) = undo(home, home.runs.open("r"))
    run.reload()
    assert (undone.refused, undone.job.status) == ("", JobStatus.HALTED)
    assert msgspec.structs.replace(only(home, run), wall_s=before.wall_s) == before
    assert resumed(home, run) == 1
    row = only(home, run)
    assert (row.result, row.turns, row.calls, row.settled) == ("solved", 2, 2, "")


def test_a_decision_is_kept_with_its_author_time_and_reason(home: Home) -> None:
    run = halted(home)
    decide(home, run, SettledAs.NOT_SOLVED)
    undo(home, run)
    lines = [msgspec.json.decode(line) for line in (run.folder / "jobs.jsonl").read_bytes().splitlines()]
    settled, _, unsettled = lines[-3:]
    assert settled == {
        "kind": "settled",
        "job": next(iter(run.jobs)),
        "utc_ms": settled["utc_ms"],
        "outcome": "not_solved",
        "problem": "server_error",
        "by": "ada",
        "why": "read it",
    }
    assert settled["utc_ms"] > 0
    assert (unsettled["kind"], unsettled["why"]) == ("unsettled", "too early")


@pytest.mark.parametrize("outcome", COUNTS)
def test_a_job_without_an_attempt_can_only_be_excluded(home: Home, outcome: SettledAs) -> None:
    run = home.run(home.task())
    (decided,) = decide(home, run, outcome)
    assert "no attempt that could count" in decided.refused
    assert decided.job.status is JobStatus.QUEUED
    (decided,) = decide(home, run, SettledAs.EXCLUDED)
    assert decided.job.status is JobStatus.EXCLUDED
    assert home.figures(run).totals.excluded == {"queued": 1}
    undo(home, run)
    assert run.jobs[decided.job.job.key].status is JobStatus.QUEUED


def test_a_job_whose_attempt_can_not_be_opened_stays_halted(home: Home) -> None:
    run = halted(home)

    def gone(task_id: str) -> Any:
        raise TaskError("There is no such task.")

    (decided,) = decide(home, run, SettledAs.DECLINED, replace(home.ports, task=gone))
    assert decided.refused == "There is no such task."
    assert decided.job.status is JobStatus.HALTED
    assert decided.job.settled is None


@pytest.mark.parametrize("cut", [b"attempt_ended", b'"kind":"ended"'])
def test_a_decision_that_a_dead_process_did_not_finish_is_carried_out(
    home: Home, monkeypatch: pytest.MonkeyPatch, cut: bytes
) -> None:
    run = halted(home)
    with monkeypatch.context() as patched:
        patched.setattr(AppendLog, "append", full_at(cut))
        with pytest.raises(OSError, match="No space"):
            decide(home, run, SettledAs.NOT_SOLVED)
    again = home.runs.open("r")
    assert resumed(home, again) == 0
    row = only(home, again)
    assert (row.status, row.reason, row.settled_by) == ("ended", "settled: server_error", "ada")


def test_an_undoing_that_a_dead_process_did_not_finish_is_carried_out(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = halted(home)
    decide(home, run, SettledAs.DECLINED)
    with monkeypatch.context() as patched:
        patched.setattr(AppendLog, "append", full_at(EndWithdrawn.type.encode()))
        with pytest.raises(OSError, match="No space"):
            undo(home, run)
    assert resumed(home, home.runs.open("r")) == 1
    assert only(home, home.runs.open("r")).result == "solved"


def full_at(text: bytes) -> Any:
    """Return a method that finds the disk full when it should write this text."""
    append = AppendLog.append

    def full(log: AppendLog, lines: bytes, *, durable: bool = True) -> None:
        if text in lines:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(log, lines, durable=durable)

    return full


def test_nothing_is_decided_while_another_process_works_on_the_run(home: Home) -> None:
    run = halted(home)
    with run.held(), pytest.raises(AgentRunError, match="Another process"):
        decide(home, home.runs.open("r"), SettledAs.EXCLUDED)


def test_an_attempt_that_ended_by_itself_keeps_its_end(home: Home) -> None:
    home.script = SOLVES
    run = home.run(home.task())
    home.work(run)
    file = run.folder / "jobs.jsonl"
    file.write_bytes(
        b"".join(line for line in file.read_bytes().splitlines(keepends=True) if b"ended" not in line)
    )
    run.reload()
    (decided,) = decide(home, run, SettledAs.NOT_SOLVED)
    assert (decided.job.status, decided.job.settled) == (JobStatus.ENDED, None)
    assert only(home, run).result == "solved"
    (refused,) = undo(home, run)
    assert refused.refused == "Nothing was decided on the job."


def gist_ports(home: Home) -> AgentPorts:
    def judge(task: Task) -> Any:
        return FakeGistJudge(task, gist_answer(read_answer(task)), FakeEntrypoints())

    return replace(home.ports, judge=judge)


@pytest.mark.parametrize(("outcome", "judged"), [("context_exhausted", 1), ("not_solved", 0)])
def test_a_gist_is_judged_as_it_is_unless_it_just_counts_as_not_solved(
    home: Home, outcome: str, judged: int
) -> None:
    home.script = (DOWN,)
    run = home.run(build_gist_task(home.folder / "tasks"))
    AgentRunner(run, gist_ports(home)).work()
    (decided,) = decide(home, run, SettledAs(outcome), gist_ports(home))
    assert (decided.refused, decided.job.status) == ("", JobStatus.ENDED)
    assert only(home, run).submissions == judged
    with run.held():
        (undone,) = gist_ports(home).settler(run).undo(list(run.jobs.values()), "", "")
    assert undone.refused == ("The gist was judged at that end, which can't be undone." if judged else "")


@pytest.mark.parametrize("obstacle", [*HALTING, ChatProblem.CONTEXT_FULL, STOPPED, QUEUED, "handed_over"])
def test_every_obstacle_has_advice(obstacle: str) -> None:
    assert advice(obstacle) != advice("unknown")


def test_jobs_are_chosen_by_reason_number_and_attempt(home: Home) -> None:
    run = halted(home, "server_error", home.task(1), home.task(2), home.task(3))
    one, two, three = run.jobs.values()
    run.append([JobHalted(job=two.job.key, problem="over_cost")])
    assert [state.job.key for state in chosen_jobs(run, [], [])] == [*run.jobs]
    assert [state.job.key for state in chosen_jobs(run, [], ["over_cost"])] == [two.job.key]
    assert [state.job.key for state in chosen_jobs(run, ["3", one.attempt], [])] == [
        three.job.key,
        one.job.key,
    ]
    assert chosen_jobs(run, [], [], settled=True) == []
    for jobs, reasons in ((["4"], []), (["01x"], []), ([], ["servererror"])):
        with pytest.raises(UserError):
            chosen_jobs(run, jobs, reasons)


def test_the_beginning_of_several_attempts_is_refused_with_their_numbers(home: Home) -> None:
    run = halted(home, "server_error", home.task(1), home.task(2), home.task(3))
    run.jobs = {
        key: replace(state, attempt=attempt)
        for (key, state), attempt in zip(run.jobs.items(), ("ab-1", "cd-1", "ab-2"), strict=True)
    }
    _, two, three = run.jobs.values()
    with pytest.raises(UserError, match=r"several jobs begin with 'ab': 1, 3\."):
        chosen_jobs(run, ["ab"], [])
    assert chosen_jobs(run, ["ab-2", "c"], []) == [three, two]
    for name in ("", "x"):
        with pytest.raises(UserError, match="No job has the number or attempt"):
            chosen_jobs(run, [name], [])


def test_a_run_of_before_opens_and_is_written_as_before(home: Home) -> None:
    home.script = (reply(LOOK), reply(RIGHT))
    run = home.run(home.task())
    home.work(run)
    kinds = {
        msgspec.json.decode(line).get("kind")
        for line in (run.folder / "jobs.jsonl").read_bytes().splitlines()
    }
    assert kinds <= {None, "queued", "attempt", "ended"}
