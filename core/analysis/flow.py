"""The flow of participants and attempts: who was enrolled, what became of them, and what is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gistpoint.core.analysis.findings import Findings, FindingsTable, Number, Value
from gistpoint.core.analysis.pooling import countable, persons_of, tasks_of
from gistpoint.core.attempts.results import Standing
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.ledger import Person
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import task_named


def participant_flow(data: StudyData) -> Findings:
    """Return the counts of people and attempts at each step, and the coverage of tasks (`flow`)."""
    people = tuple(data.ledger.people.values())
    if not people and not data.rows and not data.ledger.erased:
        return Findings()
    counts = {**_of_people(data, people), **_of_attempts(data)}
    tables = [FindingsTable("Participants and attempts", ("step", "number"), tuple(counts.items()))]
    for table in (_by_condition(data, people), _models(data), _coverage(data)):
        if table is not None:
            tables.append(table)
    numbers = {key.replace(": ", "/"): Number(float(count)) for key, count in counts.items()}
    notes = ("What ended in a failure of the machine, a withdrawal or a disqualification is counted here alone.",)
    return Findings(numbers, tuple(tables), (), notes)


def _of_people(data: StudyData, people: Iterable[Person]) -> dict[str, int]:
    known = tuple(people)
    screened = Counter(out.item for person in known if (out := person.screened_out) is not None)
    roles = Counter(person.role for person in known if person.enrolled is not None and person.role != "baseline")
    kept = Counter(person.withdrawn.data for person in known if person.withdrawn is not None)
    return {
        "enrolled": sum(person.enrolled is not None for person in known),
        **_told("enrolled in another role", roles),
        "consented": sum(person.consent is not None and not person.declined for person in known),
        "declined the consent": sum(person.declined for person in known),
        "screened out": sum(screened.values()),
        **_told("screened out by", screened),
        "began a task": sum(bool(person.begun) for person in known),
        "withdrew, data kept": sum(count for how, count in kept.items() if how != "erase"),
        **({"withdrew, data still to be erased": kept["erase"]} if kept["erase"] else {}),
        "erased": len(data.ledger.erased),
    }


def _of_attempts(data: StudyData) -> dict[str, int]:
    assigned = tuple(data.ledger.assignments())
    rows = [row for row in data.rows if not row.solver]
    out = [row for row in rows if not countable(row)]
    counted = [row for row in rows if countable(row)]
    ends = Counter(row.end or "unfinished" for row in rows)
    return {
        "assigned": len(assigned),
        "assigned and begun": sum(one.id in data.ledger.person(one.person).begun for one in assigned),
        "returned": sum(one.id in data.ledger.person(one.person).returned for one in assigned),
        "attempts of people": len(rows),
        **_told("ended", ends),
        "not counted": len(out),
        **_told("not counted because", Counter(row.exclusion or row.end or "unknown" for row in out)),
        "counted": len(counted),
        "persons with counted attempts": persons_of(counted),
        "tasks with counted attempts": tasks_of(counted),
    }


def _told(what: str, found: Mapping[str, int]) -> dict[str, int]:
    return {f"{what}: {name}": count for name, count in sorted(found.items(), key=lambda one: (-one[1], one[0]))}


def _by_condition(data: StudyData, people: Iterable[Person]) -> FindingsTable | None:
    assigned = [(one, person) for person in people for one in person.assignments]
    rows = [row for row in data.rows if not row.solver]
    names = dict.fromkeys(condition.id for condition in data.study.conditions_of_people)
    names |= dict.fromkeys(one.condition for one, _ in assigned) | dict.fromkeys(row.condition for row in rows)
    lines: list[tuple[Value, ...]] = []
    for name in names:
        own = [row for row in rows if row.condition == name]
        given = [(one, person) for one, person in assigned if one.condition == name]
        lines.append(
            (
                name,
                len(given),
                sum(one.id in person.begun for one, person in given),
                len(own),
                sum(countable(row) for row in own),
                sum(countable(row) and row.solved for row in own),
                sum(countable(row) and row.by_the_tests.solved for row in own),
                sum(countable(row) and row.confirmation == Standing.NOT_ASKED for row in own),
            )
        )
    columns = ("condition", "assigned", "begun", "attempts", "counted", "solved", *_BY_TESTS)
    return FindingsTable("By condition", columns, tuple(lines)) if rows or assigned else None


_BY_TESTS = ("by the tests alone", "of these not asked")


def _models(data: StudyData) -> FindingsTable | None:
    rows = [row for row in data.rows if row.solver]
    lines: list[tuple[Value, ...]] = []
    for name in dict.fromkeys(row.who for row in rows):
        own = [row for row in rows if row.who == name]
        kept = [row for row in own if countable(row)]
        by_tests = sum(row.by_the_tests.solved for row in kept)
        not_asked = sum(row.confirmation == Standing.NOT_ASKED for row in kept)
        solved = sum(row.solved for row in kept)
        lines.append((name, len(own), len(kept), tasks_of(kept), solved, by_tests, not_asked))
    columns = ("model", "runs", "counted", "tasks", "solved", *_BY_TESTS)
    return FindingsTable("Models", columns, tuple(lines)) if rows else None


def _coverage(data: StudyData) -> FindingsTable | None:
    """Return how many counted attempts the tasks have in each condition of people."""
    conditions = [condition.id for condition in data.study.conditions_of_people]
    training = {task_named(name, data.tasks) for name in data.study.training.tasks}
    tasks = [task for task in data.tasks if task not in training]
    if not tasks or not any(not row.solver for row in data.rows):
        return None
    target = data.study.design.target_per_task
    lines: list[tuple[Value, ...]] = []
    for condition in conditions:
        counts = _attempts_by_task(data.rows, condition)
        each = [counts[task] for task in tasks]
        covered = sum(count >= target for count in each)
        lines.append((condition, len(tasks), min(each), sum(each) / len(each), max(each), covered))
    columns = ("condition", "tasks", "fewest", "mean", "most", f"tasks with at least {target}")
    return FindingsTable("Counted attempts by task", columns, tuple(lines))


def _attempts_by_task(rows: Iterable[AttemptRow], condition: str) -> Counter[str]:
    return Counter(row.task for row in rows if not row.solver and row.condition == condition and countable(row))
