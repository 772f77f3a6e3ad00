"""Participants' links: how they are stored, whom they admit, and refusals before the server listens."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from fakes import FakeClock

from gistpoint.core.errors import UserError
from gistpoint.tui.cli import main
from gistpoint.tui.serving.links import Assigned, LinkBook, read_assignments
from gistpoint.tui.serving.server import ParticipantServer, ServedPlace, origin_of, served_names
from gistpoint.tui.serving.session import cells, envelope, environment_of_session

EVIL = "http://evil.example"


@pytest.fixture
def book(tmp_path: Path) -> LinkBook:
    return LinkBook(tmp_path / "data" / "links.json", FakeClock())


def test_a_link_is_kept_as_a_hash_for_its_owner_alone(book: LinkBook, tmp_path: Path) -> None:
    tokens = book.assign({"P01": Assigned(("a",)), "P02": Assigned(("b",))})
    kept = tmp_path / "data" / "links.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert all(token not in kept.read_text() and len(token) >= 43 for token in tokens.values())
    assert [book.holder(token) for token in tokens.values()] == ["P01", "P02"]
    assert book.holder("") == book.holder("x") == book.holder("\ud800") == ""
    assert book.assign({"P01": Assigned(("c",))}) == {}, "who has a link keeps it"
    assert book.all()["P01"].assigned == Assigned(("c",))
    assert book.holder(tokens["P01"]) == "P01"
    renewed = book.assign({"P01": Assigned(("c",))}, renew=["P01"])
    assert (book.holder(tokens["P01"]), book.holder(renewed["P01"])) == ("", "P01")
    book.revoke("P01")
    assert book.holder(renewed["P01"]) == ""
    with pytest.raises(UserError, match="P01 has no link"):
        book.revoke("P01")


@pytest.mark.parametrize("text", ["P01 = 3", "P01 = []", "[P01]\ntasks = 1", "", "P01 ="])
def test_a_file_of_links_is_read_whole_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "links.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"links\.toml"):
        read_assignments(path)
    path.write_text('P01 = ["a", "b"]\nP02 = ["a"]\n')
    assert read_assignments(path) == {"P01": ("a", "b"), "P02": ("a",)}


def test_a_program_gets_no_key_and_a_window_of_sane_size() -> None:
    given = {
        "PATH": "/bin",
        "GISTPOINT_HOME": "/g",
        "OPENAI_API_KEY": "k",
        "EDITOR": "vi",
        "PYTHONPATH": "/evil",
    }
    given |= {"PGHOST": "db.example", "PGPASSWORD": "k"}
    environment = environment_of_session(given, 10**9, 48)
    assert (environment["COLUMNS"], environment["ROWS"]) == ("500", "48")
    assert {"PATH", "GISTPOINT_HOME", "PGHOST"} < environment.keys()
    assert not {"OPENAI_API_KEY", "PGPASSWORD", "EDITOR", "PYTHONPATH"} & environment.keys()
    assert (cells("80"), cells(-3), cells(None)) == (80, 20, 80)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--host", "0.0.0.0"], "unencrypted"),
        (["--host", "192.0.2.1", "--public-url", "http://lab.example"], "unencrypted"),
        (["--host", "0.0.0.0", "--behind-proxy"], "--public-url"),
        (["--public-url", "http://lab.example"], "unencrypted"),
        (["--public-url", "https://lab.example/gistpoint"], "Leave the path out"),
        (["--cert", "c.pem"], "--key"),
        (["--cert", "c.pem", "--key", "k.pem", "--for", "P01=dear-tickets"], "not a certificate"),
        (["--host", "192.0.2.1", "--behind-proxy", "--for", "P01=dear-tickets"], "can't be used to listen"),
        (["--sandbox", "plain", "--for", "P01=dear-tickets"], "without isolation"),
        (["--for", "P01"], "CODE=TASK"),
        (["--for", "P01=dear-tickets", "--for", "P01=dear-tickets"], "given twice"),
        (["--for", "../P=dear-tickets"], "is not a valid code"),
        (["--for", "P01=no-such-task"], "There is no task"),
        ([], "Nobody has a link"),
        (["revoke", "P09"], "P09 has no link"),
    ],
)
def test_what_is_unsafe_or_unknown_is_refused_before_anybody_is_told_a_link(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: list[str],
    said: str,
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    assert main(["serve", *given]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "data" / "links.json").exists()


def test_origins_are_written_as_browsers_do() -> None:
    assert origin_of("HTTPS://Lab.Example:443/") == "https://lab.example"
    assert origin_of("http://127.0.0.1:8000") == "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("scheme", "port", "shown"), [("http", 80, ""), ("https", 443, ""), ("http", 81, ":81")]
)
def test_each_name_of_loopback_is_served_at_any_port(scheme: str, port: int, shown: str) -> None:
    address, origins, hosts = served_names(ServedPlace("127.0.0.1", port), scheme, port)
    assert address == f"{scheme}://127.0.0.1{shown}"
    assert hosts == {f"localhost{shown}", f"127.0.0.1{shown}", f"[::1]{shown}"}
    assert origins == {f"{scheme}://{host}" for host in hosts}


def test_behind_a_proxy_only_the_public_pages_are_served_under_all_names() -> None:
    place = ServedPlace("127.0.0.1", 80, public_url="https://lab.example", behind_proxy=True)
    address, origins, hosts = served_names(place, "http", 80)
    assert origins == {address} == {"https://lab.example"}
    assert hosts == {"lab.example", "localhost", "127.0.0.1", "[::1]"}


@asynccontextmanager
async def listening(
    book: LinkBook, place: ServedPlace | None = None, log: Callable[[str], None] = print
) -> AsyncIterator[str]:
    """Yield the address of a server for P01 that never starts a program."""
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = ParticipantServer(
        book, ["P01"], place or ServedPlace("127.0.0.1", 0), lambda who, assigned: [], sessions=1, log=log
    )
    running = asyncio.create_task(server.run(address.set_result))
    try:
        yield await asyncio.wait_for(address, 60)
    finally:
        running.cancel()
        await asyncio.wait([running])


async def test_the_door(book: LinkBook) -> None:
    tokens = book.assign({"P01": Assigned(("a",)), "P02": Assigned(("a",))})
    jar = aiohttp.CookieJar(unsafe=True)
    async with listening(book) as url, aiohttp.ClientSession(cookie_jar=jar) as http:

        async def status(path: str, **headers: str) -> int:
            async with http.get(url + path, headers=headers) as answer:
                assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["X-Frame-Options"] == "DENY"
                return answer.status

        for path in ("/", "/download/x", "/ws", "/page/page.html", "/page/..%2fserver.py", "/static/", "/p/"):
            assert await status(path) in (403, 404), path
        assert await status("/s") == await status("/s/ws") == 403
        assert await status("/s", Cookie=f"gistpoint={tokens['P02']}") == 403, "P02 is not served"
        assert [await status(f"/p/{'x' * n}") for n in range(1, 7)] == [404] * 4 + [429] * 2, (
            "and that counted"
        )
        assert await status("/s", Cookie="gistpoint=x") == await status("/s/ws", Cookie="gistpoint=x") == 429
        assert await status("/s") == 403, "who has no cookie guesses nothing"
        assert await status("/s", Host="evil.example") == 421

        async with http.get(f"{url}/p/{tokens['P01']}") as entered:
            assert entered.status == 200, "a good link works although others guess"
            (cookie,) = (morsel for morsel in entered.cookies.values())
            assert (cookie["path"], cookie["samesite"], bool(cookie["httponly"])) == ("/s", "Strict", True)
            assert tokens["P01"] not in await entered.text()
        async with http.get(f"{url}/s") as page:
            text = await page.text()
            assert page.status == 200
            assert tokens["P01"] not in text
            assert "http://" not in text
            assert "https://" not in text
        for origin in (EVIL, "null", url.replace("http", "https")):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(f"{url}/s/ws", headers={"Origin": origin})
            assert refused.value.status == 403
        assert await status("/page/page.js") == await status("/static/js/textual.js") == 200


async def test_behind_a_proxy_names_are_the_public_ones_and_addresses_those_that_it_tells(
    book: LinkBook,
) -> None:
    token = book.assign({"P01": Assigned(("a",))})["P01"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = f"http://127.0.0.1:{port}"
    place = ServedPlace("127.0.0.1", port, "https://lab.example", behind_proxy=True)
    async with listening(book, place) as told, aiohttp.ClientSession() as http:
        assert told == "https://lab.example"
        for host in ("lab.example", f"127.0.0.1:{port}"):
            async with http.get(f"{own}/p/{token}", headers={"Host": host}) as entered:
                assert (entered.status, entered.cookies["gistpoint"]["secure"]) == (200, True)
                assert "connect-src 'self' wss://lab.example;" in entered.headers["Content-Security-Policy"]
        asked = [*(["198.51.100.7, 203.0.113.5"] * 6), "203.0.113.5, 198.51.100.7"]
        answers = [await http.get(f"{own}/p/x", headers={"X-Forwarded-For": passed}) for passed in asked]
        assert [answer.status for answer in answers] == [404] * 5 + [429, 404]
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await http.ws_connect(f"{own}/s/ws", headers={"Origin": own, "Cookie": f"gistpoint={token}"})


async def test_malformed_requests_are_a_line_a_minute_without_what_they_held(
    book: LinkBook, capfd: pytest.CaptureFixture[str]
) -> None:
    token = book.assign({"P01": Assigned(("a",))})["P01"]
    lines: list[str] = []
    async with listening(book, log=lines.append) as url:
        host = url.removeprefix("http://")

        async def answer(request: str) -> bytes:
            name, _, port = host.partition(":")
            reader, writer = await asyncio.open_connection(name, int(port))
            writer.write(request.encode())
            said = await asyncio.wait_for(reader.readline(), 60)
            writer.close()
            return said

        for malformed in (
            f"GET /p/{token}{'x' * 9_000} HTTP/1.1\r\nHost: {host}\r\n\r\n",
            f"GET /s HTTP/1.1\r\nHost: {host}\r\nCookie: gistpoint={token}{'x' * 200_000}\r\n\r\n",
            "GET /s HTTP/1.1\r\n\r\n",
            f"GET /s HTTP/1.1\r\nHost: {host}\r\nHost: {token}\r\n\r\n",
            f"POST /s HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ):
            assert b" 400 " in await answer(malformed), malformed[:40]
        assert lines == ["A malformed request was refused."]
        for path in (
            "/static/%00",
            "/page/%00.js",
            "/static/" + "x" * 5_000,
            f"/page/{'%f0' * 300}.js",
            "/p/%ff",
        ):
            assert b" 404 " in await answer(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"), path
        assert len(lines) == 1
    assert capfd.readouterr() == ("", "")


def test_what_is_no_message_is_refused_as_one() -> None:
    for text in ("", "{", "[]", "[1]", "[" * 100_000, '{"a":' * 100_000):
        with pytest.raises(ValueError, match=r"."):
            envelope(text)


def test_a_program_that_has_ended_drops_what_is_still_typed() -> None:
    program = """
from textual import events
from textual.app import App
from gistpoint.tui.serving.driver import ServedDriver

class Ending(App):
    def on_mount(self):
        self.typed_into = self._driver
        self.exit()

app = Ending(driver_class=ServedDriver)
app.run()
app.typed_into.send_message(events.Key("x", "x"))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], input=b"", capture_output=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def _run(program: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=120, check=False, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


_BOUNDED = """
import resource, subprocess, sys
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.payload import enter
from gistpoint.tui.commands.participant import _bound_memory
_bound_memory(256 << 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not heed it")
def test_a_program_has_so_much_memory_and_what_it_isolates_has_its_own() -> None:
    assert _run(_BOUNDED + "try:\n    b'x' * (300 << 20)\nexcept MemoryError:\n    print('no')") == "no"
    inside = "print(len(b'x' * (300 << 20)))"
    program = _BOUNDED + f"enter._limit(RunLimits().of_a_process())\n{inside}"
    assert _run(program) == str(300 << 20), "the limits of a run take the place of the program's"
    assert _run(_BOUNDED + "print(resource.getrlimit(resource.RLIMIT_DATA)[0])") == str(256 << 20)
