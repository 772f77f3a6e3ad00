"""Any OpenAI-compatible endpoint as a chat model, by the `openai` package (the extra `llm`)."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import EndpointError
from gistpoint.core.ports import ChatFailure, ChatMessage, ChatProblem, ChatReply
from gistpoint.sandbox.endpoints.replies import error_text, problem_of, reply_of, retry_after
from gistpoint.sandbox.endpoints.settings import EndpointSettings

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

MOST_BYTES = 32 << 20
"""Of one reply."""
_TICK_S = 0.05
_NO_KEY = "none"
"""Sent to endpoints that need no key, as the header must be there."""

Answer = ChatReply | ChatFailure


class OpenAICompatibleModel:
    """A model behind an endpoint; implements `gistpoint.core.ports.ChatModel`. One request is sent per call."""

    def __init__(self, settings: EndpointSettings) -> None:
        """Raises `EndpointError` where the package `openai` is not installed."""
        try:
            import httpx2
            import openai
        except ImportError:
            raise EndpointError(
                "Chat models need the package openai, which is not installed.",
                hint="Install gistpoint with its extra: pip install 'gistpoint[llm]'.",
            ) from None
        self.settings = settings
        self._openai, self._httpx = openai, httpx2

    @property
    def name(self) -> str:
        """The model's name as it is asked for."""
        return self.settings.model

    def complete(
        self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]], *, cancel: CancelToken | None = None
    ) -> Answer:
        """Send one request; it is given up at its time limit, and left behind on a cancel."""
        answers: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()
        client = self._openai.OpenAI(
            api_key=self.settings.key.reveal() or _NO_KEY,
            base_url=self.settings.base_url,
            timeout=self.settings.timeout_s,
            max_retries=0,
        )

        def work() -> None:
            try:
                with client:
                    answers.put(self._asked(client, messages, tools))
            except BaseException as error:
                answers.put(error)

        threading.Thread(target=work, name="chat-request", daemon=True).start()
        deadline = time.monotonic() + self.settings.timeout_s
        while True:
            if cancel is not None:
                cancel.check()
            try:
                answer = answers.get(timeout=_TICK_S)
                break
            except queue.Empty:
                if time.monotonic() > deadline:
                    return self._timed_out()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _asked(self, client: OpenAI, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> Answer:
        rows = [_message(message) for message in messages]
        offered = [{"type": "function", "function": dict(tool)} for tool in tools]
        sent = len(json.dumps([rows, offered]))
        openai, httpx = self._openai, self._httpx
        try:
            with client.chat.completions.with_streaming_response.create(
                model=self.settings.model,
                messages=cast("list[ChatCompletionMessageParam]", rows),
                tools=cast("list[ChatCompletionToolParam]", offered),
            ) as response:
                body = bytearray()
                for block in response.iter_bytes():
                    body += block
                    if len(body) > MOST_BYTES:
                        return self._failure(ChatProblem.MALFORMED_REPLY, f"sent more than {MOST_BYTES >> 20} MiB")
            return reply_of(self._loaded(bytes(body)), self.settings.prices, sent)
        except (openai.APITimeoutError, httpx.TimeoutException):
            return self._timed_out()
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
            return self._failure(ChatProblem.NO_CONNECTION, f"can't be reached ({cause})")
        except httpx.HTTPError as error:
            return self._failure(ChatProblem.NO_CONNECTION, f"broke off in its reply ({type(error).__name__})")
        except openai.APIStatusError as error:
            problem, text = problem_of(error.status_code), error_text(self.settings.key.taken_out_of(error.body))
            after = retry_after(error.response.headers)
            return self._failure(problem, f"answered {error.status_code}: {text}", after)
        except (ValueError, RecursionError):
            return self._failure(ChatProblem.MALFORMED_REPLY, "sent something that is not JSON")
        except openai.APIError:
            return self._failure(ChatProblem.MALFORMED_REPLY, "sent a reply that can't be read")

    def _loaded(self, body: bytes) -> object:
        return self.settings.key.taken_out_of(json.loads(body))

    def _failure(self, problem: ChatProblem, what: str, after: float | None = None) -> ChatFailure:
        text = self.settings.key.taken_out_of_text(f"{self.settings.place} {what}.")
        return ChatFailure(problem, text, after)

    def _timed_out(self) -> ChatFailure:
        return self._failure(ChatProblem.TIMED_OUT, f"gave no whole reply within {self.settings.timeout_s:g} s")


def _message(message: ChatMessage) -> dict[str, Any]:
    row: dict[str, Any] = {"role": message.role, "content": _utf8(message.content)}
    if message.tool_calls:
        row["tool_calls"] = [
            {"id": item.id, "type": "function", "function": {"name": item.name, "arguments": item.arguments}}
            for item in message.tool_calls
        ]
    if message.tool_call_id:
        row["tool_call_id"] = message.tool_call_id
    return row


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
