"""Runs recorded as messages or steps."""

from __future__ import annotations

import json
from typing import Any

DIFF = "diff --git a/stats.py b/stats.py\n--- a/stats.py\n+++ b/stats.py\n@@ -1 +1 @@\n-return 1\n+return 2\n"


def swe_agent_step(era: str, number: int) -> dict[str, Any]:
    step: dict[str, Any] = {
        "action": ["ls -F\n", "str_replace_editor view /repo/stats.py", "python -m pytest -q", "submit"][
            number % 4
        ],
        "observation": "F  [100%]\r\n\x1b[31m1 failed\x1b[0m [tag=value: list[int]"
        if number % 2
        else "stats.py\n",
        "response": f"Step {number}: look é\n```\nls\n```",
        "thought": f"Step {number}: look é",
        "state": '{"open_file": "n/a", "working_dir": "/repo"}'
        if era == "0.5"
        else {"working_dir": "/repo", "diff": DIFF},
    }
    if era != "0.5":
        step["execution_time"] = 0.25
    if era in ("1.0", "1.1"):
        key = "messages" if era == "1.0" else "query"
        step[key] = [
            {"role": "system", "content": "You fix."},
            {"role": "user", "content": "Fix the mean."},
        ] * (number + 1)
        step["extra_info"] = {}
    return step


def swe_agent(era: str, steps: int = 4) -> dict[str, Any]:
    history = [
        {"role": "system", "content": "You fix.", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": "Fix another task.", "agent": "main", "is_demo": True},
        {"role": "assistant", "content": "It is fixed.", "agent": "main", "is_demo": True},
        {"role": "user", "content": "Fix the mean.", "agent": "main", "message_type": "observation"},
        {"role": "assistant", "content": "Step 0: look é", "agent": "main", "message_type": "action"},
        {"role": "user", "content": "stats.py", "agent": "main", "message_type": "observation"},
    ]
    info = {
        "exit_status": "submitted (exit_cost)",
        "submission": DIFF,
        "model_stats": {"instance_cost": 0.5, "tokens_sent": 100, "tokens_received": 7, "api_calls": 4},
    }
    document: dict[str, Any] = {
        "trajectory": [swe_agent_step(era, n) for n in range(steps)],
        "history": history,
        "info": info,
    }
    if era == "1.1":
        document["replay_config"] = json.dumps(
            {"agent": {"model": {"name": "model-x"}}, "problem_statement": {"id": "repo-1"}}
        )
    return {**document, "environment": "main"}


def history_only() -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    return {
        "history": [
            {"role": "system", "content": "You fix.", "agent": "main", "message_type": "system_prompt"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Fix it"}],
                "agent": "main",
                "message_type": "observation",
            },
            {
                "role": "assistant",
                "content": "Look",
                "tool_calls": [call],
                "agent": "main",
                "message_type": "action",
            },
            {
                "role": "tool",
                "content": "stats.py",
                "tool_call_ids": ["c1"],
                "agent": "main",
                "message_type": "observation",
            },
        ]
    }


def mini_v1() -> dict[str, Any]:
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 3},
        "cost": 0.01,
    }
    reply = {
        "role": "assistant",
        "content": "THOUGHT: look\n\n```bash\nls -la\n```",
        "extra": {
            "response": {
                "model": "model-x",
                "usage": usage,
                "choices": [{"message": {"role": "assistant", "reasoning": "hm"}}],
            }
        },
    }
    answer = {"role": "user", "content": "<returncode>1</returncode>\n<output>\nF\n</output>"}
    return {
        "info": {
            "mini_version": "1.15.0",
            "exit_status": "Submitted",
            "submission": DIFF,
            "model_stats": {"instance_cost": 0.3, "api_calls": 3},
            "config": {"model": {"model_name": "model-x"}},
        },
        "messages": [
            {"role": "system", "content": "You fix."},
            {"role": "user", "content": "Fix the mean."},
            *[reply, answer] * 3,
        ],
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "repo-1",
    }


def mini_v2() -> dict[str, Any]:
    def reply(n: int) -> dict[str, Any]:
        function = {"name": "bash", "arguments": json.dumps({"command": "cat stats.py"})}
        return {
            "role": "assistant",
            "content": f"Step {n}",
            "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
            "extra": {
                "actions": [{"command": "cat stats.py", "tool_call_id": f"c{n}"}],
                "cost": 0.1,
                "timestamp": 1_790_000_000.5 + n,
            },
        }

    def answer(n: int) -> dict[str, Any]:
        return {
            "content": "<returncode>0</returncode>\n<output>\nok\n</output>",
            "tool_call_id": f"c{n}",
            "role": "tool",
            "extra": {
                "raw_output": "ok",
                "returncode": 0,
                "timestamp": 1_790_000_001.0 + n,
                "exception_info": "",
            },
        }

    responses = {
        "object": "response",
        "id": "r1",
        "model": "model-y",
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "now"}]},
            {"type": "function_call", "call_id": "f1", "name": "bash", "arguments": '{"command": "ls"}'},
        ],
    }
    end = {"role": "exit", "content": DIFF, "extra": {"exit_status": "Submitted", "submission": DIFF}}
    return {
        "info": {
            "mini_version": "2.4.6",
            "exit_status": "Submitted",
            "model_stats": {"instance_cost": 0.2, "api_calls": 3},
            "config": {},
        },
        "messages": [
            {"role": "system", "content": "You fix."},
            {"role": "user", "content": "Fix."},
            reply(1),
            answer(1),
            reply(2),
            answer(2),
            responses,
            {"type": "function_call_output", "call_id": "f1", "output": "stats.py"},
            reply(3),
            end,
        ],
        "trajectory_format": "mini-swe-agent-1.1",
    }


def bare_list() -> list[Any]:
    return [
        {"role": "system", "content": "Answer with one ```mswea_bash_command block."},
        {"role": "user", "content": "Fix."},
        {"role": "assistant", "content": "Hi\n\n```mswea_bash_command\necho hi\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\nhi\n</output>"},
    ]


def atif(version: str) -> dict[str, Any]:
    call = {
        "tool_call_id": "c1",
        "function_name": "edit",
        "arguments": {"path": "stats.py", "old_str": "1", "new_str": "2"},
    }
    document: dict[str, Any] = {
        "schema_version": f"ATIF-v{version}",
        "session_id": "s1",
        "agent": {"name": "some-agent", "version": "1.0", "model_name": "model-x"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Fix.", "timestamp": "2026-01-02T03:04:05Z"},
            {
                "step_id": 2,
                "source": "agent",
                "message": "",
                "reasoning_content": "hm",
                "tool_calls": [call],
                "observation": {"results": [{"source_call_id": "c1", "content": "edited"}]},
                "metrics": {"prompt_tokens": 9, "completion_tokens": 2, "cost_usd": 0.25},
            },
            {"step_id": 3, "source": "agent", "message": "Done."},
        ],
        "final_metrics": {"total_prompt_tokens": 9, "total_completion_tokens": 2, "total_cost_usd": 0.25},
    }
    if version == "1.7":
        sub = {**atif("1.6"), "schema_version": "ATIF-v1.7", "trajectory_id": "sub-1"}
        document["subagent_trajectories"] = [sub]
        document["steps"][1]["observation"]["results"][0]["subagent_trajectory_ref"] = [
            {"trajectory_id": "sub-1"}
        ]
        document["continued_trajectory_ref"] = "atif-more.json"
    return document


def chat(calls: bool = True) -> list[Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{not json"}}
    return [
        {"role": "system", "content": "You fix."},
        {"role": "user", "content": "Fix."},
        {"role": "assistant", "content": None, "tool_calls": [call] if calls else []},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "ok"}]},
        {"role": "assistant", "content": "Done.", "reasoning_content": "hm"},
    ]


def breakpoint_results() -> list[Any]:
    def line(name: str, score: float) -> dict[str, Any]:
        usage = [
            {"tool": "read_file", "args": {"file_path": "a.py"}},
            {"tool": "search_code", "args": {"pattern": "x"}},
            {
                "tool": "replace_function",
                "args": {"func_name": "f", "file_path": "a.py", "func_code": "def f(): pass"},
            },
        ]
        return {
            "problem": name,
            "score": score,
            "config": {"model_name": "model-x", "mode": "discovery", "max_iterations": 8, "test_budget": 3},
            "metadata": {
                "repo_path": "/r",
                "file_path": "a.py",
                "tool_usage": usage,
                "right_function": [],
                "test_info": {
                    "success": score == 1,
                    "failed": 0 if score == 1 else 2,
                    "passed": 5,
                    "failures_info": ["boom"],
                },
            },
        }

    summary = {"total_problems": 2, "success_count": 1, "success_rate": 0.5, "config": {}}
    return [summary, line("f", 1.0), line("g", 0.5), line("f", 0.0)]


def debug_gym() -> dict[str, Any]:
    def step(n: int) -> dict[str, Any]:
        return {
            "step_id": n,
            "content": "look",
            "reasoning": "hm",
            "action": {"id": f"c{n}", "name": "view", "arguments": {"path": "a.py"}},
            "obs": "1 x = 1",
            "prompt_response_pairs": [
                {
                    "prompt": [{"role": "user", "content": "p"}],
                    "response": "r",
                    "token_usage": {"prompt": 10, "response": 3},
                }
            ],
        }

    start = {
        "step_id": 0,
        "content": None,
        "reasoning": None,
        "action": None,
        "obs": "start",
        "system_message": "s",
        "problem_message": "Fix",
    }
    return {
        "problem": "p1",
        "config": {"llm_name": "model-x"},
        "tools": [],
        "uuid": "u",
        "success": True,
        "agent_type": "debug",
        "logger": "/x",
        "log": [start, step(1), step(2)],
    }


def response_items() -> list[dict[str, Any]]:
    """Return items of OpenAI's Responses API, with calls of user tools and of tools on its servers."""
    return [
        {"role": "user", "content": "Fix the mean é."},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "mean"}},
        {"type": "code_interpreter_call", "id": "ci_1", "code": "print(1)", "outputs": [{"type": "logs", "logs": "1"}]},
        {"type": "mcp_call", "id": "mcp_1", "name": "roll", "arguments": "{}", "output": None, "error": "no dice"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "stats.py"},
        {"type": "shell_call", "call_id": "c2", "action": {"commands": ["pytest"]}, "status": "completed"},
        {"type": "shell_call_output", "call_id": "c2",
         "output": [{"stdout": "1 failed", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}]},
        {"type": "apply_patch_call", "call_id": "c3", "operation": {"type": "update_file", "path": "stats.py",
                                                                    "diff": "@@\n-return 1\n+return 2"}},
        {"type": "apply_patch_call_output", "call_id": "c3", "status": "failed", "output": "no such hunk"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]},
    ]  # fmt: skip
