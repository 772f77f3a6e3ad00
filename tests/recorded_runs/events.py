"""Runs recorded as events."""

from __future__ import annotations

from typing import Any

from recorded_runs.dialogues import DIFF


def openhands_v0() -> list[Any]:
    metadata = {
        "function_name": "execute_bash",
        "tool_call_id": "t1",
        "total_calls_in_response": 1,
        "model_response": {
            "model": "model-x",
            "usage": {"prompt_tokens": 5, "completion_tokens": 2},
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": "Run",
                        "tool_calls": [
                            {
                                "id": "t1",
                                "type": "function",
                                "function": {"name": "execute_bash", "arguments": '{"command": "ls"}'},
                            }
                        ],
                    }
                }
            ],
        },
    }
    return [
        {
            "id": 0,
            "timestamp": "2025-01-20T20:29:13.519638",
            "source": "user",
            "message": "Fix",
            "action": "message",
            "args": {"content": "Fix"},
        },
        {
            "id": 1,
            "timestamp": "2025-01-20T20:29:14",
            "source": "agent",
            "message": "",
            "action": "run",
            "tool_call_metadata": metadata,
            "args": {"command": "ls", "thought": "look"},
        },
        {
            "id": 2,
            "timestamp": "2025-01-20T20:29:14.5",
            "source": "environment",
            "message": "",
            "observation": "agent_state_changed",
            "content": "",
            "extras": {"agent_state": "running"},
        },
        {
            "id": 3,
            "timestamp": "2025-01-20T20:29:15",
            "source": "agent",
            "message": "",
            "cause": 1,
            "observation": "run",
            "content": "stats.py",
            "tool_call_metadata": metadata,
            "extras": {"command": "ls", "metadata": {"exit_code": 2}},
            "success": False,
        },
        {
            "id": 4,
            "timestamp": "2025-01-20T20:29:16",
            "source": "agent",
            "message": "done",
            "action": "finish",
            "args": {"outputs": {}},
        },
    ]


def openhands_v1() -> list[Any]:
    def action(n: int, reply: str) -> dict[str, Any]:
        return {
            "id": f"a{n}",
            "timestamp": f"2026-06-16T05:39:1{n}",
            "source": "agent",
            "thought": [{"type": "text", "text": "go"}],
            "reasoning_content": "hm",
            "action": {"command": "ls", "kind": "TerminalAction"},
            "tool_name": "terminal",
            "tool_call_id": f"t{n}",
            "llm_response_id": reply,
            "kind": "ActionEvent",
            "tool_call": {"id": f"t{n}", "name": "terminal", "arguments": '{"command": "ls"}'},
        }

    def result(n: int) -> dict[str, Any]:
        return {
            "id": f"o{n}",
            "timestamp": f"2026-06-16T05:39:2{n}",
            "source": "environment",
            "tool_name": "terminal",
            "tool_call_id": f"t{n}",
            "action_id": f"a{n}",
            "kind": "ObservationEvent",
            "observation": {
                "content": [{"type": "text", "text": "stats.py"}],
                "is_error": False,
                "exit_code": 0,
            },
        }

    return [
        {
            "id": "s",
            "timestamp": "2026-06-16T05:39:00",
            "source": "agent",
            "system_prompt": {"type": "text", "text": "You fix"},
            "tools": [],
            "kind": "SystemPromptEvent",
        },
        {
            "id": "m",
            "timestamp": "2026-06-16T05:39:01",
            "source": "user",
            "kind": "MessageEvent",
            "llm_message": {"role": "user", "content": [{"type": "text", "text": "Fix"}]},
        },
        action(1, "r1"),
        action(2, "r1"),
        result(2),
        result(1),
        action(3, "r2"),
        result(3),
        {
            "id": "n",
            "timestamp": "2026-06-16T05:39:30",
            "source": "agent",
            "kind": "SomethingNewEvent",
            "what": 1,
        },
    ]


def openhands_output() -> list[Any]:
    def line(name: str, history: list[Any]) -> dict[str, Any]:
        return {
            "instance_id": name,
            "instruction": "Fix",
            "metadata": {"agent_class": "CodeActAgent", "llm_config": {"model": "model-x"}},
            "history": history,
            "metrics": {"accumulated_cost": 0.5},
            "error": None,
            "test_result": {"git_patch": DIFF},
        }

    events = openhands_v0()
    return [
        line("a/b#1", events),
        line("two", openhands_v1()),
        line("pairs", [[events[1], events[3]], [events[4], {}]]),
    ]


def claude_session() -> list[Any]:
    common = {
        "sessionId": "s1",
        "version": "2.0.46",
        "cwd": "/app",
        "isSidechain": False,
        "userType": "external",
    }

    def assistant(n: int, message: str, block: dict[str, Any]) -> dict[str, Any]:
        usage = {
            "input_tokens": 2,
            "cache_read_input_tokens": 10,
            "cache_creation_input_tokens": 1,
            "output_tokens": 7,
        }
        return {
            **common,
            "type": "assistant",
            "uuid": f"u{n}",
            "parentUuid": "gone",
            "timestamp": f"2025-11-19T22:54:{30 + n}Z",
            "message": {
                "id": message,
                "role": "assistant",
                "model": "model-x",
                "content": [block],
                "usage": usage,
            },
        }

    def answer(n: int, id: str, rich: Any) -> dict[str, Any]:
        return {
            **common,
            "type": "user",
            "uuid": f"u{n}",
            "timestamp": f"2025-11-19T22:54:{30 + n}Z",
            "toolUseResult": rich,
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok", "is_error": False}],
            },
        }

    patch = {
        "filePath": "/app/stats.py",
        "oldString": "1",
        "newString": "2",
        "structuredPatch": [
            {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-1", "+2"]}
        ],
    }
    return [
        {"type": "summary", "summary": "Fix", "leafUuid": "x"},
        {
            **common,
            "type": "user",
            "uuid": "u1",
            "timestamp": "2025-11-19T22:54:30Z",
            "message": {"role": "user", "content": "Fix"},
        },
        assistant(2, "m1", {"type": "thinking", "thinking": "hm", "signature": "s"}),
        assistant(
            3, "m1", {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/app/stats.py"}}
        ),
        assistant(4, "m1", {"type": "tool_use", "id": "t2", "name": "Task", "input": {"prompt": "look"}}),
        answer(5, "t2", {"agentId": "d0f", "totalDurationMs": 1200}),
        answer(6, "t1", patch),
        {**common, "type": "system", "subtype": "compact_boundary", "content": "compacted", "uuid": "u7"},
        {**common, "type": "brand-new", "value": 1, "uuid": "u8"},
        assistant(9, "m2", {"type": "text", "text": "Done"}),
    ]


def journal() -> list[Any]:
    events: list[tuple[str, dict[str, Any]]] = [
        (
            "attempt_started",
            {
                "attempt_id": "a1",
                "task_id": "t1",
                "schema": 1,
                "actor": "person",
                "budgets": {"tool_uses": 16},
            },
        ),
        ("process_started", {"boot_id": "b"}),
        ("view", {"pane": "code"}),
        (
            "tool_call",
            {
                "call_id": "c1",
                "turn": 1,
                "tool": "read_file",
                "arguments": {"file_path": "a.py"},
                "thought": "look",
            },
        ),
        ("heartbeat", {}),
        (
            "tool_result",
            {
                "call_id": "c1",
                "text": "x = 1",
                "refused": False,
                "duration_ms": 12,
                "budget": {"tool_uses": 15, "submissions": 4},
            },
        ),
        (
            "tool_call",
            {
                "call_id": "c2",
                "turn": 2,
                "tool": "submit_attempt",
                "arguments": {"func_code": "def f(): pass"},
            },
        ),
        (
            "submit",
            {
                "call_id": "c2",
                "number": 1,
                "replacement": {"path": "a.py", "qualname": "f", "code": "def f(): pass"},
            },
        ),
        ("test_run", {"call_id": "c2", "status": "finished"}),
        ("score", {"call_id": "c2", "score": 1.0, "solved": True}),
        ("tool_result", {"call_id": "c2", "text": "score 1", "refused": False, "duration_ms": 900}),
        ("from_the_future", {"x": 1}),
        ("attempt_ended", {"reason": "solved"}),
    ]
    return [
        {
            "seq": n,
            "type": kind,
            "utc_ms": 1_790_000_000_000 + n * 1000,
            "mono_ms": n * 1000,
            "prev": "0" * 64,
            "data": data,
        }
        for n, (kind, data) in enumerate(events, 1)
    ]
