"""Sessions and outputs of the command-line agents that people run; each is a list of records."""

from __future__ import annotations

import json
from typing import Any

from recorded_runs.dialogues import DIFF


def _at(second: int) -> str:
    return f"2026-05-01T10:00:{second:02}.000Z"


def enveloped(records: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the records of a Codex session with times."""
    return [
        {"timestamp": _at(number), "type": kind, "payload": payload}
        for number, (kind, payload) in enumerate(records)
    ]


def tokens(total: int, last: int) -> dict[str, Any]:
    """Return a token count of a Codex session."""
    usage = {"cached_input_tokens": 5, "reasoning_output_tokens": 2, "output_tokens": 3}
    info = {
        "total_token_usage": {"input_tokens": total, **usage},
        "last_token_usage": {"input_tokens": last, **usage},
    }
    return {"type": "token_count", "info": info, "rate_limits": {"plan_type": "plus"}}


def said(role: str, text: str) -> dict[str, Any]:
    """Return a message of a Codex session."""
    return {
        "type": "message",
        "role": role,
        "content": [{"type": f"{'in' if role == 'user' else 'out'}put_text", "text": text}],
    }


def call(identity: str, command: list[str]) -> dict[str, Any]:
    """Return a shell call in a Codex session."""
    return {
        "type": "function_call",
        "name": "shell",
        "call_id": identity,
        "arguments": json.dumps({"command": command}),
    }


CONTEXT = {"cwd": "/repo", "model": "gpt-x", "effort": "high", "user_instructions": "Be brief, and test."}


def codex_rollout() -> list[dict[str, Any]]:
    """Return a session of three replies.

    Its events repeat its items, and the first count comes before the items.
    """
    answer = json.dumps(
        {"output": "F é  [100%]\n1 failed\n", "metadata": {"exit_code": 1, "duration_seconds": 0.5}}
    )
    patch = (
        "*** Begin Patch\n*** Update File: stats.py\n@@\n def mean():\n-return 1\n+return 2\n*** End Patch\n"
    )
    changes = {
        "/repo/stats.py": {"type": "update", "unified_diff": DIFF[DIFF.index("@@") :], "move_path": None}
    }
    patched = {
        "type": "patch_apply_end",
        "call_id": "c2",
        "success": True,
        "stdout": "Success",
        "stderr": "",
        "changes": changes,
    }
    output = "Exit code: 0\nWall time: 0.2 seconds\nOutput:\nSuccess"
    return enveloped([
        ("session_meta", {"id": "s-1", "cwd": "/repo", "originator": "codex_cli_rs", "cli_version": "0.99.0",
                          "instructions": "You repair code.", "source": "cli", "git": {"branch": "main"}}),
        ("response_item", said("user", "<environment_context>\n<cwd>/repo</cwd>\n</environment_context>")),
        ("turn_context", CONTEXT),
        ("response_item", said("user", "Fix the mean")),
        ("event_msg", {"type": "user_message", "message": "Fix the mean", "images": []}),
        ("event_msg", {"type": "token_count", "info": None, "rate_limits": {}}),
        ("event_msg", {"type": "agent_reasoning", "text": "**Run the tests**"}),
        ("event_msg", tokens(100, 100)),
        ("response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "**Run the tests**"}],
                           "content": None, "encrypted_content": "gAAAA"}),
        ("response_item", call("c1", ["bash", "-lc", "pytest -q"])),
        ("response_item", {"type": "function_call_output", "call_id": "c1", "output": answer}),
        ("turn_context", CONTEXT),
        ("event_msg", tokens(100, 100)),
        ("response_item", {"type": "custom_tool_call", "name": "apply_patch", "call_id": "c2", "input": patch}),
        ("event_msg", tokens(300, 200)),
        ("event_msg", patched),
        ("response_item", {"type": "custom_tool_call_output", "call_id": "c2", "output": output}),
        ("response_item", said("assistant", "The mean is mended.")),
        ("event_msg", {"type": "agent_message", "message": "The mean is mended."}),
        ("event_msg", tokens(600, 300)),
        ("event_msg", {"type": "task_complete", "last_agent_message": "The mean is mended."}),
    ])  # fmt: skip


def codex_exec() -> list[dict[str, Any]]:
    """Return a run of two simultaneous commands, followed by a message."""

    def command(identity: str, line: str, output: str = "", code: int | None = None) -> dict[str, Any]:
        done = {"exit_code": code, "status": "completed" if code == 0 else "failed"}
        return {"id": identity, "type": "command_execution", "command": f"bash -lc {line}", "aggregated_output": output,
                **({"status": "in_progress"} if code is None else done)}  # fmt: skip

    return [
        {"type": "thread.started", "thread_id": "t-1"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "**Look first**"}},
        {"type": "item.started", "item": command("item_1", "'cat a.py'")},
        {"type": "item.started", "item": command("item_2", "'pytest -q'")},
        {"type": "item.completed", "item": command("item_2", "'pytest -q'", "1 failed\n", 1)},
        {"type": "item.completed", "item": command("item_1", "'cat a.py'", "x = 1\n", 0)},
        {
            "type": "item.completed",
            "item": {"id": "item_3", "type": "agent_message", "text": "One test fails."},
        },
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 60, "cached_input_tokens": 50, "output_tokens": 4},
        },
    ]


def claude_stream() -> list[dict[str, Any]]:
    """Return a stream of a hook and two replies in four records, with three of a side agent between them."""

    def record(
        name: str, content: list[dict[str, Any]], parent: str | None = None, **more: Any
    ) -> dict[str, Any]:
        return {"type": name, "message": {"role": name, "content": content, **more}, "parent_tool_use_id": parent,
                "session_id": "cs-1"}  # fmt: skip

    def use(identity: str, name: str, **asked: Any) -> dict[str, Any]:
        return {"type": "tool_use", "id": identity, "name": name, "input": asked}

    def result(identity: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}

    usage = {"input_tokens": 3, "cache_read_input_tokens": 7, "output_tokens": 1}
    ours: dict[str, Any] = {"id": "m1", "model": "claude-x", "usage": usage}
    edited = {"filePath": "/r/a.py", "oldString": "x = 1", "newString": "x = 2", "structuredPatch": [
        {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-x = 1", "+x = 2"]}]}  # fmt: skip
    return [
        {"type": "system", "subtype": "hook_started", "hook_name": "start", "session_id": "cs-1"},
        {"type": "system", "subtype": "init", "session_id": "cs-1", "cwd": "/r", "model": "claude-x",
         "claude_code_version": "2.1.0", "tools": ["Bash", "Task"], "permissionMode": "default"},
        record("assistant", [{"type": "thinking", "thinking": "Two places", "signature": "s"}], **ours),
        record("assistant", [use("t1", "Task", subagent_type="Explore", prompt="Look around")], **ours),
        record("user", [{"type": "text", "text": "Look around"}], "t1"),
        record("assistant", [use("t9", "Grep", pattern="mean")], "t1", id="m9", model="claude-y", usage=usage),
        record("assistant", [use("t2", "Edit", file_path="/r/a.py", old_string="x = 1", new_string="x = 2")], **ours),
        record("user", [result("t9", "a.py:1")], "t1"),
        {**record("user", [result("t2", "done")]), "tool_use_result": edited},
        record("user", [result("t1", [{"type": "text", "text": "In a.py"}])]),
        record("assistant", [use("t3", "Bash", command="pytest -q")], id="m2", model="claude-x", usage=usage),
        record("user", [result("t3", "Not allowed", is_error=True)]),
        {"type": "result", "subtype": "error_max_turns", "is_error": False, "num_turns": 3, "session_id": "cs-1",
         "duration_ms": 2500, "total_cost_usd": 0.25, "usage": usage, "permission_denials": [
             {"tool_name": "Bash", "tool_use_id": "t3", "tool_input": {"command": "pytest -q"}}],
         "modelUsage": {"claude-x": {"inputTokens": 10, "outputTokens": 20, "cacheReadInputTokens": 5},
                        "claude-y": {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 0}}},
    ]  # fmt: skip


def exchanges() -> list[dict[str, Any]]:
    """Return a conversation of two requests, and between them a request for a title."""
    asked: dict[str, Any] = {
        "role": "user",
        "content": [{"type": "text", "text": "Fix é", "cache_control": {"type": "ephemeral"}}],
    }
    use = {"type": "tool_use", "id": "tu1", "name": "bash", "input": {"command": "pytest -q"}}
    result = {"type": "tool_result", "tool_use_id": "tu1", "content": "1 failed", "is_error": True}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 2}

    def reply(content: list[dict[str, Any]], why: str, number: int) -> dict[str, Any]:
        return {"type": "message", "role": "assistant", "id": f"msg{number}", "model": "claude-x", "content": content,
                "stop_reason": why, "usage": usage}  # fmt: skip

    def exchange(
        second: int, system: str, messages: list[dict[str, Any]], answer: dict[str, Any]
    ) -> dict[str, Any]:
        body = {"model": "claude-x", "max_tokens": 9, "system": system, "messages": messages}
        request = {"timestamp": 1_700_000_000 + second, "method": "POST", "body": body}
        return {"request": request, "response": {"timestamp": 1_700_000_001 + second, "body": answer}}

    plain: dict[str, Any] = {"role": "user", "content": "Fix é"}
    said: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Test first", "signature": "s"},
        {"type": "text", "text": "I test"},
        use,
    ]
    history: list[dict[str, Any]] = [
        plain,
        {"role": "assistant", "content": said},
        {"role": "user", "content": [result]},
    ]
    return [
        exchange(0, "You repair code.", [asked], reply(said, "tool_use", 1)),
        exchange(1, "Find a title.", [plain], reply([{"type": "text", "text": "A title"}], "end_turn", 2)),
        exchange(5, "You repair code.", history, reply([{"type": "text", "text": "Mended."}], "end_turn", 3)),
    ]


def gemini_messages() -> list[dict[str, Any]]:
    """Return a prompt, a reply with two calls, a notice and a last reply.

    One call failed, and the other changed a file.
    """

    def record(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"id": f"g{number}", "timestamp": _at(number), "type": kind, "content": content, **more}

    def called(identity: str, name: str, response: dict[str, Any], **more: Any) -> dict[str, Any]:
        answer = {"functionResponse": {"id": identity, "name": name, "response": response}}
        return {
            "id": identity,
            "name": name,
            "result": [answer],
            "timestamp": _at(9),
            "displayName": "Tool",
            **more,
        }

    counts = {"input": 100, "output": 8, "cached": 40, "thoughts": 2, "tool": 0, "total": 110}
    tests = called("t1", "run_shell_command", {"output": "Output: 1 failed é\nExit Code: 1\n"}, status="success",
                   args={"command": "pytest -q"})  # fmt: skip
    edit = called("t2", "replace", {"output": "Changed."}, status="success", resultDisplay={
        "fileDiff": DIFF, "fileName": "stats.py", "originalContent": "return 1", "newContent": "return 2"},
        args={"file_path": "stats.py", "old_string": "return 1", "new_string": "return 2"})  # fmt: skip
    return [
        record(1, "user", [{"text": "Fix the mean"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0K"}}]),
        record(2, "gemini", "", thoughts=[{"subject": "Tests first", "description": "They tell."}], tokens=counts,
             model="gemini-x", toolCalls=[tests, edit]),
        record(3, "info", "Request cancelled."),
        record(4, "gemini", "Mended.", tokens=counts, model="gemini-x"),
    ]  # fmt: skip


GEMINI = {
    "sessionId": "gs-1",
    "projectHash": "ab12",
    "startTime": _at(0),
    "lastUpdated": _at(9),
    "kind": "main",
}


def gemini_stream() -> list[dict[str, Any]]:
    """Return a stream of a reply in two pieces with a call that failed, and a last reply."""

    def event(second: int, kind: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "timestamp": _at(second), **more}

    def piece(second: int, text: str) -> dict[str, Any]:
        return event(second, "message", role="assistant", content=text, delta=True)

    stats = {"input_tokens": 50, "output_tokens": 6, "cached": 4, "duration_ms": 5500}
    return [
        event(0, "init", session_id="gs-2", model="gemini-x"),
        event(1, "message", role="user", content="Fix the mean"),
        piece(2, "I will run "),
        piece(3, "the tests first."),
        event(
            3, "tool_use", tool_name="run_shell_command", tool_id="u1", parameters={"command": "pytest -q"}
        ),
        event(
            4,
            "tool_result",
            tool_id="u1",
            status="error",
            error={"type": "tool", "message": "No such program"},
        ),
        piece(5, "There are none."),
        event(6, "result", status="success", stats=stats),
    ]


def qwen_session() -> list[dict[str, Any]]:
    """Return a session with an abandoned branch, and one with a call; one reply is in two records."""

    def record(
        name: str, parent: str | None, kind: str, parts: list[dict[str, Any]], **more: Any
    ) -> dict[str, Any]:
        role = {"assistant": "model"}.get(kind, "user")
        return {"uuid": name, "parentUuid": parent, "sessionId": "qs-1", "timestamp": _at(len(name)), "type": kind,
                "cwd": "/r", "version": "0.9", "message": {"role": role, "parts": parts}, **more}  # fmt: skip

    call = {"functionCall": {"id": "q1", "name": "run_shell_command", "args": {"command": "pytest -q"}}}
    answer = {
        "functionResponse": {"id": "q1", "name": "run_shell_command", "response": {"error": "timed out"}}
    }
    rewind = {"subtype": "rewind", "systemPayload": {"targetUuid": "a"}}
    usage = {"promptTokenCount": 12, "candidatesTokenCount": 3, "thoughtsTokenCount": 1}
    return [
        record("a", None, "user", [{"text": "Fix the mean"}]),
        record("aa", "a", "assistant", [{"text": "A wrong way"}], model="qwen-x"),
        {**record("aaa", "a", "system", []), **rewind},
        record("aaaa", "aaa", "assistant", [{"text": "Think", "thought": True}]),
        record("aaaa", "aaa", "assistant", [{"text": "I test"}, call], model="qwen-x", usageMetadata=usage),
        record("aaaaa", "aaaa", "tool_result", [answer], toolCallResult={"callId": "q1", "status": "error"}),
    ]


def agent_files() -> list[tuple[str, bool, Any, str, Any, Any]]:
    """Return, for each file: its name, whether it consists of lines, its content, format, records and steps.

    Records and steps are counts, by run id if there are several runs.
    """
    of_stream = {"": 10, "t1": 3}, {"": 5, "t1": 2}
    return [
        ("k-rollout", True, codex_rollout(), "codex", 21, 7),
        ("k-exec", True, codex_exec(), "codex-exec", 9, 5),
        ("k-stream", True, claude_stream(), "claude-stream", *of_stream),
        ("k-exchanges", True, exchanges(), "api-log", {"1": 5, "2": 3}, {"1": 4, "2": 3}),
        ("k-gemini", False, {**GEMINI, "messages": gemini_messages()}, "gemini-cli", 4, 4),
        (
            "k-gemini-log",
            True,
            [GEMINI, *gemini_messages(), {"$set": {"lastUpdated": _at(9)}}],
            "gemini-cli",
            6,
            5,
        ),
        ("k-gemini-stream", True, gemini_stream(), "gemini-stream", 8, 5),
        ("k-qwen", True, qwen_session(), "qwen-code", 6, 4),
        ("k-stream-array", False, claude_stream(), "claude-stream", *of_stream),
    ]
