"""Checks a declaration beyond its types: names must exist, ids must be unique, and scales must be usable."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NoReturn

from gistpoint.core.attempts.identity import CODE_HINT, is_code
from gistpoint.core.errors import did_you_mean
from gistpoint.core.kinds.registry import modes_measuring
from gistpoint.core.operations import LONGEST_NAME, is_reviewer
from gistpoint.core.study.declaration import (
    FORMAT,
    MODELS_ITEM,
    TASKS_ITEM,
    VERSION,
    Assistance,
    Moment,
    PrimaryOutcome,
    Question,
    QuestionKind,
    Questionnaire,
    Study,
    StudyTask,
    item_words,
)
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.questions import NUMBERS, SOURCE, fault_of
from gistpoint.core.tasks.names import folded_name, word_name

FILE = "study.toml"
UNWRITTEN = "WRITE HERE"
"""The mark in a template for text that only the organiser can write."""
_LISTED = 30
"""The maximum number of names that a hint lists."""
PEOPLE_OF_ALL = "people"
"""The name that denotes all people, under any condition, in a primary contrast."""
CORRECT_CONTRAST = "Correct protocol.primary or protocol.primary_contrast in study.toml."
STRATEGIES = ("tracing", "reading")
_STUDY_ID = re.compile(r"[a-z0-9-]{3,40}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")

_VOLUNTARY = {TASKS_ITEM: "submissions become tasks", MODELS_ITEM: "a model read attempts"}
"""The marks of consent items that can't be required, each with the voluntary permission."""


def check_declaration(study: Study) -> None:
    """Raise `StudyError`, with the file and the key, for the first fault of a declaration."""
    _check_head(study)
    _check_conditions(study)
    _check_solvers(study)
    _check_design(study)
    _check_people(study)
    for n, form in enumerate(study.questionnaire):
        _check_form(form, f"questionnaire[{n}]")
    _require_distinct_members("questionnaire", "id", [form.id for form in study.questionnaire])
    _check_screening(study)
    if study.quality.exclude_on:
        from gistpoint.core.study.flags import FLAGS  # loads what attempts are judged by

        for n, flag in enumerate(study.quality.exclude_on):
            _known(f"quality.exclude_on[{n}]", flag, FLAGS, "flag")


def _check_head(study: Study) -> None:
    if study.format != FORMAT:
        _refuse("format", f"is {study.format[:40]!r}, not {FORMAT!r}")
    if study.version != VERSION:
        _refuse("version", f"is not {VERSION}", hint="A newer version of gistpoint may read it.")
    if not _STUDY_ID.fullmatch(study.id):
        _refuse("id", "must be 3 to 40 lower-case letters, digits and hyphens")
    if not study.tasks.strip():
        _refuse("tasks", "is empty")
    if PurePath(study.tasks).is_absolute() or study.tasks.startswith("~"):
        _refuse("tasks", "must name a place relative to the study's folder, which is on several machines")


def _check_conditions(study: Study) -> None:
    if not study.condition:
        _refuse("condition", "is empty", hint="A study has at least one condition.")
    for n, condition in enumerate(study.condition):
        key = f"condition[{n}]"
        _name(f"{key}.id", condition.id)
        if condition.strategy:
            _known(f"{key}.strategy", condition.strategy, STRATEGIES, "strategy")
        if condition.assistance is Assistance.CHAT and not condition.chat.model:
            _refuse(f"{key}.chat.model", "is missing", hint='assistance = "chat" needs the name of a model.')
    _require_distinct_members("condition", "id", [condition.id for condition in study.condition])
    if not study.conditions_of_people:
        _refuse(
            "condition",
            "has no condition with people = true",
            hint="People need a condition that can be assigned to them.",
        )


def _check_design(study: Study) -> None:
    wanted = sum(study.design.quota.values())
    if wanted > study.design.tasks_per_person:
        _refuse(
            "design.quota",
            f"adds up to {wanted}, more than the {study.design.tasks_per_person} tasks of a person",
        )
    for n, tag in enumerate(study.tag):
        _name(f"tag[{n}].id", tag.id)
        _require_distinct(f"tag[{n}].tasks", tag.tasks)
    _require_distinct_members("tag", "id", [tag.id for tag in study.tag])
    _require_distinct("training.tasks", study.training.tasks)
    contrast = study.protocol.primary_contrast
    if len(contrast) not in (0, 2) or len(set(contrast)) != len(contrast):
        _refuse("protocol.primary_contrast", "must be two different names, or empty")
    names = [*(condition.id for condition in study.condition), *(solver.name for solver in study.solver)]
    names.append(PEOPLE_OF_ALL)
    for n, name in enumerate(contrast):
        _known(f"protocol.primary_contrast[{n}]", name, names, "condition or solver")


def _check_people(study: Study) -> None:
    texts = {
        "texts.consent": study.texts.consent,
        "texts.rules": study.texts.rules,
        "privacy.contact": study.privacy.contact,
    }
    for key, text in texts.items():
        if not text.strip():
            _refuse(key, "is empty")
    if not study.texts.consent_items:
        _refuse(
            "texts.consent_items", "is empty", hint="Name at least one item that a participant agrees to."
        )
    for n, item in enumerate(study.texts.consent_items):
        if not item_words(item):
            _refuse(f"texts.consent_items[{n}]", "is empty")
        for mark, may in _VOLUNTARY.items():
            if mark in item and not item.startswith(mark):
                _refuse(
                    f"texts.consent_items[{n}]",
                    f"must begin with {mark}, and can't be required",
                    hint=f"Nobody has to let {may}.",
                )
    for mark in _VOLUNTARY:
        if sum(item.startswith(mark) for item in study.texts.consent_items) > 1:
            _refuse("texts.consent_items", f"has more than one item that begins with {mark}")
    for n, stratum in enumerate(study.participants.strata):
        _name(f"participants.strata[{n}]", stratum)
    _require_distinct("participants.strata", study.participants.strata)
    for stratum in study.participants.caps:
        _known(f"participants.caps.{stratum[:40]}", stratum, study.participants.strata, "stratum")


def _check_form(form: Questionnaire, key: str) -> None:
    _name(f"{key}.id", form.id)
    for question in form.item:
        _check_question(question, f"{key}.{question.id[:40]}")
    _require_distinct_members(f"{key}.item", "id", [question.id for question in form.item])
    if not form.item:
        _refuse(key, "asks nothing", hint="Name blocks of the bank in `use`, or add your own questions.")


def _check_question(question: Question, key: str) -> None:
    _name(key, question.id)
    if not question.text.strip():
        _refuse(key, "has no text")
    _check_options(question, key)
    _check_labels(question, key)
    ends = [end for end in (question.min, question.max) if end is not None]
    if not all(map(math.isfinite, ends)) or sorted(ends) != ends:
        _refuse(key, "must have a min and a max, both numbers, with min not above max")
    if question.each_source and SOURCE not in question.text:
        _refuse(key, f"is asked for each library, but its text does not contain {SOURCE}")
    for answer in question.screen_out:
        if not _can_be_answered(question, answer):
            _refuse(key, f"has a screen_out that is not a possible answer, {str(answer)[:40]!r}")


def _check_screening(study: Study) -> None:
    screening = study.participants.screening
    if screening:
        before = [form.id for form in study.questionnaires_at(Moment.BEFORE)]
        _known("participants.screening", screening, before, "questionnaire that is asked before the tasks")
    for form in study.questionnaire:
        if form.id != screening and any(question.screen_out for question in form.item):
            _refuse(
                "participants.screening",
                f"does not name the questionnaire {form.id!r}, which has answers that screen out",
            )


def _check_solvers(study: Study) -> None:
    conditions = [condition.id for condition in study.condition]
    for n, solver in enumerate(study.solver):
        key = f"solver[{n}]"
        if not is_reviewer(solver.name):
            _refuse(
                f"{key}.name",
                f"is {solver.name[:60]!r}; it must be at most {LONGEST_NAME} printable characters",
            )
        if solver.name in (*conditions, "people"):
            _refuse(
                f"{key}.name", f"is {solver.name[:40]!r}, which is the name of a condition or of the people"
            )
        _known(f"{key}.condition", solver.condition, conditions, "condition")
        if not solver.runs:
            _refuse(f"{key}.runs", "is empty")
        if solver.map != "task_id" and not solver.map.startswith("file:"):
            _refuse(f"{key}.map", "must be task_id, or file: and the name of a table in the study's folder")
        if solver.cutoff and not _MONTH.fullmatch(solver.cutoff):
            _refuse(f"{key}.cutoff", "must be a month, such as 2025-06")
    _require_distinct_members("solver", "name", [solver.name for solver in study.solver])


def _check_options(question: Question, key: str) -> None:
    chosen = question.kind in (QuestionKind.CHOICE, QuestionKind.MULTI)
    if chosen and len(question.options) < 2:
        _refuse(key, "needs at least two options")
    if not chosen and question.options:
        _refuse(key, f"has options, which its kind, {question.kind.value}, does not have")
    _require_distinct(key, question.options)


def _check_labels(question: Question, key: str) -> None:
    labels = len(question.labels)
    if question.kind is QuestionKind.LIKERT:
        if labels not in (0, 2, question.points):
            _refuse(key, f"must have labels for its two ends, or for each of its {question.points} points")
    elif question.kind in NUMBERS:
        if labels not in (0, 2):
            _refuse(key, "must have labels for its two ends")
    elif labels:
        _refuse(key, f"has labels, which its kind, {question.kind.value}, does not have")


def _can_be_answered(question: Question, answer: object) -> bool:
    """Return whether a value can answer a question or, if several can be chosen, be one of the choices."""
    if answer is None:
        return False
    try:
        return not fault_of(question, [answer] if question.kind is QuestionKind.MULTI else answer)
    except TypeError:
        return False


def faults_with_tasks(study: Study, tasks: Mapping[str, StudyTask]) -> list[str]:
    """Return the faults that `check_declaration` does not find, as sentences with file and key.

    These are faults that concern the tasks, and invalid codes of the team.
    """
    training = training_tasks(study, tasks)
    counted = [task for task in tasks.values() if task.id not in training]
    faults = [*_unsound_codes(study), *_unknown_tasks(study, tasks), *_short_quotas(study, tasks, counted)]
    modes = {task.mode for task in counted}
    wants_gists = study.protocol.primary is PrimaryOutcome.FIDELITY
    if wants_gists and modes.isdisjoint(modes_measuring(study.protocol.primary)):
        faults.append(
            "the key 'protocol.primary' is fidelity, which only gists have, and no task asks for a gist."
        )
    if len(counted) < study.design.tasks_per_person:
        faults.append(
            f"the key 'design.tasks_per_person' asks for {study.design.tasks_per_person} tasks, but"
            f" there are {len(counted)} besides training."
        )
    return [f"{FILE}: {fault}" for fault in faults]


def unwritten_texts(study: Study) -> list[str]:
    """Return the keys of the texts that still contain the template's mark."""
    texts = {
        "texts.consent": study.texts.consent,
        "texts.rules": study.texts.rules,
        "texts.welcome": study.texts.welcome,
        "texts.debrief": study.texts.debrief,
        "privacy.contact": study.privacy.contact,
    }
    return [key for key, text in texts.items() if UNWRITTEN in text]


def _unsound_codes(study: Study) -> Iterator[str]:
    for code in study.participants.team:
        if not is_code(code):
            yield (
                f"the key 'participants.team' has {code[:60]!r}, which is not a valid participant's"
                f" code. {CODE_HINT}"
            )


def _unknown_tasks(study: Study, tasks: Mapping[str, StudyTask]) -> Iterator[str]:
    ids = ", ".join(_shown_task(task) for task in list(tasks.values())[:4])
    if len(tasks) > 4:
        ids += ", …"
    named = {"training.tasks": study.training.tasks}
    named |= {f"tag.{tag.id}.tasks": tag.tasks for tag in study.tag}
    for key, names in named.items():
        for name in names:
            if task_named(name, tasks) is None:
                yield f"the key {key!r}: there is no task {name[:60]!r}, or more than one. There are: {ids}."


def _shown_task(task: StudyTask) -> str:
    """Return the id and a name by which a declaration can refer to a task."""
    return f"{task.id[:12]} ({next(iter(task.names), word_name(task.id))})"


def _short_quotas(
    study: Study, tasks: Mapping[str, StudyTask], counted: Sequence[StudyTask]
) -> Iterator[str]:
    """Yield a sentence for each quota that has an unknown name, or requires more tasks than are `counted`."""
    names = {task.mode for task in tasks.values()} | {tag.id for tag in study.tag}
    having = Counter[str]()
    for task in counted:
        having.update(keys_of(study, task, tasks))
    for key, wanted in study.design.quota.items():
        if key not in names:
            meant = did_you_mean(key, names)
            yield f"the key 'design.quota.{key[:60]}' is neither a mode nor a tag of the tasks.{meant}"
        elif having[key] < wanted:
            yield f"the key 'design.quota.{key}' asks for {wanted} of the tasks, but there are {having[key]}."


def task_named(name: str, tasks: Mapping[str, StudyTask]) -> str | None:
    """Return the full id of a task by its id, a unique prefix of it, or its name.

    Case, spaces and punctuation of a name don't matter. The result is None for no task or several.
    """
    if name in tasks:
        return name
    if not name:
        return None
    found = [identity for identity in tasks if identity.startswith(name)]
    if not found:
        wanted = folded_name(name)
        found = [
            identity
            for identity, task in tasks.items()
            if wanted and wanted in {folded_name(word_name(identity)), *map(folded_name, task.names)}
        ]
    return found[0] if len(found) == 1 else None


def times_without_people(study: Study) -> str:
    """Return why a primary contrast of times can't be estimated, in a sentence; empty if it can be."""
    of_times = study.protocol.primary in (PrimaryOutcome.TIME_TO_SOLVE, PrimaryOutcome.TIME_RATIO)
    known = {condition.id for condition in study.conditions_of_people}
    others = [name for name in study.protocol.primary_contrast if name not in known]
    if not of_times or not others:
        return ""
    return (
        f"The primary contrast compares times, which only people have, and {others[0][:40]!r} is not a"
        " condition of people."
    )


def training_tasks(study: Study, tasks: Mapping[str, StudyTask]) -> tuple[str, ...]:
    """Return the ids of the training tasks, in the declared order.

    Names of no task, or of several, are left out. All other tasks count.
    """
    named = (task_named(name, tasks) for name in study.training.tasks)
    return tuple(task for task in named if task is not None)


def counted_tasks(study: Study, tasks: Mapping[str, StudyTask]) -> dict[str, StudyTask]:
    """Return the tasks that estimates use, by full id: all but those for training."""
    training = set(training_tasks(study, tasks))
    return {id: task for id, task in tasks.items() if id not in training}


def keys_of(study: Study, task: StudyTask, tasks: Mapping[str, StudyTask]) -> frozenset[str]:
    """Return the names under which quotas count a task: its mode and its tags."""
    keys = {task.mode}
    for tag in study.tag:
        if task.id in {task_named(name, tasks) for name in tag.tasks}:
            keys.add(tag.id)
    return frozenset(keys)


def _refuse(key: str, what: str, *, hint: str = "") -> NoReturn:
    raise StudyError(f"{FILE}: the key {key!r} {what}.", hint=hint)


def _known(key: str, name: str, known: Collection[str], what: str) -> None:
    if name not in known:
        listed = f"There are: {', '.join(list(known)[:_LISTED])}." if known else "There is none."
        meant = did_you_mean(name, known)
        raise StudyError(
            f"{FILE}: the key {key!r} has {name[:60]!r}, which is not a {what}.{meant}", hint=listed
        )


def _name(key: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        _refuse(key, f"is {name[:60]!r}; it must be 1 to 40 letters, digits, dots, hyphens and underscores")


def _require_distinct_members(key: str, member: str, names: Iterable[str]) -> None:
    duplicates = _duplicates(names)
    if duplicates:
        _refuse(key, f"has the {member} {duplicates[0][:60]!r} twice")


def _require_distinct(key: str, names: Iterable[str]) -> None:
    duplicates = _duplicates(names)
    if duplicates:
        _refuse(key, f"has {duplicates[0][:60]!r} twice")


def _duplicates(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]
