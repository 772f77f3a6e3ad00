"""Exports counted attempts as METR's `runs.jsonl` (github.com/METR/eval-analysis-public), a line for each."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from gistpoint.core.study.data import StudyData
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.rows import AttemptRow
from gistpoint.sessions.exports.study.naming import prefix_of
from gistpoint.sessions.exports.study.registry import StudyExport

RUNS = "runs.jsonl"
_ALL_CLOCKS = ("active_s", "waiting_s", "paused_s", "idle_s", "asleep_s", "away_s")


def metr_files(export: StudyExport) -> Iterator[tuple[str, bytes]]:
    """Yield the file's name and content. Raises `StudyError` for simulated data that were not requested."""
    data = export.data
    if data.study.simulated and not export.simulated_wanted:
        raise StudyError(
            f"{data.study.id} is simulated, and readers of {RUNS} might not notice a word that says so.",
            hint="With --simulated, every alias begins with SIMULATED.",
        )
    runs = [run for row in data.counted if (run := _run(data, row)) is not None]
    weighted = [run | weight for run, weight in zip(runs, task_weights(runs), strict=True)]
    text = "".join(json.dumps(run, ensure_ascii=False) + "\n" for run in weighted)
    yield f"{prefix_of(data)}{RUNS}", text.encode("utf-8", "backslashreplace")


def task_weights(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """Return the two weights of each run, both of which sum to 1 over the runs of an alias.

    The formulas are METR's: `equal_task_weight` is 1 / (runs of the task), and `invsqrt_task_weight` is this
    value divided by the square root of the number of tasks in the family; both are then normalised.
    """
    of_task = Counter((run["alias"], run["task_id"]) for run in runs)
    families: dict[tuple[str, str], set[str]] = defaultdict(set)
    for run in runs:
        families[run["alias"], run["task_family"]].add(run["task_id"])
    equal = [1 / of_task[run["alias"], run["task_id"]] for run in runs]
    inverse = [
        weight / math.sqrt(len(families[run["alias"], run["task_family"]]))
        for run, weight in zip(runs, equal, strict=True)
    ]
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for run, one, other in zip(runs, equal, inverse, strict=True):
        totals = sums[run["alias"]]
        totals[0] += one
        totals[1] += other
    return [
        {
            "equal_task_weight": one / sums[run["alias"]][0],
            "invsqrt_task_weight": other / sums[run["alias"]][1],
        }
        for run, one, other in zip(runs, equal, inverse, strict=True)
    ]


def _run(data: StudyData, row: AttemptRow) -> dict[str, Any] | None:
    """Return an attempt as a run; None if no human time for it is known."""
    minutes, score = _of_people(data, row) if row.solver else _minutes_and_score(row)
    if minutes is None:
        return None
    who = row.solver or _people_of(data, row)
    started = completed = None
    if row.started_utc:
        started = round(datetime.fromisoformat(row.started_utc).timestamp() * 1000)
        completed = started + round(1000 * sum(getattr(row, name) or 0.0 for name in _ALL_CLOCKS))
    task = data.tasks[row.task]
    return {
        "task_id": f"gistpoint/{row.task}",
        "task_version": task.revision,
        "task_family": row.source,
        "task_source": data.study.id,
        "alias": f"SIMULATED {who}" if row.simulated else who,
        "model": row.solver or "human",
        "run_id": row.attempt,
        "score_cont": row.counted_score,
        "score_binarized": int(row.solved),
        "human_minutes": minutes,
        "human_source": "baseline",
        "human_score": score,
        "scaffold": row.scaffold or "gistpoint",
        "started_at": started,
        "completed_at": None if completed == started else completed,
        "time_limit": row.time_limit_s,
        "tokens_count": row.tokens,
        "generation_cost": row.cost_usd,
        "human_cost": None,
        "fatal_error_from": None,
        "cloned": 0,
        "gistpoint": {
            "simulated": row.simulated,
            "censored": row.censored,
            "end": row.end,
            "participant": row.participant,
            "condition": row.condition,
            "condition_key": row.condition_key,
            "verdict_from": row.verdict_from,
        },
    }


def _of_people(data: StudyData, row: AttemptRow) -> tuple[float | None, float | None]:
    """Return people's minutes and mean score at a model's task in its condition.

    The minutes are None if nobody solved the task, and the score is None if nobody attempted it.
    """
    people: list[AttemptRow] = []
    for one in data.counted:
        is_same = (one.task, one.condition) == (row.task, row.condition)
        if is_same and not one.solver:
            people.append(one)
    return _minutes(people), _mean([float(one.solved) for one in people])


def _minutes_and_score(row: AttemptRow) -> tuple[float | None, float]:
    """Return the minutes of a person's attempt (None if unknown) and its score, 1 or 0."""
    minutes = row.primary_s / 60 if row.primary_s else None
    return minutes, float(row.solved)


def _people_of(data: StudyData, row: AttemptRow) -> str:
    """Return the alias of people: `human` in the study's first condition; others have separate aliases."""
    first = next((condition.id for condition in data.study.conditions_of_people), row.condition)
    return "human" if row.condition == first else f"human, {row.condition}"


def _minutes(people: Sequence[AttemptRow]) -> float | None:
    """Return the minutes that people need for a task, by METR's definition; None if nobody solved it.

    They are the geometric mean over the attempts that solved it.
    """
    logs = [math.log(one.primary_s / 60) for one in people if one.solved and one.primary_s]
    mean = _mean(logs)
    return None if mean is None else math.exp(mean)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
