"""Makes the same attempt with keys, with a model and over MCP, and compares the answers byte for byte.

Usage: PYTHONPATH=src:tests python tests/studies/three_solvers.py FOLDER [--claude NODE_MODULES]

Attempts the demo's `dear-tickets` three times in a new home below FOLDER, each time with the real program: in
a terminal, with `agent run` and an endpoint on loopback that answers from a script, and with `mcp` and the
SDK's client, or with Claude Code (`npm install @anthropic-ai/claude-code`), whose vendor's endpoint is a
script on loopback. Prints for each pair whether brief, calls, answers, budgets and ends are equal, and the
output of a replay of each; searches for the key, and saves pictures of each attempt and each comparison. Exit
code 1 if two attempts differ, a replay fails, or a file contains the key. Last tried with Claude Code 2.1.197.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from e2e.terminal import Terminal
from e2e.test_solving import call, go, submit, write_body
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_client import text
from mcp_clients import VERSIONS, Vendor, run_claude, serving
from scripted_endpoint import completion, endpoint
from textual.pilot import Pilot

from gistpoint.core.demo.tasks import demo_task, playthrough
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Task
from gistpoint.tui.commands.review import first_screen
from gistpoint.tui.review_app import ReviewApp

TASK = "dear-tickets"
SIZES = ((80, 24), (160, 48))
NETWORK = "sporvei/network.py"
KEY = "sk-that-no-file-may-hold-0123456789"


def _submission(qualname: str) -> tuple[str, dict[str, str]]:
    """Return the submission of a function in the demo's recorded attempt."""
    made = [step for step in playthrough(TASK)[1] if step.get("tool") == "replace_function"]
    (found,) = (step["arguments"] for step in made if step["arguments"]["func_name"] == qualname)
    return "replace_function", {**found, "func_code": found["func_code"].rstrip("\n")}


STEPS: Sequence[tuple[str, Sequence[tuple[str, dict[str, str]]]]] = (
    ("Every failing test is about a price.", [("list_directory", {})]),
    (
        "One distance step too many.",
        [
            ("read_function", {"function_name": "test_full_fare", "file_path": "tests/test_fares.py"}),
            ("read_function", {"function_name": "Tariff.full_fare", "file_path": "sporvei/fares.py"}),
        ],
    ),
    ("So the metres are wrong.", [("list_file_functions", {"file_path": NETWORK})]),
    ("", [("read_function", {"function_name": "gone", "file_path": NETWORK})]),
    ("", [("read_function", {"function_name": "Network.distance", "file_path": NETWORK})]),
    ("The shortest way may be asked for wrongly.", [_submission("Network.distance")]),
    ("No test more passes: the shortest way itself is wrong.", [("search_code", {"pattern": "def reach"})]),
    ("", [("read_function", {"function_name": "Network.reach", "file_path": NETWORK})]),
    ("A station keeps the first way by which it's found.", [_submission("Network.reach")]),
)
"""The thoughts, each with the calls that follow it."""
CALLS = [call for _, calls in STEPS for call in calls]


def by_keys(task: str, environment: Mapping[str, str]) -> None:
    """Type the calls into the console, and paste the submissions into the editor."""
    command = [sys.executable, "-m", "gistpoint", "solve", task]
    with Terminal(command, environment=environment, columns=120, rows=40) as terminal:
        terminal.wait_for(r"\d+ (tool uses )?left")
        terminal.settle()
        for number, (tool, arguments) in enumerate(CALLS, 1):
            if tool != "replace_function":
                call(terminal, " ".join([tool, *arguments.values()]), rf"{16 - number} (tool uses? )?left")
                continue
            go(terminal, "f4", "F4 Code")
            terminal.press("e")
            write_body(terminal, arguments["func_code"])
            submit(terminal)
            terminal.wait_for(rf"{16 - number} (tool uses? )?left|solved|Solved")
        terminal.press("ctrl+q")
        terminal.wait_for_end()


def by_model(task: str, environment: Mapping[str, str]) -> None:
    """Let `agent run` attempt the task with an endpoint that replies with the same calls."""
    replies = []
    for number, (thought, calls) in enumerate(STEPS):
        used = {"prompt_tokens": 1_200 + 400 * number, "completion_tokens": 60}
        replies.append(
            completion(thought, *calls, usage=used, reasoning_content=f"{thought} I look.".strip())
        )
    with endpoint(*replies) as served:
        command = ["agent", "run", task, "--model", "scripted", "--base-url", served.url, "--price", "2/8"]
        _program([*command, "--name", "three"], environment)


async def over_mcp(task: str, environment: Mapping[str, str]) -> None:
    """Make the calls over MCP."""
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "gistpoint", "mcp", task], env=dict(environment)
    )
    async with Client(stdio_client(program), mode="legacy") as client:
        text(await client.call_tool("read_brief"))
        for tool, arguments in CALLS:
            await client.call_tool(tool, arguments)


def by_claude(modules: Path, task: Task, own: Path, environment: Mapping[str, str]) -> list[str]:
    """Let Claude Code, in a new home, make the calls of its vendor's endpoint; return what it sent back."""
    own.mkdir()
    vendor = Vendor([[("read_brief", {})], *(list(calls) for _, calls in STEPS)])
    with serving(vendor) as url:
        run_claude(modules, task, own, url, {**environment, "HOME": str(own)}, "")
    version = json.loads((modules / VERSIONS["claude"] / "package.json").read_text(encoding="utf-8"))[
        "version"
    ]
    print(f"Claude Code {version}: {len(vendor.requests)} requests, tools offered: {sorted(vendor.seen)}")
    contents = [json.loads(told) for told in vendor.told]
    return [told if isinstance(told, str) else "".join(part["text"] for part in told) for told in contents]


def _program(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run gistpoint, print its output, and return its exit code."""
    command = [sys.executable, "-m", "gistpoint", *arguments]
    done = subprocess.run(
        command, env=dict(environment), capture_output=True, text=True, check=False, timeout=600
    )
    print(f"$ gistpoint {' '.join(arguments)}  (exit {done.returncode})\n{done.stdout}{done.stderr}")
    return done.returncode


def said(journal: Path) -> dict[str, Any]:
    """Return the brief, the calls with their answers and budgets, and the end from an attempt's journal."""
    events = [json.loads(line) for line in journal.read_bytes().splitlines()]

    def of(kind: str, *names: str) -> list[Any]:
        return [[event["data"][name] for name in names] for event in events if event["type"] == kind]

    return {
        "brief": events[0]["data"]["brief"],
        "calls": of("tool_call", "tool", "arguments"),
        "answers": of("tool_result", "text"),
        "budgets": of("tool_result", "budget"),
        "end": of("attempt_ended", "reason"),
    }


async def pictures(attempts: Mapping[str, Path], locations: Locations, into: Path) -> None:
    """Take pictures of each attempt in review and of each pair in comparison."""
    runs = [str(path) for path in attempts.values()]
    for size in SIZES:

        async def settled(pilot: Pilot[object]) -> None:
            for _ in range(3):
                await pilot.pause(0.2)
            await pilot.app.workers.wait_for_complete()
            await pilot.pause(0.3)

        async def take(pilot: Pilot[object], name: str, size: tuple[int, int] = size) -> None:
            await settled(pilot)
            picture = into / f"{name}-{size[0]}x{size[1]}.svg"
            picture.write_text(pilot.app.export_screenshot(title="gistpoint"), encoding="utf-8")
            print(picture.name)

        for way, path in attempts.items():
            app = ReviewApp(
                locations, lambda path=path: first_screen([str(path)], locations, "reviewer", blind=False)
            )  # type: ignore[misc]
            async with app.run_test(size=size, notifications=True) as pilot:
                await take(pilot, f"{way}-begin")
                await pilot.press("j", "j", "j")
                await take(pilot, f"{way}-step")
        for left in range(len(runs)):
            pair = [run for number, run in enumerate(runs) if number != left]
            app = ReviewApp(
                locations, lambda pair=pair: first_screen(pair, locations, "reviewer", blind=False)
            )  # type: ignore[misc]
            async with app.run_test(size=size, notifications=True) as pilot:
                await settled(pilot)
                if not left:
                    await take(pilot, "runs")
                await pilot.press("home", "x", "x", "c")
                await settled(pilot)
                await pilot.press("b", "b")
                names = "-".join(name for number, name in enumerate(attempts) if number != left)
                await take(pilot, f"compare-{names}")


def main(folder: Path, modules: Path | None) -> int:
    """Make the attempts, compare and replay them, and take pictures; return 1 if a check fails."""
    home = folder / "home"
    os.environ["GISTPOINT_HOME"] = str(home)
    locations = Locations.of_user()
    made = demo_task(TASK, locations.demo)
    task = made.short_id
    environment = {
        **{
            name: os.environ[name]
            for name in ("PATH", "HOME", "PYTHONPATH", "GISTPOINT_HOME")
            if name in os.environ
        },
        "LANG": "C.UTF-8",
        "TEXTUAL_ANIMATIONS": "none",
        "OPENAI_API_KEY": KEY,
    }
    attempts: dict[str, Path] = {}
    sent: list[str] = []
    third = "claude" if modules else "mcp"
    for way in ("keys", "model", third):
        if way == "keys":
            by_keys(task, environment)
        elif way == "model":
            by_model(task, environment)
        elif modules:
            sent = by_claude(modules, made, folder / "claude", environment)
        else:
            asyncio.run(over_mcp(task, environment))
        (new,) = {path.parent for path in locations.attempts.glob("*/journal.jsonl")} - set(attempts.values())
        attempts[way] = new
    _program(["agent", "show", "three"], environment)
    told = {way: said(path / "journal.jsonl") for way, path in attempts.items()}
    unequal = 0
    for one, other in combinations(attempts, 2):
        for part in told[one]:
            same = told[one][part] == told[other][part]
            unequal += not same
            print(f"{one} and {other}: {part} {'equal' if same else 'NOT EQUAL'}")
    if modules:
        same = sent == [told["keys"]["brief"], *(answer for (answer,) in told["keys"]["answers"])]
        unequal += not same
        print(f"what Claude Code sent its model: {len(sent)} texts {'equal' if same else 'NOT EQUAL'}")
    characters = sum(len(answer) for (answer,) in told["keys"]["answers"])
    print(f"{len(CALLS)} calls, {characters} characters of answers, ends {told['keys']['end']}")
    for way, path in attempts.items():
        print(f"replay of {way}:")
        unequal += _program(["replay", path.name], environment) != 0
    holding = [path for path in home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    print(f"{len(holding)} files hold the key")
    asyncio.run(pictures(attempts, locations, folder))
    return int(unequal + len(holding) > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--claude", type=Path, metavar="NODE_MODULES")
    options = parser.parse_args()
    sys.exit(main(options.folder.resolve(), options.claude and options.claude.resolve()))
