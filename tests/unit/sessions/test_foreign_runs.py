"""Runs of formats without a reader are refused by name, with a hint, and no other reader takes them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gistpoint.core.errors import NegativeVerdictError
from gistpoint.sessions.records.archives import NoRunError
from gistpoint.sessions.runs.opening import open_run
from gistpoint.tui.cli import main

SAID = {"role": "user", "content": "Fix it"}
VERCEL = {"messages": [{"role": "user", "parts": [{"type": "text", "text": "Fix"}]}]}
VERCEL_RESULT = {
    "text": "x",
    "steps": [{"text": "a", "finishReason": "stop", "toolCalls": [], "toolResults": []}],
}
LANGCHAIN = {"messages": [{"type": "human", "data": {"content": "q"}}]}
RESPONSE = {"object": "response", "id": "r", "output": []}


@pytest.mark.parametrize("name", ["lines", "object", "array"])
@pytest.mark.parametrize(
    ("record", "seems"),
    [
        (VERCEL, "messages in parts"),
        (VERCEL_RESULT, "a result of the Vercel AI SDK"),
        (LANGCHAIN, "messages of LangChain"),
        ({"n_total_trials": 2, "stats": {}}, "the summary of a job of Harbor"),
        (
            {"sessionId": "a", "title": "t", "dateCreated": "0", "workspaceDirectory": "/x"},
            "Continue's list of its sessions",
        ),
        ({"mapping": {"a": {"message": None}}, "current_node": "a"}, "conversations that ChatGPT exported"),
        ({"step_number": 1, "model_output": "x", "tool_calls": []}, "the memory of an agent of smolagents"),
        ({"type": "TeamState", "agent_states": {}}, "the saved state of an agent or a team of AutoGen"),
        (
            {"type": "assistant", "content": "x", "model_id": "m", "model_fingerprint": "f"},
            "a session of Grok",
        ),
        (
            {"step_index": 1, "source": "MODEL", "status": "DONE", "created_at": "t"},
            "a session of Antigravity",
        ),
        (
            {"traceSchema": "openclaw-trajectory", "type": "session.started"},
            "what OpenClaw traced of a session's runs",
        ),
        ({"type": "session_start", "id": "a", "cwd": "/x"}, "a session of Factory's droid"),
        ({"info": {"request_id": "tr-1"}, "data": {"spans": []}}, "a trace of MLflow"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_run_of_another_format_is_refused_by_name(
    tmp_path: Path, record: dict[str, Any], seems: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    lines = f"{json.dumps(record)}\n" * 3
    path.write_text(
        {"lines": lines, "object": json.dumps(record, indent=2), "array": json.dumps([record])}[name]
    )
    for command in (["show", str(path)], ["runs", str(path)], ["convert", str(path), "--to", "atif"]):
        assert main(command) == 1
        error = capsys.readouterr().err
        assert seems in error
        assert "gistpoint has no reader" in error
    with pytest.raises(NoRunError) as caught:
        open_run(path)
    assert caught.value.hint
    assert isinstance(caught.value, NegativeVerdictError)


@pytest.mark.parametrize(
    ("content", "seems"),
    [
        ("----\n## OpenCode Chat Export\n\n- Session ID: ses_1\n", "a Markdown export of opencode"),
        ("interactions:\n- request:\n    uri: x\n", "a cassette of VCR in YAML"),
        (
            '["client.beta.sessions.create", {}]\n',
            "a recording of a client's calls to Anthropic's managed agents",
        ),
        ('{"id": "ses_1", "version": "1.0"}', "a session of opencode without its messages"),
        (("cursorDiskKV", "ItemTable"), "a database of Cursor without a chat"),
        (("ItemTable",), "a database of VS Code's or Cursor's state"),
        (("session", "message", "part"), "a database of opencode without a session, or of another version"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_program_keeps_or_writes_for_others_is_refused_by_name(
    tmp_path: Path, content: str | tuple[str, ...], seems: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a"
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        with closing(sqlite3.connect(path)) as database:
            for table in content:
                database.execute(f"CREATE TABLE {table} (key TEXT, value BLOB)")
    assert main(["show", str(path)]) == 1
    assert f"seems to be {seems}" in capsys.readouterr().err


def test_rows_with_messages_are_read_whatever_stands_beside_them(tmp_path: Path) -> None:
    row = {
        "messages": [SAID, {"role": "assistant", "content": "done"}],
        "test_result": {"git_patch": "diff"},
        "resolved": 1,
    }
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(json.dumps({"instance_id": f"i{n}", **row}) + "\n" for n in range(2)), encoding="utf-8"
    )
    assert main(["runs", str(path)]) == 0
    run = open_run(f"{path}#i1")
    run.build()
    assert (run.header.format, run.step_count) == ("dataset-rows", 2)
    assert (run.header.task, run.header.verdict, run.header.submission) == ("i1", "solved", "diff")


def test_a_file_that_nobody_knows_says_what_it_looks_like(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"speaker": "x", "lines": [1]}), encoding="utf-8")
    assert main(["show", str(path)]) == 1
    assert "it looks like a JSON object with the keys speaker, lines" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "told", "help"),
    [
        (b"just words\n", "text that begins with 'just words'", "--as FORMAT"),
        (b"", "an empty file", "has not begun"),
        (b"a,b,c\n1,2,3\n", "a table with the columns a, b, c", "JSON lines"),
        (b"run: 1\nsteps:\n- a\n", "YAML", "Convert it to JSON"),
        (b"# Notes\n\n- one\n", "Markdown", "--as FORMAT"),
        (b"<!DOCTYPE html><html>", "a page of HTML", "made from"),
        (b"SQLite format 3\0 and so on", "an SQLite database", "Export the conversation"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS", "git lfs pull"),
        ("words".encode("utf-16"), "text that begins with 'words'", "--as FORMAT"),
        (b"\1\2\0\3", "binary data", "--as FORMAT"),
        (b"\0" * 9, "zero bytes", "not written completely"),
        (b"[1, 2]", "a JSON array", "--as FORMAT"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_anything_else_says_what_it_looks_like_and_what_would_help(
    tmp_path: Path, content: bytes, told: str, help: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    for command in ("show", "runs"):
        assert main([command, str(path)]) == 1
        error = capsys.readouterr().err
        assert f"it looks like {told}" in error
        assert help in error
        assert len(error.splitlines()) <= 2
    assert main(["runs", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([], "it does not contain any steps"),
        ([{"role": "narrator", "content": "x"}] * 4, "does not know 4 of its first 4 steps"),
        ([{"role": "narrator", "content": "x"}], "does not know its only step"),
    ],
)
def test_a_file_that_is_taken_without_known_steps_is_doubted(
    tmp_path: Path, messages: list[Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    for command in (["show", str(path)], ["runs", str(path)], ["convert", str(path), "--to", "markdown"]):
        assert main(command) == 1
        error = capsys.readouterr().err
        assert told in error
        assert "looks like a JSON object with the keys messages" in error


def test_a_folder_tells_of_the_runs_that_it_has_no_reader_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.json").write_text(json.dumps({"messages": [SAID, SAID]}), encoding="utf-8")
    (tmp_path / "chain.json").write_text(json.dumps(LANGCHAIN), encoding="utf-8")
    (tmp_path / "notes.json").write_text(json.dumps({"a": 1}), encoding="utf-8")
    assert main(["runs", str(tmp_path)]) == 0
    out, error = capsys.readouterr()
    assert "good.json" in out
    assert "messages of LangChain" in error
    assert "notes.json is in no known format" in error
    assert "2 files not read" in error


def test_a_format_can_be_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    said = {**SAID, "type": "human", "additional_kwargs": {}}
    path.write_text(json.dumps({"messages": [said, said]}), encoding="utf-8")
    commands = (["show", str(path)], ["runs", str(path)], ["search", "Fix", str(path)],
                ["convert", str(path), "--to", "markdown"])  # fmt: skip
    for command in commands:
        assert main(command) == 1
        assert main([*command, "--as", "chat"]) == 0
        assert main([*command, "--as", "inspect"]) != 0
    assert "messages of LangChain" in capsys.readouterr().err
    for command in (*commands, ["review", str(path)]):
        assert main([*command, "--as", "chut"]) == 2
        assert "There is no format 'chut'.\nKnown: " in capsys.readouterr().err
