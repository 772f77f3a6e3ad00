"""Kills runs of agents with SIGKILL at random moments, resumes them, and checks the invariants each time."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_run_child import NAME
from kill_child import script
from scripted_endpoint import Answer, completion, endpoint

from gistpoint.core.attempts.state import fold
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.agentruns.figures import figures_of
from gistpoint.sessions.agentruns.store import AgentRunStore
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import JOURNAL, read_journal

CHILD = Path(__file__).parent / "agent_run_child.py"


@dataclass
class KilledRuns:
    """The findings of a series of kills."""

    kills: int = 0
    attempts: int = 0
    acknowledged: int = 0
    lost: int = 0
    """The number of acknowledged events and operations that were missing afterwards."""
    orphans: int = 0
    """The number of begun attempts that belong to no job."""
    calls: int = 0
    twice: int = 0
    """The number of calls of a reply that were made more than once."""
    requests: int = 0
    requests_undisturbed: int = 0
    replies: int = 0
    """The number of replies in the journals."""
    announced: int = 0
    """The number of requests that were announced, but whose loss or reply was not recorded."""
    counted_as_lost: int = 0
    """The number of requests that are counted as lost."""
    same_figures: bool = False
    wrong_sums: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The sums of the figures that differ from a count of the raw lines, with both values."""
    after: Counter[str] = field(default_factory=Counter)
    """The types of the last acknowledged lines before the kills."""

    @property
    def sound(self) -> bool:
        """Whether nothing was lost or done twice, costs are whole, and figures are those without kills."""
        most = self.requests_undisturbed + self.kills * AT_ONCE
        return (
            not self.lost
            and not self.orphans
            and not self.twice
            and self.same_figures
            and not self.wrong_sums
            and self.requests <= most
            and self.costs_whole
        )

    @property
    def costs_whole(self) -> bool:
        """Whether each request has a reply in a journal or is counted as lost, at most once.

        A request can be announced by a process that is killed before it sends it.
        """
        unsent = self.replies + self.counted_as_lost - self.requests
        return not self.announced and 0 <= unsent <= self.counted_as_lost <= self.kills * AT_ONCE

    def __str__(self) -> str:
        return (
            f"{self.kills} kills over {self.attempts} attempts: {self.acknowledged} acknowledged events and operations,"
            f" {self.lost} lost, {self.orphans} attempts of no job; {self.calls} calls, {self.twice} made twice;"
            f" {self.requests} requests,"
            f" {self.requests_undisturbed} undisturbed, {self.replies} replies recorded,"
            f" {self.counted_as_lost} counted as lost; figures {'equal' if self.same_figures else 'NOT equal'};"
            f" sums {'equal to the raw lines' if not self.wrong_sums else self.wrong_sums};"
            f" last acknowledged before a kill: {dict(self.after.most_common())}"
        )


AT_ONCE = 4


def scripted(tasks: Sequence[Path]) -> Any:
    """Return an endpoint's step whose reply depends only on the conversation.

    Most replies make two calls, some of which are wrong.
    """
    scripts = {}
    for place in tasks:
        task = read_task(place)
        calls = script(task, read_answer(task))
        scripts[task.brief.failing[0].id, bool(task.brief.target)] = calls

    def step(request: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
        messages = request["messages"]
        brief = next(message["content"] for message in messages if message["role"] == "user")
        removed = "submit_attempt" in str(request["tools"])
        calls = next(
            found for (test, target), found in scripts.items() if target is removed and test in brief
        )
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn == 1:
            return completion("Let me think.")  # without a call, so it is asked to continue
        turn -= turn > 1
        return completion(f"turn {turn}", *calls[2 * turn : 2 * turn + 2] or calls[-1:])

    return step


def kill_runs(folder: Path, tasks: Sequence[Path], repeats: int, kills: int, *, seed: int) -> KilledRuns:
    """Run each task `repeats` times; kill the process `kills` times, and let the run end.

    A process lives for about as many lines as it takes to spread the kills over the run.
    """
    chance, found = random.Random(seed), KilledRuns()
    with endpoint(scripted(tasks)) as served:
        straight = _Child(folder / "straight", served.url, tasks, repeats)
        assert straight.live(None, found) == 0
        found.requests_undisturbed = len(served.requests)
        killed = _Child(folder / "killed", served.url, tasks, repeats)
        most_lines = max(2, found.acknowledged // kills)
        found.acknowledged = 0
        while killed.live(chance if found.kills < kills else None, found, most_lines) != 0:
            pass
        found.requests = len(served.requests) - found.requests_undisturbed
    _count(killed.folder, found)
    found.wrong_sums = _wrong_sums(killed.folder)
    found.same_figures = _figures(killed.folder) == _figures(straight.folder)
    return found


@dataclass
class _Child:
    folder: Path
    url: str
    tasks: Sequence[Path]
    repeats: int

    def live(self, chance: random.Random | None, found: KilledRuns, most_lines: int = 1) -> int:
        """Let a process run for a while, or to its end; return its exit status."""
        words = [str(self.folder), self.url, ":".join(map(str, self.tasks)), str(self.repeats), str(AT_ONCE)]
        process = subprocess.Popen([sys.executable, str(CHILD), *words], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines: list[str] = []
        if chance is not None:
            for _ in range(chance.randint(1, most_lines)):
                lines.append(process.stdout.readline())
                if not lines[-1]:
                    break
            time.sleep(chance.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        status = process.wait()
        acks = [line.split() for line in lines if line.endswith("\n")]
        if status == -signal.SIGKILL:
            found.kills += 1
            found.after[(acks[-1][3] if acks[-1][0] == "event" else acks[-1][2]) if acks else "nothing"] += 1
        else:
            assert status == 0, status
        self._check(acks, found)
        return status

    def _check(self, acks: Sequence[Sequence[str]], found: KilledRuns) -> None:
        found.acknowledged += len(acks)
        file = self.folder / "runs" / NAME / "jobs.jsonl"
        noted = Counter(
            (value["job"], f"Job{value['kind'].capitalize()}")
            for value in map(json.loads, _whole_lines(file))
        )
        for line in acks:
            if line[0] == "job":
                found.lost += (line[1], line[2]) not in noted
        events: dict[str, dict[int, tuple[str, str]]] = {}
        for line in acks:
            if line[0] != "event":
                continue
            if line[1] not in events:
                content = read_journal(self.folder / "attempts" / line[1] / JOURNAL)
                found.lost += bool(content.fault)
                events[line[1]] = {e.seq: (e.type, sha256_of_json(e.data.written())) for e in content.events}
            found.lost += events[line[1]].get(int(line[2])) != (line[3], line[4])


def _whole_lines(file: Path) -> list[bytes]:
    data = file.read_bytes() if file.exists() else b""
    return data[: data.rfind(b"\n") + 1].splitlines()


def _count(folder: Path, found: KilledRuns) -> None:
    """Count attempts, orphans, calls, replies, lost requests, and calls that were made twice."""
    run = AgentRunStore(folder / "runs").open(NAME)
    known = {state.attempt for state in run.jobs.values()}
    operations = [json.loads(line)["kind"] for line in _whole_lines(run.folder / "jobs.jsonl")]
    found.counted_as_lost = operations.count("lost")
    found.announced = sum(state.asked is not None for state in run.jobs.values())
    for place in (folder / "attempts").iterdir():
        if not (place / JOURNAL).is_file():
            continue
        state = fold(read_journal(place / JOURNAL).events)
        if not state.started:  # its process died before the first event was on the disk
            continue
        found.attempts += 1
        found.orphans += place.name not in known
        found.calls += len(state.calls)
        found.replies += len(state.turns)
        made = Counter(call.turn for call in state.calls if call.requested)
        asked = {turn.turn: len(turn.tool_calls) for turn in state.turns}
        found.twice += sum(max(0, count - asked[turn]) for turn, count in made.items())


def _wrong_sums(folder: Path) -> dict[str, tuple[float, float]]:
    """Return the sums over a run that differ from a count of the raw lines of its files, with both values."""
    jobs = [json.loads(line) for line in _whole_lines(folder / "runs" / NAME / "jobs.jsonl")]
    places = (folder / "attempts").glob(f"*/{JOURNAL}")
    events = [json.loads(line) for place in places for line in _whole_lines(place)]
    turns = [event["data"] for event in events if event.get("type") == "model_turn"]
    losses = [line for line in jobs if line.get("kind") == "lost"]
    raw = {
        "turns": len(turns),
        "calls": sum(event.get("type") == "tool_call" for event in events),
        "prompt_tokens": sum(turn["usage"]["prompt"] for turn in turns),
        "completion_tokens": sum(turn["usage"]["completion"] for turn in turns),
        "lost_tokens": sum(loss["tokens"] for loss in losses),
        "lost_s": sum(loss["seconds"] for loss in losses),
    }
    run = AgentRunStore(folder / "runs").open(NAME)
    rows = figures_of(run, AttemptStore(folder / "attempts", SystemTime(), "kill")).attempts
    sums = {name: sum(getattr(row, name) or 0 for row in rows) for name in raw}
    return {name: (sums[name], raw[name]) for name in raw if round(sums[name] - raw[name], 6)}


def _figures(folder: Path) -> object:
    """Return the figures that kills must not change: all except times, ids and losses."""
    run = AgentRunStore(folder / "runs").open(NAME)
    figures = figures_of(run, AttemptStore(folder / "attempts", SystemTime(), "kill")).as_json()
    other = {"attempt", "wall_s", "model_s", "endpoint_wait_s", "lost_tokens", "lost_usd", "lost_s"}
    rows = [{name: value for name, value in row.items() if name not in other} for row in figures["attempts"]]
    totals = {name: value for name, value in figures["totals"].items() if name not in other}
    return rows, totals
