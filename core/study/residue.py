"""The counts kept of an erased person, from which other people's plans can be derived (decision 165).

A plan counts the attempts at each task, including those of people who are erased later. The erasure keeps
these counts, because plans must remain derivable: which tasks were assigned, under which conditions and at
which positions, without the code, times, answers or attempts. Assignments that no other person's plan had
counted are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from gistpoint.core.study.ledger import Assignment, Person
from gistpoint.core.study.operations import (
    ERASE,
    Enrolled,
    Erased,
    Fact,
    Planned,
    ResidualAssignment,
    StudyOperation,
    StudyOperationKind,
    Withdrawn,
    person,
)

Place = tuple[str, int]
"""A line of the log: the hash of its writer, as in a plan's basis, and its number, counted from 1."""


def residue_of(
    who: Person, places: Mapping[str, Place], bases: Sequence[Mapping[str, int]]
) -> tuple[ResidualAssignment, ...]:
    """Return the assignments of a person that were counted by a plan with one of the `bases`.

    `places` are the lines of the person's operations, by the operation's uuid.
    """
    found = (
        ResidualAssignment(
            stratum=who.stratum,
            task=given.task,
            condition=given.condition,
            position=given.position,
            since=places[plan.op],
            until=tuple(places[fact.op] for fact in _ends(who, given) if fact.op in places),
        )
        for given in who.assignments
        if (plan := _plan_of(who, given)) is not None and plan.op in places
    )
    return tuple(one for one in found if any(counted_in(one, basis) for basis in bases))


def _plan_of(who: Person, given: Assignment) -> Planned | None:
    plans = who.facts.all(Planned)
    return next((plan for plan in plans if given.id in {row[0] for row in plan.assignments}), None)


def _ends(who: Person, given: Assignment) -> Iterator[Fact]:
    """Yield the facts after which an assignment no longer counts; see `assigning.live_assignments`."""
    if given.id in who.returned:
        yield who.returned[given.id]
    for fact in who.facts.all(Withdrawn):
        if fact.data == ERASE or given.id not in who.begun:
            yield fact


def counted_in(one: ResidualAssignment, basis: Mapping[str, int]) -> bool:
    """Return whether a planner that had read the lines of `basis` counted an assignment."""
    log, line = one.since
    return basis.get(log, 0) >= line and not any(basis.get(end, 0) >= last for end, last in one.until)


def is_covered(missing: Iterable[str], basis: Mapping[str, int], erased: Iterable[Erased]) -> bool:
    """Return whether erasures account for all lines of the `missing` logs that a plan had read."""
    covered: dict[str, int] = {}
    for fact in erased:
        covered |= fact.covered
    return all(basis[log] <= covered.get(log, -1) for log in missing)


def residual_operations(erased: Iterable[Erased], basis: Mapping[str, int]) -> Iterator[StudyOperation]:
    """Yield enrolments and plans of nameless people in place of the erased ones.

    They contain the assignments counted by a planner that had read the lines of `basis`.
    """
    for number, fact in enumerate(erased):
        counted = [one for one in fact.residue if counted_in(one, basis)]
        if counted:
            enrolled = Enrolled(stratum=counted[0].stratum)
            rows = tuple((f"~{number}-{n}", o.task, o.condition, o.position) for n, o in enumerate(counted))
            yield _operation(number, StudyOperationKind.ENROLLED, enrolled)
            yield _operation(number, StudyOperationKind.PLANNED, Planned(assignments=rows))


def _operation(number: int, kind: StudyOperationKind, data: Fact) -> StudyOperation:
    members = {
        name: value for name, value in msgspec.to_builtins(data).items() if name not in Fact.__struct_fields__
    }
    code = f"~{number}"
    return StudyOperation(f"{code}-{kind.value}", f"{code}@~", number, person(code), kind.value, members)
