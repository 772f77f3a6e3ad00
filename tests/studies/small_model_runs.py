"""Lets a small local model attempt the demo's tasks and others, and prints its replies, errors and results.

Usage: PYTHONPATH=src:tests python tests/studies/small_model_runs.py FOLDER --model NAME --base-url URL
           [--tasks SET ...] [--only CONDITION ...] [--repeats K] [--attempt-tokens N] [--context N] [--hours H]

The conditions are `native` calls, calls as `text`, and the `static` setting, which only gists have. Each is a run
of the program in a home below FOLDER, so that the same command continues where it was stopped, attempt by attempt.
SET is a folder or a list of tasks, such as `gistpoint task generate` makes; without it, only the demo's tasks
are attempted. After H hours the run is stopped, and its results so far are printed. Numbers are those of the run's
own figures; forms and misreadings are counted in the journals. docs/guide/agents.md explains how to set up the
model and its server ("A small model on your own machine").
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gistpoint.core.agents.conversation import ReplyKind, kind_of_reply
from gistpoint.core.agents.text_calls import calls_in
from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.text import visible
from gistpoint.sessions.agentruns.figure_lines import summary_lines
from gistpoint.sessions.agentruns.figures import figures_of
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore
from gistpoint.sessions.attempts import AttemptStore

CONDITIONS = {
    "native": [],
    "text": ["--calls", "text"],
    "static": ["--setting", "static"],
}
PATIENCE_S = 3_600
"""The time limit of a request: a busy machine may read a prompt for many minutes."""
_SHOWN = 400


def form_of(content: str) -> str:
    """Return the form in which a reply without native calls was written."""
    stripped = content.strip()
    if not stripped:
        return "empty"
    if not calls_in(content):
        return "code block without a call" if "```" in content else "words alone"
    if stripped.startswith("{{"):
        return "object in doubled braces"
    if stripped.startswith("{"):
        return "object alone"
    if "<tool_call>" in content:
        return "tags"
    found = re.search(r"(`{3,}|~{3,})[ \t]*(\w*)", content)
    return f"fence {found[2] or 'without a word'}" if found else "other"


def made(folder: Path, environment: dict[str, str], words: Sequence[str], hours: float) -> None:
    """Start a run with the program, and wait for its end; after `hours`, stop it."""
    program = [sys.executable, "-m", "gistpoint", "agent"]
    name = words[words.index("--name") + 1]
    process = subprocess.Popen([*program, "run", *words], env=environment, cwd=folder)
    try:
        process.wait(hours * 3_600)
    except subprocess.TimeoutExpired:
        subprocess.run([*program, "stop", name], env=environment, cwd=folder, check=False)
        process.wait()


def states(run: AgentRun, attempts: AttemptStore) -> Iterator[tuple[str, AttemptState]]:
    for job in run.jobs.values():
        if job.attempt:
            yield job.job.task, attempts.summary(job.attempt).state


def printed(run: AgentRun, attempts: AttemptStore) -> None:
    """Print the figures of a run, the kinds of its replies, and each attempt reply by reply."""
    figures = figures_of(run, attempts)
    print(f"\n== {run.name}: {run.settings.model}, settings {run.settings.digest[:12]}")
    for label, value in summary_lines(figures.totals, run.name).items():
        print(f"{label:<16} {value}")
    found = list(states(run, attempts))
    turns = [turn for _, state in found for turn in state.turns]
    print(f"replies          {_counted(_kinds(turns))}")
    print(f"forms            {_counted(form_of(turn.content) for turn in turns)}")
    print(f"calls not made   {sum(len(turn.unmade or ()) for turn in turns)} after the first of a reply")
    calls = [call for _, state in found for call in state.calls if call.requested]
    print(f"tools            {_counted(call.tool or '(no name)' for call in calls if not call.malformed)}")
    print(
        f"misread          {_counted(f'{call.malformed}: {call.tool}' for call in calls if call.malformed)}"
    )
    for task, state in found:
        ending = state.ending
        end = f"{ending.reason} {ending.code}".strip() if ending else "not ended"
        last = f", last score {state.last.score}" if state.last else ""
        print(f"\n-- {task[:12]} {state.attempt_id}: {end}, {len(state.turns)} turns{last}")
        for turn in state.turns:
            _print_turn(turn, state)


def _print_turn(turn: ModelTurn, state: AttemptState) -> None:
    spent = (
        f"{turn.usage.prompt_tokens} + {turn.usage.completion_tokens} tokens, {turn.latency_ms / 1000:.0f} s"
    )
    print(f"turn {turn.turn} ({spent}): {visible(turn.content[:_SHOWN])}")
    for call in state.calls:
        if call.requested and call.turn == turn.turn:
            print(
                f"   {call.tool}{f' ({call.malformed})' if call.malformed else ''}: {_first_line(call.text)}"
            )


def _first_line(text: str | None) -> str:
    return visible((text or "").partition("\n")[0][:_SHOWN])


def _kinds(turns: Iterable[ModelTurn]) -> Iterator[str]:
    for turn in turns:
        kind = kind_of_reply(turn)
        is_unread = kind is ReplyKind.NO_CALL and calls_in(turn.content)
        yield f"{kind}, but with a call as text" if is_unread else kind.value


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).most_common()) or "none"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--tasks", nargs="*", default=[])
    parser.add_argument("--only", nargs="*", choices=CONDITIONS, default=list(CONDITIONS))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--attempt-tokens", type=int, default=6_000)
    parser.add_argument("--context", type=int, default=16_384)
    parser.add_argument("--hours", type=float, default=8.0)
    given = parser.parse_args()
    folder = given.folder.resolve()
    home = folder / "home"
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "config.toml").write_text(f"[llm]\ntimeout_s = {PATIENCE_S}\n")
    environment = {**os.environ, "GISTPOINT_HOME": str(home)}
    os.environ["GISTPOINT_HOME"] = str(home)
    sampling = ["--max-output-tokens", "1200", "--temperature", "0.7", "--seed", "1"]
    limits = ["--attempt-tokens", str(given.attempt_tokens), "--context", str(given.context)]
    shared = ["--model", given.model, "--base-url", given.base_url, "--at-once", "1", *sampling, *limits]
    until = time.monotonic() + given.hours * 3_600
    for condition in given.only:
        for name, tasks in [(condition, ["--demo"]), (f"{condition}-more", given.tasks)]:
            if condition == "static" and tasks == ["--demo"]:
                tasks = ["--demo", "whole-railway"]
            left = (until - time.monotonic()) / 3_600
            if tasks and left > 0:
                words = [
                    *tasks,
                    *shared,
                    *CONDITIONS[condition],
                    "--repeats",
                    str(given.repeats),
                    "--name",
                    name,
                ]
                made(folder, environment, words, left)
    locations = Locations.of_user()
    runs = AgentRunStore(locations.runs)
    for name in runs.names():
        printed(runs.open(name), AttemptStore(locations.attempts, SystemTime(), "study"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
