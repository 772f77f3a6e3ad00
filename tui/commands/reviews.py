"""`gistpoint reviews export`, `merge` and `agreement`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from gistpoint.core.attempts.clock import SystemTime
from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.text import visible_line
from gistpoint.sessions.annotations.agreement import Agreement, Agreements, agreement
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.annotations.rows import REVIEW_COLUMNS, csv_lines, jsonl_lines, review_rows
from gistpoint.tui.commands.command import DONE, Handler
from gistpoint.tui.commands.output import for_output, print_json, print_table


def _store() -> ReviewStore:
    store = ReviewStore(Locations.of_user().reviews, SystemTime())
    _print_problems(store.problems)
    return store


def _print_problems(problems: tuple[str, ...]) -> None:
    for problem in problems:
        print(f"gistpoint: {visible_line(problem)}", file=sys.stderr)


def export_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint reviews export`."""
    parser.add_argument("--format", choices=["csv", "jsonl"], default="csv", help="default: csv")
    parser.add_argument("--output", metavar="FILE", help="instead of standard output")
    parser.add_argument("--reviewer", action="append", default=[], metavar="NAME", help="of these reviewers alone")
    return export


def export(options: argparse.Namespace) -> int:
    """Write every label, comment and verdict that was not taken back."""
    store = _store()
    for name in options.reviewer:
        _check_known(store, name)
    found = review_rows(store.book, options.reviewer)
    lines = csv_lines(found, REVIEW_COLUMNS) if options.format == "csv" else jsonl_lines(found)
    if options.output is None:
        sys.stdout.writelines(for_output(lines))
        return DONE
    try:
        with Path(options.output).open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.writelines(lines)
    except OSError as error:
        raise UserError(f"{options.output} can't be written: {error.strerror}.") from error
    return DONE


def merge_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint reviews merge`."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a reviewer's .jsonl of the folder reviews, no export; or a folder"
    )
    return merge


def merge(options: argparse.Namespace) -> int:
    """Merge the annotations of other reviewers."""
    store = _store()
    merged = store.merge(Path(path) for path in options.paths)
    _print_problems(merged.problems)
    print(f"{merged.added} operations added, {merged.known} were there already.")
    return DONE


def agreement_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint reviews agreement`."""
    parser.description = (
        "Compares two reviewers on the runs that both reviewed: per label over the steps that both have "
        "seen, and over the runs; and over the verdicts."
    )
    parser.add_argument("reviewers", nargs="*", metavar="NAME", help="two of them; may be left out if there are two")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return agree


def agree(options: argparse.Namespace) -> int:
    """Print the agreement of two reviewers."""
    store = _store()
    first, second = _two(store, options.reviewers)
    found = agreement(store.book, first, second)
    if options.json:
        print_json("gistpoint.agreement/1", _as_json(found))
        return DONE
    _print(found)
    return DONE


def _two(store: ReviewStore, names: list[str]) -> tuple[str, str]:
    known = store.book.reviewers
    wanted = names or list(known)
    if len(wanted) != 2:
        listed = ", ".join(known) or "nobody"
        raise UserError("Two reviewers are compared.", hint=f"Name two of them. There are reviews by: {listed}.")
    for name in wanted:
        _check_known(store, name)
    return wanted[0], wanted[1]


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
    print(f"{visible_line(found.first)} and {visible_line(found.second)}: {found.runs} runs reviewed by both, "
          f"{found.steps} steps seen by both")  # fmt: skip
    headings = ["label", "on", "units", "both", "first only", "second only", "neither", "agreed", "kappa"]
    groups = (("steps", found.on_steps), ("runs", found.on_runs))
    print_table(headings, [_row(item, on) for on, group in groups for item in group])
    if found.verdicts:
        print(f"verdicts: {found.verdicts} runs, kappa {_number(found.verdict_kappa)}")


def _row(item: Agreement, on: str) -> list[str]:
    counts = (item.units, item.both, item.first_only, item.second_only, item.neither)
    return [item.label, on, *map(str, counts), _number(item.observed), _number(item.kappa)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
