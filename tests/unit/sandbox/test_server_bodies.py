"""Published response bodies of vLLM, llama.cpp's server and Ollama; the servers themselves were not run.

Members and counts are those of the sources; long texts, ids and times are shortened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from scripted_endpoint import Answer, endpoint

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, ToolRequest, Usage
from gistpoint.sandbox.endpoints.openai_compatible import OpenAICompatibleModel
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings


class Recorded(NamedTuple):
    """A body, its source, and how it should be read."""

    source: str
    body: Mapping[str, Any]
    read_as: ChatReply | tuple[ChatProblem, str]
    status: int = 200


def said(content: str, *calls: ToolRequest, reasoning: str = "") -> ChatMessage:
    return ChatMessage("assistant", content, calls, reasoning=reasoning)


def counts(prompt: int, completion: int, **others: object) -> dict[str, object]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        **others,
    }


WEATHER = '{"location": "San Francisco, CA"}'
ISTANBUL = '{"location":"Istanbul, Turkey."}'
PYTHON = '{"code":" \\nprint(\\"Hello, World!\\")"}'
SUM = '{"operation":"+","x":"5","y":"3"}'

RECORDED = {
    "vLLM, a call": Recorded(
        "llama-stack at 0a115ddd, tests/integration/recordings/responses/1090f0fff8e3.json (2025-08-25)",
        {
            "id": "chatcmpl-106d", "object": "chat.completion", "created": 1756113872, "model": "Llama-3.2-1B-Instruct",
            "choices": [{
                "index": 0, "finish_reason": "tool_calls", "stop_reason": 128008, "logprobs": None,
                "message": {
                    "role": "assistant", "content": None, "refusal": None, "annotations": None, "audio": None,
                    "function_call": None, "reasoning_content": None,
                    "tool_calls": [{
                        "id": "chatcmpl-tool-32e4", "type": "function",
                        "function": {"name": "get_weather", "arguments": WEATHER},
                    }],
                },
            }],
            "usage": counts(212, 21, completion_tokens_details=None, prompt_tokens_details=None),
            "service_tier": None, "system_fingerprint": None, "prompt_logprobs": None, "kv_transfer_params": None,
        },
        ChatReply(
            said("", ToolRequest("chatcmpl-tool-32e4", "get_weather", WEATHER)),
            "tool_calls", Usage(212, 21), "Llama-3.2-1B-Instruct", request_id="chatcmpl-106d",
        ),
    ),
    "vLLM, reasoning": Recorded(
        "vllm-project/vllm-ascend at 004083a3, docs/source/tutorials/models/Qwen3-Omni-30B-A3B-Thinking.md (0.13)",
        {
            "id": "chatcmpl-8f3a", "object": "chat.completion", "created": 1782714240, "model": "Qwen3-Omni-30B",
            "choices": [{
                "index": 0, "logprobs": None, "finish_reason": "stop", "stop_reason": None,
                "message": {
                    "role": "assistant", "reasoning_content": "Let me examine each modality.",
                    "content": "Here's an analysis.", "tool_calls": [],
                },
            }],
            "usage": counts(8423, 289, prompt_tokens_details=None),
            "prompt_logprobs": None,
        },
        ChatReply(
            said("Here's an analysis.", reasoning="Let me examine each modality."),
            "stop", Usage(8423, 289), "Qwen3-Omni-30B", request_id="chatcmpl-8f3a",
        ),
    ),
    "vLLM, no parser of calls": Recorded(
        "langchain4j/langchain4j#3475 (2025-08)",
        {
            "object": "error", "type": "BadRequestError", "param": None, "code": 400,
            "message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        },
        (ChatProblem.REJECTED, "--enable-auto-tool-choice"),
        400,
    ),
    "llama.cpp, a call": Recorded(
        "ggml-org/llama.cpp#14349 (build 5697)",
        {
            "choices": [{
                "finish_reason": "tool_calls", "index": 0,
                "message": {
                    "role": "assistant", "content": None,
                    "tool_calls": [{
                        "type": "function", "function": {"name": "get_current_weather", "arguments": ISTANBUL},
                        "id": "a0b2a9fb4",
                    }],
                },
            }],
            "created": 1750711340, "model": "Mistral-Small-3.2.gguf", "system_fingerprint": "b5697-ef035803",
            "object": "chat.completion", "usage": counts(120, 39), "id": "chatcmpl-rdyq",
            "timings": {"prompt_n": 100, "prompt_ms": 100.287, "predicted_n": 39, "predicted_ms": 904.706},
        },
        ChatReply(
            said("", ToolRequest("a0b2a9fb4", "get_current_weather", ISTANBUL)),
            "tool_calls", Usage(120, 39), "Mistral-Small-3.2.gguf", fingerprint="b5697-ef035803",
            request_id="chatcmpl-rdyq",
        ),
    ),
    "llama.cpp, reasoning": Recorded(
        "charmbracelet/fantasy at 639311bb, providertests/testdata/TestOpenAICompatibleCommon/llama-cpp-gpt-oss/"
        "simple.yaml (build 6865)",
        {
            "choices": [{
                "finish_reason": "stop", "index": 0,
                "message": {
                    "role": "assistant", "reasoning_content": "Just respond with \"Olá!\".", "content": "Olá!",
                },
            }],
            "created": 1761672364, "model": "openai/gpt-oss-20b", "system_fingerprint": "b6865-1c1409e13",
            "object": "chat.completion", "usage": counts(84, 49), "id": "chatcmpl-e6Ui",
            "timings": {"cache_n": 62, "prompt_n": 22, "prompt_ms": 3021.023, "predicted_n": 49},
        },
        ChatReply(
            said("Olá!", reasoning="Just respond with \"Olá!\"."), "stop", Usage(84, 49), "openai/gpt-oss-20b",
            fingerprint="b6865-1c1409e13", request_id="chatcmpl-e6Ui",
        ),
    ),
    "llama.cpp, a call without a function": Recorded(
        "ggml-org/llama.cpp at 25aff712, docs/function-calling.md",
        {
            "choices": [{
                "finish_reason": "tool", "index": 0,
                "message": {
                    "content": None, "tool_calls": [{"name": "python", "arguments": PYTHON}], "role": "assistant",
                },
            }],
            "created": 1727287211, "model": "gpt-3.5-turbo", "object": "chat.completion", "usage": counts(44, 16),
            "id": "chatcmpl-Htbg",
        },
        ChatReply(
            said("", ToolRequest("", "python", PYTHON)), "tool", Usage(44, 16), "gpt-3.5-turbo",
            request_id="chatcmpl-Htbg",
        ),
    ),
    "llama.cpp, loading": Recorded(
        "mostlygeek/llama-swap#146 (2025-05-25)",
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        (ChatProblem.SERVER_ERROR, "Loading model"),
        503,
    ),
    "Ollama, plain": Recorded(
        "ollama/ollama#6027 (2024-07-28)",
        {
            "id": "chatcmpl-527", "object": "chat.completion", "created": 1722181065, "model": "llama3.1:latest",
            "system_fingerprint": "fp_ollama",
            "choices": [{
                "index": 0, "message": {"role": "assistant", "content": "The user is undefined."},
                "finish_reason": "stop",
            }],
            "usage": counts(257, 63),
        },
        ChatReply(
            said("The user is undefined."), "stop", Usage(257, 63), "llama3.1:latest", fingerprint="fp_ollama",
            request_id="chatcmpl-527",
        ),
    ),
    "Ollama, a call": Recorded(
        "llama-stack at 8499faa5, tests/integration/recordings/responses/cca0267555a6.json (2025-10-02)",
        {
            "id": "chatcmpl-376", "object": "chat.completion", "created": 1759437806, "model": "llama3.2:3b",
            "choices": [{
                "finish_reason": "tool_calls", "index": 0, "logprobs": None,
                "message": {
                    "content": "", "refusal": None, "role": "assistant", "annotations": None, "audio": None,
                    "function_call": None,
                    "tool_calls": [{
                        "id": "call_px63ad04", "function": {"arguments": SUM, "name": "calculate"},
                        "type": "function", "index": 0,
                    }],
                },
            }],
            "service_tier": None, "system_fingerprint": "fp_ollama",
            "usage": counts(172, 27, completion_tokens_details=None, prompt_tokens_details=None),
        },
        ChatReply(
            said("", ToolRequest("call_px63ad04", "calculate", SUM)), "tool_calls", Usage(172, 27), "llama3.2:3b",
            fingerprint="fp_ollama", request_id="chatcmpl-376",
        ),
    ),
    "Ollama, reasoning that was cut off": Recorded(
        "BigBIueWhale/ollama_load_balancer at c59a3b6d, test/ollama_observation/README.md (0.13.5)",
        {
            "id": "chatcmpl-514", "object": "chat.completion", "created": 1768064131, "model": "qwen3:32b",
            "system_fingerprint": "fp_ollama",
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": "", "reasoning": "Okay, the user asked me to say hello."},
                "finish_reason": "length",
            }],
            "usage": counts(13, 20),
        },
        ChatReply(
            said("", reasoning="Okay, the user asked me to say hello."), "length", Usage(13, 20), "qwen3:32b",
            fingerprint="fp_ollama", request_id="chatcmpl-514",
        ),
    ),
    "Ollama, a model without tools": Recorded(
        "ollama/ollama#6027 (2024-07-28)",
        {
            "error": {
                "message": "stablelm2:latest does not support tools", "type": "api_error", "param": None, "code": None,
            },
        },
        (ChatProblem.REJECTED, "does not support tools"),
        400,
    ),
    "Ollama, nothing": Recorded(
        "ollama/ollama#13371 (0.12.5)",
        {
            "id": "chatcmpl-832", "object": "chat.completion", "created": 1765168491, "model": "qwen3-coder:480b-cloud",
            "choices": [{
                "index": 0, "message": {"role": "assistant", "content": None, "refusal": None},
                "finish_reason": "stop", "logprobs": None,
            }],
            "usage": counts(0, 0), "system_fingerprint": "fp_ollama",
        },
        (ChatProblem.MALFORMED_REPLY, "it is empty, and no token was counted"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_a_published_body_is_read(name: str) -> None:
    recorded = RECORDED[name]
    with endpoint(Answer(recorded.body, recorded.status)) as served:
        model = OpenAICompatibleModel(EndpointSettings("m", served.url, ApiKey(""), timeout_s=60.0))
        answer = model.complete([ChatMessage("user", "Hello.")], [])
    if isinstance(recorded.read_as, ChatReply):
        assert answer == recorded.read_as
    else:
        assert isinstance(answer, ChatFailure)
        problem, words = recorded.read_as
        assert answer.problem is problem
        assert words in answer.message


def test_an_empty_reply_is_one_where_tokens_were_counted_or_it_was_filtered() -> None:
    for finish, usage in (("stop", counts(9, 1)), ("stop", None), ("content_filter", counts(0, 0))):
        choice = {"message": {"role": "assistant", "content": ""}, "finish_reason": finish}
        with endpoint(Answer({"choices": [choice], "usage": usage})) as served:
            model = OpenAICompatibleModel(EndpointSettings("m", served.url, ApiKey(""), timeout_s=60.0))
            assert isinstance(model.complete([ChatMessage("user", "Hello.")], []), ChatReply)
