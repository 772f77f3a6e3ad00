"""What the summary of an attempt says, computed from its state, task and answer. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gistpoint.core.attempts.state import NOTHING_REPLACED, AttemptState, Submission, attempt_result
from gistpoint.core.code.snippet import at_left_margin
from gistpoint.core.tasks.model import Answer, Mode, Target, Task
from gistpoint.tui.view_models import clock_rows, duration, end_words, is_gist, isolation_warning, submission_words

Rows = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Compared:
    """A corrupted function: as it was at the end of the attempt, and as it should be."""

    label: str
    yours: str
    true: str
    legend: str


def headline(state: AttemptState, accepted: bool | None = None) -> str:
    """Return the result in one line; `accepted` is what reviewers have said of a pass."""
    if state.ending is None:
        return "… not ended"
    words = end_words(state.ending, attempt_result(state, accepted))
    score = f"   score {state.last.score or 0:.3f}" if state.last is not None else "   nothing was submitted"
    if is_gist(state) and state.last is not None:
        score = f"   fidelity {state.last.score or 0:.0f}"
    return f"{words}{score}   working time {duration(state.clock.active)}"


def compared(answer: Answer, state: AttemptState) -> tuple[Compared, ...]:
    """Return each corrupted function as the solver left it beside the true one."""
    return tuple(_compared(target, state) for target in answer.targets)


def _compared(target: Target, state: AttemptState) -> Compared:
    submitted = [
        s.replacement.code
        for s in state.submissions
        if s.replacement.path == target.path and s.replacement.qualname == target.qualname
    ]
    mark = "✔ changed" if submitted else "✘ never touched"
    yours = submitted[-1] if submitted else target.corrupted
    whose = "as you wrote it last" if submitted else "as it was given to you, for you never replaced it"
    yours, true = _compared_text(yours), _compared_text(target.original)
    legend = f"- {whose}   + as it should be" if yours != true else "as you wrote it last, which is as it should be"
    return Compared(f"{mark}  {target.name}", yours, true, f"{target.name}:  {legend}")


def _compared_text(code: str) -> str:
    """Return code as it is compared: where its margin is makes no difference."""
    return f"{at_left_margin(code).rstrip()}\n"


def summary_rows(task: Task, state: AttemptState, accepted: bool | None = None) -> list[tuple[str, Rows]]:
    """Return titled groups of named values."""
    groups = [
        ("Outcome", _outcome(task, state, accepted)),
        ("Time", clock_rows(state.clock)),
        ("Budgets", _budgets(state)),
    ]
    if state.submissions:
        submitted = [(f"{s.number}: {_what(s)}", _submitted(s, accepted)) for s in state.submissions]
        groups.append(("Submissions", submitted))
    if state.comforts:
        groups.append(
            (
                "Comforts that a model does not have",
                [(k, "once" if n == 1 else f"{n} times") for k, n in state.comforts.items()],
            )
        )
    return groups


def _what(submission: Submission) -> str:
    return "gist" if submission.replacement is NOTHING_REPLACED else submission.replacement.qualname


def _submitted(submission: Submission, accepted: bool | None) -> str:
    marked = f", suspicious: {', '.join(submission.suspicious)}" if submission.suspicious else ""
    return f"{submission_words(submission, accepted)}, at {duration(submission.at_ms)}{marked}"


def _outcome(task: Task, state: AttemptState, accepted: bool | None) -> Rows:
    rows: Rows = [("Task", f"{task.short_id}, {'several' if task.several else task.mode.value}")]
    ending = state.ending
    if ending is not None:
        rows.append(("End", end_words(ending, attempt_result(state, accepted))))
        if ending.code:
            rows.append(("Reason", ending.code.replace("_", " ")))
        if ending.text:
            rows.append(("In your words", ending.text))
    if state.suspicious:
        rows.append(("Suspicious", ", ".join(state.suspicious)))
        if accepted is None:
            settled = f"gistpoint attempt accept {state.attempt_id}, or reject {state.attempt_id} --why TEXT"
            rows.append(("To be read", f"it counts as solved after {settled}"))
        else:
            rows.append(("Read", "accepted: it counts as solved" if accepted else "rejected: it does not count"))
    if task.mode is Mode.DISCOVERY and state.last is not None:
        rows.append(("Corrupted functions changed", str(len(state.last.changed))))
    best = state.best
    if best is not None and best is not state.last:
        rows.append(("Best submission", f"number {best.number}, score {best.score or 0:.3f}"))
    if state.suspects:
        rows.append(("Suspects", ", ".join(suspect.name for suspect in state.suspects)))
    warning = isolation_warning(state)
    if warning:
        rows.append(("Isolation", warning))
    rows.append(("Attempt", state.attempt_id))
    return rows


def _budgets(state: AttemptState) -> Rows:
    budgets, left = state.budgets, state.remaining
    uses = f"{budgets.tool_uses - left.tool_uses} of {budgets.tool_uses}"
    if is_gist(state):
        scores = [("Scores before the hand-in", str(len(state.gist.trials)))] if budgets.scores != 0 else []
        return [("Steps", uses), *scores, ("Calls", str(len(state.calls)))]
    return [
        ("Tool uses", uses),
        ("Submissions", f"{budgets.submissions - left.submissions} of {budgets.submissions}"),
        ("Calls", str(len(state.calls))),
    ]
