"""Clients that send nothing, too little or no more don't keep their connections and block nobody."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gistpoint.tui.connections import ConnectionBounds, Connections, peer_of, within_files

MOST, OF_ADDRESS = 12, 6
Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LARGE = b"x" * 30_000_000


async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    pass


async def half_a_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Half:")


async def a_byte_now_and_then(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET / HTTP/1.1\r\nX-Long: ")
    while not writer.is_closing():
        writer.write(b"x")
        await asyncio.sleep(0.05)


async def no_reading_of_the_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")


async def half_a_second_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"well")
    writer.write(b"GET / HTTP/1.1\r\nHost:")


IDLE: list[Client] = [nothing, half_a_head, a_byte_now_and_then, no_reading_of_the_answer, half_a_second_head]


@asynccontextmanager
async def server(
    bounds: ConnectionBounds, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[int, Connections]]:
    connections = Connections(bounds)

    async def answer(request: web.Request) -> web.Response:
        connections.head_received(peer_of(request.transport))
        return web.Response(body=LARGE if request.path == "/large" else b"well")

    async def kept(request: web.Request) -> web.Response:
        with connections.exempting(peer_of(request.transport)):
            await asyncio.sleep(float(request.query["seconds"]))
        return web.Response(body=b"kept")

    app = web.Application()
    app.add_routes([web.get("/", answer), web.get("/large", answer), web.get("/kept", kept)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    handler = runner.server
    assert handler is not None
    listener = await asyncio.get_running_loop().create_server(
        lambda: connections.guarded(handler(), tls), "127.0.0.1", 0
    )
    try:
        yield listener.sockets[0].getsockname()[1], connections
    finally:
        listener.close()
        await runner.cleanup()


@asynccontextmanager
async def clients(port: int, number: int, client: Client) -> AsyncIterator[list[asyncio.StreamReader]]:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await client(reader, writer)

    opened = [await asyncio.open_connection("127.0.0.1", port, limit=1024) for _ in range(number)]
    tasks = [asyncio.create_task(hold(*one)) for one in opened]
    try:
        yield [reader for reader, _ in opened]
    finally:
        for task, (_, writer) in zip(tasks, opened, strict=True):
            task.cancel()
            writer.transport.abort()
        await asyncio.wait(tasks)


async def until(met: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not met():
            await asyncio.sleep(0.02)


async def is_answered(port: int, tls: ssl.SSLContext | None = None) -> bool:
    scheme = "https" if tls else "http"
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20)) as http,
        http.get(f"{scheme}://127.0.0.1:{port}/", ssl=tls or True) as answer,
    ):
        return await answer.text() == "well"


@pytest.mark.parametrize("client", IDLE)
@pytest.mark.parametrize(("most", "of_address"), [(MOST, 0), (100, OF_ADDRESS)])
async def test_too_many_push_out_those_that_wait_longest(client: Client, most: int, of_address: int) -> None:
    bounds, bound = ConnectionBounds(most, of_address, first_s=3600, answer_s=3600), of_address or most
    async with server(bounds) as (port, connections), clients(port, 40, client):
        await until(lambda: len(connections) >= bound)
        for _ in range(3):
            assert await is_answered(port)
            assert len(connections) <= bound


@pytest.mark.parametrize("client", IDLE)
async def test_whoever_does_not_ask_or_does_not_read_is_ended_in_time(client: Client) -> None:
    async with (
        server(ConnectionBounds(first_s=0.3, answer_s=0.6)) as (port, connections),
        clients(port, 5, client),
    ):
        await until(lambda: len(connections) == 5)
        await until(lambda: len(connections) == 0, 10)


async def test_what_is_kept_is_neither_pushed_out_nor_ended() -> None:
    bounds = ConnectionBounds(MOST, 0, first_s=0.2, answer_s=0.4)
    async with server(bounds) as (port, connections), aiohttp.ClientSession() as http:
        asked = asyncio.create_task(http.get(f"http://127.0.0.1:{port}/kept?seconds=1.5"))
        await until(lambda: len(connections) == 1)
        async with clients(port, 40, half_a_head):
            answer = await asked
            assert await answer.text() == "kept"
        await until(lambda: len(connections) == 0)


async def test_if_all_are_kept_a_newcomer_is_refused() -> None:
    async with server(ConnectionBounds(3, 0)) as (port, connections), aiohttp.ClientSession() as http:
        kept = [asyncio.create_task(http.get(f"http://127.0.0.1:{port}/kept?seconds=2")) for _ in range(3)]
        await until(lambda: len(connections) == 3)
        await asyncio.sleep(0.3)
        with pytest.raises(aiohttp.ClientError):
            await is_answered(port)
        assert [await (await one).text() for one in kept] == ["kept"] * 3


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=x",
        "-keyout",
        "k",
        "-out",
        "c",
    ]
    try:
        subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl makes the certificate")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "c", tmp_path / "k")
    return context


async def test_a_handshake_that_never_ends_counts_too(tls: ssl.SSLContext) -> None:
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    for client in (nothing, half_a_head):
        bounds = ConnectionBounds(100, OF_ADDRESS, first_s=3600, answer_s=3600)
        async with server(bounds, tls) as (port, connections), clients(port, 30, client):
            assert all([await is_answered(port, anybody) for _ in range(3)])
            assert len(connections) <= OF_ADDRESS
        async with (
            server(ConnectionBounds(first_s=0.3), tls) as (port, connections),
            clients(port, 5, nothing),
        ):
            await until(lambda: len(connections) == 5)
            await until(lambda: len(connections) == 0, 10)


def test_connections_leave_files_for_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda which: (400, 4096))
    assert within_files(ConnectionBounds()).most == 100
    assert within_files(ConnectionBounds(most=64)).most == 64
