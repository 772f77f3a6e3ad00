"""Conversations of Cline: results by id or as text, and calls, also as XML."""

from __future__ import annotations

from pathlib import Path

from recorded_runs.assistants import cline_history, cline_session, cline_window
from recorded_runs.written import answers, written

from gistpoint.sessions.records.model import Actor, FileEdit, StepKind, Tokens
from gistpoint.sessions.runs.opening import list_runs
from gistpoint.sessions.runs.searching import Query, search_document


def test_a_session_has_its_prompt_and_results_by_id(tmp_path: Path) -> None:
    run = written(tmp_path / "a.json", cline_session())
    prompt, task, reply = run.steps()
    assert (prompt.actor, prompt.text) == (Actor.SYSTEM, "You are Cline.")
    assert task.text == "Fix a.py\n[file: /r/a.py]\nx = 1"
    assert answers(reply) == [
        ("editor", "edit:a.py\nEdited", None), ("run_commands", "cat b.py\nno such file", True)
    ]  # fmt: skip
    assert reply.edits == (FileEdit("a.py", "1", "2"),)
    assert (reply.kind, reply.flags) == (StepKind.EDIT, frozenset({"error"}))
    header = run.header
    assert (header.id, header.model, header.tokens, header.cost) == ("s1", "model-x", Tokens(90, 5, 60), 0.5)


def test_results_that_are_told_as_text_answer_the_call_of_their_tool(tmp_path: Path) -> None:
    run = written(tmp_path / "a.json", cline_history())
    task, first, second, last = list(run.steps())[:4]
    assert task.text == "<task>\nFix the mean\n</task>"
    assert answers(first) == [("execute_command", "[execute_command for 'ls'] Result:\n1 failed", None)]
    assert first.calls[0].parsed == {"command": "ls &amp; pytest"}
    assert answers(second) == [
        ("read_file", "[read_file for 'b.py'] Result:\nError: no such file", True),
        ("list_files", "[list_files for '.'] Result:\na.py", None),
    ]
    assert {"results.call_id"} <= second.derived
    assert last.kind is StepKind.SUBMIT
    assert run.step_count == 5
    assert run.step(4).text == "[ERROR] You did not use a tool"


def test_what_the_window_showed_is_read_where_the_conversation_is_not(tmp_path: Path) -> None:
    run = written(tmp_path / "ui_messages.json", cline_window())
    task, reply, failed, question, heard, last = run.steps()
    assert (task.kind, task.text) == (StepKind.TASK, "Fix the mean\n[attached: a.py]")
    assert (reply.thought, reply.text, reply.kind) == ("two places", "I edit", StepKind.EDIT)
    assert answers(reply) == [
        ("editedExistingFile", "The content was saved to a.py é.", None),
        ("searchFiles", "a.py: mean = 1", None),
        ("execute_command", "1 failed\n0.1 s", None),
    ]  # fmt: skip
    assert [result.text for result in reply.results if not result.call_id] == ["mean = 2 é"]
    assert len(list(search_document(run, Query("mean = 2 é")))) == 1
    assert reply.edits == (FileEdit("a.py"),)
    assert (reply.tokens, reply.cost) == (Tokens(41, 5, 30), 0.25)
    assert (failed.kind, failed.text, question.text) == (StepKind.ERROR, "terminated", "Which?\n- one\n- two")
    assert (heard.actor, heard.text, last.text) == (Actor.USER, "The first", "Done")
    header = run.header
    assert (header.task, header.model, header.tokens.prompt, header.cost) == (
        "Fix the mean",
        "model-x",
        82,
        0.5,
    )
    assert len(list(list_runs([tmp_path]))) == 1
    written(tmp_path / "api_conversation_history.json", cline_history())
    assert [Path(run.name).name for run in list_runs([tmp_path])] == ["api_conversation_history.json"]
