"""Times the most frequent actions in two checkouts, in turn, and prints the ratio of each pair of rounds.

usage: python tests/benchmarks/two_checkouts.py BEFORE AFTER [ROUNDS] [RUN]

Both are folders with a `.venv`. RUN is a large recorded run; without it the demo's is opened. The interval is
that of the mean of the logarithms of the ratios, by Student's t, with a confidence of 95%.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))

from e2e.terminal import Terminal

from gistpoint.core.kinds.folder import read_answer, read_task

ATTEMPTS = 300
"""The number of attempts in the list."""


class Checkout:
    """A checkout with its own home, which contains the demo's tasks and attempts of them."""

    def __init__(self, folder: Path, home: Path, run: str) -> None:
        self._python, self._run = str(folder / ".venv/bin/python"), run
        self._environment = {**os.environ, "GISTPOINT_HOME": str(home), "TEXTUAL_ANIMATIONS": "none"}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled files are kept, as for users
        self.call("demo")
        self.task = "seats-together"
        self._fix = home / "fix.py"
        tasks = (read_task(path.parent) for path in home.rglob("task.toml"))
        answer = read_answer(next(task for task in tasks if task.mode == "remove"))
        self._fix.write_text(answer.targets[0].original, encoding="utf-8")
        if not run:
            shown = self.call("demo", "--play", "--speed", "100000")
            assert shown
            self._run = next(str(path) for path in (folder / "core/demo/runs").glob("*.jsonl"))
        self._fill(home)

    def _fill(self, home: Path) -> None:
        """Make one attempt, and copies of it under further ids."""
        self.lines("search_code total", role="training")
        attempts = next(home.rglob("journal.jsonl")).parent.parent
        first = next(attempts.iterdir())
        for number in range(ATTEMPTS - 1):
            name = f"{number:08d}{first.name[8:]}"
            copy = attempts / name
            copy.mkdir()
            for file in first.iterdir():
                if file.is_file():
                    text = file.read_bytes().replace(first.name.encode(), name.encode())
                    (copy / file.name).write_bytes(text)

    def call(self, *words: str, stdin: str = "") -> str:
        done = subprocess.run(
            [self._python, "-m", "gistpoint", *words],
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def lines(self, typed: str, role: str = "qa") -> None:
        self.call(
            "--sandbox", "plain", "solve", self.task, "--new", "--role", role, "--lines", stdin=f"{typed}\n"
        )

    def shown(self, words: list[str], pattern: str, *keys: tuple[str, str]) -> float:
        """Return the seconds until the screen shows the pattern; with keys, those since the last key."""
        started = time.perf_counter()
        command = [self._python, "-m", "gistpoint", *words]
        with Terminal(command, environment=self._environment, columns=160, rows=48) as terminal:
            terminal.wait_for(pattern)
            for key, wanted in keys:
                started = time.perf_counter()
                terminal.press(key)
                terminal.wait_for(wanted)
            return time.perf_counter() - started

    def actions(self) -> dict[str, Callable[[], float]]:
        """Return the timed actions by name."""

        def seconds(*words: str) -> Callable[[], float]:
            def do() -> float:
                started = time.perf_counter()
                self.call(*words)
                return time.perf_counter() - started

            return do

        def in_line_mode(typed: str) -> Callable[[], float]:
            def do() -> float:
                started = time.perf_counter()
                self.lines(typed)
                return time.perf_counter() - started

            return do

        step = ("right", "step 2 of")
        return {
            "start: --help": seconds("--help"),
            "start: paths": seconds("paths"),
            "first paint: home": lambda: self.shown(["demo"], "Tasks"),
            "first paint: review": lambda: self.shown(["review", self._run], "Course"),
            "first paint: solve": lambda: self.shown(["demo", "dear-tickets"], "F2 Brief"),
            "step": lambda: self.shown(["review", self._run], "step 1 of", step),
            "search in a run": seconds("search", "no such words anywhere", self._run),
            "search by a solver": in_line_mode("search_code total"),
            "submit": in_line_mode(f"submit_attempt @{self._fix}"),
            f"list of {ATTEMPTS} attempts": seconds("attempt", "list"),
        }


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Return the geometric mean of ratios, and the bounds of its 95% interval."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.fmean(logs)
    half = stats.t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def main() -> None:
    """Print a row for each timed action."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("rounds", type=int, nargs="?", default=10)
    parser.add_argument("run", nargs="?", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        pair = [
            Checkout(folder.resolve(), Path(scratch) / name, options.run).actions()
            for name, folder in (("before", options.before), ("after", options.after))
        ]
        for name in pair[0]:
            times: list[list[float]] = [[], []]
            for number in range(options.rounds + 1):
                order = (0, 1) if number % 2 else (1, 0)
                for which in order:
                    times[which].append(pair[which][name]())
            before, after = times[0][1:], times[1][1:]  # the first round warms the disk's cache
            ratio, low, high = interval([b / a for a, b in zip(before, after, strict=True)])
            slower = "  SLOWER" if low > 1.1 else ""
            print(
                f"{name:24} before {statistics.median(before):.3f} s, after {statistics.median(after):.3f} s, "
                f"ratio {ratio:.3f} ({low:.3f} to {high:.3f}){slower}",
                flush=True,
            )


if __name__ == "__main__":
    main()
