"""Runs recorded by benchmarks as trials: results of Terminal-Bench and Harbor, and their folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recorded_runs.dialogues import atif


def terminal_trial(name: str, solved: bool | None) -> dict[str, Any]:
    return {
        "id": f"id-{name}", "trial_name": f"{name}.1-of-1", "task_id": name, "instruction": "Extract the solution.",
        "is_resolved": solved, "failure_mode": "unset" if solved else "agent_timeout",
        "parser_results": {"test_found": "passed" if solved else "failed"}, "recording_path": "sessions/agent.cast",
        "total_input_tokens": 90, "total_output_tokens": 0, "trial_started_at": "2025-07-12T00:26:45+00:00",
        "agent_started_at": "2025-07-12T00:27:00+00:00", "agent_ended_at": "2025-07-12T00:27:08+00:00",
    }  # fmt: skip


def terminal_results() -> dict[str, Any]:
    """Return the results of a run of Terminal-Bench."""
    trials = [terminal_trial("one", True), terminal_trial("two", False), terminal_trial("three", None)]
    return {"id": "r", "results": trials, "n_resolved": 1, "n_unresolved": 1, "accuracy": 0.5}


def terminal_folder(folder: Path) -> Path:
    """Write the folder of a run with one trial of the harness's own agent; return the trial's folder."""
    said = {"analysis": "I look", "plan": "ls", "commands": [{"keystrokes": "ls\n", "duration": 1}]}
    done = {"analysis": "There", "plan": "none", "commands": [], "task_complete": True}
    files = {
        "run_metadata.json": json.dumps({"model_name": "model-x", "agent_name": "terminus-2"}),
        "results.json": json.dumps(terminal_results()),
        "two/two.1-of-1/results.json": json.dumps(terminal_trial("two", False)),
        "two/two.1-of-1/agent-logs/episode-0/prompt.txt": "You are in a terminal.",
        "two/two.1-of-1/agent-logs/episode-0/response.txt": json.dumps(said),
        "two/two.1-of-1/agent-logs/episode-1/prompt.txt": "archive.tar",
        "two/two.1-of-1/agent-logs/episode-1/response.txt": json.dumps(done),
        "two/two.1-of-1/sessions/agent.log": "$ ls\r\narchive.tar",
        "two/two.1-of-1/sessions/tests.log": "1 failed",
    }
    return _written(folder, files) / "two" / "two.1-of-1"


def harbor_result(**more: Any) -> dict[str, Any]:
    return {
        "task_name": "org/fix", "trial_name": "fix__abc", "started_at": "2026-01-02T03:04:05",
        "finished_at": "2026-01-02T03:06:05",
        "agent_info": {"name": "some-agent", "version": "1.0", "model_info": {"name": "model-x", "provider": "p"}},
        "agent_result": {"n_input_tokens": 100, "n_cache_tokens": 40, "n_output_tokens": 7, "cost_usd": 0.5},
        "verifier_result": {"rewards": {"reward": 1.0}}, "exception_info": None, **more,
    }  # fmt: skip


def harbor_folder(folder: Path, **more: Any) -> Path:
    """Write the folder of a job of Harbor with one trial; return the trial's folder."""
    files = {
        "result.json": json.dumps({"n_total_trials": 1, "stats": {}}),
        "fix__abc/config.json": json.dumps({"trial_name": "fix__abc"}),
        "fix__abc/result.json": json.dumps(harbor_result(**more)),
        "fix__abc/agent/setup.log": "installed",
        "fix__abc/agent/trajectory.json": json.dumps(atif("1.6")),
        "fix__abc/verifier/test-stdout.txt": "2 passed",
        "fix__abc/verifier/reward.txt": "1",
    }
    return _written(folder, files) / "fix__abc"


def _written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def docent() -> list[Any]:
    """Return runs of Docent: one with a score, and one with two transcripts."""
    call = {"id": "c1", "function": "bash", "arguments": {"command": "ls"}, "type": "function"}
    said = [
        {"id": "m0", "role": "system", "content": "You fix."}, {"id": "m1", "role": "user", "content": "Fix the mean"},
        {"id": "m2", "role": "assistant", "tool_calls": [call], "model": "model-x", "content": [
            {"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I look"}]},
        {"id": "m3", "role": "tool", "tool_call_id": "c1", "function": "bash", "content": "a.py",
         "error": {"type": "timeout", "message": "too long"}},
    ]  # fmt: skip
    metadata = {"scores": {"resolved": False}, "task_id": "fix", "model": "model-x"}
    one = {"id": "r1", "name": "first", "metadata": metadata,
           "transcripts": [{"id": "t1", "messages": said, "metadata": {}}]}  # fmt: skip
    two = [
        {"id": "t2", "name": "main", "messages": said[:3]},
        {"id": "t3", "name": "side", "messages": said[1:2]},
    ]
    return [one, {"id": "r2", "metadata": {}, "transcripts": two, "transcript_groups": []}]


def trial_files_made() -> list[tuple[str, bool, Any, str, Any, Any]]:
    """Return, for each file: its name, whether it consists of lines, its content, format, records and steps.

    Records and steps are counts, by run id if there are several runs.
    """
    names = ("one.1-of-1", "two.1-of-1", "three.1-of-1")
    runs = {"r1": 4, "r2/t2": 3, "r2/t3": 1}
    return [
        (
            "n-terminal",
            False,
            terminal_results(),
            "terminal-bench",
            dict.fromkeys(names, 2),
            dict.fromkeys(names, 2),
        ),
        ("n-harbor", False, harbor_result(), "harbor", 1, 1),
        ("n-docent", True, docent(), "docent", runs, {**runs, "r1": 3}),
    ]


def trials_of(path: Path) -> list[Any]:
    """Return the trials of Terminal-Bench in a file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return [[trial] for trial in found.get("results", [found])]


def transcripts_of(path: Path) -> list[Any]:
    """Return the transcripts of Docent's runs in a file of lines."""
    runs = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [transcript["messages"] for run in runs for transcript in run["transcripts"]]
