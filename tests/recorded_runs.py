"""Makes a small file of every format of recorded runs, in the layouts that their tools write."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

DIFF = "diff --git a/stats.py b/stats.py\n--- a/stats.py\n+++ b/stats.py\n@@ -1 +1 @@\n-return 1\n+return 2\n"


@dataclass(frozen=True)
class Made:
    """A file, and what a direct count of its raw records gives: of the file's only run, or by id."""

    path: Path
    format: str
    records: dict[str, int]
    steps: dict[str, int]


def _write(path: Path, value: Any, indent: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


def _lines(path: Path, values: list[Any], end: str = "\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(value) for value in values) + end, encoding="utf-8")
    return path


def swe_agent_step(era: str, number: int) -> dict[str, Any]:
    step: dict[str, Any] = {
        "action": ["ls -F\n", "str_replace_editor view /repo/stats.py", "python -m pytest -q", "submit"][number % 4],
        "observation": "F  [100%]\r\n\x1b[31m1 failed\x1b[0m [tag=value: list[int]" if number % 2 else "stats.py\n",
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
        step[key] = [{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix the mean."}] * (
            number + 1
        )
        step["extra_info"] = {}
    return step


def swe_agent(era: str, steps: int = 4) -> dict[str, Any]:
    history = [{"role": "system", "content": "You fix.", "agent": "main", "message_type": "system_prompt"}]
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
            {"role": "assistant", "content": "Look", "tool_calls": [call], "agent": "main", "message_type": "action"},
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
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}, "cost": 0.01}
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
        "info": {"mini_version": "1.15.0", "exit_status": "Submitted", "submission": DIFF,
                 "model_stats": {"instance_cost": 0.3, "api_calls": 3}, "config": {"model": {"model_name": "model-x"}}},
        "messages": [{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix the mean."}, *[reply, answer] * 3],
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": "repo-1",
    }  # fmt: skip


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
            "extra": {"raw_output": "ok", "returncode": 0, "timestamp": 1_790_000_001.0 + n, "exception_info": ""},
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
        "info": {"mini_version": "2.4.6", "exit_status": "Submitted", "model_stats": {"instance_cost": 0.2, "api_calls": 3}, "config": {}},
        "messages": [{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix."}, reply(1), answer(1), reply(2), answer(2),
                     responses, {"type": "function_call_output", "call_id": "f1", "output": "stats.py"}, reply(3), end],
        "trajectory_format": "mini-swe-agent-1.1",
    }  # fmt: skip


def bare_list() -> list[Any]:
    return [
        {"role": "system", "content": "Answer with one ```mswea_bash_command block."}, {"role": "user", "content": "Fix."},
        {"role": "assistant", "content": "Hi\n\n```mswea_bash_command\necho hi\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\nhi\n</output>"},
    ]  # fmt: skip


def atif(version: str) -> dict[str, Any]:
    call = {
        "tool_call_id": "c1",
        "function_name": "edit",
        "arguments": {"path": "stats.py", "old_str": "1", "new_str": "2"},
    }
    document: dict[str, Any] = {
        "schema_version": f"ATIF-v{version}", "session_id": "s1",
        "agent": {"name": "some-agent", "version": "1.0", "model_name": "model-x"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Fix.", "timestamp": "2026-01-02T03:04:05Z"},
            {"step_id": 2, "source": "agent", "message": "", "reasoning_content": "hm", "tool_calls": [call],
             "observation": {"results": [{"source_call_id": "c1", "content": "edited"}]},
             "metrics": {"prompt_tokens": 9, "completion_tokens": 2, "cost_usd": 0.25}},
            {"step_id": 3, "source": "agent", "message": "Done."},
        ],
        "final_metrics": {"total_prompt_tokens": 9, "total_completion_tokens": 2, "total_cost_usd": 0.25},
    }  # fmt: skip
    if version == "1.7":
        sub = {**atif("1.6"), "schema_version": "ATIF-v1.7", "trajectory_id": "sub-1"}
        document["subagent_trajectories"] = [sub]
        document["steps"][1]["observation"]["results"][0]["subagent_trajectory_ref"] = [{"trajectory_id": "sub-1"}]
        document["continued_trajectory_ref"] = "atif-more.json"
    return document


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
        {"id": 0, "timestamp": "2025-01-20T20:29:13.519638", "source": "user", "message": "Fix", "action": "message", "args": {"content": "Fix"}},
        {"id": 1, "timestamp": "2025-01-20T20:29:14", "source": "agent", "message": "", "action": "run", "tool_call_metadata": metadata,
         "args": {"command": "ls", "thought": "look"}},
        {"id": 2, "timestamp": "2025-01-20T20:29:14.5", "source": "environment", "message": "", "observation": "agent_state_changed",
         "content": "", "extras": {"agent_state": "running"}},
        {"id": 3, "timestamp": "2025-01-20T20:29:15", "source": "agent", "message": "", "cause": 1, "observation": "run", "content": "stats.py",
         "tool_call_metadata": metadata, "extras": {"command": "ls", "metadata": {"exit_code": 2}}, "success": False},
        {"id": 4, "timestamp": "2025-01-20T20:29:16", "source": "agent", "message": "done", "action": "finish", "args": {"outputs": {}}},
    ]  # fmt: skip


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
            "observation": {"content": [{"type": "text", "text": "stats.py"}], "is_error": False, "exit_code": 0},
        }

    return [
        {"id": "s", "timestamp": "2026-06-16T05:39:00", "source": "agent", "system_prompt": {"type": "text", "text": "You fix"}, "tools": [],
         "kind": "SystemPromptEvent"},
        {"id": "m", "timestamp": "2026-06-16T05:39:01", "source": "user", "kind": "MessageEvent",
         "llm_message": {"role": "user", "content": [{"type": "text", "text": "Fix"}]}},
        action(1, "r1"), action(2, "r1"), result(2), result(1), action(3, "r2"), result(3),
        {"id": "n", "timestamp": "2026-06-16T05:39:30", "source": "agent", "kind": "SomethingNewEvent", "what": 1},
    ]  # fmt: skip


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
    common = {"sessionId": "s1", "version": "2.0.46", "cwd": "/app", "isSidechain": False, "userType": "external"}

    def assistant(n: int, message: str, block: dict[str, Any]) -> dict[str, Any]:
        usage = {"input_tokens": 2, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 1, "output_tokens": 7}
        return {
            **common,
            "type": "assistant",
            "uuid": f"u{n}",
            "parentUuid": "gone",
            "timestamp": f"2025-11-19T22:54:{30 + n}Z",
            "message": {"id": message, "role": "assistant", "model": "model-x", "content": [block], "usage": usage},
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
        "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-1", "+2"]}],
    }
    return [
        {"type": "summary", "summary": "Fix", "leafUuid": "x"},
        {**common, "type": "user", "uuid": "u1", "timestamp": "2025-11-19T22:54:30Z", "message": {"role": "user", "content": "Fix"}},
        assistant(2, "m1", {"type": "thinking", "thinking": "hm", "signature": "s"}),
        assistant(3, "m1", {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/app/stats.py"}}),
        assistant(4, "m1", {"type": "tool_use", "id": "t2", "name": "Task", "input": {"prompt": "look"}}),
        answer(5, "t2", {"agentId": "d0f", "totalDurationMs": 1200}), answer(6, "t1", patch),
        {**common, "type": "system", "subtype": "compact_boundary", "content": "compacted", "uuid": "u7"},
        {**common, "type": "brand-new", "value": 1, "uuid": "u8"},
        assistant(9, "m2", {"type": "text", "text": "Done"}),
    ]  # fmt: skip


def chat(calls: bool = True) -> list[Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{not json"}}
    return [
        {"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix."},
        {"role": "assistant", "content": None, "tool_calls": [call] if calls else []},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "ok"}]},
        {"role": "assistant", "content": "Done.", "reasoning_content": "hm"},
    ]  # fmt: skip


def breakpoint_results() -> list[Any]:
    def line(name: str, score: float) -> dict[str, Any]:
        usage = [
            {"tool": "read_file", "args": {"file_path": "a.py"}},
            {"tool": "search_code", "args": {"pattern": "x"}},
            {"tool": "replace_function", "args": {"func_name": "f", "file_path": "a.py", "func_code": "def f(): pass"}},
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


def journal() -> list[Any]:
    events: list[tuple[str, dict[str, Any]]] = [
        ("attempt_started", {"attempt_id": "a1", "task_id": "t1", "actor_kind": "person", "budgets": {"tool_uses": 16}}),
        ("process_started", {"boot_id": "b"}), ("view", {"pane": "code"}),
        ("tool_call", {"call_id": "c1", "turn": 1, "tool": "read_file", "arguments": {"file_path": "a.py"}, "thought": "look"}),
        ("heartbeat", {}),
        ("tool_result", {"call_id": "c1", "text": "x = 1", "refused": False, "duration_ms": 12, "budget": {"tool_uses": 15, "submissions": 4}}),
        ("tool_call", {"call_id": "c2", "turn": 2, "tool": "submit_attempt", "arguments": {"func_code": "def f(): pass"}}),
        ("submit", {"call_id": "c2", "number": 1, "replacement": {"path": "a.py", "qualname": "f", "code": "def f(): pass"}}),
        ("test_run", {"call_id": "c2", "status": "finished"}), ("score", {"call_id": "c2", "score": 1.0, "solved": True}),
        ("tool_result", {"call_id": "c2", "text": "score 1", "refused": False, "duration_ms": 900}),
        ("from_the_future", {"x": 1}), ("attempt_ended", {"reason": "solved"}),
    ]  # fmt: skip
    return [{"seq": n, "type": kind, "utc_ms": 1_790_000_000_000 + n * 1000, "mono_ms": n * 1000, "prev": "0" * 64, "data": data}
            for n, (kind, data) in enumerate(events, 1)]  # fmt: skip


def inspect_events() -> list[Any]:
    reply = {
        "role": "assistant",
        "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "attachment://abc1"}],
        "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"}],
    }
    usage = {"input_tokens": 10, "output_tokens": 3, "input_tokens_cache_read": 4, "total_tokens": 17}
    base = {"timestamp": "2026-06-10T18:23:50.198559+00:00", "working_start": 1.0, "span_id": "s"}
    return [
        {**base, "event": "span_begin", "id": "s", "type": "init", "name": "init", "uuid": "1"},
        {**base, "event": "sample_init", "sample": {"input": "attachment://abc0", "target": "t", "id": 1}, "state": {}, "uuid": "2"},
        {**base, "event": "model", "model": "model-x", "input": [], "output": {"model": "model-x", "choices": [{"message": reply}], "usage": usage},
         "completed": "2026-06-10T18:23:51+00:00", "uuid": "3"},
        {**base, "event": "tool", "id": "c1", "function": "bash", "arguments": {"cmd": "ls"}, "result": "stats.py", "error": None, "uuid": "4"},
        {**base, "event": "sandbox", "action": "exec", "cmd": "ls", "result": 0, "output": "x", "completed": "2026-06-10T18:23:52+00:00"},
        {**base, "event": "never_seen", "x": 1, "uuid": "5"},
        {**base, "event": "score", "score": {"value": "C", "answer": "a", "explanation": "e"}, "target": "t", "uuid": "6"},
    ]  # fmt: skip


def inspect_sample(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": 1,
        "input": "Fix",
        "target": "t",
        "messages": [{"role": "user", "content": "Fix"}],
        "scores": {"match": {"value": "C", "answer": "a"}},
        "store": {},
        "events": inspect_events(),
        "model_usage": {"model-x": {"input_tokens": 10, "output_tokens": 3}},
        "total_time": 2.5,
        "attachments": {"abc0": "Fix the mean", "abc1": "I will look"},
    }


def inspect_header() -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "some", "model": "vendor/model-x"},
        "plan": {},
        "results": {},
        "stats": {},
    }


def _zstd_member(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Write a member by method 93, which the standard library can't: as a stored one, its headers changed after."""
    packed = zstandard.ZstdCompressor().compress(data)
    info = zipfile.ZipInfo(name)
    at = archive.fp.tell()  # type: ignore[union-attr]
    archive.writestr(info, packed)
    info.compress_type, info.file_size, info.CRC = 93, len(data), zlib.crc32(data)
    end = archive.fp.tell()  # type: ignore[union-attr]
    archive.fp.seek(at + 8)  # type: ignore[union-attr]
    archive.fp.write(struct.pack("<H", 93))  # type: ignore[union-attr]
    archive.fp.seek(end)  # type: ignore[union-attr]


def inspect_archive(path: Path, *, zstd: bool = False, finished: bool = True) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:

        def put(name: str, value: Any) -> None:
            data = json.dumps(value).encode()
            _zstd_member(archive, name, data) if zstd else archive.writestr(name, data)

        put("_journal/start.json", {key: inspect_header()[key] for key in ("version", "eval", "plan")})
        put("samples/1_epoch_1.json", inspect_sample(1))
        put("samples/2_epoch_1.json", inspect_sample(2))
        put("_journal/summaries/1.json", [{"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}}}])
        if finished:
            put("summaries.json", [{"id": n, "epoch": 1, "scores": {"match": {"value": "C"}}} for n in (1, 2)])
            put("header.json", inspect_header())
    return path


def inspect_chunked(path: Path) -> Path:
    events = json.loads(json.dumps(inspect_events()).replace("attachment://abc", "attachment://"))
    shell = {key: value for key, value in inspect_sample(1).items() if key not in ("events", "messages", "attachments")}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        folder = "samples/1_epoch_1"
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": inspect_header()["eval"]}))
        archive.writestr(f"{folder}/sample.json", json.dumps({**shell, "message_refs": [[0, 1]]}))
        archive.writestr(f"{folder}/messages/0.json", json.dumps(inspect_sample(1)["messages"]))
        archive.writestr(f"{folder}/events/4.json", json.dumps(events[4:]))
        archive.writestr(f"{folder}/events/0.json", json.dumps(events[:4]))
        archive.writestr(f"{folder}/events/stats.json", "{}")
        archive.writestr(f"{folder}/attachments/0.json", json.dumps(["Fix the mean"]))
        archive.writestr(f"{folder}/attachments/1.json", json.dumps(["I will look"]))
        archive.writestr("header.json", json.dumps(inspect_header()))
    return path


def make_all(folder: Path) -> list[Made]:
    """Write a file of every format below `folder`; none has a name that tells what it is."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Made] = []

    def add(path: Path, format: str, records: int | dict[str, int], steps: int | dict[str, int] | None = None) -> None:
        known = records if isinstance(records, dict) else {"": records}
        told = known if steps is None else steps if isinstance(steps, dict) else {"": steps}
        made.append(Made(path, format, known, told))

    for era in ("0.5", "0.7", "1.0", "1.1"):
        add(_write(folder / f"a-{era}", swe_agent(era), 2), "swe-agent", 4)
    add(_write(folder / "a-compact", swe_agent("1.1")), "swe-agent", 4)
    add(_write(folder / "a-history", history_only(), 2), "swe-agent", 4, 3)
    add(_write(folder / "b-1", mini_v1(), 2), "mini-swe-agent", 8, 5)
    add(_write(folder / "b-2", mini_v2(), 2), "mini-swe-agent", 10, 7)
    add(_write(folder / "b-compact", mini_v2()), "mini-swe-agent", 10, 7)
    add(_write(folder / "b-list", bare_list(), 2), "mini-swe-agent", 4, 3)
    for version in ("1.0", "1.5", "1.8"):
        add(_write(folder / f"c-{version}", atif(version), 2), "atif", 3)
    add(_write(folder / "c-1.7", atif("1.7"), 2), "atif", {"": 3, "sub-1": 3})
    add(_write(folder / "d-0", openhands_v0(), 2), "openhands", 5, 4)
    add(_write(folder / "d-0-compact", openhands_v0()), "openhands", 5, 4)
    add(_lines(folder / "d-1", openhands_v1()), "openhands", 9, 5)
    add(
        _lines(folder / "d-out", openhands_output()),
        "openhands",
        {"a/b#1": 5, "two": 9, "pairs": 2},
        {"a/b#1": 4, "two": 5, "pairs": 2},
    )
    for number, event in enumerate(openhands_v1()):
        _write(folder / "d-folder" / "events" / f"event-{number:05}-{number}abc.json", event)
    add(folder / "d-folder", "openhands", 9, 5)
    samples = {"1_epoch_1": 7, "2_epoch_1": 7}
    turns = {"1_epoch_1": 6, "2_epoch_1": 6}
    add(inspect_archive(folder / "e-deflate"), "inspect", samples, turns)
    add(inspect_archive(folder / "e-zstd", zstd=True), "inspect", samples, turns)
    add(inspect_archive(folder / "e-running", finished=False), "inspect", samples, turns)
    add(inspect_chunked(folder / "e-chunked"), "inspect", {"1_epoch_1": 7}, {"1_epoch_1": 6})
    whole = {**inspect_header(), "samples": [inspect_sample(1), inspect_sample(2)]}
    add(_write(folder / "e-json", whole, 2), "inspect", samples, turns)
    add(_lines(folder / "f-session", claude_session()), "claude-code", 10, 6)
    side = {"type": "assistant", "sessionId": "s1", "agentId": "d0f", "isSidechain": True, "uuid": "z", "parentUuid": None,
            "message": {"id": "m9", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}}  # fmt: skip
    add(_lines(folder / "agent-d0f.jsonl", [side]), "claude-code", 1)
    add(_write(folder / "g-object", {"messages": chat()}), "chat", 5, 4)
    add(_write(folder / "g-array", chat(), 4), "chat", 5, 4)
    add(_lines(folder / "g-lines", chat()), "chat", 5, 4)
    runs = [{"messages": chat(), "instance_id": "one"}, {"messages": chat(False)}]
    add(_lines(folder / "g-runs", runs), "chat", {"one": 5, "2": 5}, {"one": 4, "2": 4})
    add(_lines(folder / "h-results", breakpoint_results()), "breakpoint", dict.fromkeys(("f", "g", "f~2"), 4))
    add(_write(folder / "i-log", debug_gym(), 2), "debug-gym", 3)
    add(_lines(folder / "j-journal", journal()), "gistpoint", 13, 8)
    return made
