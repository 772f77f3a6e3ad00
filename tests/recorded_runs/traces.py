"""Runs recorded as traces: a system prompt, a question, a call with its result, and an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gistpoint.core.code.source_text import physical_lines

ASKED: list[dict[str, Any]] = [
    {"role": "system", "content": "You fix."},
    {"role": "user", "content": "Fix the mean"},
]
CALL = {"id": "c1", "name": "bash", "arguments": {"command": "pytest -q"}}
BEGAN = 1_790_000_000


def _otlp(
    span: str, parent: str, name: str, at: int, attributes: dict[str, Any], **more: Any
) -> dict[str, Any]:
    def value(item: Any) -> dict[str, Any]:
        return {"intValue": str(item)} if isinstance(item, int) else {"stringValue": item}

    return {
        "traceId": "t1", "spanId": span, "parentSpanId": parent, "name": name, "kind": "SPAN_KIND_INTERNAL",
        "startTimeUnixNano": str((BEGAN + at) * 10**9), "endTimeUnixNano": str((BEGAN + at + 1) * 10**9),
        "attributes": [{"key": key, "value": value(item)} for key, item in attributes.items()], **more,
    }  # fmt: skip


def genai_spans() -> dict[str, Any]:
    """Return spans of OpenTelemetry's GenAI convention, children first.

    The second call of the model repeats the first.
    """

    def text(role: str, content: str) -> dict[str, Any]:
        return {"role": role, "parts": [{"type": "text", "content": content}]}

    def model(asked: list[Any], replied: list[Any], tokens: int) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "model-x", "gen_ai.usage.input_tokens": tokens,
            "gen_ai.usage.output_tokens": 5, "gen_ai.input.messages": json.dumps(asked),
            "gen_ai.output.messages": json.dumps(replied),
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "You fix."}]),
        }  # fmt: skip

    called = {
        "role": "assistant",
        "parts": [{"type": "reasoning", "content": "hm"}, {"type": "tool_call", **CALL}],
    }
    answered = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "1 failed"}]}
    tool = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash", "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"command": "pytest -q"}', "gen_ai.tool.call.result": "1 failed",
    }  # fmt: skip
    failed = {"status": {"code": 2, "message": "exit code 1"}}
    question = text("user", "Fix the mean")
    spans = [
        _otlp("b", "a", "chat model-x", 1, model([question], [called], 10)),
        _otlp("c", "a", "execute_tool bash", 3, tool, **failed),
        _otlp(
            "d", "a", "chat model-x", 5, model([question, called, answered], [text("assistant", "Done")], 20)
        ),
        _otlp(
            "a",
            "",
            "invoke_agent fixer",
            0,
            {"gen_ai.operation.name": "invoke_agent", "custom.note": "a note"},
        ),
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "fixer"}}]}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]
    }


def inferred_spans() -> list[Any]:
    """Return spans with attributes of OpenInference, for a file of lines; the tool's span has no call id."""

    def messages(key: str, listed: list[dict[str, Any]]) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for number, message in enumerate(listed):
            head = f"llm.{key}_messages.{number}.message"
            flat |= {f"{head}.{name}": item for name, item in message.items() if name != "call"}
            if "call" in message:
                inner = f"{head}.tool_calls.0.tool_call"
                flat |= {f"{inner}.id": "c1", f"{inner}.function.name": "bash",
                         f"{inner}.function.arguments": '{"command": "pytest -q"}'}  # fmt: skip
        return flat

    def span(
        id: str, parent: str | None, at: int, kind: str, name: str, attributes: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "name": name, "context": {"trace_id": "t1", "span_id": id}, "parent_id": parent, "kind": "INTERNAL",
            "start_time": f"2026-01-02T03:04:{at:02}Z", "end_time": f"2026-01-02T03:04:{at + 1:02}Z",
            "status": {"status_code": "OK"}, "events": [],
            "attributes": {"openinference.span.kind": kind, **attributes},
        }  # fmt: skip

    called = [
        *ASKED,
        {"role": "assistant", "call": True},
        {"role": "tool", "content": "1 failed", "tool_call_id": "c1"},
    ]
    spent = {"llm.model_name": "model-x", "llm.token_count.prompt": 9, "llm.token_count.completion": 3,
             "llm.token_count.prompt_details.cache_read": 4}  # fmt: skip
    return [
        span("a", None, 0, "AGENT", "agent", {"input.value": "Fix the mean", "output.value": "Done"}),
        span("b", "a", 1, "LLM", "llm", {
            **messages("input", ASKED), **spent,
            **messages("output", [{"role": "assistant", "content": "I test", "call": True}])}),
        span("c", "a", 3, "TOOL", "bash", {"tool.name": "bash", "input.value": '{"command": "pytest -q"}',
                                           "output.value": "1 failed"}),
        span("d", "a", 5, "LLM", "llm", {
            **messages("input", called), **messages("output", [{"role": "assistant", "content": "Done"}]), **spent}),
    ]  # fmt: skip


def langfuse() -> dict[str, Any]:
    """Return a trace of Langfuse: nested generations, a tool, and strings that are JSON."""

    def seen(id: str, kind: str, at: int, parent: str | None, **more: Any) -> dict[str, Any]:
        return {
            "id": id, "traceId": "t1", "type": kind, "parentObservationId": parent, "level": "DEFAULT",
            "startTime": f"2026-01-02T03:04:{at:02}.000Z", "endTime": f"2026-01-02T03:04:{at + 1:02}.000Z", **more,
        }  # fmt: skip

    calls = [{"toolCallId": "c1", "toolName": "bash", "args": {"command": "pytest -q"}}]
    reply = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": {
        "name": "bash", "arguments": '{"command": "pytest -q"}'}}]}  # fmt: skip
    return {
        "trace": {"id": "t1", "name": "fixer", "input": '"Fix the mean"', "output": '"Done"', "metadata": "{}",
                  "scores": [{"name": "right", "value": 1, "comment": "It is right."}]},
        "observations": [
            seen("c", "GENERATION", 2, "b", name="step", model="model-x", input=json.dumps(ASKED),
                 output=json.dumps({"text": "I test", "toolCalls": calls}), usageDetails={"input": 9, "output": 3},
                 costDetails={"total": 0.25}),
            seen("d", "TOOL", 4, "b", name="bash", input='{"command": "pytest -q"}', output='"1 failed"',
                 level="ERROR", statusMessage="exit code 1"),
            seen("e", "GENERATION", 6, "b", name="step", model="model-x",
                 input=json.dumps([*ASKED, reply, {"role": "tool", "tool_call_id": "c1", "content": "1 failed"}]),
                 output='"Done"', usageDetails={"input": 20, "output": 2}, costDetails={"total": 0.25}),
            seen("b", "GENERATION", 1, "a", name="around", input='"Fix the mean"', output="Done", usageDetails={}),
            seen("a", "SPAN", 0, None, name="fetch-prompt", input="prompt-7", output="You fix."),
        ],
    }  # fmt: skip


def langsmith() -> dict[str, Any]:
    """Return runs as LangSmith's clients send them: a chain, a model with LangChain messages, a tool."""

    def half(id: str, kind: str, at: int, parent: str | None, **more: Any) -> dict[str, Any]:
        return {"id": id, "trace_id": "a", "dotted_order": f"{at}Z{id}", "parent_run_id": parent, "run_type": kind,
                "start_time": f"2026-01-02T03:04:{at:02}", **more}  # fmt: skip

    def end(id: str, at: int, **more: Any) -> dict[str, Any]:
        return {
            "id": id,
            "trace_id": "a",
            "dotted_order": f"{at}Z{id}",
            "end_time": f"2026-01-02T03:04:{at + 1:02}",
            **more,
        }

    def chain(kind: str, **kwargs: Any) -> dict[str, Any]:
        return {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", f"{kind}Message"],
            "kwargs": kwargs,
        }

    extra = {"metadata": {"ls_model_name": "model-x"}}
    asked = [chain("System", content="You fix."), chain("Human", content="Fix the mean")]
    reply = chain("AI", content="I test", tool_calls=[{"id": "c1", "name": "bash", "args": {"command": "pytest -q"}}],
                  usage_metadata={"input_tokens": 9, "output_tokens": 3, "total_tokens": 12})  # fmt: skip
    result = {"type": "tool", "content": "1 failed", "tool_call_id": "c1", "status": "error"}
    done = {
        "choices": [{"message": {"role": "assistant", "content": "Done"}}],
        "usage": {"prompt_tokens": 20},
    }
    return {
        "post": [
            half("a", "chain", 0, None, name="fixer", inputs={"question": "Fix the mean"}),
            half("b", "llm", 1, "a", name="ChatModel", inputs={"messages": [asked]}, extra=extra, outputs={}),
            half("c", "tool", 3, "a", name="bash", inputs={"input": '{"command": "pytest -q"}'}),
            half("d", "llm", 5, "a", name="ChatModel", inputs={"messages": [[*asked, reply, result]]}, extra=extra),
        ],
        "patch": [
            end("d", 5, outputs=done), end("c", 3, outputs={"output": result}, error="exit code 1"),
            end("b", 1, outputs={"generations": [[{"text": "I test", "message": reply}]]}),
            end("a", 0, outputs={"answer": "Done"}),
        ],
    }  # fmt: skip


def trace_files() -> list[tuple[str, bool, Any, str, Any, Any]]:
    """Return, for each file: its name, whether it consists of lines, its content, format, records and steps.

    Records and steps are counts, by run id if there are several runs.
    """
    return [
        ("m-genai", False, genai_spans(), "otel", 6, 5),
        ("m-inferred", True, inferred_spans(), "otel", 6, 5),
        ("m-langfuse", False, langfuse(), "langfuse", 7, 6),
        ("m-langsmith", False, langsmith(), "langsmith", 10, 5),
    ]


def spans_of(path: Path) -> list[Any]:
    """Return the spans of each trace of a file, with nested objects as attributes."""
    text = path.read_text(encoding="utf-8")
    found = (
        [json.loads(line) for line in physical_lines(text)]
        if text.count("\n{") > 1 and text[1] == '"'
        else json.loads(text)
    )
    listed = found if isinstance(found, list) else [found]
    nested = [
        span
        for one in listed
        for rs in one.get("resourceSpans", [])
        for ss in rs["scopeSpans"]
        for span in ss["spans"]
    ]
    traces: dict[str, list[Any]] = {}
    for span in nested or listed:
        attributes = span["attributes"]
        if isinstance(attributes, list):
            values = {item["key"]: item["value"] for item in attributes}
            attributes = {key: None if "intValue" in item else next(iter(item.values()), None)
                          for key, item in values.items()}  # fmt: skip
        tree: dict[str, Any] = {}
        for key, value in attributes.items():
            at, names = tree, [name for name in key.split(".") if not name.isdigit()]
            for name in names[:-1]:
                at = at.setdefault(name, {})
            inner = json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value
            at.setdefault(names[-1], []).append(inner)
        trace = span.get("traceId") or span["context"]["trace_id"]
        traces.setdefault(trace, []).append({**span, "attributes": tree})
    return list(traces.values())


def observations_of(path: Path) -> list[Any]:
    """Return a trace of Langfuse, after decoding its JSON strings."""
    trace = json.loads(path.read_text(encoding="utf-8"))

    def decoded(value: Any) -> Any:
        try:
            return decoded(json.loads(value)) if isinstance(value, str) and value[:1] in '{["' else value
        except ValueError:
            return value

    seen = [{key: decoded(value) if key in ("input", "output") else value for key, value in one.items()}
            for one in trace["observations"]]  # fmt: skip
    return [{**trace, "observations": seen}]


def halves_of(path: Path) -> list[Any]:
    """Return the runs of LangSmith in a file, as one trace."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return [found if isinstance(found, list) else [*found["post"], *found["patch"]]]
