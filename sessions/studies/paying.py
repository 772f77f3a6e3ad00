"""Computes the data that a finance office needs: time, completion and amounts, but no results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain

from gistpoint.core.csv_text import csv_line
from gistpoint.core.readable import utc_day
from gistpoint.core.study.declaration import BonusFor, Study
from gistpoint.core.study.ledger import Ledger, Person
from gistpoint.core.study.operations import Answers, Consented, Fact, Sitting
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.steps import BEGAN, SITTING_LAPSES_MS

_HOUR_MIN = 60


@dataclass(frozen=True, slots=True)
class Payment:
    """A participant's row; amounts are in the declared currency, and None if not yet known."""

    code: str
    external: str
    """The recruiter's identifier, if this machine has the private table."""
    stratum: str
    state: str
    """`complete`, `part`, `withdrew`, `screened out`, `declined` or `not begun`."""
    consented: str
    """The day of the consent, in UTC."""
    last: str
    """The day of the last record, in UTC."""
    sittings: int
    minutes: float
    """The time between the first and last record of each sitting, including breaks within it.

    Work on a task that no later record of its sitting covers, because the program was killed, is added.
    """
    task_minutes: float
    """The active time in attempts, including training and tasks that have not ended."""
    tasks: int
    """The number of counted tasks that ended, whatever their outcome."""
    given: int
    completion: str
    """The completion code that the person was shown; empty unless complete."""
    base: float | None
    bonus: float | None
    """The bonus; None for a bonus for solved tasks while results are hidden."""


def payments(
    study: Study,
    ledger: Ledger,
    rows: Iterable[AttemptRow],
    external: Mapping[str, str],
    *,
    hidden: bool,
) -> list[Payment]:
    """Return the payment of each enrolled person; with `hidden`, amounts that depend on results are None."""
    of_person: dict[str, list[AttemptRow]] = defaultdict(list)
    for row in rows:
        of_person[row.participant].append(row)
    return [
        _payment(study, one, of_person[code], external.get(code, ""), hidden=hidden)
        for code, one in sorted(ledger.people.items())
        if one.enrolled is not None
    ]


def _payment(study: Study, one: Person, rows: list[AttemptRow], external: str, *, hidden: bool) -> Payment:
    pay, spans = study.participants.pay, sittings_of(one)
    minutes = (sum(end - begin for begin, end in spans) + _unrecorded_ms(one, rows, spans)) / 60_000
    ended = [given for given in one.current if one.end_of(given.id) is not None]
    consent, state = one.facts.last(Consented), state_of(one)
    complete = state == "complete"
    return Payment(
        code=one.code,
        external=external,
        stratum=one.stratum,
        state=state,
        consented=utc_day(consent.utc_ms) if consent else "",
        last=utc_day(spans[-1][1]) if spans else "",
        sittings=len(spans),
        minutes=round(minutes, 1),
        task_minutes=round(sum(row.active_s or 0.0 for row in rows) / 60, 1),
        tasks=len(ended),
        given=len(one.current),
        completion=study.participants.completion.code if complete else "",
        base=round((pay.amount if complete else 0.0) + pay.per_hour * minutes / _HOUR_MIN, 2),
        bonus=_bonus(study, ended, rows, hidden=hidden),
    )


def _bonus(study: Study, ended: Sequence[object], rows: list[AttemptRow], *, hidden: bool) -> float | None:
    pay = study.participants.pay
    if pay.bonus_for is BonusFor.TASK:
        return round(pay.bonus_amount * len(ended), 2)
    if pay.bonus_for is BonusFor.SOLVED:
        return (
            None if hidden else round(pay.bonus_amount * sum(row.counted and row.solved for row in rows), 2)
        )
    return 0.0


def state_of(one: Person) -> str:
    """Return the state of a person's participation; see `Payment.state`."""
    if one.withdrawn is not None:
        return "withdrew"
    if one.screened_out is not None:
        return "screened out"
    if one.declined:
        return "declined"
    if one.is_complete:
        return "complete"
    return "part" if one.begun or one.facts.all(Answers) else "not begun"


def sittings_of(one: Person) -> list[tuple[int, int]]:
    """Return the beginning and end of each sitting from the person's own records, in milliseconds since 1970.

    Consent and forms before the first sitting count as its beginning, or as a separate sitting if a gap
    follows. A gap after which a sitting lapses is not counted.
    """
    facts = chain.from_iterable(one.facts.by_kind.values())
    own = [fact for fact in facts if fact.reviewer.rpartition("@")[0] == one.code]
    enrolled = one.enrolled.op if one.enrolled else ""
    spans: list[list[int]] = []
    for fact in sorted(own, key=lambda fact: (fact.utc_ms, fact.op)):
        if fact.op == enrolled:
            continue
        if not spans or _begins_another(one, fact, spans[-1][1]):
            spans.append([fact.utc_ms, fact.utc_ms])
        spans[-1][1] = fact.utc_ms
    return [(begin, end) for begin, end in spans]


def _unrecorded_ms(one: Person, rows: Iterable[AttemptRow], spans: Sequence[tuple[int, int]]) -> int:
    """Return the time on the clocks of attempts that sittings do not cover, in milliseconds.

    The log has no records within a task: unless a record follows, a sitting ends where its last task began.
    """
    worked = {row.attempt: round(1000 * ((row.active_s or 0.0) + (row.waiting_s or 0.0))) for row in rows}
    begun = sorted((fact.utc_ms, fact.attempt) for facts in one.begun.values() for fact in facts)
    missing = 0
    for place, (begin, attempt) in enumerate(begun):
        ends = [utc_ms for utc_ms, _ in begun[place + 1 : place + 2]]
        ends += [one.finished[attempt].utc_ms] if attempt in one.finished else []
        end = min(ends, default=spans[-1][1])
        covered = sum(max(0, min(end, until) - max(begin, since)) for since, until in spans)
        missing += max(0, worked.get(attempt, 0) - covered)
    return missing


def _begins_another(one: Person, fact: Fact, last_ms: int) -> bool:
    """Return whether a fact begins a new sitting; the fact before it was recorded at `last_ms`."""
    if fact.utc_ms - last_ms >= SITTING_LAPSES_MS:
        return True
    return isinstance(fact, Sitting) and fact.state == BEGAN and _was_ended(one, last_ms)


def _was_ended(one: Person, at_ms: int) -> bool:
    return any(fact.utc_ms == at_ms and fact.state != BEGAN for fact in one.facts.all(Sitting))


def payments_csv(found: Iterable[Payment]) -> str:
    """Return payments as a CSV table according to RFC 4180."""
    names = [field.name for field in fields(Payment)]
    lines = [csv_line(names, end="\r\n")]
    lines += [csv_line([getattr(one, name) for name in names], end="\r\n") for one in found]
    return "".join(lines)
