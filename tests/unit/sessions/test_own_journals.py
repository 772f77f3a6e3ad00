"""An attempt recorded by our own engine and journal is a run like any other."""

from __future__ import annotations

from pathlib import Path

from builders import CHECKS, build_task
from fakes import FakeClock, FakeRunner

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.attempts.judging import Judge
from gistpoint.core.tasks.folder import read_answer
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.runs.listing import list_runs
from gistpoint.sessions.runs.model import Actor, StepKind
from gistpoint.sessions.runs.opening import open_run

CODE = "def discount(price, percent):\n    return price - price * percent // 100\n"


def test_a_recorded_attempt_opens(tmp_path: Path) -> None:
    task = build_task(tmp_path / "tasks")
    clock = FakeClock()
    store = AttemptStore(tmp_path / "attempts", clock, "test")
    recorded = store.start(task, Judge(task, read_answer(task), FakeRunner(CHECKS)), Enrolment(participant="p7"))
    clock.advance(2_000)
    shown = recorded.attempt.call("read_file", {"file_path": "shop/prices.py"}, thought="look")
    clock.advance(3_000)
    recorded.attempt.call("submit_attempt", {"func_code": CODE})
    recorded.close()

    (listed,) = list_runs([tmp_path / "attempts"])
    assert listed.header is not None
    document = open_run(Path(listed.name).parent)
    steps = list(document.steps())
    run = document.header
    assert (run.format, run.actor, run.agent, run.task) == ("gistpoint", Actor.PERSON, "p7", task.id)
    assert (run.verdict, run.exit_status, run.submissions, run.duration_s) == ("solved", "solved", 1, 5.0)
    assert run.submission.strip() == CODE.strip()
    calls = [step for step in steps if step.calls]
    assert [step.kind for step in calls] == [StepKind.VIEW, StepKind.SUBMIT]
    assert (calls[0].thought, calls[0].results[0].text) == ("look", shown.text)
    assert calls[1].state["score"] == {"score": 1.0, "solved": True, "changed": ["shop/prices.py::discount"]}
    assert [step.kind for step in steps if step.kind in (StepKind.UNKNOWN, StepKind.DAMAGED)] == []
    assert not document.warnings


def test_malformed_calls_are_shown_as_they_came(tmp_path: Path) -> None:
    task = build_task(tmp_path / "tasks")
    store = AttemptStore(tmp_path / "attempts", FakeClock(), "test")
    recorded = store.start(task, Judge(task, read_answer(task), FakeRunner(CHECKS)), Enrolment(actor="model"))
    recorded.attempt.call("read_file", None, raw="<file_path>README.md</file_path>")
    recorded.attempt.call("grep", {"pattern": "x"})
    recorded.close()
    calls = [step for step in open_run(recorded.journal.path.parent).steps() if step.calls]
    assert [(step.calls[0].arguments, step.calls[0].parsed) for step in calls] == [
        ("<file_path>README.md</file_path>", None),
        ('{"pattern": "x"}', {"pattern": "x"}),
    ]
    assert [step.state["malformed"] for step in calls] == ["not_json", "unknown_tool"]
    assert all({"refused", "error"} <= step.flags for step in calls)
