"""The progress that a run shows while it is executed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from agent_runs import SOLVES, TALKS, Home
from rich.console import Console

from gistpoint.core.attempts.state import AttemptState
from gistpoint.sessions.agentruns.jobs import JobStatus
from gistpoint.sessions.agentruns.runner import AgentRunner, JobReport
from gistpoint.sessions.tasks import TaskStore, TaskTitles
from gistpoint.tui.commands.agent_progress import JobLines, JobTable


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


TITLES = TaskTitles(TaskStore())


def drawn(table: JobTable, states: dict[str, AttemptState], width: int, height: int = 40) -> str:
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(table._table(states, width, height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_shows_each_job_and_what_is_at_work_first(home: Home) -> None:
    run = home.run(home.task(1), home.task(2), home.task(3))
    table, seen = JobTable(run, TITLES), list[str]()

    def changed(report: JobReport) -> None:
        if report.job.status is JobStatus.BEGUN and report.state is not None and report.state.turns:
            seen.append(drawn(table, runner.states, 120))

    runner = AgentRunner(run, home.ports, at_once=1, on_job=changed)
    runner.work()
    assert "0 of 3 ended, 0 solved since this start" in seen[0]
    assert "list_directory" in seen[1]
    first, second = (seen[1].index(words) for words in ("model working", "queued"))
    assert first < second
    after = drawn(table, runner.states, 120)
    assert "3 of 3 ended, 3 solved since this start" in after
    assert after.count("✔ solved") == 3
    assert "✔ solved" in drawn(table, runner.states, 60)
    assert drawn(table, runner.states, 120, height=7).count("✔ solved") == 1


def test_a_line_is_printed_once_for_each_job_that_is_over(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    run = home.run(home.task(1))
    lines = JobLines(run, TITLES)
    home.script = TALKS
    AgentRunner(run, home.ports, on_job=lines.changed).work()
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 1
    assert " job 1 of 1, " in err[0]
    assert "✘ gave_up: no_tool_call, 3 turns, 0 calls, 330 tokens" in err[0]


def test_text_from_an_endpoint_is_shown_and_not_obeyed(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    from gistpoint.core.chat import ChatFailure, ChatProblem

    run = home.run(home.task(1))
    home.script = (SOLVES[0], ChatFailure(ChatProblem.REJECTED, "\x1b[31mred\x1b[0m [bold]x"))
    lines = JobLines(run, TITLES)
    AgentRunner(run, home.ports, on_job=lines.changed).work()
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "red" in err
