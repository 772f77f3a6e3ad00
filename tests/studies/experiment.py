"""Diagnoses 50 runs of 10 tasks by three solvers from the list of runs, with keys alone.

Usage: python tests/studies/experiment.py FOLDER [--runs N] [--only-make]

Writes the runs to FOLDER as rows of Nebius' SWE-agent trajectories, one per file, with known outcomes. Then
presses keys in the real list of runs, reads the answers from the screen, and prints the keys, the time, the
answers and the truth. Exit code 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

from screens.review.reviewing import Reviewing, reviewing  # noqa: E402

from gistpoint.tui.screens.review.runs import RunsScreen  # noqa: E402
from gistpoint.tui.tables import Heading  # noqa: E402

SOLVERS = {"small-coder-7b": 0.2, "middle-coder-32b": 0.5, "large-coder-405b": 0.8}
"""The solvers, each with the share of the solvable tasks that it solves."""
TASKS = (
    "attrs__attrs-1201", "click__click-2380", "flask__flask-5014", "httpx__httpx-2610", "jinja__jinja-1881",
    "marshmallow__marshmallow-2123", "pluggy__pluggy-441", "pyyaml__pyyaml-702", "rich__rich-2953", "tox__tox-3034",
)  # fmt: skip
NEVER_SOLVED = frozenset(("httpx__httpx-2610", "pyyaml__pyyaml-702"))
ENDINGS = (
    "exit_context",
    "exit_context",
    "exit_context",
    "submitted",
    "submitted",
    "exit_cost",
    "early_exit",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The known outcome of a run."""

    task: str
    solver: str
    solved: bool
    ending: str
    turns: int


def outcomes(count: int) -> Iterator[Outcome]:
    """Yield outcomes, with tasks and solvers in turn; of 30 or more, every solvable task has a solved one."""
    chance = random.Random(2026)
    for number in range(count):
        task = TASKS[number % len(TASKS)]
        solver = list(SOLVERS)[number // len(TASKS) % len(SOLVERS)]
        first_by_the_best = number // len(TASKS) == len(SOLVERS) - 1
        solved = task not in NEVER_SOLVED and (first_by_the_best or chance.random() < SOLVERS[solver])
        ending = "submitted" if solved else chance.choice(ENDINGS)
        yield Outcome(
            task, solver, solved, ending, chance.randint(4, 12) if solved else chance.randint(8, 30)
        )


def _turn(number: int, outcome: Outcome, chance: random.Random) -> list[dict[str, object]]:
    name = outcome.task.partition("__")[0]
    command, answer = chance.choice(
        (
            (
                f"open src/{name}/core.py",
                f"[File: src/{name}/core.py (240 lines total)]\n1:import os\n2:def load(path):",
            ),
            (
                f'search_dir "load" src/{name}',
                f'Found 3 matches for "load" in src/{name}:\nsrc/{name}/core.py (3)',
            ),
            (
                "python -m pytest -q tests",
                "FAILED tests/test_core.py::test_load - AssertionError\n1 failed, 40 passed",
            ),
            ("edit 3:4\ndef load(path, strict=False):\n    return read(path)\nend_of_edit", "[File updated]"),
        )
    )
    said = f"Step {number}: what {outcome.solver} does next for {outcome.task}."
    return [{"role": "ai", "text": f"{said}\n```\n{command}\n```"}, {"role": "user", "text": answer}]


def make(folder: Path, count: int) -> list[Outcome]:
    """Write the runs, and return their outcomes."""
    known = list(outcomes(count))
    for number, outcome in enumerate(known):
        chance = random.Random(number)
        trajectory: list[dict[str, object]] = [
            {
                "role": "system",
                "system_prompt": "SETTING: You work in a command line with a special interface.",
            },
            {"role": "user", "text": f"Solve the issue of {outcome.task}."},
        ]
        for turn in range(outcome.turns):
            trajectory += _turn(turn + 1, outcome, chance)
        if outcome.ending == "submitted":
            trajectory.append({"role": "ai", "text": "It is done.\n```\nsubmit\n```"})
        row = {
            "instance_id": outcome.task,
            "model_name": outcome.solver,
            "target": outcome.solved,
            "trajectory": trajectory,
            "exit_status": outcome.ending,
            "generated_patch": "diff --git a/a.py b/a.py\n",
            "eval_logs": "",
        }
        path = folder / outcome.task / f"{outcome.solver}-{number:03}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(row), encoding="utf-8")
    return known


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the keys that show its answer, and the function that reads the answer."""

    words: str
    keys: tuple[str, ...]
    read: Callable[[RunsScreen], str]
    truth: str


def _headings(screen: RunsScreen) -> list[Heading]:
    return [row for row in screen.table.rows if isinstance(row, Heading)]


def _summary(screen: RunsScreen, heading: Heading, name: str) -> str:
    column = next(column for column in screen.table.columns if column.name == name)
    return column.summary(heading.rows)[1] if column.summary is not None else ""


def _unsolved(screen: RunsScreen) -> str:
    none = [
        found.group for found in _headings(screen) if re.match(r"✔ 0 of", _summary(screen, found, "verdict"))
    ]
    return " ".join(sorted(none))


def _best(screen: RunsScreen) -> str:
    def share(heading: Heading) -> float:
        solved, _, count = _summary(screen, heading, "verdict").removeprefix("✔ ").partition(" of ")
        return int(solved) / int(count)

    return max(_headings(screen), key=share).group


def _commonest(screen: RunsScreen) -> str:
    return _headings(screen)[0].group


def questions(known: list[Outcome]) -> list[Question]:
    """Return the questions; each begins where the previous one ended."""
    solved = Counter(outcome.solver for outcome in known if outcome.solved)
    endings = Counter(outcome.ending for outcome in known if not outcome.solved)
    solvable = {outcome.task for outcome in known if outcome.solved}
    share = {
        solver: solved[solver] / sum(outcome.solver == solver for outcome in known) for solver in SOLVERS
    }
    by_task = ("ampersand", "o")
    by_model = ("ampersand",)
    failed = ("slash", *"unsolved", "enter", "ampersand", "ampersand")
    return [
        Question(
            "Which tasks did nobody solve?", by_task, _unsolved, " ".join(sorted(set(TASKS) - solvable))
        ),
        Question(
            "Which solver solved the largest share?", by_model, _best, max(share, key=share.__getitem__)
        ),
        Question(
            "What did runs that failed most often end with?", failed, _commonest, endings.most_common(1)[0][0]
        ),
    ]


async def diagnose(folder: Path, known: list[Outcome]) -> bool:
    """Answer the questions with keys; print keys and answers, and return whether all are right."""
    started, right, pressed = time.monotonic(), True, 0
    async with reviewing(folder, size=(80, 24)) as driver:
        screen = await _read(driver, len(known))
        print(f"{len(known)} runs read after {time.monotonic() - started:.1f} s")
        for question in questions(known):
            await driver.press(*question.keys)
            answer = question.read(screen)
            pressed += len(question.keys)
            right = right and answer == question.truth
            print(f"\n{question.words} {len(question.keys)} keys: {' '.join(question.keys)}")
            print(f"  on the screen: {answer}\n  truth:         {question.truth}\n{driver.text()}")
    print(f"{pressed} keys, {time.monotonic() - started:.1f} s with reading")
    return right


async def _read(driver: Reviewing, count: int) -> RunsScreen:
    screen = driver.on(RunsScreen)
    await driver.until(
        lambda: len(screen.table.shown) == count and all(row.review for row in screen.table.shown)
    )
    return screen


def main() -> int:
    """Make the runs and diagnose them; return 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--only-make", action="store_true")
    options = parser.parse_args()
    known = make(options.folder, options.runs)
    return 0 if options.only_make or asyncio.run(diagnose(options.folder, known)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
