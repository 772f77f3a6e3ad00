"""No file and no path breaks a tool, and every solver learns the task's limit for `read_file`."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import build_task
from small_trees import Link, ask, context_of

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.tasks.model import Mode, ToolLimits
from gistpoint.core.tools.browsing import BROWSING


@pytest.mark.parametrize(
    "data", [b"\0\1\2", b"\xff\xfe\xfd", b"\x89PNG\r\n\x1a\n\0", bytes(range(256)) * 300]
)
@pytest.mark.parametrize("path", ["data.bin", "module.py"])
def test_binary_file_is_refused_by_every_tool(tmp_path: Path, data: bytes, path: str) -> None:
    context = context_of({path: data, "good.py": "hit = 1\n"}, tmp_path)
    for tool in BROWSING:
        values = {"pattern": "hit", "path": "", "file_path": path, "function_name": "f"}
        output = ask(context, tool.name, **{a.name: values[a.name] for a in tool.arguments})
        assert output.refused is (tool.name not in ("list_directory", "search_code"))
    assert "good.py" in ask(context, "search_code", pattern="hit").text


@pytest.mark.parametrize("mode", [Mode.REMOVE, Mode.DISCOVERY])
def test_limit_of_read_file_is_a_number_of_characters_that_the_brief_states(
    tmp_path: Path, mode: Mode
) -> None:
    task = build_task(tmp_path, mode)
    assert f"If a file has more than {task.limits.read_file_characters} characters" in render_brief(task)
    context = context_of(
        {"a.py": "def f():\n    return 1\n"}, tmp_path, limits=ToolLimits(read_file_characters=10)
    )
    assert "more than the limit of 10" in ask(context, "read_file", file_path="a.py").text


@pytest.mark.parametrize(
    "path",
    [
        "../secret.py",
        "/etc/passwd",
        "pkg/../../secret.py",
        "link.py",
        "up/secret.py",
        "pkg/\0",
        "~root/x",
        "..\\secret.py",
        "./../secret.py",
    ],
)
def test_no_tool_leaves_the_workspace(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.py").write_text("def secret():\n    return 'out'\n")
    files = {
        "pkg/m.py": "def f():\n    return 1\n",
        "link.py": Link("../secret.py"),
        "up": Link(".."),
        "abs": Link("/"),
    }
    context = context_of(files, tmp_path)
    calls = [
        ("list_directory", {"path": path}),
        ("read_file", {"file_path": path}),
        ("list_file_functions", {"file_path": path}),
        ("read_function", {"function_name": "secret", "file_path": path}),
        (
            "replace_function",
            {"func_code": "def secret():\n    return 1", "func_name": "secret", "file_path": path},
        ),
    ]
    for name, arguments in calls:
        output = ask(context, name, **arguments)
        assert output.refused
        assert "'out'" not in output.text
    assert "0 matching lines" in ask(context, "search_code", pattern="secret").text
    assert (tmp_path / "secret.py").read_text() == "def secret():\n    return 'out'\n"


def test_attempt_survives_every_refusal(tmp_path: Path) -> None:
    from fakes import FakeClock, FakeRunner
    from recorders import Memory

    from gistpoint.core.kinds.folder import read_answer
    from gistpoint.core.kinds.repair.judge import RepairJudge

    task = build_task(tmp_path, Mode.DISCOVERY, extra_files={"tests/bad.py": "x = '\0'\n"})
    attempt = Attempt(
        task, RepairJudge(task, read_answer(task), FakeRunner({})), Memory(FakeClock()), FakeClock()
    )
    attempt.start(Enrolment())
    for _ in range(3):
        assert attempt.call("read_file", {"file_path": "tests/bad.py"}).refused
    assert attempt.state.remaining.tool_uses == 13
