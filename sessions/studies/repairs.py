"""The passing repairs of a study: comparisons with the originals, and the queues of blind readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.analysis.running import missing_extra
from gistpoint.core.attempts.events import AttemptStarted, JournalEvent
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.registry import blank_state
from gistpoint.core.requests import Request
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.study.data import MergeDecision, MergeReading, RepairEquivalence
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import (
    ORGANISER,
    ReadBlind,
    RepairCompared,
    StudyOperationKind,
    attempt,
    repair,
)
from gistpoint.core.study.repairs import AttemptRepair, original_of, passing_repair
from gistpoint.core.tasks.equivalence import EquivalenceReport, EquivalenceTester, compare_repair
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.solvers import SolverRuns


@dataclass(frozen=True, slots=True)
class PassingAttempt:
    """An attempt with a passing repair, and the repair."""

    id: str
    name: str
    """The writer whose file records facts about the attempt: the participant's code, or the organiser."""
    repair: AttemptRepair


def journals_of(folder: StudyFolder, solvers: Iterable[SolverRuns]) -> list[Path]:
    """Return the paths of a study's journals: people's published ones and models' runs that are journals."""
    models = (folder.root / run.name for found in solvers for run in found.runs if run.row is not None)
    return [published.journal for published in folder.attempts()] + [
        path for path in models if path.name == JOURNAL
    ]


def passing_attempts(journals: Iterable[Path]) -> Iterator[PassingAttempt]:
    """Yield the attempts with a passing repair; faulty journals, which prove nothing, are skipped."""
    for path in journals:
        try:
            content = read_journal(path)
        except (AttemptError, OSError):
            continue
        state = None if content.fault else state_of(content.events)
        found = passing_repair(state) if state is not None else None
        if state is not None and found is not None:
            yield PassingAttempt(state.attempt_id, state.header.participant or ORGANISER, found)


def state_of(events: tuple[JournalEvent, ...]) -> AttemptState | None:
    """Return the state after the events of a journal; None if the events are not a valid journal."""
    first = events[0].data if events else None
    if not isinstance(first, AttemptStarted):
        return None
    try:
        return fold(events, AttemptState(of_kind=blank_state(first.mode)))
    except UserError:
        return None


def compare_attempt(
    folder: StudyFolder, passing: PassingAttempt, tester: EquivalenceTester, *, run: RunContext = UNATTENDED
) -> EquivalenceReport:
    """Compare an attempt's repair with the original, record the result in the log, and return the report.

    Raises `StudyError` if the task is missing, `InfrastructureError` if the calls can't be recorded,
    `ModuleNotFoundError` if packages are not installed, and `CancelledError` if cancelled.
    """
    task = folder.task(passing.repair.task)
    repaired = passing.repair.on(SourceTree.open(task.tree_path))
    report = compare_repair(task, read_answer(task), repaired, tester, run=run)
    example = report.example
    folder.record(
        passing.name,
        attempt(passing.id),
        StudyOperationKind.COMPARED,
        RepairCompared(
            verdict=report.verdict,
            recorded=report.recorded,
            varied=report.varied,
            differing=report.recorded_differing + report.varied_differing,
            call=example.call if example else "",
            original=example.original if example else "",
            repair=example.repair if example else "",
            reason=report.reason,
        ),
    )
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRepairs(Request):
    """A request to compare passing repairs with the originals."""

    again: bool = False
    """Whether to repeat earlier comparisons."""


def compare_repairs(
    folder: StudyFolder,
    passing: Sequence[PassingAttempt],
    request: CompareRepairs,
    make_tester: Callable[[], EquivalenceTester],
    run: RunContext,
) -> tuple[RepairEquivalence, ...]:
    """Make the missing comparisons, report repairs that can't be compared, and return all results.

    Raises `StudyError` if packages are not installed, and `CancelledError` when cancelled.
    """
    known = {found.attempt for found in equivalences(folder.ledger, passing)}
    left = [one for one in passing if request.again or one.id not in known]
    tester = make_tester() if left else None
    for number, one in enumerate(left):
        assert tester is not None
        run.progress(RunProgress(one.id, number, len(left)))
        try:
            compare_attempt(folder, one, tester, run=RunContext(run.cancel))
        except ModuleNotFoundError as error:
            raise missing_extra(error) from error
        except UserError as error:
            if run.cancel.cancelled:
                raise
            run.note(f"{one.id}: {error}")
    return equivalences(folder.ledger, passing)


def equivalences(ledger: Ledger, passing: Iterable[PassingAttempt]) -> tuple[RepairEquivalence, ...]:
    """Return the comparisons of passing attempts that the log records."""
    found = []
    for one in passing:
        result = ledger.notes(one.id).compared
        if result is not None:
            difference = f"{result.call}: {result.original}, not {result.repair}"
            words = difference if result.call else result.reason
            inputs = result.recorded + result.varied
            found.append(RepairEquivalence(one.id, one.repair.task, result.verdict, inputs, words))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ReadingItem:
    """A change for a blind reader, which does not reveal its author."""

    task: Task
    repair: AttemptRepair


def reading_queue(folder: StudyFolder, passing: Iterable[PassingAttempt], reader: str) -> list[ReadingItem]:
    """Return the queue of a reader: each different passing repair, mixed with the originals of their tasks.

    The order depends on the reader and the study's seed. A repair that is identical to the original
    shares an item with the original.
    """
    repairs = {one.repair.key: one.repair for one in passing}
    tasks = {identity: folder.task(identity) for identity in {made.task for made in repairs.values()}}
    for task in tasks.values():
        original = original_of(task, read_answer(task))
        repairs.setdefault(original.key, original)
    seed = folder.study.seed
    order = sorted(repairs, key=lambda key: sha256_of_text(f"{seed}\x1f{reader}\x1f{key}"))
    return [ReadingItem(tasks[repairs[key].task], repairs[key]) for key in order]


def decided_before(
    folder: StudyFolder, items: Iterable[ReadingItem], reader: str
) -> dict[int, tuple[MergeDecision, str]]:
    """Return a reader's earlier decisions, each with its reason, by position among the items."""
    readings = folder.ledger.readings()
    earlier = ((place, readings.get(item.repair.key, {}).get(reader)) for place, item in enumerate(items))
    return {
        place: (MergeDecision(last.decision), last.why)
        for place, last in earlier
        if last is not None and last.decision in set(MergeDecision)
    }


def record_reading(
    folder: StudyFolder, reader: str, item: ReadingItem, decision: MergeDecision, why: str
) -> None:
    """Record a reader's decision on a change in the study's log.

    Raises `StudyError` if the reader's name is invalid or the log can't be written.
    """
    data = ReadBlind(task=item.task.id, decision=decision, why=why)
    folder.record(reader, repair(item.repair.key), StudyOperationKind.READ, data)


def merge_readings(
    folder: StudyFolder, passing: Iterable[PassingAttempt], readings: Mapping[str, Mapping[str, ReadBlind]]
) -> tuple[MergeReading, ...]:
    """Return readers' decisions on attempts, and on originals, whose attempt id is empty.

    A decision on a change that several attempts have in common counts for each of them.
    """
    attempts: dict[str, list[PassingAttempt]] = {}
    for one in passing:
        attempts.setdefault(one.repair.key, []).append(one)
    found = []
    originals = {_original_key(folder, one.repair.task) for ones in attempts.values() for one in ones}
    for key, by_reader in sorted(readings.items()):
        for reader, reading in sorted(by_reader.items()):
            if reading.decision not in set(MergeDecision):
                continue
            decision = MergeDecision(reading.decision)
            whose = [one.id for one in attempts.get(key, [])] + [""] * (key in originals)
            found += [
                MergeReading(reading.task, reader, decision, identity, reading.why) for identity in whose
            ]
    return tuple(found)


def _original_key(folder: StudyFolder, identity: str) -> str:
    task = folder.task(identity)
    return original_of(task, read_answer(task)).key
