"""Sdists are fetched with the user's credentials for uv, which go nowhere else."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gistpoint.core.errors import SourceError
from gistpoint.sandbox.environments.sdists import Sdist, download


@dataclass
class Index:
    """A file server that records its requests and redirects to `elsewhere` if that is set."""

    port: int = 0
    elsewhere: str = ""
    asked: list[str] = field(default_factory=list)

    def address(self, host: str = "127.0.0.1", login: str = "") -> str:
        return f"http://{login}{host}:{self.port}/thing-1.0.tar.gz"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    found = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            credentials = self.headers.get("Authorization", "").removeprefix("Basic ")
            found.asked.append(base64.b64decode(credentials).decode())
            if found.elsewhere:
                self.send_response(302)
                self.send_header("Location", found.elsewhere)
                found.elsewhere = ""
            else:
                self.send_response(200)
            self.end_headers()
            self.wfile.write(b"an sdist")

        def log_message(self, *_: object) -> None:
            pass

    for variable in ("NETRC", "UV_INDEX", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield found
        server.shutdown()


def fetch(address: str, tmp_path: Path) -> Path:
    return download(Sdist("thing", "1.0", address, ""), tmp_path)[0]


def test_without_credentials_none_are_sent(index, tmp_path):
    assert fetch(index.address(), tmp_path).read_bytes() == b"an sdist"
    assert index.asked == [""]


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        ({"UV_INDEX_URL": "http://me:a%20b@127.0.0.1:{port}/simple"}, "me:a b"),
        ({"UV_DEFAULT_INDEX": "http://me@127.0.0.1:{port}/simple"}, "me:"),
        ({"UV_EXTRA_INDEX_URL": "https://x.example/ http://me:b@127.0.0.1:{port}/"}, "me:b"),
        (
            {
                "UV_INDEX": "my-own=http://127.0.0.1:{port}/",
                "UV_INDEX_MY_OWN_USERNAME": "me",
                "UV_INDEX_MY_OWN_PASSWORD": "c/d@",
            },
            "me:c/d@",
        ),
        ({"UV_INDEX_URL": "http://me:b@127.0.0.1:1/simple"}, ""),
        ({"UV_INDEX_URL": "https://me:b@127.0.0.1:{port}/simple"}, ""),
        ({"UV_INDEX_URL": "http://me:b@localhost:{port}/simple"}, ""),
    ],
)
def test_those_of_the_same_index_are_sent(index, tmp_path, monkeypatch, variables, sent):
    for key, value in variables.items():
        monkeypatch.setenv(key, value.format(port=index.port))
    fetch(index.address(), tmp_path)
    assert index.asked == [sent]


def test_those_of_netrc_and_of_the_address_are_sent(index, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password from-netrc\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    fetch(index.address(), tmp_path)
    fetch(index.address(login="you:there@"), tmp_path)
    assert index.asked == ["me:from-netrc", "you:there"]


def test_a_redirection_gets_none(index, tmp_path, monkeypatch):
    monkeypatch.setenv("UV_INDEX_URL", f"http://me:b@127.0.0.1:{index.port}/")
    index.elsewhere = index.address(host="localhost")
    assert fetch(index.address(), tmp_path).read_bytes() == b"an sdist"
    assert index.asked == ["me:b", ""]


@pytest.mark.parametrize(
    "address", ["ftp://127.0.0.1/x.tar.gz", "data:,x", "http://127.0.0.1:x/y.tar.gz", "http:///"]
)
def test_an_address_that_leads_nowhere(tmp_path, address):
    with pytest.raises(SourceError):
        fetch(address, tmp_path)


def test_the_hash_is_checked(tmp_path):
    (tmp_path / "thing-1.0.tar.gz").write_bytes(b"an sdist")
    described = Sdist("thing", "1.0", str(tmp_path / "thing-1.0.tar.gz"), "0" * 64)
    (tmp_path / "into").mkdir()
    with pytest.raises(SourceError, match="is not what its index describes"):
        download(described, tmp_path / "into")
