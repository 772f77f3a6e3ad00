"""Writes the recorded runs of `gistpoint review --demo`.

usage: python tests/demo_runs.py [FOLDER OF A PLAYED ATTEMPT]

Run it when the demo's library or tasks change. The agents are scripted, but their commands are run. Thoughts,
commands, times, tokens and costs are invented; outputs, verdicts and patches are the results of the commands.
Names of models begin with `scripted`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gistpoint.core.demo.tasks import demo_task

RUNS = Path(__file__).parents[1] / "core" / "demo" / "runs"
SYSTEM = "You repair Python code. Answer with one thought and one command for bash."
START = datetime(2026, 1, 12, 9, 0, tzinfo=UTC)
BRIEF = {
    "dear-tickets": "One function of this repository is wrong: tickets cost too much. Find it and repair it; change no "
    "test.",
    "missed-trains": "Two functions of this repository are wrong: trains are missed, or leave early. Find and repair "
    "both; change no test.",
}
_TESTS = "python -m pytest -q --tb=no -p no:cacheprovider"


@dataclass(frozen=True)
class Scripted:
    """A run: its file's name, its model and task, and the agent's thoughts and commands."""

    name: str
    model: str
    task: str
    turns: Sequence[tuple[str, str]]
    exit_status: str = "Submitted"


def put(path: str, old: str, new: str) -> str:
    """Return a command that replaces a string in a file."""
    before, after = re.sub(r"([\\.*^$\[\]|])", r"\\\1", old), re.sub(r"([\\&|])", r"\\\1", new)
    return f"sed -i 's|{before}|{after}|' {path}"


LOOK = [
    ("First the layout, and what fails.", "ls sporvei tests && cat README.md | head -20"),
    ("Run the tests.", f"{_TESTS} | tail -20"),
]
REACH = ("sporvei/network.py", "if there not in best:", "if there not in best or total < best[there][0]:")
SHIFTED = ("sporvei/timetable.py", "departure=call.arrival + minutes", "departure=call.departure + minutes")
ARRIVAL = ("sporvei/planner.py", "origin, after + origin.change)", "origin, after)")

SCRIPTED = (
    Scripted("dear-tickets.careful", "scripted-careful", "dear-tickets", [
        *LOOK,
        ("Fares are too high by whole steps, so a distance is too long. How is the fare made?",
         "sed -n '95,125p' sporvei/fares.py"),
        ("It asks the network for the shortest way.", "sed -n '50,100p' sporvei/network.py"),
        ("`reach` says Dijkstra, but a station keeps the first way by which it is found. A shorter one that comes "
         "later must replace it.", put(*REACH)),
        ("Does that mend all of it?", f"{_TESTS} | tail -5"),
        ("All tests pass; the one line was wrong.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
    ]),
    Scripted("dear-tickets.hasty", "scripted-hasty", "dear-tickets", [
        ("Tickets are too dear, so the tariff is wrong.", "grep -n 'per_step' -r sporvei"),
        ("The steps are rounded up; they should be rounded down.",
         put("sporvei/fares.py", "steps = -(-metres // self.step_metres)", "steps = metres // self.step_metres")),
        ("Check the fares.", f"{_TESTS} tests/test_fares.py | tail -20"),
        ("Still failing. The peak must be wrong, then.",
         put("sporvei/fares.py", "peak_percent: int = 20", "peak_percent: int = 10")),
        ("Check again.", f"{_TESTS} tests/test_fares.py | tail -20"),
        ("Good enough: fewer tests fail now.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
    ]),
    Scripted("dear-tickets.circling", "scripted-circling", "dear-tickets", [
        *LOOK,
        ("Where are tickets made?", "sed -n '60,95p' sporvei/fares.py"),
        ("Look at the tests.", "sed -n '1,60p' tests/test_fares.py"),
        ("Look at the fares again.", "sed -n '60,95p' sporvei/fares.py"),
        ("Run the tests again.", f"{_TESTS} | tail -20"),
        ("Perhaps the stations are wrong.", "cat sporvei/stations.py"),
        ("There is no such file. The network, then.", "sed -n '1,60p' sporvei/network.py"),
        ("Look at the fares again.", "sed -n '60,95p' sporvei/fares.py"),
        ("Try no rounding.", put("sporvei/fares.py", "rounding: int = 100", "rounding: int = 1")),
        ("Run the tests again.", f"{_TESTS} | tail -20"),
        ("That made it worse. Take it back.", put("sporvei/fares.py", "rounding: int = 1", "rounding: int = 100")),
        ("Run the tests again.", f"{_TESTS} | tail -20"),
    ], "LimitsExceeded"),
    Scripted("missed-trains.careful", "scripted-careful", "missed-trains", [
        *LOOK,
        ("Two functions are said to be wrong. The test of shifted trips is the simplest one.",
         "grep -n 'def shifted' -A 8 sporvei/timetable.py"),
        ("The departure is computed from the arrival: trains lose their stops.", put(*SHIFTED)),
        ("What is left?", f"{_TESTS} | tail -14"),
        ("Journeys are missed: who plans them?", "sed -n '40,92p' sporvei/planner.py"),
        ("One needs time to change trains, not to board the first one.", put(*ARRIVAL)),
        ("And now?", f"{_TESTS} | tail -5"),
        ("Everything passes.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
    ]),
    Scripted("missed-trains.hasty", "scripted-hasty", "missed-trains", [
        ("Which tests fail?", f"{_TESTS} | tail -20"),
        ("`shifted` looks wrong.", "grep -n 'def shifted' -A 8 sporvei/timetable.py"),
        ("Mend the departure.", put(*SHIFTED)),
        ("The test of shifted trips passes.", f"{_TESTS} tests/test_timetable.py | tail -5"),
        ("Done.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),
    ]),
)  # fmt: skip


def run(scripted: Scripted, demo: Path) -> tuple[list[tuple[str, str, str, int]], str, bool]:
    """Run a script in a copy of its task.

    Returns its turns with output and exit code, the patch, and whether all tests pass.
    """
    task = demo_task(scripted.task, demo)
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch) / "repository"
        repository.mkdir()
        with tarfile.open(task.tree_path) as tree:
            tree.extractall(repository, filter="data")
        python = Path(scratch) / "python"
        python.symlink_to(sys.executable)

        def bash(command: str) -> tuple[str, int]:
            environment = {
                "PATH": f"{scratch}:/usr/bin:/bin",
                "PYTHONDONTWRITEBYTECODE": "1",
                "LC_ALL": "C.UTF-8",
            }
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=repository,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            output = (done.stdout + done.stderr).replace(str(repository), "/repository")
            return re.sub(
                r" in \d+\.\d+s", "", re.sub(r"0x[0-9a-f]{8,}", "0x7f0000000000", output)
            ), done.returncode

        bash(
            "git init -q . && git add -A && git -c user.name=demo -c user.email=demo@localhost commit -qm start"
        )
        turns = [(thought, command, *bash(command)) for thought, command in scripted.turns]
        patch, _ = bash("git diff")
        _, failed = bash(_TESTS)
    return turns, patch, failed == 0


def mini_swe_agent(scripted: Scripted, task: str, demo: Path) -> Any:
    """Return a run as mini-swe-agent writes it."""
    turns, patch, _ = run(scripted, demo)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": BRIEF[scripted.task]},
    ]
    for number, (thought, command, output, code) in enumerate(turns):
        at = (START + timedelta(seconds=21 * number)).timestamp()
        usage = {"prompt_tokens": 1800 + 650 * number, "completion_tokens": 60 + len(command) // 4}
        content = f"THOUGHT: {thought}\n\n```bash\n{command}\n```"
        messages.append({"role": "assistant", "content": content, "extra": {
            "actions": [{"command": command}], "timestamp": at, "cost": 0.004 + 0.001 * number,
            "response": {"model": scripted.model, "usage": usage}}})  # fmt: skip
        shown = f"<returncode>{code}</returncode>\n<output>\n{output}</output>"
        messages.append({"role": "user", "content": shown,
                         "extra": {"raw_output": output, "returncode": code, "timestamp": at + 6}})  # fmt: skip
    cost = round(sum(0.004 + 0.001 * number for number in range(len(turns))), 4)
    submitted = patch if scripted.exit_status == "Submitted" else ""
    return {
        "info": {
            "exit_status": scripted.exit_status,
            "submission": submitted,
            "model_stats": {"instance_cost": cost, "api_calls": len(turns)},
            "config": {"model": {"model_name": scripted.model}},
        },
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1",
        "instance_id": task,
    }


def atif(scripted: Scripted, task: str, demo: Path) -> Any:
    """Return a run as ATIF."""
    turns, patch, solved = run(scripted, demo)
    steps: list[dict[str, Any]] = [
        {"step_id": 1, "source": "system", "message": SYSTEM, "timestamp": START.isoformat()},
        {"step_id": 2, "source": "user", "message": BRIEF[scripted.task], "timestamp": START.isoformat()},
    ]
    for number, (thought, command, output, _) in enumerate(turns):
        id = f"call-{number + 1}"
        steps.append({
            "step_id": number + 3, "source": "agent", "message": "", "reasoning_content": thought,
            "model_name": scripted.model, "timestamp": (START + timedelta(seconds=17 * number)).isoformat(),
            "tool_calls": [{"tool_call_id": id, "function_name": "bash", "arguments": {"command": command}}],
            "observation": {"results": [{"source_call_id": id, "content": output}]},
            "metrics": {"prompt_tokens": 1700 + 600 * number, "completion_tokens": 50 + len(command) // 4},
        })  # fmt: skip
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": scripted.name,
        "agent": {"name": "scripted", "version": "1", "model_name": scripted.model},
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": sum(step.get("metrics", {}).get("prompt_tokens", 0) for step in steps),
            "total_completion_tokens": sum(
                step.get("metrics", {}).get("completion_tokens", 0) for step in steps
            ),
        },
        "extra": {"task": task, "verdict": "solved" if solved else "unsolved", "submission": patch},
    }


def main() -> None:
    """Write all runs; if the folder of an attempt by `gistpoint demo --play` is given, copy its journal."""
    with tempfile.TemporaryDirectory() as scratch:
        demo = Path(scratch)
        for scripted in SCRIPTED:
            task = demo_task(scripted.task, demo).id
            write, end = (
                (mini_swe_agent, "traj.json") if scripted.task == "dear-tickets" else (atif, "atif.json")
            )
            text = json.dumps(write(scripted, task, demo), ensure_ascii=False, indent=1)
            (RUNS / f"{scripted.name}.{end}").write_text(text + "\n", encoding="utf-8")
            print(scripted.name, len(text))
    if len(sys.argv) > 1:
        shutil.copy(Path(sys.argv[1]) / "journal.jsonl", RUNS / "dear-tickets.played.jsonl")


if __name__ == "__main__":
    main()
