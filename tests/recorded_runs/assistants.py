"""Runs recorded by assistants in editors and terminals."""

from __future__ import annotations

from typing import Any


def _tree(*lines: str) -> dict[str, Any]:
    leaves = [{"type": 2, "text": line, "lineBreakBefore": number > 0} for number, line in enumerate(lines)]
    return {"content": [{"value": {"node": {"type": 1, "children": [{"type": 1, "children": leaves}]}}}]}


def copilot_request(**result: Any) -> dict[str, Any]:
    rounds = [
        {"id": "r1", "response": "I look at it. ", "toolCalls": [
            {"id": "t1__vscode-1", "name": "read_file", "arguments": '{"filePath": "a.py"}'},
            {"id": "t2__vscode-2", "name": "create_file", "arguments": '{"filePath": "b.py", "content": "x = 1"}'},
        ]},
        {"id": "r2", "response": "Done.", "toolCalls": [], "thinking": {"text": "short"}},
    ]  # fmt: skip
    metadata = {
        "toolCallRounds": rounds,
        "toolCallResults": {"t2__vscode-2": _tree("made"), "t1__vscode-1": _tree("1: x", "2: y")},
        "renderedUserMessage": [{"type": 1, "text": "<context>today</context>"}],
        "sessionId": "s1",
    }
    return {
        "requestId": "request_1", "timestamp": 1_790_000_000_000, "modelId": "copilot/model-x",
        "message": {"text": "Fix the mean", "parts": [{"kind": "text", "text": "Fix the mean"}]},
        "variableData": {"variables": [{"kind": "file", "name": "file:a.py", "value": {"path": "/r/a.py"}}]},
        "response": [
            {"value": "I look at it. "}, {"kind": "prepareToolInvocation", "toolName": "copilot_readFile"},
            {"kind": "toolInvocationSerialized", "toolCallId": "uuid", "toolId": "copilot_readFile", "isComplete": True,
             "invocationMessage": {"value": "Reading a.py"}},
            {"value": "Done."}, {"kind": "warning", "content": {"value": "The quota ends soon."}},
        ],
        "result": {"timings": {"totalElapsed": 2500}, "metadata": metadata, **result},
        "promptTokens": 900, "completionTokens": 12,
    }  # fmt: skip


def copilot_running() -> dict[str, Any]:
    terminal = {"kind": "terminal", "commandLine": {"original": "pytest -q"}, "language": "sh",
                "terminalCommandState": {"exitCode": 1}, "terminalCommandOutput": {"text": "1 failed"}}  # fmt: skip
    return {
        "requestId": "request_2", "message": "and now?", "modelId": "copilot/model-x",
        "response": [
            {"kind": "thinking", "value": "hm"}, {"value": "Tests in "},
            {"kind": "inlineReference", "inlineReference": {"name": "test_a.py"}},
            {"kind": "toolInvocationSerialized", "toolCallId": "u1", "toolId": "run_in_terminal", "isComplete": True,
             "toolSpecificData": terminal, "pastTenseMessage": "Ran it"},
            {"kind": "textEditGroup", "uri": {"path": "/r/a.py"}, "edits": [[{"text": "x = 2", "range": {}}]]},
        ],
    }  # fmt: skip
