"""A server of one attempt in this process, and the SDK's client for it, over streams or HTTP on loopback."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from builders import CHECKS, build_services, build_task
from fakes import FakeRunner
from gist_tasks import FakeEntrypoints, build_gist_task
from mcp import types
from mcp.client.client import Client, ConnectMode
from mcp.client.streamable_http import streamable_http_client

from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.leases import lease_named
from gistpoint.sessions.served import ServedAttempt
from gistpoint.sessions.services import Services
from gistpoint.tui.mcp.http import PATH, build_app
from gistpoint.tui.mcp.server import AttemptServer

TOKEN = "0123456789abcdef0123456789abcdef"
SOLVER = {"kind": "mcp", "transport": "test", "client_tools": "unknown"}


@dataclass
class Case:
    """A task, its stores, and the attempt to be served."""

    root: Path
    mode: Mode = Mode.REMOVE
    budgets: Budgets | None = None
    """The budgets that the server uses instead of the task's."""
    written: Budgets | None = None
    """The budgets of the task."""
    runner: FakeRunner = field(default_factory=lambda: FakeRunner(CHECKS))

    def __post_init__(self) -> None:
        self.services: Services = build_services(
            self.root, runner=self.runner, role=Role.QA, entrypoints=FakeEntrypoints()
        )
        tasks = self.services.locations.tasks
        if self.mode is Mode.GIST:
            self.task: Task = build_gist_task(tasks, budgets=self.written)
        else:
            self.task = build_task(tasks, self.mode, budgets=self.written)

    def served(self, resumed: AttemptSummary | None = None, lease: str = "", **more: Any) -> ServedAttempt:
        tell = partial(print, file=sys.stderr, flush=True)
        held = lease_named(self.services.attempts.root, lease) if lease else None
        given = {"budgets": self.budgets, "resumed": resumed, "lease": held, "tell": tell, **more}
        return ServedAttempt(self.services, self.task, SOLVER, **given)

    def summaries(self) -> list[AttemptSummary]:
        return list(self.services.attempts.summaries())

    def state(self) -> AttemptState:
        (summary,) = self.summaries()
        assert not summary.problem
        return summary.state

    def journal(self) -> Path:
        (summary,) = self.summaries()
        return self.services.attempts.folder(summary.attempt_id) / "journal.jsonl"


@asynccontextmanager
async def connected(
    case: Case,
    heard: Callable[[Any], Any] | None = None,
    resumed: AttemptSummary | None = None,
    lease: str = "",
) -> AsyncIterator[Client]:
    """Yield a client of a new server, over streams of JSON-RPC messages.

    `heard` is called with each message that the server sends unasked.
    """
    served = case.served(resumed, lease)
    info = types.Implementation(name="a client", version="7")

    async def hear(message: Any) -> None:
        if heard is not None:
            heard(message)

    try:
        async with Client(
            AttemptServer(served), mode="legacy", client_info=info, message_handler=hear
        ) as client:
            yield client
    finally:
        served.close()


@asynccontextmanager
async def listening(served: ServedAttempt, verdict_token: str = "") -> AsyncIterator[str]:
    """Serve the attempt on loopback, in this event loop, and yield the URL."""
    app = build_app(AttemptServer(served), ("127.0.0.1",), TOKEN, verdict_token=verdict_token)
    place = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on", ws="none")
    )
    serving = asyncio.create_task(server.serve(sockets=[place]))
    try:
        yield f"http://127.0.0.1:{place.getsockname()[1]}{PATH}"
    finally:
        server.should_exit = server.force_exit = True
        await serving
        served.close()


@asynccontextmanager
async def over_http(url: str, mode: ConnectMode = "legacy") -> AsyncIterator[Client]:
    """Yield a client that uses the token at a URL."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def say(client: Client, name: str, arguments: Any = None) -> types.CallToolResult:
    """Call a tool with any arguments, even ones that the client would not send; return the result."""
    request = types.Request[Any, str](method="tools/call", params={"name": name, "arguments": arguments})
    result: types.CallToolResult = await client.session.send_request(request, types.CallToolResult)  # type: ignore[arg-type]
    return result


def text(result: types.CallToolResult) -> str:
    """Return the only text of an answer."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def left(result: types.CallToolResult) -> Mapping[str, int]:
    """Return the remaining budgets after a call."""
    budget: Mapping[str, int] = (result.meta or {})["gistpoint/budget"]
    return budget
