"""`gistpoint study`: what became of attempts: models' runs, corrected times, exclusions, and exports."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from gistpoint.core.locations import path_of
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.evidence import AttemptEvidence, RecordedAttempt
from gistpoint.core.study.ledger import person_sha256
from gistpoint.core.study.measuring import measured
from gistpoint.core.study.operations import (
    ORGANISER,
    STUDY,
    Excluded,
    Exported,
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
from gistpoint.core.study.timeline import COUNTS_AS
from gistpoint.core.text import plural
from gistpoint.sessions.exports.study.registry import NAMES, StudyExport, study_exporter
from gistpoint.sessions.journal import read_journal
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.loading import LoadedStudy, load_study, of_person
from gistpoint.sessions.studies.pseudonyms import Pseudonyms, key_of
from gistpoint.sessions.studies.public import public_data
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import make_folder, print_json, print_table, print_text, write_whole
from gistpoint.tui.commands.progress import ProgressLine, long_work
from gistpoint.tui.study_opening import FOLDER_HELP, open_study, require_unblinded

_ATTEMPT_HELP = "id of a published attempt, or its beginning"
_TIME = re.compile(r"(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d{1,3})?)")


def solvers_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study solvers`."""
    parser.description = (
        "Lists the runs that [[solver]] in study.toml names: of which task each is, or why it is of none, and where "
        "models had other budgets than people. Exit code 1 if a declared solver has no run that counts."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--json", action="store_true", help="as JSON")
    return solvers


def solvers(options: argparse.Namespace) -> int:
    """Print the runs of the declared models."""
    study = open_study(options.dir)
    loaded = _loaded(study)
    for found in loaded.solvers:
        _note_runs(study, found.solver.name, tuple(sorted(run.sha256 for run in found.runs if run.row is not None)))
    complete = all(any(row.counted for row in found.rows) for found in loaded.solvers)
    if options.json:
        rows = [
            {
                "solver": found.solver.name,
                "condition": found.solver.condition,
                "runs": [
                    {
                        "run": run.name,
                        "task": run.task,
                        "why_not": run.why_not,
                        "counted": run.row is not None and run.row.counted,
                        "exclusion": run.row.exclusion if run.row else "",
                        "solved": run.row.solved if run.row else None,
                        "condition_key": run.row.condition_key if run.row else "",
                    }
                    for run in found.runs
                ],
                "notes": list(found.notes),
            }
            for found in loaded.solvers
        ]
        print_json("gistpoint.study-solvers/1", {"solvers": rows})
        return DONE if complete else NEGATIVE
    if not loaded.solvers:
        print_text("study.toml declares no [[solver]].")
        return DONE
    table = [
        (found.solver.name, run.name, run.task[:12], _result(run.row), run.why_not)
        for found in loaded.solvers
        for run in found.runs
    ]
    print_table(("solver", "run", "task", "result", "why not"), table)
    for found in loaded.solvers:
        counted = sum(row.counted for row in found.rows)
        print_text(
            f"{found.solver.name}: {plural(len(found.runs), 'run')}, {len(found.rows)} matched, {counted} counted"
        )
        for note in found.notes:
            print_text(f"  {note}")
    return DONE if complete else NEGATIVE


def _result(row: AttemptRow | None) -> str:
    if row is None:
        return ""
    return f"not counted: {row.exclusion}" if not row.counted else "solved" if row.solved else "not solved"


def _note_runs(study: StudyFolder, solver: str, runs: tuple[str, ...]) -> None:
    """Record which runs of a model were read, unless they are those of the last time."""
    known = [fact for fact in study.ledger.study.all(ModelsRead) if fact.solver == solver]
    if (known[-1].runs if known else ()) != runs:
        study.record(ORGANISER, STUDY, StudyOperationKind.MODELS, ModelsRead(solver=solver, runs=runs))


# Corrections and exclusions


def correct_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study correct`."""
    parser.description = (
        "Says what a span of an attempt counts as, such as a telephone call that nobody paused for. Times count from "
        "the start of the attempt while the program ran: seconds, M:SS or H:MM:SS. The raw times stay in every export."
    )
    _of_attempt(parser)
    parser.add_argument("--from", dest="start", metavar="T", required=True, type=_position, help="start of the span")
    parser.add_argument("--to", dest="end", metavar="T", required=True, type=_position, help="end of the span")
    parser.add_argument("--as", dest="counts_as", metavar="KIND", required=True, choices=COUNTS_AS,
                        help=f"what it counts as: {', '.join(COUNTS_AS)}")  # fmt: skip
    return correct


def correct(options: argparse.Namespace) -> int:
    """Re-label a span of an attempt's timeline."""
    study, published = _opened(options)
    before, length_ms = _row(study, published)
    if not 0 <= options.start < options.end <= length_ms:
        raise StudyError(
            f"The span does not fit: attempt {published.id} took {_shown(length_ms)}.",
            hint="--from is before --to, and both are within the attempt.",
        )
    span = RelabelledSpan(options.start, options.end, options.counts_as)
    _say(study, before, StudyOperationKind.CORRECTED, TimesCorrected(spans=(span,), why=options.why))
    after, _ = _row(study, published)
    values = {
        "attempt": published.id,
        "from_ms": span.from_ms,
        "to_ms": span.to_ms,
        "counts_as": span.counts_as,
        "active_s": after.active_s,
        "active_corrected_before_s": before.active_corrected_s,
        "active_corrected_s": after.active_corrected_s,
        "primary_s": after.primary_s,
    }
    if options.json:
        print_json("gistpoint.study-correct/1", values)
        return DONE
    print_text(f"{published.id}: {_shown(span.from_ms)} to {_shown(span.to_ms)} now counts as {span.counts_as}.")
    print_text(f"Active time: {after.active_s or 0:.3f} s recorded, {after.active_corrected_s or 0:.3f} s corrected.")
    return DONE


def exclude_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study exclude`."""
    parser.description = (
        "Takes an attempt out of the analyses. It stays in every export, with the reason; the report counts it."
    )
    _of_attempt(parser)
    return exclude


def exclude(options: argparse.Namespace) -> int:
    """Exclude an attempt."""
    return _decide(options, StudyOperationKind.EXCLUDED, Excluded(why=options.why))


def include_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study include`."""
    parser.description = (
        "Takes an attempt back into the analyses, against flags and an earlier exclusion. What the design demands "
        "still holds: a first attempt at an assignment of this study, which has ended."
    )
    _of_attempt(parser)
    return include


def include(options: argparse.Namespace) -> int:
    """Include an attempt."""
    return _decide(options, StudyOperationKind.INCLUDED, Included(why=options.why))


def _of_attempt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("attempt", metavar="ATTEMPT", help=_ATTEMPT_HELP)
    parser.add_argument("--why", metavar="WORDS", required=True, type=_words, help="told in the report")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _decide(options: argparse.Namespace, kind: StudyOperationKind, said: Fact) -> int:
    study, published = _opened(options)
    row, _ = _row(study, published)
    _say(study, row, kind, said)
    row, _ = _row(study, published)
    if options.json:
        values = {"attempt": published.id, "counted": row.counted, "exclusion": row.exclusion}
        print_json("gistpoint.study-decision/1", values)
    else:
        counts = "counts" if row.counted else f"does not count: {row.exclusion.replace('_', ' ')}"
        print_text(f"{published.id}: {kind.value}, and {counts}.")
    return DONE if row.counted or kind is StudyOperationKind.EXCLUDED else NEGATIVE


def _opened(options: argparse.Namespace) -> tuple[StudyFolder, PublishedAttempt]:
    study = open_study(options.dir)
    found = {one.id: one for one in study.attempts() if options.attempt and one.id.startswith(options.attempt)}
    if len(found) != 1 and options.attempt not in found:
        what = f"is the beginning of {len(found)} attempts" if found else "is no published attempt"
        raise StudyError(
            f"{options.attempt[:60]!r} {what} of {study.study.id}.",
            hint="Each has a folder in attempts/, and Enter on a task in `gistpoint study progress` lists its own; "
            "`gistpoint study sync` publishes this machine's.",
        )
    return study, found.get(options.attempt) or next(iter(found.values()))


def _row(study: StudyFolder, published: PublishedAttempt) -> tuple[AttemptRow, int]:
    """Return the row of an attempt, without the flags that need its task, and the length of its timeline."""
    content = read_journal(published.journal)
    header = next((event.data.written() for event in content.events[:1]), {})
    task = study.tasks.get(str(header.get("task_id")))
    if task is None:
        raise StudyError(f"The task of attempt {published.id} is none of this study's.")
    recorded = RecordedAttempt(content.events, content.head, content.fault)
    evidence = AttemptEvidence(study.study, task, recorded, study.ledger)
    return measured(evidence), evidence.timeline.end_ms


def _say(study: StudyFolder, row: AttemptRow, kind: StudyOperationKind, said: Fact) -> None:
    """Record something of an attempt in a file of its participant, which erasing the participant deletes."""
    study.record(row.participant or ORGANISER, attempt(row.attempt), kind, said)


# Exports


def export_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study export`."""
    parser.description = (
        "Writes the data of a study for other programs, each format into a folder of its name. `tidy` is a set of CSV "
        "tables with a data dictionary (datapackage.json). Results of people are hidden until the study is closed."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument("--to", metavar="FORMATS", required=True, type=_formats, help=f"of: {', '.join(NAMES)}")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the folder to write into")
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--person", metavar="CODE", help="only what there is of one participant, for the participant")
    whose.add_argument(
        "--public",
        action="store_true",
        help="for publication: pseudonyms for codes and ids, weeks for dates, no free text; "
        "`study audit --public OUT` proves it",
    )
    parser.add_argument(
        "--simulated", action="store_true", help="simulated data also in `metr`, which has no place of its own for that"
    )
    parser.add_argument(
        "--unblind", action="store_true", help="before the study is closed; the log and the report will tell"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    return export


def export(options: argparse.Namespace) -> int:
    """Export a study."""
    study = open_study(options.dir)
    if options.person is None:
        require_unblinded(study, options.dir, unblind=options.unblind)
    exporters = {name: study_exporter(name, public=options.public) for name in options.to}
    out, written = path_of(options.output), list[str]()
    with long_work(
        quiet=getattr(options, "json", False), kept="The same command writes every file again.", asks_token=False
    ) as work:
        work.progress.stage("reading the study")
        data = load_study(study, work.progress.detail).data
        if options.person is not None:
            data = of_person(data, options.person)
        given = _given(study, data, options)
        make_folder(out)
        work.progress.stage("writing tables")
        for number, (name, exporter) in enumerate(exporters.items()):
            work.progress.count(number, len(exporters), name)
            for file, content in exporter(given):
                _write(out / name / file, content)
                written.append(f"{name}/{file}")
    _note_export(study, data, options)
    if options.json:
        values = {"simulated": study.study.simulated, "files": written, "problems": list(data.problems)}
        print_json("gistpoint.study-export/1", values)
        return DONE
    for problem in data.problems:
        print_text(f"note: {problem}")
    print_text(
        f"{'SIMULATED data: ' if study.study.simulated else ''}{plural(len(written), 'file')} in {options.output}"
    )
    return DONE


def _given(study: StudyFolder, data: StudyData, options: argparse.Namespace) -> StudyExport:
    ids = {row.attempt for row in data.rows}
    journals = {one.id: one.journal for one in study.attempts() if one.id in ids}
    if options.public:
        names = Pseudonyms.of(data, key_of(study.root))
        journals = {names.attempt(identity): journal for identity, journal in journals.items()}
        data = public_data(data, names)
    return StudyExport(data, journals, public=options.public, simulated_wanted=options.simulated)


def _note_export(study: StudyFolder, data: StudyData, options: argparse.Namespace) -> None:
    people = tuple(sorted(map(person_sha256, data.ledger.people)))
    said = Exported(to=options.to, public=options.public, people=people)
    study.record(options.person or ORGANISER, STUDY, StudyOperationKind.EXPORTED, said)


def _write(path: Path, content: bytes) -> None:
    make_folder(path.parent)
    write_whole(path, [content])


def _loaded(study: StudyFolder) -> LoadedStudy:
    with ProgressLine() as progress:
        progress.stage("reading the study")
        return load_study(study, progress.detail)


# Values of options


def _formats(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of: {', '.join(NAMES)}")
    return names


def _position(text: str) -> int:
    """Return a position on a timeline in milliseconds."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: give seconds, M:SS or H:MM:SS")
    hours, minutes, seconds = found.groups()
    return (int(hours or 0) * 60 + int(minutes or 0)) * 60_000 + round(float(seconds) * 1000)


def _words(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("say why")
    return text.strip()[:2_000]


def _shown(ms: int) -> str:
    minutes, rest = divmod(ms, 60_000)
    return (
        f"{minutes // 60}:{minutes % 60:02}:{rest / 1000:06.3f}" if minutes >= 60 else f"{minutes}:{rest / 1000:06.3f}"
    )
