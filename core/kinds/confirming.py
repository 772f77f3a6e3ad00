"""Confirms the pass of an attempt after its end, and reports the result in words (decision 114)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gistpoint.core.attempts.events import PassConfirmed
from gistpoint.core.attempts.identity import REPLAY, SIMULATED
from gistpoint.core.attempts.results import Standing
from gistpoint.core.confirmation.controls import read_controls
from gistpoint.core.confirmation.model import (
    NOT_CONTROLLED,
    AnsweredCall,
    Confirmation,
    Confirmed,
    Controls,
    Unconfirmable,
    reasons_in_words,
)
from gistpoint.core.kinds.registry import all_modes, kind_named
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.text import plural

if TYPE_CHECKING:
    from gistpoint.core.attempts.state import AttemptState, Submission
    from gistpoint.core.confirmation.model import Confirmer
    from gistpoint.core.tasks.model import Answer, Task

MADE_BEFORE = "not known (the task is older)"
"""The text for a task made by a version without controls, whose passes may or may not be confirmable."""
FROM_ELSEWHERE = (
    "This machine did not make these controls, or the answer was changed since, so they are made again before"
    " a pass is confirmed. `gistpoint task control` does it now."
)
"""The advice on controls that do not count on this machine (decision 158)."""
CAN_BE = "yes"
"""The word with which `controls_words` begins if passes can be confirmed."""


def standing(state: AttemptState) -> Standing | None:
    """Return the confirmation status of an attempt's pass; None if the attempt has no pass.

    The status is `EXEMPT` for kinds whose passes are not confirmed.
    """
    found = state.standing
    kind = kind_named(state.header.mode)
    is_confirmed = kind is not None and kind.confirms
    if found is Standing.NOT_ASKED and not is_confirmed:
        return Standing.EXEMPT
    return found


def confirmation_words(state: AttemptState) -> str:
    """Return the result of the confirmation in a few words.

    Empty without a pass, and for kinds whose passes are not confirmed.
    """
    found = standing(state)
    if found in (None, Standing.EXEMPT):
        return ""
    if state.confirmation is None:
        return Standing.NOT_ASKED.value
    return state.confirmation.words


def confirmation_row(state: AttemptState) -> dict[str, Any]:
    """Return the columns of an attempt's row about its tests and its confirmation; the keys are stable."""
    found = state.confirmation
    row: dict[str, Any] = {
        "solved_by_tests": state.solved,
        "confirmation": confirmation_words(state),
        "confirmation_reason": "",
        "confirmation_detail": "",
        "contradiction": None,
        "beyond": None,
        "marks": list(state.marks),
    }
    if found is not None:
        row["confirmation_reason"] = str(found.reason or "")
        row["confirmation_detail"] = found.detail
        row["contradiction"] = msgspec.to_builtins(found.contradiction)
        row["beyond"] = msgspec.to_builtins(found.beyond)
    return row


def to_be_confirmed(state: AttemptState) -> Submission | None:
    """Return the pass of an ended attempt that is still to be confirmed; None if there is none.

    Replayed and simulated attempts have no pass to confirm, because no solver made them. A confirmation that
    failed because of the sandbox is repeated.
    """
    was_played = state.header.actor in (REPLAY, SIMULATED)
    if was_played or state.ending is None:
        return None
    found = state.confirmation
    # A failed sandbox says nothing about the pass, so the confirmation is repeated (decision 114).
    failed = found is not None and found.reason is Unconfirmable.SANDBOX
    if failed or standing(state) is Standing.NOT_ASKED:
        return state.passing
    return None


def confirmed_pass(
    task: Task,
    answer: Answer,
    controls: Controls,
    state: AttemptState,
    confirmer: Confirmer,
    run: RunContext = UNATTENDED,
) -> PassConfirmed | None:
    """Confirm the pass of an ended attempt, and return the event that records the confirmation.

    None if there is no pass to be confirmed (see `to_be_confirmed`), or if the kind confirms no passes.
    Raises `CancelledError` when stopped, and `CodeError` if the submission does not fit the task.
    """
    passing = to_be_confirmed(state)
    kind = kind_named(task.mode)
    if passing is None or kind is None:
        return None
    if not controls.confirmable:
        reason = controls.reason or Unconfirmable.NO_CONTROL
        return PassConfirmed.of(passing.call_id, Confirmation(Confirmed.UNCONFIRMED, reason, controls.detail))
    tree = kind.passed_tree(task, state, passing)
    if tree is None:
        return None
    return PassConfirmed.of(passing.call_id, confirmer.confirm(task, answer, controls, tree, run=run))


def confirmation_lines(confirmation: Confirmation) -> list[str]:
    """Return the result of a confirmation as lines of text.

    The lines include the call that contradicts the pass, and an input outside of the tests on which the
    answers differ, so they can reveal a part of the answer.
    """
    lines = [confirmation.words]
    if confirmation.detail:
        lines.append(confirmation.detail)
    if confirmation.contradiction is not None:
        lines += _call_lines("A test that counts fails:", confirmation.contradiction)
    if confirmation.beyond is not None:
        why = "On this input, which the tests do not cover, the two differ:"
        if confirmation.beyond.test:
            why = "A call of a test is answered with different data, which this test does not reveal:"
        lines += _call_lines(why, confirmation.beyond)
    if confirmation.marks:
        lines.append(f"seen during the run: {', '.join(confirmation.marks)}")
    if confirmation.calls:
        calls, tests = plural(confirmation.calls, "call"), plural(confirmation.tests, "counting test")
        lines.append(f"{calls} answered in {tests}")
    if confirmation.uncovered:
        lines.append(f"at least {plural(confirmation.uncovered, 'test')} could not be run this way")
    return lines


def _call_lines(why: str, call: AnsweredCall) -> Iterable[str]:
    yield f"{why} {call.test}".rstrip()
    yield f"  {call.call}"
    yield f"  the true function: {call.original}"
    yield f"  the submission: {call.submission}"


CONTRADICTED_SENTENCE = (
    "The tests pass, but where the submission can't see them, it answers differently from the true"
    " function. The pass counts after a reviewer has accepted it."
)
"""The message to a solver about a contradicted pass."""


def known_controls(task: Task) -> Controls | None:
    """Return the controls of a task; None for a task from a version without controls.

    Raises `TaskError` if the controls are damaged.
    """
    found = read_controls(task.folder)
    if found is NOT_CONTROLLED:
        return None
    return found


def confirmable_row(task: Task) -> dict[str, Any]:
    """Return the columns of a task's row about its passes.

    `confirmable` is None if it is unknown, and for kinds whose passes are not confirmed. Raises `TaskError`
    if the task's controls are damaged.
    """
    controls = known_controls(task)
    if controls is None or not all_modes()[task.mode].confirms:
        return {"confirmable": None, "not_confirmable": ""}
    return {"confirmable": controls.confirmable, "not_confirmable": str(controls.reason or "")}


def confirmable_words(task: Task) -> str:
    """Return in a few words whether a task's passes can be confirmed; empty for kinds that confirm none.

    Raises `TaskError` if the task's controls are damaged.
    """
    return confirmable_in(task.folder, task.mode)


def confirmable_in(folder: Path, mode: str) -> str:
    """Return what `confirmable_words` returns for the task in `folder`, which has this mode."""
    kind = kind_named(mode)
    if kind is None or not kind.confirms:
        return ""
    found = read_controls(folder)
    return controls_words(None if found is NOT_CONTROLLED else found)


def controls_words(controls: Controls | None) -> str:
    """Return in a few words whether passes of a task with these controls can be confirmed."""
    if controls is None:
        return MADE_BEFORE
    if controls.confirmable:
        return f"{CAN_BE}, by {len(controls.telling)} of {len(controls.tests)} tests"
    if controls.reason:
        return f"no ({controls.reason})"
    return "no"


def controls_lines(controls: Controls) -> Iterator[str]:
    """Yield the details of a task's controls that `controls_words` leaves out."""
    if controls.detail:
        yield controls.detail
    if controls.reasons:
        yield f"Tests that do not count: {reasons_in_words(controls.reasons)}."
