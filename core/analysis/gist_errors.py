"""The causes of failed gists, and the flags that qualify a gist's score (Gistify, table 2)."""

from __future__ import annotations

from collections import Counter
from functools import partial

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.findings import Findings
from gistpoint.core.analysis.intervals import share
from gistpoint.core.analysis.samples import FIDELITY, measuring
from gistpoint.core.analysis.task_means import percent
from gistpoint.core.kinds.registry import measure_named
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

MOCKED, UNKNOWN = "mocked", "not recorded"
ERROR, NOT_CREATED = measure_named("error"), "file_creation"
CATEGORIES = (*ERROR.values, MOCKED, UNKNOWN)
NOTE = (
    "Of the gists that failed, the first error that applies, in the order file creation, missing"
    " test, import, run; the paper's order is the same except for the import, which it does not"
    " place. 'mocked' is a run that matches because of a fake of the codebase, which the paper counts"
    " as faithful. Percentages are of the failed gists of the row's solver and sum to 100. (The paper's"
    " own first row does not: 72 of 97 is 74.2%, but it prints 76.3.) Whether a gist without its"
    " test would run with the test is not known: a hand-in is scored once."
)
FLAGS_NOTE = "Share of all gists of the solver; a gist that was not created has none."


def errors(data: StudyData) -> Findings:
    """Return the failed gists by first error, and the share of gists with each flag (Gistify, table 2)."""
    found = FindingsBuilder()
    table = found.table(
        "Errors of the gists that failed", ("solver", "first error", "gists", "of failed", "%"), NOTE
    )
    flags = found.table("Flags of gists", ("solver", "flag", "%"), FLAGS_NOTE)
    groups = measuring(data, FIDELITY)
    for group in groups:
        failed = [row for row in group.rows if not row.solved]
        # Each failed gist has one category, the first that applies: the percentages sum to 100.
        counts = Counter(map(category_of, failed))
        for category in CATEGORIES if failed else ():
            if category in (MOCKED, UNKNOWN) and not counts[category]:
                continue
            number = percent(share(failed, partial(_is_category, category=category)))
            found.number(f"{group.label}/{category}", number)
            table.row(group.label, category.replace("_", " "), counts[category], len(failed), number)
        for flag in sorted(frozenset().union(*map(flags_of, group.rows))):
            number = percent(share(group.rows, partial(_has_flag, flag=flag)))
            flags.row(group.label, flag.replace("_", " "), found.number(f"{group.label}/flag {flag}", number))
    found.settings(groups)
    return found.findings()


def category_of(row: AttemptRow) -> str:
    """Return the category of a failed gist: its error, `MOCKED`, `NOT_CREATED` or `UNKNOWN`.

    A gist that was never handed in counts as not created.
    """
    if row.text("error") in ERROR.values:
        return row.text("error")
    if row.is_true("mocked"):
        return MOCKED
    return NOT_CREATED if row.submissions == 0 and row.score is None else UNKNOWN


def flags_of(row: AttemptRow) -> frozenset[str]:
    """Return the names of a gist's flags, including `MOCKED`; a gist that was not created has none."""
    if row.text("error") == NOT_CREATED:
        return frozenset()
    return frozenset(row.names("gist_flags")) | ({MOCKED} if row.is_true("mocked") else set())


def _is_category(row: AttemptRow, category: str) -> bool:
    return category_of(row) == category


def _has_flag(row: AttemptRow, flag: str) -> bool:
    return flag in flags_of(row)
