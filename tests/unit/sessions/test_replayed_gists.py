"""Attempts at gists, recorded and replayed: every step is the same, and an edited result is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fakes import FakeClock
from gist_tasks import FAITHFUL, OWNED, WRONG, FakeEntrypoints, FakeGistJudge, build_gist_task

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.gist.tools import GIST_BUFFER
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.sessions.exports.atif import atif_text
from gistpoint.sessions.journal import JournalWriter
from gistpoint.sessions.records.model import StepKind
from gistpoint.sessions.replay.replaying import Replay, Sameness
from gistpoint.sessions.runs.opening import open_run

SETTINGS = GistSettings(
    OWNED,
    execution=True,
    give_test=True,
    tools=("trace", "repo_graph", "bash", "edit_and_execute"),
    score_budget=2,
)


def looked_and_written(attempt: Attempt) -> None:
    attempt.call("list_directory", {})
    attempt.call("trace", {})
    attempt.call("repo_graph", {"name": "Basket"})
    attempt.call("bash", {"command": "ls"})
    attempt.edit(GIST_BUFFER, WRONG[:40])
    attempt.edit(GIST_BUFFER, WRONG)
    attempt.call("read_file", {"file_path": "shop/prices.py"})
    attempt.call("edit_gist", {"old": "nowhere", "new": ""})
    attempt.call("edit_and_execute", {"content": WRONG})
    attempt.call("score_gist", {})
    attempt.edit(GIST_BUFFER, FAITHFUL)


def submitted(attempt: Attempt, clock: FakeClock) -> None:
    looked_and_written(attempt)
    attempt.call("submit_gist", {})


def out_of_steps(attempt: Attempt, clock: FakeClock) -> None:
    looked_and_written(attempt)
    attempt.call("score_gist", {"content": FAITHFUL})
    while not attempt.state.ended:
        attempt.call("read_file", {"file_path": "nowhere.py"})


def out_of_time(attempt: Attempt, clock: FakeClock) -> None:
    looked_and_written(attempt)
    clock.advance(700_000)
    attempt.heartbeat()
    attempt.finish_pending()


def with_the_last_step(attempt: Attempt, clock: FakeClock) -> None:
    """Save typed text with the last step, then submit."""
    looked_and_written(attempt)
    attempt.call("write_gist", {"content": WRONG})
    while attempt.state.remaining.tool_uses > 1:
        attempt.call("list_directory", {})
    attempt.edit(GIST_BUFFER, FAITHFUL)
    attempt.call("submit_gist", {})


WAYS = {
    "solved": submitted,
    "steps_exhausted": out_of_steps,
    "time_cap": out_of_time,
    "solved at the last step": with_the_last_step,
}


def recorded(folder: Path, way: str) -> tuple[Path, FakeGistJudge]:
    task = build_gist_task(folder / "tasks", SETTINGS, budgets=Budgets.of_steps(20, 600))
    judge = FakeGistJudge(task, gist_answer(read_answer(task)), FakeEntrypoints())
    clock = FakeClock()
    journal = JournalWriter(folder / "attempt", clock)
    attempt = Attempt(task, judge, journal, clock)
    attempt.start(Enrolment(role=Role.BASELINE))
    WAYS[way](attempt, clock)
    assert attempt.state.ending is not None
    assert attempt.state.ending.reason == way.split()[0]
    journal.close()
    return journal.path, judge


@pytest.mark.parametrize("way", WAYS)
def test_every_step_and_the_verdict_are_the_same(tmp_path: Path, way: str) -> None:
    journal, judge = recorded(tmp_path, way)
    replay = Replay(open_run(journal), judge)
    calls = list(replay.calls())
    assert [(c.call.tool, c.diff, c.reason) for c in calls if c.sameness is not Sameness.SAME] == []
    assert replay.same_verdict()
    assert replay.notes == ()
    assert replay.attempt.state.submissions[-1].gist == FAITHFUL
    assert replay.files() == {"test_gist.py": FAITHFUL.encode()}


def test_the_one_step_with_an_edited_result_is_named(tmp_path: Path) -> None:
    journal, judge = recorded(tmp_path, "steps_exhausted")
    whole = journal.read_text().splitlines()
    ids = [e["data"]["call_id"] for e in map(json.loads, whole) if e["type"] == "tool_result"]
    for number, call_id in enumerate(ids):
        lines = []
        for line in whole:
            event = json.loads(line)
            if event["type"] == "tool_result" and event["data"]["call_id"] == call_id:
                event["data"]["text"] += "?"
            lines.append(json.dumps(event) + "\n")
        copy = tmp_path / "journal.jsonl"
        copy.write_text("".join(lines))
        calls = list(Replay(open_run(copy), judge).calls())
        assert [n for n, c in enumerate(calls) if c.sameness is not Sameness.SAME] == [number]


def test_a_harness_that_fails_now_is_told(tmp_path: Path) -> None:
    journal, judge = recorded(tmp_path, "solved")
    judge = replace(judge, runner=FakeEntrypoints(fails=True))
    calls = list(Replay(open_run(journal), judge).calls())
    assert calls[-1].sameness is Sameness.COULD_NOT_RUN
    assert "The sandbox is gone." in calls[-1].reason


def test_reader_and_export_show_the_gist(tmp_path: Path) -> None:
    journal, _ = recorded(tmp_path, "steps_exhausted")
    document = open_run(journal)
    steps = list(document.steps())
    run = document.header
    assert (run.verdict, run.score, run.submission, run.exit_status) == (
        "solved",
        1.0,
        FAITHFUL,
        "steps_exhausted",
    )
    typed = [step for step in steps if step.state.get("typed")]
    assert [step.edits[0].new for step in typed] == [WRONG, FAITHFUL]
    assert {step.kind for step in typed} == {StepKind.EDIT}
    last = next(step for step in steps if step.label == "submit_gist")
    assert (last.kind, last.state["automatic"]) == (StepKind.SUBMIT, "steps_exhausted")
    assert len(json.loads("".join(atif_text(document)))["steps"]) == len(steps)


def test_a_trial_is_no_verdict(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path / "tasks", SETTINGS)
    judge = FakeGistJudge(task, gist_answer(read_answer(task)), FakeEntrypoints())
    clock = FakeClock()
    journal = JournalWriter(tmp_path / "attempt", clock)
    attempt = Attempt(task, judge, journal, clock)
    attempt.start(Enrolment())
    attempt.call("score_gist", {"content": FAITHFUL})
    attempt.call("submit_gist", {})
    journal.close()
    document = open_run(journal.path)
    list(document.steps())
    assert (document.header.verdict, document.header.score) == ("unsolved", 0.0)
