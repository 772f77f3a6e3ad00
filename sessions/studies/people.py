"""The people of a study: enrolment, who may take part, returned assignments, withdrawal and erasure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gistpoint.core.attempts.identity import Role
from gistpoint.core.locations import path_of
from gistpoint.core.requests import Count, Request
from gistpoint.core.study.declaration import Assistance, Study
from gistpoint.core.study.ledger import Assignment, Person, person_sha256
from gistpoint.core.study.operations import (
    ERASE,
    KEEP,
    Enrolled,
    Exported,
    Returned,
    StudyError,
    StudyOperationKind,
    Withdrawn,
    person,
)
from gistpoint.core.study.ports import Erasure
from gistpoint.core.study.soundness import unwritten_texts
from gistpoint.sessions.machine import crockford
from gistpoint.sessions.studies.course import require_opened
from gistpoint.sessions.studies.exposures import record_exposures
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.recruiting import (
    Recruit,
    read_recruits,
    remember,
    require_no_identity,
    require_room,
)
from gistpoint.sessions.studies.writers import checked_code

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolPeople(Request):
    """A request to enrol people: one with a given code, several with random codes, or those in a table."""

    code: str = ""
    number: Count = 1
    stratum: str = ""
    role: Literal["baseline", "author", "qa"] | None = None
    """The role; if it is None, author for a code of the study's team, and otherwise baseline."""
    table: str | None = None
    """A CSV file with the people to enrol; see `recruiting`."""


def enrol_people(study: StudyFolder, request: EnrolPeople) -> dict[str, Recruit]:
    """Enrol people, and return them by code.

    Raises `StudyError` if one of them can't be enrolled; in that case, nobody is enrolled.
    """
    study.require_people()
    require_opened(study)
    if study.ledger.closed:
        raise StudyError(f"{study.study.id} is closed: nobody can be enrolled any more.")
    people = _recruits_of(study, request)
    roles = {
        code: Role(one.role) if one.role else _role_of(study.study, code) for code, one in people.items()
    }
    new = [people[code].stratum for code, role in roles.items() if role is Role.BASELINE]
    require_room(study.study.participants, study.ledger, new)
    if Role.BASELINE in roles.values() and (unwritten := unwritten_texts(study.study)):
        raise StudyError(
            f"Still to be written, before anybody else takes part: {', '.join(unwritten)}.",
            hint=(
                f"Write them, then: gistpoint study amend {study.named} --why 'texts'. "
                "With --role author you can try the study yourself."
            ),
        )
    remember(study.root, people, study.ledger.people)
    for code, role in roles.items():
        admit(study, code, people[code].stratum, role)
    return people


def _recruits_of(study: StudyFolder, request: EnrolPeople) -> dict[str, Recruit]:
    """Return the people to enrol, by their codes, which are all unused."""
    given = Recruit(stratum=request.stratum, role=request.role or "")
    if request.table is not None:
        recruits = read_recruits(path_of(request.table))
        recruits = [replace(one, stratum=one.stratum or given.stratum) for one in recruits]
    elif request.code:
        recruits = [replace(given, code=request.code)]
    else:
        recruits = [given] * request.number
    for one in recruits:
        _require_stratum(study.study, one.stratum)
        _require_role(one.role)
    wanted = [_free_code(study, one.code) for one in recruits if one.code]
    free = iter(_random_codes(study, len(recruits) - len(wanted), wanted))
    return {one.code or next(free): one for one in recruits}


def _require_role(role: str) -> None:
    """Raise `StudyError` for an unknown role; an empty one means the usual role."""
    known = [role.value for role in _ROLES]
    if role and role not in known:
        raise StudyError(f"{role[:40]!r} is not a role.", hint=f"Roles: {', '.join(known)}.")


def admit(study: StudyFolder, code: str, stratum: str, role: Role = Role.BASELINE) -> None:
    """Enrol a person, and record which tasks they have seen elsewhere."""
    study.record(code, person(code), StudyOperationKind.ENROLLED, Enrolled(stratum=stratum, role=role.value))
    record_exposures(study, code)


def stratum_in_turn(study: Study, number: int) -> str:
    """Return the stratum of the person with this number, counted from 0; strata are assigned in turn."""
    strata = study.participants.strata or ("",)
    return strata[number % len(strata)]


def _role_of(study: Study, code: str) -> Role:
    return Role.AUTHOR if code in study.participants.team else Role.BASELINE


def _require_stratum(study: Study, given: str) -> None:
    strata = study.participants.strata
    if given not in (strata or ("",)):
        known = (
            f"They are: {', '.join(strata)}."
            if strata
            else "study.toml does not declare any strata in participants.strata."
        )
        raise StudyError(
            f"{given!r} is not a stratum of the study." if given else "Name the stratum.", hint=known
        )


_ROLES = (Role.BASELINE, Role.AUTHOR, Role.QA)


def _free_code(study: StudyFolder, code: str) -> str:
    checked_code(code)
    require_no_identity(code)
    known = {other.lower(): other for other in study.ledger.people}
    if code.lower() in known:
        raise StudyError(
            f"{known[code.lower()]} is already in the study.",
            hint=(
                "Choose a code that differs in more than upper and lower case; people who are enrolled"
                " take part with `study join`."
            ),
        )
    if study.ledger.is_erased(code):
        raise StudyError(
            "The person with this code was erased: the code can't be used again in this study.",
            hint="Take another.",
        )
    return code


def _random_codes(study: StudyFolder, number: int, wanted: Sequence[str] = ()) -> list[str]:
    found: list[str] = []
    taken = {code.lower() for code in wanted}
    while len(found) < number:
        code = crockford().upper()
        if (
            code not in found
            and code.lower() not in taken
            and code not in study.ledger.people
            and not study.ledger.is_erased(code)
        ):
            found.append(code)
    return found


def require_servable(study: StudyFolder) -> None:
    """Raise `StudyError` if a model assists in a condition: such a study can't be served to browsers."""
    if any(one.assistance is Assistance.CHAT for one in study.study.conditions_of_people):
        raise StudyError(
            f"{study.study.id} has conditions with an assistant, but served programs get no key for"
            " the assistant's model.",
            hint="People can take part at this machine instead: gistpoint study join.",
        )


def codes_to_serve(study: StudyFolder) -> list[str]:
    """Return the codes of the enrolled people who have not withdrawn.

    Raises `StudyError` if there are none, or if the study is closed or simulated.
    """
    study.require_people()
    if study.ledger.closed:
        raise StudyError(f"{study.study.id} is closed: nobody can take part any more.")
    codes = [code for code, one in study.ledger.people.items() if one.enrolled and one.withdrawn is None]
    if not codes:
        raise StudyError(
            f"Nobody is enrolled in {study.study.id}.", hint=f"gistpoint study enrol {study.named} --number 8"
        )
    return codes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnAssignment(Request):
    """A request to free an assignment for others, with the reason, or with `late` all timed-out ones."""

    assignment: str = ""
    """The id of the assignment, or its beginning."""
    why: str = ""
    late: bool = False


def return_assignment(study: StudyFolder, request: ReturnAssignment) -> Assignment:
    """Record that an assignment was returned, and return the assignment.

    Raises `StudyError` if the id is unknown or not unique, the reason is empty, or the assignment was
    returned or has ended.
    """
    named = request.assignment
    given = [found for found in study.ledger.assignments() if named and found.id.startswith(named)]
    if not given:
        raise StudyError(
            f"There is no assignment {named!r}.",
            hint=f"`gistpoint study progress {study.named}` shows the open ones.",
        )
    if len(given) > 1:
        raise StudyError(
            f"{len(given)} assignments have ids that begin with {named}.",
            hint="Give more characters of the id.",
        )
    why = request.why.strip()
    if not why:
        raise StudyError("A return needs a reason.", hint="--why 'the machine broke'")
    assignment, who = given[0], study.ledger.person(given[0].person)
    if assignment.id in who.returned:
        raise StudyError(f"Assignment {assignment.id} was already returned.")
    attempts = {begun.attempt for begun in who.begun.get(assignment.id, ())}
    if ended := attempts & who.finished.keys():
        raise StudyError(
            f"Assignment {assignment.id} has ended with attempt {min(ended)}.",
            hint=(
                f"`gistpoint study exclude {study.named} {min(ended)} --why '...'` leaves it out of the"
                " estimates."
            ),
        )
    data = Returned(assignment=assignment.id, why=why)
    study.record(who.code, person(who.code), StudyOperationKind.RETURNED, data)
    return assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawPerson(Request):
    """A request to withdraw a person, and either to `keep` or to `erase` their data."""

    code: str
    keep: bool = False
    erase: bool = False
    words: str = ""
    """The person's own words, which are not stored if the person is erased."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The result of a withdrawal and the fate of the person's data."""

    code: str
    data: str
    """`keep` or `erase`."""
    erasure: Erasure | None = None
    """The deleted files; None if everything was kept."""
    away: str = ""
    """The reason why the team's store, which has a copy, can't be reached; empty if there is no reason."""
    named: bool = False
    """Whether the declaration still contains the code."""
    exports: tuple[Exported, ...] = ()
    """The exports that contain copies of the data."""
    reported: bool = False
    """Whether the folder contains a report, which may contain the data."""


def withdraw_person(study: StudyFolder, request: WithdrawPerson) -> Withdrawal:
    """Record a withdrawal, erase the person's data on request, and return the result.

    Raises `StudyError` for an unknown code, and if data are to be erased while an attempt of the person is
    open. In the latter case, the withdrawal is recorded nevertheless, and the data are erased by the next
    synchronisation, or by a repetition, after the attempt is closed.
    """
    code = _known_person(study, request.code).code
    data = Withdrawn(data=ERASE if request.erase else KEEP, words="" if request.erase else request.words)
    study.record(code, person(code), StudyOperationKind.WITHDRAWN, data)
    if not request.erase:
        return Withdrawal(code, KEEP)
    erasure = study.erase(code)
    return Withdrawal(
        code,
        ERASE,
        erasure,
        study.store.away,
        code in study.study.participants.team,
        tuple(export for export in study.ledger.study.all(Exported) if person_sha256(code) in export.people),
        (study.root / "report.html").is_file(),
    )


def _known_person(study: StudyFolder, code: str) -> Person:
    who = study.ledger.people.get(code)
    if who is None:
        erased = study.ledger.is_erased(code)
        raise StudyError(
            (
                "The person with this code was already erased."
                if erased
                else f"Nobody in the study has the code {code!r}."
            ),
            hint=(
                "`gistpoint study sync` deletes what has reappeared."
                if erased
                else "Codes are case-sensitive."
            ),
        )
    return who


def people_expired(study: StudyFolder) -> list[str]:
    """Return the codes of the people whose last operation is older than the study's retention period.

    Raises `StudyError` if the declaration defines no such period.
    """
    days = study.study.privacy.retention_days
    if not days:
        raise StudyError(
            "study.toml does not say how long data are kept: privacy.retention_days is 0.",
            hint=f"`gistpoint study withdraw {study.named} CODE --erase` erases one person.",
        )
    before_ms = study.clock.utc_ms() - days * _DAY_MS
    return [
        code
        for code, who in study.ledger.people.items()
        if max((fact.utc_ms for facts in who.facts.by_kind.values() for fact in facts), default=before_ms)
        < before_ms
    ]


def erase_people(study: StudyFolder, codes: Iterable[str]) -> None:
    """Erase all data of people, one after another.

    Raises `StudyError` at the first person with an open attempt.
    """
    for code in codes:
        study.erase(code)
