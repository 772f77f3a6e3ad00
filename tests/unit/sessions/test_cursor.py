"""Sessions of Cursor's agent: results answer calls by order or by id, and streamed pieces form one text."""

from __future__ import annotations

from pathlib import Path

from recorded_runs.assistants import cursor_stream, cursor_transcript
from recorded_runs.written import answers, written_lines

from gistpoint.sessions.records.model import Actor, StepKind, Tokens


def test_results_of_a_transcript_answer_the_calls_in_their_order(tmp_path: Path) -> None:
    task, look, done = written_lines(tmp_path / "a.jsonl", cursor_transcript()).steps()
    assert (task.kind, task.actor) == (StepKind.TASK, Actor.USER)
    assert answers(look) == [("Bash", "a.py", None), ("Read", "x = 1", None)]
    assert (look.thought, look.text, "calls.id" in look.derived) == ("hm", "I look", True)
    assert done.text == "Done"


def test_pieces_of_the_stream_are_joined_and_their_repetition_is_left_out(tmp_path: Path) -> None:
    run = written_lines(tmp_path / "a.jsonl", cursor_stream())
    start, task, reply, done, end = run.steps()
    assert (start.kind, task.kind, end.kind) == (StepKind.STATE, StepKind.TASK, StepKind.END)
    assert (reply.thought, reply.text, reply.kind) == ("Need tests", "I test", StepKind.TEST)
    assert answers(reply) == [("shell", "1 failed", None), ("Read", "not allowed", True)]
    assert reply.results[0].returncode == 1
    assert done.text == "Done"
    header = run.header
    assert (header.id, header.model, header.exit_status, header.duration_s) == (
        "s1",
        "model-x",
        "success",
        5.2,
    )
    assert header.tokens == Tokens(4, 2)
