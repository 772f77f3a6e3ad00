"""The command line without a terminal: text, JSON with a schema, and exit codes 0, 1 and 2."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from builders import CHECKS, REPAIR, build_task
from fakes import FakeRunner
from small_trees import Link, write_tar

from gistpoint import object_graph
from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.core.kinds.archive import pack_task
from gistpoint.core.kinds.folder import read_answer, write_task
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.identity import task_id
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.tasks.names import word_name
from gistpoint.core.trees import sha256_of
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def task(home: Path) -> Task:
    return build_task(home / "data" / "tasks")


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    runner = FakeRunner(CHECKS)
    monkeypatch.setattr(object_graph, "build_runner", lambda options, demo=False, **more: runner)
    return runner


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["task", "--help"], ["demo", "--help"], ["attempt", "show", "--help"]],
)
def test_help_and_version(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 0
    assert "gistpoint" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["task"],
        ["task", "new"],
        ["solve"],
        ["demo", "--speed", "0"],
        ["demo", "--speed", "nan"],
        ["solve", "x", "--role", "king"],
    ],
)
def test_mistake_in_the_call_is_exit_code_2(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage" in captured.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["task", "show", "nope"], "There is no task 'nope'."),
        (["task", "check", "nope"], "There is no task 'nope'."),
        (["attempt", "show", "nope"], "There is no attempt 'nope'."),
        (["solve", "nope"], "There is no task 'nope'."),
        (["demo", "nope"], "The demo has no task 'nope'"),
        (["task", "show", "\x1b[31mnope"], "\\x1b[31mnope"),
        (["task", "new", "x", "--pytest-args", "'"], "--pytest-args can't be split"),
    ],
)
def test_mistake_of_the_user_is_told_in_a_line_or_two(
    arguments: list[str], said: str, capsys: Captured
) -> None:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.startswith("gistpoint: ")
    assert len(captured.err.splitlines()) <= 2
    assert "\x1b" not in captured.err


@pytest.mark.parametrize(
    "command",
    ["task show", "task check", "solve", "runs", "show", "search word", "replay", "code", "reviews merge"],
)
def test_a_name_that_no_file_can_have_is_a_mistake(command: str, capsys: Captured) -> None:
    assert cli.main([*command.split(), "x" * 5_000]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_paths_prints_places_and_makes_none(home: Path, capsys: Captured) -> None:
    assert cli.main(["paths", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == "gistpoint.paths/1"
    assert all(value.startswith(str(home)) for key, value in printed.items() if key != "schema")
    assert cli.main(["paths"]) == 0
    assert "attempts\t" in capsys.readouterr().out
    assert not home.exists()


def test_places_of_the_platform_where_no_home_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GISTPOINT_HOME")
    locations = Locations.of_user()
    assert len({locations.data, locations.config, locations.cache}) == 3
    assert all("gistpoint" in str(path) for path in (locations.data, locations.config, locations.cache))


def test_empty_lists_say_what_to_do(capsys: Captured) -> None:
    assert cli.main(["task", "list"]) == 0
    assert "gistpoint demo" in capsys.readouterr().out
    assert cli.main(["attempt", "list"]) == 0
    assert "There are no attempts yet" in capsys.readouterr().out
    assert cli.main(["attempt", "list", "--json"]) == 0
    nothing = {"attempts": [], "solved": 0, "solved_by_tests": 0, "solved_to_be_read": 0, "confirmation": {}}
    assert json.loads(capsys.readouterr().out) == {"schema": "gistpoint.attempts/1", **nothing}


def test_tasks_are_listed_and_shown(task: Task, capsys: Captured) -> None:
    broken = task.folder.parent / "broken"
    broken.mkdir()
    (broken / "task.toml").write_text("format = 1")
    assert cli.main(["task", "list"]) == 0
    captured = capsys.readouterr()
    named = [task.short_id, word_name(task.id), "shop · discount removed"]
    assert captured.out.splitlines()[1].split("\t")[:5] == [*named, "remove", "shop 1.0"]
    assert captured.err.startswith("broken: ")
    assert cli.main(["task", "list", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in printed["tasks"]] == [task.id]
    assert printed["broken"][0]["folder"] == "broken"
    assert cli.main(["task", "show", task.short_id]) == 0
    shown = capsys.readouterr()
    assert shown.out.rstrip("\n") == render_brief(task).rstrip("\n")
    assert f"failing tests: {len(task.brief.failing)} (stratum 5-40)" in shown.err
    assert cli.main(["task", "show", task.short_id, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["schema"], printed["failing_stratum"]) == ("gistpoint.task/1", "5-40")


def test_shown_task_tells_no_source_and_no_answer(task: Task, capsys: Captured) -> None:
    assert cli.main(["task", "show", task.id]) == 0
    shown = capsys.readouterr().out
    assert "price - price" not in shown
    assert "shop 1.0" not in shown


def test_task_is_solved_from_standard_input(
    task: Task, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path
) -> None:
    (tmp_path / "code.py").write_text(REPAIR)
    typed(
        monkeypatch,
        "list_directory",
        "",
        "nonsense",
        "search_code def \\w+",
        '{"tool": "read_file", "arguments": {"file_path": "README.md"}}',
        '{"tool"',
        f"submit_attempt @{tmp_path / 'code.py'}",
        "list_directory",
    )
    assert cli.main(["solve", task.short_id, "--lines"]) == 0
    captured = capsys.readouterr()
    assert "[15 tool uses and 4 submissions left]" in captured.out
    assert captured.out.count("Not understood: ") == 2
    assert "Score 1.000" in captured.out
    assert captured.err.rstrip().endswith(": solved")
    attempt_id = captured.err.split()[1]
    assert cli.main(["attempt", "show", attempt_id]) == 0
    assert "outcome\tsolved" in capsys.readouterr().out
    assert cli.main(["attempt", "show", attempt_id, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["solved"], printed["score"], printed["calls"][0]["tool"]) == (True, 1.0, "list_directory")


def test_without_a_terminal_nothing_is_begun_unless_lines_is_said(
    task: Task, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: Captured, home: Path
) -> None:
    typed(monkeypatch, "list_directory")
    for command in (["solve", task.id], ["demo", "remove"]):
        assert cli.main(command) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "nothing was started" in captured.err
        assert "--lines" in captured.err
    assert not list((home / "data" / "attempts").rglob("journal.jsonl"))
    assert cli.main(["solve", task.id, "--lines"]) == 1
    attempt_id = capsys.readouterr().err.split()[1]
    journal = home / "data" / "attempts" / attempt_id / "journal.jsonl"
    before = journal.read_bytes()
    assert cli.main(["solve", attempt_id]) == 2
    assert journal.read_bytes() == before


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        ([], ["--role", "training"], "which is baseline, not training"),
        (["--role", "training"], ["--role", "baseline"], "which is training, not baseline"),
    ],
)
def test_an_attempt_is_not_resumed_with_another_role(
    first: list[str],
    then: list[str],
    said: str,
    task: Task,
    runner: FakeRunner,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    typed(monkeypatch)
    assert cli.main(["solve", task.id, "--lines", *first]) == 1
    attempt_id = capsys.readouterr().err.split()[1]
    for what in (task.id, attempt_id):
        assert cli.main(["solve", what, "--lines", *then]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert attempt_id in told
    assert cli.main(["solve", task.id, "--lines", *first]) == 1
    assert capsys.readouterr().err.split()[1] == attempt_id
    assert cli.main(["solve", task.id, "--lines", "--new", *then]) == 1
    assert capsys.readouterr().err.split()[1] != attempt_id


def test_an_attempt_is_not_resumed_for_another_participant(
    task: Task, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    typed(monkeypatch)
    assert cli.main(["solve", task.id, "--lines", "--participant", "P01"]) == 1
    attempt_id = capsys.readouterr().err.split()[1]
    assert cli.main(["solve", attempt_id, "--lines", "--participant", "P02"]) == 2
    assert "The attempt is of P01, not of P02." in capsys.readouterr().err
    assert cli.main(["solve", attempt_id, "--lines", "--participant", "P01"]) == 1
    assert cli.main(["solve", task.id, "--lines", "--participant", "P02"]) == 1
    assert attempt_id not in capsys.readouterr().err.splitlines()[-1]


def test_an_attempt_at_the_demo_is_resumed_as_the_baseline_that_it_can_not_be(
    runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    typed(monkeypatch)
    assert cli.main(["solve", "dear-tickets", "--lines"]) == 1
    attempt_id = capsys.readouterr().err.split()[1]
    assert cli.main(["solve", "dear-tickets", "--lines", "--role", "baseline"]) == 1
    assert capsys.readouterr().err.split()[1] == attempt_id


def test_a_damaged_attempt_is_shown_with_exit_code_1_and_not_resumed(
    task: Task, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: Captured, home: Path
) -> None:
    typed(monkeypatch, "list_directory", "list_directory shop")
    assert cli.main(["solve", task.id, "--lines"]) == 1
    attempt_id = capsys.readouterr().err.split()[1]
    assert cli.main(["attempt", "show", attempt_id]) == 0
    assert "its head was kept here from the start" in capsys.readouterr().out
    journal = home / "data" / "attempts" / attempt_id / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    for damaged, said in (
        (lines[:2], "It was cut off"),
        (
            [*lines[:2], lines[2].replace(b"list_directory", b"lost_directory"), *lines[3:]],
            "breaks at line 4",
        ),
        ([*lines[:3], b"\n", *lines[4:]], "Line 4 is not an event"),
    ):
        journal.write_bytes(b"".join(damaged))
        assert cli.main(["attempt", "show", attempt_id]) == 1
        assert said in capsys.readouterr().out
        assert cli.main(["attempt", "show", attempt_id, "--json"]) == 1
        assert said in json.loads(capsys.readouterr().out)["problem"]
        assert cli.main(["solve", attempt_id, "--lines"]) == 2
        told = capsys.readouterr().err
        assert "can be read, but not resumed" in told
        assert f"`gistpoint review {attempt_id}`" in told
        assert journal.read_bytes() == b"".join(damaged)
    typed(monkeypatch)
    assert cli.main(["solve", task.id, "--lines"]) == 1
    assert f"attempt {attempt_id} can only be read" in capsys.readouterr().err


def test_lines_are_read_as_the_console_reads_them(
    task: Task, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    typed(
        monkeypatch,
        "read_function shop/prices.py discount",
        "read_function file_path=shop/prices.py function_name=Basket.add",
        "read_function total",
        "read_file shop/prices.py::discount",
        "raed_file README.md",
        '{"tool": "read_file"',
        '{"tool": "read_file", "arguments": ["README.md"]}',
        '{"tool": 3, "arguments": {}}',
        '{"a": ' * 5_000,
        '{"tool": "read_file", "arguments": {"file_path": NaN}}',
        '{"tool": "read_fil", "arguments": {"file_path": "README.md"}}',
        '{"tool": "read_file", "arguments": {"path": "README.md"}}',
    )
    assert cli.main(["solve", task.id, "--lines"]) == 1
    captured = capsys.readouterr()
    assert captured.out.count("Not understood: ") == captured.out.count("Nothing was called or spent.") == 8
    assert captured.out.count("Did you mean this? ") == 2
    assert "Did you mean this? read_function discount shop/prices.py" in captured.out
    assert "Did you mean this? read_file README.md" in captured.out
    assert cli.main(["attempt", "show", captured.err.split()[1], "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [(call["tool"], call["arguments"], call["refused"]) for call in printed["calls"]] == [
        ("read_function", {"function_name": "discount", "file_path": "shop/prices.py"}, False),
        ("read_function", {"function_name": "Basket.add", "file_path": "shop/prices.py"}, False),
        ("read_fil", {"file_path": "README.md"}, True),
        ("read_file", {"path": "README.md"}, True),
    ]
    assert printed["tool_uses_left"] == 12
    assert printed["comforts"] == {"question": 8}


def test_a_file_of_code_that_cannot_be_read_is_reported_and_costs_nothing(
    task: Task, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path
) -> None:
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe")
    (tmp_path / "code.py").write_text(REPAIR)
    lines = [
        f"submit_attempt @{tmp_path / name}" for name in ("missing.py", "binary.py", "", "a\0b", "code.py")
    ]
    typed(monkeypatch, *lines)
    assert cli.main(["solve", task.id, "--lines"]) == 0
    printed = capsys.readouterr().out
    assert f"Line 1: {tmp_path / 'missing.py'} can't be read: No such file or directory." in printed
    assert f"Line 2: {tmp_path / 'binary.py'} can't be read as text in UTF-8." in printed
    assert printed.count("Nothing was called or spent.") == 4
    assert "[15 tool uses and 3 submissions left]" in printed


def test_lines_that_are_not_understood_are_numbered_and_help_is_free(
    task: Task, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    typed(monkeypatch, "help", "", " ? ", "nonsense", "list_directory", '{"tool"')
    assert cli.main(["solve", task.id, "--lines"]) == 1
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert [line.partition(" Not understood: ")[0] for line in lines if " Not understood: " in line] == [
        "Line 4:", "Line 6:",
    ]  # fmt: skip
    for beginning in ("read_function function_name file_path: ", "submit_attempt func_code: "):
        assert len([line for line in lines if line.startswith(beginning)]) == 2
    assert cli.main(["attempt", "show", captured.err.split()[1], "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert ([call["tool"] for call in printed["calls"]], printed["tool_uses_left"]) == (
        ["list_directory"],
        15,
    )


def test_unfinished_attempt_is_gone_on_with_unless_another_is_asked_for(
    task: Task, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    ids = []
    for more in ([], [], ["--new"]):
        typed(monkeypatch, "list_directory")
        assert cli.main(["solve", task.id, "--lines", *more]) == 1
        captured = capsys.readouterr()
        assert "unfinished" in captured.err
        ids.append(captured.err.split()[1])
    assert ids[0] == ids[1] != ids[2]
    typed(monkeypatch, "list_directory")
    assert cli.main(["solve", ids[0], "--lines"]) == 1
    assert "[13 tool uses" in capsys.readouterr().out


def test_task_that_only_says_it_is_the_demo_gets_no_exception_from_consent(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, tmp_path: Path
) -> None:
    asked: list[bool] = []

    def refuse(options: object, demo: bool = False, **more: object) -> FakeRunner:
        asked.append(demo)
        raise SandboxUnavailableError("No isolation works here.")

    monkeypatch.setattr(object_graph, "build_runner", refuse)
    typed(monkeypatch)
    hostile = build_task(tmp_path, Mode.REMOVE, demo=True)
    pack_task(hostile.folder, tmp_path / "hostile.tar.zst")
    for command in (["solve", "--lines"], ["task", "check"]):
        assert cli.main([*command, str(tmp_path / "hostile.tar.zst")]) == 2
    ours = build_task(home / "cache" / "demo", Mode.REMOVE, demo=True)
    assert cli.main(["task", "check", str(ours.folder)]) == 2
    assert asked == [False, False, True]


def test_a_tree_with_an_entry_below_a_link_is_refused_wherever_it_is_opened(
    task: Task, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    write_tar({"lnk": Link("/etc"), "lnk/canary": "x"}, task.tree_path)
    answer = read_answer(task)
    digest = sha256_of(task.tree_path)
    identity = task_id(
        mode=task.mode, source_name=task.source.name, source_revision=task.source.revision, tree_sha256=digest,
        targets=answer.targets, lock=(), ids_sha256=task.suite.ids_sha256,
    )  # fmt: skip
    write_task(replace(task, id=identity, tree_sha256=digest), answer)
    typed(monkeypatch)
    for command in (["solve", "--lines"], ["task", "check"]):
        assert cli.main([*command, str(task.folder)]) == 2
        assert "tree.tar contains 'lnk/canary' below 'lnk', which is not a folder" in capsys.readouterr().err


def test_check_prints_findings_and_is_negative_where_one_failed(
    task: Task, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(
        "gistpoint.object_graph.build_runner", lambda options, demo=False, **more: FakeRunner(CHECKS)
    )
    assert cli.main(["task", "check", task.id, "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    found = {check["name"]: check["passed"] for check in printed["checks"]}
    assert printed["schema"] == "gistpoint.check/1"
    assert not printed["passed"]
    assert found["identity"]
    assert not found["sandbox"]
    assert found["original scores 1"]


def test_demo_lists_its_tasks_where_there_is_no_terminal(capsys: Captured) -> None:
    assert cli.main(["demo"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:4]]
    assert [row[2] for row in rows] == ["remove", "discovery", "discovery ×2"]


def test_interrupt_and_broken_pipe_end_quietly(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def stop() -> Locations:
        raise KeyboardInterrupt

    monkeypatch.setattr(Locations, "of_user", stop)
    assert cli.main(["paths"]) == 130
    assert "stopped" in capsys.readouterr().err
