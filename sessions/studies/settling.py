"""Records an organiser's corrections, exclusions and inclusions of attempts, and which runs were read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gistpoint.core.requests import Request
from gistpoint.core.study.evidence import AttemptEvidence, RecordedAttempt
from gistpoint.core.study.measuring import measured
from gistpoint.core.study.operations import (
    ORGANISER,
    STUDY,
    Excluded,
    Fact,
    Included,
    ModelsRead,
    RelabelledSpan,
    StudyError,
    StudyOperationKind,
    TimesCorrected,
    attempt,
)
from gistpoint.core.study.ports import PublishedAttempt
from gistpoint.core.study.rows import AttemptRow
from gistpoint.sessions.journal import read_journal
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.solvers import SolverRuns


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleAttempt(Request):
    """A request to record a decision on an attempt, with the reason."""

    attempt: str
    """The id of the attempt, or its beginning."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSpan(Request):
    """A request to relabel a span of an attempt, in milliseconds of running time since its start."""

    start: int
    end: int
    counts_as: str


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrected span, and the row of its attempt before and after."""

    span: RelabelledSpan
    before: AttemptRow
    after: AttemptRow


def correct_times(study: StudyFolder, request: SettleAttempt, label: LabelSpan) -> Correction:
    """Record the activity as which a span of an attempt counts, and return the effect on the attempt's row.

    Raises `StudyError` if the attempt is unknown or does not have the span.
    """
    published = published_attempt(study, request.attempt)
    before, length_ms = _row(study, published)
    if not 0 <= label.start < label.end <= length_ms:
        raise StudyError(
            f"The span does not fit: attempt {published.id} took {position_words(length_ms)}.",
            hint="--from must be before --to, and both within the attempt.",
        )
    span = RelabelledSpan(label.start, label.end, label.counts_as)
    _record(study, before, StudyOperationKind.CORRECTED, TimesCorrected(spans=(span,), why=request.why))
    return Correction(span, before, _row(study, published)[0])


def exclude_attempt(study: StudyFolder, request: SettleAttempt) -> AttemptRow:
    """Exclude an attempt from the analyses, and return its row. Raises `StudyError` if it is unknown."""
    return _settled(study, request, StudyOperationKind.EXCLUDED, Excluded(why=request.why))


def include_attempt(study: StudyFolder, request: SettleAttempt) -> AttemptRow:
    """Include an attempt in the analyses again, and return its row, which may still not count.

    Raises `StudyError` if the attempt is unknown.
    """
    return _settled(study, request, StudyOperationKind.INCLUDED, Included(why=request.why))


def _settled(study: StudyFolder, request: SettleAttempt, kind: StudyOperationKind, data: Fact) -> AttemptRow:
    published = published_attempt(study, request.attempt)
    _record(study, _row(study, published)[0], kind, data)
    return _row(study, published)[0]


def published_attempt(study: StudyFolder, named: str) -> PublishedAttempt:
    """Return a published attempt by its id or a unique prefix.

    Raises `StudyError` if none or several match.
    """
    found = {one.id: one for one in study.attempts() if named and one.id.startswith(named)}
    if len(found) != 1 and named not in found:
        what = f"is the beginning of {len(found)} attempts" if found else "is not a published attempt"
        raise StudyError(
            f"{named[:60]!r} {what} of {study.study.id}.",
            hint=(
                "Each has a folder in attempts/. Enter on a task in `gistpoint study progress` lists"
                " its attempts; `gistpoint study sync` publishes those on this machine."
            ),
        )
    return found.get(named) or next(iter(found.values()))


def _row(study: StudyFolder, published: PublishedAttempt) -> tuple[AttemptRow, int]:
    """Return the row of an attempt, without flags that need its task, and its length in milliseconds.

    Raises `StudyError` if its task does not belong to the study.
    """
    content = read_journal(published.journal)
    header = next((event.data.written() for event in content.events[:1]), {})
    task = study.tasks.get(str(header.get("task_id")))
    if task is None:
        raise StudyError(f"The task of attempt {published.id} does not belong to this study.")
    recorded = RecordedAttempt(content.events, content.head, content.fault)
    evidence = AttemptEvidence(study.study, task, recorded, study.ledger)
    return measured(evidence), evidence.timeline.end_ms


def _record(study: StudyFolder, row: AttemptRow, kind: StudyOperationKind, data: Fact) -> None:
    """Record a fact about an attempt in its participant's file, which is deleted on the person's erasure."""
    study.record(row.participant or ORGANISER, attempt(row.attempt), kind, data)


def position_words(ms: int) -> str:
    """Return a position on a timeline as `M:SS.mmm` or `H:MM:SS.mmm`."""
    minutes, milliseconds = divmod(ms, 60_000)
    seconds = f"{milliseconds / 1000:06.3f}"
    if minutes < 60:
        return f"{minutes}:{seconds}"
    return f"{minutes // 60}:{minutes % 60:02}:{seconds}"


def record_runs_read(study: StudyFolder, solvers: Iterable[SolverRuns]) -> None:
    """Record which runs of each model were read, unless the same runs were recorded last."""
    for found in solvers:
        runs = tuple(sorted(run.sha256 for run in found.runs if run.row is not None))
        known = [fact for fact in study.ledger.study.all(ModelsRead) if fact.solver == found.solver.name]
        if (known[-1].runs if known else ()) != runs:
            data = ModelsRead(solver=found.solver.name, runs=runs)
            study.record(ORGANISER, STUDY, StudyOperationKind.MODELS, data)
