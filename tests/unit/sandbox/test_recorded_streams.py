"""Recorded streams of OpenAI, OpenRouter, Groq, xAI, llama.cpp's server, vLLM and Ollama.

The streams in `tests/data/streams` are those of their sources; the middle of long rows of pieces of reasoning or
text is left out. Those of vLLM and Ollama were recorded as chunks, and are written as events here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scripted_endpoint import Answer, endpoint

from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, ToolRequest, Usage
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.receiving import Received
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings
from gistpoint.sandbox.scaffolds.passed_replies import reply_in
from gistpoint.sessions.formats.api_log._bodies import streamed

STREAMS = Path(__file__).parents[2] / "data" / "streams"
FANTASY = "charmbracelet/fantasy at f6d4d1e3, providertests/testdata/"
PYDANTIC = "pydantic/pydantic-ai at 4fda3898, tests/models/cassettes/"
LLAMA_STACK = "llamastack/llama-stack at d1b66329, tests/integration/"
SUMS = '{"a":2,"b":3}'


class Recorded(NamedTuple):
    """The source of a stream, and the reply that it contains."""

    source: str
    calls: tuple[tuple[str, str, str], ...] = ()
    finish: str = "tool_calls"
    usage: Usage | None = None
    """None if the stream has none."""
    content: str = ""
    reasoning: str = ""


REPLIES = {
    "openai_calls": Recorded(
        f"{FANTASY}TestOpenAICommon/openai-gpt-4o-mini/multi_tool_streaming.yaml",
        (
            ("call_cclGbjTQkZDEnnHrRiU0n7NO", "add", '{"a": 2, "b": 3}'),
            ("call_Nob2SzTcxIjro1HvSBPQS6XG", "multiply", '{"a": 2, "b": 3}'),
        ),
        usage=Usage(106, 50),
    ),
    "openrouter_gemini_calls": Recorded(
        f"{FANTASY}TestOpenRouterCommon/gemini/multi_tool_streaming.yaml",
        (
            ("tool_add_kZJN6iFNozVOBiXBMA2Y", "add", SUMS),
            ("tool_multiply_7Pq02EcannPbKks8kXlA", "multiply", SUMS),
        ),
        usage=Usage(157, 32, cost_usd=8.725e-05),
    ),
    "openrouter_reasoning": Recorded(
        f"{PYDANTIC}test_openrouter/test_openrouter_streaming_reasoning.yaml",
        finish="stop",
        usage=Usage(43, 36, reasoning_tokens=13, cost_usd=0.000669),
        content="2 + 2 = 4",
        reasoning="This is a simple arithmetic question. 2+2 equals 4.",
    ),
    "xai_calls": Recorded(
        f"{FANTASY}TestOpenAICompatibleCommon/xai-grok-4-fast/multi_tool_streaming.yaml",
        (("call_55070233", "add", SUMS), ("call_12016531", "multiply", SUMS)),
        usage=Usage(432, 204, 153, 136, 0.00016545),
    ),
    "llama_cpp_call": Recorded(
        f"{FANTASY}TestOpenAICompatibleCommon/llama-cpp-gpt-oss/tool_streaming.yaml (build 7010)",
        (("g2KOIWzn722hzEaZQmNVP4roUPEiYafL", "weather", '{"location":"Florence, Italy"}'),),
        usage=Usage(139, 41),
        reasoning="User wants.",
    ),
    "vllm_calls": Recorded(
        f"{LLAMA_STACK}inference/recordings/65eba1be095a….json",
        (("chatcmpl-tool-41faa6bedd074d51a6335cd2447deeab", "get_time", '{"timezone": "UTC"}'),),
        content="<think>\n\n\n",
    ),
    "ollama_call": Recorded(
        f"{LLAMA_STACK}agents/recordings/75ae2f583e3e….json",
        (("call_tv2vqyef", "get_current_time", "{}"),),
    ),
}


def answered(name: str, *, size: int) -> ChatReply | ChatFailure:
    """Return the client's answer to a recorded stream that arrives in blocks of `size` bytes."""
    data = (STREAMS / f"{name}.sse").read_bytes()
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    with endpoint(Answer(blocks=blocks)) as served:
        model = OpenAICompatibleModel(EndpointSettings("m", served.url, ApiKey("")))
        return model.complete([ChatMessage("user", "Hello.")], [])


@pytest.mark.parametrize("size", [61, 1 << 20])
@pytest.mark.parametrize("name", REPLIES)
def test_a_recorded_reply(name: str, size: int) -> None:
    recorded, reply = REPLIES[name], answered(name, size=size)
    assert isinstance(reply, ChatReply)
    assert reply.streamed
    assert [(call.id, call.name, call.arguments) for call in reply.message.tool_calls] == [*recorded.calls]
    assert (reply.message.content, reply.message.reasoning) == (recorded.content, recorded.reasoning)
    assert reply.finish == recorded.finish
    assert reply.usage.estimated if recorded.usage is None else reply.usage == recorded.usage


@pytest.mark.parametrize("name", REPLIES)
def test_a_recorded_reply_is_the_same_in_a_log_and_to_a_program(name: str) -> None:
    recorded, body = REPLIES[name], (STREAMS / f"{name}.sse").read_bytes()
    logged: Any = streamed(body.decode())
    message = logged["choices"][0]["message"]
    called = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
    assert [(id, of["name"], of["arguments"]) for id, of in called] == [*recorded.calls]
    assert (message.get("content") or "") == recorded.content
    turn = reply_in("/chat/completions", {}, body, 0.0)
    assert isinstance(turn, ModelTurn)
    assert [(call.id, call.name, call.arguments) for call in turn.tool_calls] == [*recorded.calls]
    assert (turn.content, turn.reasoning or "", turn.finish) == (
        recorded.content,
        recorded.reasoning,
        recorded.finish,
    )
    assert recorded.usage is None or turn.usage == recorded.usage


def whole_message(name: str) -> dict[str, Any]:
    received = Received()
    received.take([(STREAMS / f"{name}.sse").read_bytes()], lambda: None)
    body = received.body()
    assert isinstance(body, dict)
    message: dict[str, Any] = body["choices"][0]["message"]
    return message


def test_signed_reasoning_is_whole() -> None:
    (text,) = whole_message("openrouter_reasoning")["reasoning_details"]
    assert (text["type"], text["text"]) == ("reasoning.text", REPLIES["openrouter_reasoning"].reasoning)
    assert (len(text["signature"]), text["format"], text["index"]) == (304, "anthropic-claude-v1", 0)
    (sealed,) = whole_message("openrouter_gemini_calls")["reasoning_details"]
    assert (sealed["type"], sealed["id"]) == ("reasoning.encrypted", "tool_add_kZJN6iFNozVOBiXBMA2Y")


def test_a_call_is_whole_and_has_nothing_more() -> None:
    first, second = whole_message("openai_calls")["tool_calls"]
    assert first == {
        "id": "call_cclGbjTQkZDEnnHrRiU0n7NO",
        "type": "function",
        "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'},
    }
    assert sorted(second) == ["function", "id", "type"]


ERRORS = {
    # pydantic-ai at 4fda3898, tests/models/cassettes/test_openrouter/test_openrouter_stream_error.yaml
    "openrouter_error": ("Token limit reached", Usage(43, 10)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_recorded_error_inside_a_stream(name: str) -> None:
    words, usage = ERRORS[name]
    failure = answered(name, size=512)
    assert isinstance(failure, ChatFailure)
    assert failure.problem is not ChatProblem.MALFORMED_REPLY
    assert words in failure.message
    spent = failure.usage
    assert spent.estimated if usage is None else (spent.prompt_tokens, spent.completion_tokens) == (43, 10)


def test_a_malformed_call_inside_a_stream_is_the_models() -> None:
    """The stream is that of pydantic-ai at 4fda3898, cassette test_tool_use_failed_error_streaming.yaml."""
    reply = answered("groq_bad_call", size=512)
    assert isinstance(reply, ChatReply)
    (call,) = reply.message.tool_calls
    assert '"invalid_param"' in call.arguments
    assert reply.usage.estimated


def test_an_error_names_the_call_that_was_refused() -> None:
    received = Received()
    received.take([(STREAMS / "groq_bad_call.sse").read_bytes()], lambda: None)
    body = received.body()
    assert isinstance(body, dict)
    assert body["error"]["code"] == "tool_use_failed"
    assert '"invalid_param"' in body["error"]["failed_generation"]


def test_the_whole_form_of_a_reply_is_the_same() -> None:
    reply = answered("xai_calls", size=4_096)
    assert isinstance(reply, ChatReply)
    assert reply.message == ChatMessage(
        "assistant",
        "",
        (ToolRequest("call_55070233", "add", SUMS), ToolRequest("call_12016531", "multiply", SUMS)),
    )
