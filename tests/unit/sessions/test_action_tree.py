"""The first actions of many runs of one task, as a tree."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from screens.review.reviewing import TURNS, command, mini_run

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.records.model import Actor, ByteRange, FileEdit, Result, Run, RunCall, Step, StepKind
from gistpoint.sessions.runs.action_tree import (
    MOST_ACTIONS,
    Action,
    RunActions,
    actions_in,
    actions_of,
    outcomes_of,
    pair_of,
    rows_of,
    run_actions,
    tree_of,
    with_common_paths,
)
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.single_calls import steps_of_calls
from gistpoint.tui import cli


def run_of(name: str, actions: str, verdict: str = "") -> RunActions:
    """Return a run that reads files, each named by a letter of `actions`."""
    return RunActions(
        name,
        Run("", verdict=verdict),
        tuple(Action("read", path) for path in actions),
        tuple(range(len(actions))),
    )


def step(kind: StepKind, tool: str = "tool", edit: FileEdit | None = None, **arguments: Any) -> Step:
    call = RunCall("c", tool, json.dumps(arguments), arguments)
    edits = (edit,) if edit is not None else ()
    return Step(0, Actor.AGENT, kind, ByteRange("", 0, 1), calls=(call,), edits=edits)


def drawn(runs: list[RunActions], folded: set[int] | None = None) -> list[tuple[int, str, list[int]]]:
    rows = rows_of(tree_of(runs), folded or set())
    return [(row.depth, "".join(a.path for a in row.node.actions), list(row.node.runs)) for row in rows]


def test_runs_share_a_node_until_they_part_ways() -> None:
    runs = [
        run_of("1", "abcd"),
        run_of("2", "abxy"),
        run_of("3", "abcz"),
        run_of("4", "ab"),
        run_of("5", "abcd"),
    ]
    assert drawn(runs) == [
        (0, "ab", [0, 1, 2, 3, 4]),
        (1, "c", [0, 2, 4]),
        (2, "d", [0, 4]),
        (2, "z", [2]),
        (1, "xy", [1]),
        (1, "", [3]),
    ]
    assert drawn(runs, {1}) == [
        (0, "ab", [0, 1, 2, 3, 4]), (1, "c", [0, 2, 4]), (1, "xy", [1]), (1, "", [3]),
    ]  # fmt: skip
    assert drawn([run_of("1", "x"), run_of("2", "y"), run_of("3", "y")]) == [
        (0, "", [0, 1, 2]), (1, "y", [1, 2]), (1, "x", [0]),
    ]  # fmt: skip
    assert drawn(runs[:1]) == [(0, "abcd", [0])]
    assert drawn([]) == [(0, "", [])]


def test_a_node_has_the_outcomes_of_its_runs_and_a_pair_that_ended_differently() -> None:
    runs = [
        run_of("1", "abc", "unsolved"), run_of("2", "abd", "unsolved"), run_of("3", "abc", "solved"), run_of("4", "x"),
    ]  # fmt: skip
    root = tree_of(runs)
    assert str(outcomes_of(root, runs)) == "1 of 3 solved"
    inner = root.children[0]
    assert str(outcomes_of(inner, runs)) == "1 of 3 solved"
    assert pair_of(inner, runs) == (2, 1)
    assert pair_of(root, runs) == (0, 3)
    assert pair_of(inner.children[0], runs) is None


def test_many_long_runs_that_leave_one_by_one_make_no_deep_recursion() -> None:
    actions = [Action("read", str(number)) for number in range(1_200)]
    runs = [RunActions(str(n), Run(""), tuple(actions[:n]), tuple(range(n))) for n in range(1, 1_200)]
    rows = rows_of(tree_of(runs))
    assert max(row.depth for row in rows) == 1_198
    assert sum(len(row.node.runs) == 1 for row in rows) >= 1_199


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (step(StepKind.VIEW, path="src/fares.py"), "read src/fares.py"),
        (step(StepKind.SEARCH, pattern="x"), "search"),
        (step(StepKind.TEST, command="python -m pytest -q"), "run tests"),
        (step(StepKind.EXECUTE, command="cd /testbed && FOO=1 /usr/bin/python a.py"), "run python"),
        (step(StepKind.TOOL, "web_fetch", url="u"), "call web_fetch"),
        (step(StepKind.SUBMIT), "submit"),
        (
            step(
                StepKind.EDIT,
                edit=FileEdit("fares.py", "def fare(a):\n    return 1", "def fare(a):\n    return 2"),
            ),
            "edit fares.py::fare",
        ),
        (
            step(StepKind.EDIT, edit=FileEdit("fares.py", "def fare(): 1\ndef other(): 2", "")),
            "edit fares.py",
        ),
        (step(StepKind.EDIT, edit=FileEdit("fares.py", None, "def fare(): 1")), "edit fares.py"),
    ],
)
def test_an_action_is_the_work_and_its_target(found: Step, expected: str) -> None:
    assert [*map(str, actions_in(found))] == [expected]


def test_only_steps_of_the_solver_with_a_call_are_actions_and_a_repetition_counts_once() -> None:
    said = Step(0, Actor.AGENT, StepKind.MESSAGE, ByteRange("", 0, 1))
    of_user = Step(0, Actor.USER, StepKind.EXECUTE, ByteRange("", 0, 1))
    read = step(StepKind.VIEW, path="a.py")
    found = [str(action) for _, action in actions_of([said, read, of_user, read, said, read])]
    assert found == ["read a.py"]


def test_a_file_has_one_name_however_runs_write_it() -> None:
    paths = (
        "/testbed/src/fares.py",
        "src/fares.py",
        "tests/a/conftest.py",
        "tests/b/conftest.py",
        "/x/only.py",
    )
    runs = [RunActions(path, Run(""), (Action("read", path),), (0,)) for path in paths]
    names = [run.actions[0].path for run in with_common_paths(runs)]
    assert names == ["fares.py", "fares.py", "tests/a/conftest.py", "tests/b/conftest.py", "only.py"]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        # Two files of one run
        ([["conftest.py", "tests/conftest.py"]], [["conftest.py", "tests/conftest.py"]]),
        ([["/x/b.py", "/b.py"]], [["/x/b.py", "/b.py"]]),
        ([["b.py", "a/b.py", "c/b.py"]], [["b.py", "a/b.py", "c/b.py"]]),
        # A path that fits several files
        ([["b.py"], ["a/b.py"], ["c/b.py"]], [["b.py"], ["a/b.py"], ["c/b.py"]]),
        # Relative and absolute
        ([["/t/a/b.py", "a/b.py", "./a/b.py"]], [["b.py", "b.py", "b.py"]]),
        ([["b.py", "a/b.py", "/t/b.py", "/t/a/b.py"]], [["b.py", "a/b.py", "b.py", "a/b.py"]]),
        ([["a/b.py", "b.py"], ["/t/a/b.py"]], [["a/b.py", "b.py"], ["a/b.py"]]),
        # Different folders of different runs
        ([["b.py"], ["a/b.py"], ["/t/a/b.py"]], [["b.py"], ["b.py"], ["b.py"]]),
        ([["a\\b.py"], ["C:\\t\\a\\b.py"]], [["b.py"], ["b.py"]]),
    ],
)
def test_different_files_keep_different_names(runs: list[list[str]], expected: list[list[str]]) -> None:
    found = with_common_paths(
        [RunActions("", Run(""), tuple(Action("read", path) for path in paths), ()) for paths in runs]
    )
    assert [[action.path for action in run.actions] for run in found] == expected


def test_a_long_run_is_compared_up_to_a_limit(tmp_path: Path) -> None:
    turns = [command(f"cat f{n % 7}.py", "x") for n in range(MOST_ACTIONS + 5)]
    document = open_run(mini_run(tmp_path / "long.traj.json", turns))
    found = run_actions("long", document, document.header)
    assert (len(found.actions), found.is_cut) == (MOST_ACTIONS, True)


def test_trees_are_printed_for_each_task_as_text_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, turns in (("a", TURNS), ("b", TURNS[:4]), ("c", (TURNS[0], *TURNS[2:]))):
        mini_run(tmp_path / f"{name}.traj.json", turns, task="mean")
    assert cli.main(["runs", "compare", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mean: 3 runs"
    assert [line.split()[0] for line in lines[1:]] == ["3", "2", "1", "1", "1"]
    assert "read stats.py → run tests → edit stats.py" in lines[2]
    assert cli.main(["runs", "compare", str(tmp_path), "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["tasks"]
    assert [node["parent"] for node in task["nodes"]] == [None, 0, 1, 1, 0]
    assert task["runs"][0]["steps"][:2] == [3, 4]
    assert cli.main(["runs", "compare", str(tmp_path / "none")]) == 2


def several(*calls: RunCall, edits: tuple[FileEdit, ...] = ()) -> Step:
    return Step(0, Actor.AGENT, kind_of(calls), ByteRange("", 0, 1), calls=calls, edits=edits)


def test_a_query_chooses_the_runs_that_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mini_run(tmp_path / "a.traj.json", TURNS)
    mini_run(tmp_path / "b.traj.json", TURNS[:2])
    assert cli.main(["runs", "compare", str(tmp_path), "--where", "edited", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [Path(run["run"]).name for task in found["tasks"] for run in task["runs"]] == ["a.traj.json"]
    assert cli.main(["runs", "compare", str(tmp_path), "--where", "nothing:at:all("]) == 2


def called(tool: str, **arguments: Any) -> RunCall:
    return RunCall(f"{tool}{arguments}", tool, json.dumps(arguments), arguments)


def test_each_call_of_a_step_is_an_action_as_if_it_were_a_step() -> None:
    calls = (
        called("read", path="a.py"),
        called("bash", command="grep -n x b.py"),
        called("edit", path="a.py", oldText="def f():", newText="def f(x):"),
        called("edit", path="c.py", oldText="1", newText="2"),
        called("bash", command="python -m pytest -q"),
    )
    together = several(*calls, edits=edits_of(calls))
    expected = ["read a.py", "search", "edit a.py::f", "edit c.py", "run tests"]
    assert [*map(str, actions_in(together))] == expected
    alone = [several(call, edits=edits_of((call,))) for call in calls]
    assert [str(action) for _, action in actions_of(alone)] == expected
    others = replace(together, actor=Actor.ENVIRONMENT)
    assert [*actions_in(others)] == []


def test_calls_that_were_not_run_are_no_work() -> None:
    calls = (called("edit", path="a.py", oldText="1", newText="2"), called("bash", command="ls"))
    refused = replace(several(*calls), kind=StepKind.ERROR)
    assert [*map(str, actions_in(refused))] == ["call edit", "call bash"]


def test_results_belong_to_calls_by_id_or_by_place() -> None:
    calls = (RunCall("", "read", "a"), RunCall("", "read", "b"))
    by_place = replace(several(*calls), results=(Result("", "1"), Result("", "2")))
    assert [one.results[0].text for one in steps_of_calls(by_place)] == ["1", "2"]
    by_id = replace(several(called("x"), called("y")), results=(Result("y{}", "2"), Result("x{}", "1")))
    assert [one.results[0].text for one in steps_of_calls(by_id)] == ["1", "2"]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ('"/a/b.py"', "read /a/b.py"),
        ("'b.py'", "read b.py"),
        ("my file.py", 'read "my file.py"'),
        ('a"b.py', r'read "a\"b.py"'),
        ("a\n\x1b[31mb.py", r'read "a\n\u001b[31mb.py"'),
        ("a → b.py", 'read "a → b.py"'),
    ],
)
def test_a_name_of_a_file_is_one_word_of_its_line(path: str, shown: str) -> None:
    assert [*map(str, actions_in(several(called("read", path=path))))] == [shown]
    redirected = several(called("bash", command="cat > 'my file.txt' <<EOF\n1\nEOF"))
    assert [*map(str, actions_in(redirected))] == ['edit "my file.txt"']
