"""The base of models behind vendors' own APIs: a name, and one bounded request for each call."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gistpoint.core.chat import ChatMessage, Usage
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.endpoints.connections import Connection
from gistpoint.sandbox.endpoints.exchange import NativeExchange
from gistpoint.sandbox.endpoints.receiving import PiecedReply, Received
from gistpoint.sandbox.endpoints.settings import EndpointSettings

if TYPE_CHECKING:
    import httpx2

    from gistpoint.sandbox.endpoints.bounded_requests import Answer, BoundedRequests


class NativeModel(ABC):
    """A model behind a vendor's own API; implements `gistpoint.core.ports.ChatModel`."""

    settings: EndpointSettings
    _requests: BoundedRequests

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

        At its time limit, the request is abandoned and a failure is returned. Raises `CancelledError` when
        `cancel` is cancelled.
        """
        body = self._body(messages, tools)
        exchange = NativeExchange(
            body, len(json.dumps(body)), Received(self._pieces()), self._usage, not self.settings.no_stream
        )

        def send(http: httpx2.Client, connection: Connection) -> Answer:
            return self._request(http, connection, exchange)

        return self._requests.ask(send, exchange, cancel)

    @abstractmethod
    def _body(self, messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the request as it is sent."""

    @abstractmethod
    def _pieces(self) -> PiecedReply:
        """Return a reader of a stream's events."""

    @abstractmethod
    def _usage(self, reported: object, sent: int, received: int) -> Usage:
        """Return the usage that a reply reports; what is missing is estimated from the length of the text."""

    @abstractmethod
    def _request(self, http: httpx2.Client, connection: Connection, exchange: NativeExchange) -> Answer:
        """Send a request, and return its answer; called in a separate thread."""
