"""A proxy to one host, which holds the key, counts requests, and refuses those that exceed the budget.

It listens on a Unix socket, the only way from an agent's sandbox to a network (decision 153).
"""

from __future__ import annotations

import json
import re
import socketserver
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from gistpoint.core.agents.scaffolds import RelayedRequest, ScaffoldError, Seat
from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.chat import ChatFailure, ChatProblem
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import extra_hint
from gistpoint.sandbox.endpoints.settings import EndpointSettings
from gistpoint.sandbox.scaffolds.passed_replies import (
    asks_for_reply,
    limit_in,
    lost_in,
    other_usage_in,
    refusal_in,
    replies_in,
    reply_in,
)

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 32 << 20
"""The limit on the body of a request, in bytes."""
PLACEHOLDER = "gistpoint-holds-the-key"
"""The placeholder that a program has as its key; the proxy replaces it."""
_MODEL = re.compile(r"/models/([^/:?]+):")
"""A pattern for the model in a path of Google's API."""
_PATIENCE_S = 10.0
"""The seconds between comments that keep a program waiting for a reply."""
_OWN = frozenset(
    {
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "cookie",
        "host",
        "keep-alive",
        "proxy-authorization",
        "te",
        "transfer-encoding",
        "upgrade",
        "x-api-key",
        "x-goog-api-key",
    }
)
"""Headers that are not passed on: they are about the connection, or could carry a key."""
_OF_REPLY = ("content-type", "retry-after", "request-id", "x-request-id")


@contextmanager
def proxied(seat: Seat, endpoint: EndpointSettings, path: Path) -> Iterator[None]:
    """Forward requests from a Unix socket to the endpoint's host for the duration of the context.

    Raises `ScaffoldError` if the package that sends requests is not installed.
    """
    try:
        from gistpoint.sandbox.endpoints.transport import bounded_client
    except ImportError as error:
        raise ScaffoldError(
            "Agents that send requests need packages that are not installed.", hint=extra_hint("llm")
        ) from error
    abandoned = threading.Event()
    with bounded_client(endpoint.longest_s(streamed=True), abandoned) as client:
        server = _Server(str(path), _Handler)
        server.seat, server.endpoint, server.client = seat, endpoint, client
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="proxy", daemon=True)
        thread.start()
        try:
            yield
        finally:
            abandoned.set()
            server.shutdown()
            server.server_close()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    seat: Seat
    endpoint: EndpointSettings
    client: httpx2.Client

    def handle_error(self, request: object, client_address: object) -> None:
        """Do nothing, because the program is gone or was killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]  # the only server that uses it
    _begun = False
    """Whether the head of the answer has been sent."""

    def address_string(self) -> str:
        """Return a name, because a Unix socket has no address."""
        return "agent"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because the journal records what passes."""

    def do_HEAD(self) -> None:
        """Answer that the proxy is running, and pass nothing on."""
        self._answer(200, b"")

    def do_GET(self) -> None:
        """Pass on a request that asks for no reply, such as one for the list of models."""
        with self.server.seat.request_under_way() as relayed:
            self._pass_on(b"", {}, relayed)

    def do_POST(self) -> None:
        """Pass a request on if its model and the budgets allow it."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > MOST_BYTES:
            return self._refuse(413, "The request is too long.")
        body = self.rfile.read(length)
        try:
            request = json.loads(body or b"{}")
        except (ValueError, RecursionError):
            return self._refuse(400, "The request is not JSON.")
        request = request if isinstance(request, dict) else {}
        named = _MODEL.search(self.path)
        wanted = named[1] if named is not None else str(request.get("model", ""))
        chosen = self.server.endpoint.model
        if wanted not in ("", chosen):
            return self._refuse(400, f"This run uses the model {chosen} only.")
        limit, replies = limit_in(self.path, request), replies_in(self.path, request)
        with self.server.seat.relayed(len(body), limit, replies) as relayed:
            if relayed is None:
                return self._refuse(403, "The attempt has ended, or a limit of the run is reached.")
            return self._pass_on(body, request, relayed)

    def _pass_on(self, body: bytes, request: Mapping[str, Any], relayed: RelayedRequest) -> None:
        if not self.path.startswith("/"):  # appended to the host's name, it could name another host
            return self._refuse(400, "The path has to begin with a slash.")
        received = self._exchanged(body, request, relayed)
        # The journal has the reply before the program can make its calls.
        if received is not None:
            self._chunk(self._without_key(received))
            self.wfile.write(b"0\r\n\r\n")
        return None

    def _exchanged(self, body: bytes, request: Mapping[str, Any], relayed: RelayedRequest) -> bytes | None:
        """Return the body of the answer after recording it in the journal; None if there is none."""
        seat = self.server.seat
        began = time.monotonic()
        self._begun = False
        received = bytearray()
        try:
            status = self._receive(body, received)
        except Exception as error:  # the program is gone, or from the package, or at a limit on the body
            is_gone = isinstance(error, ConnectionError)
            named = self._at("nobody" if is_gone else type(error).__name__)
            lost = lost_in(self.path, request, bytes(received))
            seat.not_answered(ChatProblem.NO_CONNECTION, named, relayed, lost)
            self.close_connection = True
            if not is_gone and not self._begun:
                self._refuse(502, "The endpoint can't be reached, or stopped in the middle of its reply.")
            return None
        self._record(request, status, bytes(received), time.monotonic() - began, relayed)
        return bytes(received)

    def _record(
        self, request: Mapping[str, Any], status: int, body: bytes, seconds: float, relayed: RelayedRequest
    ) -> None:
        """Record the answer to a request in the journal."""
        seat, path = self.server.seat, self.path
        answer: ModelTurn | ChatFailure | None
        if status >= 400:
            answer = refusal_in(path, request, status, self._json(body))
        else:
            answer = reply_in(path, request, body, seconds)
        if isinstance(answer, ModelTurn):
            withheld = self.server.endpoint.withheld.removed_from(msgspec.to_builtins(answer))
            seat.observed(msgspec.convert(withheld, decodable(ModelTurn)), relayed)
        elif answer is not None:
            seat.not_answered(answer.problem, self._at(answer.message), relayed, answer.usage)
        elif asks_for_reply(path):
            lost = lost_in(path, request, body)
            seat.not_answered(ChatProblem.MALFORMED_REPLY, self._at("without a reply"), relayed, lost)
        else:
            seat.paid(other_usage_in(body), relayed)

    def _receive(self, body: bytes, received: bytearray) -> int:
        """Add the host's response to `received`, and return its status; its head is sent on.

        While an event stream is received, the program gets comments, so that it does not time out.
        """
        client, endpoint = self.server.client, self.server.endpoint
        asked = client.build_request(
            self.command, self._address(), content=body, headers=self._headers(), timeout=endpoint.timeout_s
        )
        with closing(client.send(asked, stream=True)) as response:
            self._send_head(response)
            is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
            last = time.monotonic()
            # As they arrive: larger blocks would hold back the comments, and the end of a broken reply.
            for block in response.iter_raw():
                received += block
                if is_stream and time.monotonic() - last > _PATIENCE_S:
                    self._chunk(b": the reply is being received\n\n")
                    last = time.monotonic()
        return int(response.status_code)

    def _send_head(self, response: httpx2.Response) -> None:
        self._begun = True
        self.send_response(response.status_code)
        for name in _OF_REPLY:
            if name in response.headers:
                self.send_header(name, response.headers[name])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()

    def _without_key(self, body: bytes) -> bytes:
        key = self.server.endpoint.key.reveal().encode()
        return body.replace(key, b"[key]") if len(key) > len("[key]") else body

    def _address(self) -> str:
        parts = urlsplit(self.server.endpoint.base_url)
        return f"{parts.scheme}://{parts.netloc}{self.path}"

    def _headers(self) -> dict[str, str]:
        kept = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
        key = self.server.endpoint.key.reveal()
        if not key:
            return kept
        for name in ("x-api-key", "x-goog-api-key"):
            if name in self.headers:
                return {**kept, name: key}
        return {**kept, "Authorization": f"Bearer {key}"}

    def _json(self, body: bytes) -> object:
        """Return the JSON value in a body, without the key; None if the body is not JSON."""
        try:
            return self.server.endpoint.withheld.removed_from(json.loads(body))
        except (ValueError, RecursionError):
            return None

    def _at(self, what: str) -> str:
        place = self.server.endpoint
        return place.withheld.removed_from_text(f"{place.place} answered {what}.")

    def _refuse(self, status: int, words: str) -> None:
        error = {"type": "error", "error": {"type": "gistpoint", "message": words}}
        self._answer(status, json.dumps(error).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
