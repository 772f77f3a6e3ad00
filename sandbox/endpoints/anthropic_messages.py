"""Chat models behind Anthropic's Messages API, through the package `anthropic` (the extra of that name)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gistpoint.core.chat import ChatMessage, ChatProblem, ChatReply, Usage
from gistpoint.core.errors import EndpointError, extra_hint
from gistpoint.sandbox.endpoints.anthropic_bodies import (
    error_problem,
    filtered_reply,
    reply_of,
    request_of,
    usage_in,
)
from gistpoint.sandbox.endpoints.exchange import NativeExchange
from gistpoint.sandbox.endpoints.native_model import NativeModel
from gistpoint.sandbox.endpoints.native_streams import MessageStream
from gistpoint.sandbox.endpoints.settings import EndpointSettings
from gistpoint.sandbox.endpoints.throttle import HostGate

if TYPE_CHECKING:
    import anthropic
    import httpx2

    from gistpoint.sandbox.endpoints.bounded_requests import Answer
    from gistpoint.sandbox.endpoints.connections import Connection


class AnthropicModel(NativeModel):
    """A model behind Anthropic's Messages API; implements `gistpoint.core.ports.ChatModel`.

    Each call sends one request. A reply's blocks, among them signed and redacted thinking, are kept in the
    journal and sent back as they came, in their order.
    """

    def __init__(self, settings: EndpointSettings, gate: HostGate | None = None) -> None:
        """`gate` is the gate of the host; if it is None, the model gets its own.

        Raises `EndpointError` if the package `anthropic` is not installed.
        """
        try:
            import anthropic

            from gistpoint.sandbox.endpoints.bounded_requests import BoundedRequests
        except ImportError:
            raise EndpointError(
                "Anthropic's API needs packages that are not installed.", hint=extra_hint("anthropic")
            ) from None
        self.settings = settings
        self._anthropic = anthropic
        self._requests = BoundedRequests(settings, (gate or HostGate(place=settings.place)).host)

    def _body(self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return request_of(messages, tools, self.settings)

    def _pieces(self) -> MessageStream:
        return MessageStream()

    def _usage(self, reported: object, sent: int, received: int) -> Usage:
        return usage_in(reported, self.settings.prices, sent, received)

    def _request(self, http: httpx2.Client, connection: Connection, exchange: NativeExchange) -> Answer:
        package, body, received = self._anthropic, exchange.body, exchange.received
        way = {"stream": True} if exchange.streamed else {}
        try:
            with self._client(http, exchange).messages.with_streaming_response.create(
                model=self.settings.model,
                max_tokens=body["max_tokens"],
                messages=body["messages"],
                # `extra_body` is sent unchanged: the package does not know all members of messages.
                extra_body={**{name: value for name, value in body.items() if name != "max_tokens"}, **way},
            ) as response:
                received.take(response.iter_bytes(), connection.began)
        except package.APITimeoutError:
            return self._requests.timed_out(exchange)
        except package.APIConnectionError as error:
            return self._requests.unreachable(error.__cause__, exchange)
        except package.APIStatusError as error:
            return self._refused(error, exchange.sent)
        except package.APIError:
            return self._requests.failure(ChatProblem.MALFORMED_REPLY, "sent a reply that can't be read")
        if not received.complete:
            return self._requests.broken_off("no end of the stream", exchange)
        # Read as raw JSON, because the package's own models would accept anything (decision 34).
        answer = reply_of(self._requests.body_of(exchange), self.settings, exchange.sent)
        return replace(answer, streamed=received.streamed) if isinstance(answer, ChatReply) else answer

    def _client(self, http: httpx2.Client, exchange: NativeExchange) -> anthropic.Anthropic:
        from gistpoint.sandbox.endpoints.bounded_requests import NO_KEY

        return self._anthropic.Anthropic(
            # With a key, the package looks for no other credentials in the environment or in files.
            api_key=self.settings.key.reveal() or NO_KEY,
            base_url=self.settings.base_url,
            timeout=self.settings.longest_s(streamed=exchange.streamed),
            # `RetryingModel` retries, since waits must be cancellable, limited and recorded (decision 34).
            max_retries=0,
            http_client=http,
            open_telemetry=False,
        )

    def _refused(self, error: anthropic.APIStatusError, sent: int) -> Answer:
        body = self.settings.withheld.removed_from(error.body)
        filtered = filtered_reply(body, self.settings, sent)
        if filtered is not None:
            return filtered
        hint = ""
        if error.status_code == 404 and self.settings.has_path:
            hint = "; if the server has the model, its address may have to end before /v1"
        return self._requests.refused(
            error_problem(error.status_code, body),
            error.status_code,
            body,
            error.response.headers,
            hint=hint,
        )
