"""Reads a study's folder for its analyses: the log, the tasks with their metrics, and a row per attempt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from gistpoint.core.attempts.events import AttemptStarted, PassConfirmed
from gistpoint.core.attempts.identity import SIMULATED
from gistpoint.core.errors import AttemptError
from gistpoint.core.locations import read_regular
from gistpoint.core.study.data import RepairEquivalence, ReviewDecision, ReviewerDecision, StudyData
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.evidence import AttemptEvidence
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.measuring import measured
from gistpoint.core.study.operations import STUDY, StudyError, attempt, person
from gistpoint.core.study.ports import PublishedAttempt
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.text import plural
from gistpoint.sessions.annotations.keys import attempt_key
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.reviews import ExcludeReason, ReviewBook, RunVerdict
from gistpoint.sessions.annotations.settling import ruling_on, verdicts
from gistpoint.sessions.journal import JournalContent, read_journal
from gistpoint.sessions.studies.expected_hashes import ExpectedHashes
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.metrics import candidates, complete_metrics, with_metrics
from gistpoint.sessions.studies.publishing import head_at
from gistpoint.sessions.studies.repairs import equivalences, journals_of, merge_readings, passing_attempts
from gistpoint.sessions.studies.solvers import SolverRuns, runs_of_solvers, with_differences

REVIEWS = "reviews"
_ACCEPTING = (RunVerdict.ACCEPT, RunVerdict.ACCEPT_CORRECTED_TIME, RunVerdict.SOLVED)


@dataclass(frozen=True)
class LoadedStudy:
    """The data of a study, and the runs of each declared model."""

    data: StudyData
    solvers: tuple[SolverRuns, ...] = ()


def load_study(folder: StudyFolder, report: Callable[[str], None] = lambda words: None) -> LoadedStudy:
    """Read a study and return its data; `report` receives a description of each step.

    Raises `StudyError` if simulated attempts and others are mixed, or if the stored metrics, a pattern of
    runs or a map can't be used.
    """
    found, unmeasured = complete_metrics(folder.root, folder.tasks, folder.task, report)
    tasks = with_metrics(folder.tasks, found)
    book, expected = ReviewStore(folder.root / REVIEWS, folder.clock).book, ExpectedHashes(folder)
    problems = [*folder.files.problems, *folder.read.problems, *unmeasured]
    report("reading the attempts")
    rows = list(_rows_of_people(folder, tasks, book, expected, problems))
    report("reading the runs of models")
    solvers = tuple(with_differences(runs_of_solvers(folder, tasks, book, expected), rows))
    for of_solver in solvers:
        rows += of_solver.rows
        problems += of_solver.problems
    rows.sort(key=lambda row: (row.solver, row.participant, row.started_utc, row.attempt))
    to_read = sum(any(flag.flag == "suspicious_names" for flag in row.flags) for row in rows)
    if to_read:
        problems.append(
            f"A reviewer must read {plural(to_read, 'pass', 'passes')} before"
            f" {'it counts' if to_read == 1 else 'they count'} as solved (`gistpoint review`)."
        )
    people = [row.attempt for row in rows if not row.solver]
    decisions = tuple(one for attempt in people for one in _decisions(book, attempt))
    problems += _disputed_times(folder.ledger, decisions)
    data = StudyData(
        folder.study, folder.ledger, tasks, tuple(rows), tuple(problems), candidates(tasks, found), decisions
    )
    readings = folder.ledger.readings()
    if readings or any(folder.ledger.notes(row.attempt).compared for row in rows):
        passing = list(passing_attempts(journals_of(folder, solvers)))
        data = replace(
            data,
            equivalences=equivalences(folder.ledger, passing),
            readings=merge_readings(folder, passing, readings),
        )
    return LoadedStudy(data, solvers)


def rows_of_people(folder: StudyFolder) -> tuple[tuple[AttemptRow, ...], tuple[str, ...]]:
    """Return the rows of the published attempts of people, and a sentence for each problem.

    Tasks are not measured, because that takes time. Raises `StudyError` if simulated attempts and others are
    mixed.
    """
    book, expected = ReviewStore(folder.root / REVIEWS, folder.clock).book, ExpectedHashes(folder)
    problems = [*folder.files.problems, *folder.read.problems]
    rows = _rows_of_people(folder, dict(folder.tasks), book, expected, problems)
    return tuple(sorted(rows, key=lambda row: (row.started_utc, row.attempt))), tuple(problems)


def require_unmixed(simulated_study: bool, header: AttemptStarted, what: str) -> None:
    """Raise `StudyError` for a simulated attempt in a study of people, or a real one in a simulated study."""
    if (header.actor == SIMULATED) != simulated_study:
        made = "is simulated" if header.actor == SIMULATED else f"was made by a {header.actor or 'solver'}"
        kind = "simulated" if simulated_study else "not simulated"
        raise StudyError(
            f"{what} {made}, and the study is {kind}.",
            hint="Take it out of the folder: a study is either simulated or not.",
        )


def _rows_of_people(
    folder: StudyFolder,
    tasks: dict[str, StudyTask],
    book: ReviewBook,
    expected: ExpectedHashes,
    problems: list[str],
) -> Iterator[AttemptRow]:
    versions: dict[str, list[PublishedAttempt]] = defaultdict(list)
    for published in folder.attempts():
        versions[published.id].append(published)
    logged = _logged_heads(folder.ledger)
    for identity, of_attempt in versions.items():
        journal = _longest(of_attempt)
        try:
            content = read_journal(journal.journal)
        except AttemptError as error:
            problems.append(f"Attempt {identity}: {error}")
            continue
        header = content.events[0].data if content.events else None
        if not isinstance(header, AttemptStarted) or header.attempt_id != identity:
            problems.append(f"Attempt {identity}: its journal does not begin with the attempt's header.")
            continue
        if folder.ledger.is_erased(header.participant or ""):
            problems.append(
                f"Attempt {identity} belongs to somebody who was erased; `gistpoint study sync` deletes it."
            )
            continue
        require_unmixed(folder.study.simulated, header, f"Attempt {identity}")
        task = tasks.get(header.task_id)
        if task is None:
            problems.append(
                f"Attempt {identity}: its task {header.task_id[:12]} does not belong to this study."
            )
            continue
        ruling = ruling_on(book, attempt_key(identity))
        fault = _fault(journal, content, of_attempt, logged.get(identity, frozenset()))
        judged = tuple(_decisions(book, identity))
        recorded = expected.recorded(content, "", accepted=ruling, fault=fault, decisions=judged)
        yield measured(AttemptEvidence(folder.study, task, recorded, folder.ledger))


def _decisions(book: ReviewBook, identity: str) -> Iterator[ReviewerDecision]:
    """Yield each reviewer's decision on an attempt."""
    for given in verdicts(book, attempt_key(identity)):
        if given.verdict in _ACCEPTING:
            seconds = given.corrected_time_s
            corrected = seconds if seconds is not None and seconds >= 0 else None
            yield ReviewerDecision(identity, given.reviewer, ReviewDecision.ACCEPT, corrected)
        elif given.verdict in (RunVerdict.EXCLUDE, RunVerdict.NOT_SOLVED):
            # "Not solved", or a shortcut alone, revokes a model's pass; the attempt itself still counts.
            is_shortcut = set(given.reasons) == {ExcludeReason.SHORTCUT}
            of_pass = given.verdict is RunVerdict.NOT_SOLVED or is_shortcut
            decision = ReviewDecision.REJECT_PASS if of_pass else ReviewDecision.EXCLUDE
            yield ReviewerDecision(identity, given.reviewer, decision)


def _disputed_times(ledger: Ledger, decisions: Iterable[ReviewerDecision]) -> Iterator[str]:
    """Yield a sentence for each attempt with contradictory corrected times that no organiser has settled."""
    times: dict[str, set[float]] = defaultdict(set)
    for one in decisions:
        if one.active_s is not None:
            times[one.attempt].add(one.active_s)
    for identity, given in sorted(times.items()):
        if len(given) > 1 and not ledger.notes(identity).corrections:
            listed = ", ".join(f"{seconds:g} s" for seconds in sorted(given))
            yield (
                f"Attempt {identity}: reviewers give different corrected times ({listed}), so the recorded"
                " time counts until `gistpoint study correct` settles it."
            )


def _longest(versions: Iterable[PublishedAttempt]) -> PublishedAttempt:
    return max(versions, key=lambda one: (one.bytes, one.folder.name))


def _logged_heads(ledger: Ledger) -> Mapping[str, Set[str]]:
    """Return the hashes of the last lines with which the log says that each attempt ended."""
    heads: dict[str, set[str]] = defaultdict(set)
    for person_of_study in ledger.people.values():
        for identity, end in person_of_study.finished.items():
            if end.head:
                heads[identity].add(end.head)
    return heads


def _fault(
    journal: PublishedAttempt,
    content: JournalContent,
    versions: Sequence[PublishedAttempt],
    logged: Set[str],
) -> str:
    """Return why a published journal does not count, in a sentence; empty if it does.

    `logged` are the hashes with which the log says that the attempt ended.
    """
    if content.fault:
        return content.fault
    if len(versions) > 1:
        named = ", ".join(sorted(one.folder.name for one in versions))
        return f"There are {len(versions)} different journals of it: {named}."
    is_unextended = journal.bytes == content.whole
    found = content.head if is_unextended else _head_at(journal.journal, journal.bytes)
    if journal.head and found != journal.head:
        return "It has been changed since it was published."
    if logged and logged.isdisjoint(_heads(content)):
        return "It is not the journal whose end is in the log."
    return ""


def _heads(content: JournalContent) -> set[str]:
    """Return the hashes of a journal's last line now and before each confirmation that followed its end."""
    found = {content.head}
    for event in reversed(content.events):
        if not isinstance(event.data, PassConfirmed):
            break
        found.add(event.prev)
    return found


def _head_at(path: Path, size: int) -> str:
    return head_at(read_regular(path, links=False), size)


# The data of one person, who has a right to them


def of_person(data: StudyData, code: str) -> StudyData:
    """Return the part of a study's data that concerns one person, without other people and models.

    Raises `StudyError` if the log does not contain the code.
    """
    if code not in data.ledger.people:
        raise StudyError(f"Nobody with the code {code[:60]!r} takes part in {data.study.id}.")
    rows = tuple(row for row in data.rows if row.participant == code)
    subjects = {person(code), STUDY, *(attempt(row.attempt) for row in rows)}
    ledger = Ledger(one for one in data.ledger.operations if one.subject in subjects)
    wanted = {row.task for row in rows} | {given.task for given in ledger.person(code).assignments}
    own = {row.attempt for row in rows}

    def is_own(item: ReviewerDecision | RepairEquivalence) -> bool:
        return item.attempt in own

    return StudyData(
        msgspec.structs.replace(data.study, solver=()),
        ledger,
        {id: task for id, task in data.tasks.items() if id in wanted},
        rows,
        decisions=tuple(filter(is_own, data.decisions)),
        equivalences=tuple(filter(is_own, data.equivalences)),
    )
