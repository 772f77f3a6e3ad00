"""The checks of a study before people are invited to take part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from gistpoint.core.assist.help import HelpGist
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.errors import SandboxUnavailableError, UserError
from gistpoint.core.kinds.confirming import CAN_BE, confirmable_words
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.registry import kind_named, kind_of
from gistpoint.core.study.assigning import plan_tasks, planned_data
from gistpoint.core.study.declaration import REQUIRED_ITEM, Assistance, Feedback, Study, StudyTask
from gistpoint.core.study.ledger import Assignment, Ledger
from gistpoint.core.study.operations import Enrolled, Fact, StudyOperation, StudyOperationKind, person
from gistpoint.core.study.soundness import faults_with_tasks, training_tasks, unwritten_texts
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import plural
from gistpoint.sessions.studies.exposures import other_studies
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.help_gists import read_help, wants_help, write_help
from gistpoint.sessions.studies.metrics import complete_metrics, with_metrics
from gistpoint.sessions.studies.people import stratum_in_turn
from gistpoint.sessions.studies.readiness import readiness
from gistpoint.sessions.studies.tasks import RELEASES

PEOPLE = 100
"""The number of simulated enrolments."""
LEAST_RUNS = 3
"""The minimum number of runs of the original that proves a task."""
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Balance:
    """The spread of tasks over people; each pair is the minimum and maximum number of attempts."""

    people: int
    per_task: tuple[int, int]
    per_cell: tuple[int, int]
    """Attempts per task and condition."""
    per_position: tuple[int, int]
    """Attempts per condition and position."""
    fewest_tasks: int
    """The smallest number of tasks that anybody gets."""
    short: int
    """The number of people who get fewer tasks than requested."""


def check_study(
    study: StudyFolder,
    backend: Callable[[str | None], str],
    make_help: Callable[[Task], HelpGist],
    chat: Callable[[str], object],
) -> Iterator[CheckFinding]:
    """Yield the finding of each check.

    `backend` returns the name of a backend that works on this machine: the requested one, or any that
    isolates if None is requested; it may raise `SandboxUnavailableError`. `make_help` makes the gist of a
    task, and is called only if a condition shows gists. `chat` takes the name of a model that people chat
    with, and raises `UserError` if it has no endpoint here. Missing metrics and gists are stored in the
    study's folder.
    """
    declared, tasks = study.study, study.tasks
    yield _declaration(study)
    yield from _texts(declared)
    yield _sandbox(declared, backend)
    yield from _chats(declared, chat)
    yield from _tasks(study)
    faults = faults_with_tasks(declared, tasks)
    yield CheckFinding("design", not faults, " ".join(faults) or _design(declared, tasks))
    if tasks and not faults:
        yield _balance(declared, balance(declared, tasks))
    yield _feedback(declared, len(tasks))
    if declared.design.exposed_elsewhere:
        yield _elsewhere(study)
    yield _metrics(study)
    yield from readiness(study)
    yield from _exposure_of_models(declared, tasks)
    if wants_help(declared):
        yield from _help(study, make_help)


def _chats(study: Study, chat: Callable[[str], object]) -> Iterator[CheckFinding]:
    """Yield a finding for each model that people chat with: whether it has an endpoint here."""
    names = {one.chat.model for one in study.conditions_of_people if one.assistance is Assistance.CHAT}
    for name in sorted(names):
        try:
            chat(name)
        except UserError as error:
            words = (
                f"{name} can't be used on this machine. {error.message} Every machine on which people take"
                f" part needs its endpoint. {error.hint}"
            )
            yield CheckFinding("chat", True, words, reduced=True)
        else:
            words = f"{name} has an endpoint here; every machine on which people take part needs one"
            yield CheckFinding("chat", True, words)


def _exposure_of_models(study: Study, tasks: Mapping[str, StudyTask]) -> Iterator[CheckFinding]:
    """Yield warnings, not faults, about tasks whose solution a model may have seen in training."""
    if not study.solver:
        return
    old = [task for task in tasks.values() if task.in_history]
    if old:
        words = (
            f"Warning: {plural(len(old), 'task')} of {len(tasks)} have a fault from a library's public"
            " history, whose correction models may have seen. The report shows their rates separately."
        )
        yield CheckFinding("public history", True, words, reduced=True)
    for solver in study.solver:
        if not solver.cutoff:
            words = f"Warning: {solver.name} has no `cutoff` in study.toml, so its rates are not split by it."
            yield CheckFinding("cutoff", True, words, reduced=True)
            continue
        unknown = sorted({task.source for task in tasks.values() if not task.released})
        early = sum(bool(task.released) and task.released <= solver.cutoff for task in tasks.values())
        words = f"Warning: {plural(early, 'task')} of {len(tasks)} are of libraries released up to"
        words += f" {solver.cutoff}, the cutoff of {solver.name}."
        if unknown:
            listed = ", ".join(unknown[:_NAMED])
            words += f" Unknown: {listed}; put a line `library,month` for each into {RELEASES}."
        if early or unknown:
            yield CheckFinding("cutoff", True, words, reduced=True)


def balance(study: Study, tasks: Mapping[str, StudyTask], people: int = PEOPLE) -> Balance:
    """Return how evenly tasks are spread over `people`, who are enrolled into the strata in turn."""
    operations: list[StudyOperation] = []
    given: list[Assignment] = []
    lengths: list[int] = []
    for number in range(people):
        code = f"try-{number:03}"
        enrolled = Enrolled(stratum=stratum_in_turn(study, number))
        operations.append(_operation(number, code, StudyOperationKind.ENROLLED, enrolled))
        plan = plan_tasks(study, tasks, Ledger(operations), code)
        operations.append(
            _operation(number, code, StudyOperationKind.PLANNED, planned_data(plan, basis={}, protocol=""))
        )
        given += plan
        lengths.append(len(plan))
    training = training_tasks(study, tasks)
    counted = [task for task in tasks if task not in training]
    conditions = [condition.id for condition in study.conditions_of_people]
    positions = range(1, max(lengths, default=0) + 1)
    return Balance(
        people,
        _range(Counter(row.task for row in given), counted),
        _range(
            Counter((row.task, row.condition) for row in given), [(t, c) for t in counted for c in conditions]
        ),
        _range(
            Counter((row.condition, row.position) for row in given),
            [(c, p) for c in conditions for p in positions],
        ),
        min(lengths, default=0),
        sum(length < study.design.tasks_per_person for length in lengths),
    )


def _operation(number: int, code: str, kind: StudyOperationKind, data: Fact) -> StudyOperation:
    members = {
        name: value for name, value in msgspec.to_builtins(data).items() if name not in Fact.__struct_fields__
    }
    return StudyOperation(
        f"{number:03}-{kind.value}", f"{code}@000000", number, person(code), kind.value, members
    )


def _range(counts: Mapping[object, int], cells: Sequence[object]) -> tuple[int, int]:
    found = [counts.get(cell, 0) for cell in cells] or [0]
    return min(found), max(found)


def _declaration(study: StudyFolder) -> CheckFinding:
    """Return the finding on the protocol of the declaration, which might not be in force."""
    detail = f"{study.study.id}, protocol {study.protocol[:12]}"
    in_force = study.ledger.protocol
    changed = study.ledger.opened is not None and in_force != study.protocol
    if changed:
        detail += (
            f"; {in_force[:12]} is in force, so nobody can continue: undo the changes, or run"
            " `gistpoint study amend`"
        )
    return CheckFinding("declaration", True, detail, reduced=changed)


def _texts(study: Study) -> Iterator[CheckFinding]:
    unwritten = unwritten_texts(study)
    required = [item for item in study.texts.consent_items if item.startswith(REQUIRED_ITEM)]
    detail = f"{len(study.texts.consent_items)} consent items, {len(required)} of them required"
    if not required:
        detail = f"study.toml: no item of 'texts.consent_items' begins with {REQUIRED_ITEM}"
    elif unwritten:
        detail = f"study.toml: still to be written, before anybody else takes part: {', '.join(unwritten)}"
    yield CheckFinding("texts", bool(required), detail, reduced=bool(unwritten))


def _sandbox(study: Study, backend: Callable[[str | None], str]) -> CheckFinding:
    try:
        name = backend(study.sandbox.demand or None)
    except SandboxUnavailableError as error:
        return CheckFinding("sandbox", False, str(error))
    return CheckFinding("sandbox", True, f"{name} works here")


def _tasks(study: StudyFolder) -> Iterator[CheckFinding]:
    problems, unproven = list(study.read.problems), list[str]()
    for identity in study.tasks:
        try:
            task = study.task(identity)
        except UserError as error:
            problems.append(str(error))
            continue
        if why := _unproven(task):
            unproven.append(f"{task.short_id} {why}")
    if not study.tasks:
        problems.append("there are none: put folders or archives of tasks into the folder")
    sources = sorted({task.source for task in study.tasks.values()})
    read = f"{len(study.tasks)}, of {', '.join(sources[:_NAMED])}" + (
        " and others" if len(sources) > _NAMED else ""
    )
    yield CheckFinding("tasks", not problems, _first(problems) or read)
    if study.tasks:
        proof = f"all were proven by at least {LEAST_RUNS} runs of the original"
        # In a simulated study nobody works on the tasks, so they need no proof.
        needs_no_proof = study.study.simulated and bool(unproven)
        yield CheckFinding(
            "evidence", needs_no_proof or not unproven, _first(unproven) or proof, reduced=needs_no_proof
        )
    if not study.study.simulated:
        yield from _confirmable(study)


def _confirmable(study: StudyFolder) -> Iterator[CheckFinding]:
    """Yield the finding on repair tasks whose passes can't be confirmed; nothing if there are no repairs."""
    known = {task.short_id: words for task in _readable(study) if (words := confirmable_words(task))}
    without = [f"{name}: {words}" for name, words in known.items() if not words.startswith(CAN_BE)]
    if known:
        all_can = f"passes of all {len(known)} repairs can be confirmed"
        only_some = f"passes of {len(without)} of {len(known)} repairs can't be confirmed: {_first(without)}"
        yield CheckFinding("confirmation", True, only_some if without else all_can, reduced=bool(without))


def _readable(study: StudyFolder) -> Iterator[Task]:
    """Yield the readable tasks; another check reports the others."""
    for identity in study.tasks:
        with suppress(UserError):
            yield study.task(identity)


def _unproven(task: Task) -> str:
    """Return the missing parts of a task's stored evidence, in words; empty if the evidence is complete."""
    answer = read_answer(task)
    kind = kind_of(task)
    if kind.suite and not answer.baselines:
        return "has no baseline"
    if kind.suite and not all(baseline.failing for baseline in answer.baselines):
        return "has a baseline on which none of the tests fails"
    runs = kind.originals(answer)
    if runs is not None and runs < LEAST_RUNS:
        return f"was run only {plural(runs, 'time')}"
    return ""


def _design(study: Study, tasks: Mapping[str, StudyTask]) -> str:
    modes = Counter(task.mode for task in tasks.values())
    words = ", ".join(f"{count} {mode}" for mode, count in sorted(modes.items()))
    return f"{study.design.tasks_per_person} of {len(tasks)} tasks per person ({words})"


def _balance(study: Study, found: Balance) -> CheckFinding:
    detail = (
        f"{found.people} people: {_spread(found.per_task)} attempts per task, {_spread(found.per_cell)} per"
        f" task and condition, {_spread(found.per_position)} per condition and position"
    )
    if found.short:
        detail += (
            f"; {found.short} of them get fewer than {study.design.tasks_per_person} tasks, as few as "
            f"{found.fewest_tasks}: see design.per_source and design.quota"
        )
    return CheckFinding("balance", found.short == 0, detail)


def _spread(ends: tuple[int, int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _feedback(study: Study, tasks: int) -> CheckFinding:
    feedback = study.texts.feedback
    if feedback is Feedback.FULL and tasks and study.design.target_per_task > 1:
        return CheckFinding(
            "feedback",
            False,
            "texts.feedback = 'full' shows people the answer while others can still get the task:"
            " use it only with design.target_per_task = 1, or choose 'outcome'",
        )
    return CheckFinding("feedback", True, f"feedback after a task: {feedback.value}")


def _elsewhere(study: StudyFolder) -> CheckFinding:
    missing = [name for name, folder in other_studies(study).items() if folder is None]
    if missing:
        detail = (
            f"study.toml: the key 'design.exposed_elsewhere' names {missing[0]!r}, but that is not a study"
        )
        return CheckFinding("exposed elsewhere", False, detail)
    return CheckFinding(
        "exposed elsewhere", True, f"{len(other_studies(study))} other studies are taken into account"
    )


def _help(study: StudyFolder, make_help: Callable[[Task], HelpGist]) -> Iterator[CheckFinding]:
    """Make the missing gists of repair tasks, store them, and yield a finding for each such task."""
    for identity, known in study.tasks.items():
        if not _is_repair(known):
            continue
        gist = read_help(study.root, identity)
        if not gist.text:
            gist = make_help(study.task(identity))
            if gist.text:
                write_help(study.root, identity, gist)
        lines = len(physical_lines(gist.text))
        detail = (
            f"{identity[:12]}: {plural(lines, 'line')}"
            if gist.text
            else f"{identity[:12]} has no gist. {gist.reason}"
        )
        yield CheckFinding("help gist", bool(gist.text), detail)


def _metrics(study: StudyFolder) -> CheckFinding:
    """Measure the libraries of tasks that are not measured yet, store the results, and return the finding."""
    found, problems = complete_metrics(study.root, study.tasks, study.task)
    repairs = [task for task in with_metrics(study.tasks, found).values() if _is_repair(task)]
    known = sum(bool(task.metrics) for task in repairs)
    detail = _first(problems) or f"{known} of {len(repairs)} repairs have them"
    return CheckFinding("metrics", True, detail, reduced=known < len(repairs))


def _is_repair(task: StudyTask) -> bool:
    """Return whether a task is a repair of functions, so that it has metrics and can be shown with a gist."""
    kind = kind_named(task.mode)
    return kind is not None and kind.has_targets


def _first(problems: Sequence[str]) -> str:
    """Return the first problems in words, and the number of others; empty if there are none."""
    words = "; ".join(problems[:_NAMED])
    more = len(problems) - _NAMED
    if more > 0:
        words += f"; and {more} more"
    return words
