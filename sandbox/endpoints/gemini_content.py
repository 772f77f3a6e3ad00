"""Chat models behind Google's Gemini API, through the package `google-genai` (the extra `gemini`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gistpoint.core.chat import ChatMessage, ChatProblem, ChatReply, Usage
from gistpoint.core.errors import EndpointError, extra_hint
from gistpoint.sandbox.endpoints.exchange import NativeExchange
from gistpoint.sandbox.endpoints.gemini_bodies import (
    error_problem,
    reply_of,
    request_of,
    requested_wait,
    usage_in,
)
from gistpoint.sandbox.endpoints.native_model import NativeModel
from gistpoint.sandbox.endpoints.native_streams import CandidateStream
from gistpoint.sandbox.endpoints.settings import EndpointSettings
from gistpoint.sandbox.endpoints.throttle import HostGate

if TYPE_CHECKING:
    import httpx2

    from gistpoint.sandbox.endpoints.bounded_requests import Answer
    from gistpoint.sandbox.endpoints.connections import Connection

_UNSAFE = ("..", "?", "&", "#")
"""Strings that a model's name can't contain, because it becomes part of the request's path."""


class _TakenError(Exception):
    """Carries a response out of the package after it was received."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__()
        self.response = response


class GeminiModel(NativeModel):
    """A model behind the Gemini API; implements `gistpoint.core.ports.ChatModel`.

    Each call sends one request. A reply's parts, with their thought signatures, are kept in the journal and
    sent back as they came, in their order.
    """

    def __init__(self, settings: EndpointSettings, gate: HostGate | None = None) -> None:
        """`gate` is the gate of the host; if it is None, the model gets its own.

        Raises `EndpointError` for an unsuitable name, or if `google-genai` is not installed.
        """
        if any(sign in settings.model for sign in _UNSAFE):
            raise EndpointError(
                "This is not a name of a Gemini model.", hint="Give one such as gemini-3.8-flash."
            )
        try:
            from google import genai
            from google.genai import types

            from gistpoint.sandbox.endpoints.bounded_requests import BoundedRequests
        except ImportError:
            raise EndpointError(
                "Gemini's API needs packages that are not installed.", hint=extra_hint("gemini")
            ) from None
        self.settings = settings
        self._genai = genai
        self._types = types
        self._requests = BoundedRequests(settings, (gate or HostGate(place=settings.place)).host)

    def _body(self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return request_of(messages, tools, self.settings)

    def _pieces(self) -> CandidateStream:
        return CandidateStream()

    def _usage(self, reported: object, sent: int, received: int) -> Usage:
        return usage_in(reported, self.settings.prices, sent, received)

    def _request(self, http: httpx2.Client, connection: Connection, exchange: NativeExchange) -> Answer:
        received = exchange.received

        def take(response: httpx2.Response) -> None:
            # The package's models would change the form of signatures and accept anything (decision 148),
            # so control is taken from the package before it reads the reply.
            if response.status_code == 200:
                received.take(response.iter_bytes(), connection.began)
            else:
                response.read()
            raise _TakenError(response)

        http.event_hooks["response"].append(take)
        models, types = self._client(http, exchange).models, self._types
        ask = models.generate_content_stream if exchange.streamed else models.generate_content
        try:
            reply = ask(
                model=self.settings.model,
                contents="-",  # replaced by those of the body
                config=types.GenerateContentConfig(
                    http_options=types.HttpOptions(extra_body=exchange.body),
                    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
                    automatic_continuation=False,
                ),
            )
            next(iter(reply), None)  # only this requests a stream
            raise AssertionError("the package did not use its client")
        except _TakenError as taken:
            if taken.response.status_code != 200:
                return self._refused(taken.response)
        if not received.complete:
            return self._requests.broken_off("no end of the stream", exchange)
        answer = reply_of(self._requests.body_of(exchange), self.settings, exchange.sent)
        return replace(answer, streamed=received.streamed) if isinstance(answer, ChatReply) else answer

    def _client(self, http: httpx2.Client, exchange: NativeExchange) -> Any:
        import httpx2

        from gistpoint.sandbox.endpoints.bounded_requests import NO_KEY
        from gistpoint.sandbox.endpoints.transport import trusted_certificates

        certificates = trusted_certificates()
        return self._genai.Client(
            # Passed explicitly, because the package would otherwise read both from the environment.
            vertexai=False,
            api_key=self.settings.key.reveal() or NO_KEY,
            http_options=self._types.HttpOptions(
                base_url=self.settings.base_url,
                timeout=max(1, round(self.settings.longest_s(streamed=exchange.streamed) * 1000)),
                # `retry_options` is left unset, so that the client doesn't retry: `RetryingModel` does
                # (decision 34).
                httpx_client=http,
                # Unused, but without them the package reads the certificates twice for each request.
                httpx_async_client=httpx2.AsyncClient(verify=certificates),
                async_client_args={"ssl": certificates},
            ),
        )

    def _refused(self, response: httpx2.Response) -> Answer:
        from gistpoint.sandbox.endpoints.transport import loaded

        body: object = None
        try:
            body = self.settings.withheld.removed_from(loaded(response.content))
        except (ValueError, RecursionError):
            body = {"error": self.settings.withheld.removed_from_text(response.text)}
        if isinstance(body, list) and len(body) == 1:
            body = body[0]
        status = response.status_code
        return self._requests.refused(
            error_problem(status, body) if status >= 400 else ChatProblem.REJECTED,
            status,
            body,
            response.headers,
            after=requested_wait(body),
        )
