"""What each command that reads recorded runs needs: the reviewers' rulings, and reports of unreadable files.

A search needs nothing else of the list of runs, which would take a third of the time that it needs to start.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gistpoint.core.locations import Locations
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import ListedRun
from gistpoint.tui.commands.command import MISTAKE, NEGATIVE, readable

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.reviews import ReviewBook


def review_book() -> ReviewBook:
    """Return the reviews of all reviewers."""
    from gistpoint.core.machine_time import SystemTime
    from gistpoint.sessions.annotations.reviewer import ReviewStore

    return ReviewStore(Locations.of_user().reviews, SystemTime()).book


def settled_document(document: RunDocument) -> RunDocument:
    """Read a run to its end, and return it with the reviewers' decision on its pass."""
    from gistpoint.sessions.annotations.settling import settle

    document.build()
    return settle(document, review_book())


def print_problems(problems: list[ListedRun], paths: Sequence[str], code: int) -> int:
    """Print what could not be read, and return the exit code: `code` unless the problems call for another.

    A named path that can't be read is a user error. A file that is not, or probably not, a run is a negative
    verdict.
    """
    for item in problems:
        shown = item.problem if item.name in item.problem else f"{item.name}: {item.problem}"
        print(f"gistpoint: {readable(shown)}", file=sys.stderr)
    named = [item for item in problems if item.name in paths]
    if any(not item.is_verdict for item in named):
        return MISTAKE
    return NEGATIVE if named or any(item.is_verdict and item.size for item in problems) else code


def problem_record(listed: ListedRun) -> dict[str, Any]:
    """Return a file that could not be read, or that is probably not a run, as JSON data."""
    return {"run": listed.name, "problem": listed.problem}
