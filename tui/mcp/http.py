"""Serves the protocol over HTTP to a client with the token, in one session unless a lease allows several.

The SDK serves the transport, checks the headers Host and Origin, and limits the size of the body. This module
adds the token, the refusal of a second client while the first is connected (except under a lease), and the
closing of connections without the token.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any, cast

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from gistpoint.core.errors import UserError
from gistpoint.sessions.served import ServedAttempt
from gistpoint.tui.connections import BACKLOG, ConnectionBounds, Connections, server_tls, within_files
from gistpoint.tui.mcp.server import AttemptServer
from gistpoint.tui.mcp.stdio import MOST_BYTES, leave_at_signals

IDLE_S = 600.0
"""Seconds without a request after which another client may connect."""
PATH, VERDICT_PATH = "/mcp", "/verdict"
_MOST_LEASED = 64
"""The maximum number of sessions under a lease; a client that is killed leaves one open until it is idle."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address on which the server listens, and its names."""

    host: str
    port: int
    names: tuple[str, ...] = ()
    """Further names in the addresses that clients use: `NAME` or `NAME:PORT`."""
    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Answers one request for the verdict, from a client with a token that the solver does not have."""

    server: AttemptServer
    token: str

    async def answer(self, method: str, headers: Mapping[str, bytes]) -> Response:
        """Return the verdict as JSON; 401 without the token, 405 unless it is a POST, 410 the second time."""
        wanted = b"Bearer " + self.token.encode()
        if not hmac.compare_digest(headers.get("authorization", b""), wanted):
            return PlainTextResponse("The token is missing or wrong.", 401, {"WWW-Authenticate": "Bearer"})
        if method != "POST":
            return PlainTextResponse("A verdict ends the attempt: it takes a POST.", 405, {"Allow": "POST"})
        found = await self.server.verdict()
        if found is None:
            return PlainTextResponse("The verdict was given before: each attempt needs a new server.", 410)
        return JSONResponse(asdict(found))


class Guard:
    """An application that passes on the requests with the token, from one client at a time."""

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        connections: Connections,
        verdicts: Verdicts | None = None,
        *,
        shared: bool = False,
    ) -> None:
        """`shared` means that several clients with the token are served at once, under a lease."""
        self._app, self._token, self._connections = app, token.encode(), connections
        self._verdicts = verdicts
        self._shared = shared
        self._holder = ""
        self._under_way, self._last = 0, 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: 401 without the right token, 409 while another client has the session."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        peer = scope.get("client")
        self._connections.head_received(peer)
        headers = {name.decode("latin-1").lower(): value for name, value in scope.get("headers", ())}
        is_for_verdict = scope["type"] == "http" and scope["path"] == VERDICT_PATH
        if is_for_verdict and self._verdicts is not None:
            with self._connections.exempting(peer):
                answer = await self._verdicts.answer(scope["method"], headers)
                return await answer(scope, receive, send)
        if scope["type"] != "http" or not hmac.compare_digest(
            headers.get("authorization", b""), b"Bearer " + self._token
        ):
            refused = PlainTextResponse("The token is missing or wrong.", 401, {"WWW-Authenticate": "Bearer"})
            return await refused(scope, receive, send)
        kind = _kind(headers)
        if self._is_taken(kind):
            return await _BUSY(scope, receive, send)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                if status == 503 and scope["method"] == "POST":
                    # The SDK refuses a second session with the status 503.
                    message = {**message, "status": 409}
                if status < 300 and (kind == _OPENED or headers.get("mcp-method") == b"tools/call"):
                    self._holder = "" if scope["method"] == "DELETE" else kind
            await send(message)

        self._under_way += 1
        try:
            with self._connections.exempting(peer):
                await self._app(scope, receive, watched)
        finally:
            self._under_way -= 1
            self._last = time.monotonic()

    def _is_taken(self, kind: str) -> bool:
        """Return whether a client of the other kind has the session.

        The SDK refuses a second opened session.
        """
        if self._shared or self._holder in ("", kind):
            return False
        return self._under_way > 0 or time.monotonic() - self._last < IDLE_S


_BUSY = PlainTextResponse(
    "Another client is connected; the session is free once that client closes it or has been idle"
    " for 10 minutes.",
    409,
)


_OPENED, _ALONE = "opened", "alone"


def _kind(headers: Mapping[str, bytes]) -> str:
    """Return whether a request belongs to an opened session or is independent (since protocol 2026-07-28)."""
    version = headers.get("mcp-protocol-version", b"").decode("latin-1")
    return _OPENED if not version or version in HANDSHAKE_PROTOCOL_VERSIONS else _ALONE


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `leave_at_signals`."""
        yield


def listen(place: ServerAddress) -> socket.socket:
    """Return a listening socket. Raises `UserError` if the address is not available."""
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        return socket.create_server((place.host, place.port), family=family)
    except OSError as error:
        raise UserError(
            f"{place.host}:{place.port} can't be used to listen: {error.strerror or error}.",
            hint="--http takes an address of this machine and a free port; port 0 takes any.",
        ) from error


def build_app(
    server: AttemptServer,
    names: tuple[str, ...],
    token: str,
    connections: Connections | None = None,
    verdict_token: str = "",
) -> ASGIApp:
    """Return the application, which answers under `names`: `HOST`, or `HOST:PORT` with `*` for any port.

    With `verdict_token`, it also gives the verdict on the attempt to whoever presents that token.

    Connections that present the token are kept open while they are answered.
    """
    leased = server.served.lease is not None
    allowed = [
        name if name.rpartition(":")[2].isdigit() or name.endswith(":*") else f"{name}:*" for name in names
    ]
    hosts = [*allowed, *(name.removesuffix(":*") for name in allowed)]
    security = TransportSecuritySettings(
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")],
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MOST_BYTES,
        session_idle_timeout=IDLE_S,
        # Sessions of single calls overlap when a model makes several calls at once (decision 152).
        max_sessions=_MOST_LEASED if leased else 1,
        transport_security=security,
    )
    verdicts = Verdicts(server, verdict_token) if verdict_token else None
    # Not `or`: `connections` is false while it has no connection, since its length is 0.
    known = Connections() if connections is None else connections
    return Guard(app, token, known, verdicts, shared=leased)


def serve_http(place: ServerAddress, token: str, served: ServedAttempt, verdict_token: str = "") -> None:
    """Serve until the process is asked to stop; with `verdict_token`, also the verdict on the attempt.

    Raises `UserError` if the certificate, its key or the address can't be used. The attempt is closed in any
    case.
    """
    try:
        _serve(place, token, served, verdict_token)
    finally:
        served.close()


def _serve(place: ServerAddress, token: str, served: ServedAttempt, verdict_token: str) -> None:
    tls = server_tls(place.certificate, place.key)
    listening = listen(place)
    host = f"[{place.host}]" if ":" in place.host else place.host
    scheme, port = "https" if place.certificate else "http", listening.getsockname()[1]
    own = ("127.0.0.1", "localhost", "[::1]") if is_loopback(place.host) else (host,)
    connections = Connections(_bounds())
    app = build_app(AttemptServer(served), (*own, *place.names), token, connections, verdict_token)

    def guarded(**arguments: Any) -> asyncio.Protocol:
        return connections.guarded(H11Protocol(**arguments), tls)

    config = uvicorn.Config(
        app,
        http=cast(Any, guarded),
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        backlog=BACKLOG,
        # A connection is identified by the address of its socket, never by one in a header.
        proxy_headers=False,
    )

    async def serve() -> None:
        leave_at_signals(partial(served.close, at_once=True))
        print(f"serving {scheme}://{host}:{port}{PATH}", file=sys.stderr, flush=True)
        await _Server(config).serve(sockets=[listening])

    anyio.run(serve)


def _bounds() -> ConnectionBounds:
    """Return limits for a single client. Addresses are not distinguished, as a proxy may be in between."""
    return within_files(ConnectionBounds(most=64, most_of_address=0))


def is_loopback(host: str) -> bool:
    """Return whether a host is `localhost`, or an address that can be reached only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
