"""`gistpoint study analyse` and `report`: print a study's estimates, or write them as a page."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.analysis.findings import Number
from gistpoint.core.analysis.printing import NOTHING, number_words, shortfall_words, value_words
from gistpoint.core.analysis.running import RanAnalysis
from gistpoint.core.errors import UserError
from gistpoint.core.locations import path_of
from gistpoint.core.requests import Request
from gistpoint.sessions.exports.study.report.report import SIMULATED, StudyReport
from gistpoint.sessions.exports.study.report.results import SCHEMA, results
from gistpoint.sessions.studies.analysing import AnalyseStudy, analyse_study, require_page, write_report
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import option
from gistpoint.tui.commands.output import print_json, print_table, print_text, warn_unless_html, write_whole
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.commands.studies import UNBLIND, StudyCommand


def analyse(study: StudyFolder, request: AnalyseStudy, as_json: bool) -> int:
    """Run analyses, and print their findings. Return 1 if one failed."""
    report = _analysed(study, request, quiet=as_json)
    if as_json:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage(Request):
    """A request to write the report of a study; with `open`, it is then shown in a browser."""

    output: str | None = None
    open: bool = False
    unblind: bool = False


def report(study: StudyFolder, request: ReportPage, as_json: bool) -> int:
    """Write the report of a study. Return 1 if an analysis failed.

    Raises `UserError` if there is no folder for the file, if a file can't be written, or if packages for the
    page are missing.
    """
    if request.output and not (folder := path_of(request.output).parent).is_dir():
        raise UserError(
            f"There is no folder {folder} for the report.", hint="Make it, or name another file with -o."
        )
    require_page()
    made = _analysed(study, AnalyseStudy(unblind=request.unblind), quiet=as_json)
    target = page_name(study.root, request.output, simulated=made.simulated)
    warn_unless_html(target)
    others = _other_files(target)
    # Stopped by the token, since an interrupt raised while a figure is drawn can be lost in a callback.
    with long_work(quiet=as_json, kept="Nothing was written.") as work:
        content = write_report(made, work.run)
    write_whole(target, content.page, named=bool(request.output))
    write_whole(others["results"], [content.results], named=False)
    write_whole(others["methods"], [content.methods], named=False)
    failed = [ran.analysis.id for ran in made.ran if ran.failed]
    still_open = sum(answer.open for answer in made.checklist)
    if as_json:
        files = {"report": str(target), **{name: str(path) for name, path in others.items()}}
        print_json("gistpoint.study-report/1", {**files, "failed": failed, "checklist_open": still_open})
    else:
        print_text(f"{target}: {sum(ran.printed for ran in made.ran)} analyses of {len(made.ran)} have data")
        print_text(f"Also written: {', '.join(path.name for path in others.values())}")
        print_text(f"Items of the checklist without an answer: {still_open} of {len(made.checklist)}")
        if failed:
            print_text(f"Failed, as reported on the page: {', '.join(failed)}")
    if request.open:
        _open(target)
    return _code(made.ran)


def _analysed(study: StudyFolder, request: AnalyseStudy, *, quiet: bool) -> StudyReport:
    with long_work(quiet=quiet, kept="Nothing was written.", asks_token=False) as work:
        return analyse_study(study, request, work.run)


def page_name(folder: Path, given: str | None, *, simulated: bool) -> Path:
    """Return the file of the page, by default `report.html` in the study's folder.

    Its name contains `SIMULATED` for a simulated study.
    """
    target = path_of(given) if given else folder / "report.html"
    if simulated and SIMULATED not in target.name:
        target = target.with_name(f"{SIMULATED}-{target.name}")
    return target


def _other_files(target: Path) -> dict[str, Path]:
    """Return the files next to the page, such as `results.json`, by the keys `results` and `methods`."""
    start = "" if target.stem == "report" else f"{target.stem.removesuffix('report')}"
    start = start if not start or start.endswith("-") else f"{start}."
    return {
        "results": target.with_name(f"{start}results.json"),
        "methods": target.with_name(f"{start}methods.md"),
    }


def _print_analysis(ran: RanAnalysis, *, simulated: bool) -> None:
    analysis, findings = ran.analysis, ran.findings
    mark = f"{SIMULATED} " if simulated else ""
    print_text(f"\n{mark}{analysis.title} ({analysis.id}{f'; {analysis.paper}' if analysis.paper else ''})")
    if ran.failed:
        print_text(f"  FAILED: {ran.failed}")
    for words in shortfall_words(findings.not_estimated):
        print_text(f"  {words}")
    for table in findings.printed_tables:
        print_text(f"  {mark}{table.title}")
        print_table(table.columns, ([_cell(cell) for cell in row] for row in table.rows))
        if table.note:
            print_text(f"  {table.note}")
    for note in findings.notes:
        print_text(f"  - {note}")


def _cell(cell: Number | float | int | str | None) -> str:
    return number_words(cell) if isinstance(cell, Number) else value_words(cell) or NOTHING


def _code(ran: Iterable[RanAnalysis]) -> int:
    return NEGATIVE if any(one.failed for one in ran) else DONE


def has_screen() -> bool:
    """Return whether there is a desktop on which a browser could open a page."""
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def _open(target: Path) -> None:
    if not has_screen() or not webbrowser.open(target.resolve().as_uri()):
        print_text(
            "There is no screen here: copy the page, which is a single file, to a machine that has one."
        )


ANALYSE = StudyCommand(
    AnalyseStudy,
    analyse,
    {
        "only": option(
            "the id of an analysis, such as `bp-2`; may be given several times (default: those in"
            " study.toml, or else all)",
            metavar="ID",
        ),
        "unblind": UNBLIND,
    },
    json=option("as JSON, in full precision", "--json"),
    about=(
        "Runs the analyses on the attempts that count, and prints their tables. They include 95% intervals"
        " over persons and tasks. An analysis with too few data reports which number is too small. The"
        " exit code is 1 if an analysis failed."
    ),
)
REPORT = StudyCommand(
    ReportPage,
    report,
    {
        "output": option(
            f"the page (default: report.html in the study's folder, {SIMULATED}-report.html of a simulated"
            " study)",
            "-o",
            "--output",
            metavar="FILE",
        ),
        "open": option("open the page in the browser, if there is a screen"),
        "unblind": UNBLIND,
    },
    json=option("print the names of the written files as JSON", "--json"),
    about=(
        "Writes one page with all tables and figures, the methods and the checklist, and next to it every"
        " number by its key (results.json) and the text of the methods (methods.md). The page needs no"
        " network and has no script. The exit code is 1 if an analysis failed; the page names it."
    ),
)
