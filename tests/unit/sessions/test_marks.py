"""Marks of a run's notable steps, the same for every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import make_all
from recorded_runs.repairs import (
    BROKEN,
    FILES,
    MEAN,
    RIGHT,
    ROOT,
    WRONG,
    chat_run,
    diff_of,
    journal_run,
    swe_agent_run,
)
from small_trees import tree_of

from gistpoint.sessions.formats.shared.calls import edits_of
from gistpoint.sessions.records.model import Actor, ByteRange, RunCall, Step, StepKind
from gistpoint.sessions.runs.commands import edited_paths, restored_paths, same_path, views_of, written_files
from gistpoint.sessions.runs.comparing import (
    Milestone,
    Reached,
    RunMilestone,
    align,
    compare,
    milestones,
    read_side,
)
from gistpoint.sessions.runs.facts import Goal, MarkTracker, Spent, StepMark, StepMarks, marks_of
from gistpoint.sessions.runs.opening import list_runs, open_run

GOAL = Goal("src/stats.py", "mean", MEAN)
Calls = list[tuple[str, dict[str, Any], str]]


def marks_in(path: Path, *goals: Goal) -> list[StepMarks]:
    return list(marks_of(open_run(path), goals))


def at(marks: list[StepMarks], mark: StepMark) -> list[int]:
    return [step.index for step in marks if mark in step.marks]


def test_an_attempt_of_our_own_comes_to_the_function_and_its_budgets_are_those_recorded(
    tmp_path: Path,
) -> None:
    marks = marks_in(journal_run(tmp_path, (WRONG, RIGHT, WRONG)), GOAL)
    assert at(marks, StepMark.REPEATED_COMMAND) == [2]
    assert marks[2].other(StepMark.REPEATED_COMMAND) == 1
    assert at(marks, StepMark.FIRST_READ_RIGHT_FILE) == [4]
    assert at(marks, StepMark.FIRST_VIEW_RIGHT_FUNCTION) == [5]
    assert at(marks, StepMark.FIRST_EDIT_RIGHT_FUNCTION) == [6]
    assert (
        at(marks, StepMark.SUBMISSION)
        == at(marks, StepMark.EDIT)
        == at(marks, StepMark.TEST_RUN)
        == [6, 7, 8]
    )
    assert at(marks, StepMark.REVERT) == [8]
    assert marks[8].other(StepMark.REVERT) == 7
    assert [(step.spent.calls_left, step.spent.submissions_left) for step in marks[:8]] == [
        (16, 4), (15, 4), (14, 4), (13, 4), (12, 4), (11, 4), (10, 3), (9, 2),
    ]  # fmt: skip
    assert marks[-1].spent.elapsed_s == 23
    assert marks[7].spent.derived == marks[-1].spent.derived == frozenset()
    assert "calls_left" in marks[0].spent.derived


def test_budgets_that_were_not_recorded_are_counted_down(tmp_path: Path) -> None:
    made = next(item for item in make_all(tmp_path) if item.format == "breakpoint")
    marks = list(marks_of(open_run(f"{made.path}#g"), [Goal("a.py", "f", "def f(): ...")]))
    assert [(step.spent.calls_left, step.spent.submissions_left) for step in marks] == [
        (7, 3),
        (6, 3),
        (5, 2),
        (5, 2),
    ]
    assert marks[0].spent.derived == {"calls_left", "submissions_left"}
    assert at(marks, StepMark.FIRST_READ_RIGHT_FILE) == at(marks, StepMark.FIRST_VIEW_RIGHT_FUNCTION) == [0]
    assert at(marks, StepMark.FIRST_EDIT_RIGHT_FUNCTION) == at(marks, StepMark.SUBMISSION) == [2]


def test_reading_again_counts_only_what_was_seen_and_not_edited_since(tmp_path: Path) -> None:
    view = "str_replace_editor"

    def look(first: int, last: int) -> tuple[str, dict[str, Any], str]:
        return view, {"command": "view", "path": f"{ROOT}/src/stats.py", "view_range": [first, last]}, "..."

    edit = (
        view,
        {"command": "str_replace", "path": "/testbed/src/stats.py", "old_str": "a", "new_str": "b"},
        "ok",
    )
    calls: Calls = [
        look(1, 40),  # 2
        look(41, 80),
        look(10, 20),  # 4: read before
        ("bash", {"command": "sed -n '5,9p' src/stats.py"}, "..."),  # 5: read before
        ("bash", {"command": "cat src/stats.py | grep mean"}, "..."),
        ("bash", {"command": "cat src/stats.py | grep total"}, "..."),
        edit,  # 8
        look(10, 20),
        look(10, 20),  # 10: again
        ("bash", {"command": "cat src/other.py"}, "x\n<response clipped>"),
        ("bash", {"command": "head -n 5 src/other.py"}, "x"),
    ]
    marks = marks_in(chat_run(tmp_path, calls))
    assert [(step.index, step.other(StepMark.REREAD)) for step in marks if StepMark.REREAD in step.marks] == [
        (4, 2), (5, 2), (10, 9),
    ]  # fmt: skip
    assert at(marks, StepMark.REPEATED_COMMAND) == []


def test_a_call_is_repeated_only_if_nothing_was_edited_in_between(tmp_path: Path) -> None:
    test = ("bash", {"command": "python -m pytest -q"}, "1 failed")
    write = ("bash", {"command": "cat > src/stats.py <<'EOF'\nx = 1\nEOF"}, "")
    marks = marks_in(chat_run(tmp_path, [test, test, write, test, ("bash", {"command": "ls"}, "a"), test]))
    assert at(marks, StepMark.REPEATED_COMMAND) == [3, 7]
    assert at(marks, StepMark.TEST_RUN) == [2, 3, 5, 7]


@pytest.mark.parametrize(
    "calls",
    [
        [("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, ""),
         ("Edit", {"file_path": "a.py", "old_string": "y", "new_string": "x"}, "")],
        [("str_replace_editor", {"command": "str_replace", "path": "/r/a.py", "old_str": "x", "new_str": "y"}, ""),
         ("str_replace_editor", {"command": "undo_edit", "path": "/r/a.py"}, "")],
        [("bash", {"command": "sed -i 's/x/y/' a.py"}, ""), ("bash", {"command": "git checkout -- a.py"}, "")],
        [("bash", {"command": "sed -i 's/x/y/' a.py"}, ""), ("bash", {"command": "git stash"}, "")],
    ],
)  # fmt: skip
def test_an_edit_that_is_taken_back_is_found_however_it_is_done(tmp_path: Path, calls: Calls) -> None:
    other = ("Edit", {"file_path": "b.py", "old_string": "x", "new_string": "y"}, "")
    marks = marks_in(chat_run(tmp_path, [calls[0], calls[1]]))
    assert marks[3].other(StepMark.REVERT) == 2
    assert StepMark.REVERT not in marks[2].marks
    if "stash" not in str(calls[1]):
        assert at(marks_in(chat_run(tmp_path, [other, calls[1]])), StepMark.REVERT) == []


def test_recorded_diffs_tell_of_reverts_too(tmp_path: Path) -> None:
    marks = marks_in(swe_agent_run(tmp_path, ["", diff_of(WRONG), diff_of(WRONG), diff_of(RIGHT), ""]))
    assert [(step.index, step.other(StepMark.REVERT)) for step in marks if StepMark.REVERT in step.marks] == [
        (4, 1)
    ]


def test_the_right_function_is_not_its_namesake_and_not_its_file(tmp_path: Path) -> None:
    read = ("Read", {"file_path": f"{ROOT}/src/stats.py", "offset": 1, "limit": 5}, "def total(values): ...")
    grep = ("Grep", {"pattern": "def mean", "path": "src/stats.py"}, "src/stats.py:8:def mean(values):")
    wrong = (
        "Edit",
        {"file_path": "src/stats.py", "old_string": "    return sum(values)", "new_string": "0"},
        "ok",
    )
    elsewhere = ("Edit", {"file_path": "lib/stats.py", "old_string": MEAN, "new_string": "0"}, "ok")
    seen = (
        "bash",
        {"command": "cd /testbed && nl -ba src/stats.py | sed -n '8,11p'"},
        "     8\tdef mean(values):",
    )
    right = ("Edit", {"file_path": "src/stats.py", "old_string": "n(values) + 1", "new_string": "0"}, "ok")
    marks = marks_in(chat_run(tmp_path, [grep, read, wrong, elsewhere, seen, right]), GOAL)
    assert at(marks, StepMark.FIRST_READ_RIGHT_FILE) == [3]
    assert at(marks, StepMark.FIRST_VIEW_RIGHT_FUNCTION) == [6]
    assert at(marks, StepMark.FIRST_EDIT_RIGHT_FUNCTION) == [7]


def test_steps_may_be_fed_as_they_come(tmp_path: Path) -> None:
    for listed in list_runs([tmp_path / "x" for _ in make_all(tmp_path / "x")[:1]]):
        document = open_run(listed.name)
        tracker = MarkTracker(document.header)
        fed = [tracker.feed(step) for step in document.steps()]
        assert fed == list(marks_of(open_run(listed.name)))
        assert [step.index for step in fed] == list(range(document.step_count))
        elapsed = [step.spent.elapsed_s for step in fed if step.spent.elapsed_s is not None]
        assert elapsed == sorted(elapsed)


def test_what_shell_commands_do_to_files() -> None:
    assert written_files("cat <<'E' > a.py\nx = '$1'\nE\ncat > b.py << E\ny\nE\n") == (
        ("a.py", "x = '$1'\n"),
        ("b.py", "y\n"),
    )
    assert written_files("cat > b.py << E\n$HOME\nE\n") == ()
    assert edited_paths("sed -i 's/a/b/' x/y.py && echo hi >> log.txt 2>/dev/null | tee out.txt") == (
        "log.txt", "x/y.py", "out.txt",
    )  # fmt: skip
    assert edited_paths("ls 2>&1 > /dev/null; sed -n 1p a.py") == ()
    assert restored_paths("git checkout -b fix/a.b; git checkout main; git status") == ()
    assert restored_paths("git checkout HEAD -- a && git restore .; git reset --hard") == ("a", "")
    assert [same_path(*pair) for pair in (("/r/a/b.py", "a/b.py"), ("b.py", "ab.py"), ("", "a"))] == [
        True,
        False,
        False,
    ]
    command = "cat 'unclosed | sed"
    assert views_of(RunCall("", "bash", command, {"command": command})) == ()


def reached(*places: tuple[RunMilestone, int]) -> list[Reached]:
    return [Reached(Milestone(event), step, Spent()) for event, step in places]


def test_runs_are_aligned_where_both_came_to_the_same() -> None:
    left = reached(
        (RunMilestone.START, 1),
        (RunMilestone.READ_RIGHT_FILE, 3),
        (RunMilestone.FIRST_EDIT, 4),
        (RunMilestone.END, 5),
    )
    right = reached(
        (RunMilestone.START, 0),
        (RunMilestone.READ_RIGHT_FILE, 1),
        (RunMilestone.FIRST_TEST_RUN, 2),
        (RunMilestone.END, 4),
    )
    rows = [(row.left, row.right, [str(name) for name in row.milestones]) for row in align(left, right, 7, 5)]
    assert rows == [
        (0, None, []), (1, 0, ["start"]), (2, None, []), (3, 1, ["read right file"]), (4, 2, []), (None, 3, []),
        (5, 4, ["end"]), (6, None, []),
    ]  # fmt: skip


def test_what_a_model_says_between_its_calls_moves_no_call() -> None:
    left = reached((RunMilestone.START, 0), (RunMilestone.END, 4))
    right = reached((RunMilestone.START, 1), (RunMilestone.END, 7))
    rows = align(left, right, 5, 8, ({2}, {0, 2, 4, 5}))
    assert [(row.left, row.right) for row in rows] == [
        (None, 0), (0, 1), (None, 2), (1, 3), (2, 4), (None, 5), (3, 6), (4, 7),
    ]  # fmt: skip


def test_milestones_in_another_order_do_not_cross() -> None:
    left = reached(
        (RunMilestone.START, 0),
        (RunMilestone.FIRST_TEST_RUN, 1),
        (RunMilestone.FIRST_EDIT, 2),
        (RunMilestone.END, 3),
    )
    right = reached(
        (RunMilestone.START, 0),
        (RunMilestone.FIRST_EDIT, 1),
        (RunMilestone.FIRST_TEST_RUN, 2),
        (RunMilestone.END, 3),
    )
    rows = align(left, right, 4, 4)
    for side in (0, 1):
        steps = [step for row in rows if (step := (row.left, row.right)[side]) is not None]
        assert steps == [0, 1, 2, 3]
    assert sum(bool(row.milestones) for row in rows) == 3


def test_hidden_steps_are_in_no_row_except_those_of_milestones() -> None:
    left = reached((RunMilestone.START, 1), (RunMilestone.END, 5))
    right = reached((RunMilestone.START, 0), (RunMilestone.END, 3))
    rows = align(left, right, 7, 4, hidden=({0, 2, 5, 6}, {2}))
    assert [(row.left, row.right) for row in rows] == [(1, 0), (3, 1), (4, None), (5, 3)]


def test_rows_differ_by_their_calls_and_results_and_not_by_words(tmp_path: Path) -> None:
    same: list[tuple[str, dict[str, str], str]] = [("Read", {"file_path": "/testbed/src/stats.py"}, BROKEN)]
    runs = {
        "result": [*same, ("Bash", {"command": "ls"}, "a.py")],
        "again": [*same, ("Bash", {"command": "ls"}, "b.py")],
        "longer": [*same, ("Bash", {"command": "ls"}, "a.py"), ("Bash", {"command": "pwd"}, "/")],
    }
    sides = {}
    for name, calls in runs.items():
        (tmp_path / name).mkdir()
        sides[name] = read_side(open_run(chat_run(tmp_path / name, calls)))

    def different(left: str, right: str) -> list[tuple[int | None, int | None]]:
        both = compare(sides[left], sides[right])
        return [(both.rows[row].left, both.rows[row].right) for row in sorted(both.different)]

    assert different("result", "result") == []
    assert different("result", "again") == [(3, 3)]
    # The last steps share a row, so the second call of the shorter run is opposite the third of the longer one.
    assert different("result", "longer") == [(None, 3), (3, 4)]


def test_a_person_and_a_model_side_by_side(tmp_path: Path) -> None:
    tree = tree_of(FILES, tmp_path)
    person = read_side(open_run(journal_run(tmp_path)), [GOAL], tree=tree)
    calls: Calls = [
        ("Read", {"file_path": "/testbed/src/stats.py"}, BROKEN),
        (
            "Edit",
            {
                "file_path": "/testbed/src/stats.py",
                "old_string": "len(values) + 1",
                "new_string": "len(values)",
            },
            "",
        ),
    ]
    model = read_side(open_run(chat_run(tmp_path, calls)), [GOAL], tree=tree)
    both = compare(person, model)
    found = both.milestones
    assert {str(row.milestone): (row.left and row.left.step, row.right and row.right.step) for row in found} == {
        "start": (1, 2), "read right file": (4, 2), "viewed right function": (5, 2), "first edit": (6, 3),
        "edited right function": (6, 3), "submission 1": (6, None), "first test run": (6, None),
        "submission 2": (7, None), "end": (8, 3),
    }  # fmt: skip
    row = next(
        n
        for n, row in enumerate(both.rows)
        if Milestone(RunMilestone.EDITED_RIGHT_FUNCTION) in row.milestones
    )
    assert both.places(row) == (6, 3)
    assert person.spent(6).submissions_left == 3
    last = len(person.marks) - 1
    assert person.repository(last).diff == model.repository(3).diff
    assert person.repository(6).diff != model.repository(3).diff


def test_what_the_harness_does_is_no_mark_of_the_solver() -> None:
    def step(index: int, actor: Actor, kind: StepKind, tool: str, **arguments: Any) -> Step:
        call = RunCall(str(index), tool, json.dumps(arguments), arguments)
        return Step(index, actor, kind, ByteRange("", 0, 1), calls=(call,), edits=edits_of((call,)))

    written = {"path": "a.py", "content": "x = 1"}
    steps = (
        step(0, Actor.ENVIRONMENT, StepKind.EDIT, "write", **written),
        step(1, Actor.ENVIRONMENT, StepKind.TEST, "bash", command="pytest"),
        step(2, Actor.AGENT, StepKind.EDIT, "write", **written),
    )
    tracker = MarkTracker()
    marks = [tracker.feed(one) for one in steps]
    assert [found.marks & {StepMark.EDIT, StepMark.TEST_RUN} for found in marks] == [
        set(),
        set(),
        {StepMark.EDIT},
    ]
    first_edits = [
        found.step for found in milestones(marks) if found.milestone.event is RunMilestone.FIRST_EDIT
    ]
    assert first_edits == [2]
