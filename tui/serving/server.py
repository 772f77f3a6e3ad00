"""The server for participants' links, which adds access control and gistpoint's page to textual-serve."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import textual_serve
from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError
from textual_serve.server import Server

from gistpoint.core.errors import UserError
from gistpoint.core.text import whole_number
from gistpoint.tui.connections import (
    BACKLOG,
    ConnectionBounds,
    Connections,
    Peer,
    peer_of,
    server_tls,
    within_files,
)
from gistpoint.tui.serving.links import Assigned, LinkBook
from gistpoint.tui.serving.session import ParticipantSession, envelope

QUIET_S = 60.0
"""Seconds until a warning of the same kind is logged again, with the number of those suppressed meanwhile."""


@contextmanager
def warnings_to(log: Callable[[str], None]) -> Iterator[None]:
    """Pass the warnings and errors of aiohttp's loggers to `log`, and nowhere else, within the context."""
    logger, handler = logging.getLogger("aiohttp"), _Complaints(log)
    passed_on, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = passed_on


class _Complaints(logging.Handler):
    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._logged: dict[str, tuple[float, int]] = {}
        """For each kind: the time of its last log entry, and the number suppressed since then."""

    def emit(self, record: logging.LogRecord) -> None:
        words, now = _kind(record.exc_info[1] if record.exc_info else None), time.monotonic()
        logged_at, suppressed = self._logged.get(words, (-QUIET_S, 0))
        if now - logged_at < QUIET_S:
            self._logged[words] = logged_at, suppressed + 1
            return
        self._logged[words] = now, 0
        self._log(f"{words} ({suppressed} more since this was last logged.)" if suppressed else words)


def _kind(error: BaseException | None) -> str:
    """Describe an error. Its text is left out, since it may quote the request, except in our own errors."""
    if error is None or isinstance(error, HttpProcessingError):
        return "A malformed request was refused."
    if isinstance(error, UserError):
        return f"A request failed: {error}"
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in place)
    return f"A request failed: {type(error).__name__}{where}."


HEARTBEAT_S = 15.0
BAD_TOKENS, BAD_TOKENS_S = 5, 60.0
"""The number of wrong links or cookies answered per address in a period, and the period in seconds.

Further requests with a wrong link or cookie must wait.
"""
WATCH_S = 2.0
"""Seconds between two checks of whether a link was revoked."""
MOST_INPUT_BYTES = 256 * 1024
"""The size limit of a message from a browser, such as pasted text."""
FAREWELL_S = 2.0
"""Seconds after which a window is closed even if it has not received its last message."""
_MOST_ADDRESSES = 10_000
_LONGEST_PATH = 200
"""The longest path that is served, in bytes. Systems refuse file names of more than 255 bytes."""
COOKIE = "gistpoint"
ROOM, SOCKET = "/s", "/s/ws"
OTHER_WINDOW = "This was opened in another window. Continue there."
FULL = "The server is full at the moment. Try again in a few minutes."
REVOKED = "This link is no longer valid. Ask the person who gave it to you."
STOPPED = "The server was stopped. Your work is saved: use the same link to come back."
_NO_LINK = "This link is not valid. Ask the person who gave it to you."
_PAGE = Path(__file__).parent / "page"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


@dataclass(frozen=True, slots=True)
class ServedPlace:
    """The address on which the server listens, and the address that browsers use."""

    host: str
    port: int
    public_url: str = ""
    """The address without a path; empty if browsers use host and port."""
    certificate: str = ""
    key: str = ""
    behind_proxy: bool = False


@dataclass(slots=True)
class Window:
    """A participant's open window."""

    socket: web.WebSocketResponse
    peer: Peer | None
    session: ParticipantSession
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the input of the window is no longer read."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the program of the window has ended."""


class ParticipantServer(Server):
    """A server that runs a separate program for each participant, and refuses everything else."""

    def __init__(
        self,
        links: LinkBook,
        people: Collection[str],
        place: ServedPlace,
        arguments: Callable[[str, Assigned], Sequence[str]],
        *,
        sessions: int,
        log: Callable[[str], None],
    ) -> None:
        """`arguments` returns a participant's arguments for `gistpoint`; `sessions` limits the programs.

        `log` is called with each line of the log. Only the links of `people` are accepted.
        """
        super().__init__("", host=place.host, port=place.port, title="gistpoint")
        self._links, self._people, self._place, self._arguments = links, frozenset(people), place, arguments
        self._most, self._log = sessions, log
        self._windows: dict[str, Window] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._newest: dict[str, web.WebSocketResponse] = {}
        """The latest window of each participant. If several windows wait, only this one gets the turn."""
        self._connections = Connections(_bounds(place))
        self._bad: dict[str, deque[float]] = {}
        self._stopping = False
        self._hosts: frozenset[str] = frozenset()
        """The names that browsers or a proxy use for the server: `NAME` or `NAME:PORT`."""
        self._origins: frozenset[str] = frozenset()
        self._secure = False

    # Routes

    async def _make_app(self) -> web.Application:
        app = web.Application(client_max_size=1024, middlewares=[self._admit])
        app.add_routes(
            [
                web.get("/p/{token}", self._enter),
                web.get(ROOM, self.handle_index),
                web.get(SOCKET, self.handle_websocket),
                web.get("/page/{name}", self._own_file),
                web.static("/static", Path(textual_serve.__file__).parent / "static"),
            ]
        )
        app.on_shutdown.append(self.on_shutdown)
        return app

    @web.middleware
    async def _admit(self, request: web.Request, handler: Callable[..., object]) -> web.StreamResponse:
        """Refuse requests for another host name or an overlong path, and set the headers of every answer."""
        self._connections.head_received(peer_of(request.transport))
        try:
            if request.host not in self._hosts:
                raise web.HTTPMisdirectedRequest(text="This server does not have that name.")
            if len(request.rel_url.raw_path) > _LONGEST_PATH:
                raise web.HTTPNotFound
            answer = await handler(request)  # type: ignore[misc]
        except web.HTTPException as error:
            answer = error
        assert isinstance(answer, web.StreamResponse)
        if not answer.prepared:
            answer.headers.update(self._headers())
        if isinstance(answer, web.HTTPException):
            raise answer
        return answer

    def _headers(self) -> dict[str, str]:
        # Some browsers don't apply `self` to sockets, others refuse an IPv6 address here: one of the two
        # always works.
        sockets = " ".join(sorted(one.replace("http", "ws", 1) for one in self._origins if "[" not in one))
        return {
            "Content-Security-Policy": (
                "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
                f"connect-src 'self' {sockets}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
            "Referrer-Policy": "no-referrer",
            "X-Frame-Options": "DENY",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        """Replace the link with a cookie. Raises `web.HTTPException` if the link is not valid.

        The page then continues without a redirect: after one, the browser would withhold the cookie if the
        link was opened from another site, such as a web mailer (decision 98).
        """
        token = request.match_info["token"]
        if not self._participant_of(token):
            raise self._not_known(request, web.HTTPNotFound)
        answer = web.Response(body=_own_page("entry.html"), content_type="text/html", charset="utf-8")
        answer.set_cookie(COOKIE, token, path=ROOM, httponly=True, samesite="Strict", secure=self._secure)
        return answer

    def _not_known(self, request: web.Request, refusal: type[web.HTTPError]) -> web.HTTPException:
        address = self._address(request)
        now = time.monotonic()
        if len(self._bad) >= _MOST_ADDRESSES:
            self._bad = {one: times for one, times in self._bad.items() if now - times[-1] < BAD_TOKENS_S}
        times = self._bad.setdefault(address, deque(maxlen=BAD_TOKENS))
        if len(times) == BAD_TOKENS and now - times[0] < BAD_TOKENS_S:
            wait = str(int(BAD_TOKENS_S - (now - times[0])) + 1)
            return web.HTTPTooManyRequests(
                text="Too many wrong links: wait a minute.", headers={"Retry-After": wait}
            )
        times.append(now)
        return refusal(text=_NO_LINK)

    def _address(self, request: web.Request) -> str:
        """Return the client's address: behind a proxy, the one that the proxy names last."""
        passed = request.headers.get("X-Forwarded-For", "") if self._place.behind_proxy else ""
        return passed.rpartition(",")[2].strip() or request.remote or ""

    def _participant_of(self, token: str) -> str:
        who = self._links.holder(token) if token else ""
        return who if who in self._people else ""

    def _by_cookie(self, request: web.Request) -> tuple[str, str]:
        """Return the token and its participant. Raises `web.HTTPException` if there is no participant.

        A missing cookie does not count as a wrong one.
        """
        token = request.cookies.get(COOKIE, "")
        who = self._participant_of(token)
        if not who:
            raise self._not_known(request, web.HTTPForbidden) if token else web.HTTPForbidden(text=_NO_LINK)
        return token, who

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """Return the page with the terminal. Raises `web.HTTPException` if the cookie is not valid."""
        self._by_cookie(request)
        return web.Response(body=_own_page("page.html"), content_type="text/html", charset="utf-8")

    async def _own_file(self, request: web.Request) -> web.StreamResponse:
        path = _PAGE / request.match_info["name"]
        if path.parent != _PAGE or path.suffix not in (".js", ".css") or not path.is_file():
            raise web.HTTPNotFound
        return web.Response(body=path.read_bytes(), content_type=_TYPES[path.suffix], charset="utf-8")

    # Windows

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Connect a window to its participant's program until either ends, and return the socket.

        An older window of the participant is closed. Raises `web.HTTPException` for a wrong cookie, and for a
        request from another site.
        """
        token, who = self._by_cookie(request)
        if request.headers.get("Origin") not in self._origins:
            raise web.HTTPForbidden(text=_NO_LINK)
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MOST_INPUT_BYTES)
        peer = peer_of(request.transport)
        await socket.prepare(request)
        got = await self._take_turn(who, token, socket, peer)
        if isinstance(got, str):
            await self._farewell(socket, peer, got)
            return socket
        watch = asyncio.create_task(self._watch(who, got, token))
        try:
            with self._connections.exempting(peer):
                await got.session.start(_number(request, "width", 80), _number(request, "height", 24))
                await _first_of(self._listen(got), got.left.wait(), got.session.ended.wait())
                await self._farewell(socket, peer, got.session.last_words)
        finally:
            watch.cancel()
            await asyncio.shield(self._end(who, got))
        return socket

    async def _take_turn(
        self, who: str, token: str, socket: web.WebSocketResponse, peer: Peer | None
    ) -> Window | str:
        """Register a participant's window, after closing the older one.

        Return the window, or why it was refused.
        """
        self._newest[who] = socket
        async with self._turns.setdefault(who, asyncio.Lock()):
            if self._newest[who] is not socket:
                return OTHER_WINDOW
            older = self._windows.get(who)
            if older is not None:
                await self._close(older, OTHER_WINDOW)
            refusal = self._refusal(who, token)
            if refusal:
                return refusal
            window = self._windows[who] = Window(socket, peer, self._session(who, socket))
            return window

    def _refusal(self, who: str, token: str) -> str:
        """Return the reason why no program can start for a participant now; empty if one can."""
        if self._stopping:
            return STOPPED
        if self._participant_of(token) != who:
            return REVOKED
        return FULL if len(self._windows) >= self._most else ""

    def _session(self, who: str, socket: web.WebSocketResponse) -> ParticipantSession:
        async def draw(data: bytes) -> None:
            if not socket.closed:
                await socket.send_bytes(data)

        arguments = self._arguments(who, self._links.all()[who].assigned)
        return ParticipantSession(arguments, write_bytes=draw, log=lambda words: self._log(f"{who}: {words}"))

    async def _listen(self, window: Window) -> None:
        """Pass on the messages of a window until it is closed."""
        session = window.session
        async for message in window.socket:
            if message.type is not WSMsgType.TEXT:
                continue
            try:
                kind, content = envelope(message.data)
            except ValueError:
                continue
            if kind == "stdin" and isinstance(content, str):
                await session.send_bytes(content.encode("utf-8", "replace"))
            elif kind == "resize" and isinstance(content, dict):
                await session.set_terminal_size(content.get("width", 80), content.get("height", 24))
            elif kind == "ping":
                await window.socket.send_json(["alive"])
            elif kind == "blur":
                await session.blur()
            elif kind == "focus":
                await session.focus()

    async def _watch(self, who: str, window: Window, token: str) -> None:
        """Close the window when its link is revoked."""
        while True:
            await asyncio.sleep(WATCH_S)
            try:
                revoked = self._participant_of(token) != who
            except UserError as error:
                self._log(str(error))
                continue
            if revoked:
                await self._farewell(window.socket, window.peer, REVOKED)
                window.left.set()
                return

    async def _end(self, who: str, window: Window) -> None:
        try:
            await window.session.stop()
        finally:
            if self._windows.get(who) is window:
                del self._windows[who]
            window.gone.set()

    async def _close(self, window: Window, words: str) -> None:
        """Close a window and wait for its program to end, which `ParticipantSession.stop` ensures."""
        await self._farewell(window.socket, window.peer, words)
        window.left.set()
        await window.gone.wait()

    async def _farewell(self, socket: web.WebSocketResponse, peer: Peer | None, words: str) -> None:
        """Close a socket, after a message if there is one. If the client accepts neither, disconnect it."""
        try:
            async with asyncio.timeout(FAREWELL_S):
                if words and not socket.closed:
                    await socket.send_json(["notice", words])
                await socket.close(code=WSCloseCode.GOING_AWAY)
        except (TimeoutError, ConnectionError):
            self._connections.end(peer)

    async def on_shutdown(self, app: web.Application) -> None:
        """Ask every program to quit, so that it saves its work."""
        self._stopping = True
        await asyncio.gather(*(self._close(window, STOPPED) for window in list(self._windows.values())))

    # The server

    async def run(self, listening: Callable[[str], None]) -> None:
        """Serve until SIGINT or SIGTERM. `listening` is called with the address once the server listens.

        Raises `UserError` if the certificate or the address can't be used.
        """
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        # No access log, which would contain the tokens.
        runner = web.AppRunner(
            await self._make_app(), access_log=None, handle_signals=False, shutdown_timeout=FAREWELL_S
        )
        with warnings_to(self._log):
            await runner.setup()
            try:
                async with self._listening(runner) as address:
                    listening(address)
                    await stop.wait()
            finally:
                await runner.cleanup()

    @asynccontextmanager
    async def _listening(self, runner: web.AppRunner) -> AsyncIterator[str]:
        """Listen within the context, and yield the address for browsers.

        Raises `UserError` if the certificate or the address can't be used.
        """
        place = self._place
        tls = server_tls(place.certificate, place.key)
        assert runner.server is not None
        handler = runner.server
        try:
            listener = await asyncio.get_running_loop().create_server(
                lambda: self._connections.guarded(handler(), tls), place.host, place.port, backlog=BACKLOG
            )
        except OSError as error:
            raise UserError(
                f"{place.host}:{place.port} can't be used to listen: {error.strerror or error}.",
                hint="--host takes an address of this machine, --port a free port; port 0 takes any.",
            ) from error
        port = listener.sockets[0].getsockname()[1]
        address, self._origins, self._hosts = served_names(place, "https" if tls else "http", port)
        self._secure = address.startswith("https:")
        try:
            yield address
        finally:
            listener.close()


def _bounds(place: ServedPlace) -> ConnectionBounds:
    """Return the limits of connections.

    Behind a proxy, all clients have the same address, so it does not distinguish them.
    """
    usual = within_files(ConnectionBounds())
    return replace(usual, most_of_address=0) if place.behind_proxy else usual


async def _first_of(*awaited: Coroutine[Any, Any, object]) -> None:
    """Wait until the first of several coroutines has finished, and cancel the others.

    Connections that break are ignored; any other exception is raised.
    """
    tasks = [asyncio.create_task(one) for one in awaited]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, ConnectionError):
                raise result


def origin_of(url: str) -> str:
    """Return the origin of a URL as browsers write it: in lower case, without the scheme's default port."""
    parts = urlsplit(url.lower())
    own = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    return f"{parts.scheme}://{parts.netloc.removesuffix(own) if own else parts.netloc}"


def served_names(place: ServedPlace, scheme: str, port: int) -> tuple[str, frozenset[str], frozenset[str]]:
    """Return the address for browsers, the origins of its pages, and the names that requests may address.

    On loopback without a public URL, all names of this machine's loopback are accepted.
    """
    own, *nearby = (
        origin_of(f"{scheme}://{name}:{port}")
        for name in (_in_url(place.host), "localhost", "127.0.0.1", "[::1]")
    )
    address = origin_of(place.public_url) if place.public_url else own
    is_near = not place.public_url and is_loopback(place.host)
    origins = {address, *(nearby if is_near else ())}
    passed = {own, *nearby} if place.behind_proxy else set()
    return address, frozenset(origins), frozenset(urlsplit(origin).netloc for origin in origins | passed)


def is_loopback(host: str) -> bool:
    """Return whether a host is `localhost`, or an address that can be reached only from this machine."""
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    number = whole_number(text)
    return default if number is None or len(text) > 5 else number


def _own_page(name: str) -> bytes:
    return (_PAGE / name).read_bytes()
