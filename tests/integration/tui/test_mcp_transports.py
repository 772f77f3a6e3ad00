"""The same calls in every way that a model can make them; what HTTP refuses; and the real program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
from builders import REPAIR
from mcp.client.client import Client
from mcp_client import TOKEN, Case, connected, left, listening, over_http, say, text
from scripted_endpoint import ScriptedModel, reply

from gistpoint.core.agents.loop import work
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.clock import SystemTime
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.replay.replaying import Replay, Sameness
from gistpoint.sessions.runs.opening import open_run

PLACE = {"func_name": "discount", "file_path": "shop/prices.py"}
LOOKS: list[tuple[str, Any]] = [
    ("list_directory", {}),
    ("list_directory", {"path": "shop"}),
    ("list_directory", {"path": "nowhere"}),
    ("read_file", {"file_path": "README.md"}),
    ("read_file", {"file_path": "shop/prices.py"}),
    ("read_file", {"file_path": "../answer/answer.json"}),
    ("list_file_functions", {"file_path": "shop/prices.py"}),
    ("list_file_functions", {"file_path": "README.md"}),
    ("read_function", {"function_name": "discount", "file_path": "shop/prices.py"}),
    ("read_function", {"function_name": "Basket.total", "file_path": "shop/prices.py"}),
    ("read_function", {"function_name": "gone", "file_path": "shop/prices.py"}),
    ("search_code", {"pattern": "price"}),
    ("search_code", {"pattern": "("}),
    ("search_code", {"pattern": "où\u2028\x1b[31m"}),
    ("replace_function", {"func_code": REPAIR.replace("100", "99"), **PLACE}),
    ("replace_function", {"func_code": "def discount(", **PLACE}),
    ("replace_function", {"func_code": REPAIR, **PLACE, "func_name": "gone"}),
]
MALFORMED: list[tuple[str, Any]] = [
    ("grep", {"pattern": "x"}),
    ("", {}),
    ("read_file", {}),
    ("read_file", {"path": "README.md"}),
    ("read_file", {"file_path": None}),
    ("read_file", {"file_path": ["README.md"]}),
    ("read_file", {"file_path": {"a": [1, 2.5, True]}}),
    ("read_file", ["README.md"]),
    ("read_file", "README.md"),
    ("list_directory", 3),
]
CALLS = [*MALFORMED[:5], *LOOKS, *MALFORMED[5:], *LOOKS[:14], *LOOKS[:14], *LOOKS[3:8]]
"""50 that are sound or refused, and 10 malformed ones."""
BUDGETS = Budgets(61, 12)
Said = list[tuple[str, bool, Mapping[str, int]]]


async def made_by(client: Client) -> Said:
    answers = [await say(client, name, arguments) for name, arguments in CALLS]
    return [(text(answer), bool(answer.is_error), left(answer)) for answer in answers]


def made_by_loop(case: Case) -> Said:
    """As a model's calls, one a reply; the answers are those in the journal."""
    script = [reply((name, json.dumps(arguments))) for name, arguments in CALLS]
    opened = case.services.start(case.task, budgets=BUDGETS, enrolment=Enrolment(actor=MODEL, role=Role.QA))
    attempt = opened.attempt
    work(attempt, ScriptedModel(script), AgentSettings(), stop=lambda: len(attempt.state.calls) >= len(CALLS))
    opened.close()
    events = [json.loads(line)["data"] for line in case.journal().read_text().splitlines() if '"tool_result"' in line]
    return [(data["text"], data["refused"], data["budget"]) for data in events]


def made_by_engine(case: Case) -> Said:
    opened = case.services.start(case.task, budgets=BUDGETS, enrolment=Enrolment(actor=MODEL, role=Role.QA))
    said: Said = []
    for name, arguments in CALLS:
        attempt, sound = opened.attempt, isinstance(arguments, dict)
        result = attempt.call(name, arguments if sound else None, raw="" if sound else json.dumps(arguments))
        budget = attempt.state.remaining
        said.append((result.text, result.refused, {"tool_uses": budget.tool_uses, "submissions": budget.submissions}))
    opened.close()
    return said


async def test_calls_are_answered_alike_by_every_way(tmp_path: Path) -> None:
    assert (len(CALLS), len(MALFORMED)) == (60, 10)
    cases = {
        way: Case(tmp_path / way, Mode.DISCOVERY, budgets=BUDGETS) for way in ("engine", "loop", "streams", "http")
    }
    said = {"engine": made_by_engine(cases["engine"]), "loop": made_by_loop(cases["loop"])}
    async with connected(cases["streams"]) as client:
        said["streams"] = await made_by(client)
    async with listening(cases["http"].served()) as url, over_http(url) as client:
        said["http"] = await made_by(client)
    assert said["loop"] == said["engine"]
    assert said["streams"] == said["engine"]
    assert said["http"] == said["engine"]
    assert cases["engine"].state().remaining.tool_uses == 1
    for case in cases.values():
        replay = Replay(open_run(case.journal()), case.services.judge_for(case.task))
        calls = list(replay.calls())
        assert [(call.sameness, call.exact) for call in calls] == [(Sameness.SAME, True)] * 60
        assert [call.text for call in calls] == [text for text, _, _ in said["engine"]]
        assert replay.attempt.state.remaining == case.state().remaining


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
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
        async with over_http(url, "2026-07-28") as client:
            assert len((await client.list_tools()).tools) == 7
            assert case.summaries() == []
            assert left(await client.call_tool("list_directory"))["tool_uses"] == 15
        assert await status() == 409
    solver = case.state().header.solver or {}
    assert (solver["protocol"], solver["client"]["name"]) == ("2026-07-28", "mcp")


def message(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def called(number: int, name: str, **arguments: str) -> str:
    return message(number, "tools/call", name=name, arguments=arguments)


def test_the_program_speaks_the_protocol_and_nothing_else(tmp_path: Path) -> None:
    """A client that calls too early, sends rubbish and half characters, and is gone while its submission is tested."""
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
    done = subprocess.run([sys.executable, "-c", NOISE], input=b"hello", capture_output=True, check=True, timeout=280)
    assert done.stdout == b"hello"
    assert done.stderr.count(b"noise") == 3


def test_without_a_client_the_program_says_how_to_get_one(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "gistpoint", "mcp", "any"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--print claude" in done.stderr
