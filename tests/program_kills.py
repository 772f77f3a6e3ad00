"""Kills the real program with SIGKILL during an attempt, in a terminal or in line mode, and resumes it.

An answer on standard output and the budgets on the screen count as acknowledged, and so does text that was
typed longer ago than writing a draft may take.
"""

from __future__ import annotations

import json
import os
import random
import re
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from e2e.terminal import Terminal
from warm_homes import warmed

from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import visible
from gistpoint.sessions.journal import JOURNAL, read_journal

DRAFT_S = 0.3
"""Seconds after which typed text must be on disk."""
_LEFT = re.compile(rb"^\[\d+ tool uses? and \d+ submissions? left\]\n", re.MULTILINE)
_BUDGETS = re.compile(r"◆ (\d+) [^▶]*▶ (\d+) ")
_SUMMARY = r"True function.*Tests.*Notes"
_WAIT_S = 300.0
_KEPT = ("PATH", "HOME", "LANG", "GISTPOINT_CONFIRM")
"""The variables that the program gets; an attempt can only be killed before its pass is confirmed."""


@dataclass
class Killed:
    """The findings of a series of kills."""

    mode: str
    kills: int = 0
    attempts: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    """Acknowledged answers and budgets that are missing from the journal."""
    pending: int = 0
    """The number of kills during a call."""
    drafts: int = 0
    drafts_lost: list[str] = field(default_factory=list)
    """Words that are missing from the journal, although drafts should have been written by then."""
    solved: int = 0

    def __str__(self) -> str:
        drafts = (
            f"; {self.drafts} drafts, {len(self.drafts_lost)} lost {self.drafts_lost}" if self.drafts else ""
        )
        return (
            f"{self.mode}: {self.kills} kills in {self.attempts} attempts ({self.solved} solved), {self.pending} of "
            f"them during a call; {self.acknowledged} acknowledged, {len(self.lost)} lost {self.lost}{drafts}"
        )


def environment(home: Path) -> dict[str, str]:
    """Return the environment of the program, with `home` as its home."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    source = str(Path(__file__).parents[1] / "src")
    more = {
        "GISTPOINT_HOME": str(warmed(home)),
        "PYTHONPATH": source,
        "TEXTUAL_ANIMATIONS": "none",
        "LANG": "C.UTF-8",
    }
    return {**kept, **more}


def script(task: Task) -> list[tuple[str, dict[str, str]]]:
    """Return calls that look around, are refused, and submit wrong code and then the right code."""
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
    """Kill attempts of `task` until there were `kills`, with the mode `lines` or `terminal`.

    Every attempt is brought to its end.
    """
    chance, killed = random.Random(seed), Killed(mode)
    run = _in_line_mode if mode == "lines" else _in_terminal
    while killed.kills < kills:
        killed.attempts += 1
        attempt = ""
        while not _state(home, attempt).ended:
            attempt = run(home, task, attempt, chance if killed.kills < kills else None, killed)
        killed.solved += _state(home, attempt).solved
    return killed


def _state(home: Path, attempt: str) -> AttemptState:
    """Return the state of an attempt, after checking that its journal is intact and not behind its head."""
    if not attempt:
        return AttemptState()
    content = read_journal(home / "data" / "attempts" / attempt / JOURNAL)
    if content.events:
        assert content.fault == "", content.fault
        assert content.kept is not None
        assert content.kept.since == 1
    return fold(content.events)


def _names(home: Path) -> frozenset[str]:
    return frozenset(path.parent.name for path in (home / "data" / "attempts").glob(f"*/{JOURNAL}"))


def _died(
    home: Path, before: str, known: frozenset[str], killed: Killed, *, by_us: bool
) -> tuple[str, AttemptState]:
    """Return the attempt that a process left, and its state.

    It is the attempt `before`, or the one that the process began; its name is empty if there is none.
    """
    attempt = before or next((name for name in _names(home) - known if _state(home, name).events), "")
    state = _state(home, attempt)
    killed.kills += by_us
    killed.pending += by_us and state.pending is not None
    return attempt, state


# In line mode


def _in_line_mode(home: Path, task: Task, attempt: str, chance: random.Random | None, killed: Killed) -> str:
    """Run one process and return its attempt; it is killed some time after an answer, or left to end."""
    number, known = len(_state(home, attempt).calls), _names(home)
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
        command,
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    doomed = chance.randint(0, 4) if chance else -1
    answers: list[str] = []
    for tool, arguments in script(task)[number:]:
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps({"tool": tool, "arguments": arguments}).encode() + b"\n")
            process.stdin.flush()
        last = chance is not None and len(answers) == doomed
        seconds = chance.uniform(0, 0.5 if answers else 2.5) if chance and last else _WAIT_S
        answer, ended = _answer(process.stdout, time.monotonic() + seconds)
        if answer is not None:
            answers.append(answer)
        if last or ended:
            break
        assert answer is not None, "no answer in time"
    with suppress(BrokenPipeError):
        process.stdin.close()
    if doomed < 0 or len(answers) < doomed:
        process.wait(_WAIT_S)
    process.kill()
    by_us = process.wait() == -signal.SIGKILL
    process.stdout.close()
    attempt, state = _died(home, attempt, known, killed, by_us=by_us)
    killed.acknowledged += len(answers)
    for at, answer in enumerate(answers, start=number):
        text = visible(state.calls[at].text or "") if at < len(state.calls) else None
        if text is None or not answer.endswith(f"{text}\n"):
            killed.lost.append(f"{attempt} call {at + 1}")
    return attempt


def _answer(stream: IO[bytes], until: float) -> tuple[str | None, bool]:
    """Read until an answer has ended; return it, and whether the program has ended.

    The answer is None if it does not arrive in time.
    """
    found = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while selector.select(max(0.0, until - time.monotonic())):
            data = os.read(stream.fileno(), 1 << 16)
            found += data
            if _LEFT.search(found):
                return found.decode("utf-8"), False
            if not data:
                return None, True
    return None, False


# In a terminal


def _in_terminal(home: Path, task: Task, attempt: str, chance: random.Random | None, killed: Killed) -> str:
    """Run one process on a screen and return its attempt; it is killed during the work, or at its end."""
    known, before = _names(home), _state(home, attempt)
    command = [sys.executable, "-m", "gistpoint", "solve", attempt or task.id]
    person = _Person(chance, resumes=before.pending is not None)
    with Terminal(command, environment=environment(home), columns=120, rows=40) as terminal:
        person.work(terminal, script(task)[len(before.calls) :])
        died = time.monotonic()
        terminal.kill()
    assert terminal.exit_code == -signal.SIGKILL, terminal.text
    attempt, state = _died(home, attempt, known, killed, by_us=chance is not None)
    left = (state.remaining.tool_uses, state.remaining.submissions)
    killed.acknowledged += len(person.seen)
    killed.lost += [
        f"{attempt}: {shown} was shown, {left} is there"
        for shown in person.seen
        if not state.events or left > shown
    ]
    old = [word for at, word in person.typed if died - at >= DRAFT_S]
    killed.drafts += len(old)
    killed.drafts_lost += [word for word in old if word not in state.notes]
    return attempt


class _Person:
    """A user who carries out the rest of a script at a terminal, and reads the screen."""

    def __init__(self, chance: random.Random | None, *, resumes: bool) -> None:
        """`resumes` says whether the attempt was left during a call, which the program answers first."""
        self._chance, self._resumes = chance, resumes
        self.seen: list[tuple[int, int]] = []
        """The remaining tool uses and submissions, as shown."""
        self.typed: list[tuple[float, str]] = []
        """Words in the notes, each with the time when it was on the screen."""

    def work(self, terminal: Terminal, calls: list[tuple[str, dict[str, str]]]) -> None:
        """Carry out all calls, or some of them and then watch the screen for a moment."""
        chance = self._chance
        last = chance.randint(0, 3) if chance else -1
        terminal.wait_for(_BUDGETS.pattern)
        if self._resumes:
            terminal.settle()
            terminal.wait_for("Esc cancels", gone=True)
        self._look(terminal)
        for number, (tool, arguments) in enumerate(calls):
            if chance is not None and chance.random() < 0.5:
                self._write_note(terminal, f"word{chance.randrange(10**9)}")
            if "func_code" in arguments:
                _submit(terminal, arguments["func_code"])
            else:
                _call(terminal, " ".join([tool, *arguments.values()]))
            if chance is not None and number == last:
                break
            self._await_answer(terminal)
        if chance is not None:
            terminal.watch(chance.uniform(0, 1.5))
            self._look(terminal)

    def _await_answer(self, terminal: Terminal) -> None:
        """Wait until an answer has arrived, in which case less is left than before."""
        uses, submissions = ("|".join(map(str, range(left))) for left in self.seen[-1])
        terminal.wait_for(rf"{_SUMMARY}|◆ (?:{uses}) |▶ (?:{submissions}) ")
        self._look(terminal)

    def _look(self, terminal: Terminal) -> None:
        if found := _BUDGETS.search(terminal.text):
            self.seen.append((int(found[1]), int(found[2])))

    def _write_note(self, terminal: Terminal, word: str) -> None:
        terminal.press("f8")
        terminal.wait_for(r"\[F8 Notes\]")
        terminal.type(f"{word} ")
        terminal.wait_for(word)
        self.typed.append((time.monotonic(), word))


def _call(terminal: Terminal, line: str) -> None:
    terminal.press("f5")
    terminal.settle()
    terminal.type(line)
    terminal.press("enter")


def _submit(terminal: Terminal, code: str) -> None:
    terminal.press("f6")
    terminal.wait_for(r"\[F6 Editor\]")
    for key in ("alt+a", "delete"):
        terminal.press(key)
        terminal.settle()
    terminal.paste(code)
    terminal.settle()
    terminal.press("f9")
    terminal.wait_for("Submit and run the tests")
    terminal.press("enter")
    terminal.wait_for("Submit and run the tests", gone=True)
