"""A third kind of task is read, attempted, judged, resumed, solved line by line and checked like others."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from assertion_kind import RIGHT, Statement, assertion_kind, assertion_task, holds, statement_of
from builders import build_services
from fakes import FakeRunner

from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.checking import check_task
from gistpoint.core.kinds.commandline import spelled
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.registry import submits
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.tui.commands.solve_lines import solve_in_line_mode

__all__ = ["assertion_kind"]
pytestmark = pytest.mark.usefixtures("assertion_kind")


def test_it_is_read_from_its_folder_with_its_answer(tmp_path: Path) -> None:
    task = assertion_task(tmp_path)
    assert statement_of(task) == Statement("assert total(1) == 2", "shop/prices.py")
    assert read_answer(task).of_kind == RIGHT
    file = task.folder / TASK_FILE
    file.write_text(file.read_text().replace("total(1) == 2", "total(1) == 1"))
    with pytest.raises(TaskError, match="'id' does not match"):
        read_task(task.folder)


def test_it_is_attempted_judged_kept_and_taken_up_again(tmp_path: Path) -> None:
    task = assertion_task(tmp_path)
    services = build_services(tmp_path, runner=FakeRunner({"holds": holds}))
    held = services.start(task)
    attempt = held.attempt
    assert "assert total(1) == 2" in attempt.state.header.brief
    assert "return price" in attempt.call("read_file", {"file_path": "shop/prices.py"}).text
    wrong = attempt.call("rewrite_file", {"content": "def total(price):\n    return 0\n"})
    assert wrong.text == "The assertion does not hold.\n[4 uses left]"
    assert wrong.found is attempt.found[wrong.call_id]
    assert attempt.call("rewrite_file", {"content": ""}).refused
    held.close()
    again = services.attempts.resume(attempt.state.attempt_id, task, services.judge_for(task))
    assert again.attempt.files() == {"shop/prices.py": b"def total(price):\n    return 0\n"}
    assert again.attempt.call("rewrite_file", {"content": RIGHT}).text.startswith("The assertion holds.")
    again.close()
    (summary,) = services.attempts.summaries()
    assert (summary.mode, summary.result.value, summary.state.ending and summary.state.ending.reason) == (
        "assertion", "solved", "solved",
    )  # fmt: skip


def test_it_is_solved_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = assertion_task(tmp_path)
    services = build_services(tmp_path, runner=FakeRunner({"holds": holds}))
    (tmp_path / "right.py").write_text(RIGHT)
    lines = f"help\nsearch_code total\nrewrite_file @{tmp_path / 'right.py'}\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert solve_in_line_mode(services, task) == 0
    printed = capsys.readouterr().out
    assert "Make this true" in printed
    assert "rewrite_file content: Write the one file" in printed
    assert "The assertion holds." in printed


def test_its_checks_and_its_tools_are_known_everywhere(tmp_path: Path) -> None:
    task = assertion_task(tmp_path)
    services = build_services(tmp_path, runner=FakeRunner({"holds": holds}))
    findings = list(check_task(services.judge_for(task), read_answer(task)))
    assert [(one.name, one.passed) for one in findings] == [
        ("identity", True),
        ("brief", True),
        ("assertion", True),
    ]
    assert submits("rewrite_file")
    assert spelled("rewrite_file", {"content": RIGHT}) == "rewrite_file"
