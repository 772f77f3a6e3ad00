"""Conversations of Cline: results by id or told as text, calls also as XML."""

from __future__ import annotations

from pathlib import Path

from recorded_runs.assistants import cline_history, cline_session
from recorded_runs.written import answers, written

from gistpoint.sessions.records.model import Actor, FileEdit, StepKind, Tokens


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
