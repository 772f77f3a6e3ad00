"""Writes runs in four formats with known problems, in many wordings."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORDS = ("config", "parser", "loader", "index", "cache", "router", "schema", "worker", "client", "store")
GIVING_UP = (
    "I was unable to resolve this.",
    "I give up: the cause is somewhere else.",
    "I could not find the cause of the failure.",
    "I can't fix this without access to the database.",
    "I am giving up on this one.",
    "Stopping here; the problem remains.",
)
ENDINGS = ("Done. The function now divides by the length.", "All set, see the change above.")
DIFF = "diff --git a/src/mean.py b/src/mean.py\n--- a/src/mean.py\n+++ b/src/mean.py\n@@ -1 +1 @@\n-1\n+2\n"


@dataclass(frozen=True)
class Turn:
    """A command of the agent with its output."""

    command: str
    output: str
    code: int = 0
    edits: bool = False


@dataclass
class Planted:
    """A planted run: its turns, and the facts about it."""

    number: int
    turns: list[Turn] = field(default_factory=list)
    cause: str = ""
    """The name of the planted cause; empty if nothing failed."""
    failing: tuple[str, ...] = ()
    tested: bool = False
    edited: bool = False
    looped: bool = False
    gave_up: bool = False
    out_of_budget: bool = False
    answer: str = "text"
    final: str = ""
    path: Path = Path()
    format: str = ""


def _place(draw: random.Random) -> str:
    parts = [draw.choice(WORDS) for _ in range(draw.randint(1, 3))]
    return f"/{draw.choice(['repo', 'testbed', 'home/u', 'tmp/x' + str(draw.randrange(999))])}/{'/'.join(parts)}.py"


def _traceback(draw: random.Random, error: str) -> str:
    frames = "".join(
        f'  File "{_place(draw)}", line {draw.randrange(1, 900)}, in {draw.choice(WORDS)}\n    run({n})\n'
        for n in range(draw.randint(1, 4))
    )
    before = draw.choice(["", "loading ...\n", f"step {draw.randrange(99)} of 100\n"])
    return f"{before}Traceback (most recent call last):\n{frames}{error}\n"


def _hex(draw: random.Random, digits: int = 12) -> str:
    return f"{draw.randrange(16**digits):0{digits}x}"


CAUSES: dict[str, Callable[[random.Random], tuple[str, int]]] = {
    "no module yaml": lambda draw: (_traceback(draw, "ModuleNotFoundError: No module named 'yaml'"), 1),
    "no module lxml": lambda draw: (_traceback(draw, "ModuleNotFoundError: No module named 'lxml'"), 1),
    "missing file": lambda draw: (
        _traceback(draw, f"FileNotFoundError: [Errno 2] No such file or directory: '{_place(draw)}'"), 1
    ),
    "timeout": lambda draw: (
        _traceback(draw, f"TimeoutError: request {_hex(draw)} timed out after {draw.uniform(5, 60):.1f} s"), 1
    ),
    "key": lambda draw: (_traceback(draw, "KeyError: 'user_id'"), 1),
    "rate limit": lambda draw: (
        _traceback(draw, f"openai.RateLimitError: Error code: 429 - request req_{_hex(draw)} was limited"), 1
    ),
    "refused": lambda draw: (
        f"psql: error: connection to server at 10.{draw.randrange(99)}.0.{draw.randrange(99)}, port"
        f" {draw.randrange(1024, 9999)} failed: Connection refused\n", 2
    ),
    "no command": lambda draw: (f"bash: line {draw.randrange(1, 99)}: rg: command not found\n", 127),
    "memory": lambda draw: (
        _traceback(draw, f"MemoryError: Unable to allocate {draw.uniform(2, 90):.1f} GiB for an array"), 1
    ),
    "types": lambda draw: (
        _traceback(draw, "TypeError: unsupported operand type(s) for +: 'int' and 'str'"), 1
    ),
    "compiler": lambda draw: (
        f"cc -c x.c\n{_place(draw)[:-3]}.c:{draw.randrange(999)}:{draw.randrange(80)}: error: expected ';'"
        f" before 'return'\nmake: *** [Makefile:{draw.randrange(99)}: x.o] Error 1\n", 2
    ),
    "killed": lambda draw: ("", 137),
}  # fmt: skip
FAILING = (
    ("tests/test_mean.py::test_empty",),
    ("tests/test_mean.py::test_empty", "tests/test_io.py::test_a[1]"),
)


def planted(number: int, draw: random.Random) -> Planted:
    """Return a run with events that are drawn at random."""
    run = Planted(number)
    look = [
        Turn(f"ls src/{draw.choice(WORDS)}", f"{draw.choice(WORDS)}.py"),
        Turn("cat src/mean.py", "def mean(): 1"),
    ]
    # Reading a log that contains another program's traceback is not a failure.
    look.append(Turn("cat app.log", _traceback(draw, "ValueError: of another program")))
    run.turns = draw.sample(look, draw.randint(1, 3))
    if draw.random() < 0.3:  # an earlier error, which is not the last one
        run.turns.append(Turn("python a.py", *CAUSES[draw.choice(list(CAUSES))](draw)))
        run.cause = "overwritten"
    if draw.random() < 0.7:
        run.edited = True
        run.turns.append(Turn(f"edit {number}", "", edits=True))
    if draw.random() < 0.7 or run.cause:
        run.cause = draw.choice(list(CAUSES))
        output, code = CAUSES[run.cause](draw)
        run.turns.append(Turn(f"python run_{draw.choice(WORDS)}.py", output, code))
    if draw.random() < 0.25:
        run.looped = True
        run.turns += [Turn("git status", f"On branch main\nin 0.{n} s") for n in range(draw.randint(3, 6))]
    if draw.random() < 0.6:
        run.tested = True
        run.failing = draw.choice((*FAILING, ()))
        lines = [f"FAILED {id} - assert {draw.randrange(9)} == 2" for id in run.failing]
        ended = f"{len(lines)} failed, 4 passed" if lines else "5 passed"
        took = f"in {draw.uniform(0.1, 9):.2f}s"
        run.turns.append(
            Turn("python -m pytest -q", "\n".join([*lines, f"{ended} {took}"]), int(bool(lines)))
        )
    ending = draw.random()
    if ending < 0.25:
        run.gave_up, run.final = True, draw.choice(GIVING_UP)
    elif ending < 0.75:
        run.final = draw.choice(ENDINGS)
    else:
        run.answer = "call"
    return run


def mini(run: Planted, draw: random.Random) -> Any:
    """Return a run of mini-swe-agent, which submits a patch, reaches a limit, or ends with a message."""
    messages: list[Any] = [
        {"role": "system", "content": "You fix."},
        {"role": "user", "content": "Fix the mean."},
    ]
    for turn in run.turns:
        command = _written(run) if turn.edits else turn.command
        content, acted = f"THOUGHT: on\n\n```bash\n{command}\n```", {"actions": [{"command": command}]}
        messages += [
            {"role": "assistant", "content": content, "extra": acted},
            {"role": "user", "content": f"<returncode>{turn.code}</returncode>\n<output>\n{turn.output}\n</output>",
             "extra": {"raw_output": turn.output, "returncode": turn.code}},
        ]  # fmt: skip
    info: dict[str, Any] = {
        "exit_status": "Submitted",
        "submission": "",
        "model_stats": {"instance_cost": 0.1},
    }
    info["config"] = {"model": {"model_name": f"m-{run.number % 5}"}}
    if run.answer == "call":
        run.out_of_budget = draw.random() < 0.5
        if run.out_of_budget:
            info["exit_status"] = "LimitsExceeded"
        else:
            info["submission"], run.answer = DIFF, "patch"
    else:
        info["exit_status"] = ""
        messages.append({"role": "assistant", "content": run.final})
    return {
        "info": info,
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": _task(run),
    }


def swe_agent(run: Planted, draw: random.Random) -> Any:
    """Return a run of SWE-agent, whose format does not record whether commands failed."""
    edit = "str_replace_editor str_replace /repo/src/mean.py --old_str 'a' --new_str 'b'"
    steps = [
        {"action": edit if turn.edits else turn.command, "observation": turn.output, "response": "on",
         "thought": "on", "state": {"working_dir": "/repo"}, "execution_time": 0.2, "extra_info": {},
         "query": [{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix the mean."}]}
        for turn in run.turns
    ]  # fmt: skip
    info: dict[str, Any] = {
        "exit_status": "submitted",
        "submission": "",
        "model_stats": {"instance_cost": 0.1},
    }
    run.gave_up, run.final = False, ""
    if draw.random() < 0.5:
        run.answer, info["submission"] = "patch", DIFF
        steps.append({**steps[-1], "action": "submit", "observation": DIFF})
    else:
        run.answer, run.out_of_budget, info["exit_status"] = (
            "call",
            True,
            draw.choice(["exit_cost", "exit_context"]),
        )
    config = json.dumps(
        {"agent": {"model": {"name": f"m-{run.number % 5}"}}, "problem_statement": {"id": _task(run)}}
    )
    return {"trajectory": steps, "history": [], "info": info, "replay_config": config, "environment": "main"}


def chat(run: Planted, draw: random.Random) -> Any:
    """Return messages of OpenAI's API; in half of the runs, every result ends with the exit code."""
    messages: list[Any] = [
        {"role": "system", "content": "You fix."},
        {"role": "user", "content": "Fix the mean."},
    ]
    with_codes = draw.random() < 0.5
    for number, turn in enumerate(run.turns):
        call = {"command": _written(run) if turn.edits else turn.command}
        function = {"name": "bash", "arguments": json.dumps(call)}
        output = f"{turn.output}\n[exit code: {turn.code}]" if with_codes else turn.output
        made = {"id": f"c{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [made]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": output},
        ]  # fmt: skip
    if run.final:
        messages.append({"role": "assistant", "content": run.final})
    return {"messages": messages, "id": _task(run), "model": f"m-{run.number % 5}"}


def claude(run: Planted, draw: random.Random) -> Any:
    """Return the lines of a session of Claude Code, with errors marked as such."""
    common = {"sessionId": f"s{run.number}", "version": "2.0.46", "cwd": "/app", "isSidechain": False}
    lines: list[Any] = []

    def add(kind: str, message: Any) -> None:
        at = f"2025-11-19T22:{len(lines) // 60:02}:{len(lines) % 60:02}Z"
        lines.append({**common, "type": kind, "uuid": f"u{len(lines)}", "timestamp": at, "message": message})

    def reply(block: Any) -> None:
        add(
            "assistant",
            {"id": f"m{len(lines)}", "role": "assistant", "model": f"m-{run.number % 5}", "content": [block]},
        )

    add("user", {"role": "user", "content": f"Fix the mean of {_task(run)}."})
    for number, turn in enumerate(run.turns):
        name = "Edit" if turn.edits else "Bash"
        edit = {"file_path": "/app/mean.py", "old_string": "1", "new_string": "2"}
        given = edit if turn.edits else {"command": turn.command}
        reply({"type": "tool_use", "id": f"t{number}", "name": name, "input": given})
        output = f"Exit code {turn.code}\n{turn.output}" if turn.code else turn.output
        result = {
            "type": "tool_result",
            "tool_use_id": f"t{number}",
            "content": output,
            "is_error": bool(turn.code),
        }
        add("user", {"role": "user", "content": [result]})
    if run.final:
        reply({"type": "text", "text": run.final})
    return lines


WRITERS = {"mini-swe-agent": mini, "swe-agent": swe_agent, "chat": chat, "claude-code": claude}


def _written(run: Planted) -> str:
    return f"cat > src/mean.py <<'EOF'\nreturn {run.number}\nEOF"


def _task(run: Planted) -> str:
    return f"task-{run.number % 40}"


def plant(folder: Path, count: int, seed: int = 7) -> list[Planted]:
    """Write runs in the four formats in turn, and return the facts about each."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        run = planted(number, draw)
        run.format = list(WRITERS)[number % len(WRITERS)]
        content = WRITERS[run.format](run, draw)
        run.path = folder / f"{number:05}.{'jsonl' if isinstance(content, list) else 'json'}"
        text = "\n".join(map(json.dumps, content)) if isinstance(content, list) else json.dumps(content)
        run.path.write_text(text + "\n", encoding="utf-8")
        found.append(run)
    return found
