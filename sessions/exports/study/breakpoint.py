"""Exports a study as result files of Breakpoint's runner: a line with totals, then a line for each attempt.

In these files `success_rate` is the mean of the fractional scores, and `perfect_solve_rate` the share of
attempts that solved their task.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from gistpoint.core.kinds.registry import is_searched
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.rows import AttemptRow
from gistpoint.sessions.exports.study.calls import ExportedCall, calls_of
from gistpoint.sessions.exports.study.naming import file_part, prefix_of
from gistpoint.sessions.exports.study.registry import StudyExport

_MODES = ("remove", "discovery")


def breakpoint_files(export: StudyExport) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of a file for each solver, condition and mode; people are one solver.

    Only counted attempts at repairs are included.
    """
    files: dict[tuple[str, str, str], list[AttemptRow]] = defaultdict(list)
    for row in export.data.counted:
        if row.mode in _MODES:
            files[row.solver or "people", row.condition, row.mode].append(row)
    for (who, condition, mode), rows in sorted(files.items()):
        lines = [_summary(rows), *(_problem(export, row) for row in rows)]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        name = "_".join(map(file_part, (who, condition, mode)))
        yield f"{prefix_of(export.data)}{name}.jsonl", text.encode("utf-8", "backslashreplace")


def _summary(rows: Sequence[AttemptRow]) -> dict[str, Any]:
    solved = sum(row.solved for row in rows)
    mean = sum(row.counted_score for row in rows) / len(rows)
    return {
        "total_problems": len(rows),
        "success_count": solved,
        "success_rate": mean,
        "perfect_solves": solved,
        "perfect_solve_rate": solved / len(rows),
        "avg_score": mean,
        "config": _config(rows[0]),
    }


def _problem(export: StudyExport, row: AttemptRow) -> dict[str, Any]:
    task, calls = export.data.tasks[row.task], calls_of(export, row)
    targets = () if export.public else task.targets
    metadata = {
        "repo_path": row.source,
        "file_path": targets[0].partition("::")[0] if targets else "",
        "tool_usage": [{"tool": call.tool, "args": dict(call.arguments)} for call in calls],
        "test_info": {"success": row.solved, "score": row.counted_score, "status": row.outcome_of_last},
        **_right_function(row, task, calls),
        "num_corruptions": task.corruptions,
        "corruption_functions": list(targets),
    }
    own = {name: getattr(row, name) for name in _OWN}
    return {
        "problem": row.task,
        "score": row.counted_score,
        "metadata": metadata,
        "config": _config(row) | ({} if export.public else {"log_file": f"{row.attempt}/journal.jsonl"}),
        "gistpoint": own,
    }


_OWN = ("attempt", "participant", "simulated", "end", "primary_s", "verdict_from")
"""The fields of a row that the runner's files have no member for."""


def _config(row: AttemptRow) -> dict[str, Any]:
    who = row.solver or "human"
    return {
        "model_name": f"SIMULATED {who}" if row.simulated else who,
        "mode": row.mode,
        "max_iterations": row.tool_use_budget,
        "thinking_budget": None,
        "test_budget": row.submission_budget,
        "tools_allowed": sorted({call.tool for call in row.calls}),
    }


def _right_function(row: AttemptRow, task: StudyTask, calls: Sequence[ExportedCall]) -> dict[str, Any]:
    """Return the metadata on whether the last change was in a target and whether every target was changed.

    As in the runner, `right_function` is the former for one corruption and the latter for several. It is an
    empty list for a removed function, which is named to the solver. If no call with known arguments changed
    a function, both say whether a submission changed all targets.
    """
    if not is_searched(row.mode):
        return {"right_function": []}
    every = (row.number("diagnosed") or 0) >= 1
    last = every
    changed = [_place(call) for call in calls if call.tool == "replace_function" and call.arguments]
    if changed:
        every = set(task.targets) <= set(changed)
        last = changed[-1] in task.targets
    return {
        "right_function": last if len(task.targets) == 1 else every,
        "right_function_last_call": last,
        "right_function_any_call": every,
    }


def _place(call: ExportedCall) -> str:
    path = str(call.arguments.get("file_path", "")).removeprefix("./")
    return f"{path}::{call.arguments.get('func_name', '')}"
