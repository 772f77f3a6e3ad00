"""Chat models behind OpenAI-compatible endpoints, through the package `openai` (the extra `llm`)."""

from __future__ import annotations

import email.utils
import json
import queue
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, Any, cast

import httpx2
from openai import DefaultHttpxClient

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, ToolRequest, Usage
from gistpoint.core.errors import EndpointError, extra_hint
from gistpoint.core.estimates import tokens_in
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tools.dialects import openai_tool
from gistpoint.sandbox.endpoints.settings import EndpointSettings, Prices

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletionMessageParam


class EndlessReplyError(Exception):
    """A body exceeds its limit, or is compressed, so that its length is unknown."""


def bounded_client(most_bytes: int, timeout_s: float, abandoned: Event) -> httpx2.Client:
    """Return a client in which reading more than `most_bytes` of a body raises `EndlessReplyError`.

    This is also true of the bodies of errors. Reading ends soon after `abandoned` is set. Redirects are
    answers like others, since following one would send the conversation to a host that no record names.
    Compressed replies are neither requested nor unpacked.
    """

    def bound(response: httpx2.Response) -> None:
        # A compressed body may have any length after unpacking, so it is not unpacked.
        response.headers.pop("content-encoding", None)
        response.stream = _Body(response.stream, most_bytes, abandoned)

    return DefaultHttpxClient(
        follow_redirects=False,
        timeout=timeout_s,
        verify=_trusted(),
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [bound]},
    )


@cache
def _trusted() -> ssl.SSLContext:
    """Return a context with the trusted certificates; reading them takes as long as the rest of a request."""
    return httpx2.create_ssl_context()


class _Body(httpx2.SyncByteStream):
    def __init__(self, body: object, most_bytes: int, abandoned: Event) -> None:
        assert isinstance(body, httpx2.SyncByteStream)
        self._body = body
        self._left = most_bytes
        self._abandoned = abandoned

    def __iter__(self) -> Iterator[bytes]:
        for block in self._body:
            self._left -= len(block)
            if self._left < 0 or self._abandoned.is_set():
                raise EndlessReplyError
            yield block

    def close(self) -> None:
        self._body.close()


_MOST_TOKENS = 1 << 40
_MOST_USD = 1e6
"""The limits of one request; an endpoint's claims beyond them are ignored."""
_NAME_CHARACTERS = 200
_CONTEXT_CODES = ("context_length_exceeded", "exceed_context_size_error")
_CONTEXT_WORDS = (
    "maximum context length",  # vLLM, OpenRouter, OpenAI
    "longer than the maximum model length",  # vLLM
    "exceeds the available context size",  # llama.cpp
)
"""The codes, and the words in messages, by which endpoints report that a conversation is too long."""
_MODEL_WORDS = ("model_not_found", "is not a valid model id")


def reply_of(data: object, prices: Prices | None, sent_characters: int) -> ChatReply | ChatFailure:
    """Return the reply in the body of a chat completion, or a failure if there is none.

    `sent_characters` is the length of the request, from which missing usage is estimated.
    """
    if not isinstance(data, dict):
        return _malformed("it is not a JSON object")
    failure = _error_in(data)
    if failure is not None:
        return failure
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        what = "it has no choices" if not choices else "its first choice has no message"
        return _malformed(what, usage_of(data.get("usage"), prices, sent_characters, 0))
    written = ChatMessage(
        "assistant",
        _content(message.get("content")),
        _calls(message.get("tool_calls")),
        reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
    )
    refusal = _text(message.get("refusal"))
    finish = _text(choice.get("finish_reason"))
    received = _length(written)
    usage = usage_of(data.get("usage"), prices, sent_characters, received)
    # Ollama sometimes answers this way. An empty reply for which tokens were counted is the model's own.
    is_empty = not received and not refusal and not usage.tokens
    if is_empty and finish in ("", "stop"):
        return _malformed("it is empty, and no token was counted", usage)
    return ChatReply(
        written,
        finish,
        usage,
        _text(data.get("model")),
        refusal,
        fingerprint=_text(data.get("system_fingerprint"))[:_NAME_CHARACTERS],
        request_id=_text(data.get("id"))[:_NAME_CHARACTERS],
    )


def _error_in(data: Mapping[str, Any]) -> ChatFailure | None:
    """Return the failure that a body with a status of success reports; None if it reports none.

    A body that also has choices is a reply, and reports none.
    """
    error = data.get("error")
    is_error = isinstance(error, dict | str) and bool(error)
    if not is_error or "choices" in data:
        return None
    problem = ChatProblem.SERVER_ERROR
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int):
        problem = problem_of(code, data)
    return ChatFailure(problem, f"The endpoint answered with an error: {error_text(data)}")


def _length(message: ChatMessage) -> int:
    """Return how many characters of a message the model has written."""
    calls = sum(len(call.arguments) + len(call.name) for call in message.tool_calls)
    return len(message.content) + len(message.reasoning) + calls


def usage_of(value: object, prices: Prices | None, sent: int, received: int) -> Usage:
    """Return the usage of a request; what the endpoint omits is estimated from the lengths in characters.

    The cost is that of `prices` if they are given, otherwise the endpoint's; None if it reports none.
    """
    table: Mapping[str, object] = value if isinstance(value, dict) else {}
    prompt = _count(table.get("prompt_tokens"))
    completion = _count(table.get("completion_tokens"))
    estimated = prompt is None or completion is None
    if prompt is None:
        prompt = tokens_in(sent)
    if completion is None:
        completion = tokens_in(received)
    cached = _count(_details(table, "prompt").get("cached_tokens")) or 0
    reasoning = _count(_details(table, "completion").get("reasoning_tokens")) or 0
    # Prices in the settings override the endpoint's claim.
    dollars = _dollars(table.get("cost"))
    if prices is not None:
        dollars = (prompt * prices.prompt + completion * prices.completion) / 1e6
    return Usage(prompt, completion, min(cached, prompt), min(reasoning, completion), dollars, estimated)


def _dollars(cost: object) -> float | None:
    """Return the cost that an endpoint claims, in US dollars; None if it can't be that of a request."""
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if 0 <= cost < _MOST_USD else None


def _details(usage: Mapping[str, object], side: str) -> Mapping[str, object]:
    details = usage.get(f"{side}_tokens_details")
    return details if isinstance(details, dict) else {}


_MEANINGS = {
    401: ChatProblem.NOT_AUTHORISED,
    403: ChatProblem.NOT_AUTHORISED,
    404: ChatProblem.UNKNOWN_MODEL,
    408: ChatProblem.TIMED_OUT,
    409: ChatProblem.SERVER_ERROR,
    429: ChatProblem.RATE_LIMITED,
    504: ChatProblem.TIMED_OUT,
}


def problem_of(status: int, body: object = None) -> ChatProblem:
    """Return the meaning of an HTTP status other than success, and of the error in its body."""
    inner = _error_body(body)
    table = inner if isinstance(inner, dict) else {"message": inner}
    words = " ".join(str(table.get(name) or "") for name in ("code", "type", "message")).lower()
    # Words in a message count only with the statuses for a request that is too long; codes always count.
    signs = (*_CONTEXT_CODES, *_CONTEXT_WORDS) if status in (400, 413) else _CONTEXT_CODES
    if _has_one(words, signs):
        return ChatProblem.CONTEXT_FULL
    if status == 400 and _has_one(words, _MODEL_WORDS):
        return ChatProblem.UNKNOWN_MODEL
    if status in _MEANINGS:
        return _MEANINGS[status]
    if status >= 500:
        return ChatProblem.SERVER_ERROR
    return ChatProblem.REJECTED


def _has_one(words: str, signs: Sequence[str]) -> bool:
    return any(sign in words for sign in signs)


def _error_body(body: object) -> object:
    """Return the error in a body, which is its member `error`, or else the body."""
    if isinstance(body, dict):
        return body.get("error", body)
    return body


def error_text(body: object) -> str:
    """Return the message in an error's body, as one line of at most 300 characters.

    Returns `without a word` if there is none.
    """
    words = _error_body(body)
    if isinstance(words, dict):
        words = words.get("message", words.get("detail", ""))
    return " ".join(str(words or "without a word").split())[:300]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds an endpoint asks to wait, as a number or until a date; None if it does not.

    The format is that of RFC 9110, 10.2.3.
    """
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        at = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    return max(0.0, at.timestamp() - time.time())


def _malformed(what: str, usage: Usage | None = None) -> ChatFailure:
    return ChatFailure(
        ChatProblem.MALFORMED_REPLY, f"The endpoint's reply is malformed: {what}.", usage=usage or Usage()
    )


def _content(value: object) -> str:
    """Return a message's text, which some endpoints send in parts."""
    if not isinstance(value, list):
        return _text(value)
    parts = [part for part in value if isinstance(part, dict)]
    return "".join(_text(part.get("text")) for part in parts)


def _calls(value: object) -> tuple[ToolRequest, ...]:
    """Return a message's calls; llama.cpp may put the function's members into the call itself."""
    calls = []
    items = value if isinstance(value, list) else []
    for item in items:
        if not isinstance(item, dict):
            continue
        function = item.get("function", item if "name" in item else None)
        if isinstance(function, dict):
            text = _arguments(function.get("arguments"))
            calls.append(ToolRequest(_text(item.get("id")), _text(function.get("name")), text))
    return tuple(calls)


def _arguments(value: object) -> str:
    """Return a call's arguments as JSON text; some endpoints send the object itself, or nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return ""


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _MOST_TOKENS else None


MOST_BYTES = 32 << 20
"""The limit on one reply, in bytes."""
MOST_VALUES = 1_000_000
"""The limit on the JSON values in one reply, because empty values take fifty times their bytes in memory.

They are counted by their brackets and commas, including those within strings.
"""
_TICK_S = 0.05
_NO_KEY = "none"
"""The key that is sent to endpoints that need none, because the header is required."""

Answer = ChatReply | ChatFailure


class OpenAICompatibleModel:
    """A model behind an endpoint; implements `gistpoint.core.ports.ChatModel`.

    Each call sends one request.
    """

    def __init__(self, settings: EndpointSettings) -> None:
        """Raises `EndpointError` if the package `openai` is not installed."""
        try:
            import httpx2
            import openai
        except ImportError:
            raise EndpointError(
                "Chat models need packages that are not installed.",
                hint=extra_hint("llm"),
            ) from None
        self.settings = settings
        self._withheld = settings.withheld
        self._openai = openai
        self._httpx = httpx2

    @property
    def name(self) -> str:
        """The model's name as it is requested."""
        return self.settings.model

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> Answer:
        """Send one request, and return the reply or the failure.

        The request is abandoned at its time limit, which is a failure, and when `cancel` is cancelled, which
        raises `CancelledError`.
        """
        answers: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()
        body = self._body(messages, tools)
        sent = len(json.dumps(body))

        abandoned = threading.Event()
        client = self._openai.OpenAI(
            api_key=self.settings.key.reveal() or _NO_KEY,
            base_url=self.settings.base_url,
            timeout=self.settings.timeout_s,
            # `RetryingModel` retries, since waits must be cancellable, limited and recorded (decision 34).
            max_retries=0,
            http_client=bounded_client(MOST_BYTES, self.settings.timeout_s, abandoned),
        )

        def work() -> None:
            try:
                with client:
                    answers.put(self._request(client, body, sent))
            except BaseException as error:
                answers.put(error)

        # Run in a thread, which can be abandoned, because the package can't stop a request (decision 34).
        threading.Thread(target=work, name="chat-request", daemon=True).start()
        deadline = time.monotonic() + self.settings.timeout_s
        try:
            while True:
                cancel.check()
                try:
                    answer = answers.get(timeout=_TICK_S)
                    break
                except queue.Empty:
                    if time.monotonic() > deadline:
                        return self._timed_out(sent)
        finally:
            abandoned.set()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _body(self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the request as it is sent; an empty list of tools is left out, as endpoints refuse it."""
        rows = [_message(message, echo_reasoning=self.settings.echo_reasoning) for message in messages]
        offered = {"tools": [openai_tool(tool) for tool in tools]} if tools else {}
        return {"messages": rows, **offered, **self.settings.sampling_fields}

    def _request(self, client: OpenAI, body: dict[str, Any], sent: int) -> Answer:

        openai = self._openai
        httpx = self._httpx
        others = {name: value for name, value in body.items() if name != "messages"}
        try:
            with client.chat.completions.with_streaming_response.create(
                model=self.settings.model,
                messages=cast("list[ChatCompletionMessageParam]", body["messages"]),
                extra_body=others,
            ) as response:
                received = response.read()
            # Read as raw JSON, because the package's own models would accept anything (decision 34).
            return self._without_key(reply_of(self._loaded(received), self.settings.prices, sent))
        except EndlessReplyError:
            return self._failure(ChatProblem.MALFORMED_REPLY, f"sent more than {MOST_BYTES >> 20} MiB")
        except (openai.APITimeoutError, httpx.TimeoutException):
            return self._timed_out(sent)
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
            return self._failure(ChatProblem.NO_CONNECTION, f"can't be reached ({cause})")
        except httpx.HTTPError as error:
            what = f"stopped in the middle of its reply ({type(error).__name__})"
            return self._failure(ChatProblem.NO_CONNECTION, what, usage=self._usage_if_lost(sent))
        except openai.APIStatusError as error:
            error_body = self._withheld.taken_out_of(error.body)
            problem = problem_of(error.status_code, error_body)
            text = error_text(error_body)
            if error.status_code < 400:
                text = "it redirects, which is not followed; give the address that it redirects to"
            if error.status_code == 404 and not self.settings.has_path:
                text += "; if the server has the model, its address may have to end in /v1"
            after = retry_after(error.response.headers)
            return self._failure(problem, f"answered {error.status_code}: {text}", after)
        except (ValueError, RecursionError):
            return self._failure(
                ChatProblem.MALFORMED_REPLY, "sent something that is not JSON, or too much of it"
            )
        except openai.APIError:
            return self._failure(ChatProblem.MALFORMED_REPLY, "sent a reply that can't be read")

    def _loaded(self, body: bytes) -> object:
        # Counted before parsing, because parsed values take many times the memory of their text.
        if sum(body.count(sign) for sign in (b"{", b"[", b",")) > MOST_VALUES:
            raise ValueError
        return self._withheld.taken_out_of(json.loads(body))

    def _without_key(self, answer: Answer) -> Answer:
        """Return an answer from which the key is removed, even if it was sent in parts or escaped."""
        if not isinstance(answer, ChatReply):
            return answer
        withheld = self._withheld
        written = answer.message
        calls = tuple(
            replace(call, arguments=withheld.taken_out_of_json(call.arguments)) for call in written.tool_calls
        )
        return replace(
            answer,
            message=replace(written, content=withheld.taken_out_of_text(written.content), tool_calls=calls),
        )

    def _failure(
        self, problem: ChatProblem, what: str, after: float | None = None, usage: Usage | None = None
    ) -> ChatFailure:
        text = self._withheld.taken_out_of_text(f"{self.settings.place} {what}.")
        return ChatFailure(problem, text, after, usage or Usage())

    def _timed_out(self, sent: int) -> ChatFailure:
        what = f"gave no complete reply within {self.settings.timeout_s:g} s"
        return self._failure(ChatProblem.TIMED_OUT, what, usage=self._usage_if_lost(sent))

    def _usage_if_lost(self, sent: int) -> Usage:
        """Return the minimum usage of a request whose reply was lost: that of the text sent."""
        return usage_of(None, self.settings.prices, sent, 0)


def _message(message: ChatMessage, *, echo_reasoning: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"role": message.role, "content": _utf8(message.content)}
    if echo_reasoning and message.reasoning:
        row["reasoning_content"] = _utf8(message.reasoning)
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
