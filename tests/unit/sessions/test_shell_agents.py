"""SWE-agent and mini-swe-agent: options with several values, errors, refused replies, thoughts, tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gistpoint.sessions.formats.shared.calls import shell_words
from gistpoint.sessions.formats.swe_agent.swe_agent import reports_error
from gistpoint.sessions.records.model import Step, StepKind, parts_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import open_run


def opened(path: Path, value: Any, indent: int | None = 2) -> RunDocument:
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    document = open_run(path)
    document.build()
    return document


def swe_step(
    tmp_path: Path, action: str, *, thought: str = "", response: str = "", observation: str = ""
) -> Step:
    step = {
        "action": action,
        "thought": thought,
        "response": response or thought,
        "observation": observation,
        "state": {},
    }
    return opened(tmp_path / "a.traj", {"trajectory": [step], "info": {}, "environment": "main"}).step(0)


EDITOR = "str_replace_editor"


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        (
            f"{EDITOR} view /a.py --view_range 1030 1074",
            {"command": "view", "path": "/a.py", "view_range": [1030, 1074]},
        ),
        (
            f"{EDITOR} view /a.py --view_range 5 -1",
            {"command": "view", "path": "/a.py", "view_range": [5, -1]},
        ),
        (
            f"{EDITOR} str_replace /a.py --old_str 'x = \"1\"\n' --new_str ''",
            {"command": "str_replace", "path": "/a.py", "old_str": 'x = "1"\n', "new_str": ""},
        ),
        (
            f"{EDITOR} insert /a.py --new_str '--flag is text' --insert_line 7",
            {"command": "insert", "path": "/a.py", "new_str": "--flag is text", "insert_line": 7},
        ),
    ],
)
def test_an_option_keeps_all_its_values(tmp_path: Path, action: str, arguments: dict[str, Any]) -> None:
    assert swe_step(tmp_path, action, thought="I look").calls[0].parsed == arguments


def test_words_are_split_as_a_shell_splits_them_however_long() -> None:
    body = "def f():\n    return 'it''s'\n" * 4000
    assert shell_words(f'create \'{"x" * 9000}\' "a \\"b\\" $c" d\\ e') == [
        "create",
        "x" * 9000,
        'a "b" $c',
        "d e",
    ]
    assert shell_words("don't match") == ["don't", "match"]
    assert len(shell_words(f'edit "{body}"')) == 2


def test_a_thought_stands_once(tmp_path: Path) -> None:
    xml = "<function=bash>\n<parameter=command>ls -a</parameter>\n</function>"
    step = swe_step(
        tmp_path, "ls -a", thought="I look around.", response=f"I look around.\n\n{xml}", observation="x"
    )
    assert (step.thought, step.text) == ("I look around.", "")
    fenced = swe_step(
        tmp_path, "ls -a", thought="I look.", response="DISCUSSION\nI look.\n```\nls -a\n```", observation="x"
    )
    assert fenced.thought == "I look."
    assert "ls -a" not in fenced.text
    other = xml.replace("ls -a", "rm -rf build")
    kept = swe_step(tmp_path, "ls -a", thought="I look.", response=f"I look.\n{other}", observation="x")
    assert "rm -rf build" in kept.text


@pytest.mark.parametrize(
    ("action", "observation"),
    [
        (
            "python a.py",
            'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no',
        ),
        ("frobnicate", "bash: frobnicate: command not found"),
        (f"{EDITOR} view /nowhere", "The path /nowhere does not exist. Please provide a valid path."),
        (
            f"{EDITOR} str_replace /a.py --old_str a --new_str b",
            "No replacement was performed, old_str `a` did not appear.",
        ),
        ("cat nothing", "cat: nothing: No such file or directory"),
    ],
)
def test_what_the_environment_said_flags_an_error(tmp_path: Path, action: str, observation: str) -> None:
    step = swe_step(tmp_path, action, thought="I try", observation=observation)
    assert step.results[0].is_error
    assert "error" in step.flags
    assert "results.is_error" in step.derived


def test_a_file_that_speaks_of_errors_is_none() -> None:
    source = "1 try:\n2     f()\n3 except ValueError: pass\nValueError: raised"
    assert not reports_error(source, StepKind.VIEW)
    assert not reports_error(
        "a.py:3: raise KeyError: x\nb.py:9: Traceback (most recent call last)", StepKind.SEARCH
    )
    assert not reports_error("3 passed in 0.1s", StepKind.TEST)


FORMAT_ERROR = "Please always provide EXACTLY ONE action in triple backticks, found {n} actions."


def mini(replies: list[tuple[str, str]]) -> dict[str, Any]:
    messages: list[Any] = [
        {"role": "system", "content": "You have a shell."},
        {"role": "user", "content": "Fix it"},
    ]
    for reply, answer in replies:
        usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}}
        response = {"model": "m", "choices": [{"message": {"content": reply}}], "usage": usage}
        messages.append({"role": "assistant", "content": reply, "extra": {"response": response}})
        messages.append({"role": "user", "content": answer})
    info = {"mini_version": "1.9", "exit_status": "Submitted"}
    return {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1"}


def fenced(*commands: str) -> str:
    return "I go on.\n" + "\n".join(f"```bash\n{command}\n```" for command in commands)


def test_a_refused_reply_is_no_call(tmp_path: Path) -> None:
    document = opened(tmp_path / "a.traj.json", mini([
        (fenced("ls"), "<returncode>0</returncode>\n<output>a.py</output>"),
        (fenced("sed -i s/a/b/ a.py", "rm a.py"), FORMAT_ERROR.format(n=2)),
        ("I am done.", FORMAT_ERROR.format(n=0)),
    ]))  # fmt: skip
    ran, several, none = (document.step(index) for index in (2, 3, 4))
    assert [call.arguments for call in ran.calls] == ["ls"]
    assert "refused" not in ran.flags
    for step in (several, none):
        assert not step.calls
        assert not step.edits
        assert step.kind is StepKind.ERROR
        assert {"error", "refused"} <= step.flags
        assert step.results[0].is_error
    assert "rm a.py" in several.text


def test_the_last_of_several_commands_that_ran_is_the_call(tmp_path: Path) -> None:
    both = fenced("echo one", "echo two")
    document = opened(
        tmp_path / "a.traj.json", mini([(both, "<returncode>0</returncode>\n<output>two</output>")])
    )
    assert [call.arguments for call in document.step(2).calls] == ["echo two"]


@pytest.mark.parametrize("indent", [2, 4, None])
def test_the_tokens_of_all_replies_are_added_up(tmp_path: Path, indent: int | None) -> None:
    turns = [
        (fenced("ls"), '<returncode>0</returncode>\n<output>"usage": {\n"prompt_tokens": 9}</output>')
    ] * 3
    tokens = opened(tmp_path / "a.traj.json", mini(turns), indent).header.tokens
    assert (tokens.prompt, tokens.completion) == (300, 21)


def test_nested_arguments_are_shown_as_json(tmp_path: Path) -> None:
    todos = [{"content": "fix", "done": True, "note": None}]
    call = {
        "id": "c1",
        "function": {"name": "todo", "arguments": json.dumps({"todos": todos, "title": "plan"})},
    }
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "tool_calls": [call]}]
    step = opened(tmp_path / "chat.json", {"messages": messages}).step(1)
    text = next(text for scope, _, text in parts_of(step) if scope.value == "call")
    assert json.loads(text.partition("todos: ")[2].partition("\ntitle: ")[0]) == todos
    assert "True" not in text
    assert text.endswith("title: plan")
