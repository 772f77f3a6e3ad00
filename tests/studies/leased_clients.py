"""Lets LangChain's MCP adapters attempt a task of the demo, with a session for each call.

    uv venv VENV && uv pip install -p VENV/bin/python langchain-mcp-adapters 'mcp<2'
    uv run python tests/studies/leased_clients.py VENV/bin/python

The tools are used as in the package's README: `MultiServerMCPClient.get_tools()`, then `ainvoke`, without
`client.session()`. Prints the attempts, with and without a lease, over both transports, and with a lease also
for calls that go on after the end of the budget. Last tried with langchain-mcp-adapters 0.3.2 and mcp 1.30.0.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from mcp_clients import TOKEN, http_server

from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.attempts import AttemptStore

CLIENT = """
import asyncio, json, sys
from langchain_mcp_adapters.client import MultiServerMCPClient

async def main():
    server, submission = json.loads(sys.argv[1]), json.loads(sys.argv[2])
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"gistpoint": server}).get_tools()}
    async def call(name, given):
        try:
            said = await tools[name].ainvoke(given)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        print("   ", name, "->", str(said)[-160:].replace("\\n", " | "))
    if not submission:
        for _ in range(6):
            await call("list_directory", {})
        return
    await call("list_directory", {})
    await asyncio.gather(*(call("search_code", {"pattern": f"x{n}"}) for n in range(3)))
    await call("replace_function", submission)
    await call("list_directory", {})

asyncio.run(main())
"""


def attempted(python: str, lease: str, *, http: bool, ends_early: bool = False) -> None:
    """Let the client attempt the task in a new home, and print its attempts."""
    with tempfile.TemporaryDirectory(prefix="leased-client-") as folder:
        home = Path(folder)
        locations = Locations(home / "data", home / "config", home / "cache")
        task = demo_task("dear-tickets", locations.demo)
        (target,) = read_answer(task).targets
        right = {"func_code": target.original, "func_name": target.qualname, "file_path": target.path}
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "GISTPOINT_HOME": folder, "LANG": "C.UTF-8",
                       "GISTPOINT_MCP_TOKEN": TOKEN}  # fmt: skip
        more = [*(["--lease", lease] if lease else []), *(["--budgets", "3/1"] if ends_early else [])]
        words = ["-m", "gistpoint", "mcp", task.short_id, *more]
        server: dict[str, object] = {
            "transport": "stdio",
            "command": sys.executable,
            "args": words,
            "env": environment,
        }
        words_of_lease = f"lease {lease}" if lease else "no lease"
        print(
            f"{'HTTP' if http else 'stdio'}, {words_of_lease}{', three tool uses' * ends_early}", flush=True
        )
        with http_server(task, environment, *more) if http else nullcontext("") as address:
            if http:
                headers = {"Authorization": f"Bearer {TOKEN}"}
                url = f"http://{address}/mcp"
                server = {"transport": "streamable_http", "url": url, "headers": headers}
            client = [python, "-c", CLIENT, json.dumps(server), json.dumps({} if ends_early else right)]
            subprocess.run(client, env=environment, check=True, stderr=subprocess.DEVNULL)
        for summary in AttemptStore(locations.attempts, SystemTime(), "").summaries():
            state = summary.state
            end = state.ending.reason if state.ending else "unfinished"
            print(f"  attempt: {end}, {len(state.calls)} calls, away {state.clock.away} ms")


def main() -> int:
    """Run the client in four ways, and print the results."""
    for http in (False, True):
        for lease in ("", "bench-1"):
            attempted(sys.argv[1], lease, http=http)
        attempted(sys.argv[1], "bench-2", http=http, ends_early=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
