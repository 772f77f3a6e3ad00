"""Puts runs of an agent through a cut network, a jumping clock, a full disk and a second runner.

Usage: PYTHONPATH=tests python tests/studies/agent_hardships.py [network|clock|disk|second ...] [--repeats 3]

Needs Debian's faketime for `clock`, and root for `disk`, which mounts a file system of 16 KiB.
Each hardship gets a run of `gistpoint agent run` with prices on a task of the demo, against a scripted
endpoint, and is continued by `gistpoint agent resume` until nothing is left. The endpoint independently
counts the requests that it received and answered. Prints the figures; exit code 1 unless all jobs end as in
an undisturbed run, each call of a reply was made once, no reply was lost or counted twice, and each request
without a reply is in the cost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_clients import script_of
from scripted_endpoint import Answer, completion, endpoint

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.demo.tasks import demo_task
from gistpoint.core.estimates import tokens_in
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.agentruns.figures import FiguresOfRun, figures_of
from gistpoint.sessions.agentruns.store import AgentRunStore
from gistpoint.sessions.attempts import AttemptStore

NAME = "hard"
MOST_PROCESSES = 40
LOOKS = 4
CALLS = 2 * LOOKS + 1
"""The calls of an attempt; more if a submission exceeds its time limit on a busy machine."""
SMALL_DISK_KIB = 16


@dataclass
class Script:
    """A scripted model that looks around four times, then submits the right code; it can drop requests."""

    task: Task
    delay: float = 0.05
    cut: float = 0.0
    """The share of the requests that are read and not answered."""
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    answered: int = 0
    dropped_tokens: int = 0
    """The estimated tokens of requests that were read and not answered."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: dict[str, Any], headers: Mapping[str, str]) -> Answer:
        time.sleep(self.delay)
        looks = [("list_directory", {}), ("list_file_functions", {"file_path": "README.md"})]
        last = script_of(self.task)[-1]
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        with self.lock:
            if self.chance.random() < self.cut:
                rows = [{**row} for row in request["messages"]]
                self.dropped_tokens += tokens_in(
                    len(json.dumps({"messages": rows, "tools": request["tools"]}))
                )
                return Answer(b"", cut=0, headers={"Connection": "close"})
            self.answered += 1
        usage = {"prompt_tokens": 1_000, "completion_tokens": 10}
        return completion("I look.", *(looks if turn < LOOKS else last), usage=usage)


@dataclass(frozen=True)
class Found:
    """The state of a run after a hardship."""

    processes: int
    figures: FiguresOfRun
    states: Sequence[AttemptState]
    requests: int
    answered: int
    dropped_tokens: int

    def faults(self, undisturbed: FiguresOfRun) -> list[str]:
        """Return the deviations from an undisturbed run."""
        totals, before = self.figures.totals, undisturbed.totals
        faults = []
        if (totals.ended, totals.left) != (before.ended, before.left):
            faults.append(f"{totals.ended} ended, {totals.left} left")
        if totals.solved != before.solved:
            faults.append(f"solved {totals.solved}")
        if any(row.calls != CALLS for row in self.figures.attempts):
            faults.append(f"calls {[row.calls for row in self.figures.attempts]}")
        for state in self.states:
            made = Counter(call.turn for call in state.calls if call.requested)
            asked = {turn.turn: len(turn.tool_calls) for turn in state.turns}
            faults += [
                f"turn {turn} made {count} calls" for turn, count in made.items() if count > asked[turn]
            ]
        replies = sum(len(state.turns) for state in self.states)
        if replies > self.answered:
            faults.append(f"{replies} replies in journals, {self.answered} sent")
        if replies * 1_000 != totals.prompt_tokens:
            faults.append(f"{totals.prompt_tokens} tokens sent of {replies} replies")
        has_lost = self.answered > replies or self.dropped_tokens > 0
        if has_lost and totals.lost_tokens < self.dropped_tokens:
            faults.append(f"{totals.lost_tokens} tokens counted as lost, of {self.dropped_tokens}")
        if not has_lost and totals.lost_tokens:
            faults.append(f"{totals.lost_tokens} tokens counted as lost, of none")
        cost = (totals.prompt_tokens + 2 * totals.completion_tokens + totals.lost_tokens) / 1e6
        if totals.cost_usd is None or abs(totals.cost_usd - cost) > 1e-9:
            faults.append(f"cost {totals.cost_usd}, not {cost}")
        return faults

    def __str__(self) -> str:
        totals = self.figures.totals
        return (
            f"{self.processes} processes, {self.requests} requests, {self.answered} answered,"
            f" {sum(len(state.turns) for state in self.states)} replies in journals,"
            f" {totals.lost_tokens} tokens counted as lost (witness: {self.dropped_tokens}),"
            f" {totals.retried} sent again, {totals.ended} of {totals.jobs} ended, cost {totals.cost_usd}"
        )


class Trial:
    """One run in a separate home."""

    def __init__(self, folder: Path, repeats: int, **script: Any) -> None:
        self.home = folder
        self.locations = Locations(folder / "data", folder / "config", folder / "cache")
        self.repeats = repeats
        self.script = Script(demo_task("dear-tickets", self.locations.demo), **script)
        self.processes = 0

    def start(self, url: str, *before: str) -> subprocess.Popen[str]:
        """Begin the run in a process, or continue it."""
        begun = (self.locations.runs / NAME / "run.toml").exists()
        begin = ["run", "--demo", "dear-tickets", "--model", "m", "--name", NAME, "--price", "1/2"]
        begin += ["--repeats", str(self.repeats), "--at-once", "2"]
        words = ["resume", NAME] if begun else begin
        self.processes += 1
        known = {"GISTPOINT_HOME": str(self.home), "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "scripted"}
        return subprocess.Popen(
            [*before, sys.executable, "-m", "gistpoint", "agent", *words],
            env={**os.environ, **known}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def finish(self, url: str, *before: str) -> None:
        """Continue the run until nothing is left, with at most `MOST_PROCESSES` processes in all."""
        while self.processes < MOST_PROCESSES:
            process = self.start(url, *before)
            printed, _ = process.communicate()
            if process.returncode == 0:
                return
            if process.returncode != 1:
                print(printed[-800:])

    def found(self, requests: int) -> Found:
        run = AgentRunStore(self.locations.runs).open(NAME)
        attempts = AttemptStore(self.locations.attempts, SystemTime(), "")
        states = [attempts.summary(state.attempt).state for state in run.jobs.values()]
        figures = figures_of(run, attempts)
        script = self.script
        return Found(self.processes, figures, states, requests, script.answered, script.dropped_tokens)


def undisturbed(trial: Trial, url: str) -> None:
    trial.finish(url)


def network(trial: Trial, url: str) -> None:
    """Continue the run until nothing is left; about a third of its requests are dropped (`SETTINGS`)."""
    trial.finish(url)


def clock(trial: Trial, url: str) -> None:
    """Kill processes with clocks an hour ahead, a day behind, and 3,600 times too fast; then continue."""
    for offset in ("+1h", "-1d", "+0 x3600"):
        process = trial.start(url, "faketime", "-f", offset)
        time.sleep(12)
        process.kill()
        process.communicate()
    trial.finish(url)


def disk(trial: Trial, url: str) -> None:
    """Run until the attempts fill a small disk, copy them to a large one, and continue there."""
    data = trial.locations.attempts
    data.mkdir(parents=True, exist_ok=True)
    with small_disk(data):
        process = trial.start(url)
        printed, _ = process.communicate()
        print("  with a full disk:", process.returncode, printed[-1_500:])
        kept = trial.home / "kept"
        shutil.copytree(data, kept, ignore=shutil.ignore_patterns("ballast"))
    shutil.copytree(kept, data, dirs_exist_ok=True)
    trial.finish(url)


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """Mount a small file system at a place, with room for the beginning of a run."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_KIB}k", "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


def second(trial: Trial, url: str) -> None:
    """Start a second process on the run while the first works, and continue the run after both."""
    first = trial.start(url)
    while not (trial.locations.runs / NAME / "run.toml").exists():
        time.sleep(0.1)
    other = trial.start(url)
    printed, _ = other.communicate()
    print("  second process:", other.returncode, printed.strip().splitlines()[-1:])
    first.communicate()
    trial.finish(url)


HARDSHIPS = {"network": network, "clock": clock, "disk": disk, "second": second}
SETTINGS: Mapping[str, Mapping[str, Any]] = {"network": {"cut": 0.35}, "clock": {"delay": 0.8}}


def tried(name: str, repeats: int) -> Found:
    """Make a run under a hardship, or undisturbed for any other name, and return its final state."""
    act = HARDSHIPS.get(name, undisturbed)
    with tempfile.TemporaryDirectory(prefix=f"hard-{name}-") as folder:
        trial = Trial(Path(folder), repeats, **SETTINGS.get(name, {}))
        with endpoint(trial.script) as served:
            act(trial, served.url)
            return trial.found(len(served.requests))


def main() -> int:
    """Try the hardships, and print the findings; return 1 if one has a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hardships", nargs="*", default=list(HARDSHIPS))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    before = tried("nothing", options.repeats)
    print(f"nothing: {before}, {before.faults(before.figures) or 'sound'}", flush=True)
    failed = False
    for name in options.hardships:
        found = tried(name, options.repeats)
        faults = found.faults(before.figures)
        failed |= bool(faults)
        print(f"{name}: {found}, {faults or 'sound'}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
