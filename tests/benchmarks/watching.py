"""Measures the costs of watching a run: processor time per minute, and memory.

A run of many jobs with long journals is written; most attempts have ended, and some get an event now and then
while they are watched. The screen runs without a terminal, so only its own work is measured.

usage: python tests/benchmarks/watching.py [JOBS] [SECONDS] [CHECKOUT]

With CHECKOUT, a folder with a `.venv`, the same journals are watched by that version too, and the ratio of the
two is printed.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

SIZE = (160, 48)
AT_WORK = 4
WATCHES = "--watch"
"""The argument with which this program starts itself to watch."""
CALLS = 60
"""The number of calls in each journal."""
ANSWER = "x = 1  # a line of a file\n" * 400
"""The text of an answer, 10 kB."""


def write(home: Path, jobs: int) -> None:
    """Write a run of this many jobs, of which the last few have not ended."""
    from agent_runs import Home
    from scripted_endpoint import reply

    from gistpoint.sessions.agentruns.jobs import JobAttempt, JobEnded

    own = Home(home, script=(reply(("list_directory", {})), *[reply(("read_file", {"file_path": "x"}))] * 2))
    task = own.task(1)
    own.work(own.run(task, name="seed"))
    seed = next(iter(own.runs.open("seed").jobs.values())).attempt
    lines = (own.attempts.folder(seed) / "journal.jsonl").read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    own_kinds = ("tool_call", "tool_result", "model_turn", "attempt_ended")
    head = [event for event in events if event["type"] not in own_kinds]
    run = own.run(task, repeats=jobs, name="r")
    operations = []
    for number, job in enumerate(run.jobs.values()):
        name = f"{number:020d}"
        folder = own.attempts.root / name
        folder.mkdir()
        body = [*head, *(event for call in range(CALLS) for event in exchange(call))]
        if number < jobs - AT_WORK:
            body.append({"type": "attempt_ended", "data": {"reason": "calls_exhausted"}})
        numbered(folder / "journal.jsonl", body, job.job.key)
        operations.append(JobAttempt(job=job.job.key, attempt=name))
        if number < jobs - AT_WORK:
            operations.append(JobEnded(job=job.job.key, reason="calls_exhausted"))
    run.append(operations)


def exchange(call: int) -> list[dict[str, object]]:
    """Return the events of a turn with one call and its answer."""
    usage = {"prompt": 1000 + call, "completion": 50}
    turn = {"turn": call + 1, "content": "Let me see.", "usage": usage, "latency_ms": 900}
    asked = {"call_id": f"call-{call}", "turn": call + 1, "tool": "read_file"}
    budget = {"tool_uses": max(0, 100 - call), "submissions": 4}
    answer = {"call_id": f"call-{call}", "text": ANSWER, "budget": budget, "duration_ms": 3}
    return [
        {"type": "model_turn", "data": turn},
        {"type": "tool_call", "data": {**asked, "arguments": {"file_path": "x.py"}}},
        {"type": "tool_result", "data": answer},
    ]


def numbered(path: Path, events: list[dict[str, object]], job: str = "", first: int = 1) -> None:
    """Append events with the current time to a journal."""
    with path.open("a", encoding="utf-8") as file:
        for number, event in enumerate(events, start=first):
            data = event["data"]
            if event["type"] == "attempt_started" and job and isinstance(data, dict):
                data = {**data, "solver": {"run": "r", "job": job}}
            now = {"utc_ms": time.time_ns() // 1_000_000, "mono_ms": time.monotonic_ns() // 1_000_000}
            file.write(json.dumps({**event, "data": data, "seq": number, "prev": "0" * 64, **now}) + "\n")


def grow(home: Path, until: float) -> None:
    """Append a turn to each attempt at work every two seconds."""
    folders = sorted((home / "attempts").iterdir())[-AT_WORK - 1 : -1]
    folders = [folder for folder in folders if folder.name.isdigit()]
    call = CALLS
    while time.monotonic() < until:
        for folder in folders:
            numbered(folder / "journal.jsonl", exchange(call), first=10_000 + 3 * call)
        call += 1
        time.sleep(2)


async def watch(seconds: float) -> dict[str, float]:
    """Watch the run for a number of seconds; return the costs. Called in a separate process."""
    from fcntl import LOCK_EX, flock

    from gistpoint.core.locations import Locations
    from gistpoint.sessions.agentruns.store import AgentRunStore
    from gistpoint.tui.agent_watch_app import AgentWatchApp

    locations = Locations.of_user()
    run = AgentRunStore(locations.runs).open("r")
    app = AgentWatchApp(locations, run=run, services=lambda: None)  # type: ignore[arg-type, return-value]
    with (locations.runs / "r" / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        async with app.run_test(size=SIZE) as pilot:
            begun = time.process_time()
            for _ in range(600):
                await asyncio.sleep(0.1)
                if any("calls_exhausted" in line or "tool uses used up" in line for line in _lines(app)):
                    break
            assert any("at work" in line for line in _lines(app)), "the lock of the run is not seen"
            opened = time.process_time() - begun
            at_first = _resident()
            before, start = time.process_time(), time.monotonic()
            await asyncio.sleep(seconds)
            spent = (time.process_time() - before) / (time.monotonic() - start) * 60
            await pilot.pause()
    return {"opening": opened, "a_minute": spent, "resident": _resident(), "grown": _resident() - at_first}


def _lines(app: object) -> list[str]:
    return [strip.text for strip in app.screen._compositor.render_strips()]  # type: ignore[attr-defined]


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def main(jobs: int, seconds: float, other: str) -> None:
    """Measure this checkout and, if there is one, another, and print the costs."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "data"
        os.environ["GISTPOINT_HOME"] = name
        write(home, jobs)
        found = []
        for python in (sys.executable, *([f"{other}/.venv/bin/python"] if other else [])):
            growing = threading.Thread(target=grow, args=(home, time.monotonic() + seconds + 20), daemon=True)
            growing.start()
            words = [python, __file__, WATCHES, str(seconds)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
            growing.join()
            print(
                "opening {opening:.2f} s, {a_minute:.2f} s a minute of processor time, {resident:.0f} MB"
                " resident, {grown:+.1f} MB while watched".format(**found[-1])
            )
        if len(found) == 2:
            ratio = found[0]["a_minute"] / found[1]["a_minute"]
            print(f"processor time a minute, this to the other: {ratio:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == [WATCHES]:
        print(json.dumps(asyncio.run(watch(float(sys.argv[2])))))
    else:
        words = [*sys.argv[1:4], *["200", "30", ""][len(sys.argv) - 1 :]]
        main(int(words[0]), float(words[1]), words[2])
