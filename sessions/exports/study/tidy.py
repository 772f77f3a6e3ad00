"""Exports a study as tidy tables, each a CSV file (UTF-8, RFC 4180), with a data dictionary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gistpoint.core.csv_text import csv_line
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.measuring import utc_text
from gistpoint.core.study.operations import Answers, Begun, Enrolled, Fact, Planned, Sitting
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import counted_tasks
from gistpoint.core.tasks.strata import failing_stratum
from gistpoint.sessions.exports.study.calls import calls_of
from gistpoint.sessions.exports.study.columns import (
    CellType,
    TidyColumn,
    TidyTable,
    cells_of,
    metrics_of,
    tables,
)
from gistpoint.sessions.exports.study.datapackage import DATAPACKAGE, datapackage
from gistpoint.sessions.exports.study.naming import prefix_of
from gistpoint.sessions.exports.study.registry import StudyExport

Cells = Mapping[str, Any]


def tidy_files(export: StudyExport) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each table's file, and then of the data dictionary."""
    data = export.data
    written: dict[str, tuple[str, bytes]] = {}
    for table in tables():
        name = f"{prefix_of(data)}{table.name}.csv"
        rows = _calls(export) if table.name == "calls" else _ROWS[table.name](data)
        written[table.name] = name, csv_of(table, rows)
        yield written[table.name]
    yield DATAPACKAGE, datapackage(data.study, written)


def csv_of(table: TidyTable, rows: Iterable[Cells]) -> bytes:
    """Return a table as CSV, sorted by its key."""
    ordered = sorted(rows, key=lambda row: [_sortable(row.get(name)) for name in table.key])
    lines = [[column.name for column in table.columns]]
    lines += [[cell(column, row.get(column.name)) for column in table.columns] for row in ordered]
    return "".join(csv_line(line, end="\r\n") for line in lines).encode("utf-8", "backslashreplace")


def _sortable(value: object) -> tuple[int, str]:
    return (value, "") if isinstance(value, int) else (0, str(value or ""))


def cell(column: TidyColumn, value: Any) -> str:
    """Return a value as a cell: seconds have three decimals, lists and objects are JSON, None is empty."""
    if value is None or value == "":
        return ""
    if column.type is CellType.YES_NO:
        return "true" if value else "false"
    if column.type in (CellType.LIST, CellType.TABLE):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    if column.type is CellType.NUMBER:
        return f"{value:.3f}" if column.unit == "s" else f"{float(value):.10g}"
    return str(value).replace("\0", "\\x00")


# The rows of each table


def _participants(data: StudyData) -> Iterator[Cells]:
    people = dict(data.ledger.people)
    for row in data.rows:
        if row.participant:
            people.setdefault(row.participant, data.ledger.person(row.participant))
    for code, person in people.items():
        facts = person.facts
        withdrawn = person.withdrawn
        sittings = facts.all(Sitting)
        yield {
            "participant": code,
            **_of_study(data),
            "stratum": person.stratum,
            "role": person.role,
            "enrolled_utc": _when(facts.last(Enrolled)),
            "consented_utc": _when(person.consent),
            "declined": person.declined,
            "screened_out": person.screened_out.item if person.screened_out else "",
            "withdrawn": withdrawn.data if withdrawn else "",
            "withdrawn_utc": _when(withdrawn),
            "sittings": sum(sitting.state == "began" for sitting in sittings),
            "planned": len(person.assignments) if facts.all(Planned) else 0,
            "begun": len(person.begun),
            "finished": len(person.finished),
            "machines": len(person.machines),
        }


def _assignments(data: StudyData) -> Iterator[Cells]:
    for person in data.ledger.people.values():
        for given in person.assignments:
            first = next(iter(person.begun.get(given.id, ())), None)
            end = person.finished.get(first.attempt) if first is not None else None
            yield {
                "assignment": given.id,
                **_of_study(data),
                "participant": given.person,
                "task": given.task,
                "condition": given.condition,
                "position": given.position,
                "planned_utc": utc_text(given.planned_ms),
                "begun_utc": _when(first),
                "first_attempt": first.attempt if isinstance(first, Begun) else "",
                "end": end.end if end else "",
                "returned": given.id in person.returned,
            }


def _attempts(data: StudyData) -> Iterator[Cells]:
    known = {given.id for given in data.ledger.assignments()}
    for row in data.rows:
        yield cells_of(row) | {"assignment": row.assignment if row.assignment in known else ""}


def _submissions(data: StudyData) -> Iterator[Cells]:
    for row in data.rows:
        for made in row.submitted:
            cells = {name: getattr(made, name) for name in made.__struct_fields__}
            yield {"attempt": row.attempt, **_simulated(data), **cells, "changed": len(made.changed)}


def _calls(export: StudyExport) -> Iterator[Cells]:
    for row in export.data.rows:
        for call, recorded in zip(row.calls, calls_of(export, row), strict=True):
            cells = {name: getattr(call, name) for name in call.__struct_fields__}
            # Published arguments of changes would name the corrupted functions.
            is_shown = not export.public or call.kind not in ("edit", "submit")
            arguments = dict(recorded.arguments) or None if is_shown else None
            yield {"attempt": row.attempt, **_simulated(export.data), **cells, "arguments": arguments}


def _answers(data: StudyData) -> Iterator[Cells]:
    assigned = {given.id for given in data.ledger.assignments()}
    found: dict[str, dict[str, Any]] = {}
    for row in data.rows:
        for column, value in row.answers.items() if row.participant else ():
            form, _, item = column.partition(".")
            answer = _answer(data, row.participant, row.assignment, form, item, value)
            found[answer["answer"]] = answer
    for person in data.ledger.people.values():
        for given in person.facts.all(Answers):
            for item, value in given.values.items():
                answer = _answer(data, person.code, given.assignment, given.questionnaire, item, value)
                found[answer["answer"]] = answer | {"answered_utc": utc_text(given.utc_ms)}
    for answer in found.values():
        yield {**answer, "assignment": answer["assignment"] if answer["assignment"] in assigned else ""}


def _answer(
    data: StudyData, code: str, assignment: str, form: str, item: str, value: object
) -> dict[str, Any]:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return {
        "answer": f"{code}/{assignment}/{form}.{item}",
        **_simulated(data),
        "participant": code,
        "assignment": assignment,
        "questionnaire": form,
        "item": item,
        "value": text,
        "declined": value is None,
    }


def _flags(data: StudyData) -> Iterator[Cells]:
    declared = data.study.quality.exclude_on
    for row in data.rows:
        for flag in row.flags:
            yield {
                "attempt": row.attempt,
                **_simulated(data),
                "flag": flag.flag,
                "excludes": flag.flag in declared,
                "events": list(flag.events),
                "words": flag.words,
            }


def _exclusions(data: StudyData) -> Iterator[Cells]:
    for row in data.rows:
        for number, cells in enumerate(_rulings_on(data, row), 1):
            yield {"attempt": row.attempt, **_simulated(data), "number": number, **cells}


def _rulings_on(data: StudyData, row: AttemptRow) -> Iterator[Cells]:
    notes = data.ledger.notes(row.attempt)
    if row.exclusion and notes.excluded is None:
        yield {"kind": "rule", "reason": row.exclusion}
    for kind, ruling in (("excluded", notes.excluded), ("included", notes.included)):
        if ruling is None:
            continue
        reason = getattr(ruling, "reason", "")
        yield {"kind": kind, "reason": reason, "words": ruling.why, **_written_by(ruling)}
    for correction in notes.corrections:
        for span in correction.spans:
            yield {
                "kind": "corrected",
                "words": correction.why,
                **_written_by(correction),
                "from_s": span.from_ms / 1000,
                "to_s": span.to_ms / 1000,
                "counts_as": span.counts_as,
            }
    for one in data.decisions:
        if one.attempt == row.attempt and one.active_s is not None:
            yield {"kind": "corrected", "reason": "reviewers", "active_s": one.active_s}
    for remark in notes.remarks:
        yield {"kind": "note", "words": remark.text, **_written_by(remark)}


def _decisions(data: StudyData) -> Iterator[Cells]:
    for one in data.decisions:
        yield {
            "attempt": one.attempt,
            **_simulated(data),
            "reviewer": one.reviewer,
            "decision": one.decision.value,
            "active_s": one.active_s,
        }


def _tasks(data: StudyData) -> Iterator[Cells]:
    counted = [row for row in data.counted if not row.solver]
    attempts = Counter(row.task for row in counted)
    solved = Counter(row.task for row in counted if row.solved)
    by_tests = Counter(row.task for row in counted if row.by_the_tests.solved)
    own = counted_tasks(data.study, data.tasks)
    for task in data.tasks.values():
        yield {
            "task": task.id,
            **_of_study(data),
            "training": task.id not in own,
            **{name: getattr(task, name) for name in _OF_TASK},
            "failing_stratum": failing_stratum(task.failing) or None,
            "tools": list(task.tools),
            "attempts": attempts[task.id],
            "solved": solved[task.id],
            "by_tests": by_tests[task.id],
            **metrics_of(task),
        }


_OF_TASK = (
    "mode",
    "source",
    "revision",
    "released",
    "in_history",
    "corruptions",
    "failing",
    "tool_uses",
    "submissions",
    "time_limit_s",
    "template",
)


def _solvers(data: StudyData) -> Iterator[Cells]:
    for solver in data.study.solver:
        rows = [row for row in data.rows if row.solver == solver.name]
        yield {
            "solver": solver.name,
            **_of_study(data),
            "condition": solver.condition,
            "scaffold": solver.scaffold,
            "cutoff": solver.cutoff,
            "runs": len(rows),
            "counted": sum(row.counted for row in rows),
            "solved": sum(row.counted and row.solved for row in rows),
            "by_tests": sum(row.counted and row.by_the_tests.solved for row in rows),
            "tasks": len({row.task for row in rows if row.counted}),
        }


_ROWS: Mapping[str, Callable[[StudyData], Iterator[Cells]]] = {
    "participants": _participants,
    "assignments": _assignments,
    "attempts": _attempts,
    "submissions": _submissions,
    "answers": _answers,
    "flags": _flags,
    "exclusions": _exclusions,
    "decisions": _decisions,
    "tasks": _tasks,
    "solvers": _solvers,
}


def _of_study(data: StudyData) -> Cells:
    return {"study": data.study.id, **_simulated(data)}


def _simulated(data: StudyData) -> Cells:
    return {"simulated": data.study.simulated}


def _when(fact: Fact | None) -> str:
    return utc_text(fact.utc_ms) if fact is not None else ""


def _written_by(fact: Fact) -> Cells:
    return {"writer": fact.reviewer, "said_utc": utc_text(fact.utc_ms)}
