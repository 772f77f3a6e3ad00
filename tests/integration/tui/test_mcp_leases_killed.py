"""The real program under a lease: the SDK's client with a server per call, kills, and two servers at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp_client import TOKEN, left, over_http, text

from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import AttemptStore

LEASE = "bench-1"
LOOK = "list_directory"
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "killed", "version": "1"},
    },
}


@dataclass
class Home:
    """A home with the demo, and the program in it."""

    folder: Path

    def __post_init__(self) -> None:
        self.locations = Locations(self.folder / "data", self.folder / "config", self.folder / "cache")
        self.task = demo_task("dear-tickets", self.locations.demo)
        self.environment = {**os.environ, "GISTPOINT_HOME": str(self.folder), "GISTPOINT_MCP_TOKEN": TOKEN}
        self.words = ["-m", "gistpoint", "mcp", self.task.short_id, "--lease", LEASE]
        (target,) = read_answer(self.task).targets
        self.right = {
            "func_code": target.original,
            "func_name": target.qualname,
            "file_path": target.path,
        }

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Client]:
        server = StdioServerParameters(command=sys.executable, args=self.words, env=self.environment)
        async with Client(stdio_client(server), mode="legacy") as client:
            yield client

    async def once(self, name: str = LOOK, **arguments: str) -> Any:
        async with self.session() as client:
            return await client.call_tool(name, arguments)

    def attempt(self) -> AttemptSummary:
        (summary,) = AttemptStore(self.locations.attempts, SystemTime(), "").summaries()
        assert not summary.problem
        return summary

    def killed(self, call: dict[str, Any] | None, when: str) -> None:
        """Start a server, make a call if one is given, and kill the server when `when` is in the journal."""
        server = subprocess.Popen(
            [sys.executable, *self.words], env=self.environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        with server:
            assert server.stdin
            assert server.stdout
            server.stdin.write(json.dumps(HELLO) + "\n")
            server.stdin.flush()
            server.stdout.readline()
            if call is not None:
                server.stdin.write(json.dumps({**CALL, "params": call}) + "\n")
                server.stdin.flush()
                while when not in self.journal():
                    assert server.poll() is None
                    time.sleep(0.01)
            server.kill()

    def journal(self) -> str:
        return "".join(path.read_text() for path in self.locations.attempts.glob("*/journal.jsonl"))


async def test_kills_between_and_inside_calls_cost_what_was_called(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.killed(None, "")
    assert left(await home.once())["tool_uses"] == 15
    home.killed({"name": LOOK, "arguments": {}}, '"call_id":"call-2"')
    assert left(await home.once())["tool_uses"] == 13
    home.killed({"name": "replace_function", "arguments": home.right}, '"call_id":"call-4"')
    late = await home.once("read_brief")
    # The killed submission is judged by the process of the next call.
    assert (text(late), late.is_error) == ("The attempt has ended: solved.", True)
    state = home.attempt().state
    assert state.solved
    assert [call.tool for call in state.calls] == [LOOK, LOOK, LOOK, "replace_function"]


async def test_two_processes_at_once_make_one_call_each(tmp_path: Path) -> None:
    home = Home(tmp_path)
    found = await asyncio.gather(*(home.once() for _ in range(3)))
    assert sorted(left(answer)["tool_uses"] for answer in found) == [13, 14, 15]
    assert home.attempt().state.clock.away > 0


async def test_a_server_over_http_that_was_killed_is_replaced(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for uses in (15, 14):
        server = subprocess.Popen(
            [sys.executable, *home.words, "--http", "127.0.0.1:0"],
            env=home.environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert server.stderr
        line = ""
        while not line.startswith("serving "):
            line = server.stderr.readline()
        async with over_http(line.split()[1]) as client:
            assert left(await client.call_tool(LOOK))["tool_uses"] == uses
        server.send_signal(signal.SIGKILL)
        server.stderr.close()
        server.wait()
    assert len(home.attempt().state.calls) == 2


async def test_other_budgets_under_the_name_end_the_server_with_the_difference(tmp_path: Path) -> None:
    home = Home(tmp_path)
    await home.once()
    done = subprocess.run(
        [sys.executable, *home.words, "--budgets", "8/2"],
        env=home.environment, input="", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "budgets 16/4, not 8/2" in done.stderr
