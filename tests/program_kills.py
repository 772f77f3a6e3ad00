"""Kills the real program with SIGKILL in the middle of an attempt, in a terminal or by lines, and goes on with it.

What was acknowledged is what the program has shown: an answer on standard output, budgets on the screen, and what was
typed longer ago than drafts may take to be written.
"""

from __future__ import annotations

import json
import os
import random
import re
import selectors
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from e2e.terminal import Terminal

from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.tasks.folder import read_answer
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import visible
from gistpoint.sessions.journal import JOURNAL, read_journal

DRAFT_S = 0.3
"""What was typed so long ago is on the disk."""
_LEFT = re.compile(rb"^\[\d+ tool uses? and \d+ submissions? left\]\n", re.MULTILINE)
_BUDGETS = re.compile(r"tool uses (\d+)/\d+.*submissions (\d+)/\d+")
_WAIT_S = 90.0


@dataclass
class Killed:
    """What a series of kills showed."""

    mode: str
    kills: int = 0
    attempts: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    """Acknowledged answers and budgets that the journal does not have."""
    pending: int = 0
    """Kills while a call was under way."""
    drafts: int = 0
    drafts_lost: list[str] = field(default_factory=list)
    """Words typed longer ago than drafts may take that the journal does not have."""
    solved: int = 0

    def __str__(self) -> str:
        drafts = f"; {self.drafts} drafts, {len(self.drafts_lost)} lost {self.drafts_lost}" if self.drafts else ""
        return (
            f"{self.mode}: {self.kills} kills in {self.attempts} attempts ({self.solved} solved), {self.pending} of them "
            f"during a call; {self.acknowledged} acknowledged, {len(self.lost)} lost {self.lost}{drafts}"
        )


def environment(home: Path) -> dict[str, str]:
    """The environment of the program, with a home of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    source = str(Path(__file__).parents[1] / "src")
    more = {"GISTPOINT_HOME": str(home), "PYTHONPATH": source, "TEXTUAL_ANIMATIONS": "none", "LANG": "C.UTF-8"}
    return {**kept, **more}


def script(task: Task) -> list[tuple[str, dict[str, str]]]:
    """Calls that look around, are refused, submit something wrong and then what is right."""
    target = read_answer(task).targets[0]
    return [
        ("list_directory", {}),
        ("search_code", {"pattern": r"def \w+"}),
        ("read_file", {"file_path": "../outside"}),
        ("submit_attempt", {"func_code": target.corrupted}),
        ("read_file", {"file_path": target.path}),
        ("submit_attempt", {"func_code": target.corrupted.replace("pass", "return []")}),
        ("list_file_functions", {"file_path": target.path}),
        ("submit_attempt", {"func_code": target.original}),
    ]


def kill_programs(home: Path, task: Task, kills: int, *, mode: str, seed: int) -> Killed:
    """Kill attempts of `task`, in the mode `lines` or `terminal`, until there were `kills`; each is brought to its end."""
    chance, killed = random.Random(seed), Killed(mode)
    run = _by_lines if mode == "lines" else _in_terminal
    while killed.kills < kills:
        killed.attempts += 1
        attempt = ""
        while True:
            attempt = run(home, task, attempt, chance if killed.kills < kills else None, killed)
            state = _state(home, attempt)
            if state.ended:
                break
        killed.solved += state.solved
    return killed


def _state(home: Path, attempt: str) -> AttemptState:
    """The state of an attempt, whose journal is whole and not behind its head."""
    if not attempt:
        return AttemptState()
    content = read_journal(home / "data" / "attempts" / attempt / JOURNAL)
    assert content.fault == "", content.fault
    assert content.kept is not None
    assert content.kept.since == 1
    return fold(content.events)


def _newest(home: Path) -> str:
    folder = home / "data" / "attempts"
    names = [path.parent.name for path in folder.glob(f"*/{JOURNAL}")] if folder.is_dir() else []
    return max(names, default="")


def _died(home: Path, before: str, killed: Killed, *, by_us: bool) -> tuple[str, AttemptState]:
    """The attempt that a process leaves, the one before if it began none."""
    attempt = before or _newest(home)
    if attempt and not read_journal(home / "data" / "attempts" / attempt / JOURNAL).events:
        return "", AttemptState()
    state = _state(home, attempt)
    killed.kills += by_us
    killed.pending += by_us and state.pending is not None
    return attempt, state


# By lines


def _by_lines(home: Path, task: Task, attempt: str, chance: random.Random | None, killed: Killed) -> str:
    """Run one process; returns the attempt. It is killed some time after an answer, or left to end."""
    number = len(_state(home, attempt).calls)
    command = [
        sys.executable,
        "-m",
        "gistpoint",
        "solve",
        attempt or task.id,
        "--lines",
        *([] if attempt else ["--new"]),
    ]
    process = subprocess.Popen(
        command, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    doomed = chance.randint(0, 4) if chance else -1
    answers: list[str] = []
    for tool, arguments in script(task)[number:]:
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps({"tool": tool, "arguments": arguments}).encode() + b"\n")
            process.stdin.flush()
        seconds = chance.uniform(0, 0.5 + 2.0 * (not answers)) if chance and len(answers) == doomed else _WAIT_S
        answer = _answer(process.stdout, time.monotonic() + seconds)
        if answer is None:
            break
        answers.append(answer)
    else:
        process.stdin.close()
        process.wait(_WAIT_S)
    by_us = process.poll() is None
    process.kill()
    process.wait()
    process.stdout.close()
    attempt, state = _died(home, attempt, killed, by_us=by_us)
    killed.acknowledged += len(answers)
    for at, answer in enumerate(answers, start=number):
        text = visible(state.calls[at].text or "") if at < len(state.calls) else None
        if text is None or not answer.endswith(f"{text}\n"):
            killed.lost.append(f"{attempt} call {at + 1}")
    return attempt


def _answer(stream: IO[bytes], until: float) -> str | None:
    """Read until an answer has ended; None if it does not in time."""
    found = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while selector.select(max(0.0, until - time.monotonic())):
            data = os.read(stream.fileno(), 1 << 16)
            found += data
            if _LEFT.search(found):
                return found.decode("utf-8")
            if not data:
                return None
    return None


# In a terminal


def _in_terminal(home: Path, task: Task, attempt: str, chance: random.Random | None, killed: Killed) -> str:
    """Run one process on a screen; returns the attempt. It is killed in the middle of what a person does, or at its end."""
    before = _state(home, attempt)
    command = [sys.executable, "-m", "gistpoint", "solve", attempt or task.id]
    seen: list[tuple[int, int]] = []
    typed: list[tuple[float, str]] = []
    steps = chance.randint(0, 3) if chance else -1
    with Terminal(command, environment=environment(home), columns=120, rows=40) as terminal:
        try:
            _work(terminal, task, before, attempt, seen, typed, chance, steps)
        except AssertionError:
            if terminal.exit_code is None and not chance:
                raise
        by_us = terminal.exit_code is None
        died = time.monotonic()
        terminal.kill()
    attempt, state = _died(home, attempt, killed, by_us=by_us)
    left = (state.remaining.tool_uses, state.remaining.submissions)
    killed.acknowledged += len(seen)
    killed.lost += [f"{attempt}: {shown} was shown, {left} is there" for shown in seen if state.events and left > shown]
    old = [word for at, word in typed if died - at >= DRAFT_S]
    killed.drafts += len(old)
    killed.drafts_lost += [word for word in old if word not in state.notes]
    return attempt


def _work(
    terminal: Terminal,
    task: Task,
    before: AttemptState,
    attempt: str,
    seen: list[tuple[int, int]],
    typed: list[tuple[float, str]],
    chance: random.Random | None,
    steps: int,
) -> None:
    """Do what is left of the script, `steps` of it before the process is killed some time later."""
    terminal.wait_for(r"tool uses \d+/\d+|not ended", seconds=_WAIT_S)
    if "not ended" in terminal.text:
        terminal.press("down", "enter")
        terminal.wait_for(r"tool uses \d+/\d+", seconds=_WAIT_S)
    terminal.settle()
    number = len(before.calls)
    for done, (tool, arguments) in enumerate(script(task)[number:]):
        _see(terminal, seen)
        uses = seen[-1][0] if seen else 0
        if chance is not None and chance.random() < 0.5:
            _type_note(terminal, f"word{chance.randrange(10**9)}", typed)
        if "func_code" in arguments:
            _submit(terminal, arguments["func_code"])
        else:
            terminal.press("f5")
            terminal.wait_for(r"\[F5 Console\]", seconds=_WAIT_S)
            terminal.type(" ".join([tool, *arguments.values()]))
            terminal.press("enter")
        if chance is not None and done == steps:
            _pump_for(terminal, chance.uniform(0, 1.5))
            _see(terminal, seen)
            return
        terminal.wait_for(rf"tool uses (?!{uses}/)\d+/\d+|score \d", seconds=_WAIT_S)
    _see(terminal, seen)


def _type_note(terminal: Terminal, word: str, typed: list[tuple[float, str]]) -> None:
    terminal.press("f8")
    terminal.wait_for(r"\[F8 Notes\]", seconds=_WAIT_S)
    terminal.type(f"{word} ")
    terminal.wait_for(word, seconds=_WAIT_S)
    typed.append((time.monotonic(), word))


def _submit(terminal: Terminal, code: str) -> None:
    terminal.press("f6")
    terminal.wait_for(r"\[F6 Editor\]", seconds=_WAIT_S)
    for key in ("alt+a", "delete"):
        terminal.press(key)
        terminal.settle()
    terminal.paste(code)
    terminal.settle()
    terminal.press("f9")
    terminal.wait_for("Submit and run the tests", seconds=_WAIT_S)
    terminal.press("enter")
    terminal.wait_for("Submit and run the tests", gone=True, seconds=_WAIT_S)


def _see(terminal: Terminal, seen: list[tuple[int, int]]) -> None:
    if found := _BUDGETS.search(terminal.text):
        seen.append((int(found[1]), int(found[2])))


def _pump_for(terminal: Terminal, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        terminal._pump(0.02)
