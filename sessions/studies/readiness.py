"""Findings for a study's organiser before anybody is invited; none of them prevents its opening."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from gistpoint.core.study.declaration import (
    Assistance,
    BonusFor,
    Condition,
    ConditionsPer,
    Study,
    StudyTask,
    tasks_item,
)
from gistpoint.core.study.soundness import CORRECT_CONTRAST, times_without_people, training_tasks
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.core.text import plural
from gistpoint.sessions.studies.folder import StudyFolder

FEWEST_ATTEMPTS, FEWEST_PEOPLE, FEWEST_TASKS = 20, 8, 8
"""The numbers on each side of a contrast below which its interval says little.

With fewer than 20 attempts, the intervals of rates are not calibrated; with fewer people or tasks, they rest
on a quantile of t above 2.36.
"""
_NAMED = 3


def readiness(study: StudyFolder) -> Iterator[CheckFinding]:
    """Yield findings on other machines, the consent, time limits, contrasts and recruiting.

    There are none for a simulated study, or for one without tasks.
    """
    if study.study.simulated or not study.tasks:
        return
    yield _portable(study)
    yield _consent(study.study)
    yield _time_limits(study)
    if fault := times_without_people(study.study):
        yield CheckFinding("primary contrast", False, f"{fault} {CORRECT_CONTRAST}")
    if len(study.study.conditions_of_people) > 1:
        yield from _contrasts(study)
    yield _recruiting(study.study)


def _named(tasks: list[StudyTask]) -> str:
    words = ", ".join(
        f"{task.id[:12]} ({task.names[0]})" if task.names else task.id[:12] for task in tasks[:_NAMED]
    )
    more = len(tasks) - _NAMED
    return f"{words} and {more} more" if more > 0 else words


def _portable(study: StudyFolder) -> CheckFinding:
    """Return the finding on tasks that are not in the study's folder, which other machines do not have."""
    only_here = [task for task in study.tasks.values() if not study.is_everywhere(task.id)]
    detail = "every machine with the folder has all tasks"
    if only_here:
        detail = (
            f"only this machine has {plural(len(only_here), 'task')}: {_named(only_here)}. On others, nobody"
            " can take part: `gistpoint task export` puts each into the folder, which `tasks` then names"
        )
    return CheckFinding("portability", True, detail, reduced=bool(only_here))


def _consent(study: Study) -> CheckFinding:
    """Return the finding on the declarations that ethics boards require besides the consent's texts."""
    missing = {
        "texts.consent_version": study.texts.consent_version,
        "privacy.controller (who is responsible for the data)": study.privacy.controller,
        "privacy.retention or retention_days": study.privacy.retention or study.privacy.retention_days,
    }
    if any(one.assistance is Assistance.CHAT for one in study.conditions_of_people):
        missing["privacy.chat_recipient (who receives what the chat sends)"] = study.privacy.chat_recipient
    names = [name for name, value in missing.items() if not value]
    if tasks_item(study.texts) is None:
        names.append(
            "an item of texts.consent_items with [tasks], without which no submission may become a task"
        )
    detail = (
        f"study.toml does not state: {', '.join(names)}"
        if names
        else "version, controller and retention are stated"
    )
    return CheckFinding("consent", True, detail, reduced=bool(names))


def _time_limits(study: StudyFolder) -> CheckFinding:
    counted = _counted(study)
    without = {
        condition.id: [task for task in counted if not _limit_of(condition, task)]
        for condition in study.study.conditions_of_people
    }
    words = [
        f"{plural(len(tasks), 'task')} of {len(counted)} in condition {name!r}"
        for name, tasks in without.items()
        if tasks
    ]
    detail = "every task has a time limit"
    if words:
        detail = (
            f"no time limit: {'; '.join(words)}. Only giving up then censors a time, on which survival"
            " curves and horizons would rest: set condition.time_limit_s"
        )
    return CheckFinding("time limit", True, detail, reduced=bool(words))


def _limit_of(condition: Condition, task: StudyTask) -> int:
    return condition.time_limit_s or task.time_limit_s or 0


def _counted(study: StudyFolder) -> list[StudyTask]:
    training = training_tasks(study.study, study.tasks)
    return [task for task in study.tasks.values() if task.id not in training]


def _contrasts(study: StudyFolder) -> Iterator[CheckFinding]:
    """Yield a finding for each contrast of two conditions, about the sample size that the design aims for."""
    declared, tasks = study.study, len(_counted(study))
    conditions = [condition.id for condition in declared.conditions_of_people]
    wanted = [name for name in declared.protocol.primary_contrast if name in conditions]
    pairs = [tuple(wanted)] if len(wanted) == 2 else list(combinations(conditions, 2))
    design = declared.design
    attempts = design.target_per_task * tasks
    people = -(-attempts * len(conditions) // design.tasks_per_person)
    people = min(people, declared.participants.cap) if declared.participants.cap else people
    a_side = people if design.conditions is ConditionsPer.WITHIN else people // len(conditions)
    attempts = min(attempts, people * design.tasks_per_person // len(conditions))
    short = []
    if attempts < FEWEST_ATTEMPTS:
        short.append(f"{plural(attempts, 'attempt')} on each side, fewer than {FEWEST_ATTEMPTS}")
    if a_side < FEWEST_PEOPLE:
        short.append(f"{plural(a_side, 'person', 'people')} on each side, fewer than {FEWEST_PEOPLE}")
    if tasks < FEWEST_TASKS:
        short.append(f"{plural(tasks, 'task')}, fewer than {FEWEST_TASKS}")
    if design.conditions is ConditionsPer.WITHIN and design.tasks_per_person < len(conditions):
        short.append("too few tasks per person to meet every condition")
    for one, other in pairs:
        people_words = plural(a_side, "person", "people")
        size = f"{one} against {other}: {plural(attempts, 'attempt')} on each side by {people_words}"
        detail = (
            f"{one} against {other} is thin: {'; '.join(short)}; see `gistpoint study power`"
            if short
            else size
        )
        yield CheckFinding("contrast", True, detail, reduced=bool(short))


def _recruiting(study: Study) -> CheckFinding:
    people = study.participants
    paid = bool(people.pay.amount or people.pay.per_hour or people.pay.bonus_for is not BonusFor.NONE)
    notes = []
    if paid and not people.pay.currency:
        notes.append("participants.pay has amounts but no currency")
    if not study.design.return_after_hours:
        notes.append("design.return_after_hours is 0: tasks of people who do not come back stay theirs")
    detail = (
        "; ".join(notes)
        or f"open tasks are free after {plural(study.design.return_after_hours, 'hour')} without a record"
    )
    return CheckFinding("recruiting", True, detail, reduced=paid and not people.pay.currency)
