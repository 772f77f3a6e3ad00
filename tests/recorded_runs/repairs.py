"""Attempts at one small repair in the formats of different tools, with the same file, function and edits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gistpoint.core.diffs import compute, unified

BROKEN = '''"""Numbers."""


def total(values):
    return sum(values)


def mean(values):
    """Return the mean."""
    count = len(values) + 1
    return total(values) / count


class Table:
    def mean(self):
        return mean(self.rows)
'''
WRONG = BROKEN.replace("len(values) + 1", "len(values) + 2")
RIGHT = BROKEN.replace("len(values) + 1", "len(values)")
FILES = {
    "src/stats.py": BROKEN,
    "src/other.py": "x = 1\n",
    "tests/test_stats.py": "def test_mean():\n    assert 0\n",
}
MEAN = BROKEN[BROKEN.index("def mean") : BROKEN.index("\n\n\nclass")] + "\n"
ROOT = "/testbed"


def diff_of(after: str) -> str:
    return unified(compute(BROKEN, after, old_path="src/stats.py", new_path="src/stats.py"))


def mean_of(text: str) -> str:
    return text[text.index("def mean") : text.index("\n\n\nclass")] + "\n"


def journal_run(folder: Path, submissions: tuple[str, ...] = (WRONG, RIGHT)) -> Path:
    """Write one of gistpoint's attempts in discovery mode: searches, reads, then `replace_function` calls."""
    events: list[tuple[str, dict[str, Any]]] = [
        (
            "attempt_started",
            {"attempt_id": "a1", "actor": "person", "budgets": {"tool_uses": 16, "submissions": 4}},
        )
    ]
    calls: list[tuple[str, dict[str, str], str]] = [
        ("search_code", {"pattern": "mean"}, "src/stats.py:8: def mean(values):"),
        ("search_code", {"pattern": "mean"}, "src/stats.py:8: def mean(values):"),
        ("read_file", {"file_path": "src/other.py"}, "x = 1"),
        ("read_function", {"file_path": "src/stats.py", "func_name": "total"}, "def total(values): ..."),
        ("read_function", {"file_path": "src/stats.py", "func_name": "mean"}, MEAN),
    ]
    calls += [
        (
            "replace_function",
            {"file_path": "src/stats.py", "func_name": "mean", "func_code": mean_of(text)},
            "score",
        )
        for text in submissions
    ]
    uses, left = 16, 4
    for number, (tool, arguments, answer) in enumerate(calls):
        call = {"call_id": f"c{number}", "turn": number}
        events.append(("tool_call", {**call, "tool": tool, "arguments": arguments}))
        uses -= 1
        if tool == "replace_function":
            left -= 1
            replacement = {"path": "src/stats.py", "qualname": "mean", "code": arguments["func_code"]}
            events.append(("submit", {**call, "replacement": replacement}))
            events.append(("test_run", {**call, "status": "finished"}))
        events.append(
            ("tool_result", {**call, "text": answer, "budget": {"tool_uses": uses, "submissions": left}})
        )
    events.append(("attempt_ended", {"reason": "solved"}))
    lines = [
        {
            "seq": n,
            "type": kind,
            "utc_ms": 1_790_000_000_000 + n * 1000,
            "mono_ms": n * 1000,
            "prev": "",
            "data": data,
        }
        for n, (kind, data) in enumerate(events, 1)
    ]
    return _lines(folder / "journal", lines)


def chat_run(folder: Path, calls: list[tuple[str, dict[str, Any], str]], name: str = "chat") -> Path:
    """Write a run recorded as messages, with one answer after each call."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You fix."},
        {"role": "user", "content": "Fix the mean."},
    ]
    for number, (tool, arguments, answer) in enumerate(calls):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": f"step {number}", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": answer})
    path = folder / name
    path.write_text(json.dumps({"messages": messages}))
    return path


def swe_agent_run(folder: Path, diffs: list[str], name: str = "swe") -> Path:
    """Write a run that records the diff so far after each step."""
    steps = [
        {"action": f"bash step {number}", "observation": "ok", "response": "", "thought": "t", "execution_time": 0.5,
         "state": {"working_dir": ROOT, "diff": diff}, "query": [{"role": "user", "content": "Fix"}], "extra_info": {}}
        for number, diff in enumerate(diffs)
    ]  # fmt: skip
    path = folder / name
    path.write_text(
        json.dumps({"trajectory": steps, "history": [], "info": {"submission": diffs[-1]}}, indent=2)
    )
    return path


def _lines(path: Path, values: list[Any]) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path
