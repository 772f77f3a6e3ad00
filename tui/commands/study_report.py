"""`gistpoint study analyse` and `report`: a study's estimates in the terminal, and as one page with all around them."""

from __future__ import annotations

import argparse
import json
import os
import sys
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gistpoint.core.analysis.findings import FindingsTable, Number
from gistpoint.core.analysis.printing import NOTHING, number_words, shortfall_words, value_words
from gistpoint.core.analysis.running import (
    PRIMARY,
    RanAnalysis,
    chosen,
    missing_extra,
    run_analyses,
)
from gistpoint.core.errors import UserError
from gistpoint.core.running import RunContext
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.prose import markdown
from gistpoint.sessions.exports.study.report.report import SIMULATED, StudyReport
from gistpoint.sessions.exports.study.report.results import SCHEMA, results
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.loading import load_study
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import print_json, print_table, print_text, write_whole
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.study_opening import FOLDER_HELP, open_study, require_unblinded

_UNBLIND = "see outcomes though the study is still open; that is written into its log, and reports tell it"


def analyse_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study analyse`."""
    parser.description = (
        "Runs the analyses on the attempts that count, and prints their tables. Intervals cover 95 % over persons and "
        "tasks. An analysis whose data are too thin says which number is short. Exit code 1 if one failed."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        help="an analysis by its id, as `bp-2`; may be given several times (default: those of study.toml, else all)",
    )
    parser.add_argument("--unblind", action="store_true", help=_UNBLIND)
    parser.add_argument("--json", action="store_true", help="as JSON, in full precision")
    return analyse


def analyse(options: argparse.Namespace) -> int:
    """Run analyses and print them."""
    report = _report(open_study(options.dir), options)
    if options.json:
        print_json(SCHEMA, results(report))
    else:
        for problem in report.data.problems:
            print_text(f"Problem: {problem}")
        for ran in report.ran:
            if ran.printed:
                _print_analysis(ran, simulated=report.simulated)
        if empty := [ran.analysis.id for ran in report.ran if not ran.printed]:
            print_text(f"Without data in this study: {', '.join(empty)}")
    return _code(report.ran)


def report_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint study report`."""
    parser.description = (
        "Writes one page with all tables and figures, the methods and the checklist; beside it every number by its key "
        "(results.json) and the text of the methods (methods.md). The page needs no network and has no script. Exit "
        "code 1 if an analysis failed; the page tells which."
    )
    parser.add_argument("dir", metavar="DIR", help=FOLDER_HELP)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"the page (default: report.html in the study's folder, {SIMULATED}-report.html of a simulated study)",
    )
    parser.add_argument("--open", action="store_true", help="open it in the browser, if there is a screen")
    parser.add_argument("--unblind", action="store_true", help=_UNBLIND)
    parser.add_argument("--json", action="store_true", help="print which files were written as JSON")
    return report


def report(options: argparse.Namespace) -> int:
    """Write the report of a study."""
    study = open_study(options.dir)
    if options.output and not (folder := Path(options.output).expanduser().parent).is_dir():
        raise UserError(f"There is no folder {folder} for the report.", hint="Make it, or name another file with -o.")
    page_pieces = _page_writer()
    made = _report(study, options)
    target = page_name(study.root, options.output, simulated=made.simulated)
    beside = _beside(target)
    heading = f"{SIMULATED}: methods" if made.simulated else "Methods"
    page: list[bytes] = []
    # By the token: an interrupt that is raised while a figure is drawn may be lost in a callback.
    with long_work(quiet=getattr(options, "json", False), kept="Nothing was written.") as work:
        work.progress.stage("drawing the figures")
        numbers = json.dumps({"schema": SCHEMA, **results(made)}, indent=1).encode() + b"\n"
        methods = markdown(heading, made.methods).encode("utf-8", "replace")
        for piece in page_pieces(made):
            page.append(piece.encode("utf-8", "replace"))
            work.cancel.check()
    write_whole(target, page)
    write_whole(beside["results"], [numbers])
    write_whole(beside["methods"], [methods])
    failed = [ran.analysis.id for ran in made.ran if ran.failed]
    still_open = sum(answer.open for answer in made.checklist)
    if options.json:
        files = {"report": str(target), **{name: str(path) for name, path in beside.items()}}
        print_json("gistpoint.study-report/1", {**files, "failed": failed, "checklist_open": still_open})
    else:
        print_text(f"{target}: {sum(ran.printed for ran in made.ran)} analyses of {len(made.ran)} have data")
        print_text(f"Beside it: {', '.join(path.name for path in beside.values())}")
        print_text(f"Items of the checklist without an answer: {still_open} of {len(made.checklist)}")
        if failed:
            print_text(f"Failed, as the page tells: {', '.join(failed)}")
    if options.open:
        _open(target)
    return _code(made.ran)


def page_name(folder: Path, given: str | None, *, simulated: bool) -> Path:
    """Return where the page goes; the name of a simulated study's page says so."""
    target = Path(given).expanduser() if given else folder / "report.html"
    if simulated and SIMULATED not in target.name:
        target = target.with_name(f"{SIMULATED}-{target.name}")
    return target


def _beside(target: Path) -> dict[str, Path]:
    """Return the other two files: `results.json` beside `report.html`, `X.results.json` beside `X.html`."""
    start = "" if target.stem == "report" else f"{target.stem.removesuffix('report')}"
    start = start if not start or start.endswith("-") else f"{start}."
    return {
        "results": target.with_name(f"{start}results.json"),
        "methods": target.with_name(f"{start}methods.md"),
    }


def _page_writer() -> Callable[[StudyReport], Iterator[str]]:
    try:
        from gistpoint.sessions.exports.study.report.html import page
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
    return page


def _report(study: StudyFolder, options: argparse.Namespace) -> StudyReport:
    """Read the study and run the analyses that were asked for, or that it declares."""
    require_unblinded(study, options.dir, unblind=options.unblind)
    only: list[str] = getattr(options, "only", [])
    named = only or list(study.study.report.analyses)
    analyses = chosen([*named, PRIMARY] if named and not only else named)
    with long_work(quiet=getattr(options, "json", False), kept="Nothing was written.", asks_token=False) as work:
        work.progress.stage("reading the study")
        data: StudyData = load_study(study, work.progress.detail).data
        work.progress.stage("analyses")
        run = RunContext(work.cancel, lambda at: work.progress.count(at.done, at.total, at.step.partition(": ")[2]))
        return StudyReport(data, run_analyses(data, analyses, run))


def _print_analysis(ran: RanAnalysis, *, simulated: bool) -> None:
    analysis, findings = ran.analysis, ran.findings
    mark = f"{SIMULATED} " if simulated else ""
    print_text(f"\n{mark}{analysis.title} ({analysis.id}{f'; {analysis.paper}' if analysis.paper else ''})")
    if ran.failed:
        print_text(f"  FAILED: {ran.failed}")
    for words in shortfall_words(findings.not_estimated):
        print_text(f"  {words}")
    for table in findings.tables or ([_of_numbers(findings.numbers.items())] if findings.numbers else []):
        print_text(f"  {mark}{table.title}")
        print_table(table.columns, ([_cell(cell) for cell in row] for row in table.rows))
        if table.note:
            print_text(f"  {table.note}")
    for note in findings.notes:
        print_text(f"  - {note}")


def _of_numbers(numbers: Iterable[tuple[str, Number]]) -> FindingsTable:
    return FindingsTable("Estimates", ("key", "estimate"), tuple(numbers))


def _cell(cell: Number | float | int | str | None) -> str:
    return number_words(cell) if isinstance(cell, Number) else value_words(cell) or NOTHING


def _code(ran: Iterable[RanAnalysis]) -> int:
    return NEGATIVE if any(one.failed for one in ran) else DONE


def has_screen() -> bool:
    """Whether there is a screen on which a browser could open a page."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _open(target: Path) -> None:
    if not has_screen() or not webbrowser.open(target.resolve().as_uri()):
        print_text("There is no screen here: copy the page to a machine that has one. It is one file.")
