"""Makes the same calls in line mode, over MCP's two transports and in a replay, and compares the answers.

    uv run python tests/studies/mcp_parity.py

Each variant is a process of the real program, with the real sandbox; the answers in the journals and the
remaining budgets after each are compared byte for byte. 50 calls are valid or refused; 10 more can't be
carried out, and are not made in line mode, because the program would then ask a question.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2
from mcp import types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.kinds.folder import read_answer

TOKEN = "0123456789abcdef0123456789abcdef"
PROGRAM = [sys.executable, "-m", "gistpoint"]
Call = tuple[str, Any]
MALFORMED: list[Call] = [
    ("grep", {"pattern": "x"}), ("", {}), ("read_file", {}), ("read_file", {"path": "README.md"}),
    ("read_file", {"file_path": None}), ("read_file", {"file_path": ["README.md"]}), ("read_file", ["README.md"]),
    ("read_file", {"file_path": {"a": [1, 2.5, True]}}), ("read_file", "README.md"), ("list_directory", 3),
]  # fmt: skip


def calls_of(path: str, qualname: str, code: str) -> list[Call]:
    """Return 50 calls; the last of them solves the task."""
    place = {"func_name": qualname, "file_path": path}
    looks: list[Call] = [
        ("list_directory", {}), ("list_directory", {"path": "tests"}), ("list_directory", {"path": "nowhere"}),
        ("list_directory", {"path": "../answer"}), ("read_file", {"file_path": "README.md"}),
        ("read_file", {"file_path": path}), ("read_file", {"file_path": "/etc/passwd"}),
        ("list_file_functions", {"file_path": path}), ("list_file_functions", {"file_path": "README.md"}),
        ("read_function", {"function_name": qualname, "file_path": path}),
        ("read_function", {"function_name": "gone", "file_path": path}), ("search_code", {"pattern": "fare"}),
        ("search_code", {"pattern": "("}), ("search_code", {"pattern": "å|\u2028|\x1b"}),
        ("replace_function", {"func_code": "def broken(", **place}), ("search_code", {"pattern": r"^def \w+"}),
    ]  # fmt: skip
    wrong = (
        "replace_function",
        {"func_code": re.sub(r"\n( +)return .*$", r"\n\1return None", code), **place},
    )
    return [*looks, *looks, wrong, *looks, ("replace_function", {"func_code": code, **place})]


async def over_mcp(client: Client, calls: list[Call]) -> None:
    """Make the calls with unchanged arguments."""
    for name, arguments in calls:
        request = types.Request[Any, str](method="tools/call", params={"name": name, "arguments": arguments})
        await client.session.send_request(request, types.CallToolResult)  # type: ignore[arg-type]


async def by_stdio(task: str, home: Path, calls: list[Call]) -> None:
    """Make the calls over standard streams."""
    words = [*PROGRAM[1:], "mcp", task]
    server = StdioServerParameters(command=PROGRAM[0], args=words, env={"GISTPOINT_HOME": str(home)})
    async with Client(server, mode="legacy") as client:
        await over_mcp(client, calls)


async def by_http(task: str, home: Path, calls: list[Call]) -> None:
    """Make the calls over HTTP."""
    environment = {**os.environ, "GISTPOINT_HOME": str(home), "GISTPOINT_MCP_TOKEN": TOKEN}
    words = [*PROGRAM, "mcp", task, "--http", "127.0.0.1:0"]
    server = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    assert server.stderr
    line = server.stderr.readline()
    url = line.split()[-1]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=300) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
    ):
        await over_mcp(client, calls)
    server.send_signal(signal.SIGINT)
    server.wait()


def in_line_mode(task: str, home: Path, calls: list[Call]) -> None:
    """Make the calls as lines of JSON."""
    lines = "".join(json.dumps({"tool": name, "arguments": arguments}) + "\n" for name, arguments in calls)
    words = [*PROGRAM, "solve", task, "--new", "--lines", "--role", "qa"]
    environment = {**os.environ, "GISTPOINT_HOME": str(home)}
    subprocess.run(words, input=lines, env=environment, capture_output=True, text=True, check=True)


def answers(home: Path) -> list[tuple[Any, ...]]:
    """Return the answers in the only journal of a home, with the budgets, and the end."""
    (journal,) = home.glob("data/attempts/*/journal.jsonl")
    events = [json.loads(line) for line in journal.read_bytes().splitlines()]
    found = [
        (e["data"]["text"], e["data"]["refused"], e["data"]["budget"])
        for e in events
        if e["type"] == "tool_result"
    ]
    return [*found, *((e["data"]["reason"],) for e in events if e["type"] == "attempt_ended")]


def main() -> int:
    """Make the calls in every way and compare them; return 1 if a comparison or the replay fails."""
    with tempfile.TemporaryDirectory(prefix="mcp-parity-") as folder:
        task = demo_task("dear-tickets", Path(folder) / "demo")
        (target,) = read_answer(task).targets
        sound = calls_of(target.path, target.qualname, target.original)
        every = [*sound[:20], *MALFORMED, *sound[20:]]
        ways: dict[str, tuple[Any, list[Call]]] = {
            "lines": (in_line_mode, sound), "stdio, the same": (by_stdio, sound),
            "stdio": (by_stdio, every), "http": (by_http, every),
        }  # fmt: skip
        found = {}
        for way, (make, calls) in ways.items():
            home = Path(folder) / way.replace(", ", "-")
            own = home / "data" / "tasks" / task.id
            shutil.copytree(task.folder, own)
            text = (own / "task.toml").read_text()
            text = re.sub(r"(?m)^tool_uses = .*$", "tool_uses = 70", text)
            (own / "task.toml").write_text(re.sub(r"(?m)^submissions = .*$", "submissions = 9", text))
            made = make(task.short_id, home, calls)
            if made is not None:
                asyncio.run(made)
            found[way] = answers(home)
            print(f"{way}: {len(found[way]) - 1} answers, {found[way][-1]}", flush=True)
        print("lines and stdio alike:", found["lines"] == found["stdio, the same"])
        print("stdio and http alike:", found["stdio"] == found["http"])
        (journal,) = (Path(folder) / "stdio").glob("data/attempts/*/journal.jsonl")
        environment = {**os.environ, "GISTPOINT_HOME": str(Path(folder) / "stdio")}
        done = subprocess.run(
            [*PROGRAM, "replay", str(journal)], env=environment, capture_output=True, text=True
        )
        print("replay:", done.returncode, *done.stdout.splitlines()[-3:], sep="\n  ")
        return int(
            found["lines"] != found["stdio, the same"] or found["stdio"] != found["http"] or done.returncode
        )


if __name__ == "__main__":
    raise SystemExit(main())
