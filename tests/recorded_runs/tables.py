"""Rows of data sets of runs and results of tau-bench, in the layouts that their publishers write."""

from __future__ import annotations

import json
from typing import Any

PATCH = (
    "diff --git a/stats.py b/stats.py\n--- a/stats.py\n+++ b/stats.py\n@@ -1 +1 @@\n-return 1\n+return 2\n"
)
SHELL = "\n\n(Open file: n/a)\n(Current directory: /stats)\nbash-$"


def functions(name: str = "stats-1", *, as_text: bool = False) -> dict[str, Any]:
    """Return a row of SWE-smith: calls are XML in the text, and results are the user's next message."""
    look = "I look é.\n\n<function=bash>\n<parameter=command>python stats.py</parameter>\n</function>"
    edit = (
        "<function=str_replace_editor>\n<parameter=command>str_replace</parameter>\n<parameter=path>/r/stats.py"
        "</parameter>\n<parameter=old_str>\nreturn 1\n</parameter>\n<parameter=new_str>return 2</parameter>\n"
        "</function>"
    )
    raised = 'OBSERVATION:\nTraceback (most recent call last):\n  File "stats.py", line 1\nValueError: 1'
    messages: list[Any] = [
        {"role": "system", "content": "You fix."},
        {"role": "user", "content": "Fix the mean."},
        {"role": "assistant", "content": look},
        {"role": "user", "content": raised},
        {"role": "assistant", "content": "I wonder."},
        {"role": "user", "content": "Please go on."},
        {"role": "assistant", "content": edit},
        {"role": "user", "content": "OBSERVATION:\nThe file /r/stats.py has been edited."},
        {"role": "assistant", "content": "<function=submit>\n</function>"},
    ]
    held: Any = json.dumps(messages) if as_text else messages
    return {"messages": held, "instance_id": name, "resolved": True, "model": "model-x", "traj_id": f"{name}.a",
            "patch": PATCH}  # fmt: skip


def calls(name: str = "stats-2") -> dict[str, Any]:
    """Return a row of SWE-Gym or SWE-rebench, in which every message has every member."""
    empty = {"content": "", "function_call": None, "name": None, "tool_call_id": None, "tool_calls": None}

    def call(id: str, command: str) -> dict[str, Any]:
        function = {"name": "execute_bash", "arguments": json.dumps({"command": command})}
        return {"function": function, "id": id, "index": None, "type": "function"}

    done = "OBSERVATION:\nF\n[Command finished with exit code 1]"
    messages = [
        {**empty, "role": "system", "content": "You fix."},
        {**empty, "role": "user", "content": "Fix the mean."},
        {**empty, "role": "assistant", "tool_calls": [call("c1", "pytest -q"), call("c2", "ls")]},
        {**empty, "role": "tool", "content": done, "tool_call_id": "c1", "name": "execute_bash"},
        {
            **empty,
            "role": "tool",
            "content": "OBSERVATION:\nstats.py",
            "tool_call_id": "c2",
            "name": "execute_bash",
        },
        {**empty, "role": "assistant", "content": "Done?"},
        {**empty, "role": "user", "content": "Please continue."},
        {**empty, "role": "assistant", "tool_calls": [call("c3", "exit")]},
    ]
    result = {"git_patch": PATCH, "test_output": "1 failed"}
    return {"instance_id": name, "run_id": "model-y_maxiter_50_N_v2.1", "resolved": 0, "messages": messages,
            "tools": [{"type": "function"}], "test_result": result}  # fmt: skip


def named_calls(name: str = "stats-6", form: str = "json") -> dict[str, Any]:
    """Return a row of LLaMA-Factory in ShareGPT's form: the sender of a call is `function_call`.

    The calls are JSON, functions in XML, or JSON between tags in a message of `gpt`, according to `form`.
    """
    call = {"name": "bash", "arguments": {"command": "python stats.py"}}
    written = {
        "json": ("function_call", json.dumps(call)),
        "xml": (
            "function_call",
            "I look é.\n\n<function=bash>\n<parameter=command>python stats.py</parameter>\n</function>",
        ),
        "tags": ("gpt", f"I look é.\n<tool_call>\n{json.dumps(call)}\n</tool_call>"),
    }[form]
    answers = "tool" if form == "tags" else "observation"
    said = [
        ("human", "Fix the mean."),
        written,
        (answers, "EXECUTION RESULT of [bash]:\n/bin/sh: python: command not found"),
        ("gpt", "It is fixed."),
    ]
    return {"id": name, "system": "You fix.", "conversations": [{"from": a, "value": b} for a, b in said]}


def agent_data(name: str = "stats-7") -> dict[str, Any]:
    """Return a trajectory in the standard form of the Agent Data Protocol, with all kinds of its items."""

    def text(content: str, source: str, **more: str) -> dict[str, Any]:
        return {"class_": "text_observation", "content": content, "name": None, "source": source, **more}

    edit = {"command": "str_replace", "path": "/r/stats.py", "old_str": "return 1", "new_str": "return 2"}
    page = {"html": "<p>é", "axtree": "RootWebArea é", "url": "https://example.org/é"}
    return {
        "schema_version": "1.2.0",
        "id": name,
        "content": [
            text("Fix the mean.", "user"),
            {"class_": "code_action", "language": "bash", "content": "ls é", "description": "I look."},
            text("/bin/sh: ls: command not found", "user"),
            {"class_": "api_action", "function": "str_replace_editor", "kwargs": edit, "description": None,
             "reasoning_content": "It is one off.", "tool_call_id": "c1"},
            text("The file was edited.", "environment", tool_call_id="c1"),
            {"class_": "code_action", "language": "python", "content": "print(2)", "description": ""},
            {"class_": "web_observation", **page, "image_observation": None, "viewport_size": [1, 2]},
            {"class_": "message_action", "content": "<finish> It is fixed. </finish>", "description": "Done."},
        ],
        "details": {"model_name": "model-x", "exit_status": "submitted", "generated_patch": PATCH, "seed": "7"},
    }  # fmt: skip


def fences(name: str = "stats-3") -> dict[str, Any]:
    """Return a row of nebius' SWE-agent, in which the action is the last fenced block."""
    empty = {"cutoff_date": None, "mask": False, "system_prompt": None, "text": None}
    edit = "```\nnot this\n```\nbut\n```\nedit 1:1\nreturn 2\nend_of_edit\n```"
    trajectory = [
        {**empty, "role": "system", "system_prompt": "SETTING: You fix.", "cutoff_date": "01.01.2023"},
        {**empty, "role": "user", "text": "Fix the mean."},
        {**empty, "role": "ai", "text": "I look.\n```\nls -F\n```", "mask": True},
        {**empty, "role": "user", "text": f"stats.py{SHELL}"},
        {**empty, "role": "ai", "text": edit, "mask": True},
        {**empty, "role": "user", "text": f"Your proposed edit has introduced new syntax error(s).{SHELL}"},
        {**empty, "role": "ai", "text": "```\nsubmit\n```", "mask": True},
    ]
    return {"instance_id": name, "model_name": "model-z", "target": False, "trajectory": trajectory,
            "exit_status": "submitted", "generated_patch": PATCH, "eval_logs": "1 failed"}  # fmt: skip


def steps(name: str = "stats-4") -> dict[str, Any]:
    """Return a row of R2E-Gym, which has steps instead of messages."""
    step = {
        "step_idx": 0,
        "thought": "I look.",
        "action": "<function=execute_bash>\n  <parameter=cmd>ls</parameter>\n</function>",
        "observation": "stats.py",
        "done": False,
        "token_usage_prompt": 20,
        "token_usage_completion": 5,
        "env_exec_time": 0.25,
    }
    return {"trajectory_steps": [step, {**step, "step_idx": 1}], "reward": 1, "exit_reason": "agent",
            "problem_statement": "Fix the mean.", "ds": {"instance_id": name}, "agent_args": {"llm_name": "model-x"},
            "output_patch": PATCH}  # fmt: skip


def said(name: str = "stats-5") -> dict[str, Any]:
    """Return a conversation of ShareGPT."""
    turns = [("system", "You fix."), ("human", "Fix the mean."), ("gpt", "return 2")]
    return {"id": name, "conversations": [{"from": who, "value": text} for who, text in turns]}


def tau_trial(task: int, trial: int = 0, reward: float = 0.0) -> dict[str, Any]:
    """Return a trial of tau-bench."""
    call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": '{"seat": "1A"}'}}
    traj = [
        {"role": "system", "content": "# Airline policy"},
        {"role": "user", "content": "Book a seat."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "book", "content": "booked"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "###STOP###"},
    ]
    info = {"task": {"user_id": "u", "instruction": "You want 1A."}, "user_cost": 0.5}
    return {"task_id": task, "reward": reward, "info": info, "traj": traj, "trial": trial}


def tau2_results() -> dict[str, Any]:
    """Return results of tau2-bench in which the user also calls a tool."""

    def call(id: str, by: str) -> dict[str, Any]:
        return {"id": id, "name": f"{by}_tool", "arguments": {"x": id}, "requestor": by}

    at = {"timestamp": "2026-06-30T11:17:32", "turn_idx": 0}
    answers = [
        {"id": "a1", "role": "tool", "content": "one", "error": False, "requestor": "assistant", **at},
        {"id": "a2", "role": "tool", "content": "no such x", "error": True, "requestor": "assistant", **at},
    ]
    messages = [
        {"role": "assistant", "content": "Hi! How can I help?", **at},
        {"role": "user", "content": "My phone é", "tool_calls": None, "cost": 0.25, **at},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("a1", "assistant"), call("a2", "assistant")],
            "cost": 0.5,
            "usage": {"prompt_tokens": 10, "completion_tokens": 2},
            "raw_data": {"id": "r"},
            **at,
        },
        {"role": "tool", "tool_messages": answers},
        {"role": "user", "content": None, "tool_calls": [call("u1", "user")], **at},
        {"id": "u1", "role": "tool", "content": "bars: 2", "error": False, "requestor": "user", **at},
        {"role": "user", "content": "###TRANSFER###", **at},
    ]
    run = {
        "id": "s-1",
        "task_id": "phone",
        "trial": 0,
        "seed": 1,
        "duration": 12.5,
        "start_time": "2026-06-30T11:17:32",
        "termination_reason": "user_stop",
        "agent_cost": 0.75,
        "user_cost": 0.25,
        "reward_info": {"reward": 1.0, "reward_basis": ["DB"]},
        "messages": messages,
    }
    info = {
        "num_trials": 2,
        "user_info": {"llm": "m"},
        "agent_info": {"implementation": "llm_agent", "llm": "model-x"},
        "environment_info": {"domain_name": "telecom", "policy": "Be kind é."},
    }
    tasks = [
        {"id": "phone", "user_scenario": {"instructions": "Your phone has no service."}},
        {"id": "other"},
    ]
    again = {**run, "id": "s-2", "trial": 1, "reward_info": {"reward": 0.0}}
    return {"timestamp": "2026-06-30T11:17:32", "info": info, "tasks": tasks, "simulations": [run, again]}


def tau2_ticks() -> dict[str, Any]:
    """Return a simulation of tau2-bench's voice mode."""

    def tick(number: int, agent: str = "", user: str = "", **more: Any) -> dict[str, Any]:
        chunks = {
            "agent_chunk": agent and {"role": "assistant", "content": agent},
            "user_chunk": user and {"role": "user", "content": user},
        }
        return {
            "tick_id": number,
            "timestamp": f"2026-06-30T11:17:3{number}",
            **{k: v or None for k, v in chunks.items()},
            "agent_tool_calls": [],
            "agent_tool_results": [],
            "user_tool_calls": [],
            "user_tool_results": [],
            **more,
        }

    call = {"id": "c1", "name": "look_up", "arguments": {"name": "x"}, "requestor": "assistant"}
    answer = {"id": "c1", "role": "tool", "content": "found", "error": False, "requestor": "assistant"}
    ticks = [
        tick(0),
        tick(1, "Hel"),
        tick(2, "lo.", "mm"),
        tick(3),
        tick(4, "", "My phone"),
        tick(5, "", " is dead."),
        tick(6, agent_tool_calls=[call]),
        tick(7, agent_tool_results=[answer]),
        tick(8, "I see."),
    ]
    return {
        "id": "v-1",
        "task_id": "phone",
        "trial": 0,
        "termination_reason": "agent_stop",
        "mode": "full_duplex",
        "reward_info": {"reward": 0.0},
        "messages": [],
        "ticks": ticks,
    }
