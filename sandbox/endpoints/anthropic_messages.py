"""Chat models behind Anthropic's Messages API, through the package `anthropic` (the extra of that name)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gistpoint.core.chat import ChatMessage, ChatProblem
from gistpoint.core.errors import EndpointError, extra_hint
from gistpoint.sandbox.endpoints.anthropic_bodies import error_problem, filtered_reply, reply_of, request_of
from gistpoint.sandbox.endpoints.native_model import NativeModel
from gistpoint.sandbox.endpoints.settings import EndpointSettings
from gistpoint.sandbox.endpoints.throttle import HostGate

if TYPE_CHECKING:
    import anthropic
    import httpx2

    from gistpoint.sandbox.endpoints.bounded_requests import Answer


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

    def _request(self, http: httpx2.Client, body: dict[str, Any], sent: int) -> Answer:
        from gistpoint.sandbox.endpoints.transport import loaded

        package = self._anthropic
        try:
            with self._client(http).messages.with_streaming_response.create(
                model=self.settings.model,
                max_tokens=body["max_tokens"],
                messages=body["messages"],
                # Sent as they are, since the package does not know all members of the blocks that it gets.
                extra_body={name: value for name, value in body.items() if name != "max_tokens"},
            ) as response:
                received = response.read()
            # Read as raw JSON, because the package's own models would accept anything (decision 34).
            return reply_of(self.settings.withheld.taken_out_of(loaded(received)), self.settings, sent)
        except package.APITimeoutError:
            return self._requests.timed_out(sent)
        except package.APIConnectionError as error:
            return self._requests.unreachable(error.__cause__, sent)
        except package.APIStatusError as error:
            return self._refused(error, sent)
        except package.APIError:
            return self._requests.failure(ChatProblem.MALFORMED_REPLY, "sent a reply that can't be read")

    def _client(self, http: httpx2.Client) -> anthropic.Anthropic:
        from gistpoint.sandbox.endpoints.bounded_requests import NO_KEY

        return self._anthropic.Anthropic(
            # With a key, the package looks for no other credentials in the environment or in files.
            api_key=self.settings.key.reveal() or NO_KEY,
            base_url=self.settings.base_url,
            timeout=self.settings.longest_s(streamed=False),
            # `RetryingModel` retries, since waits must be cancellable, limited and recorded (decision 34).
            max_retries=0,
            http_client=http,
            open_telemetry=False,
        )

    def _refused(self, error: anthropic.APIStatusError, sent: int) -> Answer:
        body = self.settings.withheld.taken_out_of(error.body)
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
