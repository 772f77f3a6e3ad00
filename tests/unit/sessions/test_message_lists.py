"""Message lists of model APIs: calls paired with results, no message lost, and correct titles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gistpoint.sessions.formats.shared.messages import tokens_of
from gistpoint.sessions.records.model import Actor, StepKind
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import list_runs, open_run


def opened(path: Path, value: Any) -> RunDocument:
    path.write_text(json.dumps(value), encoding="utf-8")
    document = open_run(path)
    document.build()
    return document


def use(identity: str, name: str = "bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}


def result(identity: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def anthropic() -> dict[str, Any]:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    return {
        "model": "claude-x",
        "system": [{"type": "text", "text": "You repair code.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Fix the mean"}, image]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "two places", "signature": "s"}, {"type": "text", "text": "I look"},
                use("t1", cmd="ls"), use("t2", cmd="cat b"),
            ]},
            {"role": "user", "content": [
                result("t2", "no such file", is_error=True), result("t1", [{"type": "text", "text": "a.py"}]),
                {"type": "text", "text": "and be quick"},
            ]},
            {"role": "assistant", "content": [
                {"type": "redacted_thinking", "data": "EmwKAhgB"},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "mean of nothing"}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
                    {"type": "web_search_result", "title": "Means", "url": "https://means.example",
                     "encrypted_content": "E"},
                ]},
                {"type": "text", "text": "Done"},
            ]},
        ],
    }  # fmt: skip


def test_results_stand_with_their_calls_and_the_system_prompt_is_a_step(tmp_path: Path) -> None:
    document = opened(tmp_path / "body.json", anthropic())
    assert document.step_count == 4
    system, task, turn, last = document.steps()
    assert (system.actor, system.kind, system.text) == (Actor.SYSTEM, StepKind.SYSTEM, "You repair code.")
    assert task.kind is StepKind.TASK
    assert "[image: image/png, 9 bytes]" in task.text
    assert [call.id for call in turn.calls] == ["t1", "t2"]
    assert turn.thought == "two places"
    paired = {call.id: turn.result_of(call) for call in turn.calls}
    assert (paired["t1"] and paired["t1"].text, paired["t2"] and paired["t2"].is_error) == ("a.py", True)
    assert "error" in turn.flags
    assert any(not one.call_id and one.text == "and be quick" for one in turn.results)
    assert "redacted thinking: 8 characters" in last.thought
    assert last.calls[0].parsed == {"query": "mean of nothing"}
    assert last.results[0].text == "Means\nhttps://means.example"
    assert document.header.task == ""


def test_a_system_prompt_after_the_messages_is_a_step_too(tmp_path: Path) -> None:
    body = anthropic()
    body["system_prompt"] = body.pop("system")[0]["text"]
    document = opened(tmp_path / "body.json", body)
    assert document.step(0).text == "You repair code."
    assert document.step_count == 4


def test_a_result_of_no_known_call_says_so(tmp_path: Path) -> None:
    step = opened(tmp_path / "body.json", {"messages": [
        {"role": "assistant", "content": "hm"}, {"role": "user", "content": [result("lost", "x")]},
    ]}).step(1)  # fmt: skip
    assert (step.kind, step.flags, step.results[0].text) == (StepKind.TOOL, {"unpaired"}, "x")


def test_refusals_and_what_was_heard_are_shown(tmp_path: Path) -> None:
    document = opened(tmp_path / "chat.json", {"messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "refusal": "I must decline."},
        {"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": "Spoken words", "data": "AAAA"}},
    ]})  # fmt: skip
    assert document.step(1).text == "I must decline."
    assert "Spoken words" in document.step(2).text
    assert document.header.id == ""


def test_a_reply_that_was_cut_off_or_refused_says_so(tmp_path: Path) -> None:
    said = [
        {"role": "assistant", "content": "Half of", "stop_reason": why} for why in ("max_tokens", "end_turn")
    ]
    document = opened(tmp_path / "list.json", [{"role": "user", "content": "Go on"}, *said])
    assert [sorted(step.flags) for step in document.steps()] == [[], ["stopped: max_tokens"], []]


def test_ids_and_titles_come_from_the_object_itself(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    inner = {
        "role": "assistant",
        "content": "x",
        "tool_calls": [call],
        "id": "msg_synthetic_004",
        "instance_id": "inner",
    }
    messages = [{"role": "user", "content": "q"}, inner]
    nothing = opened(tmp_path / "a.json", {"messages": messages}).header
    assert (nothing.task, nothing.id) == ("", "")
    named = opened(tmp_path / "b.json", {"messages": messages, "instance_id": "lib-1", "id": "run-7"}).header
    assert (named.task, named.id) == ("lib-1", "run-7")


def test_rewards_of_benchmarks_are_verdicts(tmp_path: Path) -> None:
    row = {
        "task_id": 3,
        "reward": 0.0,
        "traj": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
    }
    path = tmp_path / "results.json"
    path.write_text(json.dumps([row, {**row, "task_id": 4, "reward": 1.0}]), encoding="utf-8")
    headers = [found.header for found in list_runs([path])]
    assert [(run.task, run.verdict, run.score) for run in headers if run] == [
        ("3", "unsolved", 0.0),
        ("4", "solved", 1.0),
    ]


def test_tokens_read_from_a_cache_are_part_of_the_prompt() -> None:
    tokens = tokens_of({"input_tokens": 4, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 6,
                        "output_tokens": 5})  # fmt: skip
    assert (tokens.prompt, tokens.cached, tokens.completion) == (100, 90, 5)


def claude(path: Path, *records: dict[str, Any]) -> RunDocument:
    base = {
        "sessionId": "s1",
        "version": "2",
        "cwd": "/r",
        "timestamp": "2026-06-10T18:23:50Z",
        "parentUuid": None,
    }
    path.write_text("\n".join(json.dumps({**base, **record}) for record in records) + "\n", encoding="utf-8")
    document = open_run(path)
    document.build()
    return document


def reply(identity: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"id": identity, "role": "assistant", "model": "claude-x", "content": list(blocks)}
    return {"type": "assistant", "uuid": identity, "message": message, **more}


def test_all_kinds_of_parts_in_a_session_of_claude_code_leave_a_trace(tmp_path: Path) -> None:
    blocks = anthropic()["messages"][3]["content"]
    text = {"type": "text", "text": "API Error: 529 overloaded"}
    document = claude(tmp_path / "s1.jsonl", reply("m1", *blocks), reply("m2", text, isApiErrorMessage=True))
    first, failed = document.steps()
    assert "8 characters that can't be read" in first.thought
    assert [call.tool for call in first.calls] == ["web_search"]
    assert first.results[0].text == "Means\nhttps://means.example"
    assert failed.kind is StepKind.ERROR
    assert "error" in failed.flags


def test_a_session_with_a_side_agent_in_it_is_no_side_agent(tmp_path: Path) -> None:
    said = {"type": "text", "text": "x"}
    user = {"type": "user", "uuid": "u", "message": {"role": "user", "content": "q"}}
    inside = claude(
        tmp_path / "s.jsonl", user, reply("m1", said, isSidechain=True, agentId="ag1"), reply("m2", said)
    ).header
    assert (inside.id, inside.agent) == ("s1", "claude-code")
    alone = claude(tmp_path / "agent-ag1.jsonl", reply("m1", said, isSidechain=True, agentId="ag1")).header
    assert (alone.id, alone.agent) == ("ag1", "claude-code side agent")


def test_messages_after_a_line_about_the_session_are_read(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Fix it", "timestamp": "2026-04-29T08:23:32"},
            {"role": "assistant", "content": "Done", "timestamp": "2026-04-29T08:23:40"}]  # fmt: skip
    heads = [{"role": "session_meta", "tools": [{"name": "bash"}], "model": "model-x", "platform": "cli"},
             {"_type": "metadata", "key": "cli:direct", "created_at": "2026-04-29T08:23:32"}]  # fmt: skip
    for number, head in enumerate(heads):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in (head, *said)), encoding="utf-8")
        document = open_run(path)
        document.build()
        about, asked, reply = document.steps()
        assert (about.kind, asked.text, reply.text) == (StepKind.STATE, "Fix it", "Done")
        assert document.header.model == head.get("model", "")


def test_messages_behind_long_declarations_of_tools_are_found(tmp_path: Path) -> None:
    tools = [{"name": "bash", "description": "x" * 200_000}]
    session = {"session_id": "s1", "model": "model-x", "platform": "cli", "system_prompt": "Be brief.", "tools": tools,
               "messages": [{"role": "user", "content": "Fix it"}]}  # fmt: skip
    document = opened(tmp_path / "session.json", session)
    assert [step.text for step in document.steps()] == ["Be brief.", "Fix it"]
    assert document.header.model == "model-x"


def progress(owner: str, **data: str) -> dict[str, Any]:
    return {"type": "progress", "parentToolUseID": owner, "toolUseID": f"p-{owner}", "data": data}


def test_what_a_call_reports_while_it_runs_joins_its_step(tmp_path: Path) -> None:
    command = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
    document = claude(
        tmp_path / "s.jsonl",
        {"type": "permission-mode", "permissionMode": "default"},
        progress("start", type="hook_progress", hookName="SessionStart:startup", command="prepare.sh"),
        reply("m1", command),
        progress("t1", type="bash_progress", output="do"),
        {"type": "user", "uuid": "u", "message": {"role": "user", "content": [result]}},
        progress("t1", type="hook_progress", hookName="PostToolUse:Bash", command="tidy.sh"),
        {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "Faster, please"}},
        {"type": "attachment", "attachment": {"type": "hook_blocking_error", "hookName": "Stop"}},
    )
    mode, hook, turn, heard, failed = document.steps()
    assert {mode.kind, hook.kind} == {StepKind.STATE}
    assert "prepare.sh" in hook.text
    assert (len(turn.records), turn.results[0].text) == (4, "done")
    assert "tidy.sh" in [noted.text for noted in turn.also]
    assert (heard.actor, heard.text) == (Actor.USER, "Faster, please")
    assert failed.kind is StepKind.ERROR


def test_a_session_without_a_request_has_its_title_or_its_command_as_a_name(tmp_path: Path) -> None:
    given = {
        "type": "user",
        "uuid": "u",
        "message": {"role": "user", "content": "<command-name>/init</command-name>"},
    }
    named = {"type": "ai-title", "aiTitle": "Begin the project"}
    assert claude(tmp_path / "a.jsonl", given).header.task == "/init"
    assert claude(tmp_path / "b.jsonl", given, named).header.task == "Begin the project"
    renamed = claude(
        tmp_path / "c.jsonl", given, {"type": "custom-title", "customTitle": "Mine"}, named
    ).header
    assert (renamed.task, renamed.extra["title"]) == ("Mine", "Mine")


def telemetry() -> list[dict[str, Any]]:
    """Return the events of a program that ran an agent once, in the form of OpenClaw's telemetry."""
    asked = [{"role": "user", "content": "Are there new mails?"}, {"role": "assistant", "content": "No."}]
    return [
        {"type": "message.in", "content": "Read AGENTS.md", "seq": 1},
        {"type": "agent.start", "agentId": "main", "prompt": "Are there new mails?", "seq": 2},
        {
            "type": "agent.start",
            "agentId": "main",
            "prompt": "Are there new mails?",
            "messages": [],
            "seq": 3,
        },
        {"type": "tool.start", "toolName": "exec", "params": {"command": "mail"}, "seq": 4},
        {"type": "tool.end", "toolName": "exec", "success": True, "seq": 5},
        {"type": "agent.end", "agentId": "main", "messages": asked, "success": True, "seq": 6},
    ]


@pytest.mark.parametrize("in_lines", [True, False])
def test_an_event_without_messages_is_no_run_and_its_success_no_verdict(
    tmp_path: Path, in_lines: bool
) -> None:
    events = telemetry()
    # The first element of an array determines its format; a file of lines may begin with any event.
    events = events if in_lines else events[::-1]
    path = tmp_path / "events"
    path.write_text("\n".join(map(json.dumps, events)) if in_lines else json.dumps(events), encoding="utf-8")
    (only,) = list_runs([path])
    assert only.name == f"{path}#{'6' if in_lines else '1'}"
    document = open_run(only.name)
    document.build()
    assert document.step_count == 2
    for header in (only.header, document.header):
        assert header is not None
        assert not header.verdict


def test_events_that_never_end_hold_no_run(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(map(json.dumps, telemetry()[:5])), encoding="utf-8")
    (only,) = list_runs([path])
    assert only.header is None
    assert only.is_verdict
    assert "contains no run" in only.problem
