"""An agent in its sandbox: its view, its two ways out, its logs, and its end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_runs import RIGHT, Home
from scripted_endpoint import completion, endpoint
from working_backends import WORKING

from gistpoint.core.agents.scaffolds import RelayedModel, ScaffoldError
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.sandbox.endpoints.settings import ApiKey, EndpointSettings
from gistpoint.sandbox.scaffolds import programs
from gistpoint.sandbox.scaffolds.confinement import WORK, python
from gistpoint.sandbox.scaffolds.known_programs import PROGRAMS, AgentProgram
from gistpoint.sandbox.scaffolds.programs import McpProgram, mcp_program
from gistpoint.sessions.agentruns.jobs import JobState, JobStatus
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.agentruns.scaffolding import LOGS
from gistpoint.sessions.agentruns.store import AgentRun, RunSettings
from gistpoint.tui.mcp.sockets import serving_socket

in_bubblewrap = pytest.mark.parametrize("backend", [name for name in WORKING if name == "bwrap"])
"""A mark for tests that need bubblewrap."""
KEY = "sk-secret-of-the-test"
AGENT = """
import json, os, socket, subprocess, sys, time, urllib.request
from pathlib import Path

answer, mode, right = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
seen = {"answer": Path(answer).exists(), "home": os.environ["HOME"], "variables": sorted(os.environ)}
seen["key"] = any("SECRET" in value.upper() for value in os.environ.values())
try:
    socket.create_connection(("192.0.2.1", 80), 1)
    seen["network"] = "open"
except OSError as error:
    seen["network"] = type(error).__name__
try:
    Path("/usr/x").write_text("x")
except OSError as error:
    seen["system"] = type(error).__name__
os.symlink("/etc/passwd", "logs/link.jsonl")
Path("logs/own.jsonl").write_text("{}")
Path("seen.json").write_text(json.dumps(seen))
Path("logs/seen.json").write_text(json.dumps(seen))
if mode == "crash":
    sys.exit("it fell over")
body = json.dumps({"model": "m-1", "messages": [], "tools": [{"function": {"name": "own"}}]}).encode()
asked = urllib.request.Request("http://127.0.0.1:8000/v1/chat/completions", body,
                               {"Authorization": "Bearer placeholder", "Content-Type": "application/json"})
reply = json.load(urllib.request.urlopen(asked))
tools = subprocess.Popen([sys.executable, "/gistpoint/inside.py", "relay", "/gistpoint/tools.sock"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

def say(number, method, **params):
    tools.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\\n")
    tools.stdin.flush()
    return json.loads(tools.stdout.readline())["result"]

hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
say(1, "initialize", **hello)
Path("logs/brief.json").write_text(json.dumps(say(2, "tools/call", name="read_brief", arguments={})))
if mode == "gives up":
    sys.exit(0)
if mode == "hangs":
    say(3, "tools/call", name=right[0], arguments=right[1])
    time.sleep(600)
say(3, "tools/call", name="list_directory", arguments={})
say(4, "tools/call", name=right[0], arguments=right[1])
"""


def program_of(folder: Path, mode: str) -> AgentProgram:
    """Return a program that runs `AGENT`, as npm would have installed it."""
    place = folder / "node_modules" / "agent"
    place.mkdir(parents=True)
    (place / "agent.py").write_text(AGENT)

    def words(model: str) -> list[str]:
        return [str(place / "agent.py"), str(folder / "tasks"), mode, json.dumps(RIGHT)]

    def nothing(model: str, url: str) -> Mapping[str, str]:
        return {}

    return AgentProgram(
        name="agent",
        command="python",
        install="",
        key_names=(),
        url_name="",
        base_url="",
        words=words,
        environment=nothing,
        files=lambda model, url: {"logs/settings.json": url},
        logs=("logs/*",),
    )


def worked(folder: Path, mode: str) -> tuple[Home, AgentRun, JobState]:
    """Run the agent on a task, and return the home, the run and the job."""
    with endpoint(completion("I look.", ("list_directory", {}))) as host:
        settings = EndpointSettings("m-1", host.url, ApiKey(KEY))
        program = program_of(folder, mode)
        scaffold = McpProgram(program, settings, Path(python()), "1")
        home = Home(
            folder,
            settings=RunSettings(
                model="m-1", host="h", agent=AgentSettings(system="none"), scaffold=scaffold.identity
            ),
            model_of=lambda settings: RelayedModel("m-1"),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(programs, "shown_for", lambda path: [folder / "node_modules"])
            run = home.run(home.task())
            ports = replace(home.ports, scaffold=scaffold, serve_tools=serving_socket)
            AgentRunner(run, ports).work()
        assert all(f"Bearer {KEY}" == headers["authorization"] for headers in host.headers)
    (job,) = run.jobs.values()
    return home, run, job


def logged(home: Home, job: JobState, name: str) -> Any:
    return json.loads((home.attempts.folder(job.attempt) / LOGS / name).read_text())


@in_bubblewrap
@pytest.mark.parametrize("mode", ["solves", "hangs"])
def test_an_agent_sees_no_answer_and_no_network_and_solves_with_its_two_ways_out(
    mode: str, backend: str, tmp_path: Path
) -> None:
    home, run, job = worked(tmp_path, mode)
    assert job.status is JobStatus.ENDED, job.message
    state = home.attempts.summary(job.attempt).state
    assert state.solved
    assert [(call.tool, call.turn) for call in state.calls][-1] == (RIGHT[0], 1)
    (turn,) = state.turns
    assert (turn.content, turn.usage.tokens, turn.tools) == ("I look.", 110, ("own",))
    seen = logged(home, job, "seen.json")
    assert seen.pop("variables") == ["HOME", "LANG", "PATH", "PWD"]
    assert seen == {
        "answer": False,
        "home": f"{WORK}/home",
        "key": False,
        "network": "OSError",
        "system": "OSError",
    }
    assert "# Repair a function" in str(logged(home, job, "brief.json"))
    names = {path.name for path in (home.attempts.folder(job.attempt) / LOGS).iterdir()}
    assert names == {"brief.json", "errors.txt", "output.txt", "own.jsonl", "seen.json", "settings.json"}
    assert home.figures(run).attempts[0].framework == "agent"


@in_bubblewrap
def test_an_agent_that_gives_up_ends_the_attempt(backend: str, tmp_path: Path) -> None:
    home, run, _ = worked(tmp_path, "gives up")
    assert home.figures(run).attempts[0].reason == "gave_up: no_tool_call"


@in_bubblewrap
def test_an_agent_that_falls_over_halts_the_job_with_its_last_words(backend: str, tmp_path: Path) -> None:
    _, _, job = worked(tmp_path, "crash")
    assert (job.status, job.problem) == (JobStatus.HALTED, "scaffold")
    assert "it fell over" in job.message


def test_a_program_that_is_not_there_is_named_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for name, program in PROGRAMS.items():
        with pytest.raises(ScaffoldError) as refused:
            mcp_program(name, EndpointSettings("m-1"))
        assert program.install in str(refused.value.hint)


def test_the_options_of_a_program_are_part_of_the_condition() -> None:
    known = [McpProgram(p, EndpointSettings("m-1"), Path("/x"), "1").identity for p in PROGRAMS.values()]
    assert len({identity.prompt_sha256 for identity in known}) == len(PROGRAMS)
    assert all(identity.relayed for identity in known)
    again = msgspec.convert(msgspec.to_builtins(known), list[type(known[0])])  # type: ignore[misc]
    assert again == known
