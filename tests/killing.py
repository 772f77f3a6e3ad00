"""Kills a scripted attempt with SIGKILL at random moments, continues it and checks the invariants."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.events import JournalEvent
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.journal import JOURNAL, read_journal

CHILD = Path(__file__).parent / "kill_child.py"
HEARTBEAT_LIMIT_MS = 5_000


@dataclass
class Figures:
    """The findings of a series of kills."""

    kills: int = 0
    attempts: int = 0
    acknowledged: int = 0
    torn: int = 0
    pending: int = 0
    """The number of kills during a tool call."""
    lost_ms: list[int] = field(default_factory=list)
    """The times between the last event of a process and its death."""
    after: Counter[str] = field(default_factory=Counter)
    """The number of kills by the type of the preceding event."""

    def __str__(self) -> str:
        worst = max(self.lost_ms, default=0)
        return (
            f"{self.kills} kills in {self.attempts} attempts; {self.acknowledged} acknowledged events, none lost; "
            f"{self.torn} torn lines; {self.pending} kills during a tool call; at most {worst} ms of clock lost; "
            f"last events before a kill: {dict(self.after.most_common())}"
        )


def result_of(state: AttemptState) -> dict[str, object]:
    """Return the parts of a state that must be the same with and without kills."""
    return {
        "ending": state.ending.reason if state.ending else None,
        "remaining": state.remaining,
        "calls": [(c.tool, c.text, c.refused, c.remaining) for c in state.calls],
        "submissions": [
            (s.number, s.score, s.solved, s.changed, s.counts, s.failing) for s in state.submissions
        ],
        "notes": state.notes,
        "buffers": state.buffers,
        "knowledge": state.knowledge,
        "replacements": state.replacements,
    }


def kill_often(folder: Path, task: Path, kills: int, *, runner: str, seed: int) -> Figures:
    """Kill attempts at `task` until there were `kills` in all; every attempt is continued to its end."""
    chance, figures = random.Random(seed), Figures()
    wanted = _without_kills(folder / "straight", task, runner)
    while figures.kills < kills:
        figures.attempts += 1
        attempt = folder / f"attempt-{figures.attempts}"
        while not _state(attempt).ended:
            _one_process(attempt, task, runner, chance if figures.kills < kills else None, figures)
        assert result_of(_state(attempt)) == wanted
    return figures


def _without_kills(attempt: Path, task: Path, runner: str) -> dict[str, object]:
    subprocess.run(
        [sys.executable, str(CHILD), str(attempt), str(task), runner], check=True, stdout=subprocess.DEVNULL
    )
    return result_of(_state(attempt))


def _state(attempt: Path) -> AttemptState:
    return fold(read_journal(attempt / JOURNAL).events) if (attempt / JOURNAL).exists() else AttemptState()


def _one_process(
    attempt: Path, task: Path, runner: str, chance: random.Random | None, figures: Figures
) -> None:
    before = _state(attempt)
    process = subprocess.Popen(
        [sys.executable, str(CHILD), str(attempt), str(task), runner], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines: list[str] = []
    if chance is not None:
        for _ in range(chance.randint(1, 14)):
            lines.append(process.stdout.readline())
            if not lines[-1]:
                break
        time.sleep(chance.uniform(0, 0.03))
        process.send_signal(signal.SIGKILL)
    killed_ms = SystemTime().mono_ms()
    lines += process.stdout.readlines()
    status = process.wait()
    if chance is None or status == 0:
        assert status == 0
    else:
        assert status == -signal.SIGKILL
        figures.kills += 1
    _check(
        attempt,
        before,
        [line for line in lines if line.endswith("\n")],
        killed_ms if status else None,
        figures,
    )


def _check(
    attempt: Path, before: AttemptState, acknowledged: list[str], killed_ms: int | None, figures: Figures
) -> None:
    content = read_journal(attempt / JOURNAL)
    assert content.fault == ""
    by_seq = {event.seq: event for event in content.events}
    assert list(by_seq) == list(range(1, len(by_seq) + 1))
    for line in acknowledged:
        seq, type, digest, _ = line.split()
        assert (by_seq[int(seq)].type, sha256_of_json(by_seq[int(seq)].data.written())) == (type, digest)
    figures.acknowledged += len(acknowledged)
    figures.torn += bool(content.torn)
    state = fold(content.events)
    assert state.calls[: len(before.calls) - (before.pending is not None)] == tuple(
        call for call in before.calls if call.text is not None
    )
    assert state.remaining.tool_uses <= before.remaining.tool_uses or not before.events
    assert sum(state.clock.of(activity) for activity in ClockActivity) == _lived_ms(content.events)
    if killed_ms is not None:
        figures.lost_ms.append(max(0, killed_ms - content.events[-1].mono_ms))
        assert figures.lost_ms[-1] <= HEARTBEAT_LIMIT_MS
        figures.pending += state.pending is not None
        figures.after[content.events[-1].type] += 1


def _lived_ms(events: tuple[JournalEvent, ...]) -> int:
    """Return the sum over all processes of the milliseconds between a process's first and last event."""
    total, last = 0, events[0].mono_ms
    for event in events:
        if event.type == "process_started":
            last = event.mono_ms
        total += event.mono_ms - last
        last = event.mono_ms
    return total
