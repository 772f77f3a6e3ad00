"""Items and objects of OpenAI's Responses API: calls of every kind with their results, response chains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_runs.dialogues import response_items

from gistpoint.sessions.records.model import Actor, StepKind
from gistpoint.sessions.runs.opening import list_runs, open_run


@pytest.mark.parametrize("shape", ["list", "lines", "newest first", "request"])
def test_items_are_turns_with_their_calls_and_results(tmp_path: Path, shape: str) -> None:
    items = response_items()
    path = tmp_path / "a"
    held = {"list": items, "newest first": {"object": "list", "data": items[::-1]},
            "request": {"model": "gpt-x", "input": items}}  # fmt: skip
    lines = "".join(f"{json.dumps(item)}\n" for item in items)
    path.write_text(lines if shape == "lines" else json.dumps(held[shape], indent=2), encoding="utf-8")
    user, look, shell, patch, last = open_run(path).steps()
    assert (user.actor, user.text, last.text) == (Actor.USER, "Fix the mean é.", "Done")
    assert look.thought == "hm"
    assert [call.tool for call in look.calls] == ["web_search", "code_interpreter", "roll", "bash"]
    assert [(result.call_id, result.text, result.is_error) for result in look.results] == [
        ("ci_1", "1", None), ("mcp_1", "no dice", True), ("c1", "stats.py", None),
    ]  # fmt: skip
    assert (shell.kind, shell.results[0].text, shell.results[0].returncode) == (StepKind.TEST, "1 failed", 1)
    assert (patch.kind, patch.results[0].is_error, patch.edits[0].path) == (StepKind.EDIT, True, "stats.py")


def response(id: str, output: list[Any], before: str | None = None, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 3}}
    return {"id": id, "object": "response", "status": "completed", "created_at": 1_761_323_546, "model": "gpt-x",
            "instructions": "Be brief.", "previous_response_id": before, "output": output, "usage": usage,
            **more}  # fmt: skip


def test_responses_alone_are_chained_by_the_id_of_the_one_before(tmp_path: Path) -> None:
    items, path = response_items(), tmp_path / "a"
    cut: dict[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    failed: dict[str, Any] = {"status": "failed", "error": {"code": "server_error", "message": "Try later"}}
    path.write_text("".join(f"{json.dumps(one)}\n" for one in [
        response("r1", items[5:6]), response("s1", items[-1:]), response("r2", items[-1:], "r1", **cut),
        response("e1", [], **failed),
    ]), encoding="utf-8")  # fmt: skip
    runs = [found.header for found in list_runs([path]) if found.header]
    assert [(run.exit_status, run.tokens.prompt, run.tokens.reasoning) for run in runs] == [
        ("incomplete", 20, 6), ("", 10, 3), ("error", 10, 3),
    ]  # fmt: skip
    system, call, last = open_run(f"{path}#1").steps()
    assert (system.text, call.calls[0].id, last.text) == ("Be brief.", "c1", "Done")
    error = open_run(f"{path}#3").step(1)
    assert (error.text, "error" in error.flags) == ("Try later", True)


def test_a_response_that_is_indented_is_a_run(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(json.dumps(response("r1", response_items()[-1:]), indent=2), encoding="utf-8")
    assert [step.text for step in open_run(path).steps()] == ["Be brief.", "Done"]
