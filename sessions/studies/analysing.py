"""Produces the results of a study: analyses, their report, the power of its design, and exported data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NewType

import msgspec

from gistpoint.core.analysis.running import PRIMARY, chosen, missing_extra, run_analyses
from gistpoint.core.locations import path_of
from gistpoint.core.requests import Count, Request
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.ledger import person_sha256
from gistpoint.core.study.operations import ORGANISER, STUDY, Exported, PowerRecorded, StudyOperationKind
from gistpoint.core.study.prose import markdown
from gistpoint.sessions.exports.study.registry import StudyExport, study_exporter
from gistpoint.sessions.exports.study.report.report import SIMULATED, StudyReport
from gistpoint.sessions.exports.study.report.results import SCHEMA, results
from gistpoint.sessions.studies.course import require_unblinded
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.loading import LoadedStudy, load_study, of_person
from gistpoint.sessions.studies.pseudonyms import Pseudonyms, key_of
from gistpoint.sessions.studies.public import public_data
from gistpoint.sessions.studies.solvers import runs_by_attempt

if TYPE_CHECKING:
    from gistpoint.core.analysis.power import PowerDesign, PowerFigure


def read_study_data(study: StudyFolder, run: RunContext) -> LoadedStudy:
    """Read a study and return it, reporting each step.

    Raises `StudyError` if simulated attempts and others are mixed, or if the stored metrics, a pattern of
    runs or a map can't be used.
    """
    run.progress(RunProgress(step="reading the study"))
    return load_study(study, lambda words: run.progress(RunProgress(words)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyseStudy(Request):
    """A request to run the analyses of a study."""

    only: tuple[str, ...] = ()
    """The ids of the analyses; empty for those that the study declares, or for all if it declares none."""
    unblind: bool = False
    """Whether to show the outcomes of a study that is still open."""


def analyse_study(study: StudyFolder, request: AnalyseStudy, run: RunContext) -> StudyReport:
    """Read a study, run its analyses, and return the report, which also lists failed analyses.

    Raises `StudyError` if outcomes are hidden, an analysis is unknown, or the study can't be read (see
    `load_study`), and `CancelledError` if cancelled.
    """
    require_unblinded(study, unblind=request.unblind)
    declared = study.study.report.analyses
    analyses = chosen(request.only or ([*declared, PRIMARY] if declared else []))
    data = read_study_data(study, run).data
    run.progress(RunProgress(step="analysing"))

    def report(at: RunProgress) -> None:
        run.progress(RunProgress(at.step.partition(": ")[2], at.done, at.total))

    return StudyReport(data, run_analyses(data, analyses, RunContext(run.cancel, report)))


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """The content of the three files of a report."""

    page: list[bytes]
    """The page, in pieces."""
    results: bytes
    methods: bytes


def require_page() -> None:
    """Raise `StudyError` if the packages that draw a report's figures are not installed."""
    try:
        import gistpoint.sessions.exports.study.report.html  # noqa: F401
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error


def write_report(made: StudyReport, run: RunContext) -> WrittenReport:
    """Return the content of a report's files. Raises `CancelledError` when cancelled."""
    from gistpoint.sessions.exports.study.report.html import page

    run.progress(RunProgress(step="drawing the figures"))
    heading = f"{SIMULATED}: methods" if made.simulated else "Methods"
    numbers = json.dumps({"schema": SCHEMA, **results(made)}, indent=1).encode() + b"\n"
    methods = markdown(heading, made.methods).encode("utf-8", "replace")
    pieces = []
    for piece in page(made):
        pieces.append(piece.encode("utf-8", "replace"))
        run.check()
    return WrittenReport(pieces, numbers, methods)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOfStudy(Request):
    """A request to compute the power of a study, with assumptions about its outcomes."""

    people: Count | None = None
    """The number of people; None to try several typical numbers."""
    effect: float | None = None
    """The difference between rates, or the ratio of times, that the study should detect."""
    rate: float = 0.5
    """The share of solved tasks; at 0.5, intervals are widest."""
    ability: float = 0.8
    """The standard deviation of people's abilities, in logits."""
    task: float = 1.2
    """The standard deviation of the difficulties of tasks, in logits."""
    sigma: float = 0.9
    """The standard deviation of the logarithm of one person's time for one task."""
    repeats: Count = 1
    """The number of runs of a model on each task, if the primary analysis compares a model."""


@dataclass(frozen=True, slots=True)
class StudyPower:
    """The power of a design: the figures for each number of people, and the record for the log."""

    design: PowerDesign
    figures: list[PowerFigure]
    recorded: PowerRecorded


def record_power(study: StudyFolder, request: PowerOfStudy, run: RunContext) -> StudyPower:
    """Compute how wide the interval of the primary estimate will be, record it in the log and return it.

    Raises `StudyError` for impossible assumptions, or if the packages for analyses are not installed, and
    `CancelledError` if cancelled.
    """
    try:
        from gistpoint.core.analysis.power import PEOPLE, PowerAssumptions, design_of, power_of
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
    assumed = PowerAssumptions(
        ability=request.ability,
        task=request.task,
        rate=request.rate,
        sigma=request.sigma,
        effect=request.effect,
    )
    numbers = (request.people,) if request.people else PEOPLE
    tasks = list(study.tasks.values())
    designs = [design_of(study.study, tasks, people, request.repeats or 1) for people in numbers]
    if designs[0].models:
        designs = designs[:1]  # they do not depend on the number of people
    figures = [power_of(design, assumed, study.study.seed, run=run) for design in designs]
    recorded = PowerRecorded(
        what=designs[0].what,
        assumed=msgspec.to_builtins(assumed),
        figures=tuple(msgspec.to_builtins(figure) for figure in figures),
    )
    study.record(ORGANISER, STUDY, StudyOperationKind.POWER, recorded)
    return StudyPower(designs[0], figures, recorded)


ExportFormats = NewType("ExportFormats", tuple[str, ...])
"""The names of formats in `exports.study.registry`, given by the user as one value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportStudy(Request):
    """A request to export the data of a study."""

    to: ExportFormats
    output: str
    """The output folder, in which each format has a folder with its name."""
    person: str | None = None
    """The code of a participant, to export that person's data for themselves; None for all data."""
    public: bool = False
    """Whether the data are for publication: with pseudonyms, and without free text."""
    simulated: bool = False
    """Whether formats without room for the word SIMULATED may contain simulated data."""
    unblind: bool = False


@dataclass(frozen=True, slots=True)
class StudyExported:
    """The names of the files that were written, and a sentence for each problem of the data."""

    files: list[str]
    problems: tuple[str, ...]


def export_study(
    study: StudyFolder, request: ExportStudy, write: Callable[[Path, bytes], None], run: RunContext
) -> StudyExported:
    """Export a study, and record that in its log; `write` writes a file and creates its folder.

    Raises `StudyError` for an unknown format or person, if outcomes are hidden, or if the study can't be read
    (see `load_study`).
    """
    if request.person is None:
        require_unblinded(study, unblind=request.unblind)
    exporters = {name: study_exporter(name, public=request.public) for name in request.to}
    loaded = read_study_data(study, run)
    data = loaded.data if request.person is None else of_person(loaded.data, request.person)
    given = _data_for_export(study, data, runs_by_attempt(loaded.solvers), request)
    out, files = path_of(request.output), list[str]()
    run.progress(RunProgress(step="writing tables"))
    # An exporter that can't write its format fails at its first file, before any other format is written.
    begun = {name: _with_first_made(exporter(given)) for name, exporter in exporters.items()}
    for number, (name, content_of) in enumerate(begun.items()):
        run.progress(RunProgress(name, number, len(exporters)))
        for file, content in content_of:
            write(out / name / file, content)
            files.append(f"{name}/{file}")
    people = tuple(sorted(map(person_sha256, data.ledger.people)))
    note = Exported(to=request.to, public=request.public, people=people)
    study.record(request.person or ORGANISER, STUDY, StudyOperationKind.EXPORTED, note)
    return StudyExported(files, data.problems)


def _with_first_made(files: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Return the same files after making the first of them."""
    return chain(list(islice(files, 1)), files)


def _data_for_export(
    study: StudyFolder, data: StudyData, runs: Mapping[str, str], request: ExportStudy
) -> StudyExport:
    ids = {row.attempt for row in data.rows}
    runs = {identity: opened_as for identity, opened_as in runs.items() if identity in ids}
    journals = {one.id: one.journal for one in study.attempts() if one.id in ids}
    if request.public:
        names = Pseudonyms.of(data, key_of(study.root))
        journals = {names.attempt(identity): journal for identity, journal in journals.items()}
        runs = {names.attempt(identity): opened_as for identity, opened_as in runs.items()}
        data = public_data(data, names)
    return StudyExport(data, journals, runs, public=request.public, simulated_wanted=request.simulated)
