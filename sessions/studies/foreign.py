"""Rows of runs that other programs recorded, from the facts in their files and their steps."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.study.declaration import DeclaredSolver, Study, StudyTask
from gistpoint.core.study.exclusions import NO_VERDICT
from gistpoint.core.study.measuring import CENSORED, utc_text
from gistpoint.core.study.rows import DERIVED, RECORDED, AttemptRow, CallRow, FlagRow, SubmissionRow
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.records.model import Json, Run, Step, StepKind, Tokens
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.facts import (
    Goal,
    MarkTracker,
    Spent,
    StepMark,
    StepMarks,
    goals_of,
    submissions_in,
)

_KINDS: Mapping[StepKind, str] = {
    StepKind.VIEW: "view",
    StepKind.SEARCH: "search",
    StepKind.EXECUTE: "execute",
    StepKind.TEST: "execute",
    StepKind.EDIT: "edit",
    StepKind.SUBMIT: "submit",
}


def foreign_row(
    document: RunDocument, key: str, study: Study, solver: DeclaredSolver, task: StudyTask, full: Task
) -> AttemptRow:
    """Return the row of another program's run; facts missing from its file are None.

    A run with a suspicious pass does not count as solved before it has been reviewed. Which functions were
    found is inferred from the edits in the steps, and is unknown if the file records no call.
    """
    document.build()
    goals = goals_of(read_answer(full)) if kind_of(full).has_targets else ()
    tracker = MarkTracker(document.header, goals)
    calls: list[CallRow] = []
    submitted: list[SubmissionRow] = []
    touched: set[int] = set()
    spent = Spent()
    for step in document.steps():
        marks = tracker.feed(step)
        spent = marks.spent
        touched |= _edited_goals(marks)
        calls += _calls(step, len(calls))
        submitted += [
            _submission(step, len(submitted) + number) for number in range(1, submissions_in(step) + 1)
        ]
    run = document.header
    solved, judged = run.verdict == AttemptResult.SOLVED, bool(run.verdict or run.score is not None)
    budgets = _budgets(run.extra)
    return AttemptRow(
        attempt=key,
        study=study.id,
        simulated=study.simulated,
        actor="model",
        solver=solver.name,
        task=task.id,
        source=task.source,
        mode=task.mode,
        condition=solver.condition,
        condition_key=_key(run.format, budgets, solver),
        role="baseline",
        counted=judged,
        exclusion="" if judged else NO_VERDICT,
        end="solved" if solved else run.exit_status[:200],
        solved=solved,
        verdict_from=_origin(run, judged=judged),
        by_tests=solved or run.verdict == AttemptResult.TO_BE_READ,
        score=run.score,
        best_score=run.score,
        measures=_share_found(touched, goals, has_calls=bool(calls)),
        tool_uses=len(calls) or None,
        submissions=_submission_count(run, calls, submitted),
        tool_use_budget=budgets[0],
        submission_budget=budgets[1],
        censored="" if solved else CENSORED,
        started_utc=utc_text(round(run.started * 1000)) if run.started else "",
        tokens=_tokens(run.tokens or spent.tokens),
        cost_usd=spent.cost if run.cost is None else run.cost,
        scaffold=solver.scaffold or run.agent,
        submitted=tuple(submitted),
        calls=tuple(calls),
        flags=_flags(run.verdict, run.suspicious),
    )


def _submission_count(run: Run, calls: list[CallRow], submitted: list[SubmissionRow]) -> int | None:
    """Return how many submissions a file records, or its calls show; None if the file has neither."""
    return len(submitted) if calls and run.submissions is None else run.submissions


def _origin(run: Run, *, judged: bool) -> str:
    """Return whether a run's verdict was recorded in its file or derived; empty if the run was not judged."""
    if not judged:
        return ""
    return RECORDED if run.verdict and "verdict" not in run.derived else DERIVED


def _edited_goals(marks: StepMarks) -> set[int]:
    """Return the indices of the corrupted functions whose first edit is in this step."""
    first = (marked.goal for marked in marks.marked if marked.mark is StepMark.FIRST_EDIT_RIGHT_FUNCTION)
    return {goal for goal in first if goal is not None}


def _tokens(spent: Tokens | None) -> int | None:
    return (spent.prompt or 0) + (spent.completion or 0) if spent else None


def _calls(step: Step, before: int) -> list[CallRow]:
    found = []
    for number, call in enumerate(step.calls, before + 1):
        result = step.result_of(call)
        found.append(
            CallRow(
                number=number,
                tool=call.tool[:200],
                kind=_KINDS.get(step.kind, "other"),
                refused="refused" in step.flags,
                seconds=(result.duration_s or 0.0) if result is not None else 0.0,
            )
        )
    return found


def _submission(step: Step, number: int) -> SubmissionRow:
    score = step.state.get("score")
    values = score if isinstance(score, dict) else {}
    value = values.get("score")
    return SubmissionRow(
        number=number,
        score=float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None,
        solved=values.get("solved") is True,
    )


def _share_found(touched: set[int], goals: tuple[Goal, ...], *, has_calls: bool) -> dict[str, float | None]:
    """Return the share of the corrupted functions that were found; None if no call is recorded."""
    if not goals:
        return {}
    return {"found": len(touched) / len(goals) if has_calls else None}


def _budgets(extra: Mapping[str, Json]) -> tuple[int | None, int | None]:
    table = extra.get("budgets")
    values = table if isinstance(table, dict) else extra
    return _natural(values.get("tool_uses")), _natural(values.get("submissions", values.get("test_runs")))


def _natural(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 1 << 53 else None


def _key(format: str, budgets: tuple[int | None, int | None], solver: DeclaredSolver) -> str:
    """Return the key by which runs are pooled; the other program determines their tools and brief."""
    uses, submissions = ("not recorded" if value is None else str(value) for value in budgets)
    shared = f"uses {uses} / submissions {submissions} / tools and brief of {solver.scaffold or format}"
    return f"{shared} | recorded by {format}"


def _flags(verdict: str, suspicious: tuple[str, ...]) -> tuple[FlagRow, ...]:
    if verdict != AttemptResult.TO_BE_READ:
        return ()
    words = f"A reviewer must read the pass before it counts as solved: {', '.join(suspicious[:5])}."
    return (FlagRow(flag="suspicious_names", words=words),)
