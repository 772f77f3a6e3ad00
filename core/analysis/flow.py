"""The flow of participants and attempts: enrolment, outcomes, and what is counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.analysis.pooling import (
    WITHOUT_ROW,
    countable,
    people_of,
    persons_of,
    solved_of,
    tasks_of,
    under,
)
from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.results import Standing
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.exclusions import NO_VERDICT, exclusion_words
from gistpoint.core.study.ledger import Person
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import counted_tasks


def participant_flow(data: StudyData) -> Findings:
    """Return the numbers of people and attempts at each step, and the coverage of tasks (`flow`)."""
    people = tuple(data.ledger.people.values())
    if not any((people, data.rows, data.ledger.erased)):
        return Findings()
    found = FindingsBuilder()
    steps = found.table("Participants and attempts", ("step", "number"))
    # A step with a reason or a role is named `what: code`; the key of its number is `what/code`.
    for name, count in {**_of_people(data, people), **_of_attempts(data)}.items():
        found.number(name.replace(": ", "/"), Number(float(count)))
        steps.row(_step_words(name), count)
    _add_conditions(found, data, people)
    _add_models(found, data)
    _add_coverage(found, data)
    found.note(
        "Attempts that ended in a failure of the machine, a withdrawal or a disqualification are"
        " counted only here. Attempts of people are those at tasks that count, without training."
    )
    return found.findings()


def _of_people(data: StudyData, people: Iterable[Person]) -> dict[str, int]:
    """Return the numbers of people at each step, by its name, in the order of the table."""
    known = tuple(people)
    screened = Counter(out.item for person in known if (out := person.screened_out) is not None)
    roles = Counter(
        person.role for person in known if person.enrolled is not None and person.role != "baseline"
    )
    withdrawn = Counter(person.withdrawn.data for person in known if person.withdrawn is not None)
    to_erase = withdrawn.pop("erase", 0)
    return {
        "enrolled": sum(person.enrolled is not None for person in known),
        **_counts_of("enrolled in another role", roles),
        "consented": sum(person.consent is not None and not person.declined for person in known),
        "declined to consent": sum(person.declined for person in known),
        "screened out": screened.total(),
        **_counts_of("screened out by", screened),
        "began a task": sum(bool(person.begun) for person in known),
        "withdrew, data kept": withdrawn.total(),
        **({"withdrew, data still to be erased": to_erase} if to_erase else {}),
        "erased": len(data.ledger.erased),
    }


def _of_attempts(data: StudyData) -> dict[str, int]:
    """Return the numbers of assignments, then of people's attempts, by the name of the step, in order."""
    assigned = tuple(data.ledger.assignments())
    rows = _main_rows(data)
    training = sum(not row.solver for row in data.rows) - len(rows)
    counted = people_of(rows)
    reasons = Counter(row.exclusion or row.end or "unknown" for row in rows if not countable(row))
    ends = Counter(row.end or "unfinished" for row in rows)
    return {
        "assigned": len(assigned),
        "assigned and begun": sum(one.id in data.ledger.person(one.person).begun for one in assigned),
        "returned": sum(one.id in data.ledger.person(one.person).returned for one in assigned),
        **({"training attempts": training} if training else {}),
        "attempts of people": len(rows),
        **_counts_of("ended", ends),
        "not counted": reasons.total(),
        **_counts_of(_NOT_COUNTED, reasons),
        "counted": len(counted),
        "persons with counted attempts": persons_of(counted),
        "tasks with counted attempts": tasks_of(counted),
    }


def _main_rows(data: StudyData) -> list[AttemptRow]:
    """Return the rows of people, without training attempts, as in the text of the methods."""
    return [row for row in data.rows if not row.solver and row.role != Role.TRAINING]


_NOT_COUNTED = "not counted because"


def _step_words(name: str) -> str:
    """Return the name of a step for readers, with words in place of codes."""
    what, _, code = name.partition(": ")
    if what == _NOT_COUNTED:
        return f"{what} {exclusion_words(code)}"
    return f"{what}: {code.replace('_', ' ')}" if code else what


def _counts_of(what: str, found: Mapping[str, int]) -> dict[str, int]:
    """Return counts by `what: code`, in descending order; equal counts are in the order of their codes."""
    in_order = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    return {f"{what}: {code}": count for code, count in in_order}


def _add_conditions(found: FindingsBuilder, data: StudyData, people: Iterable[Person]) -> None:
    table = found.table(
        "By condition", ("condition", "assigned", "begun", "attempts", "counted", "solved", *_BY_TESTS)
    )
    begun: dict[str, list[bool]] = defaultdict(list)
    for person in people:
        for one in person.assignments:
            begun[one.condition].append(one.id in person.begun)
    rows = _main_rows(data)
    if not rows and not begun:
        return
    # Declared conditions come first, then those that occur only in the log or the rows.
    declared = [condition.id for condition in data.study.conditions_of_people]
    for name in dict.fromkeys([*declared, *begun, *(row.condition for row in rows)]):
        in_condition = under(rows, name)
        kept = list(filter(countable, in_condition))
        assigned = begun.get(name, [])
        table.row(name, len(assigned), sum(assigned), len(in_condition), len(kept), *_outcomes(kept))


_BY_TESTS = ("by the tests alone", "of these not asked")
_MISSING = ("without an outcome", "solved if these had failed", "solved if these had solved")
"""The columns for runs without an outcome: their number, and bounds of the solve rate (decision 150)."""
_WITHOUT_OUTCOME = ("unfinished", "mixed", NO_VERDICT)


def _outcomes(rows: Sequence[AttemptRow]) -> tuple[int, int, int]:
    """Return the numbers of rows that are solved, of passes, and of passes that no one asked to confirm."""
    return (
        len(solved_of(rows)),
        sum(row.by_the_tests.solved for row in rows),
        sum(row.confirmation == Standing.NOT_ASKED for row in rows),
    )


def _add_models(found: FindingsBuilder, data: StudyData) -> None:
    columns = ("model", "runs", "counted", "tasks", "solved", *_BY_TESTS, *_MISSING)
    table = found.table("Models", columns)
    by_model: dict[str, list[AttemptRow]] = {}
    for row in data.rows:
        if row.solver:
            by_model.setdefault(row.who, []).append(row)
    for name, of_model in by_model.items():
        kept = list(filter(countable, of_model))
        missing = sum(row.exclusion in _WITHOUT_OUTCOME or row.end in WITHOUT_ROW for row in of_model)
        solved, all_runs = len(solved_of(kept)), len(kept) + missing
        bounds = [f"{count} of {all_runs}" for count in (solved, solved + missing)] if missing else ["", ""]
        table.row(name, len(of_model), len(kept), tasks_of(kept), *_outcomes(kept), missing, *bounds)


def _add_coverage(found: FindingsBuilder, data: StudyData) -> None:
    """Add the numbers of counted attempts per task, for each condition of people."""
    target = data.study.design.target_per_task
    columns = ("condition", "tasks", "fewest", "mean", "most", f"tasks with at least {target}")
    table = found.table("Counted attempts by task", columns)
    tasks = list(counted_tasks(data.study, data.tasks))
    if not tasks or all(row.solver for row in data.rows):
        return
    for condition in data.study.conditions_of_people:
        counts = _attempts_by_task(data.rows, condition.id)
        each = [counts[task] for task in tasks]
        covered = sum(count >= target for count in each)
        table.row(condition.id, len(tasks), min(each), sum(each) / len(each), max(each), covered)


def _attempts_by_task(rows: Iterable[AttemptRow], condition: str) -> Counter[str]:
    return Counter(row.task for row in under(people_of(rows), condition))
