"""Chats exported as Markdown: whole lines name the speaker, and nothing quoted does."""

from __future__ import annotations

from pathlib import Path

from recorded_runs.assistants import CURSOR_EXPORT, SPECSTORY
from recorded_runs.written import answers, written

from gistpoint.sessions.records.model import Actor, StepKind


def test_specstory_has_calls_thoughts_and_times(tmp_path: Path) -> None:
    run = written(tmp_path / "a.md", SPECSTORY)
    _, task, reply, done = run.steps()
    assert task.text == "Fix the mean\n\n```text\n_**Agent**_\n```"
    assert (reply.actor, reply.text, reply.model, done.text) == (Actor.AGENT, "I test.", "model-x", "Done")
    assert "two places" in reply.thought
    assert answers(reply) == [("Bash", "```text\n1 failed\n```", None)]
    assert (reply.kind, reply.calls[0].arguments) == (StepKind.TEST, "`pytest -q`")
    header = run.header
    assert (header.id, header.agent, header.task, header.model) == (
        "5c7d5c23-0691", "Claude Code", "Mean of nothing", "model-x"
    )  # fmt: skip
    assert (header.format_version, header.duration_s) == ("SpecStory 2.1.0", 12.0)


def test_only_a_line_after_a_rule_names_the_speaker_in_an_export_of_cursor(tmp_path: Path) -> None:
    run = written(tmp_path / "a.md", CURSOR_EXPORT)
    steps = list(run.steps())
    assert [(step.actor, step.text) for step in steps[1:]] == [
        (Actor.USER, "Fix the mean"), (Actor.AGENT, "It is one. Somebody said\n\n**User**\n\nand no more."),
        (Actor.USER, "Thanks"),
    ]  # fmt: skip
    assert (run.header.task, run.header.format_version) == ("Mean of nothing", "Cursor 1.7.38")
