"""The fold of a study's log: people, their assignments, and organisers' decisions on attempts.

The result depends on the set of operations alone, not on their order: if two operations can't both hold, the
earlier one by time and uuid holds or, for kinds of which the last counts, the later one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TypeVar, cast

import msgspec

from gistpoint.core.canonical import canonical_json, sha256_of_text
from gistpoint.core.operations import in_time
from gistpoint.core.study.operations import (
    DATA_OF,
    ERASED,
    NEVER_DELETED,
    STUDY,
    Amended,
    Answers,
    Begun,
    Consented,
    Enrolled,
    Erased,
    Excluded,
    Exposed,
    Fact,
    Finished,
    Included,
    Planned,
    ReadBlind,
    Remark,
    RepairCompared,
    Returned,
    ScreenedOut,
    Sitting,
    StudyOpened,
    StudyOperation,
    StudyOperationKind,
    TimesCorrected,
    Withdrawn,
)

F = TypeVar("F", bound=Fact)


@dataclass(frozen=True, slots=True)
class Assignment:
    """A task that a plan assigns to a person."""

    id: str
    person: str
    task: str
    condition: str
    position: int
    """The place in the person's order, counted from 1."""
    planned_ms: int = 0


@dataclass(frozen=True)
class Facts:
    """The operations in force on one subject, by kind; each kind's are ordered by time and uuid."""

    by_kind: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)

    def all(self, kind: type[F]) -> tuple[F, ...]:
        """Return the facts of a record type, in order."""
        return cast(tuple[F, ...], self._by_type.get(kind, ()))

    @cached_property
    def _by_type(self) -> Mapping[type[Fact], tuple[Fact, ...]]:
        found: dict[type[Fact], list[Fact]] = defaultdict(list)
        for fact in chain.from_iterable(self.by_kind.values()):
            found[type(fact)].append(fact)
        return {kind: tuple(facts) for kind, facts in found.items()}

    def last(self, kind: type[F]) -> F | None:
        """Return the last fact of a record type; None if there is none."""
        found = self.all(kind)
        if not found:
            return None
        return found[-1]

    def has(self, kind: StudyOperationKind) -> bool:
        """Return whether there is a fact of a kind."""
        return bool(self.by_kind.get(kind))

    def when(self, kind: StudyOperationKind) -> int | None:
        """Return the time of the last fact of a kind, in milliseconds of UTC; None if there is none."""
        found = self.by_kind.get(kind)
        if not found:
            return None
        return found[-1].utc_ms


@dataclass(frozen=True)
class Person:
    """A participant, as the log describes them."""

    code: str
    facts: Facts

    @cached_property
    def enrolled(self) -> Enrolled | None:
        """The last enrolment; None for a person who is not enrolled."""
        return self.facts.last(Enrolled)

    @property
    def stratum(self) -> str:
        """The stratum that the organiser set; empty if not enrolled."""
        if self.enrolled is None:
            return ""
        return self.enrolled.stratum

    @property
    def role(self) -> str:
        """The role of the person's counted attempts; empty if not enrolled."""
        if self.enrolled is None:
            return ""
        return self.enrolled.role

    @property
    def consent(self) -> Consented | None:
        """The last consent; None if there is none."""
        return self.facts.last(Consented)

    @property
    def declined(self) -> bool:
        """Whether the last decision on consent was to decline."""
        declined_ms = self.facts.when(StudyOperationKind.DECLINED)
        if declined_ms is None:
            return False
        return self.consent is None or declined_ms > self.consent.utc_ms

    @property
    def screened_out(self) -> ScreenedOut | None:
        """The answer that ended the session; None if there is none."""
        return self.facts.last(ScreenedOut)

    @property
    def withdrawn(self) -> Withdrawn | None:
        """The withdrawal; None if there is none. Erasing the data takes precedence over keeping them."""
        found = self.facts.all(Withdrawn)
        erasing = [fact for fact in found if fact.data == "erase"]
        return next(iter([*erasing, *found]), None)

    @cached_property
    def assignments(self) -> tuple[Assignment, ...]:
        """The person's assignments by slot and position; if a slot has two plans, the earlier one holds."""
        plans: dict[int, Planned] = {}
        for plan in self.facts.all(Planned):
            if plan.assignments:
                plans.setdefault(plan.slot, plan)
        return tuple(
            Assignment(identity, self.code, task, condition, position, plan.utc_ms)
            for _, plan in sorted(plans.items())
            for identity, task, condition, position in sorted(plan.assignments, key=lambda given: given[3])
        )

    @cached_property
    def begun(self) -> Mapping[str, tuple[Begun, ...]]:
        """The starts of each assignment, by its id; the first counts, and later ones are second exposures."""
        found: dict[str, list[Begun]] = defaultdict(list)
        for fact in self.facts.all(Begun):
            found[fact.assignment].append(fact)
        return {assignment: tuple(facts) for assignment, facts in found.items()}

    @cached_property
    def finished(self) -> Mapping[str, Finished]:
        """The end of each attempt, by the attempt's id."""
        return {fact.attempt: fact for fact in self.facts.all(Finished)}

    @cached_property
    def returned(self) -> Mapping[str, Returned]:
        """The returned assignments, which are free for others, by id."""
        return {fact.assignment: fact for fact in self.facts.all(Returned)}

    @cached_property
    def current(self) -> tuple[Assignment, ...]:
        """The assignments that were not returned."""
        return tuple(one for one in self.assignments if one.id not in self.returned)

    def end_of(self, assignment: str) -> Finished | None:
        """Return the end of an assignment, which is the end of its first attempt; None if it is open.

        A skipped assignment has an end without an attempt.
        """
        begun = next(iter(self.begun.get(assignment, ())), None)
        attempt = begun.attempt if begun else ""
        ends = (fact for fact in self.facts.all(Finished) if fact.assignment == assignment)
        return next((fact for fact in ends if fact.attempt == attempt), None)

    @property
    def waiting(self) -> tuple[Assignment, ...]:
        """The assignments that were neither returned nor have ended."""
        return tuple(one for one in self.current if self.end_of(one.id) is None)

    @property
    def is_done(self) -> bool:
        """Whether the person has ended all assignments except returned ones.

        False for a person who has withdrawn or has no assignments.
        """
        return bool(self.current) and not self.withdrawn and not self.waiting

    @property
    def is_complete(self) -> bool:
        """Whether the person is done and no assignment was freed because the person did not continue."""
        return self.is_done and not any(fact.late for fact in self.returned.values())

    def answers(self, questionnaire: str, assignment: str = "") -> Answers | None:
        """Return the last answers to a questionnaire; None if there are none.

        `assignment` selects the task for a form that is asked after each task.
        """
        for answers in reversed(self.facts.all(Answers)):
            if (answers.questionnaire, answers.assignment) == (questionnaire, assignment):
                return answers
        return None

    @property
    def exposures(self) -> tuple[Exposed, ...]:
        """The records of tasks and libraries that the person has seen elsewhere."""
        return self.facts.all(Exposed)

    @property
    def sitting(self) -> Sitting | None:
        """The latest start or end of a sitting; None if there is none."""
        return self.facts.last(Sitting)

    @property
    def last_own_ms(self) -> int:
        """The time of the last record by the person's own code, in milliseconds of UTC; 0 without any."""
        facts = chain.from_iterable(self.facts.by_kind.values())
        return max((one.utc_ms for one in facts if one.reviewer.rpartition("@")[0] == self.code), default=0)

    @property
    def machines(self) -> tuple[str, ...]:
        """The writers of the person's own operations, one per machine."""
        facts = chain.from_iterable(self.facts.by_kind.values())
        writers = {fact.reviewer for fact in facts}
        return tuple(sorted(writer for writer in writers if writer.rpartition("@")[0] == self.code))


@dataclass(frozen=True)
class AttemptNotes:
    """The decisions and remarks of organisers on an attempt, and the comparison of its repair."""

    corrections: tuple[TimesCorrected, ...] = ()
    excluded: Excluded | None = None
    """Set if the organisers' last decision is that the attempt does not count."""
    included: Included | None = None
    """Set if the organisers' last decision is that the attempt counts, whatever its flags."""
    compared: RepairCompared | None = None
    """The last comparison of its repair with the original."""
    remarks: tuple[Remark, ...] = ()


class Ledger:
    """A study's log, reduced to the facts that hold."""

    def __init__(self, operations: Iterable[StudyOperation] = ()) -> None:
        """Fold operations given in any order; deleted ones and those with invalid data change nothing."""
        unique: dict[str, StudyOperation] = {}
        for operation in operations:
            first = unique.setdefault(operation.op, operation)
            if first != operation and _spelled(operation) < _spelled(first):
                unique[operation.op] = operation
        self.operations: tuple[StudyOperation, ...] = tuple(sorted(unique.values(), key=in_time))

    @cached_property
    def erased(self) -> Mapping[str, Erased]:
        """The erasures by the hash of the person's code; they also cover copies that turn up later.

        An old copy of the study's folder must not restore anybody's data (decision 84).
        """
        found = (operation.read(Erased) for operation in self.operations if operation.subject == ERASED)
        return {fact.person_sha256: fact for fact in found if fact is not None}

    @cached_property
    def _by_subject(self) -> Mapping[str, Facts]:
        kept = {operation.op for operation in self.operations if operation.kind in NEVER_DELETED}
        deleted = {o.text("target") for o in self.operations if o.kind == StudyOperationKind.DELETE} - kept
        found: dict[str, dict[str, list[Fact]]] = defaultdict(lambda: defaultdict(list))
        for operation in self.operations:
            record = DATA_OF.get(operation.kind)
            fact = operation.read(record) if record is not None and operation.op not in deleted else None
            if fact is not None:
                found[operation.subject][operation.kind].append(fact)
        return {
            subject: Facts({kind: tuple(facts) for kind, facts in by_kind.items()})
            for subject, by_kind in found.items()
        }

    def _facts(self, subject: str) -> Facts:
        return self._by_subject.get(subject, Facts())

    @property
    def study(self) -> Facts:
        """The operations on the study itself."""
        return self._facts(STUDY)

    @property
    def opened(self) -> StudyOpened | None:
        """The first opening; None before the study is open."""
        return next(iter(self.study.all(StudyOpened)), None)

    @property
    def protocol(self) -> str:
        """The hash of the protocol in force, after amendments; empty before the study is open."""
        amended = self.study.last(Amended)
        if amended:
            return amended.protocol
        if self.opened:
            return self.opened.protocol
        return ""

    @property
    def version(self) -> str:
        """The version of gistpoint in force; empty if none was recorded."""
        recorded = [amended.version for amended in self.study.all(Amended) if amended.version]
        if recorded:
            return recorded[-1]
        return self.opened.version if self.opened else ""

    @property
    def amended_ms(self) -> int | None:
        """The time of the last amendment, in milliseconds of UTC; None if there is none."""
        return self.study.when(StudyOperationKind.AMENDED)

    @property
    def closed(self) -> bool:
        """Whether the study is closed."""
        return self.study.has(StudyOperationKind.CLOSED)

    def is_erased(self, code: str) -> bool:
        """Return whether a person's data were erased."""
        return person_sha256(code) in self.erased

    @cached_property
    def people(self) -> Mapping[str, Person]:
        """Everybody who is enrolled or has operations, and was not erased, by code."""
        codes = (subject.partition(":")[2] for subject in self._by_subject if subject.startswith("person:"))
        return {
            code: Person(code, self._facts(f"person:{code}"))
            for code in sorted(codes)
            if not self.is_erased(code)
        }

    def person(self, code: str) -> Person:
        """Return a person by code; a person without facts if the code is unknown."""
        return self.people.get(code) or Person(code, Facts())

    def assignments(self) -> Iterator[Assignment]:
        """Yield every planned assignment, including returned ones."""
        for person in self.people.values():
            yield from person.assignments

    def notes(self, attempt: str) -> AttemptNotes:
        """Return the decisions and remarks of organisers on an attempt."""
        facts = self._facts(f"attempt:{attempt}")
        out = facts.last(Excluded)
        back = facts.last(Included)
        # If there is both an exclusion and an inclusion, the later one holds.
        if out is not None and back is not None:
            if (out.utc_ms, out.op) > (back.utc_ms, back.op):
                back = None
            else:
                out = None
        return AttemptNotes(
            facts.all(TimesCorrected), out, back, facts.last(RepairCompared), facts.all(Remark)
        )

    def readings(self) -> Mapping[str, Mapping[str, ReadBlind]]:
        """Return the last reading of each repair by each reader.

        The keys are the repair's key, then the reader's name.
        """
        found: dict[str, dict[str, ReadBlind]] = {}
        for subject, facts in self._by_subject.items():
            kind, _, key = subject.partition(":")
            for fact in facts.all(ReadBlind) if kind == "repair" else ():
                found.setdefault(key, {})[fact.reviewer.rpartition("@")[0]] = fact
        return found


def _spelled(operation: StudyOperation) -> str:
    return canonical_json(msgspec.to_builtins(operation))


def person_sha256(code: str) -> str:
    """Return the hash that identifies an erased person."""
    return sha256_of_text(f"gistpoint participant {code}")
