"""The seat answers the requests of mini-swe-agent's driver: replies, commands, charges and the end."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_runs import RIGHT, Home
from scripted_endpoint import reply

from gistpoint.core.agents.scaffolds import ScaffoldError, ScaffoldIdentity, Seat
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.sandbox.scaffolds import mini
from gistpoint.sessions.agentruns.runner import AgentRunner
from gistpoint.sessions.agentruns.store import RunSettings

DRIVER = """
import json, sys
def say(**message):
    print(json.dumps(message), flush=True)
    return json.loads(sys.stdin.readline())
begin = json.loads(sys.stdin.readline())
seen, messages = [begin], [{"role": "user", "content": begin["task"]}]
for _ in range(9):
    answer = say(ask=messages)
    seen.append(answer)
    if "end" in answer:
        break
    reply = answer["reply"]
    if answer["charged"] or not reply.get("tool_calls"):
        messages.append({"role": "user", "content": "Call bash." + answer["charged"]})
        continue
    messages.append(reply)
    for call in reply["tool_calls"]:
        answer = say(run=json.loads(call["function"]["arguments"])["command"], id=call["id"])
        seen.append(answer)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": answer.get("output", "")})
open(sys.argv[1], "w").write(json.dumps(seen))
print(json.dumps({"exit": "done"}), flush=True)
"""


def bash(command: str) -> tuple[str, object]:
    return "bash", {"command": command}


class Driven:
    """mini-swe-agent with a driver that the test provides, outside of a sandbox."""

    identity = ScaffoldIdentity("mini-swe-agent", "test")

    def __init__(self, code: str, seen: Path) -> None:
        self._code, self._seen = code, seen
        self.done: bool | None = None

    def attempt(self, seat: Seat) -> None:
        words = [sys.executable, "-c", self._code, str(self._seen)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            self.done = mini._Conversation(seat, process).conduct()


def home_of(folder: Path) -> Home:
    agent = AgentSettings(system="none")
    return Home(folder, settings=RunSettings(model="m-1", host="", agent=agent, scaffold=Driven.identity))


def worked(home: Home, driven: Driven) -> Any:
    run = home.run(home.task())
    AgentRunner(run, replace(home.ports, scaffold=driven)).work()
    (job,) = run.jobs.values()
    return home.attempts.summary(job.attempt).state


def test_commands_are_calls_and_what_is_no_command_is_charged(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    code = json.loads(json.dumps(RIGHT[1]))["func_code"]
    home.script = (
        reply(bash("list_directory"), bash("ls -la"), ids=("", "")),
        reply(content="I think."),
        reply(("grep", {"pattern": "x"})),
        reply(("bash", "not json")),
        reply(bash(f"submit_attempt <<'EOF'\n{code}\nEOF")),
    )
    driven = Driven(DRIVER, tmp_path / "seen.json")
    state = worked(home, driven)
    assert driven.done
    assert state.solved
    assert [(call.tool, call.malformed, call.turn) for call in state.calls] == [
        ("list_directory", "", 1),
        ("ls", "unknown_tool", 1),
        ("grep", "unknown_tool", 3),
        ("bash", "unknown_tool", 4),
        ("submit_attempt", "", 5),
    ]
    begin, *seen = json.loads((tmp_path / "seen.json").read_text())
    assert begin["task"].startswith(state.header.brief)
    assert "submit_attempt <<'FUNC_CODE'" in begin["task"]
    assert "`bash`" in begin["task"]
    ids = [call["id"] for call in seen[0]["reply"]["tool_calls"]]
    assert len({*ids}) == 2
    assert all(ids)
    assert "13 tool uses" in seen[4]["charged"]
    assert (seen[2]["returncode"], seen[-1]) == (1, {"end": "solved"})
    last = home.asked[0].asked[-1]
    assert [message.role for message in last] == ["user", "assistant", "tool", "tool", *["user"] * 3]
    assert [call.id for call in last[1].tool_calls] == ids


def test_calls_of_two_replies_with_one_id_are_told_apart(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    look = reply(bash("list_directory"), ids=["same"])
    solve = f"submit_attempt <<'EOF'\n{json.loads(json.dumps(RIGHT[1]))['func_code']}\nEOF"
    home.script = (look, look, reply(bash(solve)))
    assert worked(home, Driven(DRIVER, tmp_path / "seen.json")).solved
    last = home.asked[0].asked[-1]
    ids = [call.id for message in last for call in message.tool_calls]
    assert ids == ["same", "call00002"]
    assert [message.tool_call_id for message in last if message.role == "tool"] == ids


@pytest.mark.parametrize("line", ["not json", "[1]", "7"])
def test_a_driver_that_sends_something_else_fails(line: str, tmp_path: Path) -> None:
    home = home_of(tmp_path)
    driven = Driven(f"print({line!r})", tmp_path / "seen.json")
    state = worked(home, driven)
    assert not state.ended


def test_a_driver_that_ends_early_is_no_end(tmp_path: Path) -> None:
    driven = Driven("pass", tmp_path / "seen.json")
    worked(home_of(tmp_path), driven)
    assert driven.done is False


def test_what_can_not_be_installed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failed:
        ok, log = False, "no index"

    monkeypatch.setattr(mini, "call_uv", lambda arguments: Failed)
    with pytest.raises(ScaffoldError, match="no index"):
        mini.mini_environment(tmp_path)
    made = tmp_path / "scaffolds" / f"{mini.NAME}-{mini.VERSION}"
    made.mkdir()
    (made / "made").touch()
    assert mini.mini_environment(tmp_path) == made
