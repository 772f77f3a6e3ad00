"""Prepares a study's data for publication: with pseudonyms for people, weeks for dates, and no free text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from gistpoint.core.study.data import ReviewerDecision, StudyData
from gistpoint.core.study.declaration import Participants, Question, QuestionKind, Study
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.measuring import utc_text
from gistpoint.core.study.operations import (
    DATA_OF,
    ERASED,
    ORGANISER,
    Answers,
    Begun,
    Consented,
    Enrolled,
    Excluded,
    Exposed,
    Fact,
    Finished,
    Included,
    Planned,
    Remark,
    Returned,
    ScreenedOut,
    Sitting,
    StudyOperation,
    StudyOperationKind,
    TimesCorrected,
    Withdrawn,
    attempt,
    person,
)
from gistpoint.core.study.rows import AttemptRow, FlagRow
from gistpoint.sessions.studies.pseudonyms import Pseudonyms, monday

F = TypeVar("F", bound=msgspec.Struct)
_NAME_OF_A_RULE = re.compile(r"[a-z_]{1,40}")


def public_data(data: StudyData, names: Pseudonyms) -> StudyData:
    """Return a study's data with pseudonyms and weeks, and no free text unless the declaration permits it.

    Only data known to be harmless are included: operations of newer programs, and comparisons and readings of
    repairs are left out. Reviewers are R01, R02 and so on.
    """
    return StudyData(
        msgspec.structs.replace(data.study, participants=Participants()),
        Ledger([*_operations(data, names), *_erasures(data)]),
        data.tasks,
        tuple(sorted((_row(row, data.study, names) for row in data.rows), key=_order)),
        candidates=data.candidates,
        decisions=tuple(_decisions(data, names)),
    )


def _decisions(data: StudyData, names: Pseudonyms) -> Iterator[ReviewerDecision]:
    # Reviewers are numbered in the order of their names, so that a public report has the same pairs as the
    # organiser's.
    reviewers = sorted({one.reviewer for one in data.decisions})
    known = {reviewer: f"R{place:02}" for place, reviewer in enumerate(reviewers, 1)}
    for one in sorted(data.decisions, key=lambda one: (names.attempt(one.attempt), known[one.reviewer])):
        yield replace(one, attempt=names.attempt(one.attempt), reviewer=known[one.reviewer])


def _order(row: AttemptRow) -> tuple[str, str, int, str]:
    return row.solver, row.participant, row.position or 0, row.attempt


def public_week(utc: str) -> str:
    """Return the Monday of a time's week, in ISO 8601; empty for an empty string."""
    return utc_text(monday(round(datetime.fromisoformat(utc).timestamp() * 1000))) if utc else ""


def _row(row: AttemptRow, study: Study, names: Pseudonyms) -> AttemptRow:
    free = study.privacy.free_text_public
    return msgspec.structs.replace(
        row,
        attempt=names.attempt(row.attempt),
        participant=names.person(row.participant),
        assignment=names.assignment(row.assignment),
        exclusion=_reason(row.exclusion, free=free),
        end_code=_reason(row.end_code, free=free, otherwise="other"),
        journal_head="",
        started_utc=public_week(row.started_utc),
        flags=tuple(
            FlagRow(flag=flag.flag, events=flag.events, words=flag.words if free else "")
            for flag in row.flags
        ),
        answers={
            column: value
            for column, value in row.answers.items()
            if may_be_public(study, column.partition(".")[0], column.partition(".")[2], value)
        },
    )


def _reason(reason: str, *, free: bool, otherwise: str = "excluded") -> str:
    is_public = free or not reason or is_rule(reason)
    return reason if is_public else otherwise


def is_rule(reason: str) -> bool:
    """Return whether a reason is the name of a rule or a flag, and not free text."""
    return bool(_NAME_OF_A_RULE.fullmatch(reason))


# Answers


def may_be_public(study: Study, form: str, item: str, value: object) -> bool:
    """Return whether an answer may be published: it has no free text, or the declaration permits it."""
    if study.privacy.free_text_public:
        return True
    return not list(free_texts(study, form, item, value))


def free_texts(study: Study, form: str, item: str, value: object) -> Iterator[str]:
    """Yield the strings in an answer that are not choices of its question."""
    question = _question(study, form, item)
    offered: tuple[str, ...] = ()
    if question is not None and question.kind is not QuestionKind.TEXT:
        offered = question.options
    for one in value if isinstance(value, list | tuple) else (value,):
        if isinstance(one, Mapping):
            yield str(dict(one))
        elif isinstance(one, str) and one not in offered:
            yield one


def _question(study: Study, form: str, item: str) -> Question | None:
    forms = (one for one in study.questionnaire if one.id == form)
    return next((question for one in forms for question in one.item if question.id == item), None)


# Operations


def _operations(data: StudyData, names: Pseudonyms) -> Iterator[StudyOperation]:
    """Yield the log's operations on people and attempts in a form for publication, in the order of the log.

    Operations that are no longer in force or must not be published are left out. Their times are moved to the
    Monday of the week, plus milliseconds that keep the order for each subject.
    """
    known, place = {row.attempt for row in data.rows}, Counter[str]()
    machines: dict[str, list[str]] = defaultdict(list)
    for number, operation in enumerate(data.ledger.operations):
        kind, _, identity = operation.subject.partition(":")
        if kind == "person" and identity in data.ledger.people:
            subject = person(names.person(identity))
        elif kind == "attempt" and identity in known:
            subject = attempt(names.attempt(identity))
        else:
            continue
        record = DATA_OF.get(operation.kind)
        fact = operation.read(record) if record is not None else None
        if fact is None:
            continue
        public = _fact(fact, data.study, names)
        if public is None or not _is_in_force(data, operation):
            continue
        place[subject] += 1
        values = {name: value for name, value in msgspec.to_builtins(public).items() if name not in _OF_EACH}
        utc_ms = monday(operation.utc_ms) + place[subject]
        name, _, machine = operation.reviewer.rpartition("@")
        if machine not in machines[name]:
            machines[name].append(machine)
        writer = f"{names.writer(name)}@{machines[name].index(machine) + 1}"
        yield StudyOperation(f"{number:08}", writer, utc_ms, subject, operation.kind, values)


def _erasures(data: StudyData) -> Iterator[StudyOperation]:
    """Yield an operation for each erased person, without anything about the person.

    Otherwise, the participant flow of a public study would claim that nobody was erased.
    """
    for number in range(1, len(data.ledger.erased) + 1):
        values = {"person_sha256": f"{number:064}"}
        yield StudyOperation(
            f"erased-{number}", ORGANISER, 0, ERASED, StudyOperationKind.ERASED.value, values
        )


_OF_EACH = frozenset(Fact.__struct_fields__)


def _is_in_force(data: StudyData, operation: StudyOperation) -> bool:
    """Return whether an operation has not been withdrawn."""
    kind, _, identity = operation.subject.partition(":")
    facts = data.ledger.person(identity).facts if kind == "person" else None
    if facts is not None:
        return any(fact.op == operation.op for fact in facts.by_kind.get(operation.kind, ()))
    notes = data.ledger.notes(identity)
    return operation.op in {
        fact.op for fact in (*notes.corrections, notes.excluded, notes.included, *notes.remarks) if fact
    }


def _fact(fact: Fact, study: Study, names: Pseudonyms) -> Fact | None:
    """Return a fact in a form for publication; None if it must not be published."""
    free = study.privacy.free_text_public
    match fact:
        case Answers():
            return _answers(fact, study, names)
        case Planned():
            rows = tuple((names.assignment(one), *rest) for one, *rest in fact.assignments)
            return _with(fact, basis={}, assignments=rows)
        case Begun():
            return _with(
                fact, assignment=names.assignment(fact.assignment), attempt=names.attempt(fact.attempt)
            )
        case Finished():
            own = {"assignment": names.assignment(fact.assignment), "attempt": names.attempt(fact.attempt)}
            return _with(fact, **own, head="")
        case Returned():
            return _with(fact, assignment=names.assignment(fact.assignment), why=fact.why if free else "")
        case Excluded() if not free:
            return _with(fact, why="", reason=_reason(fact.reason, free=free))
        case Remark() if not free:
            return None
    if not isinstance(fact, _PUBLISHED):
        return fact if type(fact) is Fact else None
    text = "" if free else _FREE_TEXT.get(type(fact), "")
    return _with(fact, **{text: ""}) if text else fact


_FREE_TEXT: Mapping[type[Fact], str] = {
    Exposed: "how",
    Withdrawn: "words",
    TimesCorrected: "why",
    Included: "why",
}
"""The member with free text in each type of fact, which is removed unless free text may be published."""
_PUBLISHED: tuple[type[Fact], ...] = (
    Enrolled,
    Consented,
    ScreenedOut,
    Sitting,
    Excluded,
    Remark,
    *_FREE_TEXT,
)
"""The facts that are published without further changes; facts not known to be harmless are left out."""


def _answers(fact: Answers, study: Study, names: Pseudonyms) -> Answers:
    values = {
        item: value
        for item, value in fact.values.items()
        if may_be_public(study, fact.questionnaire, item, value)
    }
    return _with(fact, values=values, assignment=names.assignment(fact.assignment))


def _with(fact: F, **changes: Any) -> F:
    return msgspec.structs.replace(fact, **changes)
