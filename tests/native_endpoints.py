"""Scripted endpoints that speak a vendor's own API, and models that are asked through each API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from scripted_endpoint import Answer, completion

from gistpoint.core.chat import ChatApi
from gistpoint.core.ports import ChatModel
from gistpoint.sandbox.endpoints.models import chat_model_at
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings

KEY = "sk-secret-0123456789/abc"
Call = tuple[str, dict[str, Any]]


def model_at(api: ChatApi, url: str, **changes: Any) -> ChatModel:
    """Return a model that is asked through an API; `url` is the address of OpenAI's API at the endpoint."""
    given = {"timeout_s": 60.0, **changes}
    place = url if api == "openai" else url.removesuffix("/v1")
    return chat_model_at(EndpointSettings("m", place, ApiKey(KEY), api=api, **given))


def signature_of(number: int) -> str:
    """Return an opaque string like a vendor's, with the characters in which two forms of base64 differ."""
    return f"EqQB+/{number}==-_" * 3


def message(
    content: Sequence[object] = (), stop: str = "end_turn", usage: object = None, **members: object
) -> Answer:
    """Return a message of Anthropic's API, in the form of https://platform.claude.com/docs/en/api/messages."""
    used = {"input_tokens": 100, "output_tokens": 10} if usage is None else usage
    return Answer(
        {
            "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
            "type": "message",
            "role": "assistant",
            "model": "claude-scripted-1",
            "content": list(content),
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": used,
            **members,
        }
    )


def candidate(
    parts: Sequence[object] | None = (), finish: str = "STOP", usage: object = None, **members: object
) -> Answer:
    """Return a response of Gemini's API, in the form of https://ai.google.dev/api/generate-content."""
    used = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    content = {} if parts is None else {"content": {"role": "model", "parts": list(parts)}}
    return Answer(
        {
            "candidates": [{**content, "finishReason": finish, "index": 0, **members}],
            "usageMetadata": used if usage is None else usage,
            "modelVersion": "gemini-scripted-1",
            "responseId": "aBcD123",
        }
    )


def replied(api: ChatApi, number: int, words: str, *calls: Call) -> Answer:
    """Return the same reply in an API's form, with that API's signatures; `number` is that of the reply."""
    if api == "openai":
        return completion(words or None, *calls)
    if api == "anthropic":
        return _message(number, words, calls)
    return _candidate(number, words, calls)


def _message(number: int, words: str, calls: Sequence[Call]) -> Answer:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Which one?", "signature": signature_of(number)},
        {"type": "redacted_thinking", "data": signature_of(number + 100)},
    ]
    if words:
        blocks.append({"type": "text", "text": words})
    for place, (name, values) in enumerate(calls):
        blocks.append(
            {
                "type": "thinking",
                "thinking": "And now this.",
                "signature": signature_of(1000 * place + number),
            }
        )
        blocks.append({"type": "tool_use", "id": f"toolu_{number}_{place}", "name": name, "input": values})
    return message(blocks, "tool_use" if calls else "end_turn")


def _candidate(number: int, words: str, calls: Sequence[Call]) -> Answer:
    parts: list[dict[str, Any]] = [{"text": "**Which one?**", "thought": True}]
    if words:
        parts.append({"text": words})
    for place, (name, values) in enumerate(calls):
        # Of parallel calls, only the first one has a signature.
        signed = {} if place else {"thoughtSignature": signature_of(number)}
        id = {"id": f"{number}-{place}"} if number % 2 else {}
        parts.append({"functionCall": {**id, "name": name, "args": values}, **signed})
    return candidate(parts)


def signatures_in(request: object) -> list[str]:
    """Return the signatures in a request, in order."""
    found: list[str] = []

    def look(value: object) -> None:
        if isinstance(value, dict):
            found.extend(
                item for name, item in value.items() if name in ("signature", "data", "thoughtSignature")
            )
            for item in value.values():
                look(item)
        elif isinstance(value, list):
            for item in value:
                look(item)

    look(json.loads(json.dumps(request)))
    return found
