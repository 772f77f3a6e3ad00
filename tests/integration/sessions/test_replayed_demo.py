"""Attempts at the demo's tasks, recorded and replayed with real runs of the tests."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment, Role
from gistpoint.core.demo.play import play
from gistpoint.core.demo.tasks import demo_task, demo_tasks, playthrough
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.state import gist_of
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode, Target
from gistpoint.sandbox.backends.plain import PlainBackend
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.gistruns.runner import GistRunner
from gistpoint.sandbox.testruns import SuiteRunner
from gistpoint.sessions.journal import JournalWriter
from gistpoint.sessions.replay.replaying import Replay, Sameness
from gistpoint.sessions.runs.opening import open_run

# The tests run in one worker, so that only one attempt at each task is made.
pytestmark = pytest.mark.xdist_group("replayed demo")
RAISING = """
import tempfile, time
started = time.time()
raise RuntimeError(f"{object()} in {tempfile.mkdtemp()}/a, after {time.time() - started:.6f}s")
"""
"""The body of a wrong repair whose failure message differs in every run."""


def submit(attempt: Attempt, target: Target, code: str) -> str:
    if attempt.task.mode is Mode.REMOVE:
        return attempt.call("submit_attempt", {"func_code": code}).text
    where = {"func_name": target.qualname, "file_path": target.path}
    return attempt.call("replace_function", {"func_code": code, **where}).text


def raising(original: str) -> str:
    tree = ast.parse(original)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = ast.parse(RAISING).body
    return ast.unparse(tree)


def worked_through(attempt: Attempt, targets: tuple[Target, ...]) -> None:
    """Browse, be refused, repair wrongly, then correctly."""
    first = targets[0]
    attempt.call("list_directory", {})
    attempt.call("search_code", {"pattern": r"def \w+\("})
    attempt.call("read_file", {"file_path": "nowhere.py"})
    attempt.call("list_file_functions", {"file_path": first.path})
    attempt.call("read_function", {"function_name": first.qualname, "file_path": first.path})
    assert "Score" in submit(attempt, first, raising(first.original))
    attempt.call("read_function", {"function_name": first.qualname, "file_path": first.path})
    for target in targets:
        submit(attempt, target, target.original)


REPAIRS = [demo.name for demo in demo_tasks() if demo.mode is Mode.REMOVE or len(demo.targets) > 1]
"""The tasks with a removed function and with two corrupted ones; the task with one would add no new steps."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, RepairJudge]]:
    """A function that returns the attempt at a task by its name, made at the first call."""
    return cache(lambda name: record(name, tmp_path_factory.mktemp("recorded")))


@pytest.fixture(params=REPAIRS)
def recorded(
    request: pytest.FixtureRequest, made: Callable[[str], tuple[Path, RepairJudge]]
) -> tuple[Path, RepairJudge]:
    return made(request.param)


def record(name: str, folder: Path) -> tuple[Path, RepairJudge]:
    task = demo_task(name, folder / "tasks")
    judge = RepairJudge(
        task, read_answer(task), SuiteRunner(PlainBackend(), EnvironmentStore(folder / "environments"))
    )
    journal = JournalWriter(folder / "attempt", SystemTime())
    attempt = Attempt(task, judge, journal, SystemTime())
    attempt.start(Enrolment(), budgets=Budgets(12, 5))
    worked_through(attempt, judge.answer.targets)
    assert attempt.state.solved
    journal.close()
    return journal.path, judge


def test_every_call_and_the_verdict_are_the_same(recorded: tuple[Path, RepairJudge]) -> None:
    journal, judge = recorded
    replay = Replay(open_run(journal), judge)
    calls = list(replay.calls())
    assert [c.diff for c in calls if c.sameness is not Sameness.SAME] == []
    assert len(calls) == 7 + len(judge.answer.targets)
    assert all("object at 0x" in c.text for c in calls if not c.exact)
    assert replay.same_verdict()
    assert replay.verdict_now().solved
    assert replay.attempt.state.budgets == Budgets(12, 5)


@pytest.mark.parametrize("recorded", ["seats-together"], indirect=True)
def test_the_one_call_with_an_edited_result_is_named(
    recorded: tuple[Path, RepairJudge], tmp_path: Path
) -> None:
    journal, judge = recorded
    number = 6
    lines = []
    for line in journal.read_bytes().splitlines():
        event = json.loads(line)
        if event["type"] == "tool_result" and event["data"]["call_id"] == f"call-{number}":
            event["data"]["text"] = event["data"]["text"].replace("s", "z", 1)
        lines.append(json.dumps(event) + "\n")
    copy = tmp_path / "journal.jsonl"
    copy.write_text("".join(lines))
    calls = list(Replay(open_run(copy), judge).calls())
    assert [n for n, c in enumerate(calls, 1) if c.sameness is not Sameness.SAME] == [number]
    assert calls[number - 1].sameness is Sameness.DIFFERS


def test_the_recorded_gist_is_faithful_and_comes_out_the_same_again(tmp_path: Path) -> None:
    name, steps = playthrough("gist")
    task = demo_task(name, tmp_path / "tasks")
    runner = GistRunner(PlainBackend(), EnvironmentStore(tmp_path / "environments"))
    judge = GistJudge(task, gist_answer(read_answer(task)), runner)
    journal = JournalWriter(tmp_path / "attempt", SystemTime())
    attempt = Attempt(task, judge, journal, SystemTime())
    attempt.start(Enrolment(role=Role.DEMO))
    for _ in play(attempt, steps, lambda seconds: None):
        pass
    journal.close()
    metrics = attempt.state.submissions[-1].metrics
    assert attempt.state.ending is not None
    assert attempt.state.ending.reason == "solved"
    assert metrics["self_contained"]
    assert metrics["line_execution"]["rate"] > 95
    assert metrics["line_existence"]["rate"] > 95
    assert not any(metrics["flags"].values())
    wrong = gist_of(attempt.state).trials[0].score["error"]
    assert "format_duration" in wrong["evidence"]

    replay = Replay(open_run(journal.path), judge)
    calls = list(replay.calls())
    assert [(c.call.tool, c.diff, c.reason) for c in calls if c.sameness is not Sameness.SAME] == []
    assert len(calls) == len(attempt.state.calls)
    assert replay.same_verdict()
