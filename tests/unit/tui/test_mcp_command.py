"""`gistpoint mcp`: its refusals before it starts, and its instructions for configuring clients."""

from __future__ import annotations

import io
import json
import logging
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from builders import CHECKS, REPAIR, build_task
from fakes import FakeRunner

from gistpoint import object_graph
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.tui import cli
from gistpoint.tui.commands.mcp import TOKEN
from gistpoint.tui.mcp.clients import configuration
from gistpoint.tui.mcp.server import log_visibly

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(TOKEN, raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr(object_graph, "build_runner", lambda options, demo=False, **more: FakeRunner(CHECKS))
    return build_task(tmp_path / "home" / "data" / "tasks")


def persons_attempt(task: Task, monkeypatch: pytest.MonkeyPatch, *, solved: bool) -> str:
    call = (
        {"tool": "submit_attempt", "arguments": {"func_code": REPAIR}}
        if solved
        else {"tool": "list_directory"}
    )
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(call) + "\n"))
    cli.main(["solve", task.short_id, "--new", "--lines"])
    return next(AttemptStore(Locations.of_user().attempts, object(), "").summaries()).attempt_id  # type: ignore[arg-type]


HTTP = ["--http", "127.0.0.1:0"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*HTTP, "--role", "baseline"], "can read the task's answer"),
        ([*HTTP, "--budgets", "0/1"], "not a pair of numbers"),
        ([*HTTP, "--budgets", "x"], "not a pair of numbers"),
        ([*HTTP, "--budgets", "4/-1"], "not a pair of numbers"),
        (["--http", "8000"], "HOST:PORT"),
        (["--http", "127.0.0.1:99999"], "HOST:PORT"),
        (["--http", "192.0.2.1:0"], "unencrypted"),
        (["--http", "0.0.0.0:0", "--behind-proxy"], "--host-name"),
        (["--http", "192.0.2.1:0", "--cert", "c.pem"], "--cert and --key"),
        (["--http", "192.0.2.1:0", "--behind-proxy"], "can't be used to listen"),
        ([*HTTP, "--cert", "no.pem", "--key", "no.key"], "are not a certificate and its key"),
        ([*HTTP, "--cert", "/dev/null", "--key", "/dev/null"], "are not a certificate and its key"),
        ([*HTTP, "--attempt", "nope"], "no attempt 'nope'"),
        ([*HTTP, "--attempt", "nope", "--budgets", "4"], "keeps its settings"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_served_is_said_before_anything_begins(
    words: list[str], said: str, task: Task, capsys: Captured
) -> None:
    assert cli.main(["mcp", task.short_id, *words]) == 2
    assert said in capsys.readouterr().err
    assert not Locations.of_user().attempts.exists()


@pytest.mark.parametrize("solved", [True, False])
def test_a_persons_attempt_is_not_handed_to_a_client(
    solved: bool, task: Task, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    attempt = persons_attempt(task, monkeypatch, solved=solved)
    capsys.readouterr()
    assert cli.main(["mcp", task.short_id, *HTTP, "--attempt", attempt]) == 2
    assert "was not started over MCP" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["short", "x" * 31, "é" * 40, "with space" * 5])
def test_a_weak_token_is_refused(
    token: str, task: Task, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv(TOKEN, token)
    assert cli.main(["mcp", task.short_id, *HTTP]) == 2
    said = capsys.readouterr().err
    assert TOKEN in said
    assert token not in said


def test_clients_are_told_the_command_and_how_long_a_call_takes(task: Task, capsys: Captured) -> None:
    words = ["mcp", task.id, "--budgets", "8/2", "--participant", "p 1"]

    def printed(client: str, *more: str) -> str:
        given = ["mcp", task.short_id, "--budgets", "8/2", "--participant", "p 1", "--print", client, *more]
        assert cli.main(given) == 0
        return capsys.readouterr().out

    claude = json.loads("".join(line for line in printed("claude").splitlines() if not line.startswith("#")))
    server = claude["mcpServers"]["gistpoint"]
    assert server["args"][-len(words) :] == words
    assert server["timeout"] == (10 + 120) * 1000
    assert server["env"]["GISTPOINT_HOME"]
    codex = tomllib.loads(printed("codex"))["mcp_servers"]["gistpoint"]
    assert (codex["args"][-len(words) :], codex["tool_timeout_sec"]) == (words, 130)
    assert json.loads(printed("vscode"))["servers"]["gistpoint"]["type"] == "stdio"
    assert json.loads(printed("json"))["mcpServers"]["gistpoint"]["args"][-len(words) :] == words
    for client in ("claude", "codex", "vscode", "json"):
        told = printed(client, "--http", "127.0.0.1:8000")
        assert "http://127.0.0.1:8000/mcp" in told
        assert "Bearer" in told or TOKEN in told
        told = printed(client, "--http", "127.0.0.1:8000", "--cert", "c.pem", "--key", "c.key")
        assert "https://127.0.0.1:8000/mcp" in told
    assert not Locations.of_user().attempts.exists()


def test_a_client_in_a_hostile_folder_imports_nothing_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    command = tomllib.loads(configuration("codex", ["--version"], "", 1))["mcp_servers"]["gistpoint"]
    for name in ("argparse", "gistpoint", "json"):
        (tmp_path / f"{name}.py").write_text(f"open('{name}.ran', 'w')\nraise SystemExit(9)\n")
    words = [command["command"], *command["args"]]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not [*tmp_path.glob("*.ran")]


def test_what_a_client_sends_reaches_the_log_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert logging.lastResort is not None
    log_visibly()
    try:
        logging.lastResort.handle(
            logging.LogRecord(
                "mcp", logging.WARNING, "", 1, "Invalid Host header: %s", ("evil\x1b[31m\x9b1m\u202e",), None
            )
        )
    finally:
        logging.lastResort.setFormatter(None)
    said = capsys.readouterr().err
    assert said.startswith("Invalid Host header: evil")
    assert not set("\x1b\x9b\u202e") & set(said)
