"""Runs recorded by assistants in editors and terminals."""

from __future__ import annotations

import json
from pathlib import Path
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


def copilot_events() -> list[Any]:
    """Return a session of Copilot CLI: a reply with two calls, a side agent's call, and an end."""

    def event(number: int, name: str, **data: Any) -> dict[str, Any]:
        return {"type": name, "data": data, "id": f"e{number}", "timestamp": f"2026-03-26T17:50:{30 + number}.000Z",
                "parentId": f"e{number - 1}" if number else None}  # fmt: skip

    asked = [
        {"toolCallId": "c1", "name": "bash", "arguments": '{"command": "pytest -q"}', "type": "function"},
        {"toolCallId": "c2", "name": "task", "arguments": {"prompt": "look around"}, "type": "function"},
    ]
    inner = [{"toolCallId": "c3", "name": "view", "arguments": {"path": "a.py"}}]
    return [
        event(0, "session.start", sessionId="s1", version=1, producer="copilot-agent", copilotVersion="1.0.77",
              selectedModel="model-x", context={"cwd": "/r", "branch": "main"}),
        event(1, "user.message", content="Fix the mean", transformedContent="<now>Fix the mean</now>", attachments=[]),
        event(2, "assistant.turn_start", turnId="0", interactionId="i"),
        event(3, "assistant.reasoning", reasoningId="r", content="hm"),
        event(4, "assistant.message", messageId="m1", content="I test", toolRequests=asked, outputTokens=12),
        event(5, "tool.execution_start", toolCallId="c1", toolName="bash", arguments={"command": "pytest -q"}),
        event(6, "subagent.started", toolCallId="c2", agentName="explore", agentDisplayName="Explorer"),
        event(7, "assistant.message", messageId="m2", parentToolCallId="c2", content="I look", toolRequests=inner),
        event(8, "tool.execution_complete", toolCallId="c3", parentToolCallId="c2", success=True, result="x = 1"),
        event(9, "tool.execution_complete", toolCallId="c1", success=False, result={"content": "1 failed"},
              error={"message": "exit code 1", "code": "failure"}, toolTelemetry={"metrics": {"durationMs": 40}}),
        event(10, "tool.execution_complete", toolCallId="c2", success=True, result={"content": "it is in a.py"}),
        event(11, "assistant.turn_end", turnId="0"),
        event(12, "session.shutdown", shutdownType="routine", modelMetrics={"model-x": {
            "requests": {"count": 2}, "usage": {"inputTokens": 90, "outputTokens": 14, "cacheReadTokens": 7}}}),
    ]  # fmt: skip


def opencode() -> dict[str, Any]:
    """Return an export of opencode: a question, a reply with calls, a side session, and an aborted reply."""

    def tool(identity: str, name: str, status: str = "completed", **state: Any) -> dict[str, Any]:
        span = {"start": 1_790_000_001_000, "end": 1_790_000_001_500}
        state = {"status": status, "time": span, **state}
        return {"type": "tool", "id": f"prt_{identity}", "callID": identity, "tool": name, "state": state}

    def reply(number: int, parts: list[Any], **info: Any) -> dict[str, Any]:
        facts = {"id": f"msg_{number}", "role": "assistant", "modelID": "model-x", "providerID": "p", "cost": 0.25,
                 "time": {"created": 1_790_000_000_000 + number, "completed": 1_790_000_002_000 + number},
                 "tokens": {"input": 10, "output": 5, "reasoning": 2, "cache": {"read": 30, "write": 1}},
                 "path": {"cwd": "/r", "root": "/r"}}  # fmt: skip
        return {"info": {**facts, **info}, "parts": parts}

    asked = [
        {"type": "text", "text": "Fix @a.py"}, {"type": "file", "filename": "a.py", "mime": "text/plain", "url": "f://a"},
        {"type": "text", "synthetic": True, "text": "Called the Read tool with a.py"},
    ]  # fmt: skip
    calls = [
        {"type": "step-start", "snapshot": "abc"}, {"type": "reasoning", "text": "two places"},
        {"type": "text", "text": "I edit"},
        tool("c1", "edit", input={"filePath": "a.py", "oldString": "1", "newString": "2"}, output="edited",
             title="a.py", metadata={"diff": "--- a.py\n+++ a.py\n-1\n+2\n"}),
        tool("c2", "bash", "error", input={"command": "pytest"}, error="not allowed"),
        tool("c3", "task", input={"prompt": "look"}, output="found", metadata={"sessionId": "ses_2"}),
        tool("c4", "read", "running", input={"filePath": "b.py"}),
        {"type": "step-finish", "reason": "tool-calls", "cost": 0.25, "tokens": {"input": 10, "output": 5}},
        {"type": "patch", "hash": "h", "files": ["b.py"]},
    ]  # fmt: skip
    error = {"name": "MessageAbortedError", "data": {"message": "The operation was aborted."}}
    user = {"id": "msg_0", "role": "user", "time": {"created": 1_790_000_000_000}, "agent": "build"}
    session = {"id": "ses_1", "title": "Mean of nothing", "version": "1.2.5", "directory": "/r",
               "time": {"created": 1_790_000_000_000}}  # fmt: skip
    messages = [
        {"info": user, "parts": asked},
        reply(1, calls, finish="tool-calls"),
        reply(2, [], error=error),
    ]
    return {"info": session, "messages": messages}


def cursor_transcript() -> list[Any]:
    """Return a transcript of Cursor's agent: calls without ids, results with ids."""

    def said(role: str, *content: Any) -> dict[str, Any]:
        return {"role": role, "message": {"content": list(content)}}

    def result(identity: str, text: str) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": identity, "content": [{"type": "text", "text": text}]}

    return [
        said("user", {"type": "text", "text": "Fix the mean"}),
        said("assistant", {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look"},
             {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}},
             {"type": "tool_use", "name": "Read", "input": {"file_path": "a.py"}}),
        said("user", result("t1", "a.py"), result("t2", "x = 1")),
        said("assistant", {"type": "text", "text": "Done"}),
    ]  # fmt: skip


def cursor_chat() -> dict[str, Any]:
    """Return a chat of Cursor's window: a request, a thought, calls with different endings, an answer."""

    def bubble(number: int, kind: int = 2, **members: Any) -> dict[str, Any]:
        return {"_v": 3, "type": kind, "bubbleId": f"b-{number}", "createdAt": f"2026-04-01T09:00:0{number}.000Z",
                "tokenCount": {"inputTokens": 0, "outputTokens": 0}, **members}  # fmt: skip

    def tool(identity: str, name: str, arguments: dict[str, Any], **members: Any) -> dict[str, Any]:
        raw = json.dumps(arguments)
        own = {"tool": 7, "toolCallId": identity, "name": name, "rawArgs": raw, "params": raw}
        return {"toolFormerData": {**own, **members}}

    edited = {"target_file": "a.py", "code_edit": "y = 2"}
    return {
        "composerId": "chat-1",
        "composer": {"_v": 10, "name": "Mean of nothing", "createdAt": 1_790_000_000_000, "status": "completed",
                     "unifiedMode": "agent", "modelConfig": {"modelName": "model-x"}},
        "bubbles": [
            bubble(0, 1, text="Fix the mean", richText="{}", requestId="r-1"),
            bubble(1, thinking={"text": "two places"}, tokenCount={"inputTokens": 120, "outputTokens": 15}),
            bubble(2, text="", **tool("c-1", "read_file", {"target_file": "a.py"}, status="completed", result="x = 1")),
            bubble(3, **tool("c-2", "edit_file", edited, status="error", error="not applied")),
            bubble(4, **tool("c-3", "run_terminal_cmd", {"command": "ls"}, userDecision="rejected")),
            bubble(5),
            bubble(6, text="It is two.", modelInfo={"modelName": "model-x"}),
        ],
    }  # fmt: skip


def cursor_stream() -> list[Any]:
    """Return the output of Cursor's command line.

    Text is first in pieces and then whole, and each call is in two records.
    """

    def call(identity: str, subtype: str, tool: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_call", "subtype": subtype, "call_id": identity, "tool_call": tool, "session_id": "s1",
                "timestamp_ms": 1_790_000_000_000}  # fmt: skip

    def said(text: str) -> dict[str, Any]:
        return {"type": "assistant", "session_id": "s1",
                "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}  # fmt: skip

    shell = {"command": "pytest -q"}
    user = {"role": "user", "content": [{"type": "text", "text": "Fix the mean"}]}
    return [
        {"type": "system", "subtype": "init", "apiKeySource": "login", "cwd": "/r", "session_id": "s1",
         "model": "model-x", "permissionMode": "default"},
        {"type": "user", "message": user, "session_id": "s1"},
        {"type": "thinking", "subtype": "delta", "text": "Need ", "session_id": "s1"},
        {"type": "thinking", "subtype": "delta", "text": "tests", "session_id": "s1"},
        said("I "), said("test"), said("I test"),
        call("c1", "started", {"shellToolCall": {"args": shell}}),
        call("c2", "started", {"function": {"name": "Read", "arguments": '{"path": "a.py"}'}}),
        call("c1", "completed", {"shellToolCall": {"args": shell, "result": {
            "success": {"stdout": "1 failed", "stderr": "", "exitCode": 1}}}}),
        call("c2", "completed", {"mcpToolCall": {"result": {"rejected": {"reason": "not allowed"}}}}),
        said("Done"),
        {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 5200, "result": "Done",
         "session_id": "s1", "usage": {"inputTokens": 4, "outputTokens": 2}},
    ]  # fmt: skip


def cline_session() -> dict[str, Any]:
    """Return a session of Cline: results of calls by id, one of them as JSON within a string."""
    edit = {"path": "a.py", "old_text": "1", "new_text": "2"}
    info = {"modelInfo": {"id": "model-x", "provider": "cline"}, "ts": 1_790_000_002_000,
            "metrics": {"inputTokens": 90, "outputTokens": 5, "cacheReadTokens": 60, "cost": 0.5}}  # fmt: skip
    results = [{"query": "cat b.py", "result": "no such file", "success": False}]
    return {
        "version": 1, "sessionId": "s1", "agent": "lead", "system_prompt": "You are Cline.",
        "messages": [
            {"id": "m1", "role": "user", "ts": 1_790_000_001_000, "content": [
                {"type": "text", "text": "Fix a.py"}, {"type": "file", "path": "/r/a.py", "content": "x = 1"}]},
            {"id": "m2", "role": "assistant", **info, "content": [
                {"type": "text", "text": "I edit"}, {"type": "tool_use", "id": "t1", "name": "editor", "input": edit},
                {"type": "tool_use", "id": "t2", "name": "run_commands", "input": {"commands": ["cat b.py"]}}]},
            {"id": "m3", "role": "user", "ts": 1_790_000_003_000, "content": [
                {"type": "tool_result", "tool_use_id": "t2", "name": "run_commands", "content": results},
                {"type": "tool_result", "tool_use_id": "t1", "name": "editor",
                 "content": '{"query": "edit:a.py", "result": "Edited", "success": true}'}]},
        ],
    }  # fmt: skip


def cline_history() -> list[Any]:
    """Return a conversation of Cline: calls as XML or without separate results, and results as text."""

    def text(*lines: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": line} for line in lines]

    around = "<environment_details>\n# Open tabs\n</environment_details>"
    asked = "I look.\n<execute_command>\n<command>ls &amp; pytest</command>\n</execute_command>"
    done = {"type": "tool_use", "id": "t9", "name": "attempt_completion", "input": {"result": "Done"}}
    return [
        {"role": "user", "content": text("<task>\nFix the mean\n</task>", around)},
        {"role": "assistant", "content": text(asked)},
        {"role": "user", "content": text("[execute_command for 'ls'] Result:", "1 failed", around)},
        {"role": "assistant", "content": [*text("I read"),
            {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "b.py"}},
            {"type": "tool_use", "id": "t2", "name": "list_files", "input": {"path": "."}}]},
        {"role": "user", "content": text("[list_files for '.'] Result:", "a.py", "[read_file for 'b.py'] Result:",
                                         "Error: no such file", around)},
        {"role": "assistant", "content": [done]},
        {"role": "user", "content": text("[ERROR] You did not use a tool", around)},
    ]  # fmt: skip


def pi_session() -> list[Any]:
    """Return a session of pi: calls, one of them never run because the reply broke off."""

    def entry(number: int, kind: str = "message", **more: Any) -> dict[str, Any]:
        return {"type": kind, "timestamp": f"2025-11-20T23:33:{50 + number}.000Z", **more}

    def reply(number: int, stop: str, *content: Any, **more: Any) -> dict[str, Any]:
        usage = {"input": 3, "output": 7, "cacheRead": 20, "cacheWrite": 2, "cost": {"total": 0.25}}
        return entry(number, message={"role": "assistant", "content": list(content), "model": "model-x", "usage": usage,
                                      "stopReason": stop, **more})  # fmt: skip

    def call(identity: str, name: str, **arguments: Any) -> dict[str, Any]:
        return {"type": "toolCall", "id": identity, "name": name, "arguments": arguments}

    def result(number: int, identity: str, text: str, failed: bool = False) -> dict[str, Any]:
        return entry(number, message={"role": "toolResult", "toolCallId": identity, "toolName": "x", "isError": failed,
                                      "content": [{"type": "text", "text": text}]})  # fmt: skip

    image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    return [
        entry(0, "session", id="s1", cwd="/r", provider="p", modelId="model-w", version=3),
        entry(1, message={"role": "user", "content": [{"type": "text", "text": "Fix the mean"}, image]}),
        reply(2, "toolUse", {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look"},
              call("c1", "read", path="a.py"), call("c2", "edit", path="a.py", oldText="1", newText="2")),
        result(3, "c1", "x = 1"), result(4, "c2", "no match", True),
        reply(5, "error", {"type": "text", "text": "Again"}, call("c3", "bash", command="ls"),
              errorMessage="terminated"),
        entry(6, "compaction", summary="They fixed it."),
        entry(7, message={"role": "bashExecution", "command": "pytest", "output": "1 failed", "exitCode": 1}),
    ]  # fmt: skip


SPECSTORY = """<!-- Generated by SpecStory, Markdown v2.1.0 -->

# Mean of nothing

<!-- Claude Code Session 5c7d5c23-0691 (2026-07-13 13:40:49Z) -->

_**User (2026-07-13 13:40:49Z)**_

Fix the mean

```text
_**Agent**_
```

---

_**Agent (model-x 2026-07-13 13:40:56Z)**_

<think><details>
<summary>Thought</summary>
two places
</details></think>

I test.

<tool-use data-tool-type="shell" data-tool-name="Bash"><details>
<summary>Tool use: **Bash**</summary>

`pytest -q`

```text
1 failed
```
</details></tool-use>

_**Agent (model-x 2026-07-13 13:41:01Z)**_

Done
"""
CURSOR_EXPORT = """# Mean of nothing
_Exported on 19/10/2025 at 12:29:42 GMT+8 from Cursor (1.7.38)_

---

**User**

Fix the mean

---

**Cursor**

It is one. Somebody said

**User**

and no more.

---

**User**

Thanks
"""

OPENCODE_EXPORT = """# Mean of nothing

**Session ID:** ses_1a2b
**Created:** 5/9/2026, 9:08:30 AM
**Updated:** 5/9/2026, 10:08:50 AM

---

## User

Fix the mean

---

## Assistant (Build · Model X · 3.3s)

_Thinking:_

I look at what is there.

**Tool: bash**

**Input:**
```json
{"command": "cat notes.md"}
```

**Output:**
```
A note:
```python
mean = 2
```

## User
is no turn here.
```


**Tool: read**

**Input:**
```json
{"filePath": "b.py"}
```

**Error:**
```
File not found: b.py
```


---

## Assistant (Build · Model X · 1.0s)

It is two.

---

"""


def assistant_files() -> list[tuple[str, bool, Any, str, Any, Any]]:
    """Return, for each file: its name, whether it consists of lines, its content, format, records and steps.

    Records and steps are counts, by run id if there are several runs.
    """
    chats = {"responderUsername": "GitHub Copilot", "requests": [copilot_request(), copilot_running()]}
    return [
        ("l-copilot", False, chats, "copilot-chat", 6, 6),
        ("l-copilot-events", True, copilot_events(), "copilot-cli", 13, 5),
        ("l-opencode", False, opencode(), "opencode", 3, 3),
        ("l-continue", False, continue_session(), "continue", 7, 5),
        ("l-aider", False, AIDER, "aider",
         {"2024-08-21 15:16:42": 10, "2024-08-22 08:00:00": 5}, {"2024-08-21 15:16:42": 7, "2024-08-22 08:00:00": 4}),
        ("l-specstory", False, SPECSTORY, "chat-markdown", 4, 4),
        ("l-cursor-export", False, CURSOR_EXPORT, "chat-markdown", 4, 4),
        ("l-opencode-export", False, OPENCODE_EXPORT, "opencode-markdown", 4, 4),
        ("l-cline", False, cline_session(), "cline", 4, 3),
        ("l-cline-text", False, cline_history(), "cline", 7, 5),
        ("l-kimi", True, kimi(), "kimi", 16, 8),
        (
            "l-telemetry",
            True,
            openclaw_telemetry(),
            "openclaw-telemetry",
            {"main": 11, "side": 3},
            {"main": 10, "side": 3},
        ),
        ("l-cline-window", False, cline_window(), "cline-window", 17, 6),
        ("l-pi", True, pi_session(), "pi", 8, 6),
        ("l-cursor", True, cursor_transcript(), "cursor", 4, 3),
        ("l-cursor-stream", True, cursor_stream(), "cursor", 13, 5),
        ("l-cursor-chat", False, cursor_chat(), "cursor-chat", 7, 6),
    ]  # fmt: skip


AIDER = """# aider chat started at 2024-08-21 15:14:00

> Aider v0.51.2  \n> Main model: model-x with diff edit format  \n> date
date  \n> Run shell command(s)? [Y/n] n  \n
# aider chat started at 2024-08-21 15:16:42

> Aider v0.51.2  \n> Main model: model-x with diff edit format  \n
#### /add a.py  \n> Added a.py to the chat  \n
#### Fix the mean  \n#### of nothing  \n
I change it.

#### A heading

> a quotation

a.py
```python
<<<<<<< SEARCH
x = 1
=======
x = 2
>>>>>>> REPLACE
```

> Tokens: 6.5k sent, 1.2k cache hit, 492 received.
Cost: $0.03 message, $0.03 session.  \n> Applied edit to a.py  \n> Commit abcdef0 fix: mean  \n

#### and now?

I can't.

> Tokens: 7k sent, 10 received. Cost: $0.01 message, $0.04 session.  \n> The LLM did not conform to the edit format.  \n
# aider chat started at 2024-08-22 08:00:00

> Aider v0.51.2  \n
#### explain  \n> Tokens: 100 sent, 5 received.  \n
It is one.
"""


def continue_session() -> dict[str, Any]:
    """Return a session of Continue: calls with both kinds of results, a refusal, a thought, and context."""

    def call(identity: str, name: str, **arguments: Any) -> dict[str, Any]:
        return {
            "id": identity,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }

    def state(call: dict[str, Any], status: str, **more: Any) -> dict[str, Any]:
        tool = {
            "displayTitle": "Run Terminal Command",
            "function": {"description": "Run a command in the folder."},
        }
        return {"toolCallId": call["id"], "toolCall": call, "status": status, "tool": tool, **more}

    def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"message": {"role": role, "content": content, **more}, "contextItems": []}

    usage = {
        "prompt_tokens": 40,
        "completion_tokens": 5,
        "total_tokens": 45,
        "model": "model-x",
        "cost_cents": 25,
    }
    edit = call("c1", "create_new_file", filepath="a.py", contents="mean = 2\n")
    run, refused = (
        call("c2", "run_terminal_command", command="pytest"),
        call("c3", "read_file", filepath="b.py"),
    )
    attached = {"name": "a.py", "description": "src/a.py", "content": "def mean(): what was attached"}
    asked = {**said("user", [{"type": "text", "text": "Fix the mean"}]), "contextItems": [attached],
             "editorState": {"type": "doc", "content": [{"type": "text", "text": "Fix the mean"}]}}  # fmt: skip
    done = state(edit, "done", output=[{"name": "Tool Result", "description": "told", "content": "written"}])
    log = {"modelTitle": "Model X", "prompt": "<user> Fix the mean", "completion": "<assistant> I write it"}
    reply = {**said("assistant", "I write it", toolCalls=[edit], usage=usage), "toolCallStates": [done],
             "promptLogs": [log]}  # fmt: skip
    both = {**said("assistant", "", toolCalls=[run, refused], usage=usage),
            "toolCallStates": [state(run, "errored"), state(refused, "canceled")]}  # fmt: skip
    return {"history": [asked, reply, said("thinking", "two places"), both,
                        said("tool", "1 failed", toolCallId="c2"), said("user", "Thanks"), said("assistant", "Gladly")],
            "title": "Mean of nothing", "sessionId": "9b1d", "workspaceDirectory": "/r", "mode": "agent",
            "usage": {"totalCost": 0.5, "promptTokens": 80, "completionTokens": 10}}  # fmt: skip


def cline_window() -> list[dict[str, Any]]:
    """Return the records of Cline's window: replies with several kinds of calls, a failure, and an answer."""

    def record(number: int, what: str, kind: str, text: Any = "", **more: Any) -> dict[str, Any]:
        written = text if isinstance(text, str) else json.dumps(text)
        return {"ts": 1_790_000_000_000 + number * 1000, "type": what, what: kind, "text": written,
                "modelInfo": {"providerId": "p", "modelId": "model-x", "mode": "act"}, **more}  # fmt: skip

    spent = {"tokensIn": 10, "tokensOut": 5, "cacheWrites": 1, "cacheReads": 30, "cost": 0.25}
    edit = {
        "tool": "editedExistingFile",
        "path": "a.py",
        "content": "------- SEARCH\n1",
        "startLineNumbers": [1],
    }
    search = {"tool": "searchFiles", "path": ".", "regex": "mean", "content": "a.py: mean = 1"}
    sent = (
        "[replace_in_file for 'c:\\r\\a.py'] Result:\nThe content was saved to a.py é.\n\n"
        "[execute_command for 'pytest'] Result:\nCommand executed.\nOutput:\n1 failed\n\n"
        "[attempt_completion] Result:\nThe first\n\n"
        "[read_file for 'b.py'] Result:\nmean = 2 é\n\n"
        "<environment_details>\n# Current Time\n</environment_details>"
    )
    return [
        record(0, "say", "text", "Fix the mean", images=[], files=["a.py"]),
        record(1, "say", "checkpoint_created"),
        record(
            2, "say", "api_req_started", {"request": "<task>Fix the mean</task> and all around it", **spent}
        ),
        record(3, "say", "reasoning", "two places"),
        record(4, "say", "text", "I edit"),
        record(5, "say", "tool", edit),
        record(6, "say", "tool", search),
        record(7, "ask", "command", "pytest"),
        record(8, "ask", "command_output", "1 failed"),
        record(9, "ask", "command_output", "0.1 s"),
        record(10, "say", "error_retry", {"attempt": 1, "errorMessage": "terminated"}),
        record(11, "say", "api_req_started", {"request": sent, **spent}),
        record(12, "ask", "followup", {"question": "Which?", "options": ["one", "two"]}),
        record(13, "say", "user_feedback", "The first"),
        record(14, "say", "completion_result", "Done"),
        record(15, "ask", "completion_result"),
    ]


def kimi() -> list[Any]:
    """Return the events of a session of Kimi Code CLI: a reply with a call, an approval, and a last reply."""

    def line(second: int, what: str, **more: Any) -> dict[str, Any]:
        return {"type": what, **more, "time": 1_790_000_000_000 + 1000 * second}

    def event(second: int, kind: str, of: str, **more: Any) -> dict[str, Any]:
        named = {"uuid": f"u{second}"} if kind != "step.begin" else {"uuid": of}
        inner = {
            "type": kind,
            **named,
            "turnId": "0",
            **({"stepUuid": of} if named["uuid"] != of else {}),
            **more,
        }
        return line(second, "context.append_loop_event", event=inner)

    usage = {"inputOther": 10, "output": 5, "inputCacheRead": 2, "inputCacheCreation": 1}
    asked = [{"type": "text", "text": "Fix the mean é."}]
    call = {"toolCallId": "c1", "name": "Bash", "args": {"command": "pytest é"}, "description": "Running"}
    return [
        {"type": "metadata", "protocol_version": "1.4", "created_at": 1_790_000_000_000},
        line(1, "config.update", cwd="/r", systemPrompt="You are é."),
        line(2, "turn.prompt", input=asked, origin={"kind": "user"}),
        line(3, "context.append_message", message={"role": "user", "content": asked}),
        event(4, "step.begin", "s1"),
        line(5, "llm.request", kind="loop", model="model-x"),
        event(6, "content.part", "s1", part={"type": "think", "think": "hm é"}),
        event(7, "content.part", "s1", part={"type": "text", "text": "I look é."}),
        line(8, "permission.record_approval_result", toolCallId="c1", result={"decision": "approved"}),
        event(9, "tool.call", "s1", **call),
        line(10, "context.append_loop_event", event={
            "type": "tool.result", "parentUuid": "u9", "toolCallId": "c1",
            "result": {"output": "1 failed", "message": "exit 1", "isError": True}}),
        line(11, "context.append_loop_event", event={
            "type": "step.end", "uuid": "s1", "usage": usage, "messageId": "m1"}),
        line(12, "usage.record", model="model-x", usage=usage),
        event(13, "step.begin", "s2"),
        event(14, "content.part", "s2", part={"type": "text", "text": "It is fixed."}),
        line(15, "context.apply_compaction", summary="It was fixed é."),
    ]  # fmt: skip


def openclaw_telemetry() -> list[Any]:
    """Return the telemetry of two sessions of OpenClaw; the conversation of the first is repeated."""

    def event(kind: str, session: str, **more: Any) -> dict[str, Any]:
        event.number = event.number + 1  # type: ignore[attr-defined]
        at = 1_790_000_000_000 + 1000 * event.number  # type: ignore[attr-defined]
        named = {"sessionKey": session, "agentId": "main"} if session else {}
        return {"type": kind, **named, **more, "seq": event.number, "ts": at}  # type: ignore[attr-defined]

    event.number = 0  # type: ignore[attr-defined]
    usage = {"input": 10, "output": 5, "cacheRead": 2, "cacheWrite": 1, "cost": {"total": 0.25}}
    reply = {"role": "assistant", "api": "a", "provider": "p", "model": "model-x", "usage": usage}
    call = {"type": "toolCall", "id": "c1", "name": "exec", "arguments": {"command": "pytest é"}}
    first = [
        {"role": "user", "content": [{"type": "text", "text": "Fix the mean é."}], "timestamp": 1},
        {**reply, "content": [{"type": "thinking", "thinking": "hm"}, call], "stopReason": "toolUse"},
        {"role": "toolResult", "toolCallId": "c1", "toolName": "exec", "isError": True,
         "content": [{"type": "text", "text": "1 failed"}]},
    ]  # fmt: skip
    second = [
        *first,
        {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
        {**reply, "content": [{"type": "text", "text": "It is fixed."}], "stopReason": "stop"},
    ]
    other = [
        {"role": "user", "content": "Look around."},
        {**reply, "content": "Nothing.", "stopReason": "stop"},
    ]
    return [
        event("message.in", "", channel="c", content="Begin é"),
        event("agent.start", "main", prompt="Fix the mean é."),
        event("tool.start", "main", toolName="exec", params={"command": "pytest é"}),
        event("tool.end", "main", toolName="exec", durationMs=4, success=False),
        event("agent.end", "main", messages=first, markdown="# Twice", success=False, durationMs=9),
        event("agent.end", "side", messages=other, markdown="", success=True),
        event("agent.end", "main", messages=second, markdown="", success=True, durationMs=9),
    ]


def opencode_storage(folder: Path) -> Path:
    """Write the session of `opencode` as the files of a storage folder; return the session's file."""
    export = opencode()
    session = folder / "session" / "project" / "ses_1.json"
    files: dict[Path, Any] = {session: export["info"]}
    for number, message in enumerate(export["messages"]):
        info = {**message["info"], "id": f"msg_{number}", "sessionID": "ses_1"}
        files[folder / "message" / "ses_1" / f"msg_{number}.json"] = info
        for place, part in enumerate(message["parts"]):
            own = {**part, "id": f"prt_{place}", "messageID": info["id"], "sessionID": "ses_1"}
            files[folder / "part" / info["id"] / f"prt_{place}.json"] = own
    for path, value in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), encoding="utf-8")
    return session
