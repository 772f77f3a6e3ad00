"""Rows of data sets as runs: calls paired with results, verdict and patch in the header; JSON and Parquet."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from arro3.io import infer_json_schema, read_json, write_parquet
from recorded_runs import tables

from gistpoint.sessions.annotations.keys import run_key
from gistpoint.sessions.records.model import Step, StepKind
from gistpoint.sessions.runs.digest import digest_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.tui.cli import main


def opened(path: Path, rows: list[Any], id: str) -> tuple[RunDocument, list[Step]]:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    document = open_run(f"{path}#{id}")
    return document, list(document.steps())


def test_functions_in_the_text_are_calls_and_the_next_message_is_their_result(tmp_path: Path) -> None:
    document, steps = opened(tmp_path / "a", [tables.functions(), tables.functions("stats-9")], "stats-9")
    run = document.header
    assert (run.task, run.model, run.verdict, run.submission) == (
        "stats-9",
        "model-x",
        "solved",
        tables.PATCH,
    )
    look, wonder, go_on, edit, submit = steps[2:]
    assert (look.calls[0].tool, look.calls[0].parsed) == ("bash", {"command": "python stats.py"})
    assert "I look é." in look.text
    assert look.results[0].is_error
    assert {"calls", "results.is_error"} <= look.derived
    assert (wonder.calls, wonder.results, go_on.actor.value) == ((), (), "user")
    assert [(change.path, change.old, change.new) for change in edit.edits] == [
        ("/r/stats.py", "return 1", "return 2")
    ]
    assert not edit.results[0].is_error
    assert (submit.kind, submit.results) == (StepKind.SUBMIT, ())
    assert run_key(document).startswith("chat:")


def test_both_readers_of_a_data_set_count_the_same(tmp_path: Path) -> None:
    refused = "Your proposed edit has introduced new syntax error(s). Please read this message."
    turns = [
        ("edit 1:2\nx = (\nend_of_edit", refused),
        ("edit 1:2\nx = 1\nend_of_edit", "[File: /r/a.py (2 lines)]"),
    ]
    rows = [
        {"role": "system", "system_prompt": "You are an agent."},
        {"role": "user", "text": "Solve the issue."},
    ]
    standard: list[dict[str, Any]] = [
        {"class_": "text_observation", "content": "Solve the issue.", "source": "user"}
    ]
    for command, shown in turns:
        rows += [{"role": "ai", "text": f"I edit.\n```\n{command}\n```"}, {"role": "user", "text": shown}]
        text = command.partition("\n")[2].removesuffix("\nend_of_edit")
        kwargs = {"start_line": 1, "end_line": 2, "replacement_text": text}
        standard += [
            {"class_": "api_action", "function": "edit", "kwargs": kwargs, "description": "I edit."},
            {"class_": "text_observation", "content": shown, "source": "environment"},
        ]
    (tmp_path / "rows.json").write_text(
        json.dumps([{"instance_id": "a", "model_name": "m", "target": True, "trajectory": rows}]), "utf-8"
    )
    (tmp_path / "std.json").write_text(json.dumps([{"id": "a", "content": standard}]), "utf-8")
    found = [digest_of(open_run(str(tmp_path / f"{name}.json"))) for name in ("rows", "std")]
    assert [(one.calls, one.edits, one.errors) for one in found] == [(2, 1, 1)] * 2


def test_messages_in_a_text_are_the_same_as_in_a_list(tmp_path: Path) -> None:
    _, plain = opened(tmp_path / "a", [tables.functions()], "stats-1")
    document, inner = opened(tmp_path / "b", [tables.functions(as_text=True)], "stats-1")
    assert [(step.kind, step.text, step.calls, step.results) for step in plain] == [
        (step.kind, step.text, step.calls, step.results) for step in inner
    ]
    assert inner[0].raw.member == "row 1, decoded"
    assert document.header.submission == tables.PATCH


def test_recorded_calls_are_paired_by_id_and_a_nudge_is_the_users(tmp_path: Path) -> None:
    document, steps = opened(tmp_path / "a", [tables.calls()], "stats-2")
    run = document.header
    assert (run.model, run.verdict, set(run.derived)) == ("model-y", "unsolved", {"model", "verdict"})
    both, done, nudge, last = steps[2:]
    assert [both.result_of(call).returncode for call in both.calls] == [1, None]  # type: ignore[union-attr]
    assert (done.text, nudge.text, nudge.actor.value) == ("Done?", "Please continue.", "user")
    assert last.results == ()
    assert [noted.path for noted in document.header.also] == ["run_id", "test_result.test_output"]


def test_the_last_block_of_a_reply_is_its_command(tmp_path: Path) -> None:
    document, steps = opened(tmp_path / "a", [tables.fences()], "stats-3")
    assert (document.header.verdict, document.header.exit_status) == ("unsolved", "submitted")
    system, task, look, edit, submit = steps
    assert (system.kind, system.text, task.text) == (StepKind.SYSTEM, "SETTING: You fix.", "Fix the mean.")
    assert (look.calls[0].arguments, look.flags) == ("ls -F", frozenset())
    assert edit.calls[0].arguments.startswith("edit 1:1")
    assert edit.results[0].is_error
    assert submit.kind is StepKind.SUBMIT


def test_steps_of_r2e_gym_have_tokens_and_durations(tmp_path: Path) -> None:
    document, steps = opened(tmp_path / "a", [tables.steps()], "1")
    run = document.header
    assert (run.task, run.model, run.verdict, run.prompt) == ("stats-4", "model-x", "solved", "Fix the mean.")
    assert (steps[0].text, steps[0].calls[0].parsed, steps[0].results[0].text) == (
        "I look.",
        {"cmd": "ls"},
        "stats.py",
    )
    assert (steps[1].tokens.prompt, steps[1].results[0].duration_s) == (20, 0.25)


def test_a_row_that_is_cut_off_is_read_up_to_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "a"
    whole = json.dumps(tables.calls("whole"))
    path.write_text(f"{whole}\n{json.dumps(tables.functions())[:-500]}", encoding="utf-8")
    names = [found.name for found in list_runs([path])]
    assert names == [f"{path}#whole", f"{path}#2"]
    document = open_run(names[1])
    assert [step.text for step in document.steps()][:2] == ["You fix.", "Fix the mean."]
    assert document.warnings


def as_parquet(path: Path, rows: list[Any]) -> Path:
    text = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    write_parquet(read_json(BytesIO(text), infer_json_schema(BytesIO(text))), path, max_row_group_size=8)
    return path


@pytest.mark.parametrize("make", [tables.functions, tables.calls, tables.fences, tables.steps])
def test_rows_of_a_parquet_file_are_the_rows_of_json(
    tmp_path: Path, make: Callable[[], dict[str, Any]]
) -> None:
    rows = [make() for _ in range(20)]
    path = as_parquet(tmp_path / "a", rows)
    names = [found.name for found in list_runs([path])]
    assert len(names) == 20
    inside, (plain, steps) = open_run(names[-1]), opened(tmp_path / "b", rows, names[-1].rpartition("#")[2])
    shown = [(step.kind, step.text, step.calls, step.results, step.tokens) for step in inside.steps()]
    assert shown == [(step.kind, step.text, step.calls, step.results, step.tokens) for step in steps]
    assert (inside.header.verdict, inside.header.submission) == (
        plain.header.verdict,
        plain.header.submission,
    )


def test_messages_that_are_json_within_a_parquet_text_are_read(tmp_path: Path) -> None:
    path = as_parquet(tmp_path / "a", [tables.functions(as_text=True)])
    assert len(list(open_run(path).steps())) == 7


def test_a_parquet_file_of_something_else_tells_its_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = as_parquet(tmp_path / "a", [{"question": "q", "answer": "a"}])
    assert main(["runs", str(path)]) == 1
    assert "its columns are answer, question" in capsys.readouterr().err
    path.write_bytes(path.read_bytes()[:-9])
    assert main(["show", str(path)]) == 2
    assert "cut off" in capsys.readouterr().err


def test_without_the_extra_a_line_says_which_one_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = as_parquet(tmp_path / "a", [tables.functions()])
    monkeypatch.setitem(sys.modules, "arro3.io", None)
    assert main(["show", str(path)]) == 2
    assert "pip install 'gistpoint[parquet]'" in capsys.readouterr().err


@pytest.mark.parametrize("packed", [False, True])
def test_rows_open_in_any_order_and_after_the_file_has_changed(tmp_path: Path, packed: bool) -> None:
    rows = [{**tables.functions(f"stats-{number}"), "model": f"model-{number}"} for number in range(40)]
    path = tmp_path / "a"

    def write() -> None:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        if packed:
            as_parquet(path, rows)

    write()
    assert len(list(list_runs([path]))) == 40
    for number in (3, 4, 39, 5, 0):
        assert open_run(f"{path}#stats-{number}").header.model == f"model-{number}"
    rows = [{**row, "model": "another model"} for row in rows[::-1]]
    write()
    assert open_run(f"{path}#stats-3").header.model == "another model"
