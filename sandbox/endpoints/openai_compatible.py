"""Chat models behind OpenAI-compatible endpoints, through the package `openai` (the extra `llm`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from gistpoint.core.chat import ChatFailure, ChatMessage, ChatProblem, ChatReply, ToolRequest, Usage
from gistpoint.core.errors import EndpointError, extra_hint
from gistpoint.core.merging import MOST_BYTES, EndlessReplyError
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tools.dialects import openai_tool
from gistpoint.sandbox.endpoints.connections import Connection
from gistpoint.sandbox.endpoints.hosts import Host, is_busy
from gistpoint.sandbox.endpoints.meanings import error_text, problem_of, retry_after
from gistpoint.sandbox.endpoints.receiving import Received
from gistpoint.sandbox.endpoints.replies import reply_in_error, reply_of, usage_of
from gistpoint.sandbox.endpoints.settings import EndpointSettings
from gistpoint.sandbox.endpoints.throttle import HostGate
from gistpoint.sandbox.endpoints.timed import GivenUp, TimedRequest, TimeLimits
from gistpoint.sandbox.endpoints.transport import (
    CLOSED,
    bounded_client,
    loaded,
)

if TYPE_CHECKING:
    from openai import APIStatusError
    from openai.types.chat import ChatCompletionMessageParam

_NO_KEY = "none"
"""The key that is sent to endpoints that need none, because the header is required."""

_CONNECT_S = 60.0

Answer = ChatReply | ChatFailure


_REFUSALS = frozenset({400, 404, 405, 415, 422, 500, 501})
"""The statuses of servers that refuse a request because of `stream` or `stream_options`.

Older versions of llama.cpp's server answer 500: `Cannot use tools with stream`.
"""


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """How a reply is requested: streamed or whole, with or without usage at the end of the stream."""

    streamed: bool
    usage: bool = False
    """Whether usage is requested at the end of the stream."""

    @classmethod
    def of(cls, host: Host, *, whole: bool) -> ReplyForm:
        """Return the first form to request: without a stream if `whole`, or if the host refuses streams."""
        streamed = not whole and not host.refuses_streams
        return cls(streamed, streamed and not host.refuses_usage)

    @property
    def members(self) -> dict[str, Any]:
        """The members that a request body needs for a reply of this kind; empty without a stream."""
        if not self.streamed:
            return {}
        return {"stream": True, **({"stream_options": {"include_usage": True}} if self.usage else {})}

    def remember(self, host: Host) -> None:
        """Record that the host answers this form of request, after it refused another."""
        if not self.streamed:
            host.refuses_streams = True
        elif not self.usage:
            host.refuses_usage = True


@dataclass(frozen=True, slots=True)
class FormRefusal:
    """A refusal that mentions streaming, after which the request is sent in another form."""

    form: ReplyForm


def form_after_refusal(form: ReplyForm, status: int, body: str) -> ReplyForm | None:
    """Return the form of the next request after a refusal; None if the refusal is not about the form."""
    words = body.lower()
    if not form.streamed or status not in _REFUSALS or "stream" not in words:
        return None
    refuses_usage_alone = "stream_options" in words or "include_usage" in words
    return ReplyForm(streamed=True) if form.usage and refuses_usage_alone else ReplyForm(streamed=False)


class OpenAICompatibleModel:
    """A model behind an endpoint; implements `gistpoint.core.ports.ChatModel`.

    Each call sends one request, and at most two more if the host refuses a stream, or usage at its end.
    """

    def __init__(self, settings: EndpointSettings, gate: HostGate | None = None) -> None:
        """`gate` is the gate of the host; if it is None, the model gets its own.

        Raises `EndpointError` if the package `openai` is not installed.
        """
        try:
            import httpx2
            import openai
        except ImportError:
            raise EndpointError(
                "Chat models need packages that are not installed.",
                hint=extra_hint("llm"),
            ) from None
        self.settings = settings
        self._gate = gate or HostGate(place=settings.place)
        self._withheld = settings.withheld
        self._openai = openai
        self._httpx = httpx2

    @property
    def name(self) -> str:
        """The model's name as sent in requests."""
        return self.settings.model

    def complete(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        cancel: CancelToken = NEVER,
    ) -> Answer:
        """Send one request, and return the reply or the failure.

        At a time limit, the request is given up and a failure is returned. Raises `CancelledError` when
        `cancel` is cancelled. The connection is closed in both cases.
        """
        body = self._body(messages, tools)
        host = self._gate.host
        form = ReplyForm.of(host, whole=self.settings.no_stream)
        answer = self._asked(body, form, cancel)
        while isinstance(answer, FormRefusal):
            form = answer.form
            with self._gate.admitted(0, cancel):
                answer = self._asked(body, form, cancel)
            if isinstance(answer, ChatReply):
                # Remembered only if it helped, because the message of a refusal may mean something else.
                form.remember(host)
        return answer

    def _asked(self, body: dict[str, Any], form: ReplyForm, cancel: CancelToken) -> Answer | FormRefusal:
        settings = self.settings
        sent = len(json.dumps(body))
        patience = TimeLimits(settings.longest_s(streamed=False))
        if form.streamed:
            longest_s = settings.longest_s(streamed=True)
            patience = TimeLimits(longest_s, settings.silence_s, settings.first_token_s)
        received = Received()
        answer = TimedRequest[Answer | FormRefusal](self._gate.host, patience).carried_out(
            lambda connection: self._request(connection, {**body, **form.members}, sent, form, received),
            cancel,
        )
        if isinstance(answer, GivenUp):
            return self._lost(ChatProblem.TIMED_OUT, answer.what, sent, received)
        return answer

    def _body(self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the request as it is sent; an empty list of tools is left out, as endpoints refuse it."""
        rows = [self._message(message) for message in messages]
        offered = {"tools": [openai_tool(tool) for tool in tools]} if tools else {}
        return {"messages": rows, **offered, **self.settings.sampling_fields}

    def _message(self, message: ChatMessage) -> dict[str, Any]:
        row: dict[str, Any] = {"role": message.role, "content": _utf8(message.content)}
        # A member such as a signature is meant only for the host that sent it.
        is_of_host = message.host == self.settings.place
        if is_of_host:
            row = {**message.extra, **row}
        if self.settings.echo_reasoning and message.reasoning:
            row["reasoning_content"] = _utf8(message.reasoning)
        if message.tool_calls:
            row["tool_calls"] = [
                _call_row(item, item.extra if is_of_host else {}) for item in message.tool_calls
            ]
        if message.tool_call_id:
            row["tool_call_id"] = message.tool_call_id
        return row

    def _request(
        self, connection: Connection, body: dict[str, Any], sent: int, form: ReplyForm, received: Received
    ) -> Answer | FormRefusal:
        """Send a request and return its answer; called in a separate thread."""
        openai = self._openai
        httpx = self._httpx
        try:
            self._receive(connection, body, received)
        except EndlessReplyError:
            what = f"sent more than {MOST_BYTES >> 20} MiB"
            return self._lost(ChatProblem.MALFORMED_REPLY, what, sent, received)
        except (openai.APITimeoutError, httpx.TimeoutException):
            what = f"did not accept a connection or a request within {_CONNECT_S:g} s"
            return self._lost(ChatProblem.TIMED_OUT, what, sent, received)
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__ if error.__cause__ else "no connection"
            if isinstance(error.__cause__, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError):
                what = f"{CLOSED} ({cause})"
                return self._lost(ChatProblem.NO_CONNECTION, what, sent, received)
            return self._failure(ChatProblem.NO_CONNECTION, f"can't be reached ({cause})")
        except httpx.HTTPError as error:
            if not received.complete:
                what = f"stopped in the middle of its reply ({type(error).__name__})"
                return self._lost(ChatProblem.NO_CONNECTION, what, sent, received)
        except openai.APIStatusError as error:
            body_of_error = self._body_of(error)
            other = form_after_refusal(form, error.status_code, str(body_of_error))
            return self._refused(error, body_of_error, sent) if other is None else FormRefusal(other)
        except (ValueError, RecursionError):
            return self._not_json(sent, received)
        except openai.APIError:
            what = "sent a reply that can't be read"
            return self._lost(ChatProblem.MALFORMED_REPLY, what, sent, received)
        return self._read(received, sent)

    def _receive(self, connection: Connection, body: dict[str, Any], received: Received) -> None:
        """Send a request, and receive its reply up to its end."""
        others = {name: value for name, value in body.items() if name != "messages"}
        client = self._openai.OpenAI(
            api_key=self.settings.key.reveal() or _NO_KEY,
            base_url=self.settings.base_url,
            # The time is watched from outside, since a limit on silence depends on what has arrived.
            timeout=self._httpx.Timeout(None, connect=_CONNECT_S),
            # `RetryingModel` retries, since waits must be cancellable, limited and recorded (decision 34).
            max_retries=0,
            http_client=bounded_client(_CONNECT_S, connection.abandoned, connection),
        )
        with (
            client,
            client.chat.completions.with_streaming_response.create(
                model=self.settings.model,
                messages=cast("list[ChatCompletionMessageParam]", body["messages"]),
                extra_body=others,
            ) as response,
        ):
            received.take(response.iter_bytes(), connection.began)

    def _read(self, received: Received, sent: int) -> Answer:
        """Return the answer in the received data."""
        if not received.complete:
            what = "stopped in the middle of its reply (no end of the stream)"
            return self._lost(ChatProblem.NO_CONNECTION, what, sent, received)
        try:
            # Read as raw JSON, because the package's own models would accept anything (decision 34).
            body = self._withheld.removed_from(received.body())
            answer = self._without_key(reply_of(body, self.settings.prices, sent, self.settings.place))
        except (ValueError, RecursionError):
            return self._not_json(sent, received)
        if received.streamed and not answer.usage.tokens:
            answer = replace(answer, usage=self._usage_if_lost(sent, received))
        return replace(answer, streamed=received.streamed) if isinstance(answer, ChatReply) else answer

    def _refused(self, error: APIStatusError, error_body: object, sent: int) -> Answer:
        """Return what a status other than success means, which may be a reply (decision 147)."""
        reply = reply_in_error(error.status_code, error_body, self.settings.prices, sent)
        if reply is not None:
            return self._without_key(reply)
        problem = problem_of(error.status_code, error_body)
        text = error_text(error_body)
        if error.status_code < 400:
            text = "it redirects, which is not followed; give the address that it redirects to"
        if error.status_code == 404 and not self.settings.has_path:
            text += "; if the server has the model, its address may have to end in /v1"
        after = retry_after(error.response.headers)
        failure = self._failure(problem, f"answered {error.status_code}: {text}", after)
        return replace(failure, busy=is_busy(error.status_code, text))

    def _body_of(self, error: APIStatusError) -> object:
        """Return the body of an error without the key, as text unless it is JSON.

        It is read here because the package leaves out what is next to the member `error`.
        """
        try:
            return self._withheld.removed_from(loaded(error.response.content))
        except (ValueError, RecursionError):
            return self._withheld.removed_from_text(error.response.text)

    def _without_key(self, answer: Answer) -> Answer:
        """Return an answer from which the key is removed, even if it was sent in parts or escaped."""
        if not isinstance(answer, ChatReply):
            return answer
        withheld = self._withheld
        written = answer.message
        calls = tuple(
            replace(
                call,
                arguments=withheld.removed_from_json(call.arguments),
                extra=withheld.removed_from_texts(call.extra),
            )
            for call in written.tool_calls
        )
        return replace(
            answer,
            message=replace(
                written,
                content=withheld.removed_from_text(written.content),
                tool_calls=calls,
                extra=withheld.removed_from_texts(written.extra),
            ),
            echoed=self.settings.echo_reasoning,
        )

    def _failure(
        self, problem: ChatProblem, what: str, after: float | None = None, usage: Usage | None = None
    ) -> ChatFailure:
        text = self._withheld.removed_from_text(f"{self.settings.place} {what.rstrip('.')}.")
        return ChatFailure(problem, text, after, usage or Usage())

    def _not_json(self, sent: int, received: Received) -> ChatFailure:
        what = "sent something that is not JSON, or too much of it"
        return self._lost(ChatProblem.MALFORMED_REPLY, what, sent, received)

    def _lost(self, problem: ChatProblem, what: str, sent: int, received: Received) -> ChatFailure:
        return self._failure(problem, what, usage=self._usage_if_lost(sent, received))

    def _usage_if_lost(self, sent: int, received: Received) -> Usage:
        """Return the minimum usage of a lost reply's request, as reported or estimated from its length."""
        return usage_of(received.usage, self.settings.prices, sent, received.characters)


def _call_row(call: ToolRequest, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as it is sent; `extra` are the other members of the call and of its function."""
    function = {**extra.get("function", {}), "name": call.name, "arguments": call.arguments}
    return {**extra, "id": call.id, "type": "function", "function": function}


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
