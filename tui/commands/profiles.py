"""The output of `--profile` for `gistpoint show` and `runs`: profiles of runs, as text or JSON."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from typing import Any

from gistpoint.core.locations import Locations
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.facts import Goal
from gistpoint.sessions.runs.profile import (
    Counted,
    Divergence,
    Profile,
    cost_of,
    divergence_of,
    missing_in,
    profile_of,
    seconds_of,
    tokens_of,
)
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.profile_drawing import drawn
from gistpoint.tui.profile_rows import ProfiledRun, by_task, rows_drawn

_NARROWEST = 60


def print_profile(document: RunDocument, *, as_json: bool) -> None:
    """Print the profile of a run."""
    run = document.header
    profile = profile_of(document, goals_for(run.task))
    if as_json:
        print_json("gistpoint.profile/1", {"run": document.name, **profile_record(run, profile)})
        return
    for line in drawn(run, profile, max(_NARROWEST, shutil.get_terminal_size().columns)):
        print_text(line.text.rstrip())


def profiled(name: str, document: RunDocument, run: Run) -> ProfiledRun:
    """Return a run with its profile. `run` is the header as it is displayed."""
    return ProfiledRun(name, run, profile_of(document, goals_for(run.task)))


def print_profiles(
    runs: list[ProfiledRun], problems: list[dict[str, Any]], *, order: str, as_json: bool
) -> None:
    """Print the profiles of many runs by task, in one of the orders in `profile_rows.ORDERS`.

    The `problems`, each with the run that could not be read, are printed only as JSON.
    """
    if not as_json:
        for line in rows_drawn(runs, max(_NARROWEST, shutil.get_terminal_size().columns), order):
            print_text(line.text.rstrip())
        return
    tasks: list[dict[str, Any]] = []
    for task, rows in by_task(runs, order).items():
        found = divergence_of([row.profile for row in rows])
        names = [row.name for row in rows]
        parting = None if found is None else {"call": found.place + 1, "ways": _branches(found, names)}
        profiles = [{"run": row.name, **profile_record(row.run, row.profile)} for row in rows]
        tasks.append({"task": task, "runs": profiles, "parting": parting})
    print_json("gistpoint.profiles/1", {"tasks": tasks, "problems": problems})


def _branches(parting: Divergence, names: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "work": None if move is None else move.work.value,
            "path": None if move is None else move.path,
            "runs": [names[number] for number in numbers],
        }
        for move, numbers in parting.ways
    ]


def goals_for(task: str) -> tuple[Goal, ...]:
    """Return the functions to repair in a task; empty if no stored task with the id can be read."""
    if not task:
        return ()
    from gistpoint.tui.screens.review.run_task import known_task  # imports Textual

    return known_task(task, Locations.of_user()).goals


def profile_record(run: Run, profile: Profile) -> dict[str, Any]:
    """Return a profile as JSON data: steps counted from 1, times in seconds, cost in US dollars.

    What is unknown is None.
    """
    tokens = tokens_of(run, profile)
    return {
        "task": run.task,
        "verdict": run.verdict,
        "steps": profile.steps,
        "steps_with_calls": profile.worked,
        "work": {
            work.value: {"steps": share.steps, "seconds": share.seconds if profile.timed else None}
            for work, share in profile.shares.items()
        },
        "bin_steps": profile.bin_steps,
        "bins": [asdict(found) for found in profile.bins],
        "right_code": [
            {"function": found.function}
            | {name: _numbered(getattr(found, name)) for name in ("read", "seen", "edited")}
            for found in profile.reached
        ],
        "first_edit": _numbered(profile.first_edit),
        "submissions": _counted(profile.submissions),
        "waste": {
            "steps": profile.wasted,
            "failing": _counted(profile.failing),
            "repeated": _counted(profile.repeated),
            "reread": _counted(profile.reread),
            "reverted": _counted(profile.reverted),
        },
        "test_runs": [{**asdict(found), "step": found.step + 1} for found in profile.test_runs],
        "more_test_runs": profile.more_test_runs,
        "context": {
            "fullest": profile.fullest,
            "last": profile.last_context,
            "condensed": _counted(profile.condensed),
        },
        "tokens": {"prompt": tokens.prompt, "completion": tokens.completion, "cached": tokens.cached},
        "cost_usd": cost_of(run, profile),
        "duration_s": seconds_of(run, profile),
        "not_known": list(missing_in(run, profile)),
    }


def _numbered(step: int | None) -> int | None:
    return None if step is None else step + 1


def _counted(counted: Counted) -> dict[str, Any]:
    return {"count": counted.count, "first": [step + 1 for step in counted.steps]}
