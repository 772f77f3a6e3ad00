"""1,100 clients send half a request to a server that may open 1,024 files; a link or token still works."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from examples import sampled

FILES, CLIENTS = 1024, 1100
TOKEN = "t" * 40

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def files_for_the_clients() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < CLIENTS + 200:
        if hard < CLIENTS + 200:
            pytest.skip("this process may not open so many files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (CLIENTS + 200, hard))


@asynccontextmanager
async def started(home: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    program = f"import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))"
    program += "; runpy.run_module('gistpoint', run_name='__main__', alter_sys=True)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=-1, stderr=-1,
        env={**os.environ, "GISTPOINT_HOME": str(home), "GISTPOINT_MCP_TOKEN": TOKEN},
    )  # fmt: skip
    try:
        yield process
        process.terminate()
        await asyncio.wait_for(process.wait(), 15)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def line_with(stream: asyncio.StreamReader | None, words: str) -> str:
    assert stream is not None
    async with asyncio.timeout(60):
        while line := (await stream.readline()).decode():
            if words in line:
                return line
    raise AssertionError(f"never said {words}")


@asynccontextmanager
async def half_requests(port: int) -> AsyncIterator[None]:
    writers = []
    for _ in range(CLIENTS):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /s HTTP/1.1\r\nHost: ")
        writers.append(writer)
    try:
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


@pytest.mark.parametrize("proxy", sampled([False, True], 1))
async def test_a_link_works_despite_them(proxy: bool, tmp_path: Path) -> None:
    before = ("--behind-proxy", "--public-url", "https://lab.example") if proxy else ()
    async with started(tmp_path, "serve", "--port", "0", "--for=P01=dear-tickets", *before) as process:
        told = await line_with(process.stdout, "/p/")
        link = told.split()[-1]
        port = _listening(process.pid)
        async with half_requests(port):
            for wait in (0, 1, 12):
                await asyncio.sleep(wait)
                async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
                    headers = {"Host": "lab.example"} if proxy else {}
                    path = link[link.index("/p/") :]
                    answer = await http.get(
                        f"http://127.0.0.1:{port}{path}", headers=headers, timeout=aiohttp.ClientTimeout(10)
                    )
                    assert answer.status == 200
                if not proxy:
                    await a_window_is_drawn(link, port)


async def a_window_is_drawn(link: str, port: int) -> None:
    """Wait until a program behind a link starts and draws, at most 30 s."""
    own = f"http://127.0.0.1:{port}"
    headers = {"Origin": own, "Cookie": f"gistpoint={link.rpartition('/')[2]}"}
    async with aiohttp.ClientSession() as http, http.ws_connect(f"{own}/s/ws", headers=headers) as window:
        async with asyncio.timeout(30):
            while (message := await window.receive()).type is not aiohttp.WSMsgType.BINARY:
                assert message.type is aiohttp.WSMsgType.TEXT, message


async def test_a_client_with_the_token_is_served_despite_them(tmp_path: Path) -> None:
    async with started(tmp_path, "mcp", "dear-tickets", "--http", "127.0.0.1:0") as process:
        await line_with(process.stderr, "serving http")
        port = _listening(process.pid)
        async with half_requests(port), aiohttp.ClientSession() as http:
            for wait in (0, 12):
                await asyncio.sleep(wait)
                asked = {
                    "jsonrpc": "2.0", "id": 1, "method": "initialize",
                    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                               "clientInfo": {"name": "c", "version": "1"}},
                }  # fmt: skip
                headers = {
                    "Authorization": f"Bearer {TOKEN}",
                    "Accept": "application/json, text/event-stream",
                }
                answer = await http.post(
                    f"http://127.0.0.1:{port}/mcp",
                    json=asked,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(10),
                )
                assert answer.status in (200, 409), await answer.text()


def _listening(pid: int) -> int:
    import psutil

    (port,) = {
        one.laddr.port for one in psutil.Process(pid).net_connections() if one.status == psutil.CONN_LISTEN
    }
    return int(port)
