"""Codex CLI: duplicate records form one step, and calls are next to their results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_runs.coding_agents import call, codex_exec, codex_rollout, enveloped, said, tokens

from gistpoint.sessions.records.model import Actor, StepKind, Tokens
from gistpoint.sessions.runs.commands import views_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.rendering import summary


def opened(path: Path, records: list[dict[str, Any]]) -> RunDocument:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    document = open_run(path)
    document.build()
    return document


def rollout(tmp_path: Path, *records: tuple[str, dict[str, Any]]) -> RunDocument:
    return opened(tmp_path / "rollout", enveloped([("session_meta", {"id": "s", "cwd": "/"}), *records]))


def test_a_reply_its_calls_and_what_mirrors_them_are_one_step(tmp_path: Path) -> None:
    document = opened(tmp_path / "rollout", codex_rollout())
    meta, injected, context, task, first, second, last = document.steps()
    assert (meta.kind, injected.actor, context.label) == (StepKind.SYSTEM, Actor.SYSTEM, "turn_context")
    assert len(context.records) == 2
    assert (task.actor, task.kind, task.text) == (Actor.USER, StepKind.TASK, "Fix the mean")
    assert (first.kind, first.thought, first.model) == (StepKind.TEST, "**Run the tests**", "gpt-x")
    assert [(r.call_id, r.text, r.returncode, r.duration_s) for r in first.results] == [
        ("c1", "F é  [100%]\n1 failed\n", 1, 0.5)
    ]
    assert "error" in first.flags
    assert second.kind is StepKind.EDIT
    assert second.results[0].returncode == 0
    assert second.diff is not None
    assert second.diff.startswith("--- a/repo/stats.py\n+++ b/repo/stats.py\n@@ -1 +1 @@\n-return 1")
    assert last.text == "The mean is mended."
    assert [step.tokens.prompt for step in (first, second, last)] == [100, 200, 300]
    header = document.header
    assert (header.id, header.format_version, header.model, header.exit_status) == (
        "s-1",
        "0.99.0",
        "gpt-x",
        "task_complete",
    )
    assert header.tokens == Tokens(600, 3, 5, 2)
    assert not [one for step in document.steps() for one in step.also]


def test_calls_of_one_reply_with_their_results_in_between_are_one_step(tmp_path: Path) -> None:
    answers = [
        ("response_item", {"type": "function_call_output", "call_id": name, "output": name}) for name in "ab"
    ]
    document = rollout(
        tmp_path, ("event_msg", tokens(10, 10)), ("response_item", call("a", ["ls"])), answers[0],
        ("response_item", call("b", ["pwd"])), answers[1], ("event_msg", tokens(20, 10)),
        ("response_item", said("assistant", "done")),
    )  # fmt: skip
    assert [len(step.calls) for step in document.steps()] == [0, 2, 0]
    assert [result.call_id for result in document.step(1).results] == ["a", "b"]


def test_what_only_an_event_tells_is_shown(tmp_path: Path) -> None:
    run = {"type": "exec_command_end", "call_id": "x", "command": ["bash", "-lc", "make"], "exit_code": 2,
           "aggregated_output": "no rule", "duration": {"secs": 1, "nanos": 500_000_000}}  # fmt: skip
    tool = {"type": "mcp_tool_call_end", "call_id": "y", "result": {"Err": "gone"},
            "invocation": {"server": "docs", "tool": "find", "arguments": {"q": "mean"}}}  # fmt: skip
    spawned = {
        "type": "collab_agent_spawn_end",
        "call_id": "z",
        "new_thread_id": "abc",
        "prompt": "look",
        "status": "ok",
    }
    document = rollout(tmp_path, *(("event_msg", event) for event in (run, tool, spawned)))
    step = document.step(1)
    assert [call.tool for call in step.calls] == ["exec_command", "find", "collab_agent_spawn"]
    assert [(r.text, r.is_error, r.returncode, r.duration_s) for r in step.results[:2]] == [
        ("no rule", None, 2, 1.5), ("gone", True, None, None),
    ]  # fmt: skip
    assert step.links == document.header.links == ("abc.jsonl",)


def test_a_paginated_history_says_nothing_twice(tmp_path: Path) -> None:
    def completed(kind: str, **members: Any) -> tuple[str, dict[str, Any]]:
        return "event_msg", {"type": "item_completed", "item": {"type": kind, "id": f"i-{kind}", **members}}

    document = rollout(
        tmp_path,
        completed("UserMessage", content=[{"type": "text", "text": "Fix it"}]),
        ("response_item", said("user", "Fix it")),
        ("response_item", call("c", ["ls", "-a"])),
        completed("CommandExecution", command=["ls", "-a"], aggregated_output="x", exit_code=0),
        ("response_item", {"type": "function_call_output", "call_id": "c", "output": "x"}),
        ("response_item", said("assistant", "Done")),
        completed("AgentMessage", content=[{"type": "Text", "text": "Done"}]),
    )  # fmt: skip
    _, task, turn, last = document.steps()
    assert (task.text, last.text) == ("Fix it", "Done")
    assert [(len(step.calls), len(step.results)) for step in (turn, last)] == [(1, 1), (0, 0)]
    assert turn.results[0].returncode == 0


def test_forks_ends_and_unknown_records(tmp_path: Path) -> None:
    document = rollout(
        tmp_path, ("session_meta", {"id": "parent", "instructions": "Of the parent"}),
        ("event_msg", {"type": "never_seen", "what": "news"}), ("response_item", {"type": "message"}),
        ("event_msg", {"type": "turn_aborted", "reason": "interrupted"}),
        ("event_msg", {"type": "error", "message": "no more credit"}),
    )  # fmt: skip
    assert document.header.id == "s"
    assert "Of the parent" in document.step(1).text
    assert (document.step(2).kind, "news" in document.step(2).text) == (StepKind.UNKNOWN, True)
    assert (document.step(4).kind, document.step(4).text) == (StepKind.END, "interrupted")
    assert document.step(5).kind is StepKind.ERROR
    assert document.header.exit_status == "error"


def test_a_session_leads_to_those_it_came_from(tmp_path: Path) -> None:
    base = {"thread_id": "before", "end_ordinal_exclusive": 9}
    meta = {
        "id": "s",
        "source": {"subagent": {"thread_spawn": {"parent_thread_id": "up"}}},
        "history_base": base,
    }
    header = opened(tmp_path / "rollout", enveloped([("session_meta", meta)])).header
    assert (header.agent, header.links) == ("codex side agent", ("before.jsonl", "up.jsonl"))
    assert header.warnings == ("The beginning is in the session before.",)


def test_items_without_an_envelope(tmp_path: Path) -> None:
    document = opened(tmp_path / "old", [
        {"id": "old-1", "timestamp": "2025-06-01T10:00:00.000Z", "instructions": "Be brief.", "git": None},
        {"record_type": "state"}, said("user", "Hi"), {"record_type": "state"}, call("c", ["ls"]),
        {"type": "function_call_output", "call_id": "c", "output": "a.py"}, {"record_type": "state"},
        said("assistant", "One file."),
    ])  # fmt: skip
    header = document.header
    assert (header.format, header.id, header.duration_s) == ("codex", "old-1", None)
    assert [step.kind for step in document.steps()][1:] == [StepKind.TASK, StepKind.VIEW, StepKind.MESSAGE]


def test_items_of_exec_are_calls_with_their_results(tmp_path: Path) -> None:
    document = opened(tmp_path / "out", codex_exec())
    turn, last, end = list(document.steps())[2:]
    assert [(call.id, call.tool) for call in turn.calls] == [
        ("item_1", "command_execution"),
        ("item_2", "command_execution"),
    ]
    assert [(turn.result_of(call) or turn.results[0]).returncode for call in turn.calls] == [0, 1]
    assert (turn.kind, "error" in turn.flags, turn.thought) == (StepKind.TEST, True, "**Look first**")
    assert (last.text, end.kind, document.header.exit_status) == (
        "One test fails.",
        StepKind.END,
        "turn.completed",
    )
    assert document.header.tokens == Tokens(60, 4, 50)


@pytest.mark.parametrize(
    ("threads", "counts", "turns", "whole"),
    [
        (["t-1"], [100, 300, 350], [100, 200, 50], 350),
        (["t-1", "t-1", "t-1"], [100, 300, 350], [100, 200, 50], 350),
        (["t-1", "t-2", "t-2"], [100, 300, 350], [100, 300, 50], 450),
        (["t-1", "t-1", "t-1"], [300, 100, 350], [300, 100, 250], 650),
    ],
    ids=["turns", "resumed", "another thread", "counted anew"],
)
def test_each_turn_of_exec_has_its_own_tokens(
    tmp_path: Path, threads: list[str], counts: list[int], turns: list[int], whole: int
) -> None:
    records: list[dict[str, Any]] = []
    for number, count in enumerate(counts):
        if number < len(threads):
            records.append({"type": "thread.started", "thread_id": threads[number]})
        usage = {"input_tokens": count, "cached_input_tokens": count // 2, "output_tokens": count // 10}
        message = {"id": "item_0", "type": "agent_message", "text": f"Done {number}."}
        records += [
            {"type": "turn.started"},
            {"type": "item.completed", "item": message},
            {"type": "turn.completed", "usage": usage},
        ]
    document = opened(tmp_path / "out", records)
    spent = [step.tokens for step in document.steps() if step.kind is StepKind.END]
    assert spent == [Tokens(each, each // 10, each // 2) for each in turns]
    assert document.header.tokens == Tokens(whole, whole // 10, whole // 2)


def test_a_second_turn_of_exec_numbers_its_items_again(tmp_path: Path) -> None:
    again = [*codex_exec()[1:7], {"type": "turn.failed", "error": {"message": "cut off"}}]
    document = opened(tmp_path / "out", [*codex_exec(), *again])
    assert [len(step.calls) for step in document.steps()] == [0, 0, 2, 0, 0, 0, 2, 0]
    assert document.step(7).text == "cut off"


def test_messages_of_the_program_may_come_before_the_events(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text(
        "Reading prompt from stdin...\n" + "\n".join(map(json.dumps, codex_exec())), encoding="utf-8"
    )
    (listed,) = list_runs([file])
    assert listed.header is not None
    assert listed.header.format == "codex-exec"
    document = open_run(file)
    document.build()
    assert (document.step(0).kind, document.step(0).text) == (
        StepKind.DAMAGED,
        "Reading prompt from stdin...",
    )


def test_a_command_is_what_the_shell_was_given(tmp_path: Path) -> None:
    document = rollout(
        tmp_path, ("response_item", call("a", ["bash", "-lc", "cat a.py && sed -n 1,5p b.py"]))
    )
    step = document.step(1)
    assert summary(step) == "shell cat a.py && sed -n 1,5p b.py"
    assert {look.path for look in views_of(step.calls[0])} == {"a.py", "b.py"}
