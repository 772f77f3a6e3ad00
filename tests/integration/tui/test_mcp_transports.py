"""The server's refusals over HTTP, and the real program over its standard streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
from mcp_client import TOKEN, Case, listening

from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.attempts import AttemptStore

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    },
}
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}
ALONE = {"MCP-Protocol-Version": "2026-07-28", "MCP-Method": "tools/list"}


async def test_http_serves_one_client_that_has_the_token(tmp_path: Path) -> None:
    case = Case(tmp_path)
    async with listening(case.served()) as url, httpx2.AsyncClient(timeout=120) as http:

        async def status(body: object = INITIALIZE, **headers: str) -> int:
            return (await http.post(url, json=body, headers={**HEADERS, **headers})).status_code

        assert await status(Authorization="") == 401
        assert await status(Authorization=TOKEN) == 401
        assert await status(Authorization=f"Bearer {TOKEN}x") == 401
        assert await status(Host="evil.example") == 421
        assert await status(Origin="http://evil.example") == 403
        assert (await http.post(f"{url}?token={TOKEN}", json=INITIALIZE)).status_code == 401
        assert await status({**INITIALIZE, "params": {"x": "y" * 2_097_152}}) == 413
        opened = await http.post(url, json=INITIALIZE, headers=HEADERS)
        assert opened.status_code == 200
        assert await status() == 409
        assert await status({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, **ALONE) == 409
        session = {**HEADERS, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        assert (await http.delete(url, headers=session)).status_code == 200
        assert await status() == 200
    assert case.summaries() == []


def message(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def called(number: int, name: str, **arguments: str) -> str:
    return message(number, "tools/call", name=name, arguments=arguments)


def test_the_program_speaks_the_protocol_and_nothing_else(tmp_path: Path) -> None:
    """The client calls too early, sends rubbish and half characters, and leaves during its submission."""
    locations = Locations(tmp_path / "data", tmp_path / "config", tmp_path / "cache")
    task = demo_task("dear-tickets", locations.demo)
    (target,) = read_answer(task).targets
    submission = {"func_code": target.original, "func_name": target.qualname, "file_path": target.path}
    hello = {**INITIALIZE["params"], "protocolVersion": "2099-01-01"}  # type: ignore[dict-item]
    server = subprocess.Popen(
        [sys.executable, "-m", "gistpoint", "mcp", task.short_id],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "GISTPOINT_HOME": str(tmp_path)},
    )  # fmt: skip
    assert server.stdin
    assert server.stdout

    def answered(line: str, before: str = "") -> dict[str, Any]:
        assert server.stdin
        assert server.stdout
        server.stdin.write(before + line)
        server.stdin.flush()
        answer: dict[str, Any] = json.loads(server.stdout.readline())
        assert answer["id"] == json.loads(line)["id"]
        return answer

    with server:
        assert "error" in answered(message(1, "tools/list"))
        assert answered(message(2, "initialize", **hello))["result"]["protocolVersion"] == "2025-11-25"
        assert len(answered(message(3, "tools/list"), before="no JSON\n")["result"]["tools"]) == 7
        assert not list(AttemptStore(locations.attempts, SystemTime(), "").summaries())
        assert "Find and repair" in str(answered(called(4, "read_brief")))
        assert "15 tool uses" in str(answered(called(5, "search_code", pattern="half \ud83d")))
        (journal,) = locations.attempts.glob("*/journal.jsonl")
        server.stdin.write(called(6, "replace_function", **submission))
        server.stdin.flush()
        while '"submit"' not in journal.read_text():
            assert server.poll() is None
            time.sleep(0.02)
        server.stdin.close()
        rest = server.stdout.read().splitlines()
        assert server.stderr
        log = server.stderr.read()
    assert server.returncode == 0, log
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest)
    (summary,) = AttemptStore(locations.attempts, SystemTime(), "").summaries()
    assert (summary.problem, summary.open, summary.state.header.role) == ("", False, "qa")
    assert f"attempt {summary.attempt_id}: solved" in log
    assert summary.state.solved


NOISE = """
import os, subprocess, sys
from gistpoint.tui.mcp.stdio import take_standard_streams
wire = take_standard_streams()
print("noise")
os.write(1, b"noise")
subprocess.run(["sh", "-c", "cat; echo noise"])
wire.writing.write(wire.reading.read(5))
"""


def test_what_a_library_prints_or_reads_is_not_the_protocol() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOISE], input=b"hello", capture_output=True, check=True, timeout=280
    )
    assert done.stdout == b"hello"
    assert done.stderr.count(b"noise") == 3
