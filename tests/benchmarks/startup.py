"""Times the program from its start to its first text, against an empty Textual app and a bare interpreter.

Prints the wall-clock time and, for the screens, processor time, which a busy machine changes less.

The frame of an attempt or a run is drawn at once. The brief appears with the clock, after the isolation has
been probed.

usage: python tests/benchmarks/startup.py [RUNS]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from e2e.terminal import Terminal
from processor import ran_s

from gistpoint.core.demo.tasks import recorded_runs

EMPTY_APP = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("first text", markup=False)
Empty().run()
"""


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


class Times(NamedTuple):
    """Wall-clock and processor time, in seconds."""

    clock: float
    processor: float


def first_text(command: list[str], pattern: str, environment: dict[str, str]) -> Times:
    started = time.perf_counter()
    with Terminal(command, environment=environment, columns=160, rows=48) as terminal:
        terminal.wait_for(pattern)
        return Times(time.perf_counter() - started, ran_s(terminal.pid))


def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "GISTPOINT_HOME": home, "TEXTUAL_ANIMATIONS": "none"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled files are kept, as for users
        program = [sys.executable, "-m", "gistpoint"]
        subprocess.run([*program, "demo"], env=environment, capture_output=True, check=True)
        bare, solve = [sys.executable, "-c", "pass"], [*program, "demo", "dear-tickets"]
        review = [*program, "review", str(recorded_runs() / "dear-tickets.played.jsonl")]
        study = str(Path(home) / "study")
        enrol = ["enrol", study, "--code", "ME", "--role", "author"]
        for words in (["new", study, "--tasks", "demo"], ["open", study], enrol):
            subprocess.run([*program, "study", *words], env=environment, capture_output=True, check=True)
        join = [*program, "study", "join", study, "--code", "ME"]
        programs: dict[str, list[float]] = {}
        rows: dict[str, list[Times]] = {}
        for _ in range(runs):
            programs.setdefault("bare interpreter", []).append(
                seconds(lambda: subprocess.run(bare, env=environment, check=True))
            )
            programs.setdefault("gistpoint --help", []).append(
                seconds(
                    lambda: subprocess.run(
                        [*program, "--help"], env=environment, capture_output=True, check=True
                    )
                )
            )
            rows.setdefault("empty Textual app", []).append(
                first_text([sys.executable, "-c", EMPTY_APP], "first text", environment)
            )
            rows.setdefault("home screen", []).append(first_text([*program, "demo"], "Tasks", environment))
            rows.setdefault("review, its frame", []).append(first_text(review, "Course", environment))
            rows.setdefault("review, first step", []).append(first_text(review, "step 1 of", environment))
            rows.setdefault("join, consent", []).append(first_text(join, "I agree", environment))
            rows.setdefault("solve, its frame", []).append(first_text(solve, r"F2 Brief", environment))
            rows.setdefault("solve, at work", []).append(first_text(solve, r"tool uses left", environment))
        empty = rows["empty Textual app"]
        for name, seconds_of in programs.items():
            print(f"{name:20} median {statistics.median(seconds_of):.3f} s, least {min(seconds_of):.3f} s")
        for name, times in rows.items():
            pairs = list(zip(times, empty, strict=True))
            clock = statistics.median(ours.clock / theirs.clock for ours, theirs in pairs)
            processor = statistics.median(ours.processor / theirs.processor for ours, theirs in pairs)
            print(
                f"{name:20} median {statistics.median(one.clock for one in times):.3f} s,"
                f" least {min(one.clock for one in times):.3f} s, {clock:.2f} x empty app;"
                f" processor {statistics.median(one.processor for one in times):.3f} s, {processor:.2f} x"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
