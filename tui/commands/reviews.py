"""`gistpoint reviews`: export, count, merge and compare reviewers' annotations."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.requests import Request
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.annotations.agreement import Agreement, Agreements, agreement
from gistpoint.sessions.annotations.copies import copy_key
from gistpoint.sessions.annotations.reviewed_runs import (
    COLUMNS,
    ReviewCounts,
    ReviewedRun,
    counts_by,
    reviewed_rows,
    reviewed_run,
)
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.rows import REVIEW_COLUMNS, csv_lines, jsonl_lines, review_rows
from gistpoint.sessions.runs.opening import ListedRun
from gistpoint.tui.commands.arguments import JSON, WHERE
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.merging import counts_of, merge_files
from gistpoint.tui.commands.options import CliCommand, argument, option
from gistpoint.tui.commands.output import for_output, print_json, print_table, write_whole


def _store() -> ReviewStore:
    store = ReviewStore(Locations.of_user().reviews, SystemTime())
    _print_problems(store.problems)
    return store


def _print_problems(problems: tuple[str, ...]) -> None:
    for problem in problems:
        print(f"gistpoint: {visible_line(problem)}", file=sys.stderr)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReviews(Request):
    """A request to export the annotations of some or all reviewers."""

    paths: tuple[str, ...] = ()
    """Files and folders of runs; empty for the annotations of all runs, of which only the keys are known."""
    where: str = ""
    to: Literal["csv", "jsonl"] = "csv"
    output: Path | None = None
    """The file to write; None for standard output."""
    reviewer: tuple[str, ...] = ()
    """The reviewers whose annotations are exported; empty for all."""


def export(request: ExportReviews) -> int:
    """Export all labels, comments and verdicts that were not taken back.

    The exit code reports unreadable files as in `print_problems`. Raises `UserError` for an unknown reviewer,
    for a query that can't be understood, and for a query without paths.
    """
    store = _store()
    for name in request.reviewer:
        _check_known(store, name)
    columns: tuple[str, ...] = REVIEW_COLUMNS
    found, code = review_rows(store.book, request.reviewer), DONE
    if request.where and not request.paths:
        raise UserError("--where needs the runs.", hint="Name the files or folders that contain them.")
    if request.paths:
        runs, code = _runs(request.paths, store, request.where)
        columns = COLUMNS
        found = reviewed_rows(runs, store.book, request.reviewer)
    lines = csv_lines(found, columns) if request.to == "csv" else jsonl_lines(found)
    if request.output is None:
        sys.stdout.writelines(for_output(lines))
        return code
    write_whole(request.output, (line.encode("utf-8", "backslashreplace") for line in lines))
    return code


def _runs(paths: tuple[str, ...], store: ReviewStore, where: str = "") -> tuple[list[ReviewedRun], int]:
    """Return the runs below some paths that match a query, each once with its reviews, and the exit code.

    Copies, damaged runs and unreadable files are reported on standard error.
    """
    from gistpoint.tui.commands.run_files import print_problems
    from gistpoint.tui.commands.run_list import read_runs

    problems: list[ListedRun] = []
    found: dict[str, ReviewedRun] = {}
    copies = 0
    for listed, document, header in read_runs(paths, problems, where):
        run = reviewed_run(listed.name, document, header, store.book)
        key = copy_key(run.key, document.steps())
        copies += key in found
        found.setdefault(key, run)
        _print_problems(tuple(f"{listed.name}: {warning}" for warning in document.warnings[:1]))
    if copies:
        _print_problems((f"{plural(copies, 'copy', 'copies')} of runs that are already counted.",))
    return list(found.values()), print_problems(problems, paths, DONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeReviews(Request):
    """A request to count the reviews of runs."""

    paths: tuple[str, ...]
    json: bool = False


def summary(request: SummarizeReviews) -> int:
    """Print the counts of verdicts, reasons and labels by model and by task. Return the exit code.

    Raises `UserError` if there are no runs.
    """
    runs, code = _runs(request.paths, _store())
    if not runs:
        raise UserError(f"There is no recorded run in {visible_line(', '.join(request.paths))}.")
    groups = {
        "model": counts_by(runs, lambda run: run.model),
        "task": counts_by(runs, lambda run: run.header.task),
    }
    if request.json:
        rows = {name: [_counts_as_json(item) for item in found] for name, found in groups.items()}
        print_json("gistpoint.review-summary/1", rows)
        return code
    for name, found in groups.items():
        headings = [name, "runs", "judged", "verdicts", "reasons", "labels", "agreed"]
        print_table(headings, [_counts_row(item) for item in found])
        print()
    return code


def _counts_as_json(counts: ReviewCounts) -> dict[str, object]:
    counted = {"verdicts": counts.verdicts, "reasons": counts.reasons, "labels": counts.labels}
    return {**asdict(counts), **{name: dict(_by_count(values)) for name, values in counted.items()}}


def _counts_row(counts: ReviewCounts) -> list[str]:
    agreed = f"{counts.agreed} of {counts.pairs}" if counts.pairs else "-"
    return [
        counts.name or "-",
        str(counts.runs),
        str(counts.judged),
        _most_common(counts.verdicts),
        _most_common(counts.reasons),
        _most_common(counts.labels),
        agreed,
    ]


def _most_common(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in _by_count(counted)) or "-"


def _by_count(counted: Counter[str]) -> list[tuple[str, int]]:
    """Return names with counts, most frequent first, and names with the same count alphabetically."""
    return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReviews(Request):
    """A request to merge files with reviews into the user's own reviews."""

    paths: tuple[Path, ...]


def merge(request: MergeReviews) -> int:
    """Merge the annotations of other reviewers into the user's store. Return the exit code.

    Raises `UserError` if nothing in the files can be read.
    """
    print(counts_of(merge_files(_store(), request.paths)))
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareReviewers(Request):
    """A request to compare two reviewers, who need not be named if there are only two."""

    reviewers: tuple[str, ...] = ()
    json: bool = False


def agree(request: CompareReviewers) -> int:
    """Print how far two reviewers agree. Return the exit code.

    Raises `UserError` unless there are exactly two, both known.
    """
    store = _store()
    first, second = _two(store, request.reviewers)
    found = agreement(store.book, first, second)
    if request.json:
        print_json("gistpoint.agreement/1", _as_json(found))
        return DONE
    _print(found)
    return DONE


def _two(store: ReviewStore, names: tuple[str, ...]) -> tuple[str, str]:
    known = store.book.reviewers
    compared = names or known
    if len(compared) != 2:
        listed = ", ".join(known) or "nobody"
        raise UserError(
            "Exactly two reviewers can be compared.",
            hint=f"Name two of them. There are reviews by: {listed}.",
        )
    for name in compared:
        _check_known(store, name)
    return compared[0], compared[1]


def _check_known(store: ReviewStore, name: str) -> None:
    if name not in store.book.reviewers:
        listed = ", ".join(store.book.reviewers) or "nobody yet"
        raise UserError(f"There is no review by {name!r}.", hint=f"There are reviews by: {listed}.")


def _as_json(found: Agreements) -> dict[str, object]:
    values = asdict(found)
    for name, group in (("on_steps", found.on_steps), ("on_runs", found.on_runs)):
        values[name] = [{**asdict(item), "units": item.units, "observed": item.observed} for item in group]
    return values


def _print(found: Agreements) -> None:
    first, second = visible_line(found.first), visible_line(found.second)
    print(
        f"{first} and {second}: {plural(found.runs, 'run')} reviewed by both, {plural(found.steps, 'step')}"
        " seen by both"
    )
    headings = ["label", "on", "units", "both", "first only", "second only", "neither", "agreed", "kappa"]
    groups = (("steps", found.on_steps), ("runs", found.on_runs))
    print_table(headings, [_row(item, on) for on, group in groups for item in group])
    if found.verdicts:
        print(f"verdicts: {plural(found.verdicts, 'run')}, kappa {_number(found.verdict_kappa)}")


def _row(item: Agreement, on: str) -> list[str]:
    counts = (item.units, item.both, item.first_only, item.second_only, item.neither)
    return [item.label, on, *map(str, counts), _number(item.observed), _number(item.kappa)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


EXPORT = CliCommand(
    ExportReviews,
    export,
    {
        "paths": argument("PATH", "files and folders of runs (default: everything that has been reviewed)"),
        "where": WHERE,
        "to": option("default: {default}", "--to", "--format"),
        "output": option("write to this file instead of standard output", "-o", "--output", metavar="PATH"),
        "reviewer": option("only reviews by these reviewers", metavar="NAME"),
    },
)
SUMMARY = CliCommand(
    SummarizeReviews,
    summary,
    {"paths": argument("PATH", "files and folders of runs"), "json": JSON},
    about=(
        "Counts runs by model and by task: all, those with a verdict, those with each verdict, reason and"
        " label of any reviewer, and how many pairs of reviewers of a run gave the same verdict. Copies of a"
        " run count once."
    ),
)
MERGE = CliCommand(
    MergeReviews,
    merge,
    {"paths": argument("PATH", "a reviewer's .jsonl from the folder reviews, not an export; or a folder")},
)
AGREEMENT = CliCommand(
    CompareReviewers,
    agree,
    {"reviewers": argument("NAME", "the two reviewers; can be left out if there are only two"), "json": JSON},
    about="Compares two reviewers on the runs that both reviewed: for each label, over the steps that both"
    " have seen and over the runs; and for the verdicts.",
)
