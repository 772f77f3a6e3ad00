"""One attempt served over the Model Context Protocol: started at the first call, with each call's cost."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from builders import CHECKS, REPAIR
from fakes import FakeClock, FakeRunner
from mcp import types
from mcp.shared.exceptions import MCPError
from mcp_client import Case, connected, left, say, text

from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.runs.opening import open_run
from gistpoint.tui.connections import Connections, Peer
from gistpoint.tui.mcp import server
from gistpoint.tui.mcp.http import build_app
from gistpoint.tui.mcp.server import INSTRUCTIONS, AttemptServer

WRONG = REPAIR.replace("100", "99")


async def test_an_attempt_begins_at_the_first_call_and_knows_who_called(tmp_path: Path) -> None:
    case = Case(tmp_path)
    async with connected(case) as client:
        told = await client.list_tools()
        assert [tool.name for tool in told.tools][:2] == ["read_brief", "list_directory"]
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["solve"]
        assert case.summaries() == []
        brief = await client.call_tool("read_brief")
        assert text(brief) == render_brief(case.task)
        assert left(brief) == {"tool_uses": 16, "submissions": 4}
        await client.call_tool("list_directory")
        assert text(await client.call_tool("read_brief")) == text(brief)
    state = case.state()
    header = state.header
    assert (header.actor, header.role, state.ended, len(state.calls)) == ("model", "qa", False, 1)
    assert header.solver == {
        "kind": "mcp",
        "transport": "test",
        "client_tools": "unknown",
        "client": {"name": "a client", "version": "7"},
        "protocol": "2025-11-25",
    }
    assert open_run(case.journal()).header.agent == "a client 7"
    events = [json.loads(line) for line in case.journal().read_bytes().splitlines()]
    assert [e["data"]["pane"] for e in events if e["type"] == "view"] == ["model", "brief"]


async def test_a_task_is_solved_and_then_every_call_says_so(tmp_path: Path) -> None:
    case = Case(tmp_path)
    async with connected(case) as client:
        assert "15 tool uses" in text(await client.call_tool("read_file", {"file_path": "README.md"}))
        wrong = await client.call_tool("submit_attempt", {"func_code": WRONG})
        assert not wrong.is_error
        right = await client.call_tool("submit_attempt", {"func_code": REPAIR})
        assert left(right) == {"tool_uses": 13, "submissions": 2}
        late = await client.call_tool("read_file", {"file_path": "README.md"})
        assert (text(late), late.is_error) == ("The attempt has ended: solved.", True)
        assert len((await client.list_tools()).tools) == 7
    assert case.state().solved
    assert len(case.state().calls) == 3


@pytest.mark.parametrize(
    ("name", "arguments", "fault", "raw"),
    [
        ("read_file", ["README.md"], "not_object", '["README.md"]'),
        ("read_file", "README.md", "not_object", '"README.md"'),
        ("read_file", {"path": "README.md"}, "bad_arguments", None),
        ("read_file", {"file_path": 3}, "bad_arguments", None),
        ("read_file", None, "bad_arguments", None),
        ("grep", {"pattern": "x"}, "unknown_tool", None),
        ("", {}, "unknown_tool", None),
        (None, {}, "unknown_tool", None),
    ],
)
async def test_a_call_that_cannot_be_carried_out_costs_a_use(
    name: Any, arguments: Any, fault: str, raw: str | None, tmp_path: Path
) -> None:
    case = Case(tmp_path)
    async with connected(case) as client:
        answer = await say(client, name, arguments)
        assert answer.is_error
        assert text(answer).startswith("Refused: ")
        assert left(answer) == {"tool_uses": 15, "submissions": 4}
    (call,) = case.state().calls
    assert (call.malformed, call.tool) == (fault, name or "")
    (made,) = (
        json.loads(line) for line in case.journal().read_bytes().splitlines() if b'"tool_call"' in line
    )
    assert made["data"].get("raw") == raw


async def test_calls_that_come_at_once_are_made_in_their_order(tmp_path: Path) -> None:
    case = Case(tmp_path, budgets=Budgets(32, 8))
    async with connected(case) as client:
        found = await asyncio.gather(
            *(client.call_tool("search_code", {"pattern": f"x{n}"}) for n in range(20))
        )
        assert [left(answer)["tool_uses"] for answer in found] == list(range(31, 11, -1))
    assert [call.arguments["pattern"] for call in case.state().calls] == [f"x{n}" for n in range(20)]


async def test_the_list_of_tools_changes_at_the_last_use(tmp_path: Path) -> None:
    case, heard = Case(tmp_path, budgets=Budgets(2, 1)), list[Any]()
    async with connected(case, heard.append) as client:
        assert (client.server_capabilities.tools or types.ToolsCapability()).list_changed
        assert "only a submission can follow" in text(await client.call_tool("list_directory"))
        assert [tool.name for tool in (await client.list_tools()).tools] == ["read_brief", "submit_attempt"]
        assert [type(message) for message in heard] == [types.ToolListChangedNotification]
        refused = await client.call_tool("list_directory")
        assert (refused.is_error, left(refused)["tool_uses"]) == (True, 1)


async def test_a_cancelled_submission_is_stopped_and_counts(tmp_path: Path) -> None:
    case = Case(tmp_path, runner=FakeRunner(CHECKS, gate=threading.Event()))
    async with connected(case) as client:
        call = asyncio.create_task(client.call_tool("submit_attempt", {"func_code": REPAIR}))
        while not case.runner.runs:
            await asyncio.sleep(0.01)
        queued = asyncio.create_task(client.call_tool("list_directory"))
        call.cancel()
        assert left(await queued) == {"tool_uses": 14, "submissions": 3}
    state = case.state()
    assert (state.submissions[0].status, state.solved) == (RunStatus.CANCELLED, False)


async def test_a_client_that_leaves_in_a_submission_is_not_waited_for_but_the_tests_are(
    tmp_path: Path,
) -> None:
    gate = threading.Event()
    case = Case(tmp_path, runner=FakeRunner(CHECKS, gate=gate))

    async def leave() -> None:
        async with connected(case) as client:
            call = asyncio.create_task(client.call_tool("submit_attempt", {"func_code": WRONG}))
            while not case.runner.runs:
                await asyncio.sleep(0.01)
        await asyncio.gather(call, return_exceptions=True)

    leaving = asyncio.create_task(leave())
    while not case.runner.runs:
        await asyncio.sleep(0.01)
    gate.set()
    await leaving
    state = case.state()
    assert (state.ended, state.pending, state.submissions[0].status) == (False, None, RunStatus.FINISHED)
    (summary,) = case.summaries()
    async with connected(case, resumed=summary) as client:
        assert left(await client.call_tool("submit_attempt", {"func_code": REPAIR})) == {
            "tool_uses": 14,
            "submissions": 2,
        }
    assert case.state().solved


async def test_a_client_that_waits_is_told_how_far_a_call_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PROGRESS_S", 0.01)
    gate, told = threading.Event(), list[tuple[float, str | None]]()
    case = Case(tmp_path, runner=FakeRunner(CHECKS, gate=gate))

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))
        if message == "running, 1 of 6":
            gate.set()

    async with connected(case) as client:
        arguments = {"func_code": REPAIR}
        assert not (await client.call_tool("submit_attempt", arguments, progress_callback=hear)).is_error
    numbers = [number for number, _ in told]
    assert numbers == sorted(set(numbers))


def test_an_attempt_whose_time_is_up_ends_without_a_call(tmp_path: Path) -> None:
    case = Case(tmp_path, budgets=Budgets(16, 4, time_limit_s=60))
    served = case.served()
    served.beat()
    assert served.call("list_directory", {}, "", {}, RunContext()).budget["tool_uses"] == 15
    clock = case.services.clock
    assert isinstance(clock, FakeClock)
    clock.advance(61_000)
    served.beat()
    served.hand_in()
    late = served.read_brief({})
    assert (late.text, late.refused) == ("The attempt has ended: time_cap.", True)
    served.close()
    served.beat()


async def test_the_prompt_is_the_brief(tmp_path: Path) -> None:
    case = Case(tmp_path, Mode.DISCOVERY, budgets=Budgets(8, 2))
    async with connected(case) as client:
        (message,) = (await client.get_prompt("solve")).messages
        assert isinstance(message.content, types.TextContent)
        assert "8 tool uses" in message.content.text
        with pytest.raises(MCPError):
            await client.get_prompt("give_up")
    assert case.state().header.brief == message.content.text


async def test_a_harness_that_fails_says_nothing_of_this_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(tmp_path)
    async with connected(case) as client:
        case.services.locations.attempts.parent.mkdir(parents=True, exist_ok=True)
        case.services.locations.attempts.write_text("in the way")
        answer = await client.call_tool("list_directory")
        assert answer.is_error
        assert str(tmp_path) not in text(answer)
        case.services.locations.attempts.unlink()
        assert left(await client.call_tool("list_directory")) == {"tool_uses": 15, "submissions": 4}
    assert str(tmp_path) in capsys.readouterr().err


def test_the_instructions_are_short_enough_for_every_client() -> None:
    assert len(INSTRUCTIONS) <= 600


async def test_over_http_the_connections_that_are_kept_are_those_of_the_server(tmp_path: Path) -> None:
    class Noting(Connections):
        """Connections that record requests; they are false, because there is none yet."""

        def head_received(self, peer: Peer | None) -> None:
            peers.append(peer)

    peers: list[Peer | None] = []
    served, connections = Case(tmp_path).served(), Noting()
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = build_app(AttemptServer(served), ("127.0.0.1",), "0" * 32, connections)
    await app({"type": "http", "path": "/mcp", "client": ("127.0.0.1", 7), "headers": []}, receive, send)
    served.close()
    assert (peers, sent[0]["status"]) == ([("127.0.0.1", 7)], 401)
