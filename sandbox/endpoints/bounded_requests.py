"""Sends requests through vendors' packages within bounds, and describes what arrived instead of a reply.

Each package is given a client that reads within bounds, in a thread that can be abandoned (decision 148).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import httpx2

from gistpoint.core.chat import ChatFailure, ChatProblem, ChatReply, Usage
from gistpoint.core.merging import MOST_BYTES, EndlessReplyError
from gistpoint.core.running import CancelToken
from gistpoint.sandbox.endpoints.connections import Connection
from gistpoint.sandbox.endpoints.exchange import NativeExchange
from gistpoint.sandbox.endpoints.hosts import Host, is_busy
from gistpoint.sandbox.endpoints.meanings import error_text, retry_after
from gistpoint.sandbox.endpoints.settings import EndpointSettings
from gistpoint.sandbox.endpoints.timed import GivenUp, TimedRequest, TimeLimits
from gistpoint.sandbox.endpoints.transport import CLOSED, bounded_client

NO_KEY = "none"
"""The key that is sent to endpoints that need none, because the header is required."""

Answer = ChatReply | ChatFailure


@dataclass(frozen=True, slots=True)
class BoundedRequests:
    """The requests to one endpoint."""

    settings: EndpointSettings
    host: Host

    def ask(
        self,
        send: Callable[[httpx2.Client, Connection], Answer],
        exchange: NativeExchange,
        cancel: CancelToken,
    ) -> Answer:
        """Return the answer of `send`, which sends one request through the client that it is given.

        At a time limit, the request is abandoned and a failure is returned. Raises `CancelledError` when
        `cancel` is cancelled.
        """
        settings = self.settings
        longest_s = settings.longest_s(streamed=exchange.streamed)
        patience = TimeLimits(longest_s)
        if exchange.streamed:
            patience = TimeLimits(longest_s, settings.silence_s, settings.first_token_s)

        def work(connection: Connection) -> Answer:
            with bounded_client(longest_s, connection.abandoned, connection) as http:
                return self._answer(send, http, connection, exchange)

        answer = TimedRequest[Answer](self.host, patience).carried_out(work, cancel)
        if isinstance(answer, GivenUp):
            return self.failure(ChatProblem.TIMED_OUT, answer.what, usage=exchange.lost())
        return answer

    def _answer(
        self,
        send: Callable[[httpx2.Client, Connection], Answer],
        http: httpx2.Client,
        connection: Connection,
        exchange: NativeExchange,
    ) -> Answer:
        try:
            answer = self._without_key(send(http, connection))
        except EndlessReplyError:
            what = f"sent more than {MOST_BYTES >> 20} MiB"
            return self.failure(ChatProblem.MALFORMED_REPLY, what, usage=exchange.lost())
        except httpx2.TimeoutException:
            return self.timed_out(exchange)
        except httpx2.ConnectError as error:
            return self.unreachable(error, exchange)
        except httpx2.HTTPError as error:
            return self.broken_off(type(error).__name__, exchange)
        except (ValueError, RecursionError):
            what = "sent something that is not JSON, or too much of it"
            return self.failure(ChatProblem.MALFORMED_REPLY, what, usage=exchange.lost())
        # An error in the middle of a stream does not repeat the usage of what came before it.
        is_uncounted = exchange.received.streamed and not answer.usage.tokens
        return replace(answer, usage=exchange.lost()) if is_uncounted else answer

    def body_of(self, exchange: NativeExchange) -> object:
        """Return the body that was received, without the key. Raises `ValueError` if it is not JSON."""
        return self.settings.withheld.removed_from(exchange.received.body())

    def broken_off(self, why: str, exchange: NativeExchange) -> ChatFailure:
        """Return the failure of a reply that broke off."""
        what = f"stopped in the middle of its reply ({why})"
        return self.failure(ChatProblem.NO_CONNECTION, what, usage=exchange.lost())

    def refused(
        self,
        problem: ChatProblem,
        status: int,
        body: object,
        headers: Mapping[str, str],
        *,
        hint: str = "",
        after: float | None = None,
    ) -> ChatFailure:
        """Return the failure of an answer with a status other than success.

        `hint` is appended to its text. `after` is the wait that the body asks for, unless a header asks for
        another.
        """
        text = error_text(body)
        if status < 400:
            text = "it redirects, which is not followed; give the address that it redirects to"
        asked = retry_after(headers)
        what = f"answered {status}: {text}{hint}"
        failure = self.failure(problem, what, after if asked is None else asked)
        return replace(failure, busy=is_busy(status, text))

    def unreachable(self, error: BaseException | None, exchange: NativeExchange) -> ChatFailure:
        """Return the failure of a connection that could not be made, or was closed without a reply."""
        cause = type(error).__name__ if error else "no connection"
        if isinstance(error, httpx2.ReadError | httpx2.WriteError | httpx2.RemoteProtocolError):
            return self.failure(ChatProblem.NO_CONNECTION, f"{CLOSED} ({cause})", usage=exchange.lost())
        return self.failure(ChatProblem.NO_CONNECTION, f"can't be reached ({cause})")

    def timed_out(self, exchange: NativeExchange) -> ChatFailure:
        """Return the failure of a request that exceeded its time limit."""
        longest_s = self.settings.longest_s(streamed=exchange.streamed)
        what = f"gave no complete reply within {longest_s:g} s"
        return self.failure(ChatProblem.TIMED_OUT, what, usage=exchange.lost())

    def failure(
        self, problem: ChatProblem, what: str, after: float | None = None, usage: Usage | None = None
    ) -> ChatFailure:
        """Return a failure with a sentence that names the endpoint, without its key."""
        text = self.settings.withheld.removed_from_text(f"{self.settings.place} {what}.")
        return ChatFailure(problem, text, after, usage or Usage())

    def _without_key(self, answer: Answer) -> Answer:
        """Return an answer from which the key is removed, even if it was sent in parts or escaped."""
        if not isinstance(answer, ChatReply):
            return answer
        withheld = self.settings.withheld
        written = answer.message
        calls = tuple(
            replace(call, arguments=withheld.removed_from_json(call.arguments)) for call in written.tool_calls
        )
        message = replace(
            written,
            content=withheld.removed_from_text(written.content),
            reasoning=withheld.removed_from_text(written.reasoning),
            tool_calls=calls,
        )
        return replace(answer, message=message)


def utf8(text: str) -> str:
    """Return text in which unpaired surrogates are replaced, since no request can contain them."""
    return text.encode("utf-8", "replace").decode("utf-8")
