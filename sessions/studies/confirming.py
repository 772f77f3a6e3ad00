"""Confirms the passes of a study, on the machines that have their journals (decision 114)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.kinds.confirming import known_controls, to_be_confirmed
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.confirming import AskedPass, confirm_attempt, make_controls
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.services import Services
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.repairs import state_of


@dataclass(frozen=True, slots=True)
class PassesToConfirm:
    """The attempts of a study with a pass that can still be confirmed."""

    here: tuple[str, ...]
    """The ids of attempts with journals on this machine, which can confirm them."""
    elsewhere: tuple[str, ...]
    """The ids of attempts that other machines must confirm."""


def passes_to_confirm(folder: StudyFolder) -> PassesToConfirm:
    """Return the attempts of people in a study with a pass that can still be confirmed, oldest first."""
    local = {attempt.folder.name: attempt.folder / JOURNAL for attempt in folder.local_attempts()}
    places = {published.id: published.journal for published in folder.attempts()} | local
    unconfirmed: list[str] = []
    for identity, place in sorted(places.items()):
        with suppress(AttemptError, OSError):  # a journal that can't be read has no pass to confirm
            if _is_unconfirmed(state_of(read_journal(place).events)):
                unconfirmed.append(identity)
    return PassesToConfirm(
        tuple(identity for identity in unconfirmed if identity in local),
        tuple(identity for identity in unconfirmed if identity not in local),
    )


def _is_unconfirmed(state: AttemptState | None) -> bool:
    return state is not None and to_be_confirmed(state) is not None


def _make_controls(services: Services, task: Task, run: RunContext) -> None:
    """Make the controls of a task that has none yet."""
    confirmer = services.confirmer_for(task) if known_controls(task) is None else None
    if confirmer is not None:
        make_controls(confirmer, task, read_answer(task), run)


def confirm_study(
    services: Services, folder: StudyFolder, attempt_ids: tuple[str, ...], run: RunContext = UNATTENDED
) -> Iterator[AskedPass]:
    """Confirm passes one after another, publish each journal again, and yield the results.

    Errors are in the results. A task without controls gets them first, in its own folder. Raises
    `CancelledError` when cancelled; earlier confirmations remain.
    """
    for number, identity in enumerate(attempt_ids, start=1):
        step = run.step(f"confirming {identity} ({number} of {len(attempt_ids)})")
        try:
            task = folder.task(services.attempts.summary(identity).task_id)
            _make_controls(services, task, step)
            asked = confirm_attempt(services, identity, task=task, run=step)
            folder.publish(services.attempts.folder(identity))
        except UserError as error:
            run.check()
            asked = AskedPass(identity, AttemptState(), why_not=str(error))
        yield asked
