"""Names and supplies the attempts of participants who allow uses beyond the study (decisions 141, 175)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import UserError
from gistpoint.core.study.declaration import MODELS_ITEM, TASKS_ITEM, models_item, tasks_item
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.reuse import agrees, lets_models_read
from gistpoint.core.tasks.model import Source
from gistpoint.sessions.attempts import folded_state
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.submissions import DAMAGED, NO_ANSWER, NO_CONSENT, AttemptsAt, ReadAttempt


def require_reusable(folder: StudyFolder) -> None:
    """Raise `StudyError` if the consent doesn't ask about tasks from submissions, or is not in force."""
    if tasks_item(folder.study.texts) is None:
        raise StudyError(
            f"The consent of {folder.study.id} does not ask whether failed submissions may become tasks.",
            hint=(
                f"An item of consent_items in study.toml that begins with {TASKS_ITEM} asks this. People who"
                " have agreed without it are asked again after `gistpoint study amend`."
            ),
        )
    _require_protocol(folder)


def _require_protocol(folder: StudyFolder) -> None:
    if folder.protocol != folder.ledger.protocol:
        raise StudyError(
            f"study.toml of {folder.study.id} differs from the protocol in force, so it is not known what"
            " people ticked.",
            hint="Undo the changes, or run `gistpoint study amend`.",
        )


def attempts_for_models(folder: StudyFolder) -> frozenset[str]:
    """Return the ids of the attempts by people who let a model read them.

    Raises `StudyError` if the consent does not ask for this, or is not in force.
    """
    if models_item(folder.study.texts) is None:
        raise StudyError(
            f"The consent of {folder.study.id} does not ask whether a model may read attempts.",
            hint=(
                f"An item of consent_items in study.toml that begins with {MODELS_ITEM} asks this. People who"
                " have agreed without it are asked again after `gistpoint study amend`."
            ),
        )
    _require_protocol(folder)
    return frozenset(
        fact.attempt
        for person in folder.ledger.people.values()
        if lets_models_read(folder.study, folder.protocol, person)
        for facts in person.begun.values()
        for fact in facts
    )


def attempts_of_study(folder: StudyFolder) -> AttemptsAt:
    """Return a function that supplies the attempts of people who let submissions become tasks.

    Raises `StudyError` if the consent does not ask for this, or is not the one in force.
    """
    require_reusable(folder)

    def at(source: Source, left_out: Counter[str]) -> Iterator[ReadAttempt]:
        wanted = {id for id, task in folder.tasks.items() if task.source == source.name}
        for person in folder.ledger.people.values():
            given = {assignment.id: assignment.task for assignment in person.assignments}
            begun = [
                (fact.attempt, given.get(assignment, ""))
                for assignment, facts in person.begun.items()
                for fact in facts
            ]
            begun = [(attempt, task) for attempt, task in begun if task in wanted]
            if not agrees(folder.study, folder.protocol, person):
                left_out[NO_CONSENT] += len(begun)
                continue
            for attempt, task in begun:
                yield from _read(folder, attempt, task, left_out)

    return at


def _read(folder: StudyFolder, attempt: str, task: str, left_out: Counter[str]) -> Iterator[ReadAttempt]:
    """Yield an attempt at a task if both can be read; count it in `left_out` otherwise."""
    state = _state(folder, attempt)
    if state is None or (state.attempt_id, state.header.task_id) != (attempt, task):
        left_out[DAMAGED] += 1
        return
    try:
        yield ReadAttempt(state, folder.task(task), folder.study.id)
    except UserError:
        left_out[NO_ANSWER] += 1


def _state(folder: StudyFolder, attempt: str) -> AttemptState | None:
    """Return the state of an attempt; None if there is no journal, several, or a damaged one."""
    here = folder.local / attempt / JOURNAL
    copies = [found.journal for found in folder.attempts() if found.id == attempt]
    journals: list[Path] = [here] if here.is_file() else copies
    if len(journals) != 1:
        return None
    try:
        content = read_journal(journals[0])
    except (UserError, OSError):
        return None
    state, problem = folded_state(content.events)
    return None if content.fault or problem else state
