"""`gistpoint task baseline`: what a task's suite shows on another backend."""

from __future__ import annotations

import argparse

from gistpoint.core.errors import UserError
from gistpoint.core.generation.baselines import BaselineDifference, differences, record_baseline
from gistpoint.core.generation.intake import RUNS
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.folder import read_answer, write_baseline
from gistpoint.core.text import visible_line
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.cli import DONE, build_runner
from gistpoint.tui.commands.output import ProgressLine, print_json
from gistpoint.tui.services import is_our_demo

_SHOWN = 20


def baseline(options: argparse.Namespace) -> int:
    """Record a baseline on the backend that was asked for, and show in which ids it differs from the others."""
    if options.runs < RUNS:
        raise UserError(f"--runs must be {RUNS} or more: fewer show no flaky test.")
    locations = Locations.of_user()
    task = TaskStore(locations.tasks, locations.demo).find(options.task)
    answer = read_answer(task)
    runner = build_runner(options, demo=is_our_demo(task, locations))
    with ProgressLine() as progress:
        made = record_baseline(task, answer, runner, runs=options.runs, on_progress=progress.making)
    write_baseline(task.folder, made)
    found = differences(answer, made)
    if options.json:
        rows = {
            name: {
                "only_here": sorted(d.only_here),
                "only_there": sorted(d.only_there),
                "failing_only_here": sorted(d.failing_only_here),
                "failing_only_there": sorted(d.failing_only_there),
            }
            for name, d in found.items()
        }
        print_json(
            "gistpoint.baseline/1",
            {"id": task.id, "backend": made.backend, "runs": made.runs, "passed": len(made.passed), "differs": rows},
        )
        return DONE
    print(f"{task.short_id} on {made.backend}: {len(made.passed)} pass in {made.runs} runs, {len(made.failing)} fail")
    for name, difference in found.items():
        _tell(name, difference)
    return DONE


def _tell(name: str, difference: BaselineDifference) -> None:
    if not difference.any:
        print(f"The same ids as on {name}")
        return
    for words, ids in (
        (f"pass here, not on {name}", difference.only_here),
        (f"pass on {name}, not here", difference.only_there),
        (f"fail when corrupted here, not on {name}", difference.failing_only_here),
        (f"fail when corrupted on {name}, not here", difference.failing_only_there),
    ):
        if ids:
            print(f"{len(ids)} {words}:")
            for id in sorted(ids)[:_SHOWN]:
                print(f"  {visible_line(id)}")
            if len(ids) > _SHOWN:
                print(f"  and {len(ids) - _SHOWN} more (--json has all)")
