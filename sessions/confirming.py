"""Confirms passes: a separate step after the end of an attempt, recorded in its journal (decision 114)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.confirmation.controls import controls_of_here, write_controls
from gistpoint.core.confirmation.model import (
    NOT_CONTROLLED,
    Confirmation,
    Confirmer,
    Controls,
    Unconfirmable,
)
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.confirming import confirmed_pass, known_controls, to_be_confirmed
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.login import login_name
from gistpoint.core.requests import Request
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import CANARY, Answer, Task
from gistpoint.sessions.annotations.keys import attempt_key
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.attempt_summary import AttemptSummary, require_shown
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.services import Services

NO_ENGINE = "This version of gistpoint can't confirm passes."
NOTHING_TO_ASK = "This attempt has no pass that still has to be confirmed."


@dataclass(frozen=True, slots=True)
class AskedPass:
    """The result of a request to confirm an attempt's pass."""

    attempt_id: str
    state: AttemptState
    """The attempt's current state; a blank one after an error."""
    confirmation: Confirmation | None = None
    """The confirmation, which may be an earlier one; None if there is none, for the reason `why_not`."""
    why_not: str = ""


def confirm_attempt(
    services: Services,
    attempt_id: str,
    *,
    attempts: AttemptStore | None = None,
    task: Task | None = None,
    run: RunContext = UNATTENDED,
) -> AskedPass:
    """Confirm the pass of an attempt that has ended, and write the result to its journal.

    `attempts` and `task` replace the store and the task of the services. If the attempt has not ended or has
    no pass to confirm, or if its task has no controls or can't be confirmed by this version, nothing is
    written to it, and `why_not` is the reason. Controls made by other machines are first made again here
    (decision 158). Raises `UserError` if the attempt, its task or a sandbox is missing, if the outcome is
    hidden, or if another process uses the journal or another machine owns it, and `CancelledError` when
    cancelled; the journal is then unchanged too.
    """
    store = attempts or services.attempts
    summary = store.summary(attempt_id)
    require_shown(summary)
    state, identity = summary.state, summary.attempt_id
    if summary.problem or to_be_confirmed(state) is None:
        return AskedPass(identity, state, state.confirmation, summary.problem or NOTHING_TO_ASK)
    task = task or services.tasks.find(summary.task_id)
    controls = known_controls(task)
    if controls is None:
        return AskedPass(
            identity,
            state,
            why_not=f"{NOT_CONTROLLED.detail} `gistpoint task control {task.short_id}` prepares it.",
        )
    confirmer = services.confirmer_for(task)
    if confirmer is None:
        return AskedPass(identity, state, why_not=NO_ENGINE)
    answer = read_answer(task)
    controls = controls_of_here(task.folder) or make_controls(confirmer, task, answer, run)
    event = confirmed_pass(task, answer, controls, state, confirmer, run)
    if event is None:
        return AskedPass(identity, state, why_not=NOTHING_TO_ASK)
    return AskedPass(identity, store.add_after_end(identity, event), event.confirmation)


def make_controls(confirmer: Confirmer, task: Task, answer: Answer, run: RunContext) -> Controls:
    """Make the controls of a task on this machine, write them next to its answer, and return them.

    If they can't be written, or the sandbox failed, they are made again for the next pass. Raises
    `CancelledError` when cancelled.
    """
    step = run.step(f"checking whether passes of {task.short_id} can be confirmed")
    made = confirmer.control(task, answer, run=step)
    # A failed sandbox says nothing about the task, so the next pass tries again.
    if made.reason is not Unconfirmable.SANDBOX:
        with suppress(OSError):
            write_controls(task.folder, made, CANARY)
    return made


def confirm_after_end(
    services: Services,
    attempt_id: str,
    *,
    attempts: AttemptStore | None = None,
    task: Task | None = None,
    run: RunContext = UNATTENDED,
) -> AskedPass | None:
    """Confirm the pass of an attempt that has just ended, and return the result; None if that fails.

    The attempt is valid without a confirmation: `gistpoint attempt confirm` tries again and reports what went
    wrong. See `confirm_attempt`. Raises `CancelledError` when cancelled.
    """
    try:
        return confirm_attempt(services, attempt_id, attempts=attempts, task=task, run=run)
    except UserError:
        run.check()
        return None


def unconfirmed_attempts(attempts: AttemptStore) -> list[AttemptSummary]:
    """Return the attempts on this machine whose pass can still be confirmed, oldest first."""
    found = [
        summary
        for summary in attempts.outlines()
        if not summary.problem and not summary.elsewhere and to_be_confirmed(summary.state) is not None
    ]
    return found[::-1]


def confirm_attempts(
    services: Services, attempt_ids: Sequence[str], run: RunContext = UNATTENDED
) -> Iterator[AskedPass]:
    """Confirm the passes of attempts one after another, and yield the results; errors are in `why_not`.

    Raises `CancelledError` when cancelled; earlier confirmations remain.
    """
    for number, attempt_id in enumerate(attempt_ids, start=1):
        step = run.step(f"confirming {attempt_id} ({number} of {len(attempt_ids)})")
        try:
            yield confirm_attempt(services, attempt_id, run=step)
        except UserError as error:
            run.check()
            yield AskedPass(attempt_id, AttemptState(), why_not=str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectToVerdict(Request):
    """A request to record a solver's objection to a verdict that their pass does not count."""

    attempt: str
    why: str
    reviewer: str = ""
    """The objector; empty for the attempt's participant or, if there is none, the login name."""


def object_to(attempts: AttemptStore, reviews: ReviewStore, request: ObjectToVerdict) -> AttemptSummary:
    """Record a solver's objection as a comment on the run, and return the attempt; reviewers decide about it.

    Raises `UserError` if there is no reason or no pass that requires review, or if the outcome is hidden.
    """
    if not request.why.strip():
        raise UserError("An objection needs a reason.", hint="Add --why TEXT.")
    summary = attempts.summary(request.attempt)
    require_shown(summary)
    if not summary.state.solved or not summary.state.suspicious:
        raise UserError(
            f"There is nothing to object to: {summary.attempt_id} has no pass that a reviewer must read.",
            hint=f"`gistpoint attempt show {summary.attempt_id}` shows its state.",
        )
    solver = Reviewer(reviews, request.reviewer or summary.participant or login_name())
    solver.comment(attempt_key(summary.attempt_id), f"{OBJECTION} {request.why.strip()}")
    return summary


OBJECTION = "The solver objects:"
"""The first words of a comment that records an objection."""
