"""Lets real MCP clients attempt a task of the demo, with a script on loopback as the vendor's endpoint.

    npm install @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai \\
        @modelcontextprotocol/inspector
    uv run python tests/studies/mcp_clients.py NODE_MODULES [claude|codex|gemini|opencode|inspector ...]

With `--http`, the server is started before. Each client gets the output of `gistpoint mcp --print` and a new
home. The script reads the brief, makes two calls at once, errs once, and submits the correct code; with
`--ends-early`, there are three tool uses, and it goes on calling. Prints the client's version, the end
reason, the calls, the journal's facts about the client, and the last answer that the model was sent. The
inspector makes one call in each session, and sends no token over HTTP. Last tried with Claude Code 2.1.197,
Codex 0.171.0, Gemini CLI 0.61.0, opencode 1.18.33 and the inspector 0.15.0.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import AttemptStore

TOKEN = "0123456789abcdef0123456789abcdef"
PROMPT = "Call read_brief of the server gistpoint, and do what it says."
Call = tuple[str, Mapping[str, str]]


def script_of(task: Task) -> list[list[Call]]:
    """Return the calls of each reply of the model."""
    (target,) = read_answer(task).targets
    place = {"func_name": target.qualname, "file_path": target.path}
    return [
        [("read_brief", {})],
        [("list_directory", {}), ("read_file", {"file_path": target.path})],
        [("read_file", {"path": "README.md"})],
        [("replace_function", {"func_code": target.original, **place})],
    ]


def endless_script_of(task: Task) -> list[list[Call]]:
    """Return the calls of a model that goes on after its three tool uses, whatever the answers say.

    The last calls submit no function: Gemini CLI makes no calls of tools that are not offered any more.
    """
    submission = {**script_of(task)[-1][0][1], "func_code": "pass"}
    looks: list[list[Call]] = [[("list_directory", {})]] * 6
    return [[("read_brief", {})], *looks, *[[("replace_function", submission)]] * 3]


@dataclass
class Vendor:
    """A scripted model behind the APIs of Anthropic (Messages), OpenAI (Responses, Chat Completions) and Google."""

    script: list[list[Call]]
    told: list[str] = field(default_factory=list)
    """The results that the client has sent back."""
    seen: set[str] = field(default_factory=set)
    """The tools that the client offered."""
    requests: list[tuple[str, Any]] = field(default_factory=list)

    def messages(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the events of a reply from Anthropic's Messages API; only the message if not streamed."""
        names = [tool.get("name", "") for tool in body.get("tools", ())]
        self.seen.update(names)
        used = [part for message in body["messages"] if message["role"] == "assistant" for part in _parts(message)
                if part.get("type") == "tool_use" and part["name"].startswith("mcp__")]  # fmt: skip
        self.told[:] = [json.dumps(part.get("content")) for message in body["messages"] for part in _parts(message)
                        if part.get("type") == "tool_result"]  # fmt: skip
        parts: list[dict[str, Any]] = [{"type": "text", "text": "Done."}]
        if any(name.startswith("mcp__") for name in names):
            calls = self._next(len(used))
            if calls:
                parts = [_tool_use(f"mcp__gistpoint__{name}", given) for name, given in calls]
        elif "WaitForMcpServers" in names:
            parts = [_tool_use("WaitForMcpServers", {})]
        reason = "tool_use" if parts[0]["type"] == "tool_use" else "end_turn"
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", ""), "content": [],
                "stop_reason": None, "stop_sequence": None,
                "usage": {"input_tokens": 9, "output_tokens": 1}}  # fmt: skip
        if not body.get("stream"):
            return [{**head, "content": parts, "stop_reason": reason}]
        events: list[dict[str, Any]] = [{"type": "message_start", "message": head}]
        for index, part in enumerate(parts):
            empty = {**part, "input": {}} if "input" in part else {**part, "text": ""}
            delta = (
                {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
                if "input" in part
                else {"type": "text_delta", "text": part["text"]}
            )
            events += [
                {"type": "content_block_start", "index": index, "content_block": empty},
                {"type": "content_block_delta", "index": index, "delta": delta},
                {"type": "content_block_stop", "index": index},
            ]
        end = {"stop_reason": reason, "stop_sequence": None}
        return [
            *events,
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]

    def responses(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the events of a reply from OpenAI's Responses API."""
        spelled = dict(_spelled(body.get("tools", ())))
        self.seen.update(spelled)
        given = [item for item in body["input"] if isinstance(item, dict)]
        used = [item for item in given if item.get("type") == "function_call"]
        self.told[:] = [
            json.dumps(item.get("output")) for item in given if item.get("type") == "function_call_output"
        ]
        items: list[dict[str, Any]] = []
        for number, (name, arguments) in enumerate(self._next(len(used))):
            call = {
                "type": "function_call",
                "id": f"fc_{len(used)}_{number}",
                "call_id": f"call_{len(used)}_{number}",
            }
            items.append({**call, **spelled.get(name, {"name": name}), "arguments": json.dumps(arguments)})
        if not items:
            text = {"type": "output_text", "text": "Done.", "annotations": []}
            items = [{"type": "message", "id": "msg_1", "role": "assistant", "content": [text]}]
        usage = {"input_tokens": 9, "input_tokens_details": None, "output_tokens": 9, "output_tokens_details": None,
                 "total_tokens": 18}  # fmt: skip
        return [
            {"type": "response.created", "response": {"id": "resp_1"}},
            *(
                {"type": "response.output_item.done", "output_index": n, "item": item}
                for n, item in enumerate(items)
            ),
            {"type": "response.completed", "response": {"id": "resp_1", "output": items, "usage": usage}},
        ]

    def chat(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the chunks of a reply from OpenAI's Chat Completions API."""
        names = [tool["function"]["name"] for tool in body.get("tools", ())]
        self.seen.update(names)
        used = [call for message in body["messages"] for call in message.get("tool_calls", ())]
        self.told[:] = [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]
        calls = self._next(len(used)) if names else []
        items = [
            {
                "index": number,
                "id": f"call_{len(used)}_{number}",
                "type": "function",
                "function": {"name": _longer(name, names), "arguments": json.dumps(given)},
            }
            for number, (name, given) in enumerate(calls)
        ]
        said = (
            {"role": "assistant", "tool_calls": items} if items else {"role": "assistant", "content": "Done."}
        )
        head = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        ends = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if items else "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        return [
            {**head, "choices": [{"index": 0, "delta": said, "finish_reason": None}]},
            {**head, "choices": [ends], "usage": usage},
        ]

    def generated(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the chunks of a reply from Google's API."""
        names = [
            one["name"] for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())
        ]
        self.seen.update(names)
        parts = [part for content in body["contents"] for part in content.get("parts", ())]
        used = [part for part in parts if "functionCall" in part]
        self.told[:] = [json.dumps(part["functionResponse"]) for part in parts if "functionResponse" in part]
        calls = self._next(len(used)) if names else []
        said: list[dict[str, Any]] = [
            {"functionCall": {"name": _longer(name, names), "args": dict(given)}} for name, given in calls
        ]
        candidate = {
            "content": {"role": "model", "parts": said or [{"text": "Done."}]},
            "finishReason": "STOP",
            "index": 0,
        }
        usage = {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18}
        return [{"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted-1"}]

    def _next(self, used: int) -> list[Call]:
        done = 0
        for calls in self.script:
            if done == used:
                return calls
            done += len(calls)
        return []


def _longer(name: str, names: Sequence[str]) -> str:
    """Return the first offered name that ends with a tool's name, or that name if there is none."""
    return next((offered for offered in names if offered.endswith(name)), name)


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return content if isinstance(content, list) else []


def _tool_use(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{os.urandom(8).hex()}", "name": name, "input": dict(given)}


def _spelled(tools: Sequence[Mapping[str, Any]], within: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the short name of each tool, and the members by which a call names it, such as a namespace."""
    for tool in tools:
        name = str(tool.get("name", tool.get("type")))
        if tool.get("type") == "namespace":
            yield from _spelled(tool.get("tools", ()), name)
        else:
            short = name.removeprefix("mcp__gistpoint__")
            yield short, {"name": name, **({"namespace": within} if within else {})}


@contextmanager
def serving(vendor: Vendor) -> Iterator[str]:
    """Serve the vendor's endpoint, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.end_headers()

        def do_GET(self) -> None:
            vendor.requests.append((self.path, None))
            self._answer(404, "application/json", b"{}")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            vendor.requests.append((self.path, body))
            path = self.path.partition("?")[0]
            if path.endswith("/count_tokens"):
                return self._answer(200, "application/json", b'{"input_tokens": 9}')
            if path.endswith("/messages"):
                events = vendor.messages(body)
            elif path.endswith("/responses"):
                events = vendor.responses(body)
            elif path.endswith("/chat/completions"):
                events = vendor.chat(body)
            elif "enerateContent" in path:
                events = vendor.generated(body)
            else:
                return self._answer(404, "application/json", b"{}")
            if "type" not in events[0]:
                lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
                return self._answer(200, "text/event-stream", lines.encode())
            if len(events) == 1:
                return self._answer(200, "application/json", json.dumps(events[0]).encode())
            lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
            return self._answer(200, "text/event-stream", lines.encode())

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def printed(client: str, task: Task, environment: Mapping[str, str], address: str) -> str:
    """Return the output of `gistpoint mcp --print`."""
    words = [sys.executable, "-m", "gistpoint", "mcp", task.short_id, "--print", client]
    words += ["--http", address] if address else environment.get("BUDGETS", "").split()
    return subprocess.run(words, env=dict(environment), capture_output=True, text=True, check=True).stdout


def run_claude(
    modules: Path, task: Task, home: Path, url: str, environment: dict[str, str], address: str
) -> str:
    """Run Claude Code without its own tools; return its output."""
    told = printed("claude", task, environment, address)
    config = home / "gistpoint.mcp.json"
    config.write_text("".join(line + "\n" for line in told.splitlines() if not line.startswith("#")))
    environment |= {
        "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "scripted", "CLAUDE_CONFIG_DIR": str(home / "claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "MCP_TIMEOUT": "60000", "MCP_TOOL_TIMEOUT": "300000",
    }  # fmt: skip
    words = [
        str(modules / ".bin" / "claude"),
        "-p",
        PROMPT,
        "--tools",
        "WaitForMcpServers",
        "--strict-mcp-config",
    ]
    return _run([*words, "--mcp-config", str(config), "--allowedTools", "mcp__gistpoint"], home, environment)


def run_codex(
    modules: Path, task: Task, home: Path, url: str, environment: dict[str, str], address: str
) -> str:
    """Run Codex, and return its output."""
    provider = f'model = "scripted-1"\nmodel_provider = "scripted"\napproval_policy = "never"\n' \
               f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{url}/v1"\nwire_api = "responses"\n' \
               f'env_key = "SCRIPTED_KEY"\n'  # fmt: skip
    (home / "codex").mkdir()
    (home / "codex" / "config.toml").write_text(provider + printed("codex", task, environment, address))
    environment |= {"CODEX_HOME": str(home / "codex"), "SCRIPTED_KEY": "scripted"}
    words = [
        str(modules / ".bin" / "codex"),
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
    ]
    return _run([*words, PROMPT], home, environment)


def run_inspector(
    modules: Path, task: Task, home: Path, url: str, environment: dict[str, str], address: str
) -> str:
    """List the tools and call one of them with the inspector's command line; return its output."""
    program = [
        str(modules / ".bin" / "mcp-inspector"),
        "--cli",
        "-e",
        f"GISTPOINT_HOME={environment['GISTPOINT_HOME']}",
    ]
    server = [*program, sys.executable, "-m", "gistpoint", "mcp", task.short_id]
    listed = _run([*server, "--method", "tools/list"], home, environment)
    arguments = [f"{name}={value}" for name, value in script_of(task)[-1][0][1].items()]
    given = [word for argument in arguments for word in ("--tool-arg", argument)]
    calling = [*server, "--method", "tools/call", "--tool-name", "replace_function", *given]
    return f"{len(json.loads(listed)['tools'])} tools\n" + _run(calling, home, environment)


def _server_of(task: Task, environment: Mapping[str, str], address: str) -> dict[str, Any]:
    told = json.loads(printed("json", task, environment, address))
    server: dict[str, Any] = told["mcpServers"]["gistpoint"]
    return server


def run_gemini(
    modules: Path, task: Task, home: Path, url: str, environment: dict[str, str], address: str
) -> str:
    """Run Gemini CLI with the tools of the server alone, and return its output."""
    server = {**_server_of(task, environment, address), "trust": True, "timeout": 300_000}
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "mcpServers": {"gistpoint": server},
        "tools": {"core": ["mcp_gistpoint_*"]},
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    environment |= {
        "GEMINI_API_KEY": "scripted",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    words = [str(modules / ".bin" / "gemini"), "--prompt", PROMPT, "--model", "gemini-2.5-pro"]
    return _run([*words, "--approval-mode", "yolo", "--skip-trust"], home, environment)


def run_opencode(
    modules: Path, task: Task, home: Path, url: str, environment: dict[str, str], address: str
) -> str:
    """Run opencode with the tools of the server alone, and return its output."""
    given = _server_of(task, environment, address)
    server = {"type": "remote", "url": given.get("url"), "headers": {"Authorization": f"Bearer {TOKEN}"}}
    if not address:
        server = {"type": "local", "command": [given["command"], *given["args"]], "environment": given["env"]}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "scripted"},
        "models": {"scripted-1": {"tool_call": True}},
    }
    settings = {
        "provider": {"scripted": provider},
        "mcp": {"gistpoint": {**server, "enabled": True, "timeout": 300_000}},
        "tools": {"*": False, "gistpoint_*": True},
        "autoupdate": False,
        "share": "disabled",
    }
    (home / "opencode.json").write_text(json.dumps(settings))
    environment |= {
        "OPENCODE_CONFIG": str(home / "opencode.json"),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }
    words = [str(modules / ".bin" / "opencode"), "run", "--pure", "--auto", "--model", "scripted/scripted-1"]
    return _run([*words, PROMPT], home, environment)


CLIENTS = {
    "claude": run_claude,
    "codex": run_codex,
    "gemini": run_gemini,
    "opencode": run_opencode,
    "inspector": run_inspector,
}
VERSIONS = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
    "inspector": "@modelcontextprotocol/inspector",
}


def _run(words: list[str], home: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        words, cwd=home, env=dict(environment), capture_output=True, text=True, timeout=300, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        print(f"exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}", file=sys.stderr)
    return done.stdout


@contextmanager
def http_server(task: Task, environment: Mapping[str, str], *more: str) -> Iterator[str]:
    """Serve the task over HTTP, with further words on the command line, and yield the address."""
    server = subprocess.Popen(
        [sys.executable, "-m", "gistpoint", "mcp", task.short_id, "--http", "127.0.0.1:0", *more],
        env=dict(environment), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stderr
    line = ""
    while "serving" not in line:
        line = server.stderr.readline()
        assert line, "the server ended"
    try:
        yield line.split("//")[1].partition("/")[0]
    finally:
        server.send_signal(signal.SIGINT)
        print("  server:", server.stderr.read().strip().replace("\n", " | "))
        server.wait()


def attempt_by(
    client: str, modules: Path, *, http: bool, ends_early: bool = False
) -> tuple[AttemptSummary, Vendor, str]:
    """Let a client attempt the task in a new home; return the attempt, the vendor and the output."""
    with tempfile.TemporaryDirectory(prefix="mcp-client-") as folder:
        home = Path(folder)
        locations = Locations(home / "data", home / "config", home / "cache")
        task = demo_task("dear-tickets", locations.demo)
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "GISTPOINT_HOME": folder, "LANG": "C.UTF-8",
                       "GISTPOINT_MCP_TOKEN": TOKEN}  # fmt: skip
        budgets = ["--budgets", "3/1"] if ends_early else []
        environment["BUDGETS"] = " ".join(budgets)
        vendor = Vendor(endless_script_of(task) if ends_early else script_of(task))
        with serving(vendor) as url:
            if http:
                with http_server(task, environment, *budgets) as address:
                    said = CLIENTS[client](modules, task, home, url, environment, address)
            else:
                said = CLIENTS[client](modules, task, home, url, environment, "")
        found = list(AttemptStore(locations.attempts, SystemTime(), "").summaries())
        if len(found) != 1:
            print(f"{len(found)} attempts; {vendor.requests}\n{said}", file=sys.stderr)
        (summary,) = found
        return summary, vendor, said


def main() -> int:
    """Run the clients, and print the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", type=Path)
    parser.add_argument("clients", nargs="*", default=list(CLIENTS))
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--ends-early", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    once = options.http or options.ends_early
    for client in [name for name in options.clients if not once or name != "inspector"]:
        package = json.loads((options.modules / VERSIONS[client] / "package.json").read_text())
        summary, vendor, said = attempt_by(
            client, options.modules.absolute(), http=options.http, ends_early=options.ends_early
        )
        state = summary.state
        print(f"{client} {package['version']}: {state.ending.reason if state.ending else 'unfinished'}, "
              f"{[call.tool for call in state.calls]}, {state.header.solver}")  # fmt: skip
        print(f"  {len(vendor.requests)} requests, tools offered: {sorted(vendor.seen)}")
        print(f"  last answer: {vendor.told[-1][-160:] if vendor.told else 'none'}", flush=True)
        if options.verbose:
            print(said, *vendor.told, sep="\n  ")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
