"""`gistpoint study`: runs of models, corrected times, exclusions of attempts, and exports."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.attempts.results import by_tests_words
from gistpoint.core.locations import path_of
from gistpoint.core.running import RunContext
from gistpoint.core.study.exclusions import exclusion_words
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.timeline import COUNTS_AS
from gistpoint.core.text import plural
from gistpoint.sessions.exports.study.registry import NAMES
from gistpoint.sessions.studies.analysing import ExportFormats, ExportStudy, export_study, read_study_data
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.settling import (
    LabelSpan,
    SettleAttempt,
    correct_times,
    exclude_attempt,
    include_attempt,
    position_words,
    record_runs_read,
)
from gistpoint.sessions.studies.solvers import SolverRuns
from gistpoint.tui.commands.arguments import JSON, EmptyRequest
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, Option, OptionTable, argument, option
from gistpoint.tui.commands.output import make_folder, print_json, print_table, print_text, write_whole
from gistpoint.tui.commands.progress import ProgressLine, long_work
from gistpoint.tui.commands.studies import STUDY, StudyCommand, StudyRequest
from gistpoint.tui.study_opening import open_study

_TIME = re.compile(r"(?:(?:(\d{1,9}):)?(\d{1,9}):)?(\d{1,9}(?:\.\d{1,3})?)")


def solvers(study: StudyFolder, _: EmptyRequest, as_json: bool) -> int:
    """Print the runs of the declared models, and record that they were read.

    Return 1 if a model has no run that counts.
    """
    with ProgressLine() as progress:
        found = read_study_data(study, RunContext(progress=progress.making)).solvers
    record_runs_read(study, found)
    complete = all(any(row.counted for row in of_solver.rows) for of_solver in found)
    if as_json:
        print_json(
            "gistpoint.study-solvers/1", {"solvers": [_solver_values(of_solver) for of_solver in found]}
        )
    elif not found:
        print_text("study.toml declares no [[solver]].")
    else:
        _print_solvers(found)
    return DONE if complete else NEGATIVE


def _solver_values(found: SolverRuns) -> dict[str, object]:
    return {
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
                "solved_by_tests": run.row.by_the_tests.solved if run.row else None,
                "confirmation": run.row.confirmation if run.row else "",
                "condition_key": run.row.condition_key if run.row else "",
            }
            for run in found.runs
        ],
        "notes": list(found.notes),
    }


def _print_solvers(solvers: tuple[SolverRuns, ...]) -> None:
    table = [
        (found.solver.name, run.name, run.task[:12], _result(run.row), run.why_not)
        for found in solvers
        for run in found.runs
    ]
    print_table(("solver", "run", "task", "result", "why not"), table)
    for found in solvers:
        counted = sum(row.counted for row in found.rows)
        print_text(
            f"{found.solver.name}: {plural(len(found.runs), 'run')}, {len(found.rows)} matched, {counted}"
            " counted"
        )
        kept = [row for row in found.rows if row.counted]
        if by_tests := by_tests_words(row.standing for row in kept):
            print_text(f"  {sum(row.solved for row in kept)} of {counted} solved; {by_tests}")
        for note in found.notes:
            print_text(f"  {note}")


def _result(row: AttemptRow | None) -> str:
    if row is None:
        return ""
    if not row.counted:
        return f"not counted: {exclusion_words(row.exclusion)}"
    return "solved" if row.solved else "not solved"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectAttempt(StudyRequest):
    """A request to count a span of an attempt's time as another activity."""

    settled: SettleAttempt

    span: LabelSpan


def correct(request: CorrectAttempt) -> int:
    """Count a span of an attempt's time as another activity. Return the exit code."""
    done = correct_times(open_study(request.study), request.settled, request.span)
    span, before, after = done.span, done.before, done.after
    if request.json:
        values = {
            "attempt": after.attempt,
            "from_ms": span.from_ms,
            "to_ms": span.to_ms,
            "counts_as": span.counts_as,
            "active_s": after.active_s,
            "active_corrected_before_s": before.active_corrected_s,
            "active_corrected_s": after.active_corrected_s,
            "primary_s": after.primary_s,
        }
        print_json("gistpoint.study-correct/1", values)
        return DONE
    first, last = position_words(span.from_ms), position_words(span.to_ms)
    print_text(f"{after.attempt}: {first} to {last} now counts as {span.counts_as}.")
    print_text(
        f"Active time: {after.active_s or 0:.3f} s recorded, {after.active_corrected_s or 0:.3f} s corrected."
    )
    return DONE


def exclude(study: StudyFolder, request: SettleAttempt, as_json: bool) -> int:
    """Exclude an attempt from the analyses. Return the exit code."""
    _print_decision("excluded", exclude_attempt(study, request), as_json=as_json)
    return DONE


def include(study: StudyFolder, request: SettleAttempt, as_json: bool) -> int:
    """Take an attempt back into the analyses. Return 1 if it still does not count."""
    row = include_attempt(study, request)
    _print_decision("included", row, as_json=as_json)
    return DONE if row.counted else NEGATIVE


def _print_decision(what: str, row: AttemptRow, *, as_json: bool) -> None:
    if as_json:
        values = {"attempt": row.attempt, "counted": row.counted, "exclusion": row.exclusion}
        print_json("gistpoint.study-decision/1", values)
    else:
        counts = "counts" if row.counted else f"does not count: {exclusion_words(row.exclusion)}"
        print_text(f"{row.attempt}: {what}, and {counts}.")


def export(study: StudyFolder, request: ExportStudy, as_json: bool) -> int:
    """Export a study to a folder. Return the exit code."""
    with long_work(quiet=as_json, kept="The same command writes every file again.", asks_token=False) as work:
        done = export_study(study, request, _write, work.run)
        make_folder(path_of(request.output))  # exists afterwards even if no format has a file
    simulated = study.study.simulated
    if as_json:
        values = {"simulated": simulated, "files": done.files, "problems": list(done.problems)}
        print_json("gistpoint.study-export/1", values)
        return DONE
    for problem in done.problems:
        print_text(f"note: {problem}")
    print_text(
        f"{'SIMULATED data: ' if simulated else ''}{plural(len(done.files), 'file')} in {request.output}"
    )
    return DONE


def _write(path: Path, content: bytes) -> None:
    make_folder(path.parent)
    write_whole(path, [content], named=False)


def _position(text: str) -> int:
    """Parse a time on an attempt's timeline, and return it in milliseconds.

    Raises `argparse.ArgumentTypeError` if the text is not such a time.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: give seconds, M:SS or H:MM:SS")
    hours, minutes, seconds = found.groups()
    return (int(hours or 0) * 60 + int(minutes or 0)) * 60_000 + round(float(seconds) * 1000)


def _reason(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("say why")
    return text.strip()[:2_000]


def _formats(text: str) -> ExportFormats:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of: {', '.join(NAMES)}")
    return ExportFormats(names)


SOLVERS = StudyCommand(
    EmptyRequest,
    solvers,
    about=(
        "Lists the runs named by [[solver]] in study.toml: the task of each, or why it has none, and"
        " whether models had different budgets from people. The exit code is 1 if a declared solver"
        " has no run that counts."
    ),
)
_SETTLED: dict[str, Option | OptionTable] = {
    "attempt": argument("ATTEMPT", "id of a published attempt, or its beginning"),
    "why": option("the reason, for the report", metavar="WORDS", read=_reason),
}
CORRECT = CliCommand(
    CorrectAttempt,
    correct,
    {
        "study": STUDY,
        "settled": OptionTable(_SETTLED),
        "json": JSON,
        "span": OptionTable(
            {
                "start": option("start of the span", "--from", metavar="T", read=_position),
                "end": option("end of the span", "--to", metavar="T", read=_position),
                "counts_as": option(
                    f"what it counts as: {', '.join(COUNTS_AS)}", "--as", metavar="KIND", choices=COUNTS_AS
                ),
            }
        ),
    },
    about=(
        "Records what a span of an attempt counts as, for example a phone call without a pause. Times"
        " are counted from the start of the attempt, without those in which the program was closed:"
        " seconds, M:SS or H:MM:SS. The raw times stay in every export."
    ),
)
EXCLUDE = StudyCommand(
    SettleAttempt,
    exclude,
    _SETTLED,
    about=(
        "Takes an attempt out of the analyses. It stays in every export, with the reason; the report"
        " counts it as excluded."
    ),
)
INCLUDE = StudyCommand(
    SettleAttempt,
    include,
    _SETTLED,
    about=(
        "Puts an attempt back into the analyses, despite flags and an earlier exclusion. It must"
        " still meet the design: a first attempt at an assignment of this study that has ended."
    ),
)
EXPORT = StudyCommand(
    ExportStudy,
    export,
    {
        "to": option(f"of: {', '.join(NAMES)}", metavar="FORMATS", read=_formats),
        "output": option("the folder to write into", "-o", "--output", metavar="OUT"),
        "person": option("only the data of one participant, for the participant", metavar="CODE"),
        "public": option(
            "for publication: pseudonyms instead of codes and ids, weeks instead of dates, no free"
            " text; `study audit --public OUT` checks it"
        ),
        "simulated": option(
            "allow simulated data in `metr` too, which has no place to mark them as simulated"
        ),
        "unblind": option("export before the study is closed; the log and the report will mention it"),
    },
    one_of=(("person", "public"),),
    about=(
        "Writes the data of a study for other programs, each format into its own folder. `tidy` is a"
        " set of CSV tables with a data dictionary (datapackage.json). Results of people are hidden"
        " until the study is closed."
    ),
)
