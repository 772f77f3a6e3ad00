"""Lets libraries for MCP clients attempt a task of the demo, over standard streams and over HTTP.

    npm install @modelcontextprotocol/sdk
    uv venv ENVIRONMENT && uv pip install --python ENVIRONMENT/bin/python fastmcp "pydantic-ai-slim[mcp]"
    uv run python tests/studies/mcp_libraries.py ENVIRONMENT/bin/python NODE_MODULES

Each of fastmcp, pydantic-ai (an agent whose model is a script) and the TypeScript SDK makes two attempts each
way: one lists the tools, reads the brief, looks, errs once and submits the right code; the other has three
tool uses and makes calls until after the end. Prints the versions, the ends, the calls, and the last answer
to the client. Exit code 1 unless each attempt has the expected end. Last tried with fastmcp 4.2.3,
pydantic-ai 2.68.0 and the TypeScript SDK 1.32.2.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mcp_clients import TOKEN, Call, http_server, script_of

from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.attempts import AttemptStore

FASTMCP = """
import asyncio, json, sys
import fastmcp
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

async def main(given):
    if "url" in given:
        transport = StreamableHttpTransport(given["url"], headers=given["headers"])
    else:
        transport = StdioTransport(given["command"][0], given["command"][1:], env=given["env"])
    async with fastmcp.Client(transport, init_timeout=300) as client:
        tools = [tool.name for tool in await client.list_tools()]
        answers = []
        for name, arguments in given["calls"]:
            answer = await client.call_tool(name, arguments, raise_on_error=False)
            answers.append(answer.content[0].text)
        print(json.dumps({"version": fastmcp.__version__, "tools": tools, "answers": answers}))

asyncio.run(main(json.loads(sys.argv[1])))
"""
PYDANTIC_AI = """
import asyncio, json, sys
import pydantic_ai
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

async def main(given):
    calls, answers, tools = given["calls"], [], []

    def reply(messages, about):
        tools[:] = [tool.name for tool in about.function_tools]
        answers[:] = [str(part.content) for message in messages for part in message.parts
                      if part.part_kind in ("tool-return", "retry-prompt")]
        made = sum(isinstance(message, ModelResponse) for message in messages)
        if made < len(calls):
            return ModelResponse(parts=[ToolCallPart(*calls[made])])
        return ModelResponse(parts=[TextPart("Done.")])

    if "url" in given:
        transport = StreamableHttpTransport(given["url"], headers=given["headers"])
    else:
        transport = StdioTransport(given["command"][0], given["command"][1:], env=given["env"])
    toolset = MCPToolset(transport, init_timeout=300, read_timeout=300, max_retries=9)
    agent = Agent(FunctionModel(reply), toolsets=[toolset])
    async with agent:
        await agent.run("Solve the task.")
    print(json.dumps({"version": pydantic_ai.__version__, "tools": tools, "answers": answers}))

asyncio.run(main(json.loads(sys.argv[1])))
"""
TYPESCRIPT = """
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const given = JSON.parse(process.argv[2]);
const transport = given.url
  ? new StreamableHTTPClientTransport(new URL(given.url), { requestInit: { headers: given.headers } })
  : new StdioClientTransport({ command: given.command[0], args: given.command.slice(1), env: given.env });
const client = new Client({ name: "study", version: "1" });
const patience = { timeout: 300000 };
await client.connect(transport, patience);
const tools = (await client.listTools({}, patience)).tools.map((tool) => tool.name);
const answers = [];
for (const [name, args] of given.calls) {
  const answer = await client.callTool({ name, arguments: args }, undefined, patience);
  answers.push(answer.content[0].text);
}
await client.close();
const about = JSON.parse(readFileSync("node_modules/@modelcontextprotocol/sdk/package.json", "utf8"));
console.log(JSON.stringify({ version: about.version, tools, answers }));
"""
LIBRARIES = {"fastmcp": FASTMCP, "pydantic-ai": PYDANTIC_AI, "typescript": TYPESCRIPT}


def attempt_by(library: str, python: str, modules: Path, *, http: bool, ends_early: bool) -> tuple[str, str]:
    """Let a library's client make an attempt; return its end, and a line about it."""
    with tempfile.TemporaryDirectory(prefix="mcp-library-") as folder:
        home = Path(folder)
        locations = Locations(home / "data", home / "config", home / "cache")
        task = demo_task("dear-tickets", locations.demo)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "GISTPOINT_HOME": folder,
            "LANG": "C.UTF-8",
            "GISTPOINT_MCP_TOKEN": TOKEN,
        }
        calls: list[Call] = [call for turn in script_of(task) for call in turn]
        more = ["--budgets", "3/1"] if ends_early else []
        if ends_early:
            calls = [("read_brief", {}), *[("list_directory", dict[str, str]())] * 6]
        given: dict[str, object] = {"calls": calls}
        if http:
            with http_server(task, environment, *more) as address:
                given["url"] = f"http://{address}/mcp"
                given["headers"] = {"Authorization": f"Bearer {TOKEN}"}
                said = _said(library, python, modules, home, given, environment)
        else:
            given["command"] = [sys.executable, "-m", "gistpoint", "mcp", task.short_id, *more]
            given["env"] = environment
            said = _said(library, python, modules, home, given, environment)
        (summary,) = AttemptStore(locations.attempts, SystemTime(), "").summaries()
        state = summary.state
        end = state.ending.reason if state.ending else "unfinished"
        lines = str(said["answers"][-1]).splitlines() if said["answers"] else ["nothing"]
        made = [f"{call.tool}{' refused' if call.refused else ''}" for call in state.calls]
        client = (state.header.solver or {}).get("client")
        return (
            end,
            f"{said['version']} ({client}), {len(said['tools'])} tools, {made}, last answer: {lines[-1]!r}",
        )


def _said(
    library: str, python: str, modules: Path, home: Path, given: object, environment: Mapping[str, str]
) -> dict[str, list[str]]:
    program = home / ("client.mjs" if library == "typescript" else "client.py")
    program.write_text(LIBRARIES[library])
    (home / "node_modules").symlink_to(modules)
    words = ["node" if library == "typescript" else python, str(program), json.dumps(given)]
    done = subprocess.run(
        words, cwd=home, env=dict(environment), capture_output=True, text=True, timeout=580, check=False
    )
    if done.returncode:
        print(done.stderr[-3000:], file=sys.stderr)
        return {"version": ["failed"], "tools": [], "answers": []}
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Make the attempts, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python")
    parser.add_argument("modules", type=Path)
    parser.add_argument("libraries", nargs="*", default=list(LIBRARIES))
    options = parser.parse_args()
    has_failed = False
    for library in options.libraries:
        for http in (False, True):
            for ends_early, expected in ((False, "solved"), (True, "calls_exhausted")):
                end, about = attempt_by(
                    library, options.python, options.modules.absolute(), http=http, ends_early=ends_early
                )
                has_failed |= end != expected
                print(f"{library} {'HTTP' if http else 'stdio'}: {end}, {about}", flush=True)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
