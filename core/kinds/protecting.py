"""Determines, with runs of the original, which parts of its own tree a suite may change.

Most suites change nothing there, so a read-only tree is tried first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gistpoint.core.outcomes import FREE, RunStatus, SuiteReport, Writable
from gistpoint.core.ports import RunRequest
from gistpoint.core.tasks.protection import MOST_PIECES, Protection
from gistpoint.core.trees import SourceTree

Run = Callable[[RunRequest, str], SuiteReport]
"""A function that runs a request, and reports its progress as the named step."""


NOTHING = Writable()


def find_protection(request: RunRequest, passed: frozenset[str], run: Run) -> Protection | SuiteReport:
    """Return the strictest protection with which the tests `passed` still pass on the original.

    Those that also fail without protection are left out. Most suites take one run, others two or three. If a
    run is inconclusive (see `is_lost`), its report is returned.
    """
    report = run(replace(request, writable=NOTHING), "suite of the original, its tree read-only")
    if is_lost(report):
        return report
    if holds(report, passed):
        return Protection(NOTHING)
    watched = run(replace(request, writable=None, watch=True), "suite of the original, its tree watched")
    if is_lost(watched):
        return watched
    passed &= watched.passed
    if holds(report, passed):
        return Protection(NOTHING)
    return hold_to_writes(request, passed, watched, run)


def hold_to_writes(
    request: RunRequest, passed: frozenset[str], watched: SuiteReport, run: Run
) -> Protection | SuiteReport:
    """Return the protection that allows only the changes made in the run `watched`.

    If the tests don't pass with it, or if the changes are unknown or too many, the protection allows all
    changes and contains the reason. If the run that tries it is inconclusive (see `is_lost`), the report of
    that run is returned.
    """
    if watched.writes is None:
        return Protection(None, "the files that its suite changes could not be determined")
    writable = _of_the_tree(watched.writes, request.tree)
    pieces = len(writable.paths)
    for folder in writable.folders:
        pieces += len(request.tree.entries(_path(folder)))
    if pieces > MOST_PIECES or "." in writable.paths:
        return Protection(None, "its suite changes too many of its files")
    report = run(
        replace(request, writable=writable), "suite of the original, restricted to the files that it changes"
    )
    if is_lost(report):
        return report
    if holds(report, passed):
        return Protection(writable)
    if report.status is not RunStatus.FINISHED:
        return Protection(None, f"its suite does not finish otherwise. {report.reason}".rstrip(" ."))
    lost = sorted(passed - report.passed)
    tests = "1 test of its suite does" if len(lost) == 1 else f"{len(lost)} tests of its suite do"
    return Protection(None, f"{tests} not pass otherwise; the first is {lost[0]}")


def holds(report: SuiteReport, passed: Iterable[str]) -> bool:
    """Return whether a run shows that the tests `passed` still pass."""
    return report.status is RunStatus.FINISHED and report.passed.issuperset(passed)


def is_lost(report: SuiteReport) -> bool:
    """Return whether a run is inconclusive because the harness failed, or because it was stopped."""
    return report.status in {RunStatus.CANCELLED, *FREE}


def _of_the_tree(writes: Writable, tree: SourceTree) -> Writable:
    """Return the part of `writes` that is in the tree itself; other files belong to the run."""
    known = {*tree.members, *tree.overlay}
    folders = [folder for folder in writes.folders if tree.is_directory(_path(folder))]
    paths = list[str]()
    for path in writes.paths:
        if path in known or tree.is_directory(_path(path)):
            paths.append(path)
    return Writable(tuple(folders), tuple(paths))


def _path(folder: str) -> str:
    if folder == ".":
        return ""
    return folder
