"""Sessions of opencode: a message is a step, with calls, results, diffs, costs and started sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_runs.assistants import OPENCODE_EXPORT, opencode, opencode_storage
from recorded_runs.written import answers, read_whole, written

from gistpoint.sessions.records.archives import NoRunError
from gistpoint.sessions.records.model import Actor, StepKind, Tokens
from gistpoint.sessions.runs.opening import linked_name, list_runs, open_run
from gistpoint.sessions.runs.searching import Query, search_document


def test_a_message_is_a_step_with_its_calls_and_results(tmp_path: Path) -> None:
    run = written(tmp_path / "a.json", opencode())
    task, reply, aborted = run.steps()
    assert task.text == "Fix @a.py\n[attached: a.py]"
    assert [noted.text for noted in task.also] == ["Called the Read tool with a.py"]
    assert (reply.kind, reply.thought, reply.text) == (StepKind.EDIT, "two places", "I edit")
    assert answers(reply) == [
        ("edit", "edited", False), ("bash", "not allowed", True), ("task", "found", False), None
    ]  # fmt: skip
    assert reply.results[0].duration_s == 0.5
    assert (reply.diff or "").startswith("--- a.py")
    assert [(edit.path, edit.old) for edit in reply.edits] == [("a.py", "1"), ("b.py", None)]
    assert (reply.tokens, reply.cost) == (Tokens(41, 5, 30, 2), 0.25)
    assert aborted.kind is StepKind.ERROR
    assert aborted.text == "MessageAbortedError: The operation was aborted."


def test_the_header_adds_up_and_names_the_sessions_that_were_started(tmp_path: Path) -> None:
    other = tmp_path / "session__mean__ses_2.json"
    other.write_text("{}", encoding="utf-8")
    run = written(tmp_path / "a.json", opencode())
    header = run.header
    assert (header.id, header.task, header.model, header.cost) == ("ses_1", "Mean of nothing", "model-x", 0.5)
    assert (header.exit_status, header.tokens.prompt) == ("MessageAbortedError", 82)
    assert header.links == run.step(1).links == ("ses_2.json",)
    assert linked_name(str(tmp_path / "a.json"), "ses_2.json") == str(other)


def test_a_session_in_the_storage_is_read_as_its_export_is(tmp_path: Path) -> None:
    session = opencode_storage(tmp_path / "storage")
    (listed,) = list_runs([tmp_path])
    assert (listed.name, listed.problem) == (str(session), "")
    stored, exported = read_whole(session), written(tmp_path / "a.json", opencode())
    assert stored.header.tokens == exported.header.tokens
    assert (stored.header.id, stored.header.task, stored.header.links) == (
        "ses_1",
        "Mean of nothing",
        ("ses_2.json",),
    )
    for one, other in zip(stored.steps(), exported.steps(), strict=True):
        assert (one.kind, one.text, one.calls, one.results) == (
            other.kind,
            other.text,
            other.calls,
            other.results,
        )
        assert [noted.text for noted in one.also] == [noted.text for noted in other.also]
    assert [hit.step for hit in search_document(stored, Query("two places"))] == [1]


def test_a_piece_of_the_storage_says_where_its_session_is(tmp_path: Path) -> None:
    opencode_storage(tmp_path / "storage")
    with pytest.raises(NoRunError, match="part of a message of opencode"):
        open_run(tmp_path / "storage" / "message" / "ses_1" / "msg_0.json")


def test_an_export_as_markdown_has_its_calls_with_their_results(tmp_path: Path) -> None:
    run = written(tmp_path / "a.md", OPENCODE_EXPORT)
    head, task, turn, last = run.steps()
    assert (task.actor, task.kind, task.text) == (Actor.USER, StepKind.TASK, "Fix the mean")
    assert turn.text == "_Thinking:_\n\nI look at what is there."
    assert answers(turn) == [
        ("bash", "A note:\n```python\nmean = 2\n```\n\n## User\nis no turn here.", False),
        ("read", "File not found: b.py", True),
    ]
    assert ("error" in turn.flags, turn.kind, last.text) == (True, StepKind.VIEW, "It is two.")
    header = run.header
    assert (header.id, header.task, header.model) == ("ses_1a2b", "Mean of nothing", "Model X")
    assert header.extra["created"] == "5/9/2026, 9:08:30 AM"
    assert "Mean of nothing" in head.text
