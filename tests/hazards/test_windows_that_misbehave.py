"""Misbehaving programs and windows are gone within seconds, use little memory and don't affect others."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from examples import sampled
from fakes import FakeClock
from textual.events import Key, Paste
from textual.message import Message

from gistpoint.tui.serving import driver, server, session
from gistpoint.tui.serving.links import Assigned, LinkBook
from gistpoint.tui.serving.server import ParticipantServer, ServedPlace
from gistpoint.tui.serving.session import ParticipantSession

WITHIN_S = 8.0
"""The time limit of a wait in these tests: the waits in `scripts`, with a margin for a slow machine."""
_BEGIN = """
import os, signal, subprocess, sys, time
def frame(data):
    os.write(1, b"D" + len(data).to_bytes(4, "big") + data)
os.write(1, b"__GANGLION__\\n")
"""
_READ = """
while data := os.read(0, 65536):
    if b"quit" in data:
        break
"""
_DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
_CHILD = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
PROGRAMS = {
    "well": _BEGIN + "frame(b'x' * 99)\n" + _READ,
    "reads nothing": _BEGIN + "frame(b'x' * 99)\ntime.sleep(99)",
    "reads nothing, ignores SIGTERM": _BEGIN + _DEAF + "frame(b'x' * 99)\ntime.sleep(99)",
    "reads all, ends by nothing": _BEGIN + _DEAF + "frame(b'x' * 99)\nwhile True: os.read(0, 65536)",
    "draws without end": _BEGIN + _DEAF + "while True: frame(b'x' * 60_000)",
    "stopped": _BEGIN + "frame(b'x' * 99)\nos.kill(os.getpid(), signal.SIGSTOP)",
    "never begins": "import time; time.sleep(99)",
    "begins with a line without end": "import time\nprint('x' * 500_000, flush=True)\ntime.sleep(99)",
    "leaves a child with its pipes": _BEGIN + _CHILD + "frame(b'x' * 99)\n" + _READ,
    "closes its output": _BEGIN + _DEAF + "frame(b'x' * 99)\nos.close(1)\ntime.sleep(99)",
}


class Served:
    """A server whose programs are scripts."""

    def __init__(
        self, url: str, token: str, sessions: list[ParticipantSession], running: asyncio.Task[None]
    ) -> None:
        self.url, self.token, self.sessions, self.running = url, token, sessions, running

    @asynccontextmanager
    async def window(self) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a window of P01."""
        headers = {"Origin": self.url, "Cookie": f"gistpoint={self.token}"}
        async with aiohttp.ClientSession() as http:
            socket = await http.ws_connect(
                f"{self.url}/s/ws", headers=headers, heartbeat=None, max_msg_size=0
            )
            try:
                yield socket
            finally:
                await cut(socket)

    async def started(self, number: int) -> ParticipantSession:
        """Return the session with a number, counted from 1, once its program has started."""
        async with asyncio.timeout(WITHIN_S * 2):
            while len(self.sessions) < number or self.sessions[number - 1]._process is None:
                await asyncio.sleep(0.02)
        return self.sessions[number - 1]


async def cut(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Abort the connection of a client without waiting."""
    connection = socket._response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    await asyncio.sleep(0)


def deaf(socket: aiohttp.ClientWebSocketResponse) -> None:
    """Make a client stop reading."""
    connection = socket._response.connection
    assert connection is not None
    transport = connection.transport
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An empty list for the scripts of the next windows; the last one is for all further windows.

    The server's waits become short.
    """
    monkeypatch.setattr(session, "QUIT_S", 0.6)
    monkeypatch.setattr(session, "KILL_S", 0.4)
    monkeypatch.setattr(server, "FAREWELL_S", 0.5)
    return []


@asynccontextmanager
async def serving(
    tmp_path: Path, scripts: list[str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Served]:
    book = LinkBook(tmp_path / "links.json", FakeClock())
    token = book.assign({"P01": Assigned(("a",))})["P01"]
    sessions: list[ParticipantSession] = []

    def command_line(self: ParticipantSession) -> list[str]:
        sessions.append(self)
        return [sys.executable, "-c", scripts[min(len(sessions), len(scripts)) - 1]]

    monkeypatch.setattr(ParticipantSession, "command_line", command_line)
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    place = ServedPlace("127.0.0.1", 0)
    one = ParticipantServer(book, ["P01"], place, lambda who, assigned: [], sessions=3, log=print)
    running = asyncio.create_task(one.run(address.set_result))
    try:
        yield Served(await asyncio.wait_for(address, 60), token, sessions, running)
    finally:
        running.cancel()
        await asyncio.wait([running], timeout=30)
        for each in sessions:
            if each._process is not None and each._process.returncode is None:
                os.killpg(each._process.pid, signal.SIGKILL)


async def flood(socket: aiohttp.ClientWebSocketResponse, mebibytes: int = 8) -> None:
    """Send at most this many MiB of input, while the server accepts it and for at most a second."""

    async def send() -> None:
        for _ in range(mebibytes * 8):
            await socket.send_str(json.dumps(["stdin", "x" * 128 * 1024]))

    sending = asyncio.create_task(send())
    await asyncio.wait({sending}, timeout=1)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)


async def no_flood(socket: aiohttp.ClientWebSocketResponse) -> None:
    await asyncio.sleep(0.2)


async def no_reading(socket: aiohttp.ClientWebSocketResponse) -> None:
    deaf(socket)
    await asyncio.sleep(0.3)


async def neither(socket: aiohttp.ClientWebSocketResponse) -> None:
    deaf(socket)
    await flood(socket)


PAIRS = [
    *((program, flood) for program in PROGRAMS),
    *((program, no_flood) for program in ("well", "stopped", "leaves a child with its pipes")),
    *((program, client) for program in ("well", "draws without end") for client in (no_reading, neither)),
]


@pytest.mark.parametrize(("program", "client"), sampled(PAIRS, 6))
async def test_a_new_window_and_the_servers_end_wait_for_nobody(
    program: str,
    client: Callable[..., Any],
    tmp_path: Path,
    scripts: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripts += [PROGRAMS[program], PROGRAMS["well"], PROGRAMS[program]]
    async with serving(tmp_path, scripts, monkeypatch) as served, served.window() as first:
        begun = await served.started(1)
        await client(first)
        async with served.window() as second:
            async with asyncio.timeout(WITHIN_S):
                while (await second.receive()).type is not aiohttp.WSMsgType.BINARY:
                    pass
            process = begun._process
            assert process is not None
            assert process.returncode is not None, "a process at a time"
            async with served.window() as third:
                await served.started(3)
                await client(third)
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.wait_for(served.running, WITHIN_S)
        ended = [each._process.returncode for each in served.sessions if each._process is not None]
        assert len(ended) == 3
        assert None not in ended


async def test_a_program_that_waits_to_draw_is_let_quit(
    tmp_path: Path, scripts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = "import threading\nquit = []\ndef read():\n    os.read(0, 65536)\n    quit.append(1)\n"
    drawing = "threading.Thread(target=read).start()\nwhile not quit: frame(b'x' * 60_000)\nos._exit(7)"
    scripts.append(_BEGIN + reading + drawing)
    monkeypatch.setattr(session, "QUIT_S", WITHIN_S)
    async with serving(tmp_path, scripts, monkeypatch) as served:
        async with served.window() as window:
            begun = await served.started(1)
            await no_reading(window)
        async with asyncio.timeout(3 * WITHIN_S):
            while begun._process is None or begun._process.returncode is None:
                await asyncio.sleep(0.05)
        assert begun._process.returncode == 7


async def test_input_that_is_not_read_stays_with_the_client(
    tmp_path: Path, scripts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts.append(PROGRAMS["reads nothing"])
    async with serving(tmp_path, scripts, monkeypatch) as served, served.window() as window:
        begun = await served.started(1)
        await flood(window, mebibytes=64)
        kept = begun.stdin.transport.get_write_buffer_size()
        assert 0 < kept <= session.MOST_UNREAD_BYTES


async def test_a_message_is_bounded(
    tmp_path: Path, scripts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts.append(PROGRAMS["well"])
    async with serving(tmp_path, scripts, monkeypatch) as served, served.window() as window:
        await served.started(1)
        await window.send_str(json.dumps(["stdin", "x" * (server.MOST_INPUT_BYTES + 1)]))
        async with asyncio.timeout(WITHIN_S):
            while not window.closed:
                await window.receive()
        assert window.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


async def test_of_many_windows_at_once_the_last_alone_gets_a_program(
    tmp_path: Path, scripts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts.append(PROGRAMS["reads all, ends by nothing"])
    async with serving(tmp_path, scripts, monkeypatch) as served, served.window():
        await served.started(1)
        headers = {"Origin": served.url, "Cookie": f"gistpoint={served.token}"}
        async with aiohttp.ClientSession() as http:
            opened = [await http.ws_connect(f"{served.url}/s/ws", headers=headers) for _ in range(20)]
            await asyncio.sleep(WITHIN_S / 2)
            assert len(served.sessions) <= 3
            for one in opened:
                await cut(one)


# The driver, in the program


class Typed(driver.ServedDriver):
    """A driver without a terminal that records the events of its input."""

    def __init__(self, packets: Iterable[bytes]) -> None:
        self._input_reader = packets  # type: ignore[assignment]
        self.messages: list[Message] = []

    def process_message(self, message: Message) -> None:
        self.messages.append(message)


def packed(*texts: str) -> list[bytes]:
    encoded = [text.encode() for text in texts]
    return [b"D" + len(data).to_bytes(4, "big") + data for data in encoded]


START, END = "\x1b[200~", "\x1b[201~"
PASTED = 24_000
"""The maximum length of a paste in these tests, because the parser needs seconds for the real maximum."""
FILLING = ["x" * 8000] * (PASTED // 8000 + 2)


@pytest.mark.parametrize(
    "begun",
    [
        [START],
        [START[:3], START[3:]],
        [START, "\x1b\x1b"],
        ["a", START, START, END + START],
        [START + "x" * 100, "\x1b", "[201~"],
    ],
)
def test_a_paste_without_end_is_forgotten(begun: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MOST_PASTED", PASTED)
    again = ["\x1b\x1bx" * 100, START]
    typed = Typed(packed(*begun, *FILLING, *again, *FILLING, *FILLING, "q"))
    typed._read_input()
    assert isinstance(typed.messages[-1], Key)
    assert typed.messages[-1].key == "q"


class Answering:
    """A stand-in for the app and a widget, which answers at once unless it is closed."""

    def __init__(self, *, is_running: bool = True) -> None:
        self.is_running = is_running
        self.screen = self
        self.widgets: list[Answering] = []
        self.asked = 0

    @property
    def focused(self) -> Answering:
        return self.widgets.pop(0)

    def call_later(self, callback: Callable[..., object], *given: object) -> bool:
        self.asked += 1
        if self.is_running:
            callback(*given)
        return True


def test_a_widget_that_is_gone_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_CHECK_S", 0.01)
    app, gone, present = Answering(), Answering(is_running=False), Answering()
    app.widgets = [gone, present]
    typed = Typed([])
    typed._app = app  # type: ignore[assignment]
    typed.exit_event = threading.Event()
    typed._wait_for_app()
    assert (app.asked, gone.asked, present.asked) == (2, 1, 1)


def test_a_paste_within_the_bound_comes_whole() -> None:
    text = "é" * 100_000
    pasted = START + text + END
    typed = Typed(
        packed(*(pasted[at : at + 8000] for at in range(0, len(pasted), 8000)), *[START + "b" + END] * 3)
    )
    typed._read_input()
    assert [message.text for message in typed.messages if isinstance(message, Paste)] == [text, "b", "b", "b"]


_APP = """
import asyncio, os, sys, time
from textual.app import App
from textual.events import Key
from textual.widgets import Input
from gistpoint.tui.serving.driver import ServedDriver

def keys(owner):
    return sum(isinstance(message, Key) for message in owner._message_queue.values)

class Slow(Input):
    async def on_key(self, event):
        if not app.most:
            os.write(2, b"begun\\n")
        time.sleep(0.0005)
        app.most = max(app.most, keys(self) + keys(self.screen) + keys(app))

class Flooded(App):
    most = 0
    def compose(self):
        yield Slow()

app = Flooded(driver_class=ServedDriver)
app.run()
print(app.most, file=sys.stderr)
"""


@pytest.mark.parametrize("way", ["quit", "close", "SIGTERM"])
async def test_a_program_keeps_few_messages_of_a_flood_and_ends_in_its_middle(way: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _APP, stdin=-1, stdout=asyncio.subprocess.DEVNULL, stderr=-1
    )
    assert process.stdin is not None
    assert process.stderr is not None
    for packet in packed("x" * 3000):
        process.stdin.write(packet)
    await process.stdin.drain()
    assert await asyncio.wait_for(process.stderr.readline(), 60) == b"begun\n"
    if way == "quit":
        quit_ = b'{"type": "quit"}'
        process.stdin.write(b"M" + len(quit_).to_bytes(4, "big") + quit_)
    elif way == "close":
        process.stdin.close()
    else:
        process.terminate()
    told = await asyncio.wait_for(process.stderr.read(), 60)
    await asyncio.wait_for(process.wait(), 60)
    assert 0 < int(told.split()[-1]) <= driver.MOST_WAITING
