"""The progress of a study: what people have done, and which cells of the design are covered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from statistics import median

from gistpoint.core.study.assigning import late_assignments
from gistpoint.core.study.declaration import Quality, Study, StudyTask
from gistpoint.core.study.flags import OF_PASSES
from gistpoint.core.study.ledger import Ledger, Person
from gistpoint.core.study.operations import Fact, StudyOperationKind
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import training_tasks

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
FEWEST_OF_MEDIAN = 3
"""The minimum number of attempts for a median: with fewer, it would reveal the times of single attempts."""


@dataclass(frozen=True, slots=True)
class PeopleProgress:
    """The numbers of people at each stage; a person counts in every stage that applies."""

    enrolled: int = 0
    consented: int = 0
    declined: int = 0
    screened_out: int = 0
    at_work: int = 0
    """The number of people with tasks who are neither done nor withdrawn."""
    done: int = 0
    withdrew: int = 0
    erased: int = 0


@dataclass(frozen=True, slots=True)
class ActivePerson:
    """A person with tasks who is neither done nor withdrawn, and the task in progress, if any."""

    code: str
    ended: int
    given: int
    """The number of assigned tasks, without returned ones."""
    assignment: str = ""
    """The id of the assignment in progress, for `gistpoint study return`."""
    task: str = ""
    attempt: str = ""
    begun_ms: int | None = None
    """The start of the attempt, in milliseconds of UTC; None without one."""


@dataclass(frozen=True, slots=True)
class PersonWaited:
    """An enrolled person who has neither begun a task nor left the study, and the stage reached."""

    code: str
    state: str
    """The stage: `enrolled`, `consented` or `planned`."""
    since_ms: int
    """The time of the last record, in milliseconds of UTC."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a study, over all conditions together, so that it reveals no outcome."""

    attempts: int = 0
    """The number of counted attempts that have ended."""
    days: float = 0.0
    """The number of days since the study was opened; 0 in the first hour, and if it was never opened."""
    per_day: float | None = None
    """The number of ended attempts per day since the opening; None while `days` is 0."""
    recent_per_day: float | None = None
    """Ended attempts per day in the last seven days, or since a later opening; None while `days` is 0."""
    people_per_day: float | None = None
    """The number of people per day who completed the study since the opening; None while `days` is 0."""
    median_min: float | None = None
    """The median of active minutes over ended attempts; None with fewer than three."""


@dataclass(frozen=True, slots=True)
class TaskCoverage:
    """A counted task, with its counted attempts by condition."""

    task: str
    mode: str
    source: str
    covered: Mapping[str, int]
    """The number of counted attempts in each condition of people."""
    flags: int
    """The number of attempts with a flag."""
    solved: int
    median_s: float | None
    """The median primary time of the solved attempts in seconds; None if there are none."""
    by_tests: int = 0
    """The number solved by the tests alone, before reviewers and confirmations."""
    standings: Mapping[str, int] = field(default_factory=dict)
    """The numbers of passes by the tests for each standing: `confirmed`, `not asked` and so on."""

    @property
    def counted(self) -> int:
        """The number of counted attempts over all conditions."""
        return sum(self.covered.values())


@dataclass(frozen=True, slots=True)
class StudyProgress:
    """The state of a study, with the outcomes of its rows, which are blinded while the study is open."""

    people: PeopleProgress
    tasks: tuple[TaskCoverage, ...]
    open_cells: int
    """The number of pairs of a task and a condition with fewer counted attempts than the target."""
    people_needed: int
    """The number of further people who would close the open cells, if each attempts a full set of tasks."""
    rows: tuple[AttemptRow, ...] = field(default=(), repr=False)
    at_work: tuple[ActivePerson, ...] = ()
    not_begun: tuple[PersonWaited, ...] = ()
    late: tuple[str, ...] = ()
    """The ids of open assignments whose time has run out, but which are not returned yet."""
    pace: Pace = Pace()
    flags: Mapping[str, int] = field(default_factory=dict)
    """The number of attempts with each flag."""


def study_progress(
    study: Study,
    tasks: Mapping[str, StudyTask],
    ledger: Ledger,
    rows: Iterable[AttemptRow],
    now_ms: int = 0,
) -> StudyProgress:
    """Return the progress of a study; `rows` are those of people, `now_ms` is the time in ms of UTC."""
    rows = tuple(rows)
    training = training_tasks(study, tasks)
    counted = [task for task in tasks.values() if task.id not in training]
    found = tuple(_coverage(study, task, [row for row in rows if row.task == task.id]) for task in counted)
    gaps = list[int]()
    for task in found:
        missing = [study.design.target_per_task - number for number in task.covered.values()]
        gaps += [number for number in missing if number > 0]
    needed = -(-sum(gaps) // study.design.tasks_per_person)
    return StudyProgress(
        people=_people(ledger, rows),
        tasks=found,
        open_cells=len(gaps),
        people_needed=needed,
        rows=rows,
        at_work=_at_work(ledger),
        not_begun=_not_begun(ledger),
        late=tuple(given.id for given in late_assignments(study, ledger, now_ms)),
        pace=_pace(ledger, rows, now_ms),
        flags=dict(Counter(flag for row in rows for flag in {one.flag for one in row.flags})),
    )


def _not_begun(ledger: Ledger) -> tuple[PersonWaited, ...]:
    return tuple(
        PersonWaited(code, _stage(person), max(fact.utc_ms for fact in _facts(person)))
        for code, person in sorted(ledger.people.items())
        if person.enrolled is not None and not person.begun and not _has_left(person)
    )


def _has_left(person: Person) -> bool:
    return person.withdrawn is not None or person.declined or person.screened_out is not None


def _facts(person: Person) -> Iterator[Fact]:
    return chain.from_iterable(person.facts.by_kind.values())


def _stage(person: Person) -> str:
    if person.assignments:
        return "planned"
    return "enrolled" if person.consent is None else "consented"


def _pace(ledger: Ledger, rows: Iterable[AttemptRow], now_ms: int) -> Pace:
    ended = [row for row in rows if row.counted and row.end]
    attempts = {row.attempt for row in ended}
    minutes = [row.active_s / 60 for row in ended if row.active_s is not None]
    middle = round(median(minutes), 1) if len(minutes) >= FEWEST_OF_MEDIAN else None
    opened = ledger.opened
    if opened is None or now_ms - opened.utc_ms < _HOUR_MS:
        return Pace(len(ended), median_min=middle)
    days, week = (now_ms - opened.utc_ms) / _DAY_MS, min(7 * _DAY_MS, now_ms - opened.utc_ms)
    times = [
        end.utc_ms
        for person in ledger.people.values()
        for end in person.finished.values()
        if end.attempt in attempts
    ]
    done = sum(person.is_complete for person in ledger.people.values())
    return Pace(
        attempts=len(ended),
        days=round(days, 2),
        per_day=round(len(ended) / days, 2),
        recent_per_day=round(sum(time >= now_ms - week for time in times) / (week / _DAY_MS), 2),
        people_per_day=round(done / days, 2),
        median_min=middle,
    )


def _coverage(study: Study, task: StudyTask, rows: Collection[AttemptRow]) -> TaskCoverage:
    counted = [row for row in rows if row.counted]
    solved = [row for row in counted if row.solved]
    times = [row.primary_s for row in solved if row.primary_s is not None]
    by_condition = Counter(row.condition for row in counted)
    standings = Counter(row.confirmation for row in counted)
    del standings[""]
    return TaskCoverage(
        task=task.id,
        mode=task.mode,
        source=task.source,
        covered={condition.id: by_condition[condition.id] for condition in study.conditions_of_people},
        flags=sum(bool(row.flags) for row in rows),
        solved=len(solved),
        by_tests=sum(row.by_the_tests.solved for row in counted),
        standings=dict(standings),
        median_s=median(times) if times else None,
    )


def _people(ledger: Ledger, rows: Iterable[AttemptRow]) -> PeopleProgress:
    people = list(ledger.people.values())
    consented = [person for person in people if person.consent is not None]
    return PeopleProgress(
        enrolled=sum(person.enrolled is not None for person in people),
        consented=sum(not person.declined for person in consented),
        declined=sum(person.declined for person in people),
        screened_out=sum(person.facts.has(StudyOperationKind.SCREENED_OUT) for person in people),
        at_work=sum(map(_is_at_work, people)),
        done=sum(person.is_done for person in people),
        withdrew=sum(person.withdrawn is not None for person in people),
        erased=len(ledger.erased),
    )


def _is_at_work(person: Person) -> bool:
    if not person.assignments or person.withdrawn:
        return False
    return not person.is_done


def _at_work(ledger: Ledger) -> tuple[ActivePerson, ...]:
    people = [person for _, person in sorted(ledger.people.items())]
    return tuple(_work_of(person) for person in people if _is_at_work(person))


def _work_of(person: Person) -> ActivePerson:
    current, waiting = person.current, person.waiting
    work = ActivePerson(person.code, len(current) - len(waiting), len(current))
    for one in waiting:
        begun = person.begun.get(one.id)
        if begun:
            last = begun[-1]
            return replace(work, assignment=one.id, task=one.task, attempt=last.attempt, begun_ms=last.utc_ms)
    return work


# Rows without outcomes, for those who watch a study before it is closed

ENDED = "ended"
"""The end shown for every blinded attempt that has ended, because the true end could reveal the outcome."""


def blinded(row: AttemptRow, quality: Quality) -> AttemptRow:
    """Return a row of a person that is the same whether the attempt was solved or not.

    Only the fields that progress needs are kept. Flags that only a pass can have are left out, and an attempt
    that one of them excludes counts until the study is closed, unless another flag excludes it too.
    Otherwise, the absence of the attempt would reveal that it was solved.
    """
    flags = tuple(flag for flag in row.flags if flag.flag not in OF_PASSES)
    exclusion = row.exclusion
    if exclusion in OF_PASSES:
        exclusion = next((flag.flag for flag in flags if flag.flag in quality.exclude_on), "")
    return AttemptRow(
        attempt=row.attempt,
        study=row.study,
        simulated=row.simulated,
        actor=row.actor,
        participant=row.participant,
        stratum=row.stratum,
        task=row.task,
        source=row.source,
        mode=row.mode,
        condition=row.condition,
        assignment=row.assignment,
        position=row.position,
        sitting=row.sitting,
        role=row.role,
        counted=not exclusion,
        exclusion=exclusion,
        end=ENDED if row.end else "",
        active_s=row.active_s,
        started_utc=row.started_utc,
        flags=flags,
    )
